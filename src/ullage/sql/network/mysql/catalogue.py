"""What do the rows of MySQL's catalogues say?"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ullage.table import Cell, Row

from ...structure import Column, ForeignKey, Index, Routine, Structure, Table, Trigger, in_order

__all__ = ["merged_tables", "structure"]

_PRIMARY = "PRIMARY"
_UNION = re.compile(r"\bUNION=\((?P<names>(?:`(?:[^`]|``)+`[.,]?)+)\)")
_MERGED = ("MRG_MYISAM", "MERGE")
_ELSEWHERE = (*_MERGED, "FEDERATED", "CONNECT", "SPIDER", "OQGRAPH")
"""Engines whose tables show the rows of other tables."""
_Grouped = Mapping[tuple[Cell, ...], list[Row]]


def merged_tables(found: Mapping[str, list[Row]]) -> list[tuple[str, str]]:
    """Those that show the rows of other tables of the server, as database and name."""
    return [(str(row[0]), str(row[1])) for row in found["tables"] if str(row[6]).upper() in _MERGED]


def structure(found: Mapping[str, list[Row]], database: Cell, created: Mapping[tuple[str, str], str]) -> Structure:
    """`created` are the statements that make the `merged_tables`."""
    names = ("columns", "indexes", "foreign keys", "checks", "triggers")
    columns, indexes, keys, checks, triggers = (_grouped(found[name], 2) for name in names)
    tables = [
        Table(
            name=str(name),
            schema=_schema(schema, database),
            kind="view" if kind == "VIEW" else "table",
            columns=tuple(map(_column, columns[schema, name])),
            primary_key=tuple(str(row[4]) for row in indexes[schema, name] if row[2] == _PRIMARY),
            foreign_keys=tuple(_foreign_key(rows, database) for rows in _parts(keys[schema, name])),
            indexes=tuple(_index(rows) for rows in _parts(indexes[schema, name]) if rows[0][2] != _PRIMARY),
            checks=tuple(f"CHECK ({row[3]})" for row in checks[schema, name]),
            triggers=tuple(map(_trigger, triggers[schema, name])),
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
        routines=tuple(_routine(rows, database) for rows in _grouped(found["routines"], 3).values()),
        name=_text(database),
        default_schema=_text(database),
        catalogue=_followed(tables, elsewhere, created, str(database)),
    )


def _followed(
    tables: Iterable[Table], elsewhere: set[tuple[str, str]], created: Mapping[tuple[str, str], str], database: str
) -> tuple[Table, ...]:
    """The tables, with those that show others' rows as the views that they are; none where there are no such."""
    if not elsewhere:
        return ()
    places = ((table, (table.schema or database, table.name)) for table in tables)
    return tuple(
        replace(table, kind="view", definition=_merging(created.get(place, ""))) if place in elsewhere else table
        for table, place in places
    )


def _merging(created: str) -> str | None:
    """What such a table shows, as a query; None where that is not known."""
    found = _UNION.search(created)
    names = re.findall(r"(?:`(?:[^`]|``)+`\.?)+", found["names"]) if found else []
    return " UNION ALL ".join(f"SELECT * FROM {name}" for name in names) or None


def _grouped(rows: Iterable[Row], width: int) -> _Grouped:
    grouped: defaultdict[tuple[Cell, ...], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row[:width]].append(row)
    return grouped


def _parts(rows: list[Row]) -> Iterable[list[Row]]:
    """The rows of each index or key of a table."""
    return _grouped(rows, 3).values()


def _column(row: Row) -> Column:
    _, _, name, kind, nullable, default, extra, comment, expression = row
    said = str(extra).lower()
    # Both servers name the kind of a generated column there; MySQL also writes it for a default that is an expression.
    computed = "virtual generated" in said or "stored generated" in said or _text(expression) is not None
    return Column(
        name=str(name),
        type=str(kind),
        nullable=nullable == "YES",
        # MariaDB writes the word where there is no default.
        default=None if default == "NULL" else _text(default),
        generated="auto_increment" in said or computed,
        computed=computed,
        expression=_text(expression),
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


def _index(rows: list[Row]) -> Index:
    return Index(
        name=str(rows[0][2]),
        # An index over an expression has no column.
        columns=tuple(_text(row[4]) or "(expression)" for row in rows),
        unique=not rows[0][3],
    )


def _trigger(row: Row) -> Trigger:
    _, _, name, timing, event, statement = row
    return Trigger(name=str(name), timing=_text(timing), event=_text(event), statement=_text(statement))


def _routine(rows: list[Row], database: Cell) -> Routine:
    schema, name, kind, *_ = rows[0]
    # The parameter at place 0 is what a function returns.
    named = [_parameter(row) for row in rows if isinstance(row[3], int) and row[3] > 0]
    returns = next((_text(row[6]) for row in rows if row[3] == 0), None)
    return Routine(
        name=str(name),
        kind="procedure" if kind == "PROCEDURE" else "function",
        schema=_schema(schema, database),
        arguments=", ".join(named),
        returns=returns,
    )


def _parameter(row: Row) -> str:
    _, _, kind, _, mode, name, type_name = row
    return f"{mode} {name} {type_name}" if kind == "PROCEDURE" else f"{name} {type_name}"


def _schema(schema: Cell, database: Cell) -> str | None:
    return None if schema == database else str(schema)


def _text(value: Cell) -> str | None:
    return None if value is None or value == "" else str(value)
