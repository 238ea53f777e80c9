"""What is said of a masked column that was put to use?"""

from collections.abc import Collection, Iterable
from typing import NoReturn

from sqlglot import exp

from ullage.errors import Refused, UnknownName

from ..describe import full_name, spell
from ..structure import Structure
from .known import Output

__all__ = ["not_understood", "refuse", "refuse_any", "unknown_column", "unknown_table"]

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
