"""Describes tables for a model within a token budget.

`choose` selects tables by a pattern with `*` and `?`, by part of a name, or, if no table has such a name, by a column's
name. Several patterns are separated by commas.

`full` writes one line for each column, key, index, constraint and trigger, in SQL terms. `line` writes a table in one
line:

    orders(id int*, customer_id int>customers, placed_at timestamp, total numeric) ~10k rows

A star marks the key, and `>` the table that a column references. That is enough to write a query; indexes, defaults and
checks are only in `full`.

`describe` uses the requested level of detail if it fits, else the next lower one, and says so: everything, one line per
table, names, and for thousands of tables the prefixes of their names. Every omitted table is counted. The caller passes
the function that counts tokens.

Names and comments in a database are untrusted text that a model reads: each is put on one line, and invisible
characters are removed.

`schema_json`, `table_json` and `triggers_json` are the original system's three replies, field by field, for existing
programs. A figure that was guessed by a driver there (a column's size) and is unknown is null.
"""

import difflib
import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final, Literal

from ullage.errors import InvalidArguments
from ullage.table import clean
from ullage.tool import Json

from .database import Column, Dialect, ForeignKey, Routine, Structure, Table

__all__ = [
    "DETAILS",
    "LEGEND",
    "Detail",
    "choose",
    "describe",
    "find_table",
    "full",
    "full_name",
    "line",
    "on_one_line",
    "round_row_count",
    "routine_line",
    "schema_json",
    "short_type",
    "spell",
    "table_json",
    "triggers_json",
]

_PRODUCTS: Mapping[Dialect, str] = {
    "sqlite": "SQLite",
    "duckdb": "DuckDB",
    "postgres": "PostgreSQL",
    "mysql": "MySQL",
    "tsql": "Microsoft SQL Server",
    "oracle": "Oracle",
}
_SIZED = re.compile(r"^(.*?)\s*\((\d+)(?:\s*,\s*(\d+))?\)(.*)$", re.DOTALL)


def schema_json(structure: Structure, dialect: Dialect, name: str, *, truncated: bool = False) -> str:
    """Return the schema in the original JSON; `truncated` if the database has more tables than these."""
    tables: list[Json] = [
        {
            "tableName": table.name,
            "tableType": table.kind.upper(),
            "columns": [_create_table_column(column, table) for column in table.columns],
        }
        for table in structure.tables
    ]
    said: dict[str, Json] = {"databaseName": structure.name or name, "databaseType": _PRODUCTS[dialect]}
    return _dump_json({**said, **({"truncated": True} if truncated else {}), "tables": tables})


def table_json(table: Table) -> str:
    """Return one table in the original JSON."""
    columns: list[Json] = []
    for column in table.columns:
        name, size, digits = _split_type(column.type)
        columns.append(
            {
                "columnName": column.name,
                "dataType": name,
                "columnSize": size,
                "decimalDigits": digits,
                "nullable": column.nullable,
                "defaultValue": column.default,
                "isPrimaryKey": column.name in table.primary_key,
                "isAutoIncrement": column.generated,
            }
        )
    return _dump_json(
        {
            "tableName": table.name,
            "tableType": table.kind.upper(),
            "columns": columns,
            "indexes": [
                {"indexName": index.name, "unique": index.unique, "columnName": column, "ordinalPosition": position}
                for index in table.indexes
                for position, column in enumerate(index.columns, 1)
            ],
            "foreignKeys": [entry for foreign in table.foreign_keys for entry in _create_table_foreign_key(foreign)],
            # The original's list was always empty.
            "constraints": [
                *(_constraint(None, "PRIMARY KEY", column) for column in table.primary_key),
                *(_constraint(check, "CHECK", None) for check in table.checks),
            ],
        }
    )


def triggers_json(tables: Sequence[Table], name: str | None) -> str:
    """Return the triggers of one table in the original JSON; if `name` is None, of all, each with its table."""
    triggers: list[Json] = [
        {
            **({} if name is not None else {"tableName": table.name}),
            "triggerName": one.name,
            "event": one.event,
            "timing": one.timing,
            "statement": one.statement,
        }
        for table in tables
        for one in table.triggers
    ]
    return _dump_json({"tableName": None if name is None else tables[0].name, "triggers": triggers})


