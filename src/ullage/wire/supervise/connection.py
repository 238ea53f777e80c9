"""How does one connection to a server live?

It is being opened, then open, then gone, and never comes back: whoever wants to go on opens another. It bounds the time
of opening and of letting go, and ends itself when nobody uses it. Which session has which connection, and whether
another may be opened, is its watcher's affair.
"""

import math
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Protocol, TypeVar

import anyio

from ullage.errors import SignInNeeded, SourceFailed, UllageError
from ullage.gateway import Introduction, Server
from ullage.tool import (
    CompletionSource,
    Era,
    JsonObject,
    PromptSource,
    ResourceSource,
    Subscribed,
    ToolSource,
    Watched,
)

from ..upstream import Unsent
from .bounds import Bounds

__all__ = ["Connected", "Connection", "ConnectionWatcher", "Holder", "Opener"]

Result = TypeVar("Result")
Holder = tuple[str, str]
"""A principal and its session: whoever has the one name does not enter by the other."""

_CALL_AGAIN = "call again: a new connection is opened"
_LOOK = "run `ullage doctor` to see what is wrong with it"


class Connected(ToolSource, ResourceSource, PromptSource, CompletionSource, Subscribed, Watched, Protocol):
    """An open connection, as the supervision uses it; a request raises `Unsent` where it never reached the server."""

    @property
    def introduction(self) -> Introduction: ...

    @property
    def capabilities(self) -> JsonObject: ...

    @property
    def protocol_version(self) -> str: ...

    @property
    def process_id(self) -> int | None: ...

    @property
    def notes(self) -> tuple[str, ...]: ...

    def stderr_tail(self) -> str: ...

    async def ended(self) -> str:
        """Returns the reason when the connection is gone; may be cancelled and awaited again."""
        ...

    async def set_log_level(self, level: str) -> None: ...


class Opener(Protocol):
    def __call__(
        self, server: Server, *, environment: Mapping[str, str], era: Era | None
    ) -> AbstractAsyncContextManager[Connected]:
        """Opens a connection that speaks this era if the server knows it, or whichever where it is None."""
        ...


class ConnectionWatcher(Protocol):
    """Whoever is told what becomes of a connection."""

    def ready(self, connection: "Connection", upstream: Connected) -> None: ...

    def gone(self, connection: "Connection") -> None:
        """Told once, as soon as it is of no more use; its process may still be ending."""
        ...

    def can_spare(self, connection: "Connection") -> bool:
        """Whether it may be ended for idleness."""
        ...


