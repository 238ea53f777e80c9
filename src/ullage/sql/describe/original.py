"""What did the system before this one say of a database?

Its three replies, field by field, for whoever has programs that read them. Where its figures were a driver's guesses (a
column's size) and nothing is known, there is null.
"""

import json
import re
from collections.abc import Mapping, Sequence

from ullage.tool import Json

from ..engine import Dialect
from ..structure import Column, ForeignKey, Index, Structure, Table

__all__ = ["schema_json", "table_json", "triggers_json"]

_PRODUCTS: Mapping[Dialect, str] = {
    "sqlite": "SQLite",
    "duckdb": "DuckDB",
    "postgres": "PostgreSQL",
    "mysql": "MySQL",
    "tsql": "Microsoft SQL Server",
    "oracle": "Oracle",
}
_SIZED = re.compile(r"^(.*?)\s*\((\d+)(?:\s*,\s*(\d+))?\)(.*)$", re.DOTALL)


def schema_json(structure: Structure, dialect: Dialect, name: str, *, truncated: bool = False) -> str:
    """`truncated` where the database has more tables than these."""
    tables: list[Json] = [
        {
            "tableName": table.name,
            "tableType": table.kind.upper(),
            "columns": [_column(column, table) for column in table.columns],
        }
        for table in structure.tables
    ]
    said: dict[str, Json] = {"databaseName": structure.name or name, "databaseType": _PRODUCTS[dialect]}
    return _written({**said, **({"truncated": True} if truncated else {}), "tables": tables})


def table_json(table: Table) -> str:
    return _written(
        {
            "tableName": table.name,
            "tableType": table.kind.upper(),
            "columns": [_column_detail(column, table) for column in table.columns],
            "indexes": [entry for index in table.indexes for entry in _index(index)],
            "foreignKeys": [entry for foreign in table.foreign_keys for entry in _foreign_key(foreign)],
            "constraints": _constraints(table),
        }
    )


def triggers_json(tables: Sequence[Table], name: str | None) -> str:
    """The triggers of one table; where no name was given, of all, each with its table."""
    triggers: list[Json] = [
        {
            **({} if name is not None else {"tableName": table.name}),
            "triggerName": one.name,
            "event": one.event,
            "timing": one.timing,
            "statement": one.statement,
        }
        for table in tables
        for one in table.triggers
    ]
    return _written({"tableName": None if name is None else tables[0].name, "triggers": triggers})


def _written(value: dict[str, Json]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _column(column: Column, table: Table) -> dict[str, Json]:
    name, size, _ = _sized(column.type)
    return {
        "columnName": column.name,
        "dataType": name,
        "columnSize": size,
        "nullable": column.nullable,
        "isPrimaryKey": column.name in table.primary_key,
    }


def _column_detail(column: Column, table: Table) -> dict[str, Json]:
    name, size, digits = _sized(column.type)
    return {
        "columnName": column.name,
        "dataType": name,
        "columnSize": size,
        "decimalDigits": digits,
        "nullable": column.nullable,
        "defaultValue": column.default,
        "isPrimaryKey": column.name in table.primary_key,
        "isAutoIncrement": column.generated,
    }


def _sized(written: str) -> tuple[str, int | None, int | None]:
    """`numeric(10,2)` as its name, its size and its digits."""
    found = _SIZED.match(written)
    if found is None:
        return written, None, None
    name, size, digits, rest = found.groups()
    return name + rest, int(size), None if digits is None else int(digits)


def _index(index: Index) -> list[Json]:
    return [
        {"indexName": index.name, "unique": index.unique, "columnName": column, "ordinalPosition": position}
        for position, column in enumerate(index.columns, 1)
    ]


def _foreign_key(foreign: ForeignKey) -> list[Json]:
    """A line a column, as the original has them."""
    targets = (*foreign.to, *[None] * (len(foreign.columns) - len(foreign.to)))
    return [
        {
            "fkName": foreign.name,
            "fkColumn": column,
            "pkTableName": foreign.table,
            "pkColumn": target,
            "updateRule": foreign.on_update or "NO ACTION",
            "deleteRule": foreign.on_delete or "NO ACTION",
        }
        for column, target in zip(foreign.columns, targets, strict=False)
    ]


def _constraints(table: Table) -> list[Json]:
    """Always empty in the original; here the keys and the checks, in its shape."""
    keys: list[Json] = [_constraint(None, "PRIMARY KEY", column) for column in table.primary_key]
    return [*keys, *(_constraint(check, "CHECK", None) for check in table.checks)]


def _constraint(name: str | None, kind: str, column: str | None) -> dict[str, Json]:
    return {"constraintName": name, "constraintType": kind, "columnName": column}
