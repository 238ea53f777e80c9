"""The engine for MySQL and MariaDB.

Each call runs one statement, since the connection accepts no second one, in a read-only transaction that is always
rolled back; the session is reset afterwards. Rows are fetched one at a time, so that only the rows that are kept use
memory.

The structure is read by a fixed number of queries, however many tables there are: of the URL's database, or of all if
it names none.

`probe` reports what `SHOW GRANTS` lists beyond reading, and the SQL for a user that can only read.

`cell` converts numbers and JSON to values and bytes to hexadecimal; everything else (dates such as `0000-00-00`, for
example) stays as the server writes it.

Driver options that weaken a lock (LOCAL INFILE, several statements, commands on connecting) cannot be set in the URL.

`DriverConnection` and `UnbufferedCursor` extend the driver by a session reset, the socket's number, and a way to leave
rows unread, since the driver would read all of them.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import SSCursor
from sqlalchemy import URL

from ullage.errors import BadConfiguration, QueryFailed, SourceFailed, UllageError
from ullage.table import Cell, Row

from ..database import (
    RAISED,
    Answer,
    Column,
    ForeignKey,
    Index,
    Limits,
    Probe,
    Question,
    Routine,
    Stability,
    Structure,
    Table,
    Trigger,
    in_order,
    quote_name,
    showing_views,
)
from .database_pool import (
    LOCKED,
    REACH,
    Address,
    encode_statement,
    first_line,
    late,
    lost_error,
    number,
    real,
    take_rows,
    unreachable_error,
    whole,
    without_data,
    without_secrets,
    written_json,
)

__all__ = [
    "FUNCTIONS",
    "INNER",
    "READER",
    "RIGHTS",
    "VIEWS",
    "DriverConnection",
    "MySQLSession",
    "UnbufferedCursor",
    "about_question",
    "cell",
    "connect_options",
    "merged_tables",
    "not_opened",
    "probe",
    "structure",
    "structure_queries",
]

_PRIMARY = "PRIMARY"
_UNION = re.compile(r"\bUNION=\((?P<names>(?:`(?:[^`]|``)+`[.,]?)+)\)")
_MERGED = ("MRG_MYISAM", "MERGE")
_ELSEWHERE = (*_MERGED, "FEDERATED", "CONNECT", "SPIDER", "OQGRAPH")
"""Storage engines whose tables show the rows of other tables."""
_Grouped = Mapping[tuple[Cell, ...], list[Row]]


def merged_tables(found: Mapping[str, list[Row]]) -> list[tuple[str, str]]:
    """Return database and name of the tables that show the rows of other tables of the server."""
    return [(str(row[0]), str(row[1])) for row in found["tables"] if str(row[6]).upper() in _MERGED]


def structure(found: Mapping[str, list[Row]], database: Cell, created: Mapping[tuple[str, str], str]) -> Structure:
    """Return the structure; `created` contains the CREATE statements of the `merged_tables`."""
    names = ("columns", "indexes", "foreign keys", "checks", "triggers")
    columns, indexes, keys, checks, triggers = (_group_rows(found[name], 2) for name in names)
    tables = [
        Table(
            name=str(name),
            schema=_schema(schema, database),
            kind="view" if kind == "VIEW" else "table",
            columns=tuple(map(_column, columns[schema, name])),
            primary_key=tuple(str(row[4]) for row in indexes[schema, name] if row[2] == _PRIMARY),
            foreign_keys=tuple(_foreign_key(rows, database) for rows in _parts(keys[schema, name])),
            indexes=tuple(
                Index(
                    name=str(rows[0][2]),
                    # An index over an expression has no column.
                    columns=tuple(_text(row[4]) or "(expression)" for row in rows),
                    unique=not rows[0][3],
                )
                for rows in _parts(indexes[schema, name])
                if rows[0][2] != _PRIMARY
            ),
            checks=tuple(f"CHECK ({row[3]})" for row in checks[schema, name]),
            triggers=tuple(
                Trigger(name=str(called), timing=_text(timing), event=_text(event), statement=_text(statement))
                for _, _, called, timing, event, statement in triggers[schema, name]
            ),
            rows=rows if isinstance(rows, int) and kind != "VIEW" else None,
            definition=_text(definition),
            # The server writes VIEW into the comment of every view.
            comment=None if kind == "VIEW" else _text(comment),
        )
        for schema, name, kind, rows, comment, definition, _ in found["tables"]
    ]
    elsewhere = {(str(row[0]), str(row[1])) for row in found["tables"] if str(row[6]).upper() in _ELSEWHERE}
    return Structure(
        tables=in_order(tables),
        routines=tuple(_routine(rows, database) for rows in _group_rows(found["routines"], 3).values()),
        name=_text(database),
        default_schema=_text(database),
        catalogue=_resolve_views(tables, elsewhere, created, str(database)),
    )


def _resolve_views(
    tables: Iterable[Table], elsewhere: set[tuple[str, str]], created: Mapping[tuple[str, str], str], database: str
) -> tuple[Table, ...]:
    """Return the tables, those that show other tables' rows as views; empty if there are no such tables."""
    if not elsewhere:
        return ()
    resolved: list[Table] = []
    for table in tables:
        place = table.schema or database, table.name
        if place not in elsewhere:
            resolved.append(table)
            continue
        # Its content as a query; None if it is unknown.
        found = _UNION.search(created.get(place, ""))
        names = re.findall(r"(?:`(?:[^`]|``)+`\.?)+", found["names"]) if found else []
        query = " UNION ALL ".join(f"SELECT * FROM {name}" for name in names) or None
        resolved.append(replace(table, kind="view", definition=query))
    return tuple(resolved)


