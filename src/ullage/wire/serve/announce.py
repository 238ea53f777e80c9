"""How do clients learn that something changed?

A client of the earlier era is sent a notification on its session, a later one on the stream it opened with
`subscriptions/listen`. What changes in a short while is told once, and one client that does not read holds up no other.
Whether something changed at all is the source's affair.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

import anyio
from anyio.abc import TaskGroup
from mcp.server.connection import Connection
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from ullage.errors import UllageError
from ullage.tool import Change, Subscribed

__all__ = ["Announcer"]

_GATHER = 0.05
"""Seconds in which changes are gathered: ten servers that start together change the list ten times."""


@dataclass(slots=True, eq=False)
class _Ear:
    """One who is told: a session of the earlier era, or all the later streams together."""

    connection: Connection | None = None
    uris: set[str] = field(default_factory=set[str])
    pending: dict[Change, None] = field(default_factory=dict[Change, None])
    telling: bool = False

    def wants(self, change: Change) -> bool:
        return self.connection is None or change.kind != "resource" or change.uri in self.uris


class Announcer:
    """Tells every client of this server, for as long as the server runs."""

    def __init__(self, tasks: TaskGroup, subscribed: Subscribed | None = None, *, gather: float = _GATHER) -> None:
        self._tasks = tasks
        self._subscribed = subscribed
        self._gather = gather
        self._bus = InMemorySubscriptionBus()
        self._streams = _Ear()
        self._sessions: dict[int, _Ear] = {}
        self._followers: Counter[str] = Counter()
        self._turns: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        """What is done about one resource is done one after the other; each lives while somebody has or awaits it."""
        self.listen = ListenHandler(self._bus)

    @property
    def sessions(self) -> int:
        return len(self._sessions)

    def hear(self, change: Change) -> None:
        """Takes in a change; the telling happens in a task."""
        for ear in (self._streams, *self._sessions.values()):
            if ear.wants(change):
                ear.pending[change] = None
                if not ear.telling:
                    ear.telling = True
                    self._tasks.start_soon(self._tell, ear)

    def add(self, connection: Connection) -> None:
        """Tells this session from now on, until it ends."""
        if id(connection) not in self._sessions:
            self._sessions[id(connection)] = _Ear(connection)
            connection.exit_stack.push_async_callback(self._remove, connection)

    async def subscribe(self, connection: Connection, uri: str) -> None:
        self.add(connection)
        uris = self._sessions[id(connection)].uris
        if uri not in uris:
            await self._follow(uri)
            uris.add(uri)

    async def unsubscribe(self, connection: Connection, uri: str) -> None:
        ear = self._sessions.get(id(connection))
        if ear is not None and uri in ear.uris:
            ear.uris.discard(uri)
            await self._leave(uri)

    @asynccontextmanager
    async def following(self, uris: Iterable[str]) -> AsyncGenerator[None]:
        """Has the source say when these change; one it does not know may yet come to be."""
        followed: list[str] = []
        try:
            for uri in set(uris):
                with suppress(UllageError):
                    await self._follow(uri)
                    followed.append(uri)
            yield
        finally:
            with anyio.CancelScope(shield=True), suppress(UllageError):
                for uri in followed:
                    await self._leave(uri)

    async def _remove(self, connection: Connection) -> None:
        ear = self._sessions.pop(id(connection))
        ear.pending.clear()
        for uri in ear.uris:
            with suppress(UllageError):
                await self._leave(uri)

    async def _follow(self, uri: str) -> None:
        async with self._turn(uri):
            if self._subscribed is not None and uri not in self._followers:
                await self._subscribed.subscribe(uri)
            self._followers[uri] += 1

    async def _leave(self, uri: str) -> None:
        if not self._forget(uri):
            return
        async with self._turn(uri):
            if self._subscribed is not None and uri not in self._followers:
                await self._subscribed.unsubscribe(uri)

    def _turn(self, uri: str) -> anyio.Lock:
        return self._turns.setdefault(uri, anyio.Lock())

    def _forget(self, uri: str) -> bool:
        """Whether that was the last who followed it."""
        self._followers[uri] -= 1
        if self._followers[uri] > 0:
            return False
        del self._followers[uri]
        return True

    async def _tell(self, ear: _Ear) -> None:
        await anyio.sleep(self._gather)
        while ear.pending:
            change = next(iter(ear.pending))
            del ear.pending[change]
            if ear.connection is None:
                await self._bus.publish(_event(change))
            else:
                await _notify(ear.connection, change)
        ear.telling = False


async def _notify(connection: Connection, change: Change) -> None:
    """Where the client has gone the SDK drops it in silence."""
    match change.kind:
        case "tools":
            await connection.send_tool_list_changed()
        case "resources":
            await connection.send_resource_list_changed()
        case "prompts":
            await connection.send_prompt_list_changed()
        case "resource":
            await connection.send_resource_updated(change.uri or "")


def _event(change: Change) -> ServerEvent:
    match change.kind:
        case "tools":
            return ToolsListChanged()
        case "resources":
            return ResourcesListChanged()
        case "prompts":
            return PromptsListChanged()
        case "resource":
            return ResourceUpdated(uri=change.uri or "")
