"""What does SQLAlchemy know of a database's tables?

Whatever its inspector reads for many tables at once, and no more: it knows no triggers, routines or row estimates.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from sqlalchemy import Connection, inspect
from sqlalchemy.engine.interfaces import ReflectedColumn, ReflectedForeignKeyConstraint, ReflectedIndex
from sqlalchemy.engine.reflection import Inspector, ObjectKind

from ...structure import Column, ForeignKey, Index, Structure, Table, in_order

__all__ = ["structure"]

_Read = TypeVar("_Read")
_Many = Mapping[tuple[str | None, str], _Read]


def structure(connection: Connection) -> Structure:
    inspector = inspect(connection)
    views = set(inspector.get_view_names())
    columns = inspector.get_multi_columns(kind=ObjectKind.ANY)
    tables = _known(inspector.get_multi_pk_constraint)
    foreign_keys = _known(inspector.get_multi_foreign_keys)
    indexes = _known(inspector.get_multi_indexes)
    checks = _known(inspector.get_multi_check_constraints)
    found = [
        Table(
            name=key[1],
            schema=key[0],
            kind="view" if key[1] in views else "table",
            columns=tuple(map(_column, listed)),
            primary_key=tuple(key_of["constrained_columns"]) if (key_of := tables.get(key)) else (),
            foreign_keys=tuple(map(_foreign_key, foreign_keys.get(key, ()))),
            indexes=tuple(map(_index, indexes.get(key, ()))),
            checks=tuple(f"CHECK ({check['sqltext']})" for check in checks.get(key, ())),
            definition=_definition(inspector, key[1]) if key[1] in views else None,
        )
        for key, listed in columns.items()
    ]
    return Structure(tables=in_order(found), name=connection.engine.url.database)


def _known(read: "Callable[[], _Many[_Read]]") -> "_Many[_Read]":
    """Not every dialect can tell of everything."""
    try:
        return read()
    except NotImplementedError:
        return {}


def _definition(inspector: Inspector, name: str) -> str | None:
    try:
        return inspector.get_view_definition(name)
    except NotImplementedError:
        return None


def _column(column: ReflectedColumn) -> Column:
    return Column(
        name=column["name"],
        type=str(column["type"]),
        nullable=column["nullable"],
        default=column["default"],
        generated=column.get("autoincrement") is True or "computed" in column or "identity" in column,
        comment=column.get("comment"),
    )


def _foreign_key(foreign: ReflectedForeignKeyConstraint) -> ForeignKey:
    schema = foreign["referred_schema"]
    options: Mapping[str, str] = foreign.get("options", {})
    return ForeignKey(
        columns=tuple(foreign["constrained_columns"]),
        table=foreign["referred_table"] if schema is None else f"{schema}.{foreign['referred_table']}",
        to=tuple(foreign["referred_columns"]),
        name=foreign["name"],
        on_update=options.get("onupdate"),
        on_delete=options.get("ondelete"),
    )


def _index(index: ReflectedIndex) -> Index:
    columns: Iterable[str | None] = index["column_names"]
    return Index(
        name=index["name"] or "",
        columns=tuple(name or "(expression)" for name in columns),
        unique=bool(index["unique"]),
    )
