"""How is long work done without holding anyone up?

Work that may be long is a generator that yields after every few milliseconds and returns its result. `drain` runs it at
once; `patiently` runs it on an event loop and lets others in between. The work itself is written once.
"""

from collections.abc import Generator
from typing import TypeVar

import anyio.lowlevel

__all__ = ["Steps", "drain", "patiently"]

Result = TypeVar("Result")
Steps = Generator[None, None, Result]


def drain(steps: Steps[Result]) -> Result:
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value


async def patiently(steps: Steps[Result]) -> Result:
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value
        await anyio.lowlevel.checkpoint()
