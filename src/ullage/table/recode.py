"""How is a JSON document written with the fewest tokens?

A list of like objects becomes typed csv; a document with such lists in it becomes compact JSON, with each list taken
out and written below under its path and its number of rows:

    {"total":2}
    items[2]:
    id,name
    1,Ada
    2,Grace

`decode` brings back exactly what was there. Whatever is shortest by the given scale is taken, and nothing where the
text was the shortest itself. Cutting to a budget is others' affair.
"""

import json
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain
from typing import cast

from ullage.tokens import Steps
from ullage.tool import Json

from .encode import ABSENT, row_line
from .found import find_table
from .path import Path, write_path
from .weigh import WeighSteps
from .writing import written_steps

__all__ = ["Recoded", "each_once", "recode_steps"]

_LONGEST = 1_000_000
"""Characters above which a text stays as it is: reading it would hold others up."""
_LONG = 200_000
"""Characters above which texts are compared by samples."""
_SAMPLE = 10_000
"""Characters of each sample."""
_SAMPLES = 8
_MARGIN = 0.95
"""Of the old weight, that a new one found by samples must stay under."""
_PORTION = 50
"""Rows written before others are let in."""
_TAKEN = object()
"""Stands where a table was."""


@dataclass(frozen=True, slots=True)
class Recoded:
    text: str
    value: Json = field(repr=False)
    """What it was written from; numbers that a float would round are decimals."""


def recode_steps(given: Json, weigh: WeighSteps) -> Steps[Recoded | None]:
    """Text is read as JSON; any other value is compared with its compact JSON. None where nothing weighs less."""
    value = _read(given) if isinstance(given, str) else given
    if not isinstance(value, list | dict):
        return None
    yield
    try:
        text = given if isinstance(given, str) else (yield from written_steps(value))
        return (yield from _shortest(text, value, weigh))
    except RecursionError:
        return None


def _shortest(text: str, value: Json, weigh: WeighSteps) -> Steps[Recoded | None]:
    """Tables where they help; else what compact JSON can do."""
    least = yield from _weight(text, weigh)
    if len(text) > _LONG:
        least = int(_MARGIN * least)
    for form in (_with_tables, written_steps):
        shorter = yield from form(value)
        if shorter is not None and (yield from _weight(shorter, weigh)) < least:
            return Recoded(shorter, value)
    return None


def _weight(text: str, weigh: WeighSteps) -> Steps[int]:
    """Of a long text, as much as parts from all over it would have if they were the whole."""
    if len(text) <= _LONG:
        return (yield from weigh(text))
    starts = range(0, len(text) - _SAMPLE, len(text) // _SAMPLES)
    tokens = 0
    for start in starts:
        tokens += yield from weigh(text[start : start + _SAMPLE])
    return tokens * len(text) // (_SAMPLE * len(starts))


def _read(text: str) -> Json:
    """None for what is no JSON, or would not come back as it was."""
    if len(text) > _LONGEST or text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        return json.loads(text, parse_float=_float, object_pairs_hook=each_once)
    except (ValueError, ArithmeticError, RecursionError):
        return None


def _float(literal: str) -> float | Decimal:
    """A decimal where a float would lose digits, or zeros that say how exact it is."""
    number = float(literal)
    return number if repr(number) == literal else Decimal(literal)


def each_once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """An object of these members, for `json`; raises ValueError where it could not hold them all."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key comes twice, and one of its values would be lost")
    return made


def _with_tables(value: Json) -> Steps[str | None]:
    tables: list[tuple[Path, list[dict[str, Json]]]] = []
    rest = _rest(value, (), tables)
    if not tables:
        return None
    lines = list[str]() if rest is _TAKEN else [(yield from written_steps(cast("Json", rest)))]
    for path, rows in tables:
        lines += [f"{write_path(path)}[{len(rows)}]:"] if path else []
        lines += yield from _lines(rows)
    return "\n".join(lines)


def _rest(value: Json, path: Path, tables: list[tuple[Path, list[dict[str, Json]]]]) -> object:
    """What is left of a document without its tables, which are put aside. In a list, null keeps a table's place."""
    if isinstance(value, dict):
        members = {key: _rest(member, (*path, key), tables) for key, member in value.items()}
        return {key: member for key, member in members.items() if member is not _TAKEN}
    if not isinstance(value, list):
        return value
    found = find_table(value) if len(value) > 1 else None
    if found is not None and found.columns:
        tables.append((path, cast("list[dict[str, Json]]", value)))
        return _TAKEN
    elements = [_rest(element, (*path, place), tables) for place, element in enumerate(value)]
    return [None if element is _TAKEN else element for element in elements]


def _lines(rows: list[dict[str, Json]]) -> Steps[list[str]]:
    columns = list(dict.fromkeys(chain.from_iterable(rows)))
    lines = [row_line(columns, typed=True)]
    for start in range(0, len(rows), _PORTION):
        portion = rows[start : start + _PORTION]
        lines += [row_line([row.get(name, ABSENT) for name in columns], typed=True) for row in portion]
        yield
    return lines
