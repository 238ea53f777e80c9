"""Recodes JSON as typed csv where that costs fewer tokens.

A list of like objects becomes typed csv; a document with such lists in it becomes compact JSON, with each list
taken out and written below under its path and its number of rows:

    {"total":2}
    items[2]:
    id,name
    1,Ada
    2,Grace

`decode` brings back exactly what was there. Whatever is shortest by the given scale is taken, and nothing where the
text was the shortest itself. Cutting to a budget is others' affair.

Rows are found where a reply holds them: a list of like objects, a list of equally long lists, or an object in which one
such list is most of what there is. Text is read as JSON, as a Markdown table, or as comma-separated lines under plain
names; what is not certain is no table. Nothing is changed or weighed here.
"""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import chain
from typing import TypeGuard, cast

from ullage.tokens import Steps
from ullage.tool import Json

from .fit_rows import WeighSteps
from .table_text import ABSENT, Path, row_line, write_path, written_steps

__all__ = ["Found", "Recoded", "each_once", "find_table", "find_table_in", "recode_steps"]

_FILLED = 0.4
"""Of all cells, that must hold something for objects to be alike."""
_DEPTH = 3
"""Keys deep that a list is looked for."""
_DOMINANT = 0.5
"""Of all cells in sight, that the table's must be."""
_SHORT = 200_000
"""Characters of text that is looked at for Markdown and comma-separated lines."""
_RULE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\Z")
_BAR = re.compile(r"(?<!\\)\|")
_NAMES = re.compile(r"[^\W\d][\w .-]{0,60}(?:,[^\W\d][\w .-]{0,60})+\Z")
_NAMING = ("columns", "columnNames", "column_names", "headers", "fields")
"""Keys that name the columns of lists beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    path: Path
    """Where the rows stand; empty where they are the whole."""
    columns: tuple[str, ...]
    """In the order in which they first appear; empty for lists that nothing names."""
    rows: list[Json]
    """As they stand there, objects or lists; empty for what was not JSON."""
    row_count: int
    column_count: int

    @property
    def cells(self) -> int:
        return self.row_count * self.column_count


def find_table(value: Json) -> Found | None:
    if isinstance(value, list):
        return _of_list(value, ())
    return _dominant(value) if isinstance(value, dict) else None


def find_table_in(text: str) -> Found | None:
    """Reads the whole text; one of many megabytes is for `scan`."""
    begins = text.lstrip()[:1] if text[:1].isspace() else text[:1]
    if begins in ("[", "{"):
        try:
            return find_table(json.loads(text))
        except (ValueError, RecursionError):
            return None
    if len(text) > _SHORT or "\n" not in text:
        return None
    lines = text.strip().split("\n")
    return _of_markdown(lines) if "|" in text else _of_csv(lines)


def _of_list(value: list[Json], path: Path) -> Found | None:
    if value and _are_objects(value):
        columns = tuple(dict.fromkeys(chain.from_iterable(value)))
        if sum(map(len, value)) < _FILLED * len(value) * len(columns):
            return None
        return _found(path, columns, cast("list[Json]", value), len(columns))
    return _of_lists(value, path) if len(value) > 1 and _are_lists(value) else None


def _are_objects(value: list[Json]) -> TypeGuard[list[dict[str, Json]]]:
    return isinstance(value[0], dict) and all(isinstance(row, dict) and row for row in value)


def _are_lists(value: list[Json]) -> TypeGuard[list[list[Json]]]:
    return isinstance(value[0], list) and all(isinstance(row, list) for row in value)


def _of_lists(rows: list[list[Json]], path: Path) -> Found | None:
    """A list of lists of one is a list of values, not a table."""
    width = len(rows[0])
    if width < 2 or any(len(row) != width for row in rows):
        return None
    return _found(path, (), cast("list[Json]", rows), width)


def _found(path: Path, columns: tuple[str, ...], rows: list[Json], width: int) -> Found:
    return Found(path=path, columns=columns, rows=rows, row_count=len(rows), column_count=width)


def _dominant(value: dict[str, Json]) -> Found | None:
    best, seen = None, 0
    for one in _within(value, ()):
        seen += one if isinstance(one, int) else one.cells
        if not isinstance(one, int) and (best is None or one.cells > best.cells):
            best = one
    return best if best is not None and best.cells >= _DOMINANT * seen else None


def _within(value: dict[str, Json], path: Path) -> Iterator[Found | int]:
    """Every table, and the number of values in whatever is none."""
    for key, member in value.items():
        inner = (*path, key)
        if isinstance(member, list):
            found = _of_list(member, inner)
            yield len(member) if found is None else _named(found, value)
        elif isinstance(member, dict) and len(inner) < _DEPTH:
            yield from _within(member, inner)
        else:
            yield len(member) if isinstance(member, dict) else 1


def _named(found: Found, beside: dict[str, Json]) -> Found:
    """Lists get the names of their columns from a list of names beside them."""
    if found.columns:
        return found
    for key in _NAMING:
        names = beside.get(key)
        if isinstance(names, list) and len(names) == found.column_count and all(isinstance(n, str) for n in names):
            return replace(found, columns=tuple(cast("list[str]", names)))
    return found


def _of_markdown(lines: list[str]) -> Found | None:
    """Only where the table is the whole text."""
    if len(lines) < 3 or not _RULE.match(lines[1].strip()):
        return None
    rows = [[cell.strip() for cell in _BAR.split(line.strip().strip("|"))] for line in (lines[0], *lines[2:])]
    return _of_text(rows)


def _of_csv(lines: list[str]) -> Found | None:
    """Only under a line of plain names, and where each line has as many values."""
    if len(lines) < 3 or not _NAMES.match(lines[0].rstrip("\r")):
        return None
    try:
        return _of_text(list(csv.reader(lines, strict=True)))
    except csv.Error:
        return None


def _of_text(rows: list[list[str]]) -> Found | None:
    width = len(rows[0])
    if width < 2 or any(len(row) != width for row in rows):
        return None
    return Found(path=(), columns=tuple(rows[0]), rows=[], row_count=len(rows) - 1, column_count=width)


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
