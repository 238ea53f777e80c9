"""The worker's side of DuckDB.

`refuse_unless_reading` accepts a single statement of a kind that reads, according to DuckDB's own parser. It stops
anything that could leave a trace in the session or on the server: temporary tables, settings, variables, prepared
statements, checkpoints. What a reading statement may reach is limited by the database's settings.

`duckdb_file` opens the database anew for each statement, read-only, without access to anything outside it and with its
settings locked. Two statements are refused, and so is any that does not read. DuckDB allows no process to read a file
while another writes it.

`cast_for_python` casts columns to text if Python has no type for their values. Python's dates end at the year 9999 and
have no infinity, its times have no nanoseconds, its intervals no months, and its floats are doubles. Such columns are
returned as the text that DuckDB writes, also inside lists and structures, which reads back as the same value.

DuckDB imports a time zone package; a stand-in provides the only parts it uses, a zone by name and a time converted to
it. The zones are the standard library's; if the system does not know the name, a time is shown in UTC, in which it
arrives.
"""

import os.path
import re
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from types import ModuleType
from typing import Any, Protocol, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import duckdb

from .worker_protocol import Asked, Described, Failure, PlainFile, Send, Source, answer, query_of

__all__ = [
    "ZONES",
    "cast_for_python",
    "duckdb_file",
    "failing_as_duckdb",
    "functions",
    "refuse_unless_reading",
    "structure",
]


class Kind(Protocol):
    @property
    def name(self) -> str: ...


class Statement(Protocol):
    @property
    def type(self) -> Kind: ...

    @property
    def query(self) -> str: ...


Some = TypeVar("Some", bound=Statement)

_BLANK = r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)"
_PRAGMA = re.compile(rf"{_BLANK}*pragma{_BLANK}+(\w+)\b", re.IGNORECASE | re.DOTALL)
_EXPLAIN = re.compile(
    rf"{_BLANK}*explain\b{_BLANK}*(?:analyze\b{_BLANK}*|\({_BLANK}*(?:analyze|format)\b[^()]*\){_BLANK}*)?",
    re.IGNORECASE | re.DOTALL,
)
_PIVOT = re.compile(
    rf"{_BLANK}*(?:\({_BLANK}*)*(?:pivot|pivot_wider|with|from|select|describe|summarize)\b", re.IGNORECASE | re.DOTALL
)
_PRAGMAS = frozenset(
    {
        "collations",
        "database_list",
        "database_size",
        "functions",
        "metadata_info",
        "platform",
        "show",
        "show_databases",
        "show_tables",
        "show_tables_expanded",
        "storage_info",
        "table_info",
        "user_agent",
        "version",
    }
)


def refuse_unless_reading(sql: str, parse: Callable[[str], Sequence[Some]]) -> Some:
    statements = parse(sql)
    if len(statements) != 1:
        raise Failure("query", f"one statement is run at a time, and there are {len(statements)}", code="STATEMENTS")
    statement = statements[0]
    if not _is_reading(statement, parse):
        raise Failure("query", f"a statement of the kind {statement.type.name} is not run here", code="STATEMENT_KIND")
    return statement


def _is_reading(statement: Statement, parse: Callable[[str], Sequence[Some]]) -> bool:
    match statement.type.name:
        case "SELECT":
            return True
        case "MULTI":
            # A PIVOT first determines its columns, which DuckDB counts as several statements.
            return _PIVOT.match(statement.query) is not None
        case "PRAGMA":
            named = _PRAGMA.match(statement.query)
            return named is not None and named[1].lower() in _PRAGMAS
        case "EXPLAIN":
            head = _EXPLAIN.match(statement.query)
            inner = parse(statement.query[head.end() :]) if head is not None else ()
            return len(inner) == 1 and inner[0].type.name in ("SELECT", "MULTI") and _is_reading(inner[0], parse)
        case _:
            return False


_ADVICE = "\n\nPossible solutions"
"""The text after it is advice on settings that cannot be changed here."""


@contextmanager
def failing_as_duckdb(path: str) -> Generator[None]:
    try:
        yield
    except duckdb.Error as error:
        text = str(error).replace(path, os.path.basename(path))  # noqa: PTH119 - as it was given, whatever it is
        code = type(error).__name__
        if isinstance(error, duckdb.InterruptException):
            failure = Failure("deadline", "time was up", code=code)
        elif isinstance(error, duckdb.OutOfMemoryException):
            failure = Failure("memory", text.partition(_ADVICE)[0], code=code)
        elif "Could not set lock on file" in text:
            failure = Failure(
                "source", "another program has it open for writing, and DuckDB then allows no readers", code=code
            )
        elif isinstance(error, (duckdb.IOException, duckdb.SerializationException, duckdb.FatalException)):
            failure = Failure("source", text, code=code)
        else:
            failure = Failure("query", text, code=code)
        raise failure from error


