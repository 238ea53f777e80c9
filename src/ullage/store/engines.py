"""How is each kind of database opened so that many processes can use it side by side?

An engine whose transactions mean the same on both kinds: one that reads sees one moment, one that writes is alone or
waits, and neither waits longer than `patience`. What is in the database is not known here.
"""

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from ullage.errors import StoreFailed

from .address import Address

__all__ = ["CONNECTIONS", "open_engine", "reader", "writer"]

CONNECTIONS = 4
"""Open at once, at most, by one process."""
_PAUSE = 0.02


def open_engine(address: Address, *, patience: float) -> Engine:
    if address.path is None:
        return _postgresql(address, patience)
    _make_file(address.path)
    _use_write_ahead_log(address.path, patience)
    return _sqlite(address, patience)


def reader(engine: Engine) -> Engine:
    """The same engine for transactions that only read."""
    if engine.dialect.name == "sqlite":
        return engine.execution_options(begin="BEGIN")
    return engine.execution_options(isolation_level="REPEATABLE READ")


def writer(engine: Engine) -> Engine:
    """The same engine for transactions that write. SQLite would otherwise take its lock at the first write, where
    another writer since the first read is an error that no waiting mends."""
    return engine.execution_options(begin="BEGIN IMMEDIATE") if engine.dialect.name == "sqlite" else engine


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


def _sqlite(address: Address, patience: float) -> Engine:
    engine = create_engine(
        address.url,
        connect_args={"timeout": patience},
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=patience,
        hide_parameters=True,
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    # Python's driver begins transactions by itself, late and never for DDL, unless it is told not to.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))


def _postgresql(address: Address, patience: float) -> Engine:
    try:
        import psycopg  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise StoreFailed(
            f"`{address.shown}` needs a driver that is not installed", suggestion="pip install 'ullage[postgresql]'"
        ) from error
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

    def bound_waiting(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        with closing(connection.cursor()) as cursor:
            cursor.execute(f"SET lock_timeout = {round(patience * 1000)}")
        connection.commit()

    event.listen(engine, "connect", bound_waiting)
    return engine
