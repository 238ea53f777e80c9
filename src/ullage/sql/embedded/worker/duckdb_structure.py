"""What is in a DuckDB database, and which functions has it?"""

import re
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
_TOLD = """
    SELECT lower(function_name), stability, has_side_effects FROM duckdb_functions() WHERE stability IS NOT NULL"""
_UNTOLD = """
    SELECT lower(function_name), CASE WHEN function_type = 'macro' AND internal THEN macro_definition END
    FROM duckdb_functions() WHERE stability IS NULL"""
_MADE_HERE = "SELECT lower(function_name) FROM duckdb_functions() WHERE NOT internal"

_STABILITIES = {"CONSISTENT": "immutable", "CONSISTENT_WITHIN_QUERY": "stable"}
_ORDER = ("immutable", "stable", "volatile")
_WORD = re.compile(r"\w+")
_ONLY_FAILS = {"error"}
"""Counted as an effect by DuckDB, because it must not be left out."""

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
    """Table functions, of which DuckDB says nothing, count as volatile, save the few that are scalar ones as well; so
    do a user's macros, whatever they are named after."""
    known: dict[str, str] = {}
    for name, stability, has_effects in connection.execute(_TOLD).fetchall():
        found = "volatile" if has_effects else _STABILITIES.get(stability, "volatile")
        known[name] = max(known.get(name, "immutable"), found, key=_ORDER.index)
    untold: dict[str, str] = {}
    for name, definition in connection.execute(_UNTOLD).fetchall():
        found = "volatile" if definition is None else _of_macro(definition, known)
        untold[name] = max(untold.get(name, "immutable"), found, key=_ORDER.index)
    made_here = {name: "volatile" for (name,) in connection.execute(_MADE_HERE).fetchall()}
    return {**untold, **known, **made_here}


def _of_macro(definition: str, known: dict[str, str]) -> str:
    """DuckDB's own macros are as stable as what they are written in; a user's may read anything."""
    named = set(_WORD.findall(definition.lower())) - _ONLY_FAILS
    return "volatile" if any(known.get(word) == "volatile" for word in named) else "stable"


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