_SAME = frozenset(
    """
    bigint blob bit boolean decimal double enum hugeint integer null smallint sqlnull tinyint ubigint uhugeint uinteger
    usmallint utinyint uuid varchar
    """.split()  # noqa: SIM905
)
"""DuckDB type ids whose values Python represents exactly."""


def cast_for_python(query: str, columns: Sequence[str], types: Sequence[Any]) -> str | None:
    """Return the query with columns cast to types that Python represents exactly; None if it needs no change.

    Args:
        query: one SELECT.
        columns: the names of its columns.
        types: their types, as in `DuckDBPyRelation.types`.
    """
    shown: list[str | None] = []
    for place, kind in enumerate(types, 1):
        text, number = _kind(kind, "VARCHAR"), _kind(kind, "DOUBLE")
        cast = None if text is None else f"CAST(#{place} AS {text})"
        shown.append(cast if number == text else f"CAST({cast} AS {number})")
    if not any(shown):
        return None
    listed = ", ".join(
        f"{cast or f'#{place}'} AS {_quote_identifier(name)}"
        for place, (name, cast) in enumerate(zip(columns, shown, strict=True), 1)
    )
    return f"SELECT {listed} FROM (\n{query.rstrip().rstrip(';')}\n) AS shown"


def _kind(kind: Any, of_float: str) -> str | None:  # noqa: ANN401 - a type of DuckDB's own
    """Return the type to cast to, `of_float` for floats; None if the type needs no cast."""
    name = str(kind.id)
    if name in _SAME:
        return None
    if name == "float":
        return of_float
    parts = kind.children if name in ("list", "array", "struct", "map") else ()
    inner = {str(key): _kind(part, of_float) for key, part in parts if key != "size"}
    if parts and not any(inner.values()):
        return None
    kept = {key: inner[key] or str(part) for key, part in parts if key != "size"}
    match name:
        case "list" | "array":
            return f"{kept['child']}[]"
        case "struct" if all(kept):
            return f"STRUCT({', '.join(f'{_quote_identifier(key)} {part}' for key, part in kept.items())})"
        case "map":
            return f"MAP({kept['key']}, {kept['value']})"
        case _:
            return "VARCHAR"


def _quote_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_OURS = "database_name = current_database() AND NOT internal"
_TABLES = f"""
    SELECT schema_name, table_name AS name, 'table' AS kind, comment, estimated_size AS rows, NULL AS sql
    FROM duckdb_tables() WHERE {_OURS}
    UNION ALL SELECT schema_name, view_name, 'view', comment, NULL, sql FROM duckdb_views() WHERE {_OURS}
    ORDER BY name, schema_name"""
_COLUMNS = f"""
    SELECT schema_name, table_name, column_name AS name, data_type AS type, is_nullable AS nullable, comment,
        coalesce(generation_expression, column_default) AS default,
        is_generated OR coalesce(column_default LIKE '%nextval(%', false) AS generated, is_generated AS computed,
        generation_expression AS expression
    FROM duckdb_columns() WHERE {_OURS} ORDER BY column_index"""
_CONSTRAINTS = """
    SELECT schema_name, table_name, constraint_type AS type, constraint_text AS text, constraint_name AS name,
        constraint_column_names AS columns, referenced_table AS to_table, referenced_column_names AS to_columns
    FROM duckdb_constraints() WHERE database_name = current_database() ORDER BY constraint_index"""
_INDEXES = """
    SELECT schema_name, table_name, index_name AS name, is_unique AS unique, expressions AS columns
    FROM duckdb_indexes() WHERE database_name = current_database() ORDER BY index_name"""
_TRIGGERS = """
    SELECT schema_name, table_name, trigger_name AS name, action_timing AS timing, event_manipulation AS event,
        sql AS statement
    FROM duckdb_triggers() WHERE database_name = current_database() ORDER BY trigger_name"""
_MACROS = f"""
    SELECT schema_name, function_name AS name, array_to_string(parameters, ', ') AS arguments,
        CASE function_type WHEN 'table_macro' THEN 'table' END AS returns
    FROM duckdb_functions() WHERE {_OURS} ORDER BY function_name"""
_WITH_STABILITY = """
    SELECT lower(function_name), stability, has_side_effects FROM duckdb_functions() WHERE stability IS NOT NULL"""
_WITHOUT_STABILITY = """
    SELECT lower(function_name), CASE WHEN function_type = 'macro' AND internal THEN macro_definition END
    FROM duckdb_functions() WHERE stability IS NULL"""
_USER_DEFINED = "SELECT lower(function_name) FROM duckdb_functions() WHERE NOT internal"

