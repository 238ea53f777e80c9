"""Freeing of large values in portions.

The interpreter frees a list with all that is in it in one go, wherever its last reference is dropped, and no thread
goes on meanwhile: 20 ms for 20 MB of rows, 70 ms for 3 million empty lists. `keep_until_unused` keeps a reference of
its own until all others are gone and then takes the value apart in a worker thread, some thousand objects at a time.
That takes ten times as long in all, so it is for values that would hold up others.
"""

import asyncio
import sys
from collections import deque
from typing import cast

import anyio.to_thread

__all__ = ["LEAST", "free_unused", "keep_until_unused"]

LEAST = 4_000_000
"""Bytes of JSON whose value is worth the trouble."""

_PAUSE = 0.5
"""Seconds between two looks at whether values are still used."""
_MOST_LOOKS = 240
"""Looks after which a value that is still used is left to its users."""
_PORTION = 1_000
"""Items of a list that are let go of together."""
_ALONE = 2
"""References of a value that only this module knows: the variable, and the argument of `getrefcount`."""

_kept: deque[tuple[int, list[object]]] = deque()
_task: asyncio.Task[None] | None = None


def keep_until_unused(value: object) -> None:
    """Have a value freed in portions when nobody uses it any more; call it on the event loop."""
    global _task  # noqa: PLW0603 - one task for all values of the process
    _kept.append((_MOST_LOOKS, [value]))
    if _task is None or _task.done() or _task.get_loop() is not asyncio.get_running_loop():
        _task = asyncio.get_running_loop().create_task(_look())


async def _look() -> None:
    while _kept:
        await asyncio.sleep(_PAUSE)
        for _ in range(len(_kept)):
            looks, parts = _kept.popleft()
            used = await anyio.to_thread.run_sync(free_unused, parts, abandon_on_cancel=True)
            if used and looks > 1:
                _kept.append((looks - 1, used))


def free_unused(todo: list[object]) -> list[object]:
    """Take apart the lists and objects that only `todo` knows; returns those that are used elsewhere too.

    What is in one that is used elsewhere stays as it is.
    """
    used: list[object] = []
    while todo:
        one = todo.pop()
        if not isinstance(one, list | dict):
            continue
        # No second variable may name it, or it would be taken for used; nor may an object still name its members.
        if sys.getrefcount(one) > _ALONE:
            used.append(cast("object", one))
        elif isinstance(one, dict):
            todo += [inner for inner in cast("dict[str, object]", one).values() if isinstance(inner, list | dict)]
            one.clear()
        elif one:
            some = cast("list[object]", one)[-_PORTION:]
            del one[-_PORTION:]
            todo.append(cast("object", one))
            todo += [inner for inner in some if isinstance(inner, list | dict)]
            del some
    return used