class Connection:
    def __init__(
        self,
        server: Server,
        watcher: ConnectionWatcher,
        clock: Callable[[], float],
        bounds: Bounds,
        era: Era | None = None,
    ) -> None:
        self.era: Era | None = era
        """The era that is wanted, and from its opening on the one that is spoken; None where it makes no difference."""
        self.holder: Holder | None = None
        """None until a session takes it over; kept when that one is over, for what it left there is nobody else's."""
        self.began = clock()
        self.ready_at: float | None = None
        self.upstream: Connected | None = None
        """None while it is being opened and when it is gone."""
        self.failure: UllageError | None = None
        """Why it is gone; None also where it was ended on purpose."""
        self.is_gone = False
        self.open_calls = 0
        self.used_at = self.began
        self.ended = anyio.Event()
        """Set when nothing of it is left."""
        self._server = server
        self._watcher = watcher
        self._clock = clock
        self._bounds = bounds
        self._settled = anyio.Event()
        self._whole = anyio.CancelScope()
        self._alive: anyio.CancelScope | None = None

    async def keep(self, opener: Opener, environment: Mapping[str, str]) -> None:
        """Opens the connection and holds it until it dies, idles or is stopped."""
        try:
            await self._open(opener, environment)
        except UllageError as error:
            self._leave(error)
        except BaseException as error:
            cut_off = isinstance(error, anyio.get_cancelled_exc_class())
            how = "was cut off: Ullage is ending" if cut_off else f"broke with {type(error).__name__}"
            self._leave(SourceFailed(f"the connection to server `{self._server.name}` {how}"))
            raise
        finally:
            self.ended.set()

    async def _open(self, opener: Opener, environment: Mapping[str, str]) -> None:
        # One scope around all of it, because what the opener begins inside must also end inside.
        with self._whole as whole:
            whole.deadline = anyio.current_time() + self._server.start_timeout + self._bounds.start_slack
            async with opener(self._server, environment=environment, era=self.era) as upstream:
                whole.deadline = math.inf
                self._become_ready(upstream)
                self._leave(await self._until_ended(upstream))
                whole.deadline = anyio.current_time() + self._bounds.stopping
        self._leave(self._hung() if whole.cancelled_caught else None)

    def _become_ready(self, upstream: Connected) -> None:
        self.ready_at = self.used_at = self._clock()
        self.upstream = upstream
        self._watcher.ready(self, upstream)
        self._settled.set()

    async def _until_ended(self, upstream: Connected) -> SourceFailed | None:
        """The reason, or None where it was stopped or nobody used it."""
        while not self.is_gone and not self._is_idle():
            with anyio.CancelScope(deadline=anyio.current_time() + self._idle_seconds_left()) as self._alive:
                reason = await upstream.ended()
                return SourceFailed(f"server `{self._server.name}` {reason}", suggestion=_CALL_AGAIN)
        return None

    def _idle_limit(self) -> float:
        wanted = self._bounds.idle if self._server.idle_timeout is None else self._server.idle_timeout
        return max(wanted, self._bounds.shortest_idle)

    def _is_idle(self) -> bool:
        too_long = self._clock() - self.used_at >= self._idle_limit()
        return too_long and self.open_calls == 0 and self._watcher.can_spare(self)

    def _idle_seconds_left(self) -> float:
        """Until the next look; a whole limit where it is overdue but busy or needed."""
        left = self._idle_limit() - (self._clock() - self.used_at)
        return left if left > 0 else self._idle_limit()

    def _hung(self) -> SourceFailed:
        return SourceFailed(
            f"server `{self._server.name}` gave no answer within {self._server.start_timeout:g} s of its start",
            suggestion="run its command by hand to see why, or raise start_timeout; `ullage doctor` shows the rest",
        )

    def _leave(self, failure: UllageError | None) -> None:
        """Out of use from here on, before its process is gone; only the first reason counts."""
        if self.is_gone:
            return
        self.is_gone = True
        self.failure = failure
        try:
            self._watcher.gone(self)
        finally:
            self.upstream = None
            self._settled.set()

    def stop(self) -> None:
        """Ends it: an open one in good order, one still being opened at once."""
        was_open = self.upstream is not None
        self._leave(None)
        if was_open and self._alive is not None:
            self._alive.cancel()
        elif not was_open and self.ready_at is None:
            self._whole.cancel()

    def lose(self, failure: UllageError) -> None:
        """Someone found it dead."""
        self._leave(failure)
        if self._alive is not None:
            self._alive.cancel()

    async def settled(self) -> None:
        """Returns when it is open or was stopped; raises why it could not be opened, or died at once."""
        with self._claimed():
            await self._settled.wait()
        if self.failure is not None:
            # A fresh error each time: one that is raised in many tasks would gather all their tracebacks.
            kind = SignInNeeded if isinstance(self.failure, SignInNeeded) else SourceFailed
            raise kind(self.failure.message, suggestion=self.failure.suggestion or _LOOK, options=self.failure.options)

    @contextmanager
    def _claimed(self) -> Generator[None, None, None]:
        """Not ended for idleness inside."""
        self.open_calls += 1
        try:
            yield
        finally:
            self.open_calls -= 1
            self.used_at = self._clock()

    def stderr_tail(self) -> str:
        """The last that the server wrote to standard error; empty where the connection is not open."""
        return "" if self.upstream is None else self.upstream.stderr_tail()

    async def over(self, request: Callable[[Connected], Awaitable[Result]]) -> Result:
        """Asks something over the connection, which must be open."""
        if self.upstream is None:
            raise Unsent(f"the connection to server `{self._server.name}` is gone", suggestion=_CALL_AGAIN)
        # Not `_claimed`, which would cost every call as much as the rest of this.
        self.open_calls += 1
        try:
            return await request(self.upstream)
        finally:
            self.open_calls -= 1
            self.used_at = self._clock()
