"""How far are we?

A bar on standard error, drawn only where a person watches a terminal that can wipe a line. It knows nothing of what is
being done.
"""

import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from .terminal import own_sequence

__all__ = ["Progress"]

_EVERY_SECONDS = 0.1


class Sized(Protocol):
    @property
    def size(self) -> int: ...


Item = TypeVar("Item", bound=Sized)


class Progress:
    """Shows how much of `whole` has passed through; use it as a context, which wipes the bar at its end."""

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
