"""Connection pool of one server: selects the connection for a request, and decides when another may be opened.

Each session of each principal has one connection, in the protocol era of the session's client if the server supports
it. The sessions of a principal share one connection to a stateless server, and all sessions share one where the
settings say so. When the maximum is open, a call waits for its turn.

A connection that was opened for a listing is free until a session takes it. A start is shared by all that wait for it;
after a failure starts are made one at a time, each after its backoff.

A `Connection` is being opened, then open, then gone; it is never reopened, another one is opened instead. It limits the
time of opening and closing, and closes itself when idle. The pool decides which session uses which connection.
"""

import logging
import math
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import anyio

from ullage.errors import DeadlinePassed, SignInNeeded, SourceFailed, UllageError, Unavailable
from ullage.gateway import Server
from ullage.tool import ClientDeclaration, Era

from ..upstream import ChildEnvironment, ServerConnection, Stillborn, Unsent, era_of
from .health import Bounds, Health, Record

__all__ = [
    "Connection",
    "ConnectionWatcher",
    "Holder",
    "Opener",
    "Pool",
    "PoolWatcher",
    "Surroundings",
    "Work",
]

Result = TypeVar("Result")
Holder = tuple[str, str]
"""A principal and its session: the same session name of another principal is another holder."""

_CALL_AGAIN = "call again: a new connection is opened"
_LOOK = "run `ullage doctor` to see what is wrong with it"


class Opener(Protocol):
    def __call__(
        self, server: Server, *, environment: Mapping[str, str], era: Era | None, client: ClientDeclaration | None
    ) -> AbstractAsyncContextManager[ServerConnection]:
        """Open a connection in this era if the server supports it, and declare this client to the server.

        With `era` None any era is used.
        """
        ...


class ConnectionWatcher(Protocol):
    """Receives a connection's changes of state."""

    def ready(self, connection: "Connection", upstream: ServerConnection) -> None: ...

    def gone(self, connection: "Connection") -> None:
        """Called once, as soon as the connection is unusable; its process may still be ending."""
        ...

    @property
    def is_stateless(self) -> bool:
        """Whether the server is known to keep nothing between requests."""
        ...

    def can_spare(self, connection: "Connection") -> bool:
        """Return whether the connection may be closed when idle."""
        ...


