import threading
import time

import anyio
import pytest

from ullage.thread_pacing import pace, pause_thread, run_in_worker


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses made so far, in seconds; none of them is really made."""
    made = list[float]()
    monkeypatch.setattr(time, "sleep", made.append)
    return made


def work_for(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def take(items: int, seconds: float) -> list[int]:
    """Work for some seconds on each of the items."""
    taken = list[int]()
    for item in pace(range(items)):
        work_for(seconds)
        taken.append(item)
    return taken


def test_a_worker_thread_pauses_between_items_that_take_long(pauses: list[float]):
    taken = list[int]()
    thread = threading.Thread(target=lambda: taken.extend(take(4, 0.006)))
    thread.start()
    thread.join()
    assert taken == [0, 1, 2, 3]
    assert len(pauses) >= 3
    assert all(0 < seconds < 0.01 for seconds in pauses)


def test_a_worker_thread_does_not_pause_after_each_short_item(pauses: list[float]):
    thread = threading.Thread(target=lambda: take(1_000, 0.0))
    thread.start()
    thread.join()
    assert len(pauses) < 100


def test_the_main_thread_never_pauses(pauses: list[float]):
    assert take(3, 0.006) == [0, 1, 2]
    pause_thread()
    assert pauses == []


class Workers:
    """Work in threads that notes how many ran at the same time."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self._lock = threading.Lock()

    def work(self) -> None:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        time.sleep(0.02)
        with self._lock:
            self.running -= 1


async def run_three(items: int) -> int:
    """Run three pieces of work on so many items, and return how many of them ran at the same time."""
    workers = Workers()
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(lambda: run_in_worker(workers.work, items=items))
    return workers.most


@pytest.mark.anyio
async def test_work_on_many_items_runs_one_piece_at_a_time():
    assert await run_three(50_000) == 1


@pytest.mark.anyio
async def test_work_on_few_items_does_not_wait():
    assert await run_three(10) == 3


def test_every_event_loop_has_its_own_turn():
    assert [anyio.run(run_three, 50_000) for _ in range(2)] == [1, 1]
