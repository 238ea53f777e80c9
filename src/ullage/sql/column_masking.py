"""Masked columns: which values of an answer are hidden, and which statements would reveal them in other ways.

`MaskPolicy.plan` analyses a statement before it runs, and `MaskPlan.apply` masks the rows that it returned. If any
column is masked, a statement that uses masked values other than as a whole output column is refused, and so is one that
is not understood.

`Lineage` follows each output column through names, stars, subqueries, WITH and UNION ALL, as long as values pass
through unchanged. Any other use of a masked column would reveal something about its values. `masked_columns` knows
which columns are masked.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ullage.errors import Refused
from ullage.table import Cell, Row

from .database import Dialect, Stability, Structure, Table
from .guard import Passage, judge, one_statement, read
from .mask_scope import (
    DESCRIBING_FUNCTIONS,
    ROWID,
    UNCOUNTED,
    Columns,
    Ctes,
    Masks,
    Named,
    Output,
    Scope,
    Source,
    Tables,
    fold,
    not_understood,
    refuse,
    refuse_any,
    rename_columns,
    unknown_column,
    unknown_table,
)

__all__ = ["Lineage", "MaskPlan", "MaskPolicy", "ViewLineage", "mask_plan"]


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
_SOURCE_USES = ("sample", "version", "when", "changes")
"""Parts of a source in FROM that may use columns."""
_SIDES = ("by_name", "side", "kind", "on")
"""Options of a UNION that match columns other than by position."""
_PIVOT_USES = ("expressions", "using", "fields", "group", "order", "limit", "offset")
"""Parts of PIVOT and UNPIVOT that may use columns."""
_PIVOT = (
    *(*_PIVOT_USES, "this", "alias", "with_", "into", "unpivot", "columns", "include_nulls", "table"),
    *("default_on_null", "value_columns_first", "identify_pivot_strings", "prefixed_pivot_columns"),
    "pivot_column_naming",
)
_PATTERN = re.compile(r"(?!(?:[^*]*\*){4})(?:[a-z0-9_|^$().]|(?<=\.)\*){1,60}")
"""Patterns of COLUMNS() that mean the same here and in DuckDB, and that no name takes long to match."""
_SEQUENCE = re.compile(r"seq_\d+_to_\d+(?:_step_\d+)?")
"""Names of MariaDB's tables of numbers, which exist without being created."""
_RECURSIVE = ("sqlite", "tsql", "oracle")
"""Dialects in which WITH may be recursive without the keyword."""
_PLACES = (exp.Group, exp.Ordered, exp.Tuple, exp.Distinct, exp.Rollup, exp.Cube, exp.GroupingSets)
"""Clauses in which a number refers to a column."""
_AROUND_NUMBERS = (exp.Paren, exp.Neg, exp.Collate)
_HINT_FUNCTIONS = frozenset({"likely", "unlikely", "likelihood"})
"""Functions of SQLite around which a number still refers to a column, as within `_AROUND_NUMBERS`."""
_ROWS_OF = frozenset(
    """
    generate_series explodinggenerateseries generateseries range unnest explode jsontable json_table json_each json_tree
    jsonb_each json_each_text jsonb_each_text json_array_elements jsonb_array_elements json_array_elements_text
    jsonb_array_elements_text json_object_keys jsonb_object_keys jsonb_path_query json_to_recordset jsonb_to_recordset
    json_to_record jsonb_to_record xmltable regexp_split_to_table string_to_table regexp_matches generate_subscripts
    string_split repeat repeat_row
    """.split()  # noqa: SIM905
)
"""Functions in FROM that read only their arguments."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """Follows masked columns through the query of a user, and refuses any use but selecting them."""

    tables: Tables
    dialect: Dialect
    read: set[int] = field(default_factory=set[int])
    """Ids of the nodes that were analysed."""

    def output(self, tree: exp.Expr) -> Columns:
        """Return the output columns of a whole statement.

        Raises:
            Refused: a masked column is used other than by selecting it, or a part of the statement was not analysed.
        """
        columns = self.query(tree, {})
        for node in tree.walk():
            # Parentheses around a query have nothing of their own.
            is_reading = isinstance(node, exp.Query | exp.Values | exp.Table | exp.Column)
            if is_reading and not isinstance(node, exp.Subquery) and id(node) not in self.read:
                not_understood(node)
        return columns

    def refuse(self, masks: Masks, node: exp.Expr, what: str = "") -> None:
        """Raise `Refused` if there is anything to hide."""
        refuse(masks, node, what)

    def refuse_any(self, columns: Iterable[Output], node: exp.Expr, what: str) -> None:
        """Raise `Refused` if any of the columns is masked."""
        refuse_any(columns, node, what)

    def used(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> Masks:
        """Return the masked columns that an expression may reveal; none here, because such a use is refused."""
        self._uses(node, scope, ctes)
        return frozenset()

    def query(self, node: exp.Expr, ctes: Ctes, outer: Scope | None = None) -> Columns:
        """Return the output columns of a query."""
        self.read.add(id(node))
        ctes = self._with(node, ctes, outer)
        if isinstance(node, exp.Select):
            scope, first = Scope(outer), node.args.get("from_")
            for source in (*([first.this] if first else ()), *_list(node, "joins"), *_list(node, "laterals")):
                self._add(source, scope, ctes)
            outputs: list[Output] = []
            for projection in node.expressions:
                outputs += self._projection(projection, scope, ctes)
            self._clauses(node, scope, ctes, tuple(outputs))
            return tuple(outputs)
        if isinstance(node, exp.SetOperation):
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
        if isinstance(node, exp.Values):
            scope = Scope(outer)
            masks = frozenset[str]().union(*(self.used(row, scope, ctes) for row in node.expressions))
            first = node.expressions[0]
            row = first.expressions if isinstance(first, exp.Tuple) else (first,)
            columns = tuple(Output("", masks) for _ in row)
            self._clauses(node, Scope(outer, [Source("", columns)]), ctes, columns)
            return columns
        if isinstance(node, exp.Pivot | exp.Summarize):
            return self._pivot_query(node, ctes, outer)
        if not isinstance(node, exp.Subquery):
            not_understood(node)
        columns = self.query(node.this, ctes, outer)
        self._clauses(node, Scope(outer, [Source("", columns)]), ctes, columns)
        return columns

    def _pivot_query(self, node: exp.Expr, ctes: Ctes, outer: Scope | None) -> Columns:
        """Return the columns of DuckDB's statements PIVOT, UNPIVOT and SUMMARIZE."""
        source = node.this
        if isinstance(source, exp.Query):
            columns = self.query(source, ctes, outer)
        elif (
            isinstance(source, exp.Table)
            and isinstance(source.this, exp.Identifier)
            and not any(source.args.get(key) for key in ("joins", "laterals", "pivots", "sample", "rows_from"))
        ):
            columns = self._table(source, ctes)
        else:
            not_understood(node)
        return self._pivot(node, fold(source.alias_or_name), columns, ctes, outer)

    def _pivot(self, node: exp.Expr, name: str, columns: Columns, ctes: Ctes, outer: Scope | None) -> Columns:
        """Return the columns of a source after PIVOT, UNPIVOT or SUMMARIZE: any number, none of them masked.

        A PIVOT without GROUP BY groups by every column that it does not use; the others show values of all columns.
        """
        is_masked = any(column.masks for column in columns)
        group = node.args.get("group")
        is_grouped = isinstance(node, exp.Pivot) and isinstance(group, exp.Group) and not node.args.get("unpivot")
        if is_masked and not is_grouped:
            self.refuse_any(columns, node, f"{node.key.upper()} of all columns")
            not_understood(node)
        if any(value and key not in _PIVOT for key, value in node.args.items()):
            not_understood(node)
        scope = Scope(outer)
        # ORDER BY may name the new columns too.
        scope.add(Source(name, (*columns, UNCOUNTED)))
        for part in (one for key in _PIVOT_USES for one in _list(node, key)):
            if not is_masked and isinstance(part, exp.Columns) and part.find(exp.Query) is None:
                self._skip([part])
                continue
            if self.used(part, scope, ctes):
                not_understood(node)
        self._skip(_list(node, "into"))
        if is_masked and group is not None:
            self._numbers(group, columns)
        return (UNCOUNTED,)

    def _with(self, node: exp.Expr, ctes: Ctes, outer: Scope | None) -> Ctes:
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        added = [one for key in ("search", "cycle") for one in _list(clause, key)]
        if clause.args.get("udfs") or (added and len(clause.expressions) != 1):
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
            columns = rename_columns(cte, columns)
            for extra in added:
                # SEARCH and CYCLE add columns that show values of the column that they follow.
                masks = Source("", columns).column(extra.name)
                if masks is None or UNCOUNTED in columns:
                    not_understood(extra)
                self.refuse(masks, extra)
                named = [one.name for key in ("expression", "using") for one in _list(extra, key)]
                columns += tuple(Output(fold(name), masks) for name in named)
            known[name] = Named(cte.args["alias"].this, columns)
        return known

    def _cte(self, cte: exp.Expr, ctes: Ctes, outer: Scope | None) -> Columns:
        """Return the columns of a query that may be recursive, re-reading it until no further masked columns appear."""
        name, body = fold(cte.alias), cte.this
        if not isinstance(body, exp.SetOperation):
            return self.query(body, ctes, outer)
        columns = self.query(body.this, self._with(body, ctes, outer), outer)
        while True:
            itself = replace(ctes[name], columns=rename_columns(cte, columns))
            again = self.query(body, {**ctes, name: itself}, outer)
            if again == columns:
                return columns
            columns = again

    def _add(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> None:
        """Add a table, subquery or function in FROM, with its joins."""
        if isinstance(node, exp.Join):
            self._join(node, scope, ctes)
            return
        pivots = _list(node, "pivots")
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            if node.alias or pivots:
                not_understood(node)
            self._add(node.this, scope, ctes)
        else:
            name = fold(node.alias_or_name)
            columns = rename_columns(node, self._columns_of(node, scope, ctes))
            hidden = self._masks_of_hidden_columns(node, ctes)
            rowid, key = self._rowid(node, ctes), self._key(node, ctes)
            if pivots:
                rowid, hidden, key = None, None, frozenset[str]()
            for pivot in pivots:
                columns = self._pivot(pivot, name, columns, ctes, scope)
                name = fold(pivot.alias or name)
            if any(name and source.name == name for source in scope.sources):
                not_understood(node)
            for part in (one for key in _SOURCE_USES for one in _list(node, key)):
                self._uses(part, scope, ctes)
            source = Source(name, columns, rowid, hidden, key)
            if partitions := _list(node, "partition"):
                # The table may be partitioned by a masked column, and a partition by one value shows it.
                self.refuse(source.masks, node, "PARTITION")
                self._skip(partitions)
            self._check_index_hints(node, ctes)
            scope.add(source)
        for inner in (*_list(node, "joins"), *_list(node, "laterals")):
            self._add(inner, scope, ctes)

    def _check_index_hints(self, node: exp.Expr, ctes: Ctes) -> None:
        """Refuse an index that a statement asks for if its order shows how masked values compare."""
        named = _list(node, "indexed")
        self.read.update(map(id, named))
        hinted = [*named, *(one for hint in _list(node, "hints") for one in _list(hint, "expressions"))]
        if isinstance(node, exp.Table) and (node.db or fold(node.name) not in ctes):
            for one in hinted:
                self.refuse(self.tables.index(node.name, node.db, one.name), node, f"the index `{one.name}`")

    def _join(self, node: exp.Join, scope: Scope, ctes: Ctes) -> None:
        before, star = len(scope.sources), list(scope.star)
        self._add(node.this, scope, ctes)
        is_natural = node.method.upper() == "NATURAL"
        # In the other dialects SEMI may be the alias of the table before it.
        is_semi = node.kind.upper() in ("SEMI", "ANTI")
        is_half = is_semi and self.dialect == "duckdb"
        using = [fold(name.name) for name in _list(node, "using")]
        if is_natural and not scope.is_merged:
            using = _common_names(star, scope.sources[-1].columns)
            is_natural = not using
        for name in using:
            for source in scope.sources:
                self.refuse(source.column(name) or frozenset(), node, "USING")
        for source in scope.sources if is_natural else ():
            self.refuse(source.masks, node, "NATURAL JOIN")
        is_right = self.dialect == "mysql" and node.side.upper() == "RIGHT"
        if is_natural or (is_semi and not is_half) or (using and (is_right or len(scope.sources) != before + 1)):
            scope.is_merged = True
        elif using:
            added = [one for one in scope.sources[-1].columns if not one.is_hidden]
            scope.star = self._merge(star, added, using)
        if node.args.get("expressions") or node.args.get("pivots"):
            not_understood(node)
        for condition in (*_list(node, "on"), *_list(node, "match_condition")):
            self._uses(condition, scope, ctes)
        if is_half:
            del scope.sources[before:]  # only the condition sees the right side
            scope.star = star

    def _merge(self, left: Sequence[Output], right: Sequence[Output], names: Sequence[str]) -> list[Output]:
        """Return the columns of `*` after a join with USING, each of whose names refers to a column of both sides."""
        masks = dict[str, Masks]()
        for name in names:
            columns = [one for one in (*left, *right) if one.name == name]
            masks[name] = frozenset[str]().union(*(column.masks for column in columns))
        rest = [one for one in right if one.name not in names]
        if self.dialect in ("sqlite", "duckdb"):
            return [replace(one, masks=masks.get(one.name, one.masks)) for one in left] + rest
        # Of MySQL the names come in the order of the left side.
        listed = list(names) if self.dialect != "mysql" else [one.name for one in left if one.name in names]
        return [Output(name, masks[name]) for name in listed] + [one for one in left if one.name not in names] + rest

    def _columns_of(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> Columns:
        """Return the columns of one source in FROM."""
        inner = node.this
        self.read.add(id(node))
        if isinstance(node, exp.Subquery | exp.Values):
            return self.query(node, ctes, scope)
        if isinstance(node, exp.Lateral) and isinstance(inner, exp.Subquery):
            return self.query(inner, ctes, scope)
        if isinstance(node, exp.Table) and isinstance(inner, exp.Identifier):
            return self._table(node, ctes)
        self.read.update(map(id, _list(node, "rows_from")))
        rows_from = [each.this if isinstance(each, exp.Table) else each for each in _list(node, "rows_from")]
        for function in rows_from or [inner if isinstance(node, exp.Table | exp.Lateral) else node]:
            name = function.name if isinstance(function, exp.Anonymous) else type(function).__name__
            called = self.tables.find(name, "") if self.dialect == "sqlite" else None
            if called is not None:
                columns = self.tables.of(called)
                if self.used_in(function, scope, ctes):
                    not_understood(node)
                # The search result reveals something about the values searched.
                self.refuse_any(columns, node, "a search")
                return columns
            if fold(name) not in _ROWS_OF | DESCRIBING_FUNCTIONS and self.tables.is_closed:
                not_understood(node)
            if self.used_in(function, scope, ctes):
                not_understood(node)
        return (UNCOUNTED,)

    def _table(self, node: exp.Table, ctes: Ctes) -> Columns:
        self.read.add(id(node))
        named = None if node.db else ctes.get(fold(node.name))
        if named is None:
            columns = self.tables.columns(node.name, node.db, node.catalog)
        else:
            columns = named.columns if named.is_meant_by(node.this, folds=self.dialect != "mysql") else None
        is_plain = not node.db and not node.this.args.get("quoted")
        if columns is None and self.dialect == "mysql" and is_plain and fold(node.name) == "dual":
            return ()  # refers to no table
        if columns is None and self.dialect == "mysql" and is_plain and _SEQUENCE.fullmatch(fold(node.name)):
            return (Output("seq"),)
        return unknown_table(node, self.tables.structure) if columns is None else columns

    def _masks_of_hidden_columns(self, node: exp.Expr, ctes: Ctes) -> Masks | None:
        """Return the masked columns that hidden columns of a SQLite virtual table may reveal; None for other
        sources."""
        if self.dialect != "sqlite" or not isinstance(node, exp.Table) or (not node.db and fold(node.name) in ctes):
            return None
        called = node.this.name
        table = self.tables.find(called, node.db if isinstance(node.this, exp.Identifier) else "")
        if table is None or table.module is None:
            return None
        return frozenset[str]().union(*(column.masks for column in self.tables.of(table)))

    def _rowid(self, node: exp.Expr, ctes: Ctes) -> Masks | None:
        if self.dialect != "sqlite" or not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            return None
        return None if not node.db and fold(node.name) in ctes else self.tables.rowid(node.name, node.db)

    def _key(self, node: exp.Expr, ctes: Ctes) -> frozenset[str]:
        """Return the names of a table's primary key; empty for other sources, and where columns are renamed."""
        alias = node.args.get("alias")
        is_renamed = isinstance(alias, exp.TableAlias) and bool(alias.args.get("columns"))
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier) or is_renamed:
            return frozenset()
        return frozenset() if not node.db and fold(node.name) in ctes else self.tables.key(node.name, node.db)

    def _projection(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> Columns:
        inner = node.unalias()
        if isinstance(inner, exp.Star | exp.Column) and inner.is_star and inner is not node:
            # DuckDB gives every such column this name.
            not_understood(node)
        if isinstance(inner, exp.Star):
            return self._star(inner, scope.sources, scope, ctes)
        if isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star):
            self.read.add(id(inner))
            return self._star(inner.this, scope.row(inner.table) or not_understood(inner), scope, ctes)
        chosen = self._select_columns_call(inner, scope, ctes) if isinstance(inner, exp.Columns) else None
        if chosen is not None:
            return chosen if inner is node else tuple(replace(column, name="") for column in chosen)
        passed = self.passed(inner.unnest(), scope, ctes) or Output("", self.used(inner, scope, ctes))
        if not isinstance(node, exp.Alias):
            # Only a plain column keeps its own name in every dialect.
            return (passed if isinstance(node, exp.Column) else replace(passed, name=""),)
        scope.add_alias(node.alias, passed.masks)
        return (replace(passed, name=fold(node.alias)),)

    def _select_columns_call(self, node: exp.Columns, scope: Scope, ctes: Ctes) -> Columns | None:
        """Return the columns that DuckDB's COLUMNS() chooses by a pattern, by names or from a star.

        None if that cannot be said: for a function, several sources, or columns that are not all known.
        """
        inner = node.this
        if node.args.get("unpack") or scope.is_merged or len(scope.sources) != 1 or UNCOUNTED in scope.star:
            return None
        if isinstance(inner, exp.Star):
            return self._star(inner, scope.sources, scope, ctes)
        if isinstance(inner, exp.Literal) and inner.is_string and _PATTERN.fullmatch(inner.name):
            # Names are folded here, so that a pattern of small letters chooses all that DuckDB chooses. Where DuckDB
            # chooses fewer, the answer has other columns than expected.
            with suppress(re.error):
                return tuple(one for one in scope.star if re.search(inner.name, one.name))
        if isinstance(inner, exp.Array) and all(isinstance(one, exp.Literal) for one in inner.expressions):
            names = {fold(one.name) for one in inner.expressions}
            return tuple(one for one in scope.star if one.name in names)
        return None

    def passed(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> Output | None:
        """Return the output of an expression that is only a column or a scalar subquery; None for any other."""
        if isinstance(node, exp.Column):
            # SQLite names the row id after the key.
            is_number = self.dialect == "sqlite" and fold(node.name) in ROWID
            return Output("" if is_number else fold(node.name), self._meaning(node, scope))
        if not isinstance(node, exp.Query):
            return None
        columns = self.query(node, ctes, scope)
        if len(columns) != 1 or columns[0] == UNCOUNTED:
            not_understood(node)
        return columns[0]

    def _star(self, star: exp.Star, sources: list[Source], scope: Scope, ctes: Ctes) -> Columns:
        """Return the columns of `*`, with DuckDB's EXCLUDE, REPLACE and RENAME applied."""
        left_out = {fold(column.name) for column in _list(star, "except_")}
        self._skip(each for key in ("except_", "rename") for each in _list(star, key))
        listed = scope.star if sources is scope.sources else [one for source in sources for one in source.columns]
        columns = [column for column in listed if column.name not in left_out and not column.is_hidden]
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

    def _skip(self, parts: Iterable[exp.Expr]) -> None:
        """Record that names in some parts of a statement are only names."""
        self.read.update(id(column) for part in parts for column in part.find_all(exp.Column))

    def _meaning(self, node: exp.Column, scope: Scope) -> Masks:
        """Return the masked columns that a name may refer to."""
        self.read.add(id(node))
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
        """Check every clause of a query except its output columns and FROM."""
        if any(value and key not in (*_CLAUSES, *_SHAPE, *_SIDES) for key, value in node.args.items()):
            not_understood(node)
        for key in _CLAUSES:
            for clause in _list(node, key):
                determined = _find_determined_columns(clause, scope) if isinstance(clause, exp.Group) else []
                self._skip(determined)
                for one in clause.expressions if determined else [clause]:
                    if one not in determined:
                        self._uses(one, scope, ctes)
                self._numbers(clause, columns)

    def _numbers(self, node: exp.Expr, columns: Columns) -> None:
        """Check columns used by number, or all at once."""
        is_all = bool(node.args.get("all")) or any(each.name.upper() == "ALL" for each in node.find_all(exp.Var))
        if is_all or (isinstance(node, exp.Distinct) and not node.args.get("on")):
            self.refuse_any(columns, node, node.key.upper())
        if isinstance(node, exp.Where):
            return
        for number in node.find_all(exp.Literal, exp.HexString):
            outer, is_plain = number.parent, number.is_int and UNCOUNTED not in columns
            while isinstance(outer, _AROUND_NUMBERS) or (
                isinstance(outer, exp.Anonymous) and fold(outer.name) in _HINT_FUNCTIONS
            ):
                is_plain = is_plain and isinstance(outer, exp.Paren)
                outer = outer.parent
            if isinstance(outer, _PLACES) and (number.is_int or isinstance(number, exp.HexString)):
                at = int(number.name) if is_plain else 0
                self.refuse_any(columns[at - 1 : at] if is_plain else columns, node, node.key.upper())

    def _uses(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> None:
        """Refuse an expression that uses anything masked."""
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            self.read.add(id(node))
            for source in scope.row(node.table) or not_understood(node):
                self.refuse(source.masks, node)
        elif isinstance(node, exp.Column):
            self.refuse(self._meaning(node, scope), node.parent or node)
        elif isinstance(node, exp.Query):
            columns = self.query(node, ctes, scope)
            if not isinstance(node.parent, exp.Exists):
                self.refuse_any(columns, node, "an expression")
        elif isinstance(node, exp.Columns) and (chosen := self._select_columns_call(node, scope, ctes)) is not None:
            self.refuse_any(chosen, node.parent or node, f"`{(node.parent or node).sql()}`")
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
        """Return the masked columns that the parts of an expression may reveal, as `used` does for a whole one."""
        self._uses_in(node, scope, ctes)
        return frozenset()

    def _uses_in(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> None:
        for child in node.iter_expressions():
            self._uses(child, scope, ctes)


def _common_names(left: Sequence[Output], right: Sequence[Output]) -> list[str]:
    """Return the names that both sides of a NATURAL JOIN have; empty if not all names are known."""
    names = [[one.name for one in columns if not one.is_hidden] for columns in (left, right)]
    if any({"", "*", *ROWID} & set(listed) for listed in names):
        return []
    return [name for name in names[0] if name in names[1]]


def _find_determined_columns(group: exp.Group, scope: Scope) -> list[exp.Expr]:
    """Return the columns of a GROUP BY that do not change its groups, because it contains the key of their table.

    Only a plain list is understood, and only names that cannot be an alias of the SELECT.
    """
    if any(value for key, value in group.args.items() if key != "expressions"):
        return []
    places: list[tuple[exp.Expr, Source]] = []
    for column in group.expressions:
        if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier) or column.db:
            continue
        if column.table:
            found = [source for source in scope.sources if source.name == fold(column.table)]
        else:
            found = [source for source in scope.sources if source.column(column.name) is not None]
        is_alias = not column.table and fold(column.name) in scope.aliases
        if len(found) == 1 and not is_alias and not found[0].is_open:
            places.append((column, found[0]))
    keyed = [
        source
        for source in scope.sources
        if source.key and source.key <= {fold(column.name) for column, place in places if place is source}
    ]
    return [column for column, place in places if any(place is source for source in keyed)]


@dataclass(frozen=True, slots=True)
class ViewLineage(Lineage):
    """Follows masked values through the definition of a view.

    Nothing is refused: what is computed from a masked column is masked as well. A condition on one is not, because the
    view's owner wrote it and nobody else can change it.

    Raises:
        Refused: the definition is not understood.
    """

    touched: set[str] = field(default_factory=set[str])
    """Masked columns found since it was last cleared."""

    def refuse(self, masks: Masks, node: exp.Expr, what: str = "") -> None:
        self.touched.update(masks)

    def refuse_any(self, columns: Iterable[Output], node: exp.Expr, what: str) -> None:
        self.touched.update(*(column.masks for column in columns))

    def used(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> Masks:
        return self._collect_touched(lambda: self._uses(node, scope, ctes))

    def used_in(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> Masks:
        return self._collect_touched(lambda: self._uses_in(node, scope, ctes))

    def passed(self, node: exp.Expr, scope: Scope, ctes: Ctes) -> Output | None:
        found: list[Output | None] = []
        masks = self._collect_touched(lambda: found.append(Lineage.passed(self, node, scope, ctes)))
        return None if found[0] is None else replace(found[0], masks=found[0].masks | masks)

    def _collect_touched(self, read: Callable[[], None]) -> Masks:
        before = set(self.touched)
        self.touched.clear()
        read()
        found = frozenset(self.touched)
        self.touched.update(before)
        return found


def _list(node: exp.Expr, key: str) -> list[exp.Expr]:
    """Return the nodes under a key as a list."""
    value: object = node.args.get(key)
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, exp.Expr)]


_MASK = "***"

_DESCRIBING_STATEMENT = re.compile(r"\s*(EXPLAIN|ANALYZE|DESCRIBE|DESC|SHOW|PRAGMA)\b", re.IGNORECASE)
"""Statements that show no values. The query inside an EXPLAIN is checked all the same, since its row estimates may
reveal values."""
_OPTIONS = re.compile(
    r"\s*(?:QUERY\s+PLAN|ANALY[SZ]E|VERBOSE|EXTENDED|PARTITIONS|FORMAT\s*=\s*\w+|\([^()]*\)(?=\s*\w))", re.IGNORECASE
)
_SHOWS_VALUES: Mapping[Dialect, re.Pattern[str]] = {
    "mysql": re.compile(r"\bFORMAT\b(?!\s*=\s*TRADITIONAL\b)|\bEXPLAIN\s+ANALYZE\b", re.IGNORECASE),
    "duckdb": re.compile(r"\bANALYZE\b", re.IGNORECASE),
}
"""Forms of a plan whose conditions may contain values of the tables."""
_STORAGE = re.compile(r"\s*PRAGMA\s+(?:\w+\s*\.\s*)?storage_info\b(?P<table>.*)", re.IGNORECASE | re.DOTALL)
_QUERY = re.compile(r"\b(?:SELECT|WITH|FROM|TABLE|VALUES)\b", re.IGNORECASE)

_CONDITION = re.compile(r"\bWHERE\b", re.IGNORECASE)
_COUNTER_CONDITION = re.compile(r"\bWHERE\b.*\bauto_increment\b", re.IGNORECASE | re.DOTALL)
_COUNTER = re.compile(r"\bAUTO_INCREMENT=\d+")
_COUNTER_FUNCTION = "pg_sequence_last_value"


@dataclass(frozen=True, slots=True)
class MaskPlan:
    """Which columns of an answer to mask."""

    columns: Columns = field(default=(), repr=False)
    """The statement's expected columns; empty if nothing is masked."""
    hides_counters: bool = False
    """Whether the answer describes tables, and a counter in it shows a value of a masked column."""

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of the columns to mask, counted from 0."""
        return tuple(number for number, column in enumerate(self.columns) if column.masks)

    def apply(self, columns: Sequence[str], rows: Sequence[Row]) -> tuple[Row, ...]:
        """Return the rows with `***` for every value of a masked column, NULL included."""
        if self.hides_counters:
            return tuple(tuple(map(_without_counter, columns, row)) for row in rows)
        if not self.positions:
            return tuple(rows)
        # A database may extend a duplicate name.
        is_expected = len(columns) == len(self.columns) and all(
            not column.name or fold(name).startswith(column.name)
            for name, column in zip(columns, self.columns, strict=True)
        )
        if not is_expected:
            raise Refused(
                "the answer has other columns than the statement and the known tables let expect, and some are masked",
                suggestion="read the schema again, and name the columns that you need",
            )
        hidden = set(self.positions)
        return tuple(tuple(_MASK if at in hidden else cell for at, cell in enumerate(row)) for row in rows)


def _without_counter(column: str, cell: Cell) -> Cell:
    """Return a cell of MySQL's SHOW TABLE STATUS or SHOW CREATE TABLE without the next value of the counter."""
    if fold(column) == "auto_increment":
        return None if cell is None else _MASK
    return _COUNTER.sub(f"AUTO_INCREMENT={_MASK}", cell) if isinstance(cell, str) else cell


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskPolicy:
    """What is masked in one database, for the structure as it was read.

    Example:
        plan = MaskPolicy.of("postgres", structure, ["customers.email"]).plan(sql)
        rows = plan.apply(answer.columns, answer.rows)
    """

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
        """Return the policy of a database.

        Args:
            dialect: the SQL dialect.
            structure: the tables and views.
            patterns: masked columns, as `column`, `table.column` or `schema.table.column`.
            functions: the engine's functions, by which view definitions are judged.
            allowed: functions that the user allows.
        """
        derive = _Views(dialect, functions or {}, allowed)
        return cls(dialect=dialect, tables=Tables(structure, tuple(patterns), derive))

    def plan(self, sql: str) -> MaskPlan:
        """Return what to mask in a statement's answer.

        Raises:
            Refused: a masked column is used other than by selecting it, or the statement is not understood.
            UnknownName: a table does not exist in the structure.
        """
        describing = _DESCRIBING_STATEMENT.match(sql)
        if not self.tables.patterns:
            return MaskPlan()
        if describing and not _QUERY.search(_part_with_query(sql, describing, self.dialect)):
            _check_pragma(sql, self.tables)
            hides_counters = self.dialect == "mysql" and self.tables.has_masked_counter
            if hides_counters and _COUNTER_CONDITION.search(sql):
                raise Refused(
                    "columns of this database are masked, and a condition on `auto_increment` would reveal values",
                    suggestion="leave the condition out, or name the tables with LIKE",
                )
            return MaskPlan(hides_counters=hides_counters)
        start = 0
        if describing is not None:
            start = describing.end()
            while match := _OPTIONS.match(sql, start):
                start = match.end()
        query = sql[start:]
        tree = _parse(query, self.dialect)
        if describing is not None:
            self._check_plan(sql[describing.start(1) : len(sql) - len(query)], tree)
        if not isinstance(tree, exp.Query | exp.Values | exp.Pivot | exp.Summarize):
            not_understood(tree)
        lineage = Lineage(self.tables, self.dialect)
        columns = lineage.output(tree) if _is_touched(tree, lineage.tables) else ()
        if describing or not any(column.masks for column in columns):
            return MaskPlan()
        if UNCOUNTED in columns:
            refuse_any(columns, tree, "a query whose columns cannot be counted")
        return MaskPlan(columns)

    def _check_plan(self, options: str, tree: exp.Expr) -> None:
        """Refuse a plan that may show values which the conditions of a view compare with.

        MySQL reads a table of one row while it plans, and writes its values into the conditions of a plan in JSON or as
        a tree; DuckDB does so while it runs the statement.
        """
        shows_values = _SHOWS_VALUES.get(self.dialect)
        if shows_values is None or not shows_values.search(options):
            return
        for node in tree.find_all(exp.Table):
            table = self.tables.find(node.name, node.db) if isinstance(node.this, exp.Identifier) else None
            if table is not None and table.kind == "view":
                raise Refused(
                    f"columns of this database are masked, and such a plan of the view `{table.name}` might show them",
                    suggestion="ask for the plan with explain",
                )


def mask_plan(
    sql: str,
    dialect: Dialect,
    structure: Structure,
    patterns: Sequence[str],
    *,
    functions: Mapping[str, Stability] | None = None,
) -> MaskPlan:
    """Return the plan of a single statement, as `MaskPolicy.plan` does."""
    return MaskPolicy.of(dialect, structure, patterns, functions=functions).plan(sql)


@dataclass(frozen=True, slots=True)
class _Views:
    """Finds the masked columns of a view from its definition."""

    dialect: Dialect
    functions: Mapping[str, Stability]
    allowed: frozenset[str]

    def __call__(self, tables: Tables, view: Table) -> tuple[frozenset[str], ...] | None:
        """Return the masked columns in each column of a view.

        None for a definition that is unknown, not understood, or calls a function that may read anything.
        """
        if not view.definition:
            return None
        try:
            judge(view.definition, self.dialect, functions=self.functions, allowed=self.allowed)
            columns = ViewLineage(tables, self.dialect).output(_parse(view.definition, self.dialect))
        except (Refused, RecursionError):
            return None
        if UNCOUNTED in columns:
            is_clean = not any(column.masks for column in columns)
            return tuple(frozenset[str]() for _ in view.columns) if is_clean else None
        return tuple(column.masks for column in columns)


def _part_with_query(sql: str, describing: re.Match[str], dialect: Dialect) -> str:
    """Return the part of a statement that may contain a query.

    In a SHOW of MySQL that is only what follows WHERE; `SHOW INDEX FROM t` reads no values.
    """
    if dialect != "mysql" or describing[1].upper() != "SHOW":
        return sql
    found = _CONDITION.search(sql)
    return sql[found.end() :] if found else ""


def _check_pragma(sql: str, tables: Tables) -> None:
    """Refuse DuckDB's `storage_info` of masked tables, since it shows the minimum and maximum of every column."""
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


def _parse(sql: str, dialect: Dialect) -> exp.Expr:
    """Parse a statement from the guard's own tokens, without comments and hints."""
    try:
        text, _ = Passage(one_statement(read(sql, dialect))).plain(dialect)
        tree = sqlglot.parse_one(text, dialect=dialect)
        return _with_tables_after_in(tree) if dialect == "sqlite" else tree
    except (SqlglotError, RecursionError) as error:
        raise Refused(
            "columns of this database are masked, and this statement is not understood",
            suggestion="ask with a plain SELECT",
        ) from error


def _with_tables_after_in(tree: exp.Expr) -> exp.Expr:
    """Return the tree with SQLite's `x IN table` as `x IN (SELECT * FROM table)`, which means the same."""
    for node in list(tree.find_all(exp.In)):
        field = node.args.get("field")
        if isinstance(field, exp.Column):
            table = exp.Table(this=field.this, db=field.args.get("table"))
        elif isinstance(field, exp.Literal):
            table = exp.Table(this=exp.to_identifier(field.name, quoted=True))
        elif isinstance(field, exp.Dot):
            table = exp.Table(this=field.expression, db=field.this)
        elif isinstance(field, exp.Expr):
            table = exp.Table(this=field)
        else:
            continue
        node.set("field", None)
        node.set("query", exp.Subquery(this=exp.Select(expressions=[exp.Star()], from_=exp.From(this=table))))
    return tree


def _is_own(table: exp.Table) -> bool:
    """Return whether a name certainly refers to a query of a WITH around it, and not to a table of that name."""
    inner: exp.Expr = table
    while (outer := inner.parent) is not None:
        clause = outer if isinstance(outer, exp.With) else outer.args.get("with_")
        ctes: list[exp.Expr] = clause.expressions if isinstance(clause, exp.With) else []
        if isinstance(outer, exp.With) and not outer.args.get("recursive"):
            ctes = ctes[: next(at for at, cte in enumerate(ctes) if cte is inner)]
        elif clause is inner:
            ctes = []  # seen already, on the way out of the clause
        for cte in ctes:
            name = cte.args["alias"].this
            if name.name == table.name and bool(name.quoted) == bool(table.this.quoted):
                return True
        inner = outer
    return False


def _is_touched(tree: exp.Expr, tables: Tables) -> bool:
    """Return whether a statement may read anything masked. Names of its WITH queries are looked up as tables too."""
    called = next((one for one in tree.find_all(exp.Anonymous) if fold(one.name) == _COUNTER_FUNCTION), None)
    if called is not None and tables.has_masked_counter:
        not_understood(called)
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            return True
        columns = tables.columns(table.name, table.db, table.catalog)
        if columns is None and (table.db or not _is_own(table)):
            return True
        if any(column.masks for column in columns or ()):
            return True
    return False
