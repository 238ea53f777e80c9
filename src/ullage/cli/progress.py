"""How far are we?

A bar on standard error, drawn only where a person watches a terminal. It knows nothing of what is being done.
"""

import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

__all__ = ["with_progress"]

Item = TypeVar("Item")
_EVERY_SECONDS = 0.1


def with_progress(items: Iterable[tuple[Item, int]], whole: int, label: str) -> Iterator[Item]:
    """Passes items on, each with its share of `whole`, and shows how much of it is done."""
    if not sys.stderr.isatty():
        yield from (item for item, _ in items)
        return
    done, shown = 0, 0.0
    for item, share in items:
        if time.monotonic() - shown > _EVERY_SECONDS:
            shown = time.monotonic()
            _draw(done / whole if whole else 1.0, label)
        yield item
        done += share
    print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _draw(part: float, label: str) -> None:
    width = max(10, min(40, shutil.get_terminal_size().columns - len(label) - 10))
    full = round(part * width)
    print(f"\r\x1b[K{label} {'█' * full}{'░' * (width - full)} {part:4.0%}", end="", file=sys.stderr, flush=True)