class Connection:
    """One connection of a pool, from its opening to its end."""

    def __init__(  # noqa: PLR0913, PLR0917
        self,
        server: Server,
        watcher: ConnectionWatcher,
        clock: Callable[[], float],
        bounds: Bounds,
        era: Era | None = None,
        client: ClientDeclaration | None = None,
    ) -> None:
        self.client = client
        """The client that is declared to the server; None for no particular one."""
        self.era: Era | None = era
        """The wanted era, and once open the era in use; None for any."""
        self.holder: Holder | None = None
        """None until a session takes it; kept after the session's end, since its state on the server belongs to no
        other."""
        self.began = clock()
        self.ready_at: float | None = None
        self.upstream: ServerConnection | None = None
        """None while it is being opened, and when it is gone."""
        self.failure: UllageError | None = None
        """Why it is gone; None if it was closed on purpose."""
        self.is_gone = False
        self.open_calls = 0
        self.used_at = self.began
        self.ended = anyio.Event()
        """Set when nothing of it is left."""
        self._server = server
        self._watcher = watcher
        self._clock = clock
        self._bounds = bounds
        self._settled = anyio.Event()
        self._whole = anyio.CancelScope()
        self._alive: anyio.CancelScope | None = None

    async def keep(self, opener: Opener, environment: Mapping[str, str]) -> None:
        """Open the connection and run it until it dies, is idle too long or is stopped."""
        try:
            # One scope around all of it, because what the opener begins inside must also end inside.
            with self._whole as whole:
                whole.deadline = anyio.current_time() + self._server.start_timeout + self._bounds.start_slack
                async with opener(self._server, environment=environment, era=self.era, client=self.client) as upstream:
                    whole.deadline = math.inf
                    self.ready_at = self.used_at = self._clock()
                    self.upstream = upstream
                    self._watcher.ready(self, upstream)
                    self._settled.set()
                    self._leave(await self._until_ended(upstream))
                    whole.deadline = anyio.current_time() + self._bounds.stopping
            self._leave(self._hung() if whole.cancelled_caught else None)
        except UllageError as error:
            self._leave(error)
        except BaseException as error:
            cut_off = isinstance(error, anyio.get_cancelled_exc_class())
            how = "was cut off: Ullage is ending" if cut_off else f"broke with {type(error).__name__}"
            self._leave(SourceFailed(f"the connection to server `{self._server.name}` {how}"))
            raise
        finally:
            self.ended.set()

    async def _until_ended(self, upstream: ServerConnection) -> SourceFailed | None:
        """Return why the connection died; None if it was stopped or idle."""
        while not self.is_gone and not self._is_idle():
            left = self._idle_limit() - (self._clock() - self.used_at)
            # A connection that is overdue but busy or needed is checked again after a whole limit.
            pause = left if left > 0 else self._idle_limit()
            with anyio.CancelScope(deadline=anyio.current_time() + pause) as self._alive:
                reason = await upstream.ended()
                return SourceFailed(f"server `{self._server.name}` {reason}", suggestion=_CALL_AGAIN)
        return None

    def _idle_limit(self) -> float:
        usual = self._bounds.idle_stateless if self._watcher.is_stateless else self._bounds.idle
        wanted = usual if self._server.idle_timeout is None else self._server.idle_timeout
        return max(wanted, self._bounds.shortest_idle)

    def _is_idle(self) -> bool:
        too_long = self._clock() - self.used_at >= self._idle_limit()
        return too_long and self.open_calls == 0 and self._watcher.can_spare(self)

    def _hung(self) -> SourceFailed:
        return SourceFailed(
            f"server `{self._server.name}` gave no answer within {self._server.start_timeout:g} s of its start",
            suggestion="run its command by hand to see why, or raise start_timeout; `ullage doctor` shows the rest",
        )

    def _leave(self, failure: UllageError | None) -> None:
        """Mark the connection as unusable, before its process has ended; only the first failure is kept."""
        if self.is_gone:
            return
        self.is_gone = True
        self.failure = failure
        try:
            self._watcher.gone(self)
        finally:
            self.upstream = None
            self._settled.set()

    def look_again(self) -> None:
        """Recheck how long the connection may be idle."""
        if self._alive is not None:
            self._alive.cancel()

    def stop(self) -> None:
        """Close the connection: in order if open, at once if still being opened."""
        was_open = self.upstream is not None
        self._leave(None)
        if was_open and self._alive is not None:
            self._alive.cancel()
        elif not was_open and self.ready_at is None:
            self._whole.cancel()

    def lose(self, failure: UllageError) -> None:
        """Mark the connection as dead, as found by a caller."""
        self._leave(failure)
        if self._alive is not None:
            self._alive.cancel()

    async def settled(self) -> None:
        """Wait until the connection is open or stopped; raises if it could not be opened, or died at once."""
        with self._claimed():
            await self._settled.wait()
        if self.failure is not None:
            # A new error each time: one that is raised in many tasks would collect all their tracebacks.
            kind = SignInNeeded if isinstance(self.failure, SignInNeeded) else SourceFailed
            raise kind(self.failure.message, suggestion=self.failure.suggestion or _LOOK, options=self.failure.options)

    @contextmanager
    def _claimed(self) -> Generator[None, None, None]:
        """Prevent closing for idleness inside the context."""
        self.open_calls += 1
        try:
            yield
        finally:
            self.open_calls -= 1
            self.used_at = self._clock()

    def stderr_tail(self) -> str:
        """Return the end of the server's standard error; empty where the connection is not open."""
        return "" if self.upstream is None else self.upstream.stderr_tail()

    async def over(self, request: Callable[[ServerConnection], Awaitable[Result]]) -> Result:
        """Send a request over the connection, which must be open."""
        if self.upstream is None:
            raise Unsent(f"the connection to server `{self._server.name}` is gone", suggestion=_CALL_AGAIN)
        # Not `_claimed`, which would cost every call as much as the rest of this method.
        self.open_calls += 1
        try:
            return await request(self.upstream)
        finally:
            self.open_calls -= 1
            self.used_at = self._clock()


_log = logging.getLogger(__name__)

_TAIL_CHARACTERS = 4_000
_LOOK_SECONDS = 0.05
_YIELD_LOOK_SECONDS = 0.5
"""Seconds between two searches for an idle connection while a call waits."""
_EVERYBODY: Holder = ("", "")
"""Holder of a shared server's only connection."""

_WHEN_FULL = "try again when another session has ended, or set shared = true where the server keeps no state"

