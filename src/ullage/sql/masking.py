"""Masked columns: which values of an answer are hidden, and which statements would show them in other ways.

Found from the statement before it is run, and applied to what came back. A statement that would show masked values in
any other way than as a whole column is refused; so is one that is not understood, as soon as anything is masked.

Each query gives columns, and each column may carry the values of masked ones, through names, stars, subqueries, WITH
and UNION ALL, as long as they are passed on untouched. Any other use of a masked column would tell something of its
values and is refused, and so is everything that is not understood. What is masked is `known`'s affair, what a name
means `scope`'s.

The sources of a SELECT and those around it, as far as masked columns go. Where a name could mean several things, it
means all of them; where it could mean nothing known, that is said, and the caller refuses.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ullage.errors import Refused
from ullage.table import Row

from .database import Dialect, Stability, Structure, Table
from .guard import Passage, judge, one_statement, read
from .masked_columns import (
    UNCOUNTED,
    Columns,
    Output,
    Tables,
    fold,
    not_understood,
    refuse,
    refuse_any,
    unknown_column,
    unknown_table,
)

__all__ = [
    "ROWID",
    "Ctes",
    "Lineage",
    "MaskPlan",
    "MaskPolicy",
    "Masks",
    "Named",
    "Scope",
    "Source",
    "ViewLineage",
    "mask_plan",
    "renamed",
]


@dataclass(frozen=True, slots=True)
class Named:
    """A query named by WITH."""

    name: exp.Identifier
    columns: Columns | None
    """None while it is not yet read."""

    def is_meant_by(self, name: exp.Identifier, *, folds: bool) -> bool:
        """Whether a name is surely this one's, and not that of a table or query in other letters."""
        if bool(name.quoted) != bool(self.name.quoted):
            return False
        return name.name == self.name.name or (folds and not name.quoted and fold(name.name) == fold(self.name.name))


Ctes = Mapping[str, Named]


def renamed(node: exp.Expr, columns: Columns) -> Columns:
    """A source's columns as its alias calls them: `AS t(a, b)`."""
    alias = node.args.get("alias")
    names = list(alias.args.get("columns") or ()) if isinstance(alias, exp.TableAlias) else []
    if not names:
        return columns
    if UNCOUNTED in columns:
        return columns if not any(column.masks for column in columns) else not_understood(node)
    if len(names) > len(columns):
        not_understood(node)
    first = tuple(replace(column, name=fold(name.name)) for column, name in zip(columns, names, strict=False))
    return first + columns[len(names) :]


Masks = frozenset[str]

ROWID = frozenset({"rowid", "oid", "_rowid_"})
"""What SQLite calls the number of a row, unless a column is called so."""
_BARE = frozenset({"ctid", "tableoid", "xmin", "xmax", "cmin", "cmax", "rownum", "level", "sysdate", "systimestamp"})
"""Names that every row or none has, and that are no column of a table."""


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    columns: Columns
    rowid: Masks | None = None
    """What may stand in the number of a row, where it has one."""
    hidden: Masks | None = None
    """What may stand in a column that `*` leaves out, such as `rank` of a full-text table; None where there is none."""

    @property
    def is_open(self) -> bool:
        """Whether it has further columns, none of them masked."""
        return UNCOUNTED in self.columns

    @property
    def masks(self) -> Masks:
        return frozenset[str]().union(*(column.masks for column in self.columns))

    def column(self, name: str) -> Masks | None:
        """What may stand in a column; None where there is none of that name."""
        found = [column.masks for column in self.columns if column.name in (fold(name), "")]
        if found or self.is_open:
            return frozenset[str]().union(*found)
        if self.rowid is not None and fold(name) in ROWID:
            return self.rowid
        if self.hidden is not None:
            return self.hidden
        return frozenset() if fold(name) in _BARE else None


