"""Connections to the store, a SQLite file or a PostgreSQL server, with one interface for both.

A path or a URL becomes an `Address`. Its secrets stay in `url`; `shown` is safe to display. Creating an address opens
nothing.

Statements are plain SQL that SQLite and PostgreSQL both accept, with parameters written as `:name`. SQLite is used
through Python's own driver: SQLAlchemy takes a sixth of a second to import, and most stores are a file. Connections to
PostgreSQL use SQLAlchemy, which handles the driver's peculiarities and lost connections.

Engines open connections in such a way that many processes can use a database side by side. Transactions mean the same
on both kinds: one that reads sees a single moment, one that writes is alone or waits, and neither waits longer than
`patience`. This module does not depend on the contents of the database.

Every error of a driver becomes one `StoreFailed` that names the place and the remedy. Nothing is retried here.

Times are seconds since 1970 in UTC. JSON is stored as ASCII text written by `json.dumps`, so that halves of surrogate
pairs, NUL and non-finite numbers survive; plain text columns lose those, and are meant for display.
"""

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ullage.errors import BadConfiguration, StoreFailed
from ullage.thread_pacing import pause_thread

if TYPE_CHECKING:
    import sqlalchemy
    from sqlalchemy import URL
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.pool import ConnectionPoolEntry

__all__ = [
    "CONNECTIONS",
    "Address",
    "Answer",
    "Connection",
    "Engine",
    "PostgresConnection",
    "SqliteConnection",
    "Values",
    "failing_as_store",
    "in_list",
    "moment",
    "open_engine",
    "read_url",
    "seconds",
    "storable",
    "upsert",
]

