"""How is a value written as JSON, decimals and all?

Compact or indented, never with a raw line break in a string, and always as text that can be sent as UTF-8. Decimals
stand as numbers, digit by digit as they are. Reading is `json`'s affair.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import count

from ullage.tokens import Steps

from .cell import Cell, Row

__all__ = ["distinct_names", "quoted", "records_json", "written", "written_steps"]

_NEVER_RAW = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What `json` leaves as it is, though it breaks a line somewhere or is half a character."""

_TOGETHER = 1_000
"""Values that are written by one call."""
_PORTION = 2_000
"""Values written before others are let in."""


class _DecimalMet(Exception):
    """The quick writer cannot go on."""


def _give_up(value: object) -> str:
    if isinstance(value, Decimal):
        raise _DecimalMet
    raise TypeError(f"no JSON for `{type(value).__name__}`")


_quick = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_give_up).encode


def quoted(text: str) -> str:
    """A JSON string on one line."""
    return _one_line(json.dumps(text, ensure_ascii=False))


def written(value: Cell, indent: int | None = None) -> str:
    """JSON, compact where nothing is said of indenting. Not-a-number and the infinities are written as `json` does."""
    if indent is not None:
        return "".join(_pieces(value, indent, "\n"))
    if isinstance(value, dict | list) and _is_long(value):
        # One call for all of it would hold up every other thread.
        if isinstance(value, list):
            return f"[{','.join(map(written, value))}]"
        return f"{{{','.join(f'{quoted(key)}:{written(member)}' for key, member in value.items())}}}"
    try:
        return _one_line(_quick(value))
    except _DecimalMet:
        return "".join(_pieces(value, None, ""))


def _is_long(value: Cell) -> bool:
    """Whether more values stand in it than are written by one call."""
    left, todo = _TOGETHER, [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict | list):
            left -= len(one)
            if left < 0:
                return True
            todo.extend(one.values() if isinstance(one, dict) else one)
    return False


def written_steps(value: Cell) -> Steps[str]:
    """Compact JSON of what may be long. Only decimals make it slow, and then others are let in."""
    try:
        return _one_line(_quick(value))
    except _DecimalMet:
        pass
    pieces: list[str] = []
    for number, piece in enumerate(_pieces(value, None, "")):
        pieces.append(piece)
        if not number % _PORTION:
            yield
    return "".join(pieces)


def records_json(columns: Sequence[str], rows: Sequence[Row], indent: int | None = None) -> str:
    """Rows as an array of objects. A column's name that comes again gets a number, so that no value is lost."""
    names = distinct_names(columns)
    return written([dict(zip(names, row, strict=True)) for row in rows], indent)  # pyright: ignore[reportArgumentType]


def distinct_names(columns: Sequence[str]) -> list[str]:
    """The names under which `records_json` writes columns."""
    taken, names = set(columns), list[str]()
    for name in columns:
        if name in names:
            name = next(other for number in count(2) if (other := f"{name}_{number}") not in taken)  # noqa: PLW2901
            taken.add(name)
        names.append(name)
    return names


def _one_line(text: str) -> str:
    return _NEVER_RAW.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _pieces(value: Cell, indent: int | None, line: str) -> Iterator[str]:
    if isinstance(value, Decimal):
        yield _number(value)
    elif isinstance(value, dict) and value:
        yield from _members(value, indent, line)
    elif isinstance(value, list) and value:
        yield from _elements(value, indent, line)
    else:
        yield _one_line(_quick(value))


def _members(value: Mapping[str, Cell], indent: int | None, line: str) -> Iterator[str]:
    inner = line + " " * (indent or 0)
    separator = ":" if indent is None else ": "
    for number, (key, member) in enumerate(value.items()):
        yield f"{',' if number else '{'}{inner}{quoted(key)}{separator}"
        yield from _pieces(member, indent, inner)
    yield f"{line}}}"


def _elements(value: Sequence[Cell], indent: int | None, line: str) -> Iterator[str]:
    inner = line + " " * (indent or 0)
    for number, element in enumerate(value):
        yield f"{',' if number else '['}{inner}"
        yield from _pieces(element, indent, inner)
    yield f"{line}]"


def _number(value: Decimal) -> str:
    """What is no number in JSON is written as a float that is none either."""
    return str(value) if value.is_finite() else _quick(float(value))
