"""The masked columns of the settings, and refusals of statements that would reveal them.

Names are compared case-insensitively. In a case-sensitive database this masks too much, never too little. A table
missing from the structure may contain anything. A few tables of every database that only describe others are known to
contain no values.
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
"""Tables that only describe others. Statistics, which contain sample values, and lists of running statements are
excluded."""
_DEFAULTS = ("public", "main", "dbo")
"""Names of default schemas."""
_WORD = re.compile(r"[\w$]+")


@dataclass(frozen=True, slots=True)
class Output:
    """An output column of a query."""

    name: str
    """Case-folded; empty if only the database knows its name."""
    masks: frozenset[str] = frozenset()
    """The masked columns whose values it may contain, as `table.column`."""


Columns = tuple[Output, ...]
UNCOUNTED = Output("*")
"""Represents columns that are not listed, none of them masked."""


Derive = Callable[["Tables", Table], tuple[frozenset[str], ...] | None]
"""Returns the masked columns in each column of a view; None if they cannot be determined."""


@dataclass(slots=True)
class Tables:
    """The relations of a database, with the masked columns of each.

    A column is masked if a pattern matches it, or if its values come from a masked one: by the expression of a
    generated column, by inheritance in either direction, through a view, or through a virtual table. The result for
    each relation is computed on first use and cached.
    """

    structure: Structure
    patterns: tuple[str, ...]
    derive: Derive
    is_closed: bool = True
    """Whether an unknown table may contain masked values. False if only tables of the server itself are masked."""
    _named: dict[str, list[Table]] = field(default_factory=dict[str, list[Table]])
    _kept: dict[int, Columns] = field(default_factory=dict[int, Columns])
    _pending: set[int] = field(default_factory=set[int])
    """Views being read, to detect a view that reads itself."""

    def __post_init__(self) -> None:
        for table in self.structure.catalogue or self.structure.tables:
            self._named.setdefault(fold(table.name), []).append(table)

    def columns(self, name: str, schema: str, catalog: str = "") -> Columns | None:
        """Return the columns of a table.

        `UNCOUNTED` if it only describes others; None if it is unknown or the name is ambiguous.
        """
        if catalog and fold(catalog) != fold(self.structure.name or ""):
            return None
        table = self.find(name, schema)
        if table is not None:
            return self.of(table)
        is_described = fold(name) not in self._named and _describes(name, schema)
        return (UNCOUNTED,) if is_described or not self.is_closed else None

    def find(self, name: str, schema: str) -> Table | None:
        """Return the one relation that a name refers to; None if there is none, or several."""
        called = self._named.get(fold(name), [])
        chosen = [table for table in called if fold(table.schema or "") == fold(schema)]
        if not chosen and (not schema or self._is_default(schema)):
            default = fold(self.structure.default_schema or "")
            chosen = [table for table in called if fold(table.schema or "") in ("", default)]
        return chosen[0] if len(chosen) == 1 else None

    def of(self, table: Table) -> Columns:
        """Return the columns of a relation. If a view is not understood, all of them are masked."""
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
        """Return the masked columns that SQLite's row id may reveal: it may be the key, or anything in a virtual
        table."""
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
        """Apply the patterns to the table and all related by inheritance, then mask what is computed from those
        columns."""
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
        """Return the table, its ancestors and descendants by inheritance, and theirs."""
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
        """Return the masked columns that a generated column may reveal.

        Those its expression names, or all of the table if the expression is unknown.
        """
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
        """Return the masked columns that a virtual table may show: all of the tables that its arguments name."""
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
    """Return a name for case-insensitive comparison."""
    return name.casefold()


def _describes(name: str, schema: str) -> bool:
    if fold(schema) == "pg_catalog":
        return fold(name).startswith("pg_") and fold(name) in _DESCRIBING
    return ".".join(filter(None, (fold(schema), fold(name)))) in _DESCRIBING


def _full(table: Table) -> str:
    return fold(f"{table.schema}.{table.name}")


def _fits(pattern: str, table: Table, schema: str | None, column: str) -> bool:
    """Return whether a pattern matches: `column`, `table.column` or `schema.table.column`.

    The default schema matches any schema name.
    """
    short = f"{fold(table.name)}.{fold(column)}"
    if fnmatchcase(short, pattern) or ("." not in pattern and fnmatchcase(fold(column), pattern)):
        return True
    if schema is None and fnmatchcase(short, pattern.partition(".")[2]):
        return True
    return table.schema is not None and fnmatchcase(f"{fold(table.schema)}.{short}", pattern)


_LONG = 60
_SHOWN = 30
"""Columns listed if no name is similar."""
_HOW = "select it as it is, which shows `***`, or leave it out; name columns instead of whole rows"


def refuse(masks: frozenset[str], node: exp.Expr, what: str = "") -> None:
    """Raise `Refused` if there is anything to hide."""
    for name in sorted(masks):
        raise Refused(f"`{name}` is masked and may not be used in {what or f'`{_excerpt(node)}`'}", suggestion=_HOW)


def refuse_any(columns: Iterable[Output], node: exp.Expr, what: str) -> None:
    """Raise `Refused` if any of the columns is masked."""
    for column in columns:
        refuse(column.masks, node, what)


def not_understood(node: exp.Expr) -> NoReturn:
    """Raise `Refused` for a part of a statement that is not understood."""
    raise Refused(
        f"columns of this database are masked, and `{_excerpt(node)}` might show them",
        suggestion="name known tables and their columns plainly, in the same letters everywhere",
    )


def unknown_table(node: exp.Table, structure: Structure) -> NoReturn:
    """Raise for a table that is misspelt, or whose content is unknown."""
    name = ".".join(part.name for part in node.parts)
    near = spell(node.name, map(full_name, structure.tables))
    raise UnknownName(
        f"columns of this database are masked, and no table `{_short(name)}` is known that might show them",
        suggestion="use a table that exists, or list them with schema",
        options=near,
    )


def unknown_column(node: exp.Column, known: Collection[str]) -> NoReturn:
    """Raise for a column that is not known."""
    raise UnknownName(
        f"columns of this database are masked, and no column `{_short(node.sql())}` is known that might show them",
        suggestion="use a column that exists, by its table's name or alias; table lists them all",
        options=spell(node.name, known) or tuple(sorted(known))[:_SHOWN],
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _excerpt(node: exp.Expr) -> str:
    return _short(node.sql())
