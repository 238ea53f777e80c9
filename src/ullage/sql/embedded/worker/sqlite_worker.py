"""The worker's side of SQLite.

SQLite's authorizer asks before it compiles each step of a statement; `is_allowed` permits what is listed here and
denies the rest. That stops every write, every attached file, every setting and every function that is not known to be
harmless, whatever the text looked like. It does not limit time or size.

`sqlite_file` opens a new connection for each statement, under every lock. The file is never created, and never opened
as immutable, since others may write it. A database in write-ahead-log mode needs its `-shm` file; SQLite creates a
missing one beside the database, which is the only thing that can be written.

`lock` makes a connection read-only by SQLite's own switches, with every step authorized and every size limited;
`set_clock` checks the deadline while SQLite works. A single long call cannot be interrupted from inside, but the
process can be killed.

`structure` reads SQLite's catalogue with bound names, never with names put into a statement.

`SqliteTable` has only one table, in a database without a file, created for each statement and then locked like a file.
"""

import contextlib
import re
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

from .worker_protocol import (
    Asked,
    Described,
    Failure,
    Message,
    PlainFile,
    Send,
    Source,
    answer,
    checks,
    computations,
    occasion,
    query_of,
)

__all__ = [
    "TOUCHED",
    "SqliteTable",
    "failing_as_sqlite",
    "functions",
    "is_allowed",
    "lock",
    "run_query",
    "set_clock",
    "set_memory",
    "sqlite_file",
    "structure",
]

_ACTIONS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})

_ABOUT_A_NAME = frozenset(
    {
        "foreign_key_check",
        "foreign_key_list",
        "index_info",
        "index_list",
        "index_xinfo",
        "integrity_check",
        "quick_check",
        "table_info",
        "table_list",
        "table_xinfo",
    }
)
"""Pragmas whose argument selects what to read, not a value to set."""

_PRAGMAS = _ABOUT_A_NAME | {
    "application_id",
    "auto_vacuum",
    "collation_list",
    "compile_options",
    "data_version",
    "database_list",
    "encoding",
    "foreign_keys",
    "freelist_count",
    "function_list",
    "journal_mode",
    "module_list",
    "page_count",
    "page_size",
    "pragma_list",
    "query_only",
    "schema_version",
    "user_version",
}

_TELLING = frozenset(
    """
    analysis_limit automatic_index busy_timeout cache_size cache_spill cell_size_check defer_foreign_keys
    journal_size_limit legacy_file_format locking_mode max_page_count mmap_size read_uncommitted recursive_triggers
    reverse_unordered_selects secure_delete stats synchronous temp_store threads trusted_schema wal_autocheckpoint
    writable_schema
    """.split()  # noqa: SIM905
)
"""Pragmas that return a setting of the connection when used without a value, and are not tables."""

TOUCHED = ("json_each", "json_tree", *(f"pragma_{name}" for name in sorted(_PRAGMAS)))
"""Tables that SQLite creates when they are first named, which looks like a write; they are therefore named in
advance."""

_NAMES = """
    -> ->> abs acos acosh asin asinh atan atan2 atanh avg bm25 ceil ceiling changes char coalesce concat concat_ws
    cos cosh count cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp
    first_value floor format glob group_concat hex highlight if ifnull iif instr json json_array json_array_length
    json_error_position json_extract json_group_array json_group_object json_insert json_object json_patch
    json_pretty json_quote json_remove json_replace json_set json_type json_valid jsonb jsonb_array jsonb_extract
    jsonb_group_array jsonb_group_object jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set
    julianday lag last_insert_rowid last_value lead length like likelihood likely ln log log10 log2 lower ltrim
    match matchinfo max median min mod nth_value ntile nullif octet_length offsets percent_rank percentile
    percentile_cont percentile_disc pi pow power printf quote radians random randomblob rank replace round
    row_number rtrim sign sin sinh snippet soundex sqlite_compileoption_get sqlite_compileoption_used
    sqlite_source_id sqlite_version sqrt strftime string_agg substr substring subtype sum tan tanh time timediff
    total total_changes trim trunc typeof unhex unicode unistr unistr_quote unixepoch unlikely upper zeroblob
"""
_FUNCTIONS = frozenset(_NAMES.split())
"""Functions of SQLite itself, FTS5 included, that neither write nor reach outside."""


def is_allowed(action: int, first: str | None, second: str | None) -> bool:
    """Return whether a step of a statement is allowed, by SQLite's action code and names."""
    if action == sqlite3.SQLITE_FUNCTION:
        return (second or "").lower() in _FUNCTIONS
    if action == sqlite3.SQLITE_PRAGMA:
        name = (first or "").lower()
        return name in _ABOUT_A_NAME or (name in _PRAGMAS | _TELLING and second is None)
    return action in _ACTIONS


