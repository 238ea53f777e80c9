"""By which connection does a question go, and who ends it when its time is up?

As many connections as questions may run at one time, opened when needed and kept for a while. Drivers wait in threads;
a deadline or a cancellation leaves the thread, has the server stop, cuts the socket, and so holds whatever the server
does. What is asked is not its affair.
"""

import math
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

import anyio
from anyio import to_thread

from ullage.errors import DeadlinePassed, QueryFailed, SourceFailed

from .session import Held, Session

__all__ = ["Pool"]

_GRACE = 0.25
"""Seconds beyond a deadline in which the server is told to stop, and after an answer to clean up."""
_IDLE_SECONDS = 60.0
"""Longer, and something between here and the server may have forgotten the connection."""

_Result = TypeVar("_Result")


class Pool:
    def __init__(self, opener: Callable[[float], Session], *, size: int, shown: str) -> None:
        self._opener = opener
        """Given the seconds in which to give up."""
        self._shown = shown
        self._slots = anyio.Semaphore(size)
        # Threads are bounded by the slots; the process's own limit is for work that ends by itself.
        self._threads = anyio.CapacityLimiter(math.inf)
        self._idle: list[tuple[Held, float]] = []
        self._is_closed = False

    async def use(self, work: Callable[[Session], _Result], *, seconds: float, rows: int | None) -> _Result:
        try:
            with anyio.fail_after(seconds) as scope:
                async with self._slots:
                    held = await self._begun(rows, scope.deadline)
                    return await self._worked(held, work)
        except (TimeoutError, DeadlinePassed):
            raise DeadlinePassed(
                f"`{self._shown}` had not answered after {seconds:g} seconds",
                suggestion="ask for less: filter by an indexed column, aggregate, or look at the plan by EXPLAIN",
            ) from None

    async def _begun(self, rows: int | None, deadline: float) -> Held:
        """A connection of the idle may have died since; nothing was asked over it yet, so that another does."""
        while held := self._kept():
            try:
                return await self._begin(held, rows, deadline)
            except SourceFailed:
                continue
        return await self._begin(await self._opened(deadline), rows, deadline)

    async def _begin(self, held: Held, rows: int | None, deadline: float) -> Held:
        seconds = _seconds_left(deadline)
        try:
            await self._working(held, lambda session: session.begin(seconds, rows))
        except QueryFailed:
            held.sever()
            raise
        return held

    def _kept(self) -> Held | None:
        if self._is_closed:
            raise SourceFailed(f"`{self._shown}` is closed")
        now = anyio.current_time()
        while self._idle:
            held, since = self._idle.pop()
            if now - since < _IDLE_SECONDS:
                return held
            held.sever()
        return None

    async def _opened(self, deadline: float) -> Held:
        opening = _Opening(self._opener, _seconds_left(deadline))
        try:
            return await self._in_thread(opening.run)
        except BaseException:
            opening.abandon()
            raise

    async def _worked(self, held: Held, work: Callable[[Session], _Result]) -> _Result:
        try:
            result = await self._working(held, work)
        except QueryFailed:
            await self._put_back(held)
            raise
        await self._put_back(held)
        return result

    async def _working(self, held: Held, work: Callable[[Session], _Result]) -> _Result:
        try:
            return await self._in_thread(lambda: held.run(work))
        except QueryFailed:
            raise
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_GRACE, shield=True):
                await self._in_thread(held.session.interrupt)
            held.sever()
            raise
        except BaseException:
            held.sever()
            raise

    async def _put_back(self, held: Held) -> None:
        with anyio.move_on_after(_GRACE, shield=True):
            if await self._working(held, lambda session: session.clean()) and not self._is_closed:
                self._idle.append((held, anyio.current_time()))
                return
        held.sever()

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)

    async def close(self) -> None:
        """What is being answered is answered; its connection ends after it."""
        self._is_closed = True
        while self._idle:
            self._idle.pop()[0].sever()


def _seconds_left(deadline: float) -> float:
    return max(0.001, deadline - anyio.current_time())


class _Opening:
    """A connection that is being opened, for whom nobody may wait any more when it is there."""

    def __init__(self, opener: Callable[[float], Session], seconds: float) -> None:
        self._opener = opener
        self._seconds = seconds
        self._lock = Lock()
        self._held: Held | None = None
        self._is_abandoned = False

    def run(self) -> Held:
        held = Held(self._opener(self._seconds))
        with self._lock:
            self._held = held
            is_abandoned = self._is_abandoned
        if is_abandoned:
            held.sever()
        return held

    def abandon(self) -> None:
        with self._lock:
            self._is_abandoned = True
        if self._held is not None:
            self._held.sever()
