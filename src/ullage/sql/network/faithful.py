"""What value is meant by a text that a database wrote down?

The value where it says all that the text says, else the text: a number that a float would round, or an object with one
name twice, stays as it was written.
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
        value: Json = json.loads(text, parse_float=_exact, parse_constant=_refuse, object_pairs_hook=_distinct)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict | list) else text


def _exact(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or Decimal(repr(value)) != Decimal(text):
        raise ValueError(text)
    return value


def _refuse(text: str) -> None:
    raise ValueError(text)


def _distinct(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("one name twice")
    return found
