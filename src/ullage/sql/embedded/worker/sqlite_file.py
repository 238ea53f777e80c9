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
from .asked import Asked
from .plain_file import PlainFile
from .source import Source
from .sqlite_failure import failing_as_sqlite
from .sqlite_functions import functions
from .sqlite_locks import lock, set_clock, set_memory
from .sqlite_structure import structure

__all__ = ["asked_of", "sqlite_file"]

_FILE_BYTES = 8 << 20
"""Of the `-shm` file, for a log of a million pages."""

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


def sqlite_file(path: str, *, uri: str, memory: int) -> Source:
    @contextmanager
    def opened(deadline: float) -> Generator[sqlite3.Connection]:
        with failing_as_sqlite(path), closing(_connect(f"{uri}?mode=ro", deadline, memory)) as connection:
            lock(connection)
            yield connection

    return PlainFile(
        path=path,
        file_bytes=_FILE_BYTES,
        opened=opened,
        asked_of=asked_of,
        structure_of=structure,
        functions_of=functions,
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
