"""How are MySQL and MariaDB asked?

One statement, as the connection takes no second one, in a transaction that only reads, is always rolled back, and whose
session is reset after it. Rows come one at a time, so that as much is held as is kept.
"""

import math
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pymysql

from ullage.errors import QueryFailed, SourceFailed
from ullage.table import Row

from ...engine import Answer, Limits, Probe, Question, Stability
from ...quoting import quoted
from ...statement_texts import showing_views
from ...structure import Structure
from ..address import Address
from ..intake import taken
from ..wording import encoded
from .catalogue import merged_tables, structure
from .cells import cell
from .failure import about_question, not_opened
from .line import Line, Unread
from .options import connect_options
from .queries import FUNCTIONS, VIEWS, structure_queries
from .rights import RIGHTS, probe

__all__ = ["MySQLSession"]

_KILL_SECONDS = 5
_ENOUGH = 2**31
"""Characters of a catalogue's value: all."""
_MODE = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,IGNORE_SPACE"
"""Without ANSI_QUOTES, NO_BACKSLASH_ESCAPES and ORACLE, so that the server reads a text as the parser did that judged
it; and so that `SUM (x)` is the server's own function and none that somebody stored under its name."""


class MySQLSession:
    def __init__(self, line: Line, address: Address) -> None:
        self._line = line
        self._address = address
        self._cursor: Unread | None = None
        self._is_mariadb = "mariadb" in line.server_version.lower()
        self._is_broken = False

    @classmethod
    def open(cls, address: Address, seconds: float) -> "MySQLSession":
        return cls(_connected(address, seconds), address)

    def begin(self, seconds: float, rows: int | None) -> None:
        whole = max(1, math.ceil(seconds))
        limit = f"max_statement_time = {seconds:.3f}" if self._is_mariadb else f"max_execution_time = {whole * 1000}"
        most = "DEFAULT" if rows is None else str(rows + 1)
        self._run(
            f"SET NAMES utf8mb4, sql_mode = '{_MODE}', {limit}, sql_select_limit = {most}, "
            f"lock_wait_timeout = {whole}, innodb_lock_wait_timeout = {whole}"
        )
        # What commits by itself, such as DDL, does so before it is looked at; the session's own mode holds it then.
        self._run("SET SESSION TRANSACTION READ ONLY")
        self._run("START TRANSACTION READ ONLY")

    def ask(self, question: Question, limits: Limits) -> Answer:
        with self._failing(question.sql):
            cursor = self._execute(question.sql)
            columns = tuple(str(column[0]) for column in cursor.description or ())
            return taken(columns, _rows(cursor, limits.cell), question.rows, limits)

    def structure(self) -> Structure:
        (database,) = self._read("SELECT DATABASE()")[0]
        queries = structure_queries(all_databases=database is None, is_mariadb=self._is_mariadb)
        found = {name: self._read(sql) for name, sql in queries.items()}
        created = {place: self._created(*place) for place in merged_tables(found)}
        return structure(found, database, created)

    def _created(self, schema: str, name: str) -> str:
        """The statement that makes a table; empty where the server cannot tell, as where a part of it is gone."""
        try:
            rows = self._read(f"SHOW CREATE TABLE {quoted('mysql', schema)}.{quoted('mysql', name)}")
        except QueryFailed:
            return ""
        return str(rows[0][1])

    def functions(self) -> Mapping[str, Stability]:
        """Only those that users made: the server has no list of its own."""
        made: dict[str, Stability] = {str(name): "made" for (name,) in self._read(FUNCTIONS)}
        views = self._read(VIEWS)
        shown = showing_views((str(name), str(text)) for _, name, text, _ in views)
        for schema, name, _, is_here in views:
            for spelled in (f"{schema}.{name}", *([name] if is_here else [])):
                made |= {f"shows:{spelled}": "made"} if name in shown else {}
        return made

    def probe(self, limits: Limits) -> Probe:
        return probe({name: self._read(sql) for name, sql in RIGHTS.items()}, limits)

    def _read(self, sql: str) -> list[Row]:
        with self._failing(sql):
            return list(_rows(self._execute(sql), _ENOUGH))

    def _run(self, sql: str) -> None:
        with self._failing(sql):
            self._execute(sql)

    def _execute(self, sql: str) -> Unread:
        self._cursor = Unread(self._line)
        self._cursor.run(encoded(sql))
        return self._cursor

    @contextmanager
    def _failing(self, sql: str) -> Generator[None]:
        try:
            yield
        except pymysql.err.Error as error:
            raise about_question(error, sql) from None
        except RuntimeError:
            # The driver's word for a server that asks for a file of this machine; it waits for the file now.
            self._is_broken = True
            raise QueryFailed("a LOAD DATA LOCAL is not answered", suggestion="use SELECT") from None

    def clean(self) -> bool:
        if self._is_broken:
            return False
        try:
            if self._cursor is not None and self._cursor.is_reading() and self._cursor.fetchone() is not None:
                self.interrupt()
                return False
            self._line.rollback()
            self._line.reset()
            return self._is_where_it_was()
        except (pymysql.err.Error, QueryFailed, SourceFailed):
            return False

    def _is_where_it_was(self) -> bool:
        """A reset leaves the database that USE chose; without one of its own there is no way back."""
        if self._address.url.database:
            self._line.choose(self._address.url.database)
            return True
        return self._read("SELECT DATABASE()") == [(None,)]

    def interrupt(self) -> None:
        with suppress(pymysql.err.Error, SourceFailed):
            other = _connected(self._address, _KILL_SECONDS)
            try:
                other.end(self._line)
            finally:
                other.close()

    def fileno(self) -> int:
        return self._line.fileno()

    def close(self) -> None:
        if self._cursor is not None:
            self._cursor.leave()
        with suppress(pymysql.err.Error):
            self._line.close()


def _connected(address: Address, seconds: float) -> Line:
    options: dict[str, Any] = connect_options(address.url)
    try:
        return Line(
            **options,
            client_flag=0,
            local_infile=False,
            autocommit=True,
            use_unicode=False,
            conv={},
            connect_timeout=max(1, math.ceil(seconds)),
            program_name="ullage",
        )
    except (pymysql.err.Error, OSError, ValueError) as error:
        # The cause is dropped: it may know the password.
        raise not_opened(error, address) from None


def _rows(cursor: Unread, most: int) -> Iterator[Row]:
    shapes = cursor.shapes()
    while shapes and (row := cursor.fetchone()) is not None:
        yield tuple(cell(raw, *shape, most) for raw, shape in zip(row, shapes, strict=True))