def _group_rows(rows: Iterable[Row], width: int) -> _Grouped:
    grouped: defaultdict[tuple[Cell, ...], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row[:width]].append(row)
    return grouped


def _parts(rows: list[Row]) -> Iterable[list[Row]]:
    """Yield the rows of each index or key of a table."""
    return _group_rows(rows, 3).values()


def _column(row: Row) -> Column:
    _, _, name, kind, nullable, default, extra, comment, expression = row
    said = str(extra).lower()
    # Both servers put the kind of a generated column there; MySQL also uses it for a default that is an expression.
    computed = "virtual generated" in said or "stored generated" in said or _text(expression) is not None
    return Column(
        name=str(name),
        type=str(kind),
        nullable=nullable == "YES",
        # MariaDB writes the word if there is no default.
        default=None if default == "NULL" else _text(default),
        generated="auto_increment" in said or computed,
        computed=computed,
        expression=_text(expression),
        hidden="invisible" in said,
        comment=_text(comment),
    )


def _foreign_key(rows: list[Row], database: Cell) -> ForeignKey:
    _, _, name, _, other, table, _, on_update, on_delete = rows[0]
    schema = _schema(other, database)
    return ForeignKey(
        columns=tuple(str(row[3]) for row in rows),
        table=str(table) if schema is None else f"{schema}.{table}",
        to=tuple(str(row[6]) for row in rows),
        name=str(name),
        on_update=_text(on_update),
        on_delete=_text(on_delete),
    )


def _routine(rows: list[Row], database: Cell) -> Routine:
    schema, name, kind, *_ = rows[0]
    # The parameter at position 0 is the function's return value.
    named = [
        f"{mode} {parameter} {type_name}" if kind == "PROCEDURE" else f"{parameter} {type_name}"
        for _, _, _, position, mode, parameter, type_name in rows
        if isinstance(position, int) and position > 0
    ]
    returns = next((_text(row[6]) for row in rows if row[3] == 0), None)
    return Routine(
        name=str(name),
        kind="procedure" if kind == "PROCEDURE" else "function",
        schema=_schema(schema, database),
        arguments=", ".join(named),
        returns=returns,
    )


def _schema(schema: Cell, database: Cell) -> str | None:
    return None if schema == database else str(schema)


def _text(value: Cell) -> str | None:
    return None if value is None or value == "" else str(value)


# Numbers of the protocol's column types.
_WHOLE = (1, 2, 3, 8, 9, 13)
_REAL = (4, 5)
_DECIMAL = (0, 246)
_JSON = 245
_BIT = 16
_BYTES = (249, 250, 251, 252, 253, 254, 255)
"""Types that are also used for text; their character set tells which."""
_BINARY = 63

