"""Memory of this process: garbage collection while nobody waits, and returning freed memory to the system.

A gateway turns the interpreter's own full collections off, because they would come in the middle of calls. But what an
ended session leaves behind refers to itself, and only a full collection frees it. So `collect_garbage` makes one while
no call is open, or when much has been left.
"""

import gc
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import anyio

from ullage.mapped_files import release_mapped_pages

__all__ = ["collect_garbage", "release_free_memory"]

_LOOK_SECONDS = 5.0
"""Seconds between two looks."""
_MOST_LEFT = 10
"""Collections of the middle generation after which a full one is made even while calls are open. With the gateway's
thresholds that is half a million objects which were made and not freed at once."""
_LARGEST_SHARE = 0.005
"""Largest part of the time that full collections may take."""


async def collect_garbage(is_idle: Callable[[], bool], look_seconds: float = _LOOK_SECONDS) -> None:
    """Make full collections from time to time, until cancelled.

    Args:
        is_idle: Whether no call is open.
        look_seconds: Seconds between two looks.
    """
    made = _middle_collections()
    while True:
        await anyio.sleep(look_seconds)
        left = _middle_collections() - made
        if not left or (left < _MOST_LEFT and not is_idle()):
            continue
        began = time.perf_counter()
        gc.collect()
        release_free_memory()
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
