"""Connection pool of a database server, and the conversion of its values.

As many connections as questions may run at one time, opened when needed and kept for a while. Drivers wait in
threads; a deadline or a cancellation leaves the thread, has the server stop, cuts the socket, and so holds whatever
the server does. What is asked is not its affair.

A `Session` is a driver's connection, used by one thread at a time and waiting as long as it takes. `Held` lets another
thread end it at once, whatever the server does, without taking a connection from under the thread that uses it.

An `Engine` over a pool of sessions, whichever server it is: it holds every question to the limits, and keeps what does
not change.

A URL becomes an `Address` whose secrets stay in `url`. Nothing is opened here.

Rows until one of the limits is reached, each whole or not at all; of a value that is too long, its head.

The value where it says all that the text says, else the text: an object with one name twice stays as it was written. A
number that a float would round is a decimal, inside lists and objects too.

Its first line, without what is secret and without values: a conversion that fails quotes the value, and so would hand
out a column that is masked. What the question itself says may be repeated. Where every server means the same, it is
said in the same words.
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
    "Held",
    "NetworkEngine",
    "Pool",
    "Session",
    "encoded",
    "first_line",
    "late",
    "lost",
    "number",
    "real",
    "taken",
    "unreached",
    "whole",
    "without_data",
    "without_secrets",
    "written_json",
]

_Result = TypeVar("_Result")


class Session(Protocol):
    """Raises `QueryFailed`, after which it can be cleaned, or `SourceFailed`, after which it is of no use."""

    def begin(self, seconds: float, rows: int | None) -> None:
        """A transaction that only reads, with limits of the server's own, before each piece of work; `rows` that an
        answer takes, None for all."""
        ...

    def ask(self, question: Question, limits: Limits) -> Answer: ...

    def structure(self) -> Structure: ...

    def functions(self) -> Mapping[str, Stability]: ...

    def probe(self, limits: Limits) -> Probe: ...

    def clean(self) -> bool:
        """Ends what is going on and takes back whatever was done to the session; False where another is needed."""
        ...

    def interrupt(self) -> None:
        """Has the server stop, from another thread and by another connection; tries within seconds."""
        ...

    def fileno(self) -> int | None:
        """Of its socket, where it has one."""
        ...

    def close(self) -> None: ...


class Held:
    def __init__(self, session: Session) -> None:
        self.session = session
        number = session.fileno()
        # A copy of its own: the driver may close its number at any time, and another file take it.
        self._socket = None if number is None else socket.socket(fileno=os.dup(number))
        self._lock = Lock()
        self._is_busy = False
        self._is_severed = False

    def run(self, work: Callable[[Session], _Result]) -> _Result:
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
        """Ends it without waiting; who reads from it fails at once."""
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
"""What the name of a URL's parameter holds whose value is nobody's business."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    url: URL = field(repr=False)
    """Whole, with its password."""
    shown: str
    """For people: no user, no password, no query."""
    kind: Kind
    dialect: Dialect

    @classmethod
    def of(cls, where: str) -> "Address":
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
        """What no text may repeat, longest first."""
        named = [
            value
            for name, value in self.url.query.items()
            if isinstance(value, str) and any(part in name.lower() for part in _SECRET_PARTS)
        ]
        # SQLAlchemy lets a password be any object that becomes text.
        found = {str(self.url.password or ""), *named} - {""}
        return tuple(sorted(found, key=lambda secret: (-len(secret), secret)))


class Intake:
    def __init__(self, *, rows: int, cell: int, size: int) -> None:
        self._most_rows = rows
        self._most_characters = cell
        self._bytes_left = size
        self._rows: list[Row] = []
        self._cut_cells = 0

    def take(self, row: Sequence[Cell]) -> bool:
        """False for a row that has no room, so that there are more than were taken."""
        if len(self._rows) >= self._most_rows:
            return False
        short = tuple(self._short(cell) for cell in row)
        size = sum(map(_size, short))
        if size > self._bytes_left:
            return False
        self._bytes_left -= size
        self._cut_cells += sum(kept is not cell for kept, cell in zip(short, row, strict=True))
        self._rows.append(short)
        return True

    def _short(self, cell: Cell) -> Cell:
        return cell[: self._most_characters] if isinstance(cell, str) and len(cell) > self._most_characters else cell

    def answer(self, columns: tuple[str, ...], *, more: bool) -> Answer:
        return Answer(columns=columns, rows=tuple(self._rows), more=more, cut_cells=self._cut_cells)


def taken(columns: tuple[str, ...], rows: Iterable[Sequence[Cell]], most: int, limits: Limits) -> Answer:
    """As many of the rows as there is room for; of the rest only one is looked at."""
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
    """Infinity and NaN are no JSON."""
    value = float(text)
    return value if math.isfinite(value) else text


def number(text: str) -> Cell:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return text
    return value if value.is_finite() else text