@dataclass(slots=True)
class Scope:
    outer: "Scope | None" = None
    sources: list[Source] = field(default_factory=list[Source])
    aliases: dict[str, Masks] = field(default_factory=dict[str, Masks])
    """What the SELECT's own columns are called, and a function's parameters."""
    is_merged: bool = False
    """Whether `*` is not simply the columns of all sources one after the other."""

    def add_alias(self, alias: str, masks: Masks) -> None:
        """Note that a column of the SELECT is called so, perhaps one of several."""
        self.aliases[fold(alias)] = self.aliases.get(fold(alias), frozenset()) | masks

    @property
    def names(self) -> set[str]:
        """Of the columns that may be meant here."""
        around = set[str]() if self.outer is None else self.outer.names
        return around | {
            column.name for source in self.sources for column in source.columns if column.name not in ("", "*")
        }

    def row(self, name: str) -> list[Source]:
        """Every source of that name, here and around: which of them is meant, letter case may decide."""
        around = [] if self.outer is None else self.outer.row(name)
        return [source for source in self.sources if source.name == fold(name)] + around

    def column(self, name: str) -> Masks | None:
        """What may stand behind a name without its table; None where nothing is known of it."""
        found = [source.column(name) for source in self.sources]
        found += [self.aliases.get(fold(name)), None if self.outer is None else self.outer.column(name)]
        return _together(found)

    def column_of(self, table: str, name: str) -> Masks | None:
        return _together([source.column(name) for source in self.row(table)])


def _together(found: Sequence[Masks | None]) -> Masks | None:
    known = [masks for masks in found if masks is not None]
    return frozenset[str]().union(*known) if known else None


_CLAUSES = (
    "where",
    "group",
    "having",
    "qualify",
    "windows",
    "order",
    "limit",
    "offset",
    "sample",
    "distinct",
    "connect",
)
_SHAPE = (
    *("this", "expression", "expressions", "with_", "from_", "joins", "laterals", "alias", "hint", "locks"),
    "operation_modifiers",
)
_SIDES = ("by_name", "side", "kind", "on")
"""Of a UNION in other ways than by place."""
_RECURSIVE = ("sqlite", "tsql", "oracle")
"""Where WITH may read itself without saying so."""
_PLACES = (exp.Group, exp.Ordered, exp.Tuple, exp.Paren, exp.Distinct, exp.Rollup, exp.Cube, exp.GroupingSets)
"""Around a number that stands for a column."""
_ROWS_OF = frozenset(
    """
    generate_series explodinggenerateseries generateseries range unnest explode jsontable json_table json_each json_tree
    jsonb_each json_each_text jsonb_each_text json_array_elements jsonb_array_elements json_array_elements_text
    jsonb_array_elements_text json_object_keys jsonb_object_keys jsonb_path_query json_to_recordset jsonb_to_recordset
    json_to_record jsonb_to_record xmltable regexp_split_to_table string_to_table regexp_matches generate_subscripts
    string_split repeat repeat_row pragma_collation_list pragma_compile_options pragma_database_list
    pragma_foreign_key_list pragma_function_list pragma_index_info pragma_index_list pragma_index_xinfo
    pragma_module_list pragma_pragma_list pragma_table_info pragma_table_list pragma_table_xinfo pragma_version
    duckdb_columns duckdb_constraints duckdb_databases duckdb_functions duckdb_indexes duckdb_schemas duckdb_settings
    duckdb_tables duckdb_types duckdb_views
    """.split()  # noqa: SIM905
)
"""Functions in FROM that read nothing but their arguments, or only describe."""


