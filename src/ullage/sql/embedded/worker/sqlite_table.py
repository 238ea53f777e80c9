"""How is a result that lies in memory asked by SQL?

As the only table of a database that has no file, made anew for each question, then locked as a file is.
"""

import sqlite3

from .answering import Send
from .asked import Asked, Message
from .failure import Failure
from .source import Described
from .sqlite_failure import failing_as_sqlite
from .sqlite_file import asked_of
from .sqlite_locks import lock, set_clock, set_memory

__all__ = ["SqliteTable"]


class SqliteTable:
    file_bytes = 0

    def __init__(self, *, memory: int) -> None:
        self._memory = memory
        self._connection: sqlite3.Connection | None = None
        self._insert = ""
        self._failure: Failure | None = None
        """Of the loading; told when the question comes."""

    def take(self, message: Message) -> None:
        try:
            with failing_as_sqlite(""):
                self._begin(message["columns"]) if message["do"] == "begin" else self._load(message["rows"])
        except Failure as failure:
            self._failure = self._failure or failure

    def ask(self, message: Message, send: Send) -> None:
        asked = Asked.read(message)
        try:
            self._ask(asked, send)
        finally:
            self._forget()

    def structure(self, message: Message) -> Described:
        raise Failure("query", f"a table does not take `{message['do']}`")

    def functions(self, message: Message) -> dict[str, str]:
        raise Failure("query", f"a table does not take `{message['do']}`")

    def _begin(self, columns: list[str]) -> None:
        self._forget()
        self._connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
        set_memory(self._connection, self._memory)
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        self._connection.execute(f"CREATE TABLE result ({names})")
        self._insert = f"INSERT INTO result VALUES ({', '.join('?' * len(columns))})"
        self._connection.execute("BEGIN")

    def _load(self, rows: list[list[object]]) -> None:
        if self._connection is not None and self._failure is None:
            self._connection.executemany(self._insert, rows)

    def _ask(self, asked: Asked, send: Send) -> None:
        if self._failure is not None or self._connection is None:
            raise self._failure or Failure("query", "there is no table to ask")
        with failing_as_sqlite(""):
            self._connection.execute("COMMIT")
            set_clock(self._connection, asked.deadline)
            lock(self._connection)
            asked_of(self._connection, asked, send)

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._failure = None, None