def _dump_json(value: dict[str, Json]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _create_table_column(column: Column, table: Table) -> dict[str, Json]:
    name, size, _ = _split_type(column.type)
    return {
        "columnName": column.name,
        "dataType": name,
        "columnSize": size,
        "nullable": column.nullable,
        "isPrimaryKey": column.name in table.primary_key,
    }


def _split_type(written: str) -> tuple[str, int | None, int | None]:
    """Split a type such as `numeric(10,2)` into name, size and digits."""
    found = _SIZED.match(written)
    if found is None:
        return written, None, None
    name, size, digits, rest = found.groups()
    return name + rest, int(size), None if digits is None else int(digits)


def _create_table_foreign_key(foreign: ForeignKey) -> list[Json]:
    """Return one entry per column, as in the original."""
    targets = (*foreign.to, *[None] * (len(foreign.columns) - len(foreign.to)))
    return [
        {
            "fkName": foreign.name,
            "fkColumn": column,
            "pkTableName": foreign.table,
            "pkColumn": target,
            "updateRule": foreign.on_update or "NO ACTION",
            "deleteRule": foreign.on_delete or "NO ACTION",
        }
        for column, target in zip(foreign.columns, targets, strict=False)
    ]


def _constraint(name: str | None, kind: str, column: str | None) -> dict[str, Json]:
    return {"constraintName": name, "constraintType": kind, "columnName": column}


_LONGEST_TYPE = 60
"""Maximum characters of a type, since an enumeration may have hundreds of values."""
_SHORTER = (
    (re.compile(r"\(\d+(?:\s*,\s*\d+)?\)"), ""),
    (re.compile(r"^character varying"), "varchar"),
    (re.compile(r"^(?:character|bpchar)\b"), "char"),
    (re.compile(r"^integer\b"), "int"),
    (re.compile(r"^boolean\b"), "bool"),
    (re.compile(r"^double precision\b"), "double"),
    (re.compile(r"^(time|timestamp) without time zone"), r"\1"),
    (re.compile(r"^(time|timestamp) with time zone"), r"\1tz"),
)


def full_name(thing: Table | Routine) -> str:
    """Return a name with its schema, unless that is the default one."""
    return on_one_line(thing.name if thing.schema is None else f"{thing.schema}.{thing.name}")


def on_one_line(text: str) -> str:
    """Return untrusted text on one line, without invisible characters."""
    return " ".join(clean(text).text.split())


def short_type(written: str) -> str:
    """Return a type without sizes, which do not matter for a query."""
    said = on_one_line(written).lower()
    for pattern, shorter in _SHORTER:
        said = pattern.sub(shorter, said)
    return said if len(said) <= _LONGEST_TYPE else f"{said.partition('(')[0][:_LONGEST_TYPE]}(…)"


def round_row_count(rows: int) -> str:
    """Return an estimate with few digits: `~250`, `~10k`, `~1.2M`."""
    for unit, size in (("B", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)):
        if rows >= size:
            scaled = rows / size
            return f"~{scaled:.1f}{unit}".replace(".0", "") if scaled < 10 else f"~{scaled:.0f}{unit}"
    return f"~{rows}"


_NEAREST = 5
_DEFAULT_SCHEMAS = frozenset({"public", "main", "dbo"})


def choose(structure: Structure, pattern: str) -> Structure:
    """Return the tables and routines that a pattern matches; raise `UnknownName` if it matches none."""
    wanted = [one.strip().lower() for one in pattern.split(",") if one.strip()]
    if not wanted:
        return structure
    tables = tuple(table for table in structure.tables if _fits((table.name, full_name(table)), wanted))
    routines = tuple(one for one in structure.routines if _fits((one.name, full_name(one)), wanted))
    if not tables and not routines:
        tables = tuple(table for table in structure.tables if _fits((one.name for one in table.columns), wanted))
    if not tables and not routines:
        raise InvalidArguments(
            f"no table or column is like `{pattern}`",
            suggestion="leave the pattern out to see all, or write a part of a name",
            options=spell(pattern.strip("*?"), map(full_name, structure.tables)),
        )
    return replace(structure, tables=tables, routines=routines)


def find_table(structure: Structure, name: str) -> Table:
    """Return the table of a name, with or without schema and quotes; raise if there is none, or several."""
    written = name.strip().lower()
    plain = written.replace('"', "").replace("`", "").replace("[", "").replace("]", "")
    for called, wanted in ((_matches_exactly, written), (_matches_exactly, plain), (_matches_loosely, plain)):
        found = [table for table in structure.tables if called(table, wanted)]
        if len(found) == 1:
            return found[0]
        if found:
            raise InvalidArguments(
                f"several tables are called `{name}`",
                suggestion="say which, with its schema",
                options=tuple(map(full_name, found)),
            )
    raise InvalidArguments(
        f"no table is called `{name}`",
        suggestion="take one of these, or list them with schema",
        options=spell(name, map(full_name, structure.tables)),
    )


def spell(written: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the names most similar to one that does not exist, best first."""
    by_lower = {name.lower(): name for name in known}
    wanted = written.lower()
    within = [name for name in by_lower if wanted in name or (len(name) > 2 and name in wanted)]
    near = difflib.get_close_matches(wanted, by_lower, n=_NEAREST, cutoff=0.5)
    return tuple(by_lower[name] for name in dict.fromkeys([*near, *within]))[:_NEAREST]


def _matches_exactly(table: Table, wanted: str) -> bool:
    return full_name(table).lower() == wanted


def _matches_loosely(table: Table, wanted: str) -> bool:
    """Return whether a name may refer to a table: without schema in any schema, or with the default schema named."""
    schema, _, name = wanted.rpartition(".")
    return table.name.lower() == name and (not schema or (table.schema is None and schema in _DEFAULT_SCHEMAS))


def _fits(names: Iterable[str], wanted: list[str]) -> bool:
    lower = [name.lower() for name in names]
    return any((fnmatchcase(name, one) if set("*?[") & set(one) else one in name) for name in lower for one in wanted)


_ALLOWED = frozenset({None, "", "NO ACTION"})
"""Default actions of a foreign key."""


def full(table: Table) -> str:
    """Return a table in full detail, one line for each part."""
    triggers: list[str] = []
    for trigger in table.triggers:
        when = " ".join(word.lower() for word in (trigger.timing, trigger.event) if word)
        triggers.append(f"trigger {on_one_line(trigger.name)} {when}".rstrip())
    foreign_keys: list[str] = []
    for foreign in table.foreign_keys:
        target = on_one_line(foreign.table) + (f"({_join_columns(foreign.to)})" if foreign.to else "")
        rules = (("on update", foreign.on_update), ("on delete", foreign.on_delete))
        said = "".join(f" {word} {rule.lower()}" for word, rule in rules if rule and rule not in _ALLOWED)
        foreign_keys.append(f"foreign key ({_join_columns(foreign.columns)}) references {target}{said}")
    columns: list[str] = []
    for column in table.columns:
        alone = table.primary_key == (column.name,)
        marks = (
            on_one_line(column.name),
            on_one_line(column.type),
            "primary key" if alone else "",
            "" if column.nullable or alone else "not null",
            f"default {on_one_line(column.default)}" if column.default is not None else "",
            "generated" if column.generated else "",
        )
        columns.append(" ".join(mark for mark in marks if mark) + _comment(column.comment))
    lines = [
        *columns,
        *([f"primary key ({_join_columns(table.primary_key)})"] if len(table.primary_key) > 1 else []),
        *foreign_keys,
        *(
            f"{'unique ' if index.unique else ''}index {on_one_line(index.name)} ({_join_columns(index.columns)})"
            for index in table.indexes
        ),
        *(on_one_line(check) for check in table.checks),
        *triggers,
        *([f"as {on_one_line(table.definition)}"] if table.definition else []),
    ]
    size = "" if table.rows is None else f" {round_row_count(table.rows)} rows"
    return "\n".join(
        [f"{table.kind} {full_name(table)}{size}{_comment(table.comment)}", *(f"  {one}" for one in lines)]
    )


def routine_line(routine: Routine) -> str:
    """Return a routine in one line."""
    arguments = on_one_line(routine.arguments or "")
    returns = f" returns {on_one_line(routine.returns)}" if routine.returns else ""
    return f"{routine.kind} {full_name(routine)}({arguments}){returns}"


def _comment(comment: str | None) -> str:
    return f" -- {on_one_line(comment)}" if comment else ""


def _join_columns(columns: tuple[str, ...]) -> str:
    return ", ".join(map(on_one_line, columns))


LEGEND = "-- * primary key, > references"

Keys = Mapping[str, tuple[str, ...]]
"""Primary keys, by the tables' full names."""


def line(table: Table, keys: Keys) -> str:
    """Return a table in one line."""
    # The referenced column is named only if it is not the table's key.
    references: dict[str, str] = {}
    for foreign in table.foreign_keys:
        known = keys.get(foreign.table, foreign.to) == foreign.to
        for index, column in enumerate(foreign.columns):
            other = on_one_line(foreign.table)
            named = known or index >= len(foreign.to)
            references.setdefault(column, f">{other}" if named else f">{other}.{on_one_line(foreign.to[index])}")
    columns: list[str] = []
    for column in table.columns:
        key = "*" if column.name in table.primary_key else ""
        said = f"{on_one_line(column.name)} {short_type(column.type)}".rstrip()
        columns.append(f"{said}{key}{references.get(column.name, '')}")
    view = "view " if table.kind == "view" else ""
    size = "" if table.rows is None else f" {round_row_count(table.rows)} rows"
    return f"{view}{full_name(table)}({', '.join(columns)}){size}"


Detail = Literal["names", "lines", "full"]
DETAILS: Final[tuple[Detail, ...]] = ("names", "lines", "full")

_NARROW = "narrow with pattern"
_ONE_WORD = re.compile(r"[A-Z]?[^\W_A-Z]+|[^\W_]+")


def describe(structure: Structure, detail: Detail, *, budget: int, weigh: Callable[[str], int]) -> str:
    """Return a description of the database.

    Args:
        structure: the tables and routines.
        detail: the highest level of detail to use.
        budget: maximum tokens; only a minimal sentence may exceed it.
        weigh: counts the tokens of a text.
    """
    if not structure.tables and not structure.routines:
        return "no tables"
    lesser = DETAILS[: DETAILS.index(detail) + 1][::-1]
    for chosen in lesser:
        note = "" if chosen == detail else f"\n-- {detail} would exceed {budget} tokens: {_NARROW}, or use table"
        said = _WRITERS[chosen](structure) + note
        if weigh(said) <= budget:
            return said
    # The beginnings of names that most tables share, as many as fit.
    groups = Counter(map(_name_prefix, structure.tables)).most_common()
    written = [f"{beginning} {count}" for beginning, count in groups]
    weights = range(len(written) + 1)
    fitting = bisect_right(
        weights, budget, key=lambda shown: weigh(_format_groups(structure, written[:shown], len(written)))
    )
    return _format_groups(structure, written[: max(0, fitting - 1)], len(written))


def _full_description(structure: Structure) -> str:
    return "\n".join([*map(full, structure.tables), *map(routine_line, structure.routines)])


def _line_description(structure: Structure) -> str:
    keys = {full_name(table): table.primary_key for table in structure.tables}
    lines = [line(table, keys) for table in structure.tables]
    return "\n".join([*([LEGEND] if lines else []), *lines, *map(routine_line, structure.routines)])


def _names_description(structure: Structure) -> str:
    routines = [f"{one.kind} {full_name(one)}" for one in structure.routines]
    tables = [
        f"{'view ' if table.kind == 'view' else ''}{full_name(table)}"
        + ("" if table.rows is None else f" {round_row_count(table.rows)}")
        for table in structure.tables
    ]
    return "\n".join([_summarize_counts(structure), *tables, *routines])


_WRITERS: Final[dict[Detail, Callable[[Structure], str]]] = {
    "names": _names_description,
    "lines": _line_description,
    "full": _full_description,
}


def _summarize_counts(structure: Structure) -> str:
    views = sum(table.kind == "view" for table in structure.tables)
    figures = ((len(structure.tables) - views, "table"), (views, "view"), (len(structure.routines), "routine"))
    return ", ".join(f"{count} {thing}{'' if count == 1 else 's'}" for count, thing in figures if count)


def _format_groups(structure: Structure, shown: Sequence[str], of: int) -> str:
    rest = f" ({of - len(shown)} beginnings not shown)" if 0 < len(shown) < of else ""
    return "\n".join([f"{_summarize_counts(structure)}; {_NARROW}{rest}", *shown])


def _name_prefix(table: Table) -> str:
    """Return `sales.*` for a table of another schema, else its first word: `sales_*`."""
    if table.schema is not None:
        return f"{on_one_line(table.schema)}.*"
    name = on_one_line(table.name)
    word = _ONE_WORD.search(name)
    end = len(name) if word is None else word.end()
    return name if end >= len(name) else f"{name[:end]}{'_' if name[end] == '_' else ''}*"