_WAL = (
    "it is in write-ahead-log mode, and the -shm file beside it can be neither opened nor made; let its directory be "
    "written to, or leave that mode (PRAGMA journal_mode=DELETE)"
)
_OF_THE_FILE = {
    "SQLITE_CANTOPEN": "it cannot be opened",
    "SQLITE_CORRUPT": "it is damaged",
    "SQLITE_IOERR": "it cannot be read",
    "SQLITE_NOTADB": "it is not a SQLite database, or is encrypted",
    "SQLITE_PERM": "it may not be read",
    "SQLITE_READONLY_CANTINIT": _WAL,
    "SQLITE_READONLY_DIRECTORY": _WAL,
    "SQLITE_CANTOPEN_ISDIR": "it is a directory",
    "SQLITE_IOERR_SHMOPEN": _WAL,
    "SQLITE_IOERR_SHMSIZE": _WAL,
    "SQLITE_READONLY_RECOVERY": "a writer left it unfinished: let one that may write open it once",
    "SQLITE_READONLY_ROLLBACK": "a writer left it unfinished: let one that may write open it once",
}


@contextmanager
def failing_as_sqlite(path: str) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _failure(error, path) from error


def _failure(error: sqlite3.Error, path: str) -> Failure:
    code: str | None = getattr(error, "sqlite_errorname", None)
    if code == "SQLITE_INTERRUPT":
        return Failure("deadline", "time was up", code=code)
    if code in ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_BUSY_RECOVERY", "SQLITE_BUSY_SNAPSHOT"):
        return Failure("query", "the database is locked by another program; ask again when it has finished", code=code)
    if code == "SQLITE_NOMEM":
        return Failure("memory", "the question needs more memory than there is for one", code=code)
    general = "_".join((code or "").split("_")[:2])
    is_wal = code == "SQLITE_CANTOPEN" and _is_wal(path)
    why = _WAL if is_wal else _OF_THE_FILE.get(code or "", _OF_THE_FILE.get(general))
    if why is not None:
        return Failure("source", why, code=code)
    return Failure("query", str(error), code=code)


