"""Memory of this process: garbage collection while nobody waits, and returning freed memory to the system.

A gateway turns the interpreter's own full collections off, because they would come in the middle of calls. But what an
ended session leaves behind refers to itself, and only a full collection frees it. So `collect_garbage` makes one while
no call is open, or when much has been left.

A full collection blocks every thread while it visits all objects: a third of a second with 50,000 tools. So when many
objects were made at once they are set aside, where a collection does not visit them. They are examined when no call has
come for some time. Until then they are freed as usual where nothing refers to them any more, except those that refer to
themselves.

Pages of mapped files that were read count as this process's memory although the system keeps them anyway. Released
pages are mapped again when they are read, without reading the file.
"""

import gc
import mmap
import sys
import time
from contextlib import suppress
from typing import Protocol
from weakref import WeakSet

__all__ = ["add_mapped_file", "collect_garbage", "release_free_memory", "release_mapped_pages"]

_mapped: WeakSet[mmap.mmap] = WeakSet()


def add_mapped_file(mapped: mmap.mmap) -> None:
    """Add a map of a file that is only read."""
    _mapped.add(mapped)


def release_mapped_pages() -> None:
    """Release the pages of all added maps, where the system can do so."""
    advice = getattr(mmap, "MADV_DONTNEED", None)
    if advice is not None:
        for mapped in tuple(_mapped):
            mapped.madvise(advice)


_LOOK_SECONDS = 2.0
"""Seconds between two looks."""
_MOST_LEFT = 3
"""Collections of the middle generation after which a full one is made even while calls are open. With the gateway's
thresholds that is sixty thousand objects which were made and not freed at once, and 10 ms."""
_MANY_LEFT = 8
"""Collections of the middle generation after which the objects are set aside instead."""
_LONG_SECONDS = 0.03
"""Processor time of a full collection after which what remains is set aside, so that the next one is short."""
_QUIET_SECONDS = 10.0
"""Seconds without a call after which a collection may take long."""
_MOST_ASIDE = 8
"""Times that objects are set aside without such a quiet moment. Then they are examined all the same."""
_LARGEST_SHARE = 0.005
"""Largest part of the time that full collections may take."""


class CallCounts(Protocol):
    """The calls of a gateway."""

    started: int
    """Number of calls so far."""

    def __len__(self) -> int:
        """Return the number of open calls."""
        ...


async def collect_garbage(
    calls: CallCounts, look_seconds: float = _LOOK_SECONDS, quiet_seconds: float = _QUIET_SECONDS
) -> None:
    """Make full collections from time to time, until cancelled.

    Args:
        calls: The calls that a collection would delay.
        look_seconds: Seconds between two looks.
        quiet_seconds: Seconds without a call after which a collection may take long.
    """
    import anyio  # counting tokens, which maps files too, does not wait for it
    import anyio.to_thread

    # Nearly all that was loaded so far stays, and would be visited each time.
    gc.freeze()
    made, started, last_call, times_aside = _middle_collections(), calls.started, time.monotonic(), 0
    while True:
        await anyio.sleep(look_seconds)
        is_idle, left = not len(calls), _middle_collections() - made
        if not is_idle or calls.started != started:
            started, last_call = calls.started, time.monotonic()
        is_quiet = time.monotonic() - last_call >= quiet_seconds
        examines_all = (times_aside and is_quiet) or times_aside >= _MOST_ASIDE
        if not examines_all and (not left or (left < _MOST_LEFT and not is_idle)):
            continue
        began, cpu_began = time.perf_counter(), time.thread_time()
        if left >= _MANY_LEFT and not examines_all and not is_quiet:
            gc.freeze()
            times_aside += 1
        else:
            if examines_all:
                gc.unfreeze()
                times_aside = 0
            gc.collect()
            if time.thread_time() - cpu_began > _LONG_SECONDS:
                gc.freeze()
                times_aside += not examines_all
        if is_idle:
            await anyio.to_thread.run_sync(release_free_memory)
        made = _middle_collections()
        await anyio.sleep((time.perf_counter() - began) / _LARGEST_SHARE)


def _middle_collections() -> int:
    """Return how often objects that outlived a first collection were examined; few objects lead to none."""
    return gc.get_stats()[1]["collections"]


def release_free_memory() -> None:
    """Return freed memory to the operating system where the C library can do so, and the pages of mapped files."""
    release_mapped_pages()
    # Loaded by numpy with the index; not worth an import of its own.
    ctypes = sys.modules.get("ctypes")
    if ctypes is not None and sys.platform == "linux":
        with suppress(AttributeError, OSError):  # not every C library has it
            ctypes.CDLL(None).malloc_trim(0)
