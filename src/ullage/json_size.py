"""Size of a JSON value, measured only as far as a limit.

Whoever has to decide between working at once, in a worker thread or not at all asks here first, so that a value of any
size is measured in less time than the work on it takes. Pure.
"""

from collections.abc import Collection, Mapping
from typing import Any, cast

__all__ = ["is_larger"]

_SCALARS = frozenset({float, bool, type(None)})
_PLAIN = frozenset({*_SCALARS, int, list, tuple})
_SHORT = 1 << 64


def is_larger(value: object, values: int, letters: int, *, ascii_share: int = 1) -> bool:
    """Whether a JSON value contains more values, or its texts and keys more characters. Stops as soon as that is known.

    Args:
        value: Any JSON value; tuples are taken for lists.
        values: Members and items, at all levels.
        letters: Characters of texts and keys.
        ascii_share: How many characters of an ASCII text count as one, for work that is quicker on such texts.
    """
    todo: list[Collection[Any]] = [(value,)]
    while todo:
        for one in todo.pop():
            # Comparing classes takes a fraction of the time of `isinstance`, and nearly every value is a plain one.
            kind: Any = one.__class__
            if isinstance(one, str):
                letters -= len(one) // ascii_share if ascii_share > 1 and one.isascii() else len(one)
            elif kind is dict or (kind not in _PLAIN and isinstance(one, Mapping)):
                members = cast("Mapping[str, Any]", one)
                values -= len(members)
                if values >= 0:
                    letters -= sum(map(len, members))
                todo.append(members.values())
            elif kind is int:
                # Writing and reading a number takes longer than its digits do as a text, the longer it is.
                letters -= one.bit_length() if not -_SHORT < one < _SHORT else 0
            elif kind not in _SCALARS and isinstance(one, list | tuple):
                items = cast("Collection[Any]", one)
                values -= len(items)
                todo.append(items)
            if values < 0 or letters < 0:
                return True
    return False
