"""How does a value of a database travel?

As JSON. What JSON has not becomes text: dates and times as ISO 8601 writes them, with a blank between the two, bytes as
`0x…`, infinities by name. A decimal is marked, because a float would round it, and so is an object, because a mark is
one. Inside lists and objects a decimal is text.
"""

import json
import math
from datetime import date, time
from decimal import Decimal
from typing import cast

__all__ = ["cut", "travelling"]

Travelling = None | bool | int | float | str | list["Travelling"] | dict[str, "Travelling"]


def travelling(value: object, most: int) -> tuple[Travelling, bool]:
    """The value and whether it was cut to `most` characters."""
    if isinstance(value, (bytes, bytearray)):
        return _bytes(value, most)
    if isinstance(value, Decimal) and value.is_finite():
        return {"decimal": str(value)}, False
    plain = _plain(value)
    if isinstance(plain, str):
        return cut(plain, most)
    if isinstance(plain, (list, dict)):
        return _nested(plain, most)
    return plain, False


def cut(text: str, most: int) -> tuple[str, bool]:
    return (text, False) if len(text) <= most else (text[:most], True)


def _bytes(value: bytes | bytearray, most: int) -> tuple[Travelling, bool]:
    fitting = max(0, (most - 2) // 2)
    return "0x" + value[:fitting].hex(), len(value) > fitting


def _nested(value: list[Travelling] | dict[str, Travelling], most: int) -> tuple[Travelling, bool]:
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > most:
        return text[:most], True
    return (value if isinstance(value, list) else {"json": value}), False


def _plain(value: object) -> Travelling:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _named(value)
    if isinstance(value, (date, time)):
        return str(value)
    return _inner(value)


def _inner(value: object) -> Travelling:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in cast("dict[object, object]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in cast("list[object]", value)]
    if isinstance(value, (bytes, bytearray)):
        return "0x" + value.hex()
    return str(value)


def _named(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
