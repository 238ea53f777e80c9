"""Connection pool of a database server, and the conversion of its values.

A `Pool` has as many connections as statements may run at one time, opened when needed and kept for a while. Drivers
block in threads. At a deadline or a cancellation, the caller stops waiting for the thread, the server is asked to stop,
and the socket is closed, so the limit is kept even if the server does not react.

A `Session` is a driver's connection, used by one thread at a time, which may block indefinitely. `SeverableSession`
lets another thread sever it at once, without closing a connection that is in use.

A `NetworkEngine` is an `Engine` over such a pool, for any server. It applies the limits to every statement and caches
what does not change.

An `Address` is parsed from a URL and keeps its secrets in `url`. Nothing is opened by it.

`Intake` and `take_rows` collect whole rows until a limit is reached; of a value that is too long, they keep the
beginning.

`number` and `written_json` convert text to a value only if that loses nothing: an object with a duplicate name stays
text, and a number that a float would round becomes a decimal, inside lists and objects too.

Error messages are reduced to their first line, without secrets and values: a failed conversion quotes the value, which
would reveal a masked column. Words of the statement itself may be repeated. Errors with the same meaning on every
server have the same text.
"""

import json
import math
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from threading import Lock
from typing import Literal, Protocol, TypeVar

import anyio
from anyio import to_thread
from sqlalchemy import URL

from ullage.errors import DeadlinePassed, QueryFailed, SourceFailed
from ullage.store import read_url
from ullage.table import Cell, Row
from ullage.tool import Json

from ..database import Answer, Dialect, Limits, Probe, Question, Stability, Structure, served_dialect, without_data

__all__ = [
    "LOCKED",
    "REACH",
    "Address",
    "NetworkEngine",
    "Pool",
    "Session",
    "SeverableSession",
    "encode_statement",
    "first_line",
    "late",
    "lost_error",
    "number",
    "real",
    "take_rows",
    "unreachable_error",
    "whole",
    "without_data",
    "without_secrets",
    "written_json",
]

_Result = TypeVar("_Result")


class Session(Protocol):
    """A connection of a driver, used by one thread at a time.

    Raises:
        QueryFailed: the statement failed; the session can be cleaned and reused.
        SourceFailed: the connection is lost.
    """

    def begin(self, seconds: float, rows: int | None) -> None:
        """Begin a read-only transaction, with the server's own limits, before each piece of work.

        Args:
            seconds: time limit of the work.
            rows: maximum rows of an answer; None for all.
        """
        ...

    def ask(self, question: Question, limits: Limits) -> Answer:
        """Run one statement within the limits."""
        ...

    def structure(self) -> Structure: ...

    def functions(self) -> Mapping[str, Stability]: ...

    def probe(self, limits: Limits) -> Probe: ...

    def clean(self) -> bool:
        """End the transaction and undo any change to the session; False if a new session is needed."""
        ...

    def interrupt(self) -> None:
        """Tell the server to stop the statement, from another thread and connection; gives up within seconds."""
        ...

    def fileno(self) -> int | None:
        """Return the number of its socket, if it has one."""
        ...

    def close(self) -> None: ...


class SeverableSession:
    """A session that another thread can sever while it is in use."""

    def __init__(self, session: Session) -> None:
        self.session = session
        number = session.fileno()
        # A duplicate, because the driver may close its descriptor at any time, and another file may reuse the number.
        self._socket = None if number is None else socket.socket(fileno=os.dup(number))
        self._lock = Lock()
        self._is_busy = False
        self._is_severed = False

    def run(self, work: Callable[[Session], _Result]) -> _Result:
        """Run work with the session, and close it afterwards if it was severed meanwhile."""
        with self._lock:
            if self._is_severed:
                raise SourceFailed("the connection is closed")
            self._is_busy = True
        try:
            return work(self.session)
        finally:
            with self._lock:
                self._is_busy = False
                is_severed = self._is_severed
            if is_severed:
                self._close()

    def sever(self) -> None:
        """Shut the connection down without waiting; a thread that reads from it fails at once."""
        with self._lock:
            was_severed, self._is_severed = self._is_severed, True
            is_busy = self._is_busy
        if was_severed:
            return
        if not is_busy:
            self._close()
        elif self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _close(self) -> None:
        self.session.close()
        if self._socket is not None:
            self._socket.close()


Kind = Literal["postgresql", "mysql", "other"]

