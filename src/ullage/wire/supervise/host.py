"""`Host`: owns this process's connections to MCP servers.

There is one `Host` per process. Every connection runs among its tasks, is opened on first use, and ends with it,
whatever its state. A server that is dead, slow or misbehaving affects no other. `Host` decides nothing about tools.

`Supervised` is a server as a source like any other: a request starts the server if needed, and uses its session's
connection. State that one connection received and the next one needs (subscriptions, the log level) is sent again. A
request that may have reached the server is never sent a second time.
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
from ullage.options import Server
from ullage.tool import (
    Asked,
    Call,
    Change,
    ClientDeclaration,
    Complete,
    Contents,
    Era,
    Introduction,
    JsonObject,
    Listener,
    Listing,
    PromptMessages,
    PromptRequest,
    Read,
    Reply,
    ToolSource,
)

from ..upstream import ChildEnvironment, ServerConnection, Unsent, era_of, open_upstream
from .health import Bounds, Health
from .server_pool import Opener, Pool, Surroundings, Work

__all__ = ["Host", "Supervised"]

Result = TypeVar("Result")
Request = Callable[[ServerConnection], Awaitable[Result]]

_AFTER_RESTART = (Change("tools"), Change("resources"), Change("prompts"))


class Supervised(ToolSource):
    """One configured server, started on first use."""

    def __init__(self, server: Server, surroundings: Surroundings) -> None:
        self._pool = Pool(server, surroundings, self)
        self._grace = surroundings.bounds.retiring
        self._listeners: list[Listener] = []
        self._subscribed: set[str] = set()
        self._log_level: str | None = None
        self._capabilities: JsonObject = {}
        self.starts = 0
        """Connections opened so far. Each may be another process, and so have other definitions."""

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
        """As last declared by the server; empty before the first connection."""
        return self._capabilities

    @property
    def protocol_era(self) -> str | None:
        """`handshake` or `stateless`, from the newest connection; None before the first."""
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
        """Subscribe on every connection, because each session's own may see the resource change."""
        first = await self._of_any(lambda upstream: _subscribed(upstream, uri))
        self._subscribed.add(uri)
        await self._of_others(first, lambda upstream: upstream.subscribe(uri))

    async def unsubscribe(self, uri: str) -> None:
        self._subscribed.discard(uri)
        await self._of_others(None, lambda upstream: upstream.unsubscribe(uri))

    async def set_log_level(self, level: str) -> None:
        """Set the level on every connection, now and later. Starts none."""
        self._log_level = level
        await self._of_others(None, lambda upstream: upstream.set_log_level(level))

    async def _of_others(self, done: ServerConnection | None, request: Request[None]) -> None:
        """Send a request on every open connection but one, concurrently; a failure is noted and affects no other."""
        async with anyio.create_task_group() as tasks:
            for upstream in self._pool.live():
                if upstream is not done:
                    tasks.start_soon(self._attempt, upstream, request)

    async def _attempt(self, upstream: ServerConnection, request: Request[None]) -> None:
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
            except Exception as error:  # noqa: BLE001 - a listener's bug must not end the connection that notified it
                self._pool.record.note(f"internal error in a listener: {type(error).__name__}")

    def connected(self, upstream: ServerConnection, *, again: bool) -> None:
        self._capabilities = upstream.capabilities
        self.starts += 1
        upstream.watch(self._tell)
        if self._subscribed or self._log_level is not None:
            self._pool.in_background(lambda: self._restore(upstream))
        for change in _AFTER_RESTART if again else ():
            self._tell(change)

    async def _restore(self, upstream: ServerConnection) -> None:
        """Repeat subscriptions and the log level on a new connection."""
        level = self._log_level
        with anyio.move_on_after(self.server.start_timeout):
            if level is not None:
                await self._attempt(upstream, lambda one: one.set_log_level(level))
            for uri in sorted(self._subscribed):
                await self._attempt(upstream, lambda one, uri=uri: one.subscribe(uri))

    def is_needed(self) -> bool:
        return bool(self._subscribed)

    def reconfigure(self, server: Server) -> None:
        """Adopt settings that do not change how the server is started; open connections keep theirs."""
        self._pool.server = server

    @property
    def is_closed(self) -> bool:
        return self._pool.is_closed

    def tell_roots_changed(self, principal: str, session: str, client: ClientDeclaration) -> None:
        """Notify the server that this session's client works in other folders."""
        self._pool.tell_roots_changed((principal, session), client)

    def release(self, principal: str, session: str) -> None:
        """End the session's connection in the background."""
        self._pool.release((principal, session))

    def health(self) -> Health:
        return self._pool.health()

    def stop(self) -> None:
        """End all connections in the background, permanently."""
        self._pool.stop()

    async def close(self) -> None:
        await self._pool.close()

    async def retire(self) -> None:
        """Refuse further requests, let open calls finish within a limit, and end all connections permanently."""
        await self._pool.close(grace=self._grace)


def _declared(asked: Asked) -> ClientDeclaration | None:
    """Return the client's declaration; None where the request does not come from an MCP client."""
    return None if asked.era is None else ClientDeclaration(info=asked.client_info, capabilities=asked.capabilities)


async def _subscribed(upstream: ServerConnection, uri: str) -> ServerConnection:
    await upstream.subscribe(uri)
    return upstream


class Host:
    """Owns the connections of this process to MCP servers; use it as an async context manager.

    async with Host() as host:
        listing = await host.source(server).tools()
    """

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
        """Create a host without any connection.

        Args:
            environment: Variables that servers may inherit; those of this process if None.
            withheld: Names of variables that no server gets, besides Ullage's own.
            open: Opens a connection; replaceable for tests.
            clock: Monotonic seconds.
            random: Numbers from 0 up to 1 that spread retries.
            bounds: Limits on connections.
        """
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
        """The protocol era of the last client; None before the first."""
        self.client: ClientDeclaration | None = None
        """The declaration of the last client; None before the first."""
        self._sources: dict[tuple[str, str, bool], Supervised] = {}
        self._retiring: set[Supervised] = set()
        self._tasks: TaskGroup | None = None

    @property
    def environment(self) -> ChildEnvironment:
        """What servers inherit from this process."""
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
            # Called without the error: the group would wrap it in another, and cut off what can still end in order.
            await tasks.__aexit__(None, None, None)

    def _start(self, work: Work) -> None:
        if self._tasks is None:
            raise RuntimeError("a Host starts servers only between its entering and its leaving")
        self._tasks.start_soon(work)

    def source(self, server: Server) -> Supervised:
        """Return the server's source; the same object for a server with the same name that is started alike."""
        identity = (server.name, server.key, server.shared)
        known = self._sources.get(identity)
        if known is None or known.is_closed:
            known = self._sources[identity] = Supervised(server, self._surroundings)
        known.reconfigure(server)
        return known

    async def retire(self, source: Supervised) -> None:
        """Remove a server that left the settings; its connections end after its open calls, within a limit."""
        self._sources = {identity: one for identity, one in self._sources.items() if one is not source}
        self._retiring.add(source)
        try:
            await source.retire()
        finally:
            source.stop()
            self._retiring.discard(source)

    def tell_roots_changed(self, principal: str, session: str, client: ClientDeclaration) -> None:
        """Notify servers that a session's client works in other folders, so that they request the folders again."""
        for source in self._sources.values():
            source.tell_roots_changed(principal, session, client)

    def release(self, principal: str, session: str) -> None:
        """End a session's connections in the background, each after its open calls."""
        for source in self._sources.values():
            source.release(principal, session)

    def health(self) -> tuple[Health, ...]:
        return tuple(source.health() for source in self._sources.values())
