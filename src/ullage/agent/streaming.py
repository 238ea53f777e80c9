"""How does a generator yield what a coroutine tells while it runs?

The work goes on in a task of its own and ends with the block, whichever way that is left. A generator may be closed
from another task than the one that opened it, where a task group would be refused its end; hence a plain task.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import anyio

__all__ = ["Running", "running"]

Piece = TypeVar("Piece")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Running(Generic[Piece, Value]):
    _task: asyncio.Task[Value]
    _pieces: asyncio.Queue[Piece | None]

    async def __aiter__(self) -> AsyncIterator[Piece]:
        """What it tells, until it has ended."""
        while (piece := await self._pieces.get()) is not None:
            yield piece

    async def value(self) -> Value:
        """What came of it; raises what it raised."""
        return await self._task


@asynccontextmanager
async def running(
    work: Callable[[Callable[[Piece], None]], Coroutine[Any, Any, Value]],
) -> AsyncGenerator[Running[Piece, Value]]:
    """`work` is given the function to tell its pieces by."""
    pieces = asyncio.Queue[Piece | None]()
    task = asyncio.get_running_loop().create_task(work(pieces.put_nowait))
    task.add_done_callback(lambda _: pieces.put_nowait(None))
    try:
        yield Running(task, pieces)
    finally:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({task})
