"""Announcements of changes to clients.

A client of the earlier era receives notifications on its session, a later one on the stream that it opened with
`subscriptions/listen`. Changes within a short interval are sent once, and a client that does not read blocks no other.
The source detects the changes.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

import anyio
from anyio.abc import TaskGroup

from ullage.errors import UllageError
from ullage.tool import Change, ToolSource

from ..jsonrpc import INTERNAL_ERROR, SUBSCRIPTION_KEY, Message
from .client_request import Connection, RefusedRequest, Request

__all__ = ["Announcer"]

_GATHER = 0.05
"""Seconds in which changes are collected: ten servers that start together change the list ten times."""
_MOST_STREAMS = 1024
_KINDS = ("tools", "resources", "prompts")


@dataclass(slots=True, eq=False)
class _Listener:
    """A session of the earlier era, or a stream of the later one."""

    send: Callable[[str, Message | None], Awaitable[None]]
    kinds: frozenset[str] = frozenset(_KINDS)
    uris: set[str] = field(default_factory=set[str])
    meta: Message | None = None
    """`_meta` of each notification: the id of its stream."""
    pending: dict[Change, None] = field(default_factory=dict[Change, None])
    stirred: anyio.Event = field(default_factory=anyio.Event)
    is_telling: bool = False

    def wants(self, change: Change) -> bool:
        return change.uri in self.uris if change.kind == "resource" else change.kind in self.kinds

    async def tell(self, gather: float) -> None:
        """Send the pending changes, and any that arrive meanwhile."""
        await anyio.sleep(gather)
        while self.pending:
            change = next(iter(self.pending))
            del self.pending[change]
            if change.kind == "resource":
                method, params = "notifications/resources/updated", {"uri": change.uri or ""}
            else:
                method, params = f"notifications/{change.kind}/list_changed", None
            await self.send(method, params if self.meta is None else {**(params or {}), "_meta": self.meta})


class Announcer:
    """Notifies every client of this server while the server runs."""

    def __init__(self, tasks: TaskGroup, source: ToolSource | None = None, *, gather: float = _GATHER) -> None:
        self._tasks = tasks
        self._source = source
        self._gather = gather
        self._streams: set[_Listener] = set()
        self._sessions: dict[int, _Listener] = {}
        self._owed: dict[Change, None] = {}
        self._is_closed = False
        self._followers: Counter[str] = Counter()
        self._turns: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        """Locks by resource, so that changes to its subscriptions run one after the other; kept while in use."""

    @property
    def sessions(self) -> int:
        return len(self._sessions)

    def hear(self, change: Change) -> None:
        """Queue a change for all clients; it is sent by a task."""
        change = Change(change.kind, change.uri)
        for listener in (*self._streams, *self._sessions.values()):
            self._put(listener, change)

    def owe(self, change: Change) -> None:
        """Queue a change that must reach a client, even one that starts to listen only later."""
        self._owed[change] = None
        self.hear(change)

    def settle(self, change: Change) -> None:
        """Drop a change that need not be announced any more, since a client has requested the current state."""
        self._owed.pop(change, None)

    def _put(self, listener: _Listener, change: Change) -> None:
        if not listener.wants(change):
            return
        self._owed.pop(change, None)
        listener.pending[change] = None
        if listener.meta is not None:
            listener.stirred.set()
        elif not listener.is_telling:
            listener.is_telling = True
            self._tasks.start_soon(self._tell, listener)

    async def _tell(self, listener: _Listener) -> None:
        await listener.tell(self._gather)
        listener.is_telling = False

    def add(self, connection: Connection) -> None:
        """Notify this session from now on, until it ends."""
        if id(connection) not in self._sessions:
            listener = self._sessions[id(connection)] = _Listener(connection.notify)
            connection.exit_stack.push_async_callback(self._remove, connection)
            for change in tuple(self._owed):
                self._put(listener, change)

    async def subscribe(self, connection: Connection, uri: str) -> None:
        self.add(connection)
        uris = self._sessions[id(connection)].uris
        if uri not in uris:
            await self._follow(uri)
            uris.add(uri)

    async def unsubscribe(self, connection: Connection, uri: str) -> None:
        listener = self._sessions.get(id(connection))
        if listener is not None and uri in listener.uris:
            listener.uris.discard(uri)
            await self._leave(uri)

    async def listen(self, request: Request) -> Message:
        """Serve one `subscriptions/listen` until the client withdraws it or the server ends.

        The acknowledgement is sent first; every notification carries the id of the request.
        """
        if len(self._streams) >= _MOST_STREAMS:
            raise RefusedRequest(INTERNAL_ERROR, "Subscription limit reached")
        wanted: Message = request.params["notifications"]
        uris: list[str] = wanted.get("resourceSubscriptions") or []
        honored: Message = {flag: True for kind in _KINDS if wanted.get(flag := f"{kind}ListChanged") is True}
        if uris:
            honored["resourceSubscriptions"] = list(uris)
        kinds = frozenset(kind for kind in _KINDS if f"{kind}ListChanged" in honored)
        listener = _Listener(request.notify, kinds, set(uris), {SUBSCRIPTION_KEY: request.number})
        async with self._following(uris):
            # Subscribed before the acknowledgement, so that no change is lost meanwhile; sent after it.
            self._streams.add(listener)
            try:
                acknowledged = {"notifications": honored, "_meta": listener.meta}
                await request.notify("notifications/subscriptions/acknowledged", acknowledged)
                for change in tuple(self._owed):
                    self._put(listener, change)
                while not self._is_closed:
                    await listener.stirred.wait()
                    listener.stirred = anyio.Event()
                    await listener.tell(self._gather)
            finally:
                self._streams.discard(listener)
        return {"_meta": listener.meta}

    def close(self) -> None:
        """End every stream; each is answered after its pending changes."""
        self._is_closed = True
        for listener in self._streams:
            listener.stirred.set()

    @asynccontextmanager
    async def _following(self, uris: Iterable[str]) -> AsyncGenerator[None]:
        """Subscribe to these resources at the source. A resource that is unknown may be created later."""
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
        listener = self._sessions.pop(id(connection))
        listener.pending.clear()
        for uri in listener.uris:
            with suppress(UllageError):
                await self._leave(uri)

    async def _follow(self, uri: str) -> None:
        async with self._turn(uri):
            if self._source is not None and uri not in self._followers:
                await self._source.subscribe(uri)
            self._followers[uri] += 1

    async def _leave(self, uri: str) -> None:
        if not self._forget(uri):
            return
        async with self._turn(uri):
            if self._source is not None and uri not in self._followers:
                await self._source.unsubscribe(uri)

    def _turn(self, uri: str) -> anyio.Lock:
        return self._turns.setdefault(uri, anyio.Lock())

    def _forget(self, uri: str) -> bool:
        """Remove one follower; return whether it was the last."""
        self._followers[uri] -= 1
        if self._followers[uri] > 0:
            return False
        del self._followers[uri]
        return True
