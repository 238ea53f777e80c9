"""The connections of one server: which one a request takes, and when another may be opened.

There is one for each session of each principal, in the era of the protocol that the session's client speaks if the
server knows it. The sessions of a principal share one to a stateless server, and everybody shares one where the
settings say so. When as many are open as may be, a call waits for its turn.

A connection that was opened for a listing belongs to nobody until a session calls. A start is shared by all that wait
for it; after a failure starts are made one at a time, each after its back-off.
"""

import logging
import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import anyio

from ullage.errors import DeadlinePassed, UllageError, Unavailable
from ullage.gateway import Server
from ullage.tool import Era

from ..upstream import ChildEnvironment, Stillborn, era_of
from .bounds import Bounds
from .connection import Connected, Connection, Holder, Opener
from .health import Health
from .record import Record

__all__ = ["Pool", "PoolWatcher", "Surroundings", "Work"]

_log = logging.getLogger(__name__)

_TAIL_CHARACTERS = 4_000
_LOOK_SECONDS = 0.05
_EVERYBODY: Holder = ("", "")
"""Who holds a shared server's one connection."""

_WHEN_FULL = "try again when another session has ended, or set shared = true where the server keeps no state"

Work = Callable[[], Coroutine[Any, Any, None]]
Slot = tuple[Holder, Era | None]
"""Whose a connection is, in which era."""
_ERAS: tuple[Era, ...] = ("handshake", "stateless")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every pool of a host works with."""

    opener: Opener
    environment: ChildEnvironment
    start: Callable[[Work], None]
    """Runs something in the background, among the host's tasks."""
    clock: Callable[[], float]
    random: Callable[[], float]
    bounds: Bounds
    client_era: Callable[[], Era | None] = lambda: None
    """The era of the client that came last: what is opened for nobody in particular is likely to be called by it."""


class PoolWatcher(Protocol):
    def connected(self, upstream: Connected, *, again: bool) -> None:
        """A connection is open; `again` where an earlier one is gone, so that what is offered may have changed."""
        ...

    def is_needed(self) -> bool:
        """Whether a connection must be kept although nobody calls."""
        ...


