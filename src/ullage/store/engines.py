"""Engines that open connections so that many processes can use a database side by side.

Transactions mean the same on both kinds: one that reads sees one moment, one that writes is alone or waits, and neither
waits longer than `patience`. What is in the database is not known here.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ullage.errors import StoreFailed

from .address import Address
from .connection import Connection, PostgresConnection, SqliteConnection

if TYPE_CHECKING:
    import sqlalchemy
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.pool import ConnectionPoolEntry

__all__ = ["CONNECTIONS", "Engine", "open_engine"]

CONNECTIONS = 4
"""Open at once, at most, by one process."""
_PAUSE = 0.02


class Engine(Protocol):
    """Opens transactions. Safe to use from several threads."""

    def begin(self, *, writing: bool) -> AbstractContextManager[Connection]:
        """A transaction that is committed at its end, and undone where that is an exception."""
        ...

    def close(self) -> None:
        """Closes every connection that is not in use; calling twice is harmless."""
        ...


def open_engine(address: Address, *, patience: float) -> Engine:
    if address.path is None:
        return _PostgresEngine(_postgresql(address, patience))
    _make_file(address.path)
    _use_write_ahead_log(address.path, patience)
    return _SqliteEngine(address.path, patience)


def _make_file(path: Path) -> None:
    """Makes folder and file for their owner alone. An existing file is not touched: to open and close it here would
    drop the locks that this process may already hold on it."""
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _use_write_ahead_log(path: Path, patience: float) -> None:
    """The mode stays with the file. To change it SQLite wants the file for itself and does not wait for that, so that
    of several processes starting together all but one must try again."""
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
    """A few connections to a file, each used by one thread at a time."""

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
                # SQLite would otherwise take its lock at the first write, where another writer since the first read is
                # an error that no waiting mends.
                connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
                yield SqliteConnection(connection)
                connection.execute("COMMIT")
            except BaseException:
                self._undo(connection)
                raise
            self._idle.append(connection)
        finally:
            self._free.release()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _connect(self) -> sqlite3.Connection:
        # Python's driver begins transactions by itself, late and never for DDL, unless it is told not to.
        connection = sqlite3.connect(self._path, timeout=self._patience, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _undo(self, connection: sqlite3.Connection) -> None:
        """A connection that cannot even undo is not used again."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                connection.close()
        else:
            self._idle.append(connection)


class _PostgresEngine:
    """SQLAlchemy's engine."""

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
