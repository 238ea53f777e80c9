"""Calls that are running, so that they can finish, or be ended with an error, when Ullage shuts down."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

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
    """The running calls of a gateway or of one server."""

    def __init__(self) -> None:
        self._scopes: set[anyio.CancelScope] = set()
        self._is_ended = False

    def __len__(self) -> int:
        return len(self._scopes)

    async def run(self, work: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Do the work; raises `Unavailable` where `end` is called first."""
        if self._is_ended:
            raise shutting_down("takes no further calls")
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                return await work()
            finally:
                self._scopes.discard(scope)
        raise shutting_down()

    def end(self) -> None:
        """End every call that is running and every later one with an error."""
        self._is_ended = True
        for scope in tuple(self._scopes):
            scope.cancel()
