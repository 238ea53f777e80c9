"""Calls that are running, so that they can finish, or be ended with an error, when Ullage shuts down."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from ullage.errors import Unavailable

__all__ = ["OpenCalls", "shutting_down"]

ResultT = TypeVar("ResultT")


def shutting_down(what: str = "the call had not finished") -> Unavailable:
    """The error of a call that Ullage's end leaves without an answer."""
    return Unavailable(
        f"Ullage is shutting down, and {what}",
        suggestion="start Ullage again and repeat the call; check first whether it has taken effect already",
    )


class OpenCalls:
    """The running calls of a gateway or of one server.

    A call is ended by cancelling its task instead of through a cancel scope, which would cost every call more than
    all the rest of this.
    """

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[object], int] = {}
        """Tasks, and how many calls each of them is in the middle of."""
        self._cancelled: set[asyncio.Task[object]] = set()
        self._is_ended = False

    def __len__(self) -> int:
        return sum(self._running.values())

    async def run(self, work: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Do the work; raises `Unavailable` where `end` is called first."""
        if self._is_ended:
            raise shutting_down("takes no further calls")
        task = cast("asyncio.Task[object]", asyncio.current_task())
        self._running[task] = self._running.get(task, 0) + 1
        try:
            return await work()
        except asyncio.CancelledError:
            if task not in self._cancelled:
                raise
            raise shutting_down() from None
        finally:
            self._leave(task)

    def _leave(self, task: "asyncio.Task[object]") -> None:
        if self._running[task] > 1:
            self._running[task] -= 1
        else:
            del self._running[task]
        if task in self._cancelled:
            self._cancelled.discard(task)
            task.uncancel()

    def end(self) -> None:
        """End every call that is running and every later one with an error."""
        self._is_ended = True
        for task in self._running:
            if task not in self._cancelled and task.cancel():
                self._cancelled.add(task)
