"""What is in a DuckDB database, and which functions has it?"""

from typing import Any

import duckdb

from .create_text import query_of
from .source import Described

__all__ = ["functions", "structure"]

_OURS = "database_name = current_database() AND NOT internal"
_TABLES = f"""
    SELECT schema_name, table_name AS name, 'table' AS kind, comment, estimated_size AS rows, NULL AS sql
    FROM duckdb_tables() WHERE {_OURS}
    UNION ALL SELECT schema_name, view_name, 'view', comment, NULL, sql FROM duckdb_views() WHERE {_OURS}
    ORDER BY name, schema_name"""
_COLUMNS = f"""
    SELECT schema_name, table_name, column_name AS name, data_type AS type, is_nullable AS nullable, comment,
        coalesce(generation_expression, column_default) AS default,
        is_generated OR coalesce(column_default LIKE '%nextval(%', false) AS generated
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
_FUNCTIONS = """
    SELECT lower(function_name), function_type, stability, has_side_effects, internal FROM duckdb_functions()"""

_STABILITIES = {"CONSISTENT": "immutable", "CONSISTENT_WITHIN_QUERY": "stable"}
_ORDER = ("immutable", "stable", "volatile")

Found = dict[str, Any]


def structure(connection: duckdb.DuckDBPyConnection) -> Described:
    tables = {(found["schema_name"], found["name"]): _table(found) for found in _read(connection, _TABLES)}
    for part, sql in (("columns", _COLUMNS), ("indexes", _INDEXES), ("triggers", _TRIGGERS)):
        for found in _read(connection, sql):
            tables[found.pop("schema_name"), found.pop("table_name")][part].append(found)
    for found in _read(connection, _CONSTRAINTS):
        _constrain(tables[found["schema_name"], found["table_name"]], found)
    for index in (index for table in tables.values() for index in table["indexes"]):
        index["columns"] = [name.strip("\"' ") for name in index["columns"].strip("[]").split(",")]
    return {"tables": list(tables.values()), "routines": [_routine(found) for found in _read(connection, _MACROS)]}


def functions(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    known: dict[str, str] = {}
    for name, kind, stability, has_effects, internal in connection.execute(_FUNCTIONS).fetchall():
        found = "volatile" if has_effects else _stability(kind, stability, internal=internal)
        known[name] = max(known.get(name, "immutable"), found, key=_ORDER.index)
    return known


def _stability(kind: str, stability: str | None, *, internal: bool) -> str:
    """DuckDB's own macros are written in its functions, and none of those is volatile; a user's may be anything."""
    if stability is None:
        return "stable" if kind == "macro" and internal else "volatile"
    return _STABILITIES.get(stability, "volatile")


def _read(connection: duckdb.DuckDBPyConnection, sql: str) -> list[Found]:
    connection.execute(sql)
    columns = [column[0] for column in connection.description or ()]
    return [dict(zip(columns, row, strict=True)) for row in connection.fetchall()]


def _schema(found: Found) -> str | None:
    return None if found["schema_name"] == "main" else found["schema_name"]


def _table(found: Found) -> Described:
    empty: Described = {
        part: [] for part in ("columns", "indexes", "triggers", "foreign_keys", "checks", "primary_key")
    }
    definition = query_of(found["sql"]) if found["sql"] else None
    about = {"schema": _schema(found), "definition": definition}
    return {**empty, **about, **{key: found[key] for key in ("name", "kind", "comment", "rows")}}


def _routine(found: Found) -> Described:
    return {
        "schema": _schema(found),
        "kind": "function",
        **{key: found[key] for key in ("name", "arguments", "returns")},
    }


def _constrain(table: Described, found: Found) -> None:
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