Work = Callable[[], Coroutine[Any, Any, None]]
Slot = tuple[Holder, Era | None]
"""Holder and era of a connection."""
_ERAS: tuple[Era, ...] = ("handshake", "stateless")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all pools of a host share."""

    opener: Opener
    environment: ChildEnvironment
    start: Callable[[Work], None]
    """Runs work in the background, among the host's tasks."""
    clock: Callable[[], float]
    random: Callable[[], float]
    bounds: Bounds
    client_era: Callable[[], Era | None] = lambda: None
    """The era of the latest client, which is likely to use a connection opened for no particular client."""
    client: Callable[[], ClientDeclaration | None] = lambda: None
    """The declaration of the latest client."""


class PoolWatcher(Protocol):
    def connected(self, upstream: ServerConnection, *, again: bool) -> None:
        """Called when a connection is open;

        `again` if an earlier one is gone, so that the offered tools may have changed.
        """
        ...

    def is_needed(self) -> bool:
        """Whether a connection must be kept open without calls."""
        ...


class Pool:
    """The connections of one server."""

    def __init__(self, server: Server, surroundings: Surroundings, watcher: PoolWatcher) -> None:
        self.server = server
        self.record = Record(server.name, surroundings.bounds.patience, surroundings.clock, surroundings.random)
        self._around = surroundings
        self._watcher = watcher
        self._connections: list[Connection] = []
        """All connections that have not fully ended, in the order of opening."""
        self._held: dict[Slot, Connection] = {}
        self._waiting: list[list[Holder | None]] = []
        """The calls that wait for a connection, in order."""
        self._freed = anyio.Event()
        self._unknown: set[Era] = set()
        """Eras that the server was asked for and answered in the other one."""
        self._lost_one = False
        self._hints: set[str] = set()
        """Hints that have been logged."""
        self.is_closed = False
        self.is_stateless = False
        """Whether the server has used the stateless era, in which it keeps nothing between requests."""

    def at_hand(self, holder: Holder, era: Era | None) -> Connection | None:
        """Return the holder's connection if open: the path of nearly every call."""
        connection = self._held_by(_EVERYBODY if self.server.shared else holder, era)
        return None if connection is None or connection.upstream is None or self.is_closed else connection

    def live(self) -> list[ServerConnection]:
        """Return the open connections, newest first."""
        return [one.upstream for one in reversed(self._connections) if one.upstream is not None]

    def _held_by(self, holder: Holder, era: Era | None) -> Connection | None:
        spoken = self._spoken(era)
        for one in (None, *_ERAS) if spoken is None else (spoken,):
            if (connection := self._held.get(_slot(holder, one))) is not None:
                return connection
        return None

    def _spoken(self, era: Era | None) -> Era | None:
        """Return the era that a connection gets for a client of this era; None where neither is known."""
        wanted = era or self._around.client_era()
        if wanted is None or wanted not in self._unknown:
            return wanted
        return next(one for one in _ERAS if one != wanted)

    async def connection(
        self,
        holder: Holder | None,
        deadline: float | None = None,
        era: Era | None = None,
        client: ClientDeclaration | None = None,
    ) -> Connection:
        """Return an open connection for the holder, or any if None; open one where there is none.

        A connection opened for the holder declares the client to the server.

        If the caller is cancelled, the start continues for the others and for its own next attempt.
        """
        with anyio.CancelScope(deadline=math.inf if deadline is None else deadline):
            if self.server.shared:
                return await self._found_or_opened(_EVERYBODY, era, None)
            return await self._found_or_opened(holder, era, self._around.client() if holder is None else client)
        raise DeadlinePassed(
            f"server `{self.server.name}` was still starting when the call's time was up",
            suggestion="call again: the start goes on meanwhile",
        )

    async def _found_or_opened(
        self, holder: Holder | None, era: Era | None, client: ClientDeclaration | None
    ) -> Connection:
        while True:
            connection = self._find(holder, era, client) or await self._opened_when_allowed(holder, era, client)
            if connection is not None:
                await connection.settled()
                if connection.upstream is not None and (holder is None or self._held_by(holder, era) is connection):
                    return connection

    def _find(self, holder: Holder | None, era: Era | None, client: ClientDeclaration | None) -> Connection | None:
        if self.is_closed:
            raise Unavailable(
                f"server `{self.server.name}` is closed: it left the configuration, or Ullage is ending",
                suggestion="list the tools again",
            )
        usable = [one for one in self._connections if not one.is_gone]
        spoken = self._spoken(era)
        if holder is None:
            return max(usable, key=lambda one: (one.upstream is not None, one.era == spoken, one.began), default=None)
        if (held := self._held_by(holder, era)) is not None:
            return held
        spares = [
            one
            for one in usable
            if one.holder is None and (one.era == "stateless" or None in (one.client, client) or one.client == client)
        ]
        spare = next((one for one in spares if spoken in (None, one.era)), None)
        if spare is not None and not self._has_share(holder):
            self._assign(spare, holder)
            return spare
        # A connection that was opened for no particular client may fit this holder.
        return next((one for one in spares if one.era is None), None)

    def _assign(self, connection: Connection, holder: Holder) -> None:
        connection.holder = holder
        self._held[_slot(holder, connection.era)] = connection

    async def _opened_when_allowed(
        self, holder: Holder | None, era: Era | None, client: ClientDeclaration | None
    ) -> Connection | None:
        """Open a connection when allowed; None after a wait, when the state must be checked again."""
        self._forgive()
        if self.record.has_failed and (attempt := self._starting()) is not None:
            await attempt.settled()
            return None
        if wait := self.record.seconds_to_wait():
            await anyio.sleep(wait)
            return None
        if await self._waited_for_room(holder) and (found := self._find(holder, era, client)) is not None:
            return found
        around = self._around
        connection = Connection(self.server, self, around.clock, around.bounds, self._spoken(era), client)
        self.in_background(lambda: self._keep(connection))
        self._connections.append(connection)
        if holder is not None:
            self._assign(connection, holder)
        return connection

    async def _waited_for_room(self, holder: Holder | None) -> bool:
        """Wait until another connection may be opened, in order of arrival; return False where there was room at once.

        Raises:
            Unavailable: There was no room in time.
        """
        if not self._is_full(holder) and not self._waiting:
            return False
        place = [holder]
        self._waiting.append(place)
        try:
            with anyio.move_on_after(self._around.bounds.room_wait):
                while self._is_full(holder) or self._is_behind(place):
                    freed = self._freed
                    if not self._is_behind(place) and self._has_yielded(holder):
                        continue
                    with anyio.move_on_after(_YIELD_LOOK_SECONDS):
                        await freed.wait()
                return True
        finally:
            self._waiting = [one for one in self._waiting if one is not place]
            self._note_freed()
        if len(self._connections) < self._around.bounds.connections:
            many = f"your sessions already have {self._around.bounds.share} connections to server `{self.server.name}`"
            raise Unavailable(f"{many}, all that one caller gets", suggestion=_WHEN_FULL)
        most = self._around.bounds.connections
        raise Unavailable(f"server `{self.server.name}` already has {most} connections", suggestion=_WHEN_FULL)

    def _has_yielded(self, holder: Holder | None) -> bool:
        """Close the connection idle for longest, if idle long enough; return False if there is none.

        Many clients leave without notice, and a waiting call matters more than a state that one of them may return for.
        """
        if self.server.shared or any(one.is_gone for one in self._connections):
            # A connection that is ending already makes room.
            return False
        around, is_full = self._around, len(self._connections) >= self._around.bounds.connections
        idle = [
            one
            for one in self._held.values()
            if one.upstream is not None
            and not one.open_calls
            and around.clock() - one.used_at >= around.bounds.yields_after
            and one.holder is not None
            and (is_full or holder is None or one.holder[0] == holder[0])
        ]
        if idle:
            min(idle, key=lambda one: one.used_at).stop()
        return bool(idle)

    def _is_full(self, holder: Holder | None) -> bool:
        return len(self._connections) >= self._around.bounds.connections or self._has_share(holder)

    def _has_share(self, holder: Holder | None) -> bool:
        """Return whether a principal has its maximum of connections, so that it cannot use up a server for all
        others."""
        if holder is None:
            return False
        held = sum(one.holder is not None and one.holder[0] == holder[0] for one in self._connections)
        return held >= self._around.bounds.share

    def _is_behind(self, place: list[Holder | None]) -> bool:
        """Return whether an earlier call in the queue could take the room."""
        for one in self._waiting:
            if one is place:
                return False
            if not self._is_full(one[0]):
                return True
        return False

    def _note_freed(self) -> None:
        """Wake the calls that wait for room."""
        self._freed.set()
        self._freed = anyio.Event()

    def tell_roots_changed(self, holder: Holder, client: ClientDeclaration) -> None:
        """Notify the server on the holder's connection, or on a free one that was opened for this client."""
        for one in self._connections:
            if one.upstream is not None and (one.holder == holder or (one.holder is None and one.client == client)):
                one.upstream.tell_roots_changed()

    def release(self, holder: Holder) -> None:
        """End a session's connection after its open calls, within a limit."""
        for slot in [one for one in self._held if one[0] == holder]:
            self.in_background(partial(self._let_go, self._held.pop(slot)))

    async def _let_go(self, connection: Connection) -> None:
        with anyio.move_on_after(self._around.bounds.retiring):
            while connection.open_calls:
                await anyio.sleep(_LOOK_SECONDS)
        # The last one that reports changes to listeners stays, though no session uses it any more.
        if self._others_live(connection) or not self._watcher.is_needed():
            connection.stop()

    async def _keep(self, connection: Connection) -> None:
        try:
            await connection.keep(self._around.opener, self._around.environment.of(self.server))
        finally:
            self._connections.remove(connection)
            self._note_freed()

    def in_background(self, work: Work) -> None:
        self._around.start(lambda: self._run_noting_errors(work))

    async def _run_noting_errors(self, work: Work) -> None:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - a failure here is one server's, and must not end the others' tasks
            self.record.note(f"internal error: {type(error).__name__}")

    def _starting(self) -> Connection | None:
        return next((one for one in self._connections if one.ready_at is None and not one.is_gone), None)

    def _forgive(self) -> None:
        self.record.forgive([one.ready_at for one in self._connections if one.upstream and one.ready_at is not None])

    def ready(self, connection: Connection, upstream: ServerConnection) -> None:
        self.record.start_seconds = connection.used_at - connection.began
        self.record.introduction = upstream.introduction()
        self.record.protocol = upstream.protocol_version
        spoken = era_of(upstream.protocol_version)
        if connection.era is not None and connection.era != spoken and spoken not in self._unknown:
            self._unknown.add(connection.era)
        connection.era = spoken
        if spoken == "stateless" and not self.is_stateless:
            self.is_stateless = True
            for one in self._connections:
                one.look_again()
        for slot in [slot for slot, held in self._held.items() if held is connection]:
            del self._held[slot]
            known = self._held.setdefault(_slot(connection.holder or slot[0], spoken), connection)
            if known is not connection:
                # Its holder already had one, because a client of the other era had come first.
                connection.stop()
        again, self._lost_one = self._lost_one, False
        self._watcher.connected(upstream, again=again)

    def gone(self, connection: Connection) -> None:
        self._forgive()
        for slot in [slot for slot, held in self._held.items() if held is connection]:
            del self._held[slot]
        if connection.upstream is not None:
            # Nothing was missed if it was closed on purpose and others continued listening.
            self._lost_one = self._lost_one or connection.failure is not None or not self._others_live(connection)
            self.record.last_words = _tail_of(connection.upstream)
        elif isinstance(connection.failure, Stillborn):
            self.record.last_words = connection.failure.stderr_tail[-_TAIL_CHARACTERS:]
        if connection.failure is not None:
            self.add_hint(connection.failure, self.record.last_words)
        if connection.failure is not None and not self.is_closed:
            self.record.failed(connection.failure, began=connection.began, ready_at=connection.ready_at)

    def notice_missing_variables(self, words: str) -> str:
        """Return what to add to the settings if the text names a variable that the server does not get; else empty.

        The hint is logged once: the caller may be a model, and only the user can act on it.
        """
        hint = self._around.environment.hint(self.server, words)
        if hint and hint not in self._hints:
            self._hints.add(hint)
            self.record.note(hint)
            _log.warning("server `%s` failed: %s", self.server.name, hint)
        return hint

    def add_hint(self, error: UllageError, words: str) -> None:
        """Add the hint before the error's suggestion."""
        hint = self.notice_missing_variables(f"{error.message}\n{words}")
        if hint and hint not in error.suggestion:
            error.suggestion = f"{hint}; {error.suggestion}" if error.suggestion else hint

    def can_spare(self, connection: Connection) -> bool:
        """Return whether an idle connection may be closed.

        The last one stays, unless the settings set an idle time and nothing listens for its changes.
        """
        return self._others_live(connection) or (self.server.idle_timeout is not None and not self._watcher.is_needed())

    def _others_live(self, connection: Connection) -> bool:
        return any(one.upstream is not None for one in self._connections if one is not connection)

    def stop(self) -> None:
        """End every connection in the background, and open no more."""
        self.is_closed = True
        for connection in tuple(self._connections):
            connection.stop()

    async def close(self, *, grace: float = 0.0) -> None:
        """Let open calls finish for `grace` seconds, then end every connection and wait for that, within a limit."""
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
    """Return a holder's slot. A stateless server has no sessions, so those of a principal share one connection."""
    return ((holder[0], "") if era == "stateless" else holder), era


def _tail_of(upstream: ServerConnection) -> str:
    return upstream.stderr_tail()[-_TAIL_CHARACTERS:]
