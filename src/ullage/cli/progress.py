"""Progress on standard error.

On a terminal, a bar or a line is drawn repeatedly. Elsewhere `show_waiting` writes a line every two seconds, so that a
log shows what is pending.
"""

import os
import shutil
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

from .output import cut, own_sequence, plain, say

__all__ = ["Progress", "show_waiting"]

_EVERY_SECONDS = 0.1
_LINE_SECONDS = 2.0
"""Seconds between two lines if nothing can be redrawn."""
_AT_ONCE = 0.4
"""Seconds before anything is shown: shorter work needs no progress."""


class Sized(Protocol):
    @property
    def size(self) -> int: ...


Item = TypeVar("Item", bound=Sized)


class Progress:
    """Shows how much of `whole` has been processed. Use it as a context manager, which clears the bar at its end."""

    def __init__(self, whole: int, label: str) -> None:
        self._whole = whole
        self._label = label
        self._done = 0
        self._shown_at = 0.0
        self._watched = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown_at:
            print(own_sequence("\r\x1b[K", sys.stderr), end="", file=sys.stderr, flush=True)

    def through(self, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            if self._watched and time.monotonic() - self._shown_at > _EVERY_SECONDS:
                self._shown_at = time.monotonic()
                self._draw(self._done / self._whole if self._whole else 1.0)
            yield item
            self._done += item.size

    def _draw(self, part: float) -> None:
        width = max(10, min(40, shutil.get_terminal_size().columns - len(self._label) - 10))
        full = round(part * width)
        bar = "█" * full + "░" * (width - full)
        wipe = own_sequence("\r\x1b[K", sys.stderr)
        print(f"{wipe}{self._label} {bar} {part:4.0%}", end="", file=sys.stderr, flush=True)


@asynccontextmanager
async def show_waiting(total: int, waiting: Callable[[], Sequence[str]]) -> AsyncGenerator[None]:
    """Show which of `total` servers have not answered, until the context ends.

    Args:
        total: Number of all servers.
        waiting: Returns the names of those that have not answered yet.
    """
    import anyio  # `ullage count` shows a bar as well, and does not wait for it

    is_drawn = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    begun = time.monotonic()
    has_drawn = False

    def line() -> str:
        names = waiting()
        if not names:
            return f"counting the tools of {total} servers"
        named = f"; waiting for {', '.join(map(plain, names))}"
        return f"{total - len(names)} of {total} servers answered{named} ({time.monotonic() - begun:.0f} s)"

    async def tick() -> None:
        nonlocal has_drawn
        await anyio.sleep(_AT_ONCE if is_drawn else _LINE_SECONDS)
        while True:
            if is_drawn:
                has_drawn = True
                text = own_sequence("\r\x1b[K", sys.stderr) + cut(line(), shutil.get_terminal_size().columns - 1)
                print(text, end="", file=sys.stderr, flush=True)
            else:
                say(f"ullage: {line()}")
            await anyio.sleep(_EVERY_SECONDS * 2 if is_drawn else _LINE_SECONDS)

    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised again below: a task group would wrap it
            failure = error
        tasks.cancel_scope.cancel()
    if has_drawn:
        print(own_sequence("\r\x1b[K", sys.stderr), end="", file=sys.stderr, flush=True)
    if failure is not None:
        raise failure
