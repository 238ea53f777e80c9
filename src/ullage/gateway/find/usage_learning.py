"""Learns from calls which tools follow which queries.

The tools shown by the last searches of each session are kept. When one of them is called and does not fail, the
latest search that showed it is credited with it, once; later searches of the same principal are ranked with these
credits. Credits are written in the background and read again after 45 seconds. A database that fails or is slow
teaches nothing and delays nothing. `ullage.search` defines which words of a query are stored and how much a credit
can change a rank.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio
import anyio.to_thread

from ullage.errors import StoreFailed
from ullage.store import seconds
from ullage.tool import Caller, Reply

from ..tool_source import Spawn

if TYPE_CHECKING:
    from ullage.search import Need, Use, Used, Uses

__all__ = ["Learning", "UseStore"]

_STALE = 45.0
"""Seconds after which uses are read again: another process may have added some, or deleted all."""
_PATIENCE = 0.5
"""Most seconds that a search waits for uses to load."""
_SESSIONS, _SEARCHES = 256, 8
"""Most sessions kept, and most searches of each."""
_PRINCIPALS = 64
"""Most principals whose uses are kept in memory."""
_UNSAVED = 1_000
"""Most uses waiting to be written."""


class UseStore(Protocol):
    """Interface of a store of uses. Blocking; raises `StoreFailed`."""

    def load(self, principal: str, now: float) -> "Sequence[Use]":
        """Return the stored uses of a principal."""
        ...

    def add(self, principal: str, terms: Iterable[str], tool: "Used", now: float) -> None:
        """Add one use of a tool for these terms."""
        ...


@dataclass(slots=True)
class _Search:
    need: "Need"
    shown: "frozenset[Used]"
    credited: "set[Used]" = field(default_factory=set["Used"])


@dataclass(frozen=True, slots=True)
class _Read:
    uses: "Uses"
    at: float


class Learning:
    """Learns for all clients of a gateway.

    Args:
        store: Keeps uses between starts.
        spawn: Runs writes in the background; None to write at once.
        patience: Most seconds that a search waits for uses.
        clock: Monotonic seconds.
        now: The time, for the age of uses.
    """

    def __init__(
        self,
        store: UseStore,
        spawn: Spawn | None = None,
        *,
        patience: float = _PATIENCE,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._spawn = spawn
        self._patience = patience
        self._clock = clock
        self._now = now
        self._sessions: OrderedDict[tuple[str, str], deque[_Search]] = OrderedDict()
        self._read: OrderedDict[str, _Read] = OrderedDict()
        self._lock = anyio.Lock()
        self._unsaved: deque[tuple[str, frozenset[str], Used, float]] = deque(maxlen=_UNSAVED)

    async def bonuses(self, caller: Caller, need: "Need") -> "Mapping[Used, float]":
        """Return the score gains of tools from earlier uses, for a search by this caller."""
        if not need:
            return {}
        principal = caller.principal
        read = self._read.get(principal)
        if read is None or self._clock() - read.at >= _STALE:
            read = _Read(await self._load(principal), self._clock())
            self._read[principal] = read
        _trim(self._read, principal, _PRINCIPALS)
        uses = read.uses
        return uses.bonuses(need, seconds(self._now()))

    def showed(self, caller: Caller, need: "Need", tools: "Iterable[Used]") -> None:
        """Record that a search for this need showed these tools."""
        if not need:
            return
        session = caller.principal, caller.session
        self._sessions.setdefault(session, deque(maxlen=_SEARCHES)).append(_Search(need, frozenset(tools)))
        _trim(self._sessions, session, _SESSIONS)

    async def called(self, caller: Caller, reply: Reply) -> None:
        """Credit the search that showed the called tool, if the call succeeded."""
        if reply.is_error or reply.needs is not None or reply.origin is None:
            return
        tool = reply.origin.server, reply.origin.tool
        searches = self._sessions.get((caller.principal, caller.session), ())
        search = next((one for one in reversed(searches) if tool in one.shown), None)
        if search is not None and tool not in search.credited:
            search.credited.add(tool)
            principal = caller.principal
            need = search.need
            now = seconds(self._now())
            if principal in self._read:
                self._read[principal].uses.add(need, tool, now)
            self._unsaved.append((principal, need.terms, tool, now))
            if self._spawn is None:
                await self.save()
            else:
                self._spawn(self.save)

    async def save(self) -> None:
        """Write pending uses. To be called at shutdown too, which may precede the background write."""
        async with self._lock:
            while self._unsaved:
                use = self._unsaved[0]
                try:
                    await anyio.to_thread.run_sync(self._store.add, *use)
                except StoreFailed:
                    self._unsaved.clear()
                if self._unsaved and self._unsaved[0] is use:
                    self._unsaved.popleft()

    async def _load(self, principal: str) -> "Uses":
        from ullage.search import Uses

        now = seconds(self._now())
        with suppress(StoreFailed), anyio.move_on_after(self._patience):
            return await anyio.to_thread.run_sync(
                lambda: Uses(self._store.load(principal, now)), abandon_on_cancel=True
            )
        return Uses()


Key = TypeVar("Key")


def _trim(kept: OrderedDict[Key, Any], latest: Key, most: int) -> None:
    """Drop the least recently used item beyond `most`."""
    kept.move_to_end(latest)
    if len(kept) > most:
        kept.popitem(last=False)
