import threading
import time

import pytest

from ullage.thread_pacing import pace, pause_thread


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