_READERS: dict[int, Callable[[str], Cell]] = {
    **dict.fromkeys(_WHOLE, whole),
    **dict.fromkeys(_REAL, real),
    **dict.fromkeys(_DECIMAL, number),
    _JSON: written_json,
}


def cell(raw: bytes | None, kind: int, character_set: int, most: int) -> Cell:
    """Return a value as a cell; one longer than `most` characters may be cut to text of at least `most` + 1."""
    if raw is None:
        return None
    if kind == _BIT:
        return int.from_bytes(raw, "big")
    if kind in _BYTES and character_set == _BINARY:
        return "0x" + raw[: most // 2 + 1].hex()
    text = raw[: 4 * most + 4].decode("utf-8", "replace")
    reader = _READERS.get(kind)
    return text if reader is None or len(text) > most else reader(text)


_TIMED_OUT = frozenset({1969, 3024})
_GONE = frozenset({0, 1053, 1079, 1080, 1927, 2006, 2013, 2014, 2055, 4031})
_LOCKED = frozenset({1205, 1213})
_SIGNAL = 1644
"""The number of an error that SIGNAL raises, unless it names another."""
_LAST_OWN = 9_999
"""The largest number of an error of MySQL's and MariaDB's own."""
# Errors whose quoted words are names or part of the statement: unknown columns, tables and functions, rights, syntax.
_OF_NAMES = frozenset(
    {1044, 1046, 1049, 1052, 1054, 1055, 1060, 1064, 1066, 1109, 1140, 1142, 1143, 1146, 1222, 1227, 1235, 1247, 1248}
    | {1176, 1290, 1305, 1370, 1792, 4166}
)
_REMEDIES = {
    1045: "Check the user and the password in the database's URL.",
    1698: "Check the user and the password in the database's URL.",
    1044: "Check the name of the database in its URL, and that the user may use it.",
    1049: "Check the name of the database in its URL.",
    1040: "Wait for other clients to leave, or allow the server more connections.",
    1203: "Wait for other clients to leave, or allow the user more connections.",
    1226: "Wait for other clients to leave, or allow the user more connections.",
}


def about_question(error: "pymysql.err.Error", sql: str) -> UllageError:
    number = _number(error)
    if number in _TIMED_OUT:
        return late()
    if number is None or number in _GONE:
        return lost_error()
    said = first_line(_error_text(error))
    message = said if number in _OF_NAMES else without_data(said, sql, "'")
    if number == _SIGNAL or number > _LAST_OWN:
        message = RAISED + message
    return QueryFailed(f"{number}: {message}", suggestion=LOCKED if number in _LOCKED else "")


def not_opened(error: Exception, address: Address) -> UllageError:
    said = without_secrets(first_line(_error_text(error)), address.secrets)
    return unreachable_error(address.shown, said, _REMEDIES.get(_number(error) or 0, REACH))


def _error_text(error: BaseException) -> str:
    return str(error.args[-1]) if error.args else type(error).__name__


def _number(error: BaseException) -> int | None:
    """Return the error number: the server's, or one of the client's from 2000 on."""
    number = error.args[0] if error.args else None
    return number if isinstance(number, int) else None


_RESET_CONNECTION = 0x1F


class DriverConnection(Connection):
    """A connection of the driver."""

    _execute_command: Callable[[int, bytes], None]
    _read_ok_packet: Callable[[], object]
    _sock: Any
    server_version: str

    def reset(self) -> None:
        """Reset the session."""
        self._execute_command(_RESET_CONNECTION, b"")
        self._read_ok_packet()

    def choose(self, database: str) -> None:
        """Select a database."""
        driver: Any = self
        driver.select_db(database)

    def end(self, other: "DriverConnection") -> None:
        """Kill another connection of the same user and the statement it runs."""
        driver: Any = self
        driver.kill(other.number())

    def number(self) -> int:
        driver: Any = self
        return driver.thread_id()

    def fileno(self) -> int:
        return self._sock.fileno()


class UnbufferedCursor(SSCursor):
    """A cursor whose rows are not fetched in advance."""

    _result: Any
    connection: Any

    def run(self, sql: bytes) -> None:
        driver: Any = self
        driver.execute(sql)

    def shapes(self) -> list[tuple[int, int]]:
        """Return type and character set of each column; None for a statement without rows."""
        return [(field.type_code, field.charsetnr) for field in self._result.fields] if self.description else []

    def is_reading(self) -> bool:
        return self._result is not None and self._result.unbuffered_active

    def leave(self) -> None:
        """Drop the unread rows; the connection cannot be used afterwards."""
        if self._result is not None:
            self._result.unbuffered_active = False
            self._result.has_next = False
        self.connection = None


_TEXTS = frozenset({"unix_socket", "ssl_ca", "ssl_cert", "ssl_key", "ssl_key_password", "bind_address", "charset"})
_SWITCHES = frozenset({"ssl_disabled", "ssl_verify_cert", "ssl_verify_identity"})
_TRUE = frozenset({"1", "true", "yes", "on"})
_PORT = 3306


def connect_options(url: URL) -> dict[str, object]:
    options = dict[str, object]()
    for name, value in url.query.items():
        if isinstance(value, str) and name in _TEXTS:
            option = value
        elif isinstance(value, str) and name in _SWITCHES:
            option = value.lower() in _TRUE
        else:
            raise BadConfiguration(
                f"`{name}` is not an option of a MySQL database here", options=tuple(sorted(_TEXTS | _SWITCHES))
            )
        options[name] = option
    return {
        **options,
        "host": url.host or "localhost",
        "port": url.port or _PORT,
        "user": url.username,
        # The driver would otherwise send text as Latin-1, while the server reads UTF-8.
        "password": str(url.password or "").encode(),
        "database": url.database or None,
        "charset": "utf8mb4",
    }


INNER = "('mysql', 'information_schema', 'performance_schema', 'sys')"
"""The server's own databases."""

# A call without a database refers to one of these if the server has no function of that name.
FUNCTIONS = """
SELECT DISTINCT lower(routine_name) FROM information_schema.routines
WHERE routine_type = 'FUNCTION' AND routine_schema = DATABASE()"""

# Views may show what the server hides only in its own tables.
VIEWS = f"""
SELECT lower(table_schema), lower(table_name), lower(view_definition), COALESCE(table_schema = DATABASE(), 0)
FROM information_schema.views WHERE table_schema NOT IN {INNER} AND view_definition IS NOT NULL"""

_TABLES = """
SELECT t.table_schema, t.table_name, t.table_type, t.table_rows, t.table_comment, v.view_definition, t.engine
FROM information_schema.tables t
LEFT JOIN information_schema.views v ON v.table_schema = t.table_schema AND v.table_name = t.table_name
WHERE t.table_schema {here} AND t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED', 'VIEW')
ORDER BY 1, 2"""

_COLUMNS = """
SELECT table_schema, table_name, column_name, column_type, is_nullable, column_default, extra, column_comment,
       generation_expression
FROM information_schema.columns WHERE table_schema {here} ORDER BY table_schema, table_name, ordinal_position"""

_INDEXES = """
SELECT table_schema, table_name, index_name, non_unique, column_name
FROM information_schema.statistics WHERE table_schema {here}
ORDER BY table_schema, table_name, index_name, seq_in_index"""

_FOREIGN_KEYS = """
SELECT k.table_schema, k.table_name, k.constraint_name, k.column_name, k.referenced_table_schema,
       k.referenced_table_name, k.referenced_column_name, r.update_rule, r.delete_rule
FROM information_schema.key_column_usage k JOIN information_schema.referential_constraints r
  ON r.constraint_schema = k.constraint_schema AND r.constraint_name = k.constraint_name AND r.table_name = k.table_name
WHERE k.table_schema {here} AND k.referenced_table_name IS NOT NULL
ORDER BY k.table_schema, k.table_name, k.constraint_name, k.ordinal_position"""

_CHECKS_OF_MARIADB = """
SELECT constraint_schema, table_name, constraint_name, check_clause
FROM information_schema.check_constraints WHERE constraint_schema {here} ORDER BY 1, 2, 3"""

_CHECKS_OF_MYSQL = """
SELECT t.table_schema, t.table_name, t.constraint_name, c.check_clause
FROM information_schema.table_constraints t JOIN information_schema.check_constraints c
  ON c.constraint_schema = t.constraint_schema AND c.constraint_name = t.constraint_name
WHERE t.table_schema {here} AND t.constraint_type = 'CHECK' ORDER BY 1, 2, 3"""

_TRIGGERS = """
SELECT event_object_schema, event_object_table, trigger_name, action_timing, event_manipulation, action_statement
FROM information_schema.triggers WHERE event_object_schema {here} ORDER BY 1, 2, 3"""

_ROUTINES = """
SELECT r.routine_schema, r.routine_name, r.routine_type, p.ordinal_position, p.parameter_mode, p.parameter_name,
       p.dtd_identifier
FROM information_schema.routines r LEFT JOIN information_schema.parameters p
  ON p.specific_schema = r.routine_schema AND p.specific_name = r.specific_name AND p.routine_type = r.routine_type
WHERE r.routine_schema {here} ORDER BY 1, 2, 3, 4"""


def structure_queries(*, all_databases: bool, is_mariadb: bool) -> dict[str, str]:
    here = f"NOT IN {INNER}" if all_databases else "= DATABASE()"
    queries = {
        "tables": _TABLES,
        "columns": _COLUMNS,
        "indexes": _INDEXES,
        "foreign keys": _FOREIGN_KEYS,
        "checks": _CHECKS_OF_MARIADB if is_mariadb else _CHECKS_OF_MYSQL,
        "triggers": _TRIGGERS,
        "routines": _ROUTINES,
    }
    return {name: sql.format(here=here) for name, sql in queries.items()}


READER = "ullage_reader"
_SPARE = 3
"""Connections per concurrent statement: one that is ending, one that is beginning, one to kill another."""
_READING = frozenset({"USAGE", "SELECT", "SHOW VIEW", "SHOW DATABASES"})
_GRANT = re.compile(r"GRANT (?P<rights>.+?) ON (?P<place>.+?) TO (?P<rest>.+)", re.DOTALL)
_ROLE = re.compile(r"GRANT (?P<roles>[^()]+?) TO .+", re.DOTALL)
_RIGHTS_COLUMNS = re.compile(r" ?\([^)]*\)")

RIGHTS = {
    "role": "SELECT CURRENT_USER()",
    "grants": "SHOW GRANTS",
    "databases": "SELECT schema_name FROM information_schema.schemata WHERE schema_name = DATABASE() "
    f"OR DATABASE() IS NULL AND schema_name NOT IN {INNER} ORDER BY 1",
}


def probe(found: Mapping[str, list[Row]], limits: Limits) -> Probe:
    said = [word for (grant,) in found["grants"] for word in _words(str(grant))]
    # In a grant, _ and % are wildcards.
    databases = [re.sub(r"([_%\\])", r"\\\1", str(name)).replace("`", "``") for (name,) in found["databases"]]
    lines = [
        "-- A user who can only read. Replace <password> by a password in quotes and % by this machine's address, and",
        "-- run this as an administrator.",
        f"CREATE USER '{READER}'@'%' IDENTIFIED BY <password> WITH MAX_USER_CONNECTIONS {_SPARE * limits.concurrency};",
        *(f"GRANT SELECT, SHOW VIEW ON `{name}`.* TO '{READER}'@'%';" for name in databases),
    ]
    return Probe(
        role=str(found["role"][0][0]),
        can_write=tuple(dict.fromkeys(said)),
        setup_sql="\n".join(lines) + "\n",
    )


def _words(grant: str) -> list[str]:
    found = _GRANT.fullmatch(grant)
    if found is None:
        # Neither rights nor a role, but the line that names the active role.
        role = _ROLE.fullmatch(grant)
        return [] if role is None else [f"may act as {role['roles']}"]
    named = [right.strip() for right in _RIGHTS_COLUMNS.sub("", found["rights"]).split(",")]
    writing = [right for right in named if right.upper() not in _READING]
    said = [f"may use {', '.join(writing)} on {found['place']}"] if writing else []
    return [*said, f"may grant its rights on {found['place']}"] if "WITH GRANT OPTION" in found["rest"] else said


_KILL_SECONDS = 5
_ENOUGH = 2**31
"""Characters of a catalogue value; enough for any."""
_MODE = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,IGNORE_SPACE"
"""SQL mode without ANSI_QUOTES, NO_BACKSLASH_ESCAPES and ORACLE, so that the server reads a statement as the parser
that judged it; and so that `SUM (x)` calls the server's own function and not a stored one of that name."""


class MySQLSession:
    """A connection to MySQL or MariaDB."""

    def __init__(self, line: DriverConnection, address: Address) -> None:
        self._line = line
        self._address = address
        self._cursor: UnbufferedCursor | None = None
        self._is_mariadb = "mariadb" in line.server_version.lower()
        self._is_broken = False

    @classmethod
    def open(cls, address: Address, seconds: float) -> "MySQLSession":
        return cls(_connect(address, seconds), address)

    def begin(self, seconds: float, rows: int | None) -> None:
        whole = max(1, math.ceil(seconds))
        limit = f"max_statement_time = {seconds:.3f}" if self._is_mariadb else f"max_execution_time = {whole * 1000}"
        most = "DEFAULT" if rows is None else str(rows + 1)
        self._run(
            f"SET NAMES utf8mb4, sql_mode = '{_MODE}', {limit}, sql_select_limit = {most}, "
            f"lock_wait_timeout = {whole}, innodb_lock_wait_timeout = {whole}"
        )
        # A statement that commits implicitly, such as DDL, ends the transaction before the server checks whether it may
        # write; the session's own mode then stops it.
        self._run("SET SESSION TRANSACTION READ ONLY")
        self._run("START TRANSACTION READ ONLY")

    def ask(self, question: Question, limits: Limits) -> Answer:
        with self._failing(question.sql):
            cursor = self._execute(question.sql)
            columns = tuple(str(column[0]) for column in cursor.description or ())
            return take_rows(columns, _rows(cursor, limits.cell), question.rows, limits)

    def structure(self) -> Structure:
        (database,) = self._read("SELECT DATABASE()")[0]
        queries = structure_queries(all_databases=database is None, is_mariadb=self._is_mariadb)
        found = {name: self._read(sql) for name, sql in queries.items()}
        created = {place: self._read_create_statement(*place) for place in merged_tables(found)}
        return structure(found, database, created)

    def _read_create_statement(self, schema: str, name: str) -> str:
        """Return the CREATE statement of a table; empty if the server cannot show it, for example because a part is
        missing."""
        try:
            rows = self._read(f"SHOW CREATE TABLE {quote_name('mysql', schema)}.{quote_name('mysql', name)}")
        except QueryFailed:
            return ""
        return str(rows[0][1])

    def functions(self) -> Mapping[str, Stability]:
        """Return user-defined functions only, since the server has no list of its own."""
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

    def _execute(self, sql: str) -> UnbufferedCursor:
        self._cursor = UnbufferedCursor(self._line)
        self._cursor.run(encode_statement(sql))
        return self._cursor

    @contextmanager
    def _failing(self, sql: str) -> Generator[None]:
        try:
            yield
        except pymysql.err.Error as error:
            raise about_question(error, sql) from None
        except RuntimeError:
            # The driver's error if the server requests a file of this machine; the server is now waiting for the file.
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
            # A reset keeps the database that USE chose, and without an original one there is no way back.
            if self._address.url.database:
                self._line.choose(self._address.url.database)
                return True
            return self._read("SELECT DATABASE()") == [(None,)]
        except (pymysql.err.Error, QueryFailed, SourceFailed):
            return False

    def interrupt(self) -> None:
        with suppress(pymysql.err.Error, SourceFailed):
            other = _connect(self._address, _KILL_SECONDS)
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


def _connect(address: Address, seconds: float) -> DriverConnection:
    options: dict[str, Any] = connect_options(address.url)
    try:
        return DriverConnection(
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
        # The cause is dropped because it may contain the password.
        raise not_opened(error, address) from None


def _rows(cursor: UnbufferedCursor, most: int) -> Iterator[Row]:
    shapes = cursor.shapes()
    while shapes and (row := cursor.fetchone()) is not None:
        yield tuple(cell(raw, *shape, most) for raw, shape in zip(row, shapes, strict=True))
