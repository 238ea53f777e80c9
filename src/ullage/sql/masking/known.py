"""Which columns of which tables are masked?

Names are compared without regard to case, which masks too much where a database tells them apart, and never too
little. A table that the structure does not hold is unknown, and so is what it may hold; a few tables of every database
that describe only others are known to hold no values.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..structure import Structure, Table

__all__ = ["UNCOUNTED", "Columns", "Output", "Tables", "fold"]

_DESCRIBING = frozenset(
    """
    information_schema.columns information_schema.tables information_schema.views information_schema.schemata
    information_schema.table_constraints information_schema.key_column_usage information_schema.statistics
    information_schema.referential_constraints information_schema.constraint_column_usage information_schema.routines
    information_schema.parameters information_schema.triggers information_schema.check_constraints
    sqlite_master sqlite_schema
    pg_attribute pg_class pg_constraint pg_database pg_description pg_enum pg_extension pg_index pg_indexes pg_inherits
    pg_matviews pg_namespace pg_proc pg_roles pg_sequences pg_settings pg_stat_user_indexes pg_stat_user_tables
    pg_tables pg_trigger pg_type pg_views
    """.split()  # noqa: SIM905
)
"""Not among them: statistics, which hold samples of values, and lists of running statements."""
_DEFAULTS = ("public", "main", "dbo")
"""What default schemas are called."""


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


@dataclass(frozen=True, slots=True)
class Tables:
    structure: Structure
    patterns: tuple[str, ...]

    def columns(self, name: str, schema: str, catalog: str = "") -> Columns | None:
        """Of a table; uncounted where it only describes others; None where it is unknown or may be one of several."""
        if catalog and fold(catalog) != fold(self.structure.name or ""):
            return None
        called = [table for table in self.structure.tables if fold(table.name) == fold(name)]
        chosen = [table for table in called if fold(table.schema or "") == fold(schema)]
        if not chosen and schema and self._is_default(schema):
            chosen = [table for table in called if table.schema is None]
        if len(chosen) == 1:
            return tuple(self._output(chosen[0], column.name) for column in chosen[0].columns)
        return (UNCOUNTED,) if not called and _describes(name, schema) else None

    def _is_default(self, schema: str) -> bool:
        return fold(schema) in (*_DEFAULTS, fold(self.structure.name or ""))

    def _output(self, table: Table, column: str) -> Output:
        is_masked = any(_fits(fold(pattern), table, column) for pattern in self.patterns)
        return Output(fold(column), frozenset({f"{table.name}.{column}"} if is_masked else ()))


def fold(name: str) -> str:
    return name.casefold()


def _describes(name: str, schema: str) -> bool:
    if fold(schema) == "pg_catalog":
        return fold(name).startswith("pg_") and fold(name) in _DESCRIBING
    return ".".join(filter(None, (fold(schema), fold(name)))) in _DESCRIBING


def _fits(pattern: str, table: Table, column: str) -> bool:
    """`column`, `table.column`, or `schema.table.column`, where the default schema goes by any name."""
    short = f"{fold(table.name)}.{fold(column)}"
    if fnmatchcase(short, pattern) or ("." not in pattern and fnmatchcase(fold(column), pattern)):
        return True
    if table.schema is None:
        return fnmatchcase(short, pattern.partition(".")[2])
    return fnmatchcase(f"{fold(table.schema)}.{short}", pattern)
