"""Learns from calls which tools follow which queries.

Notes what the last searches of each session showed. When one of the tools shown is then called and does not fail,
the latest search that showed it is credited with it, once; what was so learnt re-ranks later searches of the same
principal. Written behind, read again when it may be old. A database that fails or takes long teaches nothing and
holds nobody up. What is kept of a query, and how much it can matter, `ullage.search` knows.
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
"""Seconds after which uses are read again: another process may have added some, or forgotten all."""
_PATIENCE = 0.5
"""Seconds that a search waits for them."""
_SESSIONS, _SEARCHES = 256, 8
"""Remembered in all, and of each session."""
_PRINCIPALS = 64
"""Whose uses are held in memory."""
_UNSAVED = 1_000
"""Uses that may wait to be written."""


class UseStore(Protocol):
    """Keeps uses between starts. Blocks, and raises `StoreFailed`."""

    def load(self, principal: str, now: float) -> "Sequence[Use]": ...

    def add(self, principal: str, terms: Iterable[str], tool: "Used", now: float) -> None: ...


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
    """One for all clients of a gateway."""

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
        self._lock: anyio.Lock | None = None
        """Made late: it belongs to the event loop that is running."""
        self._unsaved: deque[tuple[str, frozenset[str], Used, float]] = deque(maxlen=_UNSAVED)

    async def bonuses(self, caller: Caller, need: "Need") -> "Mapping[Used, float]":
        """What earlier uses are worth to tools, for a search by this caller."""
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
        """A search for that need showed these."""
        if not need:
            return
        session = caller.principal, caller.session
        self._sessions.setdefault(session, deque(maxlen=_SEARCHES)).append(_Search(need, frozenset(tools)))
        _trim(self._sessions, session, _SESSIONS)

    async def called(self, caller: Caller, reply: Reply) -> None:
        """Something was called and answered so."""
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
        """Writes what is not yet written; also to be called at the end, which may come before the background does."""
        self._lock = self._lock or anyio.Lock()
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
    """Lets go of what was longest not asked for."""
    kept.move_to_end(latest)
    if len(kept) > most:
        kept.popitem(last=False)