_STABILITIES = {"CONSISTENT": "immutable", "CONSISTENT_WITHIN_QUERY": "stable"}
_ORDER = ("immutable", "stable", "volatile")
_WORD = re.compile(r"\w+")
_ONLY_FAILS = {"error"}
"""Functions that DuckDB counts as having side effects only so that they are not optimised away."""

Found = dict[str, Any]


def structure(connection: duckdb.DuckDBPyConnection) -> Described:
    tables = dict[tuple[str, str], Described]()
    for found in _read(connection, _TABLES):
        tables[found["schema_name"], found["name"]] = {
            **{part: [] for part in ("columns", "indexes", "triggers", "foreign_keys", "checks", "primary_key")},
            "schema": _schema(found),
            "definition": query_of(found["sql"]) if found["sql"] else None,
            **{key: found[key] for key in ("name", "kind", "comment", "rows")},
        }
    for part, sql in (("columns", _COLUMNS), ("indexes", _INDEXES), ("triggers", _TRIGGERS)):
        for found in _read(connection, sql):
            tables[found.pop("schema_name"), found.pop("table_name")][part].append(found)
    for found in _read(connection, _CONSTRAINTS):
        table = tables[found["schema_name"], found["table_name"]]
        match found["type"]:
            case "PRIMARY KEY":
                table["primary_key"] = found["columns"]
            case "FOREIGN KEY":
                key = {"columns": found["columns"], "table": found["to_table"], "to": found["to_columns"]}
                table["foreign_keys"].append({**key, "name": found["name"]})
            case "NOT NULL":
                pass
            case _:
                table["checks"].append(found["text"])
    for index in (index for table in tables.values() for index in table["indexes"]):
        index["columns"] = [name.strip("\"' ") for name in index["columns"].strip("[]").split(",")]
    return {
        "tables": list(tables.values()),
        "routines": [
            {
                "schema": _schema(found),
                "kind": "function",
                **{key: found[key] for key in ("name", "arguments", "returns")},
            }
            for found in _read(connection, _MACROS)
        ],
    }


def functions(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return the stability of functions by name.

    Table functions, for which DuckDB states none, count as volatile, except the few that are also scalar functions; so
    do users' macros, whatever their name.
    """
    known: dict[str, str] = {}
    for name, stability, has_effects in connection.execute(_WITH_STABILITY).fetchall():
        found = "volatile" if has_effects else _STABILITIES.get(stability, "volatile")
        known[name] = max(known.get(name, "immutable"), found, key=_ORDER.index)
    derived: dict[str, str] = {}
    for name, definition in connection.execute(_WITHOUT_STABILITY).fetchall():
        # A user's macro may read anything.
        words = set(_WORD.findall((definition or "").lower())) - _ONLY_FAILS
        is_volatile = definition is None or any(known.get(word) == "volatile" for word in words)
        found = "volatile" if is_volatile else "stable"
        derived[name] = max(derived.get(name, "immutable"), found, key=_ORDER.index)
    user_defined = {name: "volatile" for (name,) in connection.execute(_USER_DEFINED).fetchall()}
    return {**derived, **known, **user_defined}


def _read(connection: duckdb.DuckDBPyConnection, sql: str) -> list[Found]:
    connection.execute(sql)
    columns = [column[0] for column in connection.description or ()]
    return [dict(zip(columns, row, strict=True)) for row in connection.fetchall()]


def _schema(found: Found) -> str | None:
    return None if found["schema_name"] == "main" else found["schema_name"]


class _Zone(ZoneInfo):
    def localize(self, moment: datetime) -> datetime:
        return moment.replace(tzinfo=self)


def _zone(name: str) -> _Zone:
    try:
        return _Zone(name)
    except (ZoneInfoNotFoundError, ValueError):
        return _Zone("UTC")


ZONES = ModuleType("pytz")
ZONES.timezone = _zone  # pyright: ignore[reportAttributeAccessIssue]

_SHARE = 0.6
"""Share of the process's memory limit given to DuckDB, which does not count all that it uses."""

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


def duckdb_file(path: str, *, memory: int, within: str | None = None) -> Source:
    # DuckDB imports this package for time zones, and fails if it is not installed.
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
        run_query_of=_run_query,
        structure_of=structure,
        functions_of=functions,
        within=within,
    )


def _run_query(connection: duckdb.DuckDBPyConnection, asked: Asked, send: Send) -> None:
    statement = refuse_unless_reading(asked.sql, connection.extract_statements)
    as_text = None
    if statement.type.name == "SELECT":
        # Binds the statement without running it.
        relation = connection.query(statement.query)
        as_text = cast_for_python(statement.query, relation.columns, relation.types)
    connection.execute(statement if as_text is None else as_text)
    columns = [column[0] for column in connection.description or ()]
    answer(columns, iter(connection.fetchone, None), asked, send)
