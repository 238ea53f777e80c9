"""Cache of replies of tools that the user gave a time-to-live.

`Cached` answers from memory what the user said may be: a tool with a time-to-live, called again by the same
principal with the same arguments. A call of any other tool of that server may have changed what its tools answer,
so it empties what is remembered of the server, when it begins and when it ends. Failures and replies that need
something are never remembered. Two that ask the same at the same time both reach the server. Nothing outlives the
process.
"""

import hashlib
import json
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ullage.tool import Call, Change, Json, JsonObject, Listener, Listing, Origin, Reply

from .access_rules import Guardable
from .merge.tool_view import Entry, View
from .metering import META, inner_meta
from .results import ResultRules
from .slim.schema_walk import is_small
from .tool_source import Passing

__all__ = ["Bounds", "Cached"]

_VALUES, _LETTERS = 500, 20_000
"""Of a call's arguments, beyond which it is not remembered."""
_PARTS = 20_000
"""Of a reply, beyond which it is not even measured."""

_Key = tuple[str, str, str, str]
"""Server, principal, tool, and a digest of the arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    entries: int = 1_000
    bytes: int = 32_000_000
    largest: int = 4_000_000
    """Bytes of one reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    reply: Reply
    until: float
    bytes: int


class Cached(Passing[Guardable]):
    """Sources merged, some of whose tools are not run again within their time-to-live."""

    def __init__(
        self,
        inner: Guardable,
        rules: Callable[[], ResultRules],
        clock: Callable[[], float],
        bounds: Bounds | None = None,
    ) -> None:
        self.inner = inner
        self._rules = rules
        """Asked each time: the settings may change."""
        self._clock = clock
        self._shelf = _Shelf(bounds or Bounds())
        self._rounds: defaultdict[str, int] = defaultdict(int)
        """By server, how often it was emptied: what was asked before is not remembered after."""
        self._unwatch = inner.watch(self._changed)

    async def tools(self) -> Listing:
        return await self.inner.tools()

    async def view(self, wait: float = 0.0) -> View:
        return await self.inner.view(wait)

    async def find(self, name: str, server: str | None = None) -> Entry:
        return await self.inner.find(name, server)

    async def call_entry(self, entry: Entry, call: Call) -> Reply:
        rules = self._rules()
        said = rules.servers.get(entry.server)
        if said is None or not said.cache:
            return await self.inner.call_entry(entry, call)
        seconds = rules.cached_for(Origin(entry.server, entry.original))
        if not seconds:
            return await self._emptying(entry, call)
        key = _key(entry, call)
        return (
            await self.inner.call_entry(entry, call)
            if key is None
            else await self._remembering(entry, call, key, seconds)
        )

    async def _emptying(self, entry: Entry, call: Call) -> Reply:
        self.forget([entry.server])
        try:
            return await self.inner.call_entry(entry, call)
        finally:
            self.forget([entry.server])

    async def _remembering(self, entry: Entry, call: Call, key: _Key, seconds: float) -> Reply:
        began, turn = self._clock(), self._rounds[entry.server]
        known = self._shelf.get(key, began)
        if known is not None:
            return replace(known, meta=_said_so(known))
        reply = await self.inner.call_entry(entry, call)
        if not reply.is_error and reply.needs is None and turn == self._rounds[entry.server]:
            self._shelf.put(key, reply, began + seconds)
        return reply

    def forget(self, servers: Iterable[str]) -> None:
        """What was remembered of these servers, as when one was retired."""
        for server in servers:
            self._rounds[server] += 1
            self._shelf.drop(server)

    def watch(self, listener: Listener) -> Callable[[], None]:
        return self.inner.watch(listener)

    async def close(self) -> None:
        self._unwatch()
        await self.inner.close()

    def _changed(self, change: Change) -> None:
        """Whose tools changed is not said, and it is rare: everybody's answers go."""
        if change.kind == "tools":
            self.forget([*self._rounds])


class _Shelf:
    """Replies within bounds; the one that was longest not asked for goes first."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._bytes = 0

    def get(self, key: _Key, now: float) -> Reply | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        if kept.until <= now:
            self._remove(key)
            return None
        self._kept.move_to_end(key)
        return kept.reply

    def put(self, key: _Key, reply: Reply, until: float) -> None:
        size = _size(reply, self._bounds.largest)
        if size is None:
            return
        self._remove(key)
        self._kept[key] = _Kept(reply=reply, until=until, bytes=size)
        self._bytes += size
        while len(self._kept) > self._bounds.entries or self._bytes > self._bounds.bytes:
            self._remove(next(iter(self._kept)))

    def drop(self, server: str) -> None:
        for key in [key for key in self._kept if key[0] == server]:
            self._remove(key)

    def _remove(self, key: _Key) -> None:
        kept = self._kept.pop(key, None)
        self._bytes -= 0 if kept is None else kept.bytes


def _key(entry: Entry, call: Call) -> _Key | None:
    """None for a call that goes on from another, or is too large to be remembered."""
    if call.state is not None or call.answers:
        return None
    arguments = dict(call.arguments)
    if not is_small(arguments, values=_VALUES, letters=_LETTERS):
        return None
    said = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
    return entry.server, call.caller.principal, entry.original, hashlib.sha256(said.encode()).hexdigest()


def _said_so(reply: Reply) -> JsonObject:
    return {**reply.meta, META: {**inner_meta(reply), "performance": {"cachedResult": True}}}


def _size(reply: Reply, largest: int) -> int | None:
    """Bytes, roughly; None for a reply that is too large."""
    size, parts = 0, 0
    todo: list[Json] = [dict(block) for block in reply.content]
    todo += [dict(reply.meta)] if reply.structured is None else [dict(reply.meta), reply.structured.value]
    while todo:
        one = todo.pop()
        size, parts = size + sys.getsizeof(one), parts + 1
        if size > largest or parts > _PARTS:
            return None
        if isinstance(one, dict | list):
            todo.extend(one.values() if isinstance(one, dict) else one)
    return size
