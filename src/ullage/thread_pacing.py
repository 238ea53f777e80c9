"""Pauses in the long work of worker threads, so that the event loop gets the interpreter in time.

A thread that waits for the interpreter's lock is given it after the switch interval, counted anew whenever the lock is
released. A worker that releases it for a moment again and again, as SQLite does for every row and `os.urandom` at every
call, takes it back before a waiting thread has woken up, and so can keep the event loop waiting for 100 ms.
A pause is long enough for the waiting thread to wake up and take the lock.

Workers that compute at the same time let the event loop wait longer, and none of them ends earlier for it.
So work on many items runs one piece at a time.
"""

import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import anyio
    from anyio.lowlevel import RunVar

__all__ = ["pace", "pause_thread", "run_in_worker", "take_turn"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_WORK_SECONDS = 0.004
"""Seconds of work between two pauses."""
_PAUSE_SECONDS = 0.0005
_MANY = 1_000
"""Items from which on work waits for other such work to end; less is done within milliseconds."""
_turn: "RunVar[anyio.CapacityLimiter] | None" = None
"""The limit of an event loop on concurrent work on many items."""


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


@asynccontextmanager
async def take_turn(items: int) -> AsyncGenerator[None]:
    """Wait until no other work on many items runs; work on few items does not wait.

    Turns cannot be nested.
    """
    if items <= _MANY:
        yield
    else:
        async with _turn_of_loop():
            yield


async def run_in_worker(work: Callable[[], Result], *, items: int) -> Result:
    """Run work in a worker thread, in turn with other work on many items.

    Args:
        work: A function that computes.
        items: The number of items that it goes through, such as tools.
    """
    import anyio.to_thread

    async with take_turn(items):
        return await anyio.to_thread.run_sync(work)


def _turn_of_loop() -> "anyio.CapacityLimiter":
    # Imported here because the first answers over stdio are given without anyio.
    global _turn  # noqa: PLW0603 - a `RunVar` cannot be made without the import
    import anyio
    from anyio.lowlevel import RunVar

    if _turn is None:
        _turn = RunVar[anyio.CapacityLimiter]("turn")
    try:
        return _turn.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(1)
        _turn.set(limiter)
        return limiter
