"""Pauses in the long work of worker threads, so that the event loop gets the interpreter in time.

A thread that waits for the interpreter's lock is given it after the switch interval, counted anew whenever the lock is
released. A worker that releases it for a moment again and again, as SQLite does for every row and `os.urandom` at every
call, takes it back before a waiting thread has woken up, and so can keep the event loop waiting for 100 ms.
A pause is long enough for the waiting thread to wake up and take the lock.
"""

import threading
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

__all__ = ["pace", "pause_thread"]

Item = TypeVar("Item")

_WORK_SECONDS = 0.004
"""Seconds of work between two pauses."""
_PAUSE_SECONDS = 0.0005


def pace(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items, with a pause every few milliseconds where this runs in a worker thread."""
    if threading.current_thread() is threading.main_thread():
        yield from items
        return
    now = time.monotonic
    due = now() + _WORK_SECONDS
    for item in items:
        yield item
        if now() >= due:
            time.sleep(_PAUSE_SECONDS)
            due = now() + _WORK_SECONDS


def pause_thread() -> None:
    """Pause once, where this runs in a worker thread."""
    if threading.current_thread() is not threading.main_thread():
        time.sleep(_PAUSE_SECONDS)