class Pool:
    def __init__(self, server: Server, surroundings: Surroundings, watcher: PoolWatcher) -> None:
        self.server = server
        self.record = Record(server.name, surroundings.bounds.patience, surroundings.clock, surroundings.random)
        self._around = surroundings
        self._watcher = watcher
        self._connections: list[Connection] = []
        """Every one of which something is left, in the order of their opening."""
        self._held: dict[Slot, Connection] = {}
        self._waiting: list[list[Holder | None]] = []
        """Those that wait for room, in their order."""
        self._freed = anyio.Event()
        self._unknown: set[Era] = set()
        """Eras in which the server was asked and answered in the other."""
        self._lost_one = False
        self._hints: set[str] = set()
        """Those that were logged."""
        self.is_closed = False

    def at_hand(self, holder: Holder, era: Era | None) -> Connection | None:
        """The holder's connection where it is open: the way of nearly every call."""
        connection = self._held_by(_EVERYBODY if self.server.shared else holder, era)
        return None if connection is None or connection.upstream is None or self.is_closed else connection

    def live(self) -> list[Connected]:
        """Newest first."""
        return [one.upstream for one in reversed(self._connections) if one.upstream is not None]

    def _held_by(self, holder: Holder, era: Era | None) -> Connection | None:
        spoken = self._spoken(era)
        for one in (None, *_ERAS) if spoken is None else (spoken,):
            if (connection := self._held.get(_slot(holder, one))) is not None:
                return connection
        return None

    def _spoken(self, era: Era | None) -> Era | None:
        """The era that a connection gets for a client of this one; None where nothing is known of either."""
        wanted = era or self._around.client_era()
        if wanted is None or wanted not in self._unknown:
            return wanted
        return next(one for one in _ERAS if one != wanted)

    async def connection(
        self, holder: Holder | None, deadline: float | None = None, era: Era | None = None
    ) -> Connection:
        """An open connection for the holder, or any where it is None; opened where there is none.

        A caller that gives up leaves the start going on for the others, and for its own next try.
        """
        with anyio.CancelScope(deadline=math.inf if deadline is None else deadline):
            return await self._found_or_opened(_EVERYBODY if self.server.shared else holder, era)
        raise DeadlinePassed(
            f"server `{self.server.name}` was still starting when the call's time was up",
            suggestion="call again: the start goes on meanwhile",
        )

    async def _found_or_opened(self, holder: Holder | None, era: Era | None) -> Connection:
        while True:
            connection = self._find(holder, era) or await self._opened_when_allowed(holder, era)
            if connection is not None:
                await connection.settled()
                if connection.upstream is not None and (holder is None or self._held_by(holder, era) is connection):
                    return connection

    def _find(self, holder: Holder | None, era: Era | None) -> Connection | None:
        self._refuse_when_closed()
        usable = [one for one in self._connections if not one.is_gone]
        spoken = self._spoken(era)
        if holder is None:
            return max(usable, key=lambda one: (one.upstream is not None, one.era == spoken, one.began), default=None)
        if (held := self._held_by(holder, era)) is not None:
            return held
        spares = [one for one in usable if one.holder is None]
        spare = next((one for one in spares if spoken in (None, one.era)), None)
        if spare is not None and not self._has_share(holder):
            self._assign(spare, holder)
            return spare
        # One that was begun for nobody in particular may turn out to be the right one.
        return next((one for one in spares if one.era is None), None)

    def _assign(self, connection: Connection, holder: Holder) -> None:
        connection.holder = holder
        self._held[_slot(holder, connection.era)] = connection

    async def _opened_when_allowed(self, holder: Holder | None, era: Era | None) -> Connection | None:
        """None where something was waited for, so that the state must be looked at again."""
        self._forgive()
        if self.record.has_failed and (attempt := self._starting()) is not None:
            await attempt.settled()
            return None
        if wait := self.record.seconds_to_wait():
            await anyio.sleep(wait)
            return None
        if await self._waited_for_room(holder) and (found := self._find(holder, era)) is not None:
            return found
        return self._begin(holder, era)

    def _begin(self, holder: Holder | None, era: Era | None) -> Connection:
        connection = Connection(self.server, self, self._around.clock, self._around.bounds, self._spoken(era))
        self.in_background(lambda: self._keep(connection))
        self._connections.append(connection)
        if holder is not None:
            self._assign(connection, holder)
        return connection

    async def _waited_for_room(self, holder: Holder | None) -> bool:
        """Wait until another connection may be opened, those that came before first; False where there was room.

        Raises:
            Unavailable: There was none in time.
        """
        if not self._is_full(holder) and not self._waiting:
            return False
        place = [holder]
        self._waiting.append(place)
        try:
            with anyio.move_on_after(self._around.bounds.room_wait):
                while self._is_full(holder) or self._is_behind(place):
                    await self._freed.wait()
                return True
        finally:
            self._waiting = [one for one in self._waiting if one is not place]
            self._note_freed()
        if len(self._connections) < self._around.bounds.connections:
            many = f"your sessions already have {self._around.bounds.share} connections to server `{self.server.name}`"
            raise Unavailable(f"{many}, all that one caller gets", suggestion=_WHEN_FULL)
        most = self._around.bounds.connections
        raise Unavailable(f"server `{self.server.name}` already has {most} connections", suggestion=_WHEN_FULL)

    def _is_full(self, holder: Holder | None) -> bool:
        return len(self._connections) >= self._around.bounds.connections or self._has_share(holder)

    def _has_share(self, holder: Holder | None) -> bool:
        """Whether a principal has all the connections that one may have: it cannot use up a server for all others."""
        if holder is None:
            return False
        held = sum(one.holder is not None and one.holder[0] == holder[0] for one in self._connections)
        return held >= self._around.bounds.share

    def _is_behind(self, place: list[Holder | None]) -> bool:
        """Whether somebody who came before could have the room."""
        for one in self._waiting:
            if one is place:
                return False
            if not self._is_full(one[0]):
                return True
        return False

    def _note_freed(self) -> None:
        """Have those that wait for room look again."""
        self._freed.set()
        self._freed = anyio.Event()

    def release(self, holder: Holder) -> None:
        """The session is over: its connection ends as soon as its open calls have, within bounds."""
        for slot in [one for one in self._held if one[0] == holder]:
            self.in_background(partial(self._let_go, self._held.pop(slot)))

    async def _let_go(self, connection: Connection) -> None:
        with anyio.move_on_after(self._around.bounds.retiring):
            while connection.open_calls:
                await anyio.sleep(_LOOK_SECONDS)
        # The last one that hears of changes someone waits for stays; nobody calls by it any more.
        if self._others_live(connection) or not self._watcher.is_needed():
            connection.stop()

    async def _keep(self, connection: Connection) -> None:
        try:
            await connection.keep(self._around.opener, self._around.environment.of(self.server))
        finally:
            self._connections.remove(connection)
            self._note_freed()

    def in_background(self, work: Work) -> None:
        self._around.start(lambda: self._guarded(work))

    async def _guarded(self, work: Work) -> None:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - what breaks here is one server's, and must not end the others' tasks
            self.record.note(f"internal error: {type(error).__name__}")

    def _starting(self) -> Connection | None:
        return next((one for one in self._connections if one.ready_at is None and not one.is_gone), None)

    def _forgive(self) -> None:
        self.record.forgive([one.ready_at for one in self._connections if one.upstream and one.ready_at is not None])

    def ready(self, connection: Connection, upstream: Connected) -> None:
        self.record.start_seconds = connection.used_at - connection.began
        self.record.introduction = upstream.introduction
        self.record.protocol = upstream.protocol_version
        self._note_era(connection, era_of(upstream.protocol_version))
        again, self._lost_one = self._lost_one, False
        self._watcher.connected(upstream, again=again)

    def _note_era(self, connection: Connection, spoken: Era) -> None:
        """A server that was asked in one era and answered in the other is asked in that one from here on."""
        if connection.era is not None and connection.era != spoken and spoken not in self._unknown:
            self._unknown.add(connection.era)
        connection.era = spoken
        for slot in [slot for slot, held in self._held.items() if held is connection]:
            del self._held[slot]
            known = self._held.setdefault(_slot(connection.holder or slot[0], spoken), connection)
            if known is not connection:
                # Its holder had one already: a client of the other era had come first.
                connection.stop()

    def gone(self, connection: Connection) -> None:
        self._forgive()
        for slot in [slot for slot, held in self._held.items() if held is connection]:
            del self._held[slot]
        if connection.upstream is not None:
            # Nothing was missed where it was ended on purpose and others went on listening.
            self._lost_one = self._lost_one or connection.failure is not None or not self._others_live(connection)
            self.record.last_words = _tail_of(connection.upstream)
        elif isinstance(connection.failure, Stillborn):
            self.record.last_words = connection.failure.stderr_tail[-_TAIL_CHARACTERS:]
        if connection.failure is not None:
            self.add_hint(connection.failure, self.record.last_words)
        if connection.failure is not None and not self.is_closed:
            self.record.failed(connection.failure, began=connection.began, ready_at=connection.ready_at)

    def notice_missing_variables(self, words: str) -> str:
        """What to write into the settings where the server's words name a variable that it is not given; else empty.

        Logged once: whoever called may be a model, and only a person can do something about it.
        """
        hint = self._around.environment.hint(self.server, words)
        if hint and hint not in self._hints:
            self._hints.add(hint)
            self.record.note(hint)
            _log.warning("server `%s` failed: %s", self.server.name, hint)
        return hint

    def add_hint(self, error: UllageError, words: str) -> None:
        """Puts the hint before the error's suggestion."""
        hint = self.notice_missing_variables(f"{error.message}\n{words}")
        if hint and hint not in error.suggestion:
            error.suggestion = f"{hint}; {error.suggestion}" if error.suggestion else hint

    def can_spare(self, connection: Connection) -> bool:
        """The last one stays, unless the settings say when it may go and nobody listens for its changes."""
        return self._others_live(connection) or (self.server.idle_timeout is not None and not self._watcher.is_needed())

    def _others_live(self, connection: Connection) -> bool:
        return any(one.upstream is not None for one in self._connections if one is not connection)

    def _refuse_when_closed(self) -> None:
        if self.is_closed:
            raise Unavailable(
                f"server `{self.server.name}` is closed: it left the configuration, or Ullage is ending",
                suggestion="list the tools again",
            )

    def stop(self) -> None:
        """Ends every connection, and opens none from here on; what is left of them ends in the background."""
        self.is_closed = True
        for connection in tuple(self._connections):
            connection.stop()

    async def close(self, *, grace: float = 0.0) -> None:
        """Lets open calls finish for so many seconds, then ends every connection and waits for that, within bounds."""
        self.is_closed = True
        with anyio.move_on_after(grace):
            while any(one.open_calls for one in self._connections):
                await anyio.sleep(_LOOK_SECONDS)
        self.stop()
        with anyio.move_on_after(self._around.bounds.leaving):
            for connection in tuple(self._connections):
                await connection.ended.wait()

    def health(self) -> Health:
        self._forgive()
        live = self.live()
        if live:
            self.record.last_words = _tail_of(live[0])
            for note in live[0].notes:
                self.record.note(note)
        return replace(
            self.record.health(ready=bool(live), starting=self._starting() is not None),
            connections=len(self._connections),
            open_calls=sum(one.open_calls for one in self._connections),
            process_ids=tuple(one.process_id for one in live if one.process_id is not None),
        )


def _slot(holder: Holder, era: Era | None) -> Slot:
    """Where a holder's connection is found. A stateless server knows no sessions, so those of a principal share one."""
    return ((holder[0], "") if era == "stateless" else holder), era


def _tail_of(upstream: Connected) -> str:
    return upstream.stderr_tail()[-_TAIL_CHARACTERS:]
