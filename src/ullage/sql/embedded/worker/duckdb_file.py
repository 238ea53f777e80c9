"""How is a DuckDB file read?

By a database opened anew for each question, read-only, with nothing outside it within reach and no setting left to
change. Two statements are refused, and so is any that is not of a reading kind. DuckDB lets nobody read a file while
another process writes it.
"""

import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import duckdb

from .answering import Send, answer
from .asked import Asked, Message
from .duckdb_allowed import refuse_unless_reading
from .duckdb_failure import failing_as_duckdb
from .duckdb_structure import functions, structure
from .duckdb_zones import ZONES
from .failure import Failure
from .plain_file import refuse_unless_file
from .source import Described

__all__ = ["DuckdbFile"]

_SHARE = 0.6
"""Of the process's memory that DuckDB may plan with; it does not count all that it takes."""

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",
    "python_scan_all_frames": "false",
    "temp_directory": "",
    "threads": "2",
    "lock_configuration": "true",
}


class DuckdbFile:
    file_bytes = 0

    def __init__(self, path: str, *, memory: int) -> None:
        self._path = path
        # DuckDB asks this package for time zones, and fails where it is not installed.
        sys.modules["pytz"] = ZONES
        self._settings = {"memory_limit": f"{int(memory * _SHARE) >> 20}MiB", **_SETTINGS}

    def ask(self, message: Message, send: Send) -> None:
        asked = Asked.read(message)
        with self._opened(asked.deadline) as connection:
            statement = refuse_unless_reading(asked.sql, connection.extract_statements)
            connection.execute(statement)
            columns = [column[0] for column in connection.description or ()]
            answer(columns, iter(connection.fetchone, None), asked, send)

    def structure(self, message: Message) -> Described:
        with self._opened(time.monotonic() + message["seconds"]) as connection:
            return structure(connection)

    def functions(self, message: Message) -> dict[str, str]:
        with self._opened(time.monotonic() + message["seconds"]) as connection:
            return functions(connection)

    def take(self, message: Message) -> None:
        raise Failure("query", f"a file does not take `{message['do']}`")

    @contextmanager
    def _opened(self, deadline: float) -> Generator[duckdb.DuckDBPyConnection]:
        refuse_unless_file(self._path)
        with failing_as_duckdb(self._path):
            connection = duckdb.connect(self._path, read_only=True, config=self._settings)
            clock = threading.Timer(max(0.0, deadline - time.monotonic()), connection.interrupt)
            clock.daemon = True
            clock.start()
            try:
                connection.execute("BEGIN TRANSACTION READ ONLY")
                yield connection
            finally:
                clock.cancel()
                connection.close()