def written_json(text: str) -> Cell:
    """Objects and arrays. A lone `null` would look like no value at all, and so scalars stay text."""
    if "\\ud" in text.lower():
        return text
    try:
        value: Json = json.loads(text, parse_float=_as_written, parse_constant=_refuse, object_pairs_hook=_distinct)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict | list) else text


def _as_written(text: str) -> float | Decimal:
    """A decimal where a float would lose a digit, or a zero that says how exact a number is."""
    value = float(text)
    return value if repr(value) == text else Decimal(text)


def _refuse(text: str) -> None:
    raise ValueError(text)


def _distinct(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("one name twice")
    return found


LOCKED = "another session holds a lock on it; ask again later"
REACH = "Check that the server runs and that host, port and TLS settings of the database's URL are right."


def first_line(text: str) -> str:
    """Drivers add the statement or a stack of hints below it."""
    return text.strip().partition("\n")[0].strip()


def without_secrets(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, "…")
    return text


def late() -> DeadlinePassed:
    return DeadlinePassed("the database ended the statement when its time was up")


def lost() -> SourceFailed:
    return SourceFailed("the connection to the database was lost before the answer came", suggestion="ask again")


def unreached(shown: str, said: str, suggestion: str) -> SourceFailed:
    return SourceFailed(f"`{shown}` cannot be reached: {said}", suggestion=suggestion)


def encoded(sql: str) -> bytes:
    try:
        return sql.encode()
    except UnicodeEncodeError:
        raise QueryFailed("the statement holds half a character", suggestion="leave it out") from None


_GRACE = 0.25
"""Seconds beyond a deadline in which the server is told to stop, and after an answer to clean up."""
_IDLE_SECONDS = 60.0
"""Longer, and something between here and the server may have forgotten the connection."""


class Pool:
    def __init__(self, opener: Callable[[float], Session], *, size: int, shown: str) -> None:
        self._opener = opener
        """Given the seconds in which to give up."""
        self._shown = shown
        self._slots = anyio.Semaphore(size)
        # Threads are bounded by the slots; the process's own limit is for work that ends by itself.
        self._threads = anyio.CapacityLimiter(math.inf)
        self._idle: list[tuple[Held, float]] = []
        self._is_closed = False

    async def use(self, work: Callable[[Session], _Result], *, seconds: float, rows: int | None) -> _Result:
        try:
            with anyio.fail_after(seconds) as scope:
                async with self._slots:
                    held = await self._begun(rows, scope.deadline)
                    return await self._worked(held, work)
        except (TimeoutError, DeadlinePassed):
            raise DeadlinePassed(
                f"`{self._shown}` had not answered after {seconds:g} seconds",
                suggestion="ask for less: filter by an indexed column, aggregate, or look at the plan by EXPLAIN",
            ) from None

    async def _begun(self, rows: int | None, deadline: float) -> Held:
        """A connection of the idle may have died since; nothing was asked over it yet, so that another does."""
        while held := self._kept():
            try:
                return await self._begin(held, rows, deadline)
            except SourceFailed:
                continue
        return await self._begin(await self._opened(deadline), rows, deadline)

    async def _begin(self, held: Held, rows: int | None, deadline: float) -> Held:
        seconds = _seconds_left(deadline)
        try:
            await self._working(held, lambda session: session.begin(seconds, rows))
        except QueryFailed:
            held.sever()
            raise
        return held

    def _kept(self) -> Held | None:
        if self._is_closed:
            raise SourceFailed(f"`{self._shown}` is closed")
        now = anyio.current_time()
        while self._idle:
            held, since = self._idle.pop()
            if now - since < _IDLE_SECONDS:
                return held
            held.sever()
        return None

    async def _opened(self, deadline: float) -> Held:
        opening = _Opening(self._opener, _seconds_left(deadline))
        try:
            return await self._in_thread(opening.run)
        except BaseException:
            opening.abandon()
            raise

    async def _worked(self, held: Held, work: Callable[[Session], _Result]) -> _Result:
        try:
            result = await self._working(held, work)
        except QueryFailed:
            await self._put_back(held)
            raise
        await self._put_back(held)
        return result

    async def _working(self, held: Held, work: Callable[[Session], _Result]) -> _Result:
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

    async def _put_back(self, held: Held) -> None:
        with anyio.move_on_after(_GRACE, shield=True):
            if await self._working(held, lambda session: session.clean()) and not self._is_closed:
                self._idle.append((held, anyio.current_time()))
                return
        held.sever()

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)

    async def close(self) -> None:
        """What is being answered is answered; its connection ends after it."""
        self._is_closed = True
        while self._idle:
            self._idle.pop()[0].sever()


def _seconds_left(deadline: float) -> float:
    return max(0.001, deadline - anyio.current_time())


class _Opening:
    """A connection that is being opened, for whom nobody may wait any more when it is there."""

    def __init__(self, opener: Callable[[float], Session], seconds: float) -> None:
        self._opener = opener
        self._seconds = seconds
        self._lock = Lock()
        self._held: Held | None = None
        self._is_abandoned = False

    def run(self) -> Held:
        held = Held(self._opener(self._seconds))
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
