"""Which tables are meant?

By a pattern with `*` and `?`, by a part of a name, or, where no table is called so, by a column's name. Several
patterns stand with commas between them.
"""

import difflib
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase

from ullage.errors import InvalidArguments

from ..structure import Structure, Table
from .words import full_name

__all__ = ["choose", "find_table", "spell"]

_NEAREST = 5
_DEFAULT_SCHEMAS = frozenset({"public", "main", "dbo"})


def choose(structure: Structure, pattern: str) -> Structure:
    """The tables and routines that a pattern means; raises where it means none."""
    wanted = [one.strip().lower() for one in pattern.split(",") if one.strip()]
    if not wanted:
        return structure
    tables = tuple(table for table in structure.tables if _fits(_names(table), wanted))
    routines = tuple(one for one in structure.routines if _fits((one.name, full_name(one)), wanted))
    if not tables and not routines:
        tables = tuple(table for table in structure.tables if _fits((one.name for one in table.columns), wanted))
    if not tables and not routines:
        raise _nothing(structure, pattern)
    return replace(structure, tables=tables, routines=routines)


def find_table(structure: Structure, name: str) -> Table:
    """The table of that name, with or without its schema, quoted or not; raises where there is none, or several."""
    written = name.strip().lower()
    plain = written.replace('"', "").replace("`", "").replace("[", "").replace("]", "")
    for called, wanted in ((_exactly, written), (_exactly, plain), (_loosely, plain)):
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
    """The names nearest to one that does not exist, best first."""
    by_lower = {name.lower(): name for name in known}
    wanted = written.lower()
    within = [name for name in by_lower if wanted in name or (len(name) > 2 and name in wanted)]
    near = difflib.get_close_matches(wanted, by_lower, n=_NEAREST, cutoff=0.5)
    return tuple(by_lower[name] for name in dict.fromkeys([*near, *within]))[:_NEAREST]


def _names(table: Table) -> tuple[str, ...]:
    return table.name, full_name(table)


def _exactly(table: Table, wanted: str) -> bool:
    return full_name(table).lower() == wanted


def _loosely(table: Table, wanted: str) -> bool:
    """A name alone may mean a table of any schema, and the default schema may be named though it need not."""
    schema, _, name = wanted.rpartition(".")
    return table.name.lower() == name and (not schema or (table.schema is None and schema in _DEFAULT_SCHEMAS))


def _fits(names: Iterable[str], wanted: list[str]) -> bool:
    lower = [name.lower() for name in names]
    return any(_matches(name, one) for name in lower for one in wanted)


def _matches(name: str, wanted: str) -> bool:
    return fnmatchcase(name, wanted) if set("*?[") & set(wanted) else wanted in name


def _nothing(structure: Structure, pattern: str) -> InvalidArguments:
    return InvalidArguments(
        f"no table or column is like `{pattern}`",
        suggestion="leave the pattern out to see all, or write a part of a name",
        options=spell(pattern.strip("*?"), map(full_name, structure.tables)),
    )
