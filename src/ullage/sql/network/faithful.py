"""What value is meant by a text that a database wrote down?

The value where it says all that the text says, else the text: an object with one name twice stays as it was written. A
number that a float would round is a decimal, inside lists and objects too.
"""

import json
import math
from decimal import Decimal, InvalidOperation

from ullage.table import Cell
from ullage.tool import Json

__all__ = ["number", "real", "whole", "written_json"]


def whole(text: str) -> Cell:
    return int(text)


def real(text: str) -> Cell:
    """Infinity and NaN are no JSON."""
    value = float(text)
    return value if math.isfinite(value) else text


def number(text: str) -> Cell:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return text
    return value if value.is_finite() else text


def written_json(text: str) -> Cell:
    """Objects and arrays. A lone `null` would look like no value at all, and so scalars stay text."""
    if "\\ud" in text.lower():
        return text
    try:
        value: Json = json.loads(text, parse_float=_as_written, parse_constant=_refuse, object_pairs_hook=_distinct)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict | list) else text


def _as_written(text: str) -> float | Decimal:
    """A decimal where a float would lose a digit, or a zero that says how exact a number is."""
    value = float(text)
    return value if repr(value) == text else Decimal(text)


def _refuse(text: str) -> None:
    raise ValueError(text)


def _distinct(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("one name twice")
    return found
