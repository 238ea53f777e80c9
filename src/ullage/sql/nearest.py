"""Which name was meant, where a database knows none of that spelling?

Databases say it each in their own words; what is found there is looked up among the tables and columns that exist.
"""

import re
from collections.abc import Collection, Iterable

from ullage.errors import QueryFailed

from .describe import full_name, spell
from .structure import Structure, Table

__all__ = ["is_about_a_name", "with_nearest"]

_NAME = r"[\"'`\[]?(?P<name>[\w$.\"`\[\] ]+?)[\"'`\]]?"
_TABLE = re.compile(
    rf"no such table: (?P<sqlite>[\w$. ]+)|relation {_NAME} does not exist|Table with name (?P<duckdb>[\w$.]+) does not"
    r"|Table '(?P<mysql>[^']+)' doesn't exist|Invalid object name '(?P<tsql>[^']+)'",
    re.IGNORECASE,
)
_COLUMN = re.compile(
    rf"no such column: (?P<sqlite>[\w$. ]+)|column {_NAME} does not exist|column \"(?P<duckdb>[^\"]+)\" not found"
    r"|Table \"[^\"]+\" does not have a column named \"(?P<duckdb2>[^\"]+)\""
    r"|Unknown column '(?P<mysql>[^']+)'|Invalid column name '(?P<tsql>[^']+)'",
    re.IGNORECASE,
)
_SHOWN = 30
"""Columns that are named where none is near."""


def is_about_a_name(error: QueryFailed) -> bool:
    return any(pattern.search(error.message) for pattern in (_TABLE, _COLUMN))


def with_nearest(error: QueryFailed, structure: Structure, tables: Collection[str]) -> QueryFailed:
    """The same error with the nearest names; `tables` are those that the question names."""
    table, column = _found(_TABLE, error.message), _found(_COLUMN, error.message)
    if table is not None:
        near = spell(table, map(full_name, structure.tables))
        return _mended(error, near, "use a table that exists, or list them with schema")
    if column is not None:
        return _mended(error, _columns(structure, tables, column), "use a column that exists; table lists them all")
    return error


def _found(pattern: re.Pattern[str], message: str) -> str | None:
    found = pattern.search(message)
    if found is None:
        return None
    name = next(group for group in found.groups() if group is not None)
    return name.replace('"', "").replace("`", "").rpartition(".")[2].strip()


def _columns(structure: Structure, tables: Collection[str], wanted: str) -> tuple[str, ...]:
    """Those of the question's tables, else those of all; with their table where several have one of that name."""
    meant = [table for table in structure.tables if _is_among(table, tables)] or list(structure.tables)
    near = spell(wanted, {column.name for table in meant for column in table.columns})
    if near:
        return tuple(name for column in near for name in _placed(column, meant))
    return tuple(column.name for table in meant for column in table.columns)[:_SHOWN]


def _placed(column: str, tables: Iterable[Table]) -> list[str]:
    return [f"{table.name}.{column}" for table in tables if any(one.name == column for one in table.columns)]


def _is_among(table: Table, names: Collection[str]) -> bool:
    lower = {name.lower().rpartition(".")[2] for name in names}
    return table.name.lower() in lower


def _mended(error: QueryFailed, options: tuple[str, ...], suggestion: str) -> QueryFailed:
    return QueryFailed(error.message, suggestion=suggestion, options=options or error.options)
