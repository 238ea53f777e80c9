"""Which columns of an answer are hidden?

Found from the statement before it is run, and applied to what came back. A statement that would show masked values in
any other way than as a whole column is refused; so is one that is not understood, as soon as anything is masked.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ullage.errors import Refused
from ullage.table import Row

from ..engine import Dialect, Stability
from ..guard import Passage, judge, one_statement, read
from ..structure import Structure, Table
from .known import UNCOUNTED, Columns, Output, Tables, fold
from .lineage import Lineage, ViewLineage
from .refusing import not_understood, refuse_any

__all__ = ["MaskPlan", "MaskPolicy", "mask_plan"]

_MASK = "***"

_ASKED = re.compile(r"\s*(EXPLAIN|DESCRIBE|DESC|SHOW|PRAGMA)\b", re.IGNORECASE)
"""Statements that show no values. What a plan is about is read all the same: the rows it expects may tell of them."""
_OPTIONS = re.compile(
    r"\s*(?:QUERY\s+PLAN|ANALY[SZ]E|VERBOSE|EXTENDED|PARTITIONS|FORMAT\s*=\s*\w+|\([^()]*\)(?=\s*\w))", re.IGNORECASE
)
_STORAGE = re.compile(r"\s*PRAGMA\s+(?:\w+\s*\.\s*)?storage_info\b(?P<table>.*)", re.IGNORECASE | re.DOTALL)
_QUERY = re.compile(r"\b(?:SELECT|WITH|FROM|TABLE|VALUES)\b", re.IGNORECASE)

_CONDITION = re.compile(r"\bWHERE\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MaskPlan:
    columns: Columns = field(default=(), repr=False)
    """What the statement should give; none where nothing is masked."""

    @property
    def positions(self) -> tuple[int, ...]:
        """The columns to hide, counted from 0."""
        return tuple(number for number, column in enumerate(self.columns) if column.masks)

    def apply(self, columns: Sequence[str], rows: Sequence[Row]) -> tuple[Row, ...]:
        """The rows with `***` for every value of a hidden column, NULL or not."""
        if not self.positions:
            return tuple(rows)
        if len(columns) != len(self.columns) or not all(map(_is_called, columns, self.columns)):
            raise Refused(
                "the answer has other columns than the statement and the known tables let expect, and some are masked",
                suggestion="read the schema again, and name the columns that you need",
            )
        hidden = set(self.positions)
        return tuple(tuple(_MASK if at in hidden else cell for at, cell in enumerate(row)) for row in rows)


def _is_called(name: str, column: Output) -> bool:
    """A database may add something to a name that comes twice."""
    return not column.name or fold(name).startswith(column.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskPolicy:
    """What is masked in one database, as it was when its structure was read."""

    dialect: Dialect
    tables: Tables

    @classmethod
    def of(
        cls,
        dialect: Dialect,
        structure: Structure,
        patterns: Sequence[str],
        *,
        functions: Mapping[str, Stability] | None = None,
        allowed: frozenset[str] = frozenset(),
    ) -> "MaskPolicy":
        """`functions` and `allowed` are what views are judged by, as statements are."""
        derive = _Views(dialect, functions or {}, allowed)
        return cls(dialect=dialect, tables=Tables(structure, tuple(patterns), derive))

    def plan(self, sql: str) -> MaskPlan:
        """Raises `Refused` where a masked column is put to any other use than being selected."""
        asked = _ASKED.match(sql)
        if not self.tables.patterns:
            return MaskPlan()
        if asked and not _QUERY.search(_asked_of(sql, asked, self.dialect)):
            _check_pragma(sql, self.tables)
            return MaskPlan()
        tree = _parse(sql if asked is None else _without_options(sql, asked.end()), self.dialect)
        if not isinstance(tree, exp.Query | exp.Values):
            not_understood(tree)
        lineage = Lineage(self.tables, self.dialect)
        columns = lineage.query(tree, {}) if _is_touched(tree, lineage.tables) else ()
        if asked or not any(column.masks for column in columns):
            return MaskPlan()
        if UNCOUNTED in columns:
            refuse_any(columns, tree, "a query whose columns cannot be counted")
        return MaskPlan(columns)


def mask_plan(
    sql: str,
    dialect: Dialect,
    structure: Structure,
    patterns: Sequence[str],
    *,
    functions: Mapping[str, Stability] | None = None,
) -> MaskPlan:
    """`MaskPolicy.plan` of one statement."""
    return MaskPolicy.of(dialect, structure, patterns, functions=functions).plan(sql)


@dataclass(frozen=True, slots=True)
class _Views:
    """Tells what the columns of a view show, from its definition."""

    dialect: Dialect
    functions: Mapping[str, Stability]
    allowed: frozenset[str]

    def __call__(self, tables: Tables, view: Table) -> tuple[frozenset[str], ...] | None:
        """None for a definition that is not known, not understood, or calls what may read anything."""
        if not view.definition:
            return None
        try:
            judge(view.definition, self.dialect, functions=self.functions, allowed=self.allowed)
            columns = ViewLineage(tables, self.dialect).query(_parse(view.definition, self.dialect), {})
        except (Refused, RecursionError):
            return None
        if UNCOUNTED in columns:
            is_clean = not any(column.masks for column in columns)
            return tuple(frozenset[str]() for _ in view.columns) if is_clean else None
        return tuple(column.masks for column in columns)


def _asked_of(sql: str, asked: re.Match[str], dialect: Dialect) -> str:
    """Where a query may stand: in a SHOW of MySQL only behind WHERE, and `SHOW INDEX FROM t` reads no values."""
    if dialect != "mysql" or asked[1].upper() != "SHOW":
        return sql
    found = _CONDITION.search(sql)
    return sql[found.end() :] if found else ""


def _check_pragma(sql: str, tables: Tables) -> None:
    """DuckDB's `storage_info` shows the least and the greatest value of every column."""
    named = _STORAGE.match(sql)
    if named is None:
        return
    *schema, name = re.findall(r"[\w$]+", named["table"]) or [""]
    columns = tables.columns(name, schema[-1] if schema else "")
    if columns is None or any(column.masks for column in columns):
        raise Refused(
            "columns of this table are masked, and its statistics show values of them",
            suggestion="ask for its columns with table instead",
        )


def _without_options(sql: str, start: int) -> str:
    while match := _OPTIONS.match(sql, start):
        start = match.end()
    return sql[start:]


def _parse(sql: str, dialect: Dialect) -> exp.Expr:
    """The tree of the text as the guard's own reader gives it to the parser: without comments and hints."""
    try:
        text, _ = Passage(one_statement(read(sql, dialect))).plain(dialect)
        return sqlglot.parse_one(text, dialect=dialect)
    except (SqlglotError, RecursionError) as error:
        raise Refused(
            "columns of this database are masked, and this statement is not understood",
            suggestion="ask with a plain SELECT",
        ) from error


def _is_touched(tree: exp.Expr, tables: Tables) -> bool:
    """Whether a statement may read anything masked. Names of its own queries are looked up as tables too."""
    own = {fold(cte.alias) for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            return True
        columns = tables.columns(table.name, table.db, table.catalog)
        if columns is None and (table.db or fold(table.name) not in own):
            return True
        if any(column.masks for column in columns or ()):
            return True
    return False
