"""Which worker answers, and by when?

A few processes that read the same file, started when they are needed and kept warm; each ends by itself when nobody
has asked it for a while. A question that is late, given up or crashed takes its process with it, and the next one gets
another. What is asked is not known here.
"""

from collections.abc import Callable, Iterable, Mapping

import anyio

from ..engine import Limits
from .failing import closed, crashed, failure, late
from .process import Gone, Worker, framed
from .received import Received

__all__ = ["MEMORY", "Frames", "Workers"]

MEMORY = 1 << 30
"""Bytes that one worker may take."""

_GRACE = 0.2
"""Seconds after the deadline in which a worker may end a question by itself before it is ended."""
_SLACK = 64 << 20
"""Bytes of an answer that are not rows; a description of ten thousand tables has as many."""

Frames = Callable[[float], Iterable[bytes]]
"""The frames of a question, given the seconds that are left; made while they are sent."""


class Workers:
    def __init__(
        self, hello: Mapping[str, object], *, name: str, limits: Limits, memory: int = MEMORY, idle: float = 60.0
    ) -> None:
        """`hello` says what they read, `name` what people call it; after `idle` seconds without a question one ends."""
        self._hello = framed({**hello, "memory": memory, "idle": idle})
        self._name = name
        self._bytes = limits.bytes
        self._turns = anyio.Semaphore(limits.concurrency)
        self._warm: list[Worker] = []
        self._is_closed = False

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Of those at rest."""
        return tuple(worker.process_id for worker in self._warm)

    async def ask(self, frames: Frames, seconds: float) -> Received:
        """Raises what the worker failed with, `DeadlinePassed`, or `SourceFailed` where it crashed."""
        received = await self._received(frames, seconds)
        if received.failed is not None:
            raise failure(received.failed, name=self._name, seconds=seconds)
        return received

    async def close(self) -> None:
        """Ends those at rest; one that is answering ends with its answer."""
        self._is_closed = True
        while self._warm:
            await self._warm.pop().end()

    async def _received(self, frames: Frames, seconds: float) -> Received:
        deadline = anyio.current_time() + seconds
        with anyio.CancelScope(deadline=deadline + _GRACE):
            async with self._turns:
                received = await self._exchange(frames, deadline)
                while received.is_farewell:
                    received = await self._exchange(frames, deadline)
                return received
        raise late(seconds)

    async def _exchange(self, frames: Frames, deadline: float) -> Received:
        if self._is_closed:
            raise closed(self._name)
        warm = await self._take_warm()
        worker = warm or await Worker.start()
        said = self._said(frames, deadline, is_new=warm is None)
        try:
            received = await worker.exchange(said, most=self._bytes + _SLACK)
        except Gone as error:
            await worker.end()
            raise crashed(self._name, worker.status) from error
        except BaseException:
            await worker.end()
            raise
        await self._keep(worker, received)
        return received

    async def _take_warm(self) -> Worker | None:
        """One that still runs; another may have been ended by someone else while it was at rest."""
        while self._warm:
            worker = self._warm.pop()
            if worker.status is None:
                return worker
            await worker.end()
        return None

    async def _keep(self, worker: Worker, received: Received) -> None:
        if received.ends_worker or self._is_closed:
            await worker.end()
        else:
            self._warm.append(worker)

    def _said(self, frames: Frames, deadline: float, *, is_new: bool) -> Iterable[bytes]:
        if is_new:
            yield self._hello
        yield from frames(max(0.0, deadline - anyio.current_time()))
