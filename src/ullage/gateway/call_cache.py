"""Cache of replies of tools that the user gave a time-to-live.

`Cached` answers a repeated call from memory: the same principal, tool and arguments, within the tool's time-to-live. A
call of any other tool of that server may change what its tools answer, so it empties the server's part of the cache,
before and after. Failures and replies that need further input are never cached. Two equal calls at the same time both
reach the server. The cache is in memory only.
"""

import hashlib
import json
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ullage.tool import Call, Json, JsonObject, Origin, Reply

from .merge.tool_view import Entry, MergedSource, MergedWrapper
from .reply_metadata import META, inner_meta
from .results import ResultRules
from .slim.schema_walk import is_small

__all__ = ["Bounds", "Cached"]

_VALUES, _LETTERS = 500, 20_000
"""Most values and characters of the arguments of a call that is cached."""
_PARTS = 20_000
"""Most parts of a reply that is cached."""

_Key = tuple[str, str, str, str]
"""Server, principal, tool, and a digest of the arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of the cache."""

    entries: int = 1_000
    bytes: int = 32_000_000
    largest: int = 4_000_000
    """Bytes of one reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _CachedReply:
    reply: Reply
    until: float
    bytes: int


class Cached(MergedWrapper):
    """Merged sources with a cache of replies.

    Args:
        inner: The merged sources.
        rules: Returns the current rules of the settings, which may change.
        clock: Seconds, monotonic.
        bounds: Limits of the cache.
    """

    def __init__(
        self,
        inner: MergedSource,
        rules: Callable[[], ResultRules],
        clock: Callable[[], float],
        bounds: Bounds | None = None,
    ) -> None:
        self.inner = inner
        self._rules = rules
        self._clock = clock
        self._replies = _ReplyCache(bounds or Bounds())
        self._rounds: defaultdict[str, int] = defaultdict(int)
        """By server, how often its part was emptied. A reply to a call from before that is not cached."""
        # Everything when tools change, which is rare: a change does not state its server.
        self._unwatch = inner.watch(lambda change: self.forget([*self._rounds]) if change.kind == "tools" else None)

    async def call_entry(self, entry: Entry, call: Call) -> Reply:
        rules = self._rules()
        server_rules = rules.servers.get(entry.server)
        if server_rules is None or not server_rules.cache:
            return await self.inner.call_entry(entry, call)
        seconds = rules.cached_for(Origin(entry.server, entry.original))
        if not seconds:
            self.forget([entry.server])
            try:
                return await self.inner.call_entry(entry, call)
            finally:
                self.forget([entry.server])
        if call.state is not None or call.answers:
            key = None
        else:
            arguments = dict(call.arguments)
            if not is_small(arguments, values=_VALUES, letters=_LETTERS):
                key = None
            else:
                text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
                key = entry.server, call.caller.principal, entry.original, hashlib.sha256(text.encode()).hexdigest()
        if key is None:
            return await self.inner.call_entry(entry, call)
        began, turn = self._clock(), self._rounds[entry.server]
        known = self._replies.get(key, began)
        if known is not None:
            performance: JsonObject = {**inner_meta(known), "performance": {"cachedResult": True}}
            return replace(known, meta={**known.meta, META: performance})
        reply = await self.inner.call_entry(entry, call)
        if (
            not reply.is_error
            and reply.needs is None
            and reply.extension is None
            and turn == self._rounds[entry.server]
        ):
            self._replies.put(key, reply, began + seconds)
        return reply

    def forget(self, servers: Iterable[str]) -> None:
        """Empty the cache of these servers."""
        for server in servers:
            self._rounds[server] += 1
            self._replies.drop(server)

    async def close(self) -> None:
        self._unwatch()
        await self.inner.close()


class _ReplyCache:
    """Replies by key, within bounds; the least recently used is dropped first."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._kept: OrderedDict[_Key, _CachedReply] = OrderedDict()
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
        size = _approximate_size(reply, self._bounds.largest)
        if size is None:
            return
        self._remove(key)
        self._kept[key] = _CachedReply(reply=reply, until=until, bytes=size)
        self._bytes += size
        while len(self._kept) > self._bounds.entries or self._bytes > self._bounds.bytes:
            self._remove(next(iter(self._kept)))

    def drop(self, server: str) -> None:
        for key in [key for key in self._kept if key[0] == server]:
            self._remove(key)

    def _remove(self, key: _Key) -> None:
        kept = self._kept.pop(key, None)
        self._bytes -= 0 if kept is None else kept.bytes


def _approximate_size(reply: Reply, largest: int) -> int | None:
    """Approximate bytes of a reply; None where it is larger than `largest`."""
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
