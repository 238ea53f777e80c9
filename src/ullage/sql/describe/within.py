"""How much of a database can be told within a budget?

At the detail that was asked for where it fits, else at the next lesser one, with a word about it: everything, a line a
table, names, and for thousands of tables what their names begin with. No table is left out without being counted. The
tokens are counted by whoever knows how.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Literal

from ..structure import Structure, Table
from .full import full, routine_line
from .line import LEGEND, line
from .words import full_name, on_one_line, rounded

__all__ = ["DETAILS", "Detail", "describe"]

Detail = Literal["names", "lines", "full"]
DETAILS: Final[tuple[Detail, ...]] = ("names", "lines", "full")

_NARROW = "narrow with pattern"
_ONE_WORD = re.compile(r"[A-Z]?[^\W_A-Z]+|[^\W_]+")


def describe(structure: Structure, detail: Detail, *, budget: int, weigh: Callable[[str], int]) -> str:
    """Never more than `budget` tokens, unless that is too little for a sentence."""
    if not structure.tables and not structure.routines:
        return "no tables"
    lesser = DETAILS[: DETAILS.index(detail) + 1][::-1]
    for chosen in lesser:
        note = "" if chosen == detail else f"\n-- {detail} would exceed {budget} tokens: {_NARROW}, or use table"
        said = _WRITERS[chosen](structure) + note
        if weigh(said) <= budget:
            return said
    return _most(structure, budget, weigh)


def _everything(structure: Structure) -> str:
    return "\n".join([*map(full, structure.tables), *map(routine_line, structure.routines)])


def _lines(structure: Structure) -> str:
    keys = {full_name(table): table.primary_key for table in structure.tables}
    lines = [line(table, keys) for table in structure.tables]
    return "\n".join([*([LEGEND] if lines else []), *lines, *map(routine_line, structure.routines)])


def _names(structure: Structure) -> str:
    routines = [f"{one.kind} {full_name(one)}" for one in structure.routines]
    return "\n".join([_counted(structure), *map(_name, structure.tables), *routines])


_WRITERS: Final[dict[Detail, Callable[[Structure], str]]] = {"names": _names, "lines": _lines, "full": _everything}


def _name(table: Table) -> str:
    view = "view " if table.kind == "view" else ""
    return f"{view}{full_name(table)}" + ("" if table.rows is None else f" {rounded(table.rows)}")


def _counted(structure: Structure) -> str:
    views = sum(table.kind == "view" for table in structure.tables)
    figures = ((len(structure.tables) - views, "table"), (views, "view"), (len(structure.routines), "routine"))
    return ", ".join(f"{count} {thing}{'' if count == 1 else 's'}" for count, thing in figures if count)


def _most(structure: Structure, budget: int, weigh: Callable[[str], int]) -> str:
    """The beginnings of names that most tables have, as many as fit."""
    groups = Counter(map(_beginning, structure.tables)).most_common()
    written = [f"{beginning} {count}" for beginning, count in groups]
    weights = range(len(written) + 1)
    fitting = bisect_right(weights, budget, key=lambda shown: weigh(_grouped(structure, written[:shown], len(written))))
    return _grouped(structure, written[: max(0, fitting - 1)], len(written))


def _grouped(structure: Structure, shown: Sequence[str], of: int) -> str:
    rest = f" ({of - len(shown)} beginnings not shown)" if 0 < len(shown) < of else ""
    return "\n".join([f"{_counted(structure)}; {_NARROW}{rest}", *shown])


def _beginning(table: Table) -> str:
    """`sales.*` for a table of another schema, else its first word: `sales_*`."""
    if table.schema is not None:
        return f"{on_one_line(table.schema)}.*"
    name = on_one_line(table.name)
    word = _ONE_WORD.search(name)
    end = len(name) if word is None else word.end()
    return name if end >= len(name) else f"{name[:end]}{'_' if name[end] == '_' else ''}*"