_FILE = "sqlite:///"
_ACCEPTED = ("a path", "sqlite:///path", "postgresql://user@host/database")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The location of a store."""

    shown: str
    """Safe to display: without password and query."""
    url: "URL | None" = field(default=None, repr=False)
    """The whole URL with its password; None for a file."""
    path: Path | None = None
    """The path of the file, for SQLite."""

    @classmethod
    def of(cls, where: str | Path) -> "Address":
        if isinstance(where, Path) or "://" not in where:
            return _file(Path(where))
        if where.startswith(_FILE) and "?" not in where and where not in (_FILE, f"{_FILE}:memory:"):
            return _file(Path(where.removeprefix(_FILE)))  # without SQLAlchemy, which takes long to import
        url = read_url(where, _ACCEPTED)
        match url.get_backend_name():
            case "sqlite" if url.database and url.database != ":memory:":
                return _file(Path(url.database))
            case "postgresql" | "postgres":
                return _server(url.set(drivername="postgresql+psycopg"))
            case other:
                raise BadConfiguration(f"`{other}` is not a database that can be used as the store", options=_ACCEPTED)


def read_url(where: str, accepted: tuple[str, ...]) -> "URL":
    """Parse a URL.

    Raises:
        BadConfiguration: The text is not a URL; the message lists the accepted forms.
    """
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(where)
    except (ArgumentError, ValueError):
        # The cause is dropped: it may quote a part of the URL, and with it the password.
        raise BadConfiguration(
            "the database's URL cannot be read as one",
            suggestion="Write special characters of its password as %xx.",
            options=accepted,
        ) from None


def _file(path: Path) -> Address:
    path = path.expanduser().absolute()
    return Address(shown=str(path), path=path)


def _server(url: "URL") -> Address:
    from sqlalchemy import URL

    shown = URL.create("postgresql", host=url.host, port=url.port, database=url.database)
    return Address(url=url, shown=shown.render_as_string())


_ROWS = 250
"""Rows that are read or written between two pauses of a worker thread: SQLite releases the interpreter for each row,
but not for long enough for another thread to take it."""

Values = Mapping[str, object]
Kind = Literal["sqlite", "postgresql"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of a statement, all of them fetched."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    rowcount: int
    """Number of rows that were changed."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def all(self) -> list[tuple[Any, ...]]:
        return list(self.rows)

    def mappings(self) -> list[dict[str, Any]]:
        """Return the rows as mappings from column names to values."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def first(self) -> dict[str, Any] | None:
        return dict(zip(self.columns, self.rows[0], strict=True)) if self.rows else None

    def one(self) -> tuple[Any, ...]:
        (row,) = self.rows
        return row


class Connection(Protocol):
    """A connection in a transaction."""

    @property
    def kind(self) -> Kind: ...

    def execute(self, sql: str, values: Values | Sequence[Values] = ()) -> Answer:
        """Run a statement once, or once for each set of values."""
        ...

    def scalar(self, sql: str, values: Values | None = None) -> Any:  # noqa: ANN401 - the type of the column
        """Return the first column of the first row; None if there is no row."""
        ...


@dataclass(frozen=True, slots=True)
class SqliteConnection:
    """A connection to a SQLite file, in a transaction."""

    inner: sqlite3.Connection

    @property
    def kind(self) -> Kind:
        return "sqlite"

    def execute(self, sql: str, values: Values | Sequence[Values] = ()) -> Answer:
        if not isinstance(values, Mapping) and values:
            return self._execute_many(sql, values)
        cursor = self.inner.execute(sql, values)
        columns = tuple(column[0] for column in cursor.description or ())
        rows = cursor.fetchmany(_ROWS)
        while rows and len(rows) % _ROWS == 0 and (more := cursor.fetchmany(_ROWS)):
            rows += more
            pause_thread()
        return Answer(columns, rows, cursor.rowcount)

    def _execute_many(self, sql: str, values: Sequence[Values]) -> Answer:
        changed = 0
        for start in range(0, len(values), _ROWS):
            if start:
                pause_thread()
            changed += self.inner.executemany(sql, values[start : start + _ROWS]).rowcount
        return Answer((), (), changed)

    def scalar(self, sql: str, values: Values | None = None) -> Any:  # noqa: ANN401
        row = self.inner.execute(sql, values or {}).fetchone()
        return None if row is None else row[0]


@dataclass(frozen=True, slots=True)
class PostgresConnection:
    """A connection to a PostgreSQL server, in a transaction."""

    inner: "sqlalchemy.Connection"

    @property
    def kind(self) -> Kind:
        return "postgresql"

    def execute(self, sql: str, values: Values | Sequence[Values] = ()) -> Answer:
        from sqlalchemy import text

        given = dict(values) if isinstance(values, Mapping) else [dict(each) for each in values]
        result = self.inner.execute(text(sql), given or None)
        if not result.returns_rows:
            return Answer((), (), result.rowcount)
        return Answer(tuple(result.keys()), [tuple(row) for row in result], result.rowcount)

    def scalar(self, sql: str, values: Values | None = None) -> Any:  # noqa: ANN401
        from sqlalchemy import text

        return self.inner.scalar(text(sql), dict(values or {}))


def in_list(name: str, values: Iterable[object]) -> tuple[str, dict[str, object]]:
    """Return the SQL that follows `IN`, and its parameters, which are named `name` plus a number."""
    named = {f"{name}_{number}": value for number, value in enumerate(values)}
    return f"({', '.join(f':{one}' for one in named)})", named


def upsert(table: str, columns: Sequence[str], *, key: str, update: Mapping[str, str] | None = None) -> str:
    """Return an `INSERT` of a row that may already exist.

    Args:
        table: The table.
        columns: The columns of the row.
        key: Columns that are unique together, separated by commas.
        update: The SQL of each new value of an existing row, in which `excluded` is the row being inserted. None leaves
            an existing row unchanged.
    """
    names, places = ", ".join(f'"{column}"' for column in columns), ", ".join(f":{column}" for column in columns)
    again = ", ".join(f'"{column}" = {value}' for column, value in (update or {}).items())
    return (
        f"INSERT INTO {table} ({names}) VALUES ({places}) "
        f"ON CONFLICT ({key}) DO {f'UPDATE SET {again}' if update else 'NOTHING'}"
    )


def seconds(time: datetime) -> float:
    """Return a time with a zone as seconds since 1970."""
    if time.tzinfo is None:
        raise ValueError("a time without a zone cannot be kept")
    return time.timestamp()


def moment(since_1970: float) -> datetime:
    """Return a number of seconds since 1970 as a time in UTC."""
    return datetime.fromtimestamp(since_1970, UTC)


def storable(text: str) -> str:
    """Return the text without characters that a text column refuses: NUL, and halves of surrogate pairs."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_HELD = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_CLOSED = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)


@contextmanager
def failing_as_store(address: Address) -> Generator[None]:
    """Convert the driver's errors to `StoreFailed`, which names the place and the remedy."""
    try:
        yield
    except Exception as error:
        cause = _cause_of(error)
        if cause is None:
            raise
        # Drivers append the statement or a list of hints below the first line.
        said = (str(cause).strip() or type(cause).__name__).splitlines()[0]
        raise StoreFailed(
            f"the database `{address.shown}` failed: {said}", suggestion=_remedy(address, cause)
        ) from error


def _cause_of(error: Exception) -> BaseException | None:
    """Return the driver's own error; None for an error that does not come from the database. SQLAlchemy is imported for
    PostgreSQL only, and cannot have raised an error before that."""
    if isinstance(error, sqlite3.Error | OSError):
        return error
    if "sqlalchemy" not in sys.modules:
        return None
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError

    if isinstance(error, DBAPIError) and error.orig is not None:
        return error.orig
    return error if isinstance(error, SQLAlchemyError) else None


