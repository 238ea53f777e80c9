"""How is a DuckDB file read?

By a database opened anew for each question, read-only, with nothing outside it within reach and no setting left to
change. Two statements are refused, and so is any that is not of a reading kind. DuckDB lets nobody read a file while
another process writes it.
"""

import sys
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager

import duckdb

from .answering import Send, answer
from .asked import Asked
from .duckdb_allowed import refuse_unless_reading
from .duckdb_failure import failing_as_duckdb
from .duckdb_rendering import rendered
from .duckdb_structure import functions, structure
from .duckdb_zones import ZONES
from .plain_file import PlainFile
from .source import Source

__all__ = ["duckdb_file"]

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


def duckdb_file(path: str, *, memory: int) -> Source:
    # DuckDB asks this package for time zones, and fails where it is not installed.
    sys.modules["pytz"] = ZONES
    settings = {"memory_limit": f"{int(memory * _SHARE) >> 20}MiB", **_SETTINGS}

    @contextmanager
    def opened(deadline: float) -> Generator[duckdb.DuckDBPyConnection]:
        with failing_as_duckdb(path), closing(duckdb.connect(path, read_only=True, config=settings)) as connection:
            clock = threading.Timer(max(0.0, deadline - time.monotonic()), connection.interrupt)
            clock.daemon = True
            clock.start()
            try:
                connection.execute("BEGIN TRANSACTION READ ONLY")
                yield connection
            finally:
                clock.cancel()

    return PlainFile(
        path=path,
        file_bytes=0,
        opened=opened,
        asked_of=_asked_of,
        structure_of=structure,
        functions_of=functions,
    )


def _asked_of(connection: duckdb.DuckDBPyConnection, asked: Asked, send: Send) -> None:
    statement = refuse_unless_reading(asked.sql, connection.extract_statements)
    as_text = None
    if statement.type.name == "SELECT":
        # Binds the statement, and runs nothing.
        relation = connection.query(statement.query)
        as_text = rendered(statement.query, relation.columns, relation.types)
    connection.execute(statement if as_text is None else as_text)
    columns = [column[0] for column in connection.description or ()]
    answer(columns, iter(connection.fetchone, None), asked, send)
