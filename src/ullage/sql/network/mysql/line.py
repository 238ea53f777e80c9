"""Which of the driver's inner workings do we need?

A reset of the session, the number of the socket, and a way to leave rows unread: the driver would read all of them.
"""

from collections.abc import Callable
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import SSCursor

__all__ = ["Line", "Unread"]

_RESET_CONNECTION = 0x1F


class Line(Connection):
    """A connection of the driver."""

    _execute_command: Callable[[int, bytes], None]
    _read_ok_packet: Callable[[], object]
    _sock: Any
    server_version: str

    def reset(self) -> None:
        self._execute_command(_RESET_CONNECTION, b"")
        self._read_ok_packet()

    def choose(self, database: str) -> None:
        driver: Any = self
        driver.select_db(database)

    def end(self, other: "Line") -> None:
        """Of another connection of the same user: what it runs, and itself."""
        driver: Any = self
        driver.kill(other.number())

    def number(self) -> int:
        driver: Any = self
        return driver.thread_id()

    def fileno(self) -> int:
        return self._sock.fileno()


class Unread(SSCursor):
    """A cursor whose rows are still at the server."""

    _result: Any
    connection: Any

    def run(self, sql: bytes) -> None:
        driver: Any = self
        driver.execute(sql)

    def shapes(self) -> list[tuple[int, int]]:
        """Of each column its type and its character set; none for a statement without rows."""
        return [(field.type_code, field.charsetnr) for field in self._result.fields] if self.description else []

    def is_reading(self) -> bool:
        return self._result is not None and self._result.unbuffered_active

    def leave(self) -> None:
        """For a connection that is of no more use."""
        if self._result is not None:
            self._result.unbuffered_active = False
            self._result.has_next = False
        self.connection = None
