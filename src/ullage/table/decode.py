"""What was written?

The way back from every text that `recode` writes: typed csv, JSON, and JSON with tables below it. Text of other making
is refused, never guessed at.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from ullage.errors import BadInput
from ullage.tool import Json

from .cell import Row
from .encode import LITERAL
from .path import Path, read_path

__all__ = ["decode", "read_row"]

_scan_value = json.JSONDecoder().raw_decode
_HEADING = re.compile(r"(.*)\[([0-9]+)\]:\Z", re.DOTALL)


def decode(text: str) -> Json:
    try:
        return _decode(text)
    except (ValueError, LookupError, TypeError) as error:
        raise _misread(text) from error


def read_row(line: str) -> Row:
    """The cells of one line, typed or not; None where there is none."""
    try:
        return tuple(value if is_there else None for is_there, value in _cells(line))
    except (ValueError, LookupError) as error:
        raise _misread(line) from error


def _decode(text: str) -> Json:
    lines = text.split("\n")
    if text[:1] in ("{", "["):
        return _document(lines)
    return json.loads(text) if len(lines) == 1 else list(_table(lines))


def _document(lines: list[str]) -> Json:
    """JSON on the first line, and below it each table under where it belongs and how many rows it has."""
    outer: Json = json.loads(lines[0])
    number = 1
    while number < len(lines):
        path, rows = _heading(lines[number])
        table = lines[number + 1 : number + 2 + rows]
        if len(table) != rows + 1:
            raise _misread(lines[number])
        _put(outer, path, _table(table))
        number += 2 + rows
    return outer


def _heading(line: str) -> tuple[Path, int]:
    match = _HEADING.match(line)
    if match is None:
        raise _misread(line)
    return read_path(match[1]), int(match[2])


def _put(outer: Any, path: Path, table: list[Json]) -> None:  # noqa: ANN401 — a wrong step raises where it is taken
    for step in path[:-1]:
        outer = outer[step]
    outer[path[-1]] = table


def _table(lines: list[str]) -> list[Json]:
    columns = [str(name) for _, name in _cells(lines[0])]
    return [_record(columns, line) for line in lines[1:]]


def _record(columns: list[str], line: str) -> dict[str, Json]:
    cells = list(_cells(line))
    if len(cells) != len(columns):
        raise _misread(line)
    return {name: value for name, (is_there, value) in zip(columns, cells, strict=True) if is_there}


def _cells(line: str) -> Iterator[tuple[bool, Json]]:
    """Each cell's value, and whether there is one."""
    start = 0
    while True:
        is_there, value, end = _cell(line, start)
        yield is_there, value
        if end == len(line):
            return
        if line[end] != ",":
            raise _misread(line)
        start = end + 1


def _cell(line: str, start: int) -> tuple[bool, Json, int]:
    if line[start : start + 1] in ('"', "[", "{"):
        return True, *_scan_value(line, start)
    end = line.find(",", start)
    end = len(line) if end < 0 else end
    bare = line[start:end]
    return bare != "", json.loads(bare) if LITERAL.match(bare) else bare, end


def _misread(text: str) -> BadInput:
    return BadInput(f"`{text[:80]}` is no text of ours", suggestion="give it whole, as it was written")
