"""Size of a JSON value, measured only up to a limit.

Used to decide whether to process a value at once, in a worker thread or not at all. Measuring a value of any size takes
less time than processing it.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

__all__ = ["is_larger"]

_SCALARS = frozenset({float, bool, type(None)})
_PLAIN = frozenset({*_SCALARS, str, int, dict, list, tuple})
_SHORT = 1 << 64


def is_larger(value: object, values: int, letters: int, *, ascii_share: int = 1) -> bool:
    """Return whether a JSON value has more values, or more characters in texts and keys, than given. Stops once known.

    Args:
        value: Any JSON value; tuples count as lists.
        values: Members and items, at all levels.
        letters: Characters of texts and keys.
        ascii_share: How many characters of an ASCII text or key count as one, for work that is quicker on such texts.
    """
    todo: list[Iterable[Any]] = [(value,)]
    add = todo.append
    for items in todo:
        for one in items:
            # Comparing classes takes a fraction of the time of `isinstance`, and nearly every value is of a plain
            # class.
            kind: Any = one.__class__
            if kind is str or (kind not in _PLAIN and isinstance(one, str)):
                letters -= len(one) if ascii_share == 1 or not one.isascii() else len(one) // ascii_share
            elif kind is dict or (kind not in _PLAIN and isinstance(one, Mapping)):
                members = cast("Mapping[Any, Any]", one)
                values -= len(members)
                if values < 0:
                    return True
                add(members)
                add(members.values())
            elif kind is int:
                # Reading and writing a long number takes longer than a text of its digits, and more so the longer it
                # is.
                letters -= 0 if -_SHORT < one < _SHORT else one.bit_length()
            elif kind not in _SCALARS and isinstance(one, list | tuple):
                inner = cast("Collection[Any]", one)
                values -= len(inner)
                if values < 0:
                    return True
                add(inner)
        if letters < 0:
            return True
    return False
