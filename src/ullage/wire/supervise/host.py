"""`Host`: owns the connections of this process to MCP servers.

One `Host` a process: every connection lives among its tasks, starts on first use, and ends with it, whatever state
it is in. A server that is dead, slow or mad harms no other. It decides nothing about tools.

As a source like any other: a request starts the server where it must, and goes by its session's connection. What was
told to one connection and must hold for the next (subscriptions, the level of logging) is told again. A request that
may have reached the server is never sent a second time.
"""

import os
import random as chance
import time
from collections.abc import Awaitable, Callable, Mapping, Set
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

import anyio
from anyio.abc import TaskGroup

from ullage.errors import ProtocolError, SourceFailed, UllageError
from ullage.gateway import Introduction, Server
from ullage.tool import (
    Asked,
    Call,
    Change,
    ClientDeclaration,
    Complete,
    Contents,
    Era,
    JsonObject,
    Listener,
    Listing,
    PromptMessages,
    PromptRequest,
    Read,
    Reply,
)

from ..upstream import ChildEnvironment, Unsent, era_of, open_upstream
from .health import Bounds, Health
from .server_pool import Connected, Opener, Pool, Surroundings, Work

__all__ = ["Host", "Supervised"]

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
            connection = await self._pool.connection(holder, asked.deadline, asked.era, _declared(asked))
        try:
            return await connection.over(request)
        except Unsent as error:
            connection.lose(error)
        except SourceFailed as error:
            self._pool.add_hint(error, connection.stderr_tail() or self._pool.record.last_words)
            raise
        again = await self._pool.connection(holder, asked.deadline, asked.era, _declared(asked))
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

    def tell_roots_changed(self, principal: str, session: str, client: ClientDeclaration) -> None:
        """The folders of this session's client are others now."""
        self._pool.tell_roots_changed((principal, session), client)

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


def _declared(asked: Asked) -> ClientDeclaration | None:
    """None where nobody asks by the protocol."""
    return None if asked.era is None else ClientDeclaration(info=asked.client_info, capabilities=asked.capabilities)


async def _subscribed(upstream: Connected, uri: str) -> Connected:
    await upstream.subscribe(uri)
    return upstream


class Host:
    def __init__(  # noqa: PLR0913 - each is a door to the world, and all have a usual way
        self,
        *,
        environment: Mapping[str, str] | None = None,
        withheld: Set[str] = frozenset(),
        open: Opener | None = None,  # noqa: A002 - it is what a connection is opened with
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = chance.random,
        bounds: Bounds | None = None,
    ) -> None:
        """`withheld` names variables of the environment that no server is given, beside Ullage's own."""
        self._is_leaving = False
        self._surroundings = Surroundings(
            opener=open or partial(open_upstream, in_haste=lambda: self._is_leaving),
            environment=ChildEnvironment(os.environ if environment is None else environment, withheld),
            start=self._start,
            clock=clock,
            random=random,
            bounds=bounds or Bounds(),
            client_era=lambda: self.client_era,
            client=lambda: self.client,
        )
        self.client_era: Era | None = None
        """The era of the protocol that the last client spoke; None before the first."""
        self.client: ClientDeclaration | None = None
        """What the last client said of itself; None before the first."""
        self._sources: dict[tuple[str, str, bool], Supervised] = {}
        self._retiring: set[Supervised] = set()
        self._tasks: TaskGroup | None = None

    @property
    def environment(self) -> ChildEnvironment:
        """What servers inherit of this process."""
        return self._surroundings.environment

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_leaving = True
        tasks, self._tasks = self._tasks, None
        for source in (*self._sources.values(), *self._retiring):
            source.stop()
        if tasks is not None:
            tasks.cancel_scope.deadline = anyio.current_time() + self._surroundings.bounds.leaving
            # Without the error: the group would wrap it in another, and cut off what can still end in good order.
            await tasks.__aexit__(None, None, None)

    def _start(self, work: Work) -> None:
        if self._tasks is None:
            raise RuntimeError("a Host starts servers only between its entering and its leaving")
        self._tasks.start_soon(work)

    def source(self, server: Server) -> Supervised:
        """The server's source; the same one again for a server of that name that is started alike."""
        identity = (server.name, server.key, server.shared)
        known = self._sources.get(identity)
        if known is None or known.is_closed:
            known = self._sources[identity] = Supervised(server, self._surroundings)
        known.reconfigure(server)
        return known

    async def retire(self, source: Supervised) -> None:
        """Forgets a server that left the configuration; its connections end when its open calls have, within bounds."""
        self._sources = {identity: one for identity, one in self._sources.items() if one is not source}
        self._retiring.add(source)
        try:
            await source.retire()
        finally:
            source.stop()
            self._retiring.discard(source)

    def tell_roots_changed(self, principal: str, session: str, client: ClientDeclaration) -> None:
        """The folders of a session's client are others now: servers that were told of it ask again."""
        for source in self._sources.values():
            source.tell_roots_changed(principal, session, client)

    def release(self, principal: str, session: str) -> None:
        """The session is over; its connections end in the background, each when its open calls have."""
        for source in self._sources.values():
            source.release(principal, session)

    def health(self) -> tuple[Health, ...]:
        return tuple(source.health() for source in self._sources.values())
