"""What is in a SQLite database?

Read from its own catalogue by bound names, never by composing a statement from them.
"""

import contextlib
import sqlite3
from typing import Any

from .create_text import checks, computations, occasion, query_of
from .source import Described

__all__ = ["structure"]

_TABLES = """
    SELECT m.name, m.type, m.sql, l.wr AS is_clustered FROM sqlite_master m
    LEFT JOIN pragma_table_list l ON l.name = m.name AND l.schema = 'main'
    WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND coalesce(l.type, '') <> 'shadow'
    ORDER BY m.name"""
_TRIGGERS = "SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
_ROWS = "SELECT tbl, max(CAST(stat AS INTEGER)) AS rows FROM sqlite_stat1 GROUP BY tbl"

Found = list[dict[str, Any]]


def structure(connection: sqlite3.Connection) -> Described:
    rows = _estimates(connection)
    triggers = _triggers(connection)
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


def _estimates(connection: sqlite3.Connection) -> dict[str, int]:
    """What ANALYZE found; nothing where it never ran."""
    with contextlib.suppress(sqlite3.OperationalError):
        return {found["tbl"]: found["rows"] for found in _read(connection, _ROWS)}
    return {}


def _triggers(connection: sqlite3.Connection) -> dict[str, list[Described]]:
    by_table: dict[str, list[Described]] = {}
    for found in _read(connection, _TRIGGERS):
        timing, event = occasion(found["sql"])
        trigger = {"name": found["name"], "timing": timing, "event": event, "statement": found["sql"]}
        by_table.setdefault(found["tbl_name"], []).append(trigger)
    return by_table


def _table(connection: sqlite3.Connection, found: dict[str, Any]) -> Described:
    name, text = found["name"], found["sql"] or ""
    if found["type"] == "view":
        return {**_nothing(name), "kind": "view", "columns": _columns(connection, name), "definition": query_of(text)}
    columns = _columns(connection, name)
    expressions = computations(text) if any(column["computed"] for column in columns) else {}
    for column in columns:
        if column["computed"]:
            column["expression"] = expressions.get(column["name"].lower())
    key = [column["name"] for column in sorted(columns, key=lambda one: one["key"]) if column["key"]]
    for column in columns if len(key) == 1 and not found["is_clustered"] else ():
        # Such a column is the row's own number, which SQLite gives where none is said.
        if column["key"] and column["type"].upper() == "INTEGER":
            column.update(generated=True, nullable=False)
    return {
        **_nothing(name),
        "columns": columns,
        "primary_key": key,
        "foreign_keys": _foreign_keys(connection, name),
        "indexes": _indexes(connection, name),
        "checks": checks(text),
        "module": text if text[:14].upper() == "CREATE VIRTUAL" else None,
    }


def _nothing(name: str) -> Described:
    return {"name": name, "kind": "table", "primary_key": [], "foreign_keys": [], "indexes": [], "checks": []}


def _columns(connection: sqlite3.Connection, table: str) -> list[Described]:
    """None where a view names what is no longer there."""
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


def _indexes(connection: sqlite3.Connection, table: str) -> list[Described]:
    found = _read(connection, "SELECT * FROM pragma_index_list(?) WHERE origin <> 'pk' ORDER BY name", table)
    return [
        {"name": index["name"], "unique": bool(index["unique"]), "columns": _indexed(connection, index["name"])}
        for index in found
    ]


def _indexed(connection: sqlite3.Connection, index: str) -> list[str]:
    found = _read(connection, "SELECT name FROM pragma_index_info(?) ORDER BY seqno", index)
    return [column["name"] if column["name"] is not None else "(expression)" for column in found]
