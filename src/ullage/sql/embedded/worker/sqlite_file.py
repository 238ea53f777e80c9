"""How is a SQLite file read?

By a new connection for each question, under every lock. The file is never made, and never taken for one that nobody
else writes. A database in write-ahead-log mode needs its `-shm` file: SQLite makes that beside it where it is missing,
which is the one thing that can be written.
"""

import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager

from .answering import Send, answer
from .asked import Asked, Message
from .failure import Failure
from .plain_file import refuse_unless_file
from .source import Described
from .sqlite_failure import failing_as_sqlite
from .sqlite_functions import functions
from .sqlite_locks import lock, set_clock, set_memory
from .sqlite_structure import structure

__all__ = ["SqliteFile", "asked_of"]

_WAITED = 0.8
"""Of the time that is left, at most, for a lock that another holds; then there is time to say so."""


def _connect(uri: str, deadline: float, memory: int) -> sqlite3.Connection:
    patience = max(0.0, deadline - time.monotonic()) * _WAITED
    connection = sqlite3.connect(uri, uri=True, timeout=patience, isolation_level=None, cached_statements=0)
    connection.text_factory = _text
    set_memory(connection, memory)
    set_clock(connection, deadline)
    return connection


def asked_of(connection: sqlite3.Connection, asked: Asked, send: Send) -> None:
    with closing(connection.execute(asked.sql)) as cursor:
        columns = [column[0] for column in cursor.description or ()]
        answer(columns, cursor, asked, send)


class SqliteFile:
    file_bytes = 8 << 20
    """Of the `-shm` file, for a log of a million pages."""

    def __init__(self, path: str, *, uri: str, memory: int) -> None:
        self._path = path
        self._uri = f"{uri}?mode=ro"
        self._memory = memory

    def ask(self, message: Message, send: Send) -> None:
        asked = Asked.read(message)
        with self._opened(asked.deadline) as connection:
            asked_of(connection, asked, send)

    def structure(self, message: Message) -> Described:
        with self._opened(time.monotonic() + message["seconds"]) as connection:
            return structure(connection)

    def functions(self, message: Message) -> dict[str, str]:
        with self._opened(time.monotonic() + message["seconds"]) as connection:
            return functions(connection)

    def take(self, message: Message) -> None:
        raise Failure("query", f"a file does not take `{message['do']}`")

    @contextmanager
    def _opened(self, deadline: float) -> Generator[sqlite3.Connection]:
        refuse_unless_file(self._path)
        with failing_as_sqlite(self._path), closing(_connect(self._uri, deadline, self._memory)) as connection:
            lock(connection)
            yield connection


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