_KINDS: dict[str, Kind] = {"postgresql": "postgresql", "postgres": "postgresql", "mysql": "mysql", "mariadb": "mysql"}
_ACCEPTED = ("postgresql://user@host/database", "mysql://user@host/database")
_SECRET_PARTS = ("password", "secret", "token", "key")
"""Parts of the names of URL parameters with secret values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a database is, with and without its secrets."""

    url: URL = field(repr=False)
    """The whole URL, with its password."""
    shown: str
    """For messages: without user, password and query."""
    kind: Kind
    dialect: Dialect

    @classmethod
    def of(cls, where: str) -> "Address":
        """Parse a URL."""
        url = read_url(where, _ACCEPTED)
        name = url.get_backend_name()
        shown = URL.create(name, host=url.host, port=url.port, database=url.database)
        return cls(
            url=url,
            shown=shown.render_as_string(),
            kind=_KINDS.get(name, "other"),
            dialect=served_dialect(name),
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts that no message may repeat, longest first."""
        named = [
            value
            for name, value in self.url.query.items()
            if isinstance(value, str) and any(part in name.lower() for part in _SECRET_PARTS)
        ]
        # SQLAlchemy accepts any object with a text form as a password.
        found = {str(self.url.password or ""), *named} - {""}
        return tuple(sorted(found, key=lambda secret: (-len(secret), secret)))


class Intake:
    """Rows collected within the limits of rows, values and bytes."""

    def __init__(self, *, rows: int, cell: int, size: int) -> None:
        self._most_rows = rows
        self._most_characters = cell
        self._bytes_left = size
        self._rows: list[Row] = []
        self._cut_cells = 0

    def take(self, row: Sequence[Cell]) -> bool:
        """Add a row; False if there is no room for it, so that more rows exist than were taken."""
        if len(self._rows) >= self._most_rows:
            return False
        short = tuple(
            (cell[: self._most_characters] if isinstance(cell, str) and len(cell) > self._most_characters else cell)
            for cell in row
        )
        size = sum(map(_size, short))
        if size > self._bytes_left:
            return False
        self._bytes_left -= size
        self._cut_cells += sum(kept is not cell for kept, cell in zip(short, row, strict=True))
        self._rows.append(short)
        return True

    def answer(self, columns: tuple[str, ...], *, more: bool) -> Answer:
        """Return the rows taken, as an answer."""
        return Answer(columns=columns, rows=tuple(self._rows), more=more, cut_cells=self._cut_cells)


def take_rows(columns: tuple[str, ...], rows: Iterable[Sequence[Cell]], most: int, limits: Limits) -> Answer:
    """Return the answer with as many of the rows as there is room for; only one row beyond them is read."""
    intake = Intake(rows=most, cell=limits.cell, size=limits.bytes)
    more = any(not intake.take(row) for row in rows)
    return intake.answer(columns, more=more)


def _size(cell: Cell) -> int:
    if isinstance(cell, str):
        return len(cell.encode("utf-8", "surrogatepass"))
    return 0 if cell is None else len(str(cell))


def whole(text: str) -> Cell:
    return int(text)


def real(text: str) -> Cell:
    """Return a float; infinity and NaN stay text, since JSON does not have them."""
    value = float(text)
    return value if math.isfinite(value) else text


def number(text: str) -> Cell:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return text
    return value if value.is_finite() else text


def written_json(text: str) -> Cell:
    """Return the value of JSON objects and arrays; scalars stay text, since a lone `null` would look like a missing
    value."""
    if "\\ud" in text.lower():
        return text
    try:
        value: Json = json.loads(
            text, parse_float=_as_written, parse_constant=_refuse, object_pairs_hook=_make_distinct
        )
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict | list) else text


def _as_written(text: str) -> float | Decimal:
    """Return a decimal if a float would lose a digit, or a trailing zero that states the precision."""
    value = float(text)
    return value if repr(value) == text else Decimal(text)


def _refuse(text: str) -> None:
    raise ValueError(text)


def _make_distinct(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("one name twice")
    return found


LOCKED = "another session has locked it; ask again later"
REACH = "Check that the server runs and that host, port and TLS settings of the database's URL are right."


def first_line(text: str) -> str:
    """Return the first line of a message; drivers add the statement or hints below it."""
    return text.strip().partition("\n")[0].strip()


def without_secrets(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, "…")
    return text


def late() -> DeadlinePassed:
    return DeadlinePassed("the database ended the statement when its time was up")


def lost_error() -> SourceFailed:
    return SourceFailed("the connection to the database was lost before the answer came", suggestion="ask again")


def unreachable_error(shown: str, said: str, suggestion: str) -> SourceFailed:
    return SourceFailed(f"`{shown}` cannot be reached: {said}", suggestion=suggestion)


def encode_statement(sql: str) -> bytes:
    """Encode a statement in UTF-8; refuse an unpaired surrogate."""
    try:
        return sql.encode()
    except UnicodeEncodeError:
        raise QueryFailed("the statement contains an unpaired surrogate", suggestion="leave it out") from None


_GRACE = 0.25
"""Seconds beyond a deadline for telling the server to stop, and after an answer for cleaning up."""
_IDLE_SECONDS = 60.0
"""Lifetime of an idle connection; after a longer time the network may have dropped it."""


class Pool:
    """Connections to one server, used by threads within a deadline."""

    def __init__(self, opener: Callable[[float], Session], *, size: int, shown: str) -> None:
        self._opener = opener
        """Opens a session, given the seconds after which to give up."""
        self._shown = shown
        self._slots = anyio.Semaphore(size)
        # The slots limit the threads; the process's own thread limit is meant for work that ends by itself.
        self._threads = anyio.CapacityLimiter(math.inf)
        self._idle: list[tuple[SeverableSession, float]] = []
        self._is_closed = False

    async def use(self, work: Callable[[Session], _Result], *, seconds: float, rows: int | None) -> _Result:
        """Run work with a session.

        Raises:
            DeadlinePassed: the work took longer than `seconds`.
            SourceFailed: the database cannot be reached.
        """
        try:
            with anyio.fail_after(seconds) as scope:
                async with self._slots:
                    held = await self._begin_transaction(rows, scope.deadline)
                    try:
                        result = await self._run_work(held, work)
                    except QueryFailed:
                        await self._put_back(held)
                        raise
                    await self._put_back(held)
                    return result
        except (TimeoutError, DeadlinePassed):
            raise DeadlinePassed(
                f"`{self._shown}` had not answered after {seconds:g} seconds",
                suggestion="ask for less: filter by an indexed column, aggregate, or look at the plan by EXPLAIN",
            ) from None

    async def _begin_transaction(self, rows: int | None, deadline: float) -> SeverableSession:
        """Return a session with a transaction begun. An idle one may have lost its connection; the next one is then
        tried."""
        while held := self._take_idle():
            try:
                return await self._begin(held, rows, deadline)
            except SourceFailed:
                continue
        opening = _Opening(self._opener, _seconds_left(deadline))
        try:
            open_session = await self._in_thread(opening.run)
        except BaseException:
            opening.abandon()
            raise
        return await self._begin(open_session, rows, deadline)

    async def _begin(self, held: SeverableSession, rows: int | None, deadline: float) -> SeverableSession:
        seconds = _seconds_left(deadline)
        try:
            await self._run_work(held, lambda session: session.begin(seconds, rows))
        except QueryFailed:
            held.sever()
            raise
        return held

    def _take_idle(self) -> SeverableSession | None:
        if self._is_closed:
            raise SourceFailed(f"`{self._shown}` is closed")
        now = anyio.current_time()
        while self._idle:
            held, since = self._idle.pop()
            if now - since < _IDLE_SECONDS:
                return held
            held.sever()
        return None

    async def _run_work(self, held: SeverableSession, work: Callable[[Session], _Result]) -> _Result:
        try:
            return await self._in_thread(lambda: held.run(work))
        except QueryFailed:
            raise
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_GRACE, shield=True):
                await self._in_thread(held.session.interrupt)
            held.sever()
            raise
        except BaseException:
            held.sever()
            raise

    async def _put_back(self, held: SeverableSession) -> None:
        with anyio.move_on_after(_GRACE, shield=True):
            if await self._run_work(held, lambda session: session.clean()) and not self._is_closed:
                self._idle.append((held, anyio.current_time()))
                return
        held.sever()

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)

    async def close(self) -> None:
        """Close idle connections; one in use is closed after its answer."""
        self._is_closed = True
        while self._idle:
            self._idle.pop()[0].sever()


def _seconds_left(deadline: float) -> float:
    return max(0.001, deadline - anyio.current_time())


class _Opening:
    """A connection being opened, whose caller may have given up before it is ready."""

    def __init__(self, opener: Callable[[float], Session], seconds: float) -> None:
        self._opener = opener
        self._seconds = seconds
        self._lock = Lock()
        self._held: SeverableSession | None = None
        self._is_abandoned = False

    def run(self) -> SeverableSession:
        held = SeverableSession(self._opener(self._seconds))
        with self._lock:
            self._held = held
            is_abandoned = self._is_abandoned
        if is_abandoned:
            held.sever()
        return held

    def abandon(self) -> None:
        with self._lock:
            self._is_abandoned = True
        if self._held is not None:
            self._held.sever()


class NetworkEngine:
    """An `Engine` for a database behind a server."""

    def __init__(self, pool: Pool, *, dialect: Dialect, limits: Limits) -> None:
        self._pool = pool
        self._dialect: Dialect = dialect
        self._limits = limits
        self._functions: Mapping[str, Stability] | None = None

    @property
    def dialect(self) -> Dialect:
        return self._dialect

    async def ask(self, question: Question) -> Answer:
        limits = self._limits
        held = replace(question, rows=min(question.rows, limits.rows), seconds=min(question.seconds, limits.seconds))
        return await self._pool.use(lambda session: session.ask(held, limits), seconds=held.seconds, rows=held.rows)

    async def structure(self) -> Structure:
        return await self._pool.use(lambda session: session.structure(), seconds=self._limits.seconds, rows=None)

    async def functions(self) -> Mapping[str, Stability]:
        if self._functions is None:
            self._functions = await self._pool.use(
                lambda session: session.functions(), seconds=self._limits.seconds, rows=None
            )
        return self._functions

    async def probe(self) -> Probe:
        limits = self._limits
        return await self._pool.use(lambda session: session.probe(limits), seconds=limits.seconds, rows=None)

    async def close(self) -> None:
        await self._pool.close()
