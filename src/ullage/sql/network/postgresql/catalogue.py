"""What do the rows of PostgreSQL's catalogues say?"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ullage.table import Cell, Row

from ...engine import Stability
from ...quoting import quoted
from ...structure import Column, ForeignKey, Index, Routine, Structure, Table, Trigger, in_order

__all__ = ["functions", "structure"]

_STABILITY: dict[Cell, Stability] = {"i": "immutable", "s": "stable", "v": "volatile", "m": "made"}
_ORDER: tuple[Stability, ...] = ("immutable", "stable", "volatile", "made")
_RULES: dict[Cell, str] = {"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}
# Bits of pg_trigger.tgtype.
_EVENTS = ((4, "INSERT"), (16, "UPDATE"), (8, "DELETE"), (32, "TRUNCATE"))
_BEFORE, _INSTEAD = 2, 64


def functions(rows: Iterable[Row]) -> Mapping[str, Stability]:
    found: dict[str, Stability] = {}
    for name, letter in rows:
        stability = _STABILITY[letter]
        known = found.get(str(name), stability)
        found[str(name)] = _ORDER[max(_ORDER.index(known), _ORDER.index(stability))]
    return found


def structure(found: Mapping[str, list[Row]]) -> Structure:
    database, default = found["database"][0]
    columns, indexes, triggers = (_by_table(found[name]) for name in ("columns", "indexes", "triggers"))
    constraints = _by_table(found["constraints"])
    tables = [
        Table(
            name=str(name),
            schema=_schema(schema, default),
            kind="view" if is_view else "table",
            columns=tuple(map(_column, columns[key])),
            primary_key=next((_names(row[3]) for row in constraints[key] if row[1] == "p"), ()),
            foreign_keys=tuple(_foreign_key(row, default) for row in constraints[key] if row[1] == "f"),
            indexes=tuple(map(_index, indexes[key])),
            checks=tuple(str(row[9]) for row in constraints[key] if row[1] in ("c", "x")),
            triggers=tuple(map(_trigger, triggers[key])),
            rows=rows if isinstance(rows, int) and rows >= 0 and not is_view else None,
            definition=_text(definition),
            comment=_text(comment),
        )
        for key, schema, name, is_view, rows, comment, definition in found["tables"]
    ]
    routines = tuple(_routine(row, default) for row in found["routines"])
    return Structure(
        tables=in_order(tables),
        routines=routines,
        name=str(database),
        default_schema=_text(default),
        catalogue=_catalogue(found),
    )


def _catalogue(found: Mapping[str, list[Row]]) -> tuple[Table, ...]:
    columns = _by_table(found["every column"])
    known = {(row[1], row[2]) for row in found["every table"]}
    tables: list[Table] = []
    for key, schema, name, is_view, definition, parents, remote in found["every table"]:
        table = Table(
            name=str(name),
            schema=str(schema),
            kind="view" if is_view else "table",
            columns=tuple(
                Column(name=str(column), type="", computed=bool(computed), expression=_text(expression))
                for _, column, computed, expression, _ in columns[key]
            ),
            definition=_text(definition),
            parents=tuple(f"{one[0]}.{one[1]}" for one in parents if isinstance(one, list))
            if isinstance(parents, list)
            else (),
        )
        if isinstance(remote, list) and tuple(remote) in known - {(schema, name)}:
            table = _foreign(table, [str(there or column) for _, column, _, _, there in columns[key]], *_names(remote))
        tables.append(table)
    return tuple(tables)


def _foreign(table: Table, columns: list[str], schema: str, name: str) -> Table:
    """A foreign table whose remote one is called as one of this database, and may be that: it shows what that shows."""
    if table.parents:
        return replace(table, parents=(*table.parents, f"{schema}.{name}"))
    listed = ", ".join(quoted("postgres", column) for column in columns)
    source = f"{quoted('postgres', schema)}.{quoted('postgres', name)}"
    return replace(table, kind="view", definition=f"SELECT {listed} FROM {source}")


def _by_table(rows: Iterable[Row]) -> Mapping[Cell, list[Row]]:
    grouped: defaultdict[Cell, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row[0]].append(row)
    return grouped


def _column(row: Row) -> Column:
    _, name, kind, nullable, default, generated, computed, comment = row
    return Column(
        name=str(name),
        type=str(kind),
        nullable=bool(nullable),
        default=_text(default),
        generated=bool(generated) or str(default).startswith("nextval("),
        computed=bool(computed),
        expression=_text(default) if computed else None,
        comment=_text(comment),
    )


def _foreign_key(row: Row, default: Cell) -> ForeignKey:
    _, _, name, columns, schema, table, to, on_update, on_delete, _ = row
    other = _schema(schema, default)
    return ForeignKey(
        columns=_names(columns),
        table=str(table) if other is None else f"{other}.{table}",
        to=_names(to),
        name=str(name),
        on_update=_RULES.get(on_update),
        on_delete=_RULES.get(on_delete),
    )


def _index(row: Row) -> Index:
    _, name, unique, columns = row
    return Index(name=str(name), columns=_names(columns), unique=bool(unique))


def _trigger(row: Row) -> Trigger:
    _, name, kind, statement = row
    bits = kind if isinstance(kind, int) else 0
    timing = "BEFORE" if bits & _BEFORE else "INSTEAD OF" if bits & _INSTEAD else "AFTER"
    events = " OR ".join(event for bit, event in _EVENTS if bits & bit)
    return Trigger(name=str(name), timing=timing, event=events, statement=_text(statement))


def _routine(row: Row, default: Cell) -> Routine:
    schema, name, is_procedure, arguments, returns = row
    return Routine(
        name=str(name),
        kind="procedure" if is_procedure else "function",
        schema=_schema(schema, default),
        arguments=_text(arguments),
        returns=_text(returns),
    )


def _schema(schema: Cell, default: Cell) -> str | None:
    return None if schema == default else str(schema)


def _names(listed: Cell) -> tuple[str, ...]:
    return tuple(map(str, listed)) if isinstance(listed, list) else ()


def _text(value: Cell) -> str | None:
    return None if value is None else str(value)
