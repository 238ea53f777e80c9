"""What is a table in one line?

    orders(id int*, customer_id int>customers, placed_at timestamp, total numeric) ~10k rows

A star marks the key, `>` what a column refers to. Enough to write a query; indexes, defaults and checks are `full`'s.
"""

from collections.abc import Mapping

from ..structure import Column, Table
from .words import full_name, on_one_line, rounded, short_type

__all__ = ["LEGEND", "line"]

LEGEND = "-- * primary key, > references"

Keys = Mapping[str, tuple[str, ...]]
"""Primary keys, by the tables' full names."""


def line(table: Table, keys: Keys) -> str:
    references = _references(table, keys)
    columns = ", ".join(_column(column, table, references) for column in table.columns)
    view = "view " if table.kind == "view" else ""
    size = "" if table.rows is None else f" {rounded(table.rows)} rows"
    return f"{view}{full_name(table)}({columns}){size}"


def _column(column: Column, table: Table, references: Mapping[str, str]) -> str:
    key = "*" if column.name in table.primary_key else ""
    written = short_type(column.type)
    said = f"{on_one_line(column.name)} {written}".rstrip()
    return f"{said}{key}{references.get(column.name, '')}"


def _references(table: Table, keys: Keys) -> dict[str, str]:
    """Where each column leads; the other's column is named only where it is not that table's key."""
    found: dict[str, str] = {}
    for foreign in table.foreign_keys:
        known = keys.get(foreign.table, foreign.to) == foreign.to
        for index, column in enumerate(foreign.columns):
            other = on_one_line(foreign.table)
            named = known or index >= len(foreign.to)
            found.setdefault(column, f">{other}" if named else f">{other}.{on_one_line(foreign.to[index])}")
    return found
