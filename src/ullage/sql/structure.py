"""What is in a database?

Values only: an engine reads them, others write them down for a model.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Column", "ForeignKey", "Index", "Routine", "Structure", "Table", "Trigger", "in_order"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    type: str
    """As the engine writes it: `varchar(20)`, `numeric(10,2)`."""
    nullable: bool = True
    default: str | None = None
    generated: bool = False
    """Whether the engine fills it: identity, auto-increment, computed."""
    computed: bool = False
    """Whether it is computed from other columns."""
    expression: str | None = None
    """What it is computed by; None where that is not known."""
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    columns: tuple[str, ...]
    table: str
    """The table it points at, with its schema where that is not the default one."""
    to: tuple[str, ...]
    name: str | None = None
    on_update: str | None = None
    on_delete: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    name: str
    columns: tuple[str, ...]
    unique: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    name: str
    timing: str | None = None
    """BEFORE, AFTER or INSTEAD OF."""
    event: str | None = None
    """INSERT, UPDATE, DELETE, or several."""
    statement: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    name: str
    schema: str | None = None
    """None for the default one."""
    kind: Literal["table", "view"] = "table"
    columns: tuple[Column, ...] = ()
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    indexes: tuple[Index, ...] = ()
    checks: tuple[str, ...] = ()
    """Other constraints, each as the engine writes it."""
    triggers: tuple[Trigger, ...] = ()
    rows: int | None = None
    """An estimate by the engine's statistics; None where it has none."""
    definition: str | None = None
    """A view's query."""
    comment: str | None = None
    parents: tuple[str, ...] = ()
    """Tables whose columns it inherits, as `schema.name`: it is a partition of one, or made by INHERITS."""
    module: str | None = None
    """Of a virtual table, the CREATE statement, whose arguments may name other tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routine:
    name: str
    kind: Literal["function", "procedure"]
    schema: str | None = None
    arguments: str | None = None
    returns: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """A database, its tables in the order of their names."""

    tables: tuple[Table, ...] = ()
    routines: tuple[Routine, ...] = ()
    name: str | None = None
    default_schema: str | None = None
    """What the schema is called whose tables have None for one; None where it is not known."""
    catalogue: tuple[Table, ...] = ()
    """Every relation with every column, also those that the role may not read itself but views may read for it, each
    with its schema's name. For whoever follows where values come from; empty where `tables` are all there is."""


def in_order(tables: Iterable[Table]) -> tuple[Table, ...]:
    """As a `Structure` has them: by name, and by schema where one name is in several."""
    return tuple(sorted(tables, key=lambda table: (table.name, table.schema or "")))
