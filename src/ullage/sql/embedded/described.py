"""Which tables does a worker's JSON describe?"""

from collections.abc import Mapping
from typing import Any, cast

from ullage.tool import Json

from ..structure import Column, ForeignKey, Index, Routine, Structure, Table, Trigger, in_order

__all__ = ["read_structure"]

Found = Mapping[str, Any]
"""Made by our own catalogue queries, so its keys are known."""


def read_structure(value: Json, *, name: str) -> Structure:
    found = cast("Found", value)
    routines = tuple(Routine(**routine) for routine in found.get("routines", ()))
    return Structure(tables=in_order(map(_table, found["tables"])), routines=routines, name=name)


def _table(found: Found) -> Table:
    return Table(
        name=found["name"],
        schema=found.get("schema"),
        kind=found["kind"],
        columns=tuple(_column(column) for column in found["columns"]),
        primary_key=tuple(found["primary_key"]),
        foreign_keys=tuple(_foreign_key(key) for key in found["foreign_keys"]),
        indexes=tuple(_index(index) for index in found["indexes"]),
        checks=tuple(found["checks"]),
        triggers=tuple(Trigger(**trigger) for trigger in found["triggers"]),
        rows=found.get("rows"),
        definition=found.get("definition"),
        comment=found.get("comment"),
        module=found.get("module"),
    )


def _column(found: Found) -> Column:
    return Column(
        name=found["name"],
        type=found["type"],
        nullable=found["nullable"],
        default=found["default"],
        generated=found["generated"],
        computed=bool(found.get("computed")),
        expression=found.get("expression"),
        comment=found.get("comment"),
    )


def _foreign_key(found: Found) -> ForeignKey:
    return ForeignKey(
        columns=tuple(found["columns"]),
        table=found["table"],
        to=tuple(found["to"]),
        name=found.get("name"),
        on_update=found.get("on_update"),
        on_delete=found.get("on_delete"),
    )


def _index(found: Found) -> Index:
    return Index(name=found["name"], columns=tuple(found["columns"]), unique=found["unique"])
