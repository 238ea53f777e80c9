"""The masked columns of the settings, and refusals of statements that would show them.

Names are compared without regard to case, which masks too much where a database tells them apart, and never too
little. A table that the structure does not hold is unknown, and so is what it may hold; a few tables of every database
that describe only others are known to hold no values.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NoReturn

from sqlglot import exp

from ullage.errors import Refused, UnknownName

from .database import Column, Structure, Table
from .describe import full_name, spell

__all__ = [
    "UNCOUNTED",
    "Columns",
    "Derive",
    "Output",
    "Tables",
    "fold",
    "not_understood",
    "refuse",
    "refuse_any",
    "unknown_column",
    "unknown_table",
]

_DESCRIBING = frozenset(
    """
    information_schema.columns information_schema.tables information_schema.views information_schema.schemata
    information_schema.table_constraints information_schema.key_column_usage information_schema.statistics
    information_schema.referential_constraints information_schema.constraint_column_usage information_schema.routines
    information_schema.parameters information_schema.triggers information_schema.check_constraints
    sqlite_master sqlite_schema sqlite_stat1
    pg_attribute pg_class pg_constraint pg_database pg_description pg_enum pg_extension pg_index pg_indexes pg_inherits
    pg_matviews pg_namespace pg_proc pg_roles pg_sequences pg_settings pg_stat_user_indexes pg_stat_user_tables
    pg_tables pg_trigger pg_type pg_views
    """.split()  # noqa: SIM905
)
"""Not among them: statistics, which hold samples of values, and lists of running statements."""
_DEFAULTS = ("public", "main", "dbo")
"""What default schemas are called."""
_WORD = re.compile(r"[\w$]+")


@dataclass(frozen=True, slots=True)
class Output:
    """A column that a query gives."""

    name: str
    """Folded; empty where only the database knows how it calls it."""
    masks: frozenset[str] = frozenset()
    """The masked columns whose values may stand here, as `table.column`."""


Columns = tuple[Output, ...]
UNCOUNTED = Output("*")
"""Stands for columns that nobody listed, none of them masked."""


Derive = Callable[["Tables", Table], tuple[frozenset[str], ...] | None]
"""The masked columns that may stand in each column of a view; None where that cannot be told."""


@dataclass(slots=True)
class Tables:
    """The relations of a database, with what is masked in each of their columns.

    A column is masked where a pattern names it, and where its values come from one that is masked: by the expression
    of a generated column, by inheritance in either direction, through a view, or through a virtual table. What a
    relation shows is found when it is first asked for, and kept.
    """

    structure: Structure
    patterns: tuple[str, ...]
    derive: Derive
    is_closed: bool = True
    """Whether an unknown table may hold masked values. False where only tables of the server itself are masked."""
    _named: dict[str, list[Table]] = field(default_factory=dict[str, list[Table]])
    _kept: dict[int, Columns] = field(default_factory=dict[int, Columns])
    _pending: set[int] = field(default_factory=set[int])
    """Views that are being read: one that reads itself is not understood."""

    def __post_init__(self) -> None:
        for table in self.structure.catalogue or self.structure.tables:
            self._named.setdefault(fold(table.name), []).append(table)

    def columns(self, name: str, schema: str, catalog: str = "") -> Columns | None:
        """Of a table; uncounted where it only describes others; None where it is unknown or may be one of several."""
        if catalog and fold(catalog) != fold(self.structure.name or ""):
            return None
        table = self.find(name, schema)
        if table is not None:
            return self.of(table)
        is_described = fold(name) not in self._named and _describes(name, schema)
        return (UNCOUNTED,) if is_described or not self.is_closed else None

    def find(self, name: str, schema: str) -> Table | None:
        """The one relation that a name means; None for none, or several."""
        called = self._named.get(fold(name), [])
        chosen = [table for table in called if fold(table.schema or "") == fold(schema)]
        if not chosen and (not schema or self._is_default(schema)):
            default = fold(self.structure.default_schema or "")
            chosen = [table for table in called if fold(table.schema or "") in ("", default)]
        return chosen[0] if len(chosen) == 1 else None

    def of(self, table: Table) -> Columns:
        """The columns of a relation. Where nobody can tell what a view shows, all of them are masked."""
        known = self._kept.get(id(table))
        if known is not None:
            return known
        masks = self._of_view(table) if table.kind == "view" else self._of_table(table)
        named = [self._by_pattern(table, column.name) for column in table.columns]
        columns = tuple(
            Output(fold(column.name), own | derived)
            for column, own, derived in zip(table.columns, named, masks, strict=True)
        )
        self._kept[id(table)] = columns
        return columns

    def rowid(self, name: str, schema: str) -> frozenset[str] | None:
        """What the number of a row may tell in SQLite: it may be the key, and of a virtual table it may be anything."""
        table = self.find(name, schema)
        if table is None or table.kind == "view":
            return None
        keys = {fold(key) for key in table.primary_key}
        told = (one.masks for one in self.of(table) if table.module is not None or one.name in keys)
        return frozenset[str]().union(*told)

    def _of_view(self, table: Table) -> list[frozenset[str]]:
        if id(table) in self._pending:
            derived = None
        else:
            self._pending.add(id(table))
            try:
                derived = self.derive(self, table)
            finally:
                self._pending.discard(id(table))
        if derived is None or len(derived) != len(table.columns):
            return [frozenset({f"{table.name}.{column.name}"}) for column in table.columns]
        return list(derived)

    def _of_table(self, table: Table) -> list[frozenset[str]]:
        """By the patterns on the table and on all that inherit with it, then by what is computed from those."""
        family = self._family(table)
        masks: dict[str, frozenset[str]] = {}
        changed = True
        while changed:
            before = dict(masks)
            for member in family:
                for column in member.columns:
                    name = fold(column.name)
                    found = self._by_pattern(member, column.name) | self._computed(member, column, masks)
                    masks[name] = masks.get(name, frozenset()) | found
            changed = masks != before
        reached = self._by_module(table)
        return [masks[fold(column.name)] | reached for column in table.columns]

    def _family(self, table: Table) -> list[Table]:
        """The table, those it inherits from, those that inherit from it, and theirs."""
        every = [one for tables in self._named.values() for one in tables]
        if not any(one.parents for one in every):
            return [table]
        links: dict[str, set[str]] = {}
        for one in every:
            for parent in one.parents:
                links.setdefault(_full(one), set()).add(fold(parent))
                links.setdefault(fold(parent), set()).add(_full(one))
        found, waiting = {_full(table)}, [_full(table)]
        while waiting:
            new = links.get(waiting.pop(), set()) - found
            found |= new
            waiting.extend(new)
        return [one for one in every if _full(one) in found]

    def _computed(self, table: Table, column: Column, masks: Mapping[str, frozenset[str]]) -> frozenset[str]:
        """What a generated column may tell: of every masked column that its expression names, or of all of them."""
        if not column.computed:
            return frozenset()
        text = None if column.expression is None else fold(column.expression)
        words = set(_WORD.findall(text or ""))
        names = [fold(one.name) for one in table.columns]
        read = [
            name
            for name in names
            if text is None or name in words or (name in text and not _WORD.fullmatch(name)) or "\\" in text
        ]
        return frozenset[str]().union(*(masks.get(name, frozenset()) for name in read))

    def _by_module(self, table: Table) -> frozenset[str]:
        """What a virtual table may show: all that is masked in a table that its arguments name."""
        if table.module is None or id(table) in self._pending:
            return frozenset()
        self._pending.add(id(table))
        try:
            words = {fold(word) for word in _WORD.findall(table.module)} - {fold(table.name)}
            named = [one for word in words for one in self._named.get(word, ())]
            return frozenset[str]().union(*(column.masks for one in named for column in self.of(one)))
        finally:
            self._pending.discard(id(table))

    def _is_default(self, schema: str) -> bool:
        if self.structure.default_schema is not None:
            return fold(schema) == fold(self.structure.default_schema)
        return fold(schema) in (*_DEFAULTS, fold(self.structure.name or ""))

    def _by_pattern(self, table: Table, column: str) -> frozenset[str]:
        schema = None if table.schema is None or self._is_default(table.schema) else table.schema
        is_masked = any(_fits(fold(pattern), table, schema, column) for pattern in self.patterns)
        return frozenset({f"{table.name}.{column}"} if is_masked else ())


def fold(name: str) -> str:
    return name.casefold()


def _describes(name: str, schema: str) -> bool:
    if fold(schema) == "pg_catalog":
        return fold(name).startswith("pg_") and fold(name) in _DESCRIBING
    return ".".join(filter(None, (fold(schema), fold(name)))) in _DESCRIBING


def _full(table: Table) -> str:
    return fold(f"{table.schema}.{table.name}")


def _fits(pattern: str, table: Table, schema: str | None, column: str) -> bool:
    """`column`, `table.column`, or `schema.table.column`, where the default schema goes by any name."""
    short = f"{fold(table.name)}.{fold(column)}"
    if fnmatchcase(short, pattern) or ("." not in pattern and fnmatchcase(fold(column), pattern)):
        return True
    if schema is None and fnmatchcase(short, pattern.partition(".")[2]):
        return True
    return table.schema is not None and fnmatchcase(f"{fold(table.schema)}.{short}", pattern)


_LONG = 60
_SHOWN = 30
"""Columns that are named where none is near."""
_HOW = "select it as it is, which shows `***`, or leave it out; name columns instead of whole rows"


def refuse(masks: frozenset[str], node: exp.Expr, what: str = "") -> None:
    """Raises where there is anything to hide."""
    for name in sorted(masks):
        raise Refused(f"`{name}` is masked and may not be used in {what or f'`{_excerpt(node)}`'}", suggestion=_HOW)


def refuse_any(columns: Iterable[Output], node: exp.Expr, what: str) -> None:
    for column in columns:
        refuse(column.masks, node, what)


def not_understood(node: exp.Expr) -> NoReturn:
    raise Refused(
        f"columns of this database are masked, and `{_excerpt(node)}` might show them",
        suggestion="name known tables and their columns plainly, in the same letters everywhere",
    )


def unknown_table(node: exp.Table, structure: Structure) -> NoReturn:
    """A table that is misspelt, or that holds nobody knows what."""
    name = ".".join(part.name for part in node.parts)
    near = spell(node.name, map(full_name, structure.tables))
    raise UnknownName(
        f"columns of this database are masked, and no table `{_short(name)}` is known that might show them",
        suggestion="use a table that exists, or list them with schema",
        options=near,
    )


def unknown_column(node: exp.Column, known: Collection[str]) -> NoReturn:
    raise UnknownName(
        f"columns of this database are masked, and no column `{_short(node.sql())}` is known that might show them",
        suggestion="use a column that exists, by its table's name or alias; table lists them all",
        options=spell(node.name, known) or tuple(sorted(known))[:_SHOWN],
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _excerpt(node: exp.Expr) -> str:
    return _short(node.sql())