def _remedy(address: Address, cause: BaseException) -> str:
    if address.path is None:
        return "Check that the PostgreSQL server answers and that its URL, user and password are right."
    # The low byte of SQLite's code is the kind; the rest says where in SQLite it arose.
    kind = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_CANTOPEN) & 0xFF
    if kind in _BROKEN:
        return f"Move it away (`mv '{address.path}' '{address.path}.broken'`) and restart: a new one is made."
    if kind in _HELD:
        return f"Another process locks it for too long; `fuser '{address.path}'` names it."
    if kind == sqlite3.SQLITE_FULL:
        return "Make room on the disk."
    if kind in _CLOSED:
        return "Check that its folder and file may be read and written, or name another place in the settings."
    return "Restart; if it happens again, move the file away."


CONNECTIONS = 4
"""Maximum number of connections that one process opens at the same time."""
_PAUSE = 0.02


class Engine(Protocol):
    """Opens transactions. Safe to use from several threads."""

    def begin(self, *, writing: bool) -> AbstractContextManager[Connection]:
        """Open a transaction that is committed at its end, and rolled back on an exception."""
        ...

    def close(self) -> None:
        """Close every connection that is not in use. Calling it twice is harmless."""
        ...


def open_engine(address: Address, *, patience: float) -> Engine:
    """Open an engine for a SQLite file, created if there is none, or for a PostgreSQL server."""
    if address.path is None:
        return _PostgresEngine(_postgresql(address, patience))
    # Creates folder and file readable by their owner only. An existing file is not touched: opening and closing it here
    # would drop the locks that this process may already have on it.
    path = address.path
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    _use_write_ahead_log(address.path, patience)
    return _SqliteEngine(address.path, patience)


def _use_write_ahead_log(path: Path, patience: float) -> None:
    """Switch the file to write-ahead logging, a mode that is stored in the file. SQLite needs exclusive access for the
    switch and does not wait for it, so when several processes start together, all but one must retry."""
    tries = max(1, round(patience / _PAUSE))
    for left in reversed(range(tries)):
        try:
            with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                return
        except sqlite3.OperationalError as error:
            if not left or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
        time.sleep(_PAUSE)


class _SqliteEngine:
    """A pool of a few connections to a file, each used by one thread at a time."""

    def __init__(self, path: Path, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        self._idle: list[sqlite3.Connection] = []

    @contextmanager
    def begin(self, *, writing: bool) -> Generator[SqliteConnection]:
        if not self._free.acquire(timeout=self._patience):
            raise sqlite3.OperationalError(f"every connection was in use for more than {self._patience:g} s")
        try:
            connection = self._idle.pop() if self._idle else self._connect()
            try:
                # SQLite would otherwise take its lock at the first write. If another process has written since the
                # first read, that fails with an error that waiting cannot resolve.
                connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
                yield SqliteConnection(connection)
                connection.execute("COMMIT")
            except BaseException:
                # A connection that cannot roll back is not used again.
                try:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                except sqlite3.Error:
                    with suppress(sqlite3.Error):
                        connection.close()
                else:
                    self._idle.append(connection)
                raise
            self._idle.append(connection)
        finally:
            self._free.release()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _connect(self) -> sqlite3.Connection:
        # By default Python's driver begins transactions by itself: late, and never for DDL.
        connection = sqlite3.connect(self._path, timeout=self._patience, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection


class _PostgresEngine:
    """An engine that wraps SQLAlchemy's."""

    def __init__(self, engine: "sqlalchemy.Engine") -> None:
        self._writer = engine
        self._reader = engine.execution_options(isolation_level="REPEATABLE READ")

    @contextmanager
    def begin(self, *, writing: bool) -> Generator[PostgresConnection]:
        with (self._writer if writing else self._reader).begin() as connection:
            yield PostgresConnection(connection)

    def close(self) -> None:
        self._writer.dispose()


def _postgresql(address: Address, patience: float) -> "sqlalchemy.Engine":
    from sqlalchemy import create_engine, event

    try:
        import psycopg  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise StoreFailed(
            f"`{address.shown}` needs a driver that is not installed", suggestion="pip install 'ullage[postgresql]'"
        ) from error
    assert address.url is not None, "a database that is no file has a URL"
    bounds = {
        "connect_timeout": max(2, round(patience)),
        "tcp_user_timeout": round(patience * 1000),
        "application_name": "ullage",
    }
    engine = create_engine(
        address.url,
        connect_args={name: value for name, value in bounds.items() if name not in address.url.query},
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=patience,
        pool_pre_ping=True,
        hide_parameters=True,
    )

    def bound_waiting(connection: "DBAPIConnection", _: "ConnectionPoolEntry") -> None:
        with closing(connection.cursor()) as cursor:
            cursor.execute(f"SET lock_timeout = {round(patience * 1000)}")
        connection.commit()

    event.listen(engine, "connect", bound_waiting)
    return engine
