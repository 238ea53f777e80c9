"""What is said of a masked column that was put to use?"""

from collections.abc import Iterable
from typing import NoReturn

from sqlglot import exp

from ullage.errors import Refused

from .known import Output

__all__ = ["not_understood", "refuse", "refuse_any"]

_LONG = 60
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


def _excerpt(node: exp.Expr) -> str:
    text = node.sql()
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"