@dataclass(frozen=True, slots=True)
class Lineage:
    tables: Tables
    dialect: Dialect

    def refuse(self, masks: Masks, node: exp.Expr, what: str = "") -> None:
        """Raises where there is anything to hide."""
        refuse(masks, node, what)

    def refuse_any(self, columns: Iterable[Output], node: exp.Expr, what: str) -> None:
        refuse_any(columns, node, what)

    def used(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> Masks:
        """The masked columns that an expression may tell of; here none, as it is refused."""
        self._uses(node, scope, ctes)
        return frozenset()

    def query(self, node: exp.Expr, ctes: Ctes, outer: Scope | None = None) -> Columns:
        """The columns that a query gives."""
        ctes = self._with(node, ctes, outer)
        if isinstance(node, exp.Select):
            return self._select(node, ctes, outer)
        if isinstance(node, exp.SetOperation):
            return self._set(node, ctes, outer)
        if isinstance(node, exp.Values):
            return self._values(node, ctes, outer)
        if not isinstance(node, exp.Subquery):
            not_understood(node)
        columns = self.query(node.this, ctes, outer)
        self._clauses(node, Scope(outer, [Source("", columns)]), ctes, columns)
        return columns

    def _with(self, node: exp.Expr, ctes: Ctes, outer: Scope | None) -> Ctes:
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        if clause.args.get("search") or clause.args.get("cycle") or clause.args.get("udfs"):
            not_understood(clause)
        names = [fold(cte.alias) for cte in clause.expressions]
        if len({*names, *ctes}) != len(names) + len(ctes):
            not_understood(clause)
        is_recursive = bool(clause.args.get("recursive")) or self.dialect in _RECURSIVE
        known = dict(ctes)
        if is_recursive:
            known |= {fold(cte.alias): Named(cte.args["alias"].this, None) for cte in clause.expressions}
        for cte, name in zip(clause.expressions, names, strict=True):
            columns = self._cte(cte, known, outer) if is_recursive else self.query(cte.this, known, outer)
            known[name] = Named(cte.args["alias"].this, renamed(cte, columns))
        return known

    def _cte(self, cte: exp.Expr, ctes: Ctes, outer: Scope | None) -> Columns:
        """One that may read itself: read again until nothing more comes through."""
        name, body = fold(cte.alias), cte.this
        if not isinstance(body, exp.SetOperation):
            return self.query(body, ctes, outer)
        columns = self.query(body.this, self._with(body, ctes, outer), outer)
        while True:
            itself = replace(ctes[name], columns=renamed(cte, columns))
            again = self.query(body, {**ctes, name: itself}, outer)
            if again == columns:
                return columns
            columns = again

    def _select(self, node: exp.Select, ctes: Ctes, outer: Scope | None) -> Columns:
        scope, first = Scope(outer), node.args.get("from_")
        for source in (*([first.this] if first else ()), *_list(node, "joins"), *_list(node, "laterals")):
            self._add(source, scope, ctes)
        columns: list[Output] = []
        for projection in node.expressions:
            columns += self._projection(projection, scope, ctes)
        self._clauses(node, scope, ctes, tuple(columns))
        return tuple(columns)

    def _set(self, node: exp.SetOperation, ctes: Ctes, outer: Scope | None) -> Columns:
        left, right = (self.query(side, ctes, outer) for side in (node.this, node.expression))
        is_odd = any(node.args.get(key) for key in _SIDES)
        is_odd = is_odd or UNCOUNTED in (*left, *right) or len(left) != len(right)
        if is_odd or node.args.get("distinct") or not isinstance(node, exp.Union):
            self.refuse_any((*left, *right), node, "UNION (without ALL), INTERSECT or EXCEPT")
        if is_odd and any(column.masks for column in (*left, *right)):
            not_understood(node)
        pairs = zip(left, right, strict=True) if len(left) == len(right) else ()
        columns = tuple(replace(one, masks=one.masks | other.masks) for one, other in pairs) or left
        self._clauses(node, Scope(outer, [Source("", columns)]), ctes, columns)
        return columns

    def _values(self, node: exp.Values, ctes: Ctes, outer: Scope | None) -> Columns:
        scope = Scope(outer)
        masks = frozenset[str]().union(*(self.used(row, scope, ctes) for row in node.expressions))
        first = node.expressions[0]
        return tuple(Output("", masks) for _ in (first.expressions if isinstance(first, exp.Tuple) else (first,)))

    def _add(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> None:
        """A table, subquery or function in FROM, with what is joined to it."""
        if isinstance(node, exp.Join):
            self._join(node, scope, ctes)
            return
        if node.args.get("pivots"):
            not_understood(node)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            if node.alias:
                not_understood(node)
            self._add(node.this, scope, ctes)
        else:
            name = fold(node.alias_or_name)
            if any(name and source.name == name for source in scope.sources):
                not_understood(node)
            columns = renamed(node, self._columns_of(node, scope, ctes))
            scope.sources.append(Source(name, columns, self._rowid(node, ctes), self._hidden(node, ctes)))
        for inner in (*_list(node, "joins"), *_list(node, "laterals")):
            self._add(inner, scope, ctes)

    def _join(self, node: exp.Join, scope: Scope, ctes: Ctes) -> None:
        before = len(scope.sources)
        self._add(node.this, scope, ctes)
        is_natural = node.method.upper() == "NATURAL"
        # In the other dialects SEMI may be the alias of the table before it.
        is_semi = node.kind.upper() in ("SEMI", "ANTI")
        is_half = is_semi and self.dialect == "duckdb"
        for name in _list(node, "using"):
            for source in scope.sources:
                self.refuse(source.column(name.name) or frozenset(), node, "USING")
        for source in scope.sources if is_natural else ():
            self.refuse(source.masks, node, "NATURAL JOIN")
        if is_natural or node.args.get("using") or (is_semi and not is_half):
            scope.is_merged = True
        if node.args.get("expressions") or node.args.get("pivots"):
            not_understood(node)
        for condition in (*_list(node, "on"), *_list(node, "match_condition")):
            self._uses(condition, scope, ctes)
        if is_half:
            del scope.sources[before:]  # only the condition sees the right side

    def _columns_of(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> Columns:
        """Of one source in FROM."""
        inner = node.this
        if isinstance(node, exp.Subquery | exp.Values):
            return self.query(node, ctes, scope)
        if isinstance(node, exp.Lateral) and isinstance(inner, exp.Subquery):
            return self.query(inner, ctes, scope)
        if isinstance(node, exp.Table) and isinstance(inner, exp.Identifier):
            return self._table(node, ctes)
        rows_from = [each.this if isinstance(each, exp.Table) else each for each in _list(node, "rows_from")]
        for function in rows_from or [inner if isinstance(node, exp.Table | exp.Lateral) else node]:
            name = function.name if isinstance(function, exp.Anonymous) else type(function).__name__
            called = self.tables.find(name, "") if self.dialect == "sqlite" else None
            if called is not None:
                columns = self.tables.of(called)
                if self.used_in(function, scope, ctes):
                    not_understood(node)
                # What is found tells of the values that were searched.
                self.refuse_any(columns, node, "a search")
                return columns
            if fold(name) not in _ROWS_OF and self.tables.is_closed:
                not_understood(node)
            if self.used_in(function, scope, ctes):
                not_understood(node)
        return (UNCOUNTED,)

    def _table(self, node: exp.Table, ctes: Ctes) -> Columns:
        named = None if node.db else ctes.get(fold(node.name))
        if named is None:
            columns = self.tables.columns(node.name, node.db, node.catalog)
        else:
            columns = named.columns if named.is_meant_by(node.this, folds=self.dialect != "mysql") else None
        is_plain = not node.db and not node.this.args.get("quoted")
        if columns is None and self.dialect == "mysql" and is_plain and fold(node.name) == "dual":
            return ()  # stands for no table at all
        return unknown_table(node, self.tables.structure) if columns is None else columns

    def _rowid(self, node: exp.Expr, ctes: Ctes) -> Masks | None:
        if self.dialect != "sqlite" or not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            return None
        return None if not node.db and fold(node.name) in ctes else self.tables.rowid(node.name, node.db)

    def _hidden(self, node: exp.Expr, ctes: Ctes) -> Masks | None:
        """What the hidden columns of a virtual table of SQLite may tell; None for any other source."""
        if self.dialect != "sqlite" or not isinstance(node, exp.Table) or (not node.db and fold(node.name) in ctes):
            return None
        called = node.this.name
        table = self.tables.find(called, node.db if isinstance(node.this, exp.Identifier) else "")
        if table is None or table.module is None:
            return None
        return frozenset[str]().union(*(column.masks for column in self.tables.of(table)))

    def _projection(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> Columns:
        inner = node.unalias()
        if isinstance(inner, exp.Star | exp.Column) and inner.is_star and inner is not node:
            # DuckDB calls every column so.
            not_understood(node)
        if isinstance(inner, exp.Star):
            return self._star(inner, scope.sources, scope, ctes)
        if isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star):
            return self._star(inner.this, scope.row(inner.table) or not_understood(inner), scope, ctes)
        passed = self.passed(inner.unnest(), scope, ctes) or Output("", self.used(inner, scope, ctes))
        if not isinstance(node, exp.Alias):
            # Only a plain column is called by its own name everywhere.
            return (passed if isinstance(node, exp.Column) else replace(passed, name=""),)
        scope.add_alias(node.alias, passed.masks)
        return (replace(passed, name=fold(node.alias)),)

    def passed(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> Output | None:
        """A column or a scalar subquery that stands by itself."""
        if isinstance(node, exp.Column):
            # SQLite calls a row's number by the name of its key.
            is_number = self.dialect == "sqlite" and fold(node.name) in ROWID
            return Output("" if is_number else fold(node.name), self._meaning(node, scope))
        if not isinstance(node, exp.Query):
            return None
        columns = self.query(node, ctes, scope)
        if len(columns) != 1 or columns[0] == UNCOUNTED:
            not_understood(node)
        return columns[0]

    def _star(self, star: exp.Star, sources: list[Source], scope: Scope, ctes: Ctes) -> Columns:
        """The columns of `*`, with what DuckDB lets it leave out, replace and rename."""
        left_out = {fold(column.name) for column in _list(star, "except_")}
        columns = [column for source in sources for column in source.columns if column.name not in left_out]
        names = [column.name for column in columns]
        changed = [fold(each.alias) for each in _list(star, "replace")]
        changed += [fold(each.this.name) for each in _list(star, "rename")]
        is_odd = bool(star.args.get("ilike")) or any(names.count(name) != 1 for name in changed)
        if is_odd or (scope.is_merged and sources is scope.sources):
            self.refuse_any(columns, star, "this `*`")
            return not_understood(star) if any(column.masks for column in columns) else (UNCOUNTED,)
        for each in _list(star, "replace"):
            passed = self.passed(each.this.unnest(), scope, ctes) or Output("", self.used(each.this, scope, ctes))
            columns[names.index(fold(each.alias))] = replace(passed, name=fold(each.alias))
            scope.add_alias(each.alias, passed.masks)
        for each in _list(star, "rename"):
            at = names.index(fold(each.this.name))
            columns[at] = replace(columns[at], name=fold(each.alias))
            scope.add_alias(each.alias, columns[at].masks)
        return tuple(columns)

    def _meaning(self, node: exp.Column, scope: Scope) -> Masks:
        """The masked columns that a name may mean."""
        *path, name = (part.name for part in node.parts)
        if not path:
            for source in scope.row(name):
                self.refuse(source.masks, node, f"`{name}`, which means the whole row")
            masks = scope.column(name)
        elif scope.row(path[-1]):
            masks = scope.column_of(path[-1], name)
        else:
            masks = scope.column_of(path[0], path[1]) if len(path) > 1 else scope.column(path[0])
            self.refuse(masks or frozenset(), node)
        if masks is None and not (not path and scope.row(name)):
            unknown_column(node, scope.names)
        return masks or frozenset()

    def _clauses(self, node: exp.Expr, scope: Scope, ctes: Ctes, columns: Columns) -> None:
        """Everything of a query besides what it gives and where from."""
        if any(value and key not in (*_CLAUSES, *_SHAPE, *_SIDES) for key, value in node.args.items()):
            not_understood(node)
        for key in _CLAUSES:
            for clause in _list(node, key):
                self._uses(clause, scope, ctes)
                self._numbers(clause, columns)

    def _numbers(self, node: exp.Expr, columns: Columns) -> None:
        """Where a column is used by its number, or all are."""
        is_all = bool(node.args.get("all")) or any(each.name.upper() == "ALL" for each in node.find_all(exp.Var))
        if is_all or (isinstance(node, exp.Distinct) and not node.args.get("on")):
            self.refuse_any(columns, node, node.key.upper())
        for number in node.find_all(exp.Literal):
            if number.is_int and isinstance(number.parent, _PLACES) and not isinstance(node, exp.Where):
                at = int(number.name)
                self.refuse_any(columns if UNCOUNTED in columns else columns[at - 1 : at], node, node.key.upper())

    def _uses(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> None:
        """Refuses where an expression touches anything masked."""
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            for source in scope.row(node.table) or not_understood(node):
                self.refuse(source.masks, node)
        elif isinstance(node, exp.Column):
            self.refuse(self._meaning(node, scope), node.parent or node)
        elif isinstance(node, exp.Query):
            columns = self.query(node, ctes, scope)
            if not isinstance(node.parent, exp.Exists):
                self.refuse_any(columns, node, "an expression")
        elif isinstance(node, exp.Columns | exp.PositionalColumn) or (
            isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count)
        ):
            not_understood(node.parent or node)
        elif isinstance(node, exp.Identifier | exp.Var):
            self.refuse(scope.column(node.name) or frozenset(), node.parent or node)
        elif isinstance(node, exp.Lambda):
            names = {fold(name.name): frozenset[str]() for name in node.expressions}
            self._uses(node.this, Scope(scope, aliases=names), ctes)
        else:
            self._uses_in(node, scope, ctes)

    def used_in(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> Masks:
        """As `used`, of what stands within an expression."""
        self._uses_in(node, scope, ctes)
        return frozenset()

    def _uses_in(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> None:
        for child in node.iter_expressions():
            self._uses(child, scope, ctes)


@dataclass(frozen=True, slots=True)
class ViewLineage(Lineage):
    """Where masked values go in a view, which its owner may have made of them in any way.

    Nothing is refused: what is computed from a masked column is masked as well. A condition on one is not, since it is
    the owner's and nobody else can vary it. What is not understood raises `Refused`.
    """

    touched: set[str] = field(default_factory=set[str])
    """Masked columns that were met since it was last emptied."""

    def refuse(self, masks: Masks, node: exp.Expr, what: str = "") -> None:
        self.touched.update(masks)

    def refuse_any(self, columns: Iterable[Output], node: exp.Expr, what: str) -> None:
        self.touched.update(*(column.masks for column in columns))

    def used(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> Masks:
        return self._collected(lambda: self._uses(node, scope, ctes))

    def used_in(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> Masks:
        return self._collected(lambda: self._uses_in(node, scope, ctes))

    def passed(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> Output | None:
        found: list[Output | None] = []
        masks = self._collected(lambda: found.append(Lineage.passed(self, node, scope, ctes)))
        return None if found[0] is None else replace(found[0], masks=found[0].masks | masks)

    def _collected(self, read: Callable[[], None]) -> Masks:
        before = set(self.touched)
        self.touched.clear()
        read()
        found = frozenset(self.touched)
        self.touched.update(before)
        return found


def _list(node: exp.Expr, key: str) -> list[exp.Expr]:
    """What stands under a key, however many."""
    value: object = node.args.get(key)
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, exp.Expr)]


_MASK = "***"

_ASKED = re.compile(r"\s*(EXPLAIN|ANALYZE|DESCRIBE|DESC|SHOW|PRAGMA)\b", re.IGNORECASE)
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