def _is_wal(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib is not loaded here
            return file.read(20)[18:20] == b"\x02\x02"
    except OSError:
        return False


_TABLES = """
    SELECT m.name, m.type, m.sql, l.wr AS is_clustered FROM sqlite_master m
    LEFT JOIN pragma_table_list l ON l.name = m.name AND l.schema = 'main'
    WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND coalesce(l.type, '') <> 'shadow'
    ORDER BY m.name"""
_TRIGGERS = "SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
_ROWS = "SELECT tbl, max(CAST(stat AS INTEGER)) AS rows FROM sqlite_stat1 GROUP BY tbl"

Found = list[dict[str, Any]]


def structure(connection: sqlite3.Connection) -> Described:
    rows: dict[str, int] = {}
    # The row counts that ANALYZE stored, if it ever ran.
    with contextlib.suppress(sqlite3.OperationalError):
        rows = {found["tbl"]: found["rows"] for found in _read(connection, _ROWS)}
    triggers: dict[str, list[Described]] = {}
    for found in _read(connection, _TRIGGERS):
        timing, event = occasion(found["sql"])
        trigger = {"name": found["name"], "timing": timing, "event": event, "statement": found["sql"]}
        triggers.setdefault(found["tbl_name"], []).append(trigger)
    tables = [_table(connection, found) for found in _read(connection, _TABLES)]
    for table in tables:
        table["rows"] = rows.get(table["name"])
        table["triggers"] = triggers.get(table["name"], [])
    keys = {table["name"].lower(): table["primary_key"] for table in tables}
    for foreign in (foreign for table in tables for foreign in table["foreign_keys"]):
        foreign["to"] = foreign["to"] or keys.get(foreign["table"].lower(), [])
    return {"tables": tables}


def _read(connection: sqlite3.Connection, sql: str, *names: str) -> Found:
    cursor = connection.execute(sql, names)
    columns = [column[0] for column in cursor.description]
    return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def _table(connection: sqlite3.Connection, found: dict[str, Any]) -> Described:
    name, text = found["name"], found["sql"] or ""
    if found["type"] == "view":
        return {
            **_empty_table(name),
            "kind": "view",
            "columns": _columns(connection, name),
            "definition": query_of(text),
        }
    columns = _columns(connection, name)
    expressions = computations(text) if any(column["computed"] for column in columns) else {}
    for column in columns:
        if column["computed"]:
            column["expression"] = expressions.get(column["name"].lower())
    key = [column["name"] for column in sorted(columns, key=lambda one: one["key"]) if column["key"]]
    for column in columns if len(key) == 1 and not found["is_clustered"] else ():
        # Such a column is the row id, which SQLite assigns if no value is given.
        if column["key"] and column["type"].upper() == "INTEGER":
            column.update(generated=True, nullable=False)
    indexes = _read(connection, "SELECT * FROM pragma_index_list(?) WHERE origin <> 'pk' ORDER BY name", name)
    return {
        **_empty_table(name),
        "columns": columns,
        "primary_key": key,
        "foreign_keys": _foreign_keys(connection, name),
        "indexes": [
            {
                "name": index["name"],
                "unique": bool(index["unique"]),
                "columns": [
                    column["name"] if column["name"] is not None else "(expression)"
                    for column in _read(
                        connection, "SELECT name FROM pragma_index_info(?) ORDER BY seqno", index["name"]
                    )
                ],
            }
            for index in indexes
        ],
        "checks": checks(text),
        "module": text if text[:14].upper() == "CREATE VIRTUAL" else None,
    }


def _empty_table(name: str) -> Described:
    return {"name": name, "kind": "table", "primary_key": [], "foreign_keys": [], "indexes": [], "checks": []}


def _columns(connection: sqlite3.Connection, table: str) -> list[Described]:
    """Return the columns; empty if a view names something that no longer exists."""
    with contextlib.suppress(sqlite3.OperationalError):
        return [
            {
                "name": found["name"],
                "type": found["type"],
                "nullable": not found["notnull"],
                "default": found["dflt_value"],
                "generated": found["hidden"] in (2, 3),
                "computed": found["hidden"] in (2, 3),
                "key": found["pk"],
            }
            for found in _read(connection, "SELECT * FROM pragma_table_xinfo(?) WHERE hidden <> 1", table)
        ]
    return []


def _foreign_keys(connection: sqlite3.Connection, table: str) -> list[Described]:
    keys: dict[int, Described] = {}
    for found in _read(connection, "SELECT * FROM pragma_foreign_key_list(?) ORDER BY id, seq", table):
        key = keys.setdefault(
            found["id"],
            {
                "columns": [],
                "table": found["table"],
                "to": [],
                "on_update": found["on_update"],
                "on_delete": found["on_delete"],
            },
        )
        key["columns"].append(found["from"])
        key["to"].extend([found["to"]] if found["to"] is not None else [])
    return list(keys.values())


_DETERMINISTIC, _DIRECT_ONLY = 0x800, 0x80000
_WITHIN_A_STATEMENT = frozenset(
    {
        "changes",
        "current_date",
        "current_time",
        "current_timestamp",
        "date",
        "datetime",
        "julianday",
        "last_insert_rowid",
        "strftime",
        "time",
        "total_changes",
        "unixepoch",
    }
)
"""Functions of the time or the connection's activity; SQLite's own flag does not distinguish them from the others."""

_SEARCHED = re.compile(r"CREATE\s+VIRTUAL\s+TABLE\b.*?\bUSING\s+fts5\b", re.IGNORECASE | re.DOTALL)
"""Full-text tables, whose search may be written as a call in FROM."""

_ORDER = ("immutable", "stable", "volatile")


def functions(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the stability of functions by name."""
    found: dict[str, str] = {}
    rows = connection.execute("SELECT lower(name), type, flags FROM pragma_function_list")
    for name, kind, flags in rows.fetchall():
        # A function that no statement may use is volatile.
        if flags & _DIRECT_ONLY or not is_allowed(sqlite3.SQLITE_FUNCTION, None, name):
            stability = "volatile"
        elif name in _WITHIN_A_STATEMENT:
            stability = "stable"
        else:
            is_fixed = flags & _DETERMINISTIC or kind in ("a", "w") or name.startswith("sqlite_")
            stability = "immutable" if is_fixed or name in _OF_A_SEARCH else "volatile"
        found[name] = max(found.get(name, "immutable"), stability, key=_ORDER.index)
    tables = connection.execute("SELECT lower(name), sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL")
    searched = [name for name, sql in tables.fetchall() if _SEARCHED.match(sql)]
    return {**found, **{f"from:{name}": "immutable" for name in searched}}


_OF_A_SEARCH = frozenset({"bm25", "highlight", "match", "matchinfo", "offsets", "snippet"})
"""Functions that depend only on the content of a full-text table."""

_STEPS = 20_000
"""Virtual machine instructions between two checks of the deadline."""

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
"""`trusted_schema` is on so that views may use JSON functions and full-text tables; `_authorize` judges every
function in a view like those of a statement."""


def set_memory(connection: sqlite3.Connection, most: int) -> None:
    """Limit SQLite's memory for the whole process, in case the system does not enforce its own limit."""
    connection.execute(f"PRAGMA hard_heap_limit={most}")


def set_clock(connection: sqlite3.Connection, deadline: float) -> None:
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)


def lock(connection: sqlite3.Connection) -> None:
    """Lock the connection, which from now on reads one snapshot of the database and does nothing else."""
    for switch in _SWITCHES:
        connection.execute(f"PRAGMA {switch}")
    for limit, value in _LIMITS.items():
        connection.setlimit(limit, value)
    made_here = connection.execute("SELECT name FROM sqlite_master WHERE type='table' AND sql LIKE 'CREATE VIRTUAL%'")
    names = [row[0] for row in made_here.fetchall()]
    for name in (*TOUCHED, *names):
        quoted = name.replace('"', '""')
        # An older SQLite lacks some of them, and a table whose module is missing cannot be read in any case.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute(f'SELECT 1 FROM "{quoted}" LIMIT 0')
    connection.execute("BEGIN")
    connection.set_authorizer(_authorize)


def _authorize(action: int, first: str | None, second: str | None, _database: str | None, _within: str | None) -> int:
    return sqlite3.SQLITE_OK if is_allowed(action, first, second) else sqlite3.SQLITE_DENY


_FILE_BYTES = 8 << 20
"""Maximum size of the `-shm` file, for a log of a million pages."""

_WAITED = 0.8
"""Maximum share of the remaining time to wait for another connection's lock, so that time is left to report it."""


def _connect(uri: str, deadline: float, memory: int) -> sqlite3.Connection:
    patience = max(0.0, deadline - time.monotonic()) * _WAITED
    connection = sqlite3.connect(uri, uri=True, timeout=patience, isolation_level=None, cached_statements=0)
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    set_memory(connection, memory)
    set_clock(connection, deadline)
    return connection


def run_query(connection: sqlite3.Connection, asked: Asked, send: Send) -> None:
    with closing(connection.execute(asked.sql)) as cursor:
        columns = [column[0] for column in cursor.description or ()]
        answer(columns, cursor, asked, send)


def sqlite_file(path: str, *, uri: str, memory: int, within: str | None = None) -> Source:
    @contextmanager
    def opened(deadline: float) -> Generator[sqlite3.Connection]:
        with failing_as_sqlite(path), closing(_connect(f"{uri}?mode=ro", deadline, memory)) as connection:
            lock(connection)
            yield connection

    return PlainFile(
        path=path,
        file_bytes=_FILE_BYTES,
        opened=opened,
        run_query_of=run_query,
        structure_of=structure,
        functions_of=functions,
        within=within,
    )


class SqliteTable:
    """Rows as tables of a database in memory."""

    file_bytes = 0

    def __init__(self, *, memory: int) -> None:
        self._memory = memory
        self._connection: sqlite3.Connection | None = None
        self._insert = ""
        self._failure: Failure | None = None
        """Error of loading the rows, reported with the statement."""

    def take(self, message: Message) -> None:
        try:
            with failing_as_sqlite(""):
                if message["do"] == "begin":
                    self._create_table(message)
                elif self._connection is not None and self._failure is None:
                    self._connection.executemany(self._insert, message["rows"])
        except Failure as failure:
            self._failure = self._failure or failure

    def ask(self, message: Message, send: Send) -> None:
        asked = Asked.read(message)
        try:
            if self._failure is not None or self._connection is None:
                raise self._failure or Failure("query", "there is no table to ask")
            with failing_as_sqlite(""):
                self._connection.execute("COMMIT")
                set_clock(self._connection, asked.deadline)
                lock(self._connection)
                run_query(self._connection, asked, send)
        finally:
            self._forget()

    def structure(self, message: Message) -> Described:
        raise Failure("query", f"a table does not take `{message['do']}`")

    def functions(self, message: Message) -> dict[str, str]:
        raise Failure("query", f"a table does not take `{message['do']}`")

    def _create_table(self, message: Message) -> None:
        """Create the table that the next rows go to: `result` in a new database, or a further one by its name."""
        table = message.get("table")
        if table is None or self._connection is None:
            self._forget()
            self._connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
            set_memory(self._connection, self._memory)
            self._connection.execute("BEGIN")
        columns = message["columns"]
        name = _quote_identifier(table or "result")
        self._connection.execute(f"CREATE TABLE {name} ({', '.join(map(_quote_identifier, columns))})")
        self._insert = f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})"

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._failure = None, None


def _quote_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
