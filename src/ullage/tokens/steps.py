"""Long work in steps, so that an event loop serves others meanwhile.

Work that may be long is a generator that yields after every few milliseconds and returns its result. `drain` runs it at
once; `patiently` runs it on an event loop and lets others in between. The work itself is written once. A step that
waits for another thread yields the event for which it waits, and may be resumed before that is set.
"""

from collections.abc import Generator
from threading import Event
from typing import TypeVar

__all__ = ["Steps", "drain", "patiently"]

Result = TypeVar("Result")
Steps = Generator[Event | None, None, Result]

_GLANCE = 0.002
"""Seconds after which an event loop looks again whether an event is set."""
_BREATH = 1.0
"""The same without an event loop, where the event itself ends the wait."""


def drain(steps: Steps[Result]) -> Result:
    while True:
        try:
            awaited = next(steps)
        except StopIteration as stop:
            return stop.value
        if awaited is not None:
            awaited.wait(_BREATH)


async def patiently(steps: Steps[Result]) -> Result:
    # Most who count have no event loop and are spared the import.
    from anyio import sleep
    from anyio.lowlevel import checkpoint

    while True:
        try:
            awaited = next(steps)
        except StopIteration as stop:
            return stop.value
        await (checkpoint() if awaited is None else sleep(_GLANCE))
