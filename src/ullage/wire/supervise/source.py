"""How does a server look that may not be running?

As a source like any other: a request starts the server where it must, and goes by its session's connection. What was
told to one connection and must hold for the next (subscriptions, the level of logging) is told again. A request that
may have reached the server is never sent a second time.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from ullage.errors import ProtocolError, SourceFailed, UllageError
from ullage.gateway import Introduction, Server
from ullage.tool import (
    Asked,
    Call,
    Change,
    Complete,
    Contents,
    JsonObject,
    Listener,
    Listing,
    PromptMessages,
    PromptRequest,
    Read,
    Reply,
)

from ..upstream import Unsent, era_of
from .connection import Connected
from .health import Health
from .pool import Pool, Surroundings

__all__ = ["Supervised"]

Result = TypeVar("Result")
Request = Callable[[Connected], Awaitable[Result]]

_AFTER_RESTART = (Change("tools"), Change("resources"), Change("prompts"))


class Supervised:
    """One configured server. Nothing is started before its first use."""

    def __init__(self, server: Server, surroundings: Surroundings) -> None:
        self._pool = Pool(server, surroundings, self)
        self._grace = surroundings.bounds.retiring
        self._listeners: list[Listener] = []
        self._subscribed: set[str] = set()
        self._log_level: str | None = None
        self._capabilities: JsonObject = {}
        self.starts = 0
        """Connections opened so far. Each may lead to another process, and so to other definitions."""

    @property
    def is_connected(self) -> bool:
        return bool(self._pool.live())

    @property
    def server(self) -> Server:
        return self._pool.server

    def introduction(self) -> Introduction | None:
        return self._pool.record.introduction

    @property
    def capabilities(self) -> JsonObject:
        """As the server last declared them; empty before the first connection."""
        return self._capabilities

    @property
    def protocol_era(self) -> str | None:
        """`handshake` or `stateless`, as on the newest connection; None before the first."""
        version = self._pool.record.protocol
        return None if version is None else era_of(version)

    async def tools(self) -> Listing:
        return await self._of_any(lambda upstream: upstream.tools())

    async def call(self, call: Call) -> Reply:
        self._pool.record.calls += 1
        try:
            reply = await self._of_session(call, lambda upstream: upstream.call(call))
        except ProtocolError as error:
            self._pool.notice_missing_variables(error.message)
            raise
        if reply.is_error:
            words = " ".join(str(block.get("text", "")) for block in reply.content)
            self._pool.notice_missing_variables(words[:4_000])
        return reply

    async def resources(self) -> tuple[JsonObject, ...]:
        return await self._of_any(lambda upstream: upstream.resources())

    async def templates(self) -> tuple[JsonObject, ...]:
        return await self._of_any(lambda upstream: upstream.templates())

    async def read(self, read: Read) -> Contents:
        return await self._of_session(read, lambda upstream: upstream.read(read))

    async def prompts(self) -> tuple[JsonObject, ...]:
        return await self._of_any(lambda upstream: upstream.prompts())

    async def prompt(self, request: PromptRequest) -> PromptMessages:
        return await self._of_session(request, lambda upstream: upstream.prompt(request))

    async def complete(self, request: Complete) -> JsonObject:
        return await self._of_session(request, lambda upstream: upstream.complete(request))

    async def _of_session(self, asked: Asked, request: Request[Result]) -> Result:
        holder = (asked.caller.principal, asked.caller.session)
        connection = self._pool.at_hand(holder, asked.era)
        if connection is None:
            connection = await self._pool.connection(holder, asked.deadline, asked.era)
        try:
            return await connection.over(request)
        except Unsent as error:
            connection.lose(error)
        except SourceFailed as error:
            self._pool.add_hint(error, connection.stderr_tail() or self._pool.record.last_words)
            raise
        again = await self._pool.connection(holder, asked.deadline, asked.era)
        return await again.over(request)

    async def _of_any(self, request: Request[Result]) -> Result:
        connection = await self._pool.connection(None)
        try:
            return await connection.over(request)
        except Unsent as error:
            connection.lose(error)
        again = await self._pool.connection(None)
        return await again.over(request)

    async def subscribe(self, uri: str) -> None:
        """On every connection, because each session's may see the resource change."""
        first = await self._of_any(lambda upstream: _subscribed(upstream, uri))
        self._subscribed.add(uri)
        await self._of_others(first, lambda upstream: upstream.subscribe(uri))

    async def unsubscribe(self, uri: str) -> None:
        self._subscribed.discard(uri)
        await self._of_others(None, lambda upstream: upstream.unsubscribe(uri))

    async def set_log_level(self, level: str) -> None:
        """On every connection, now and later; starts none."""
        self._log_level = level
        await self._of_others(None, lambda upstream: upstream.set_log_level(level))

    async def _of_others(self, done: Connected | None, request: Request[None]) -> None:
        """Asks every open connection but one, side by side; what one refuses is noted and harms no other."""
        async with anyio.create_task_group() as tasks:
            for upstream in self._pool.live():
                if upstream is not done:
                    tasks.start_soon(self._attempt, upstream, request)

    async def _attempt(self, upstream: Connected, request: Request[None]) -> None:
        try:
            await request(upstream)
        except UllageError as error:
            self._pool.record.note(error.message)

    def watch(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def _tell(self, change: Change) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(change)
            except Exception as error:  # noqa: BLE001 - a listener's mistake must not end the connection it heard from
                self._pool.record.note(f"internal error in a listener: {type(error).__name__}")

    def connected(self, upstream: Connected, *, again: bool) -> None:
        self._capabilities = upstream.capabilities
        self.starts += 1
        upstream.watch(self._tell)
        if self._subscribed or self._log_level is not None:
            self._pool.in_background(lambda: self._restore(upstream))
        for change in _AFTER_RESTART if again else ():
            self._tell(change)

    async def _restore(self, upstream: Connected) -> None:
        """Tells a new connection what the earlier ones were told."""
        level = self._log_level
        with anyio.move_on_after(self.server.start_timeout):
            if level is not None:
                await self._attempt(upstream, lambda one: one.set_log_level(level))
            for uri in sorted(self._subscribed):
                await self._attempt(upstream, lambda one, uri=uri: one.subscribe(uri))

    def is_needed(self) -> bool:
        return bool(self._subscribed)

    def reconfigure(self, server: Server) -> None:
        """Takes over settings that do not change how it is started; connections already open keep theirs."""
        self._pool.server = server

    @property
    def is_closed(self) -> bool:
        return self._pool.is_closed

    def release(self, principal: str, session: str) -> None:
        """The session is over; what was kept open for it ends in the background."""
        self._pool.release((principal, session))

    def health(self) -> Health:
        return self._pool.health()

    def stop(self) -> None:
        """Ends its connections in the background, for good."""
        self._pool.stop()

    async def close(self) -> None:
        await self._pool.close()

    async def retire(self) -> None:
        """Takes no further request, lets open calls finish for a while, and ends its connections for good."""
        await self._pool.close(grace=self._grace)


async def _subscribed(upstream: Connected, uri: str) -> Connected:
    await upstream.subscribe(uri)
    return upstream
