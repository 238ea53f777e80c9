"""What holds a SQLite connection to reading, and to measure?

Read-only by SQLite's own switches, with every step of a statement judged, every size bounded, and a clock that is
looked at while it works. One call that takes long in itself cannot be ended from inside; the process can.
"""

import contextlib
import sqlite3
import time

from .sqlite_allowed import TOUCHED, is_allowed

__all__ = ["lock", "set_clock", "set_memory"]

_STEPS = 20_000
"""Of SQLite's machine between two looks at the clock."""

_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1 << 27,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 2_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 1_000,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 500,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 1_000_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 127,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 5_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 100,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}

_SWITCHES = ("query_only=ON", "trusted_schema=ON", "cell_size_check=ON", "temp_store=MEMORY", "mmap_size=0")
"""Views may use JSON functions and full-text tables, which an untrusted schema may not: every function in a view is
judged by `_authorize` as those of a statement are."""


def set_memory(connection: sqlite3.Connection, most: int) -> None:
    """Holds for the whole process, wherever the system's own limit does not."""
    connection.execute(f"PRAGMA hard_heap_limit={most}")


def set_clock(connection: sqlite3.Connection, deadline: float) -> None:
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)


def lock(connection: sqlite3.Connection) -> None:
    """From here on the connection reads one moment of the database, and does nothing else."""
    for switch in _SWITCHES:
        connection.execute(f"PRAGMA {switch}")
    for limit, value in _LIMITS.items():
        connection.setlimit(limit, value)
    _touch(connection)
    connection.execute("BEGIN")
    connection.set_authorizer(_authorize)


def _authorize(action: int, first: str | None, second: str | None, _database: str | None, _within: str | None) -> int:
    return sqlite3.SQLITE_OK if is_allowed(action, first, second) else sqlite3.SQLITE_DENY


def _touch(connection: sqlite3.Connection) -> None:
    made_here = connection.execute("SELECT name FROM sqlite_master WHERE type='table' AND sql LIKE 'CREATE VIRTUAL%'")
    names = [row[0] for row in made_here.fetchall()]
    for name in (*TOUCHED, *names):
        quoted = name.replace('"', '""')
        # An older SQLite has not all of them, and a table whose module is not here cannot be read in any case.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute(f'SELECT 1 FROM "{quoted}" LIMIT 0')
