import gc
import random
import re
import sys
import weakref
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path

import anyio
import pytest

from ullage.process_memory import add_mapped_file, collect_garbage, release_free_memory

pytestmark = pytest.mark.anyio


class Session:
    """Something that refers to itself, as what a session leaves behind does."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _no_collections_by_the_interpreter() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(100_000, 1_000, 1_000)
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


class Calls:
    """Calls of a gateway: as many open ones as given."""

    def __init__(self, count: int = 0) -> None:
        self.count = count
        self.started = count

    def __len__(self) -> int:
        return self.count


def left_behind() -> "weakref.ref[Session]":
    """A session that has ended after two collections that it outlived, so that only a full one frees it."""
    session = Session()
    gc.collect(1)
    return weakref.ref(session)


async def wait_until_freed(session: "weakref.ref[Session]", seconds: float = 20) -> bool:
    with anyio.move_on_after(seconds):
        while session() is not None:
            await anyio.sleep(0.01)
    return session() is None


async def is_freed(*, open_calls: int, collections: int, seconds: float = 20) -> bool:
    """Whether a session is freed soon after it has ended and as many collections of the middle generation."""
    found = False
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect_garbage, Calls(open_calls), 0.02)
        await anyio.sleep(0.01)
        session = left_behind()
        for _ in range(collections - 1):
            gc.collect(1)
        found = await wait_until_freed(session, seconds)
        tasks.cancel_scope.cancel()
    return found


async def test_what_an_ended_session_leaves_is_freed_while_no_call_is_open():
    assert await is_freed(open_calls=0, collections=1)


async def test_little_is_not_collected_while_a_call_is_open():
    assert not await is_freed(open_calls=1, collections=2, seconds=0.3)


async def test_much_is_collected_although_a_call_is_open():
    assert await is_freed(open_calls=1, collections=5)


async def test_nothing_is_collected_where_nothing_was_made():
    session = left_behind()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect_garbage, Calls(), 0.01)
        await anyio.sleep(0.1)
        tasks.cancel_scope.cancel()
    assert session() is not None


async def test_what_was_loaded_before_is_not_examined():
    session = left_behind()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect_garbage, Calls(), 0.01, 0.1)
        await anyio.sleep(0.02)
        later = left_behind()
        assert await wait_until_freed(later)
        await anyio.sleep(0.2)
        tasks.cancel_scope.cancel()
    assert session() is not None


async def test_many_new_objects_are_examined_only_after_a_time_without_calls():
    calls = Calls(1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect_garbage, calls, 0.02, 0.4)
        await anyio.sleep(0.01)
        session, frozen = left_behind(), gc.get_freeze_count()
        for _ in range(20):
            gc.collect(1)
        with anyio.fail_after(20):
            while gc.get_freeze_count() == frozen:
                await anyio.sleep(0.01)
        for _ in range(3):  # further calls, one after the other
            calls.count = 0
            calls.started += 1
            await anyio.sleep(0.1)
        assert session() is not None
        assert await wait_until_freed(session)
        tasks.cancel_scope.cancel()


async def test_objects_set_aside_again_and_again_are_examined_without_a_time_without_calls():
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect_garbage, Calls(1), 0.005)
        await anyio.sleep(0.002)
        session = left_behind()
        with anyio.fail_after(60):
            while session() is not None:
                for _ in range(20):
                    gc.collect(1)
                await anyio.sleep(0.005)
        tasks.cancel_scope.cancel()


@pytest.mark.skipif(sys.platform != "linux", reason="the size of one map is read from /proc")
def test_pages_of_mapped_files_are_released_and_read_again(tmp_path: Path):
    path = tmp_path / "table"
    content = random.Random(7).randbytes(1 << 20)
    path.write_bytes(content)
    with path.open("rb") as file:
        mapped = mmap(file.fileno(), 0, access=ACCESS_READ)
    add_mapped_file(mapped)
    assert mapped[:] == content
    assert resident(path) >= 1024
    release_free_memory()
    assert resident(path) == 0
    assert mapped[:] == content


def resident(path: Path) -> int:
    """Return how many KiB of a mapped file count as this process's memory."""
    maps = Path("/proc/self/smaps").read_text(encoding="utf-8")
    (size,) = re.findall(rf"{re.escape(str(path))}\n(?:.*\n)*?Rss: +(\d+) kB", maps)
    return int(size)
