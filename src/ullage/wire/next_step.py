"""Runs the next step of a task at once instead of in the event loop's next turn.

A turn costs a system call and a pass over the loop's queues. A call through the gateway would take four turns: its
request is read, its task starts, the server's answer is read, and the task goes on. The task's two steps are run
directly from the callbacks that read a message, which makes it two turns.

The standard event loop has a queue of scheduled callbacks, which is not part of its public interface. Another event
loop, or one whose queue looks different, runs the steps in its next turn as usual.
"""

import asyncio
from collections import deque
from typing import Any, cast

__all__ = ["count_scheduled", "run_scheduled"]


def count_scheduled(loop: asyncio.AbstractEventLoop) -> int:
    """Return the number of callbacks that are scheduled for the loop's next turn; -1 if that is not known."""
    ready = getattr(loop, "_ready", None)
    return len(cast("deque[Any]", ready)) if isinstance(ready, deque) else -1


def run_scheduled(loop: asyncio.AbstractEventLoop, count_before: int) -> None:
    """Run the one callback that was scheduled since `count_before`, if it is one and no task is running.

    A step of a task cannot run within another task's; in that case the callback stays scheduled.
    """
    if count_before < 0:
        return
    ready = cast("deque[asyncio.Handle]", getattr(loop, "_ready", ()))
    if len(ready) == count_before + 1 and asyncio.current_task(loop) is None:
        ready.pop()._run()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]
