"""Is this a table?

Rows are found where a reply holds them: a list of like objects, a list of equally long lists, or an object in which one
such list is most of what there is. Text is read as JSON, as a Markdown table, or as comma-separated lines under plain
names; what is not certain is no table. Nothing is changed or weighed here.
"""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeGuard, cast

from ullage.tool import Json

from .path import Path

__all__ = ["Found", "find_table", "find_table_in"]

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
        return _of_objects(value, path)
    return _of_lists(value, path) if len(value) > 1 and _are_lists(value) else None


def _are_objects(value: list[Json]) -> TypeGuard[list[dict[str, Json]]]:
    return isinstance(value[0], dict) and all(isinstance(row, dict) and row for row in value)


def _are_lists(value: list[Json]) -> TypeGuard[list[list[Json]]]:
    return isinstance(value[0], list) and all(isinstance(row, list) for row in value)


def _of_objects(rows: list[dict[str, Json]], path: Path) -> Found | None:
    columns = tuple(dict.fromkeys(chain.from_iterable(rows)))
    if sum(map(len, rows)) < _FILLED * len(rows) * len(columns):
        return None
    return _found(path, columns, cast("list[Json]", rows), len(columns))


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
