r"""Cells and rows of typed csv: writing, reading and cleaning.

A cell is a JSON value or a decimal, which JSON would round. Readers of databases convert everything else (dates, UUIDs,
bytes) to text first.

Cleaning a cell removes and counts invisible characters, and writes line breaks as `\n`. Which characters are invisible,
and which of them belong to ordinary writing, is decided in `ullage.invisible`. The tab and `\n` stay; they are escaped
when a line is written.

There is one dialect, called csv: a line of column names, then one line a row, with cells separated by commas. A cell is
bare where it is unambiguous and a JSON string otherwise; lists and objects are compact JSON. So no cell contains a line
break, and the number of lines is the number of rows.

Rows are written in one of two ways. `typed` rows are JSON and are restored exactly by `decode`: text that looks like a
number is quoted, an empty cell is an absent key, and null is written `null`. Other rows are a database's: an empty cell
is NULL, and dates, codes and numbers stored as text are bare, because their column shows their type. A single row is
better written as `column=value`, a line a column.

`decode` reads every text that `recode_steps` writes: typed csv, JSON, and JSON with tables below it. Text from other
sources is rejected, never guessed at.

JSON is written compact or indented, never with a raw line break in a string, and always as valid UTF-8. Decimals are
written as numbers, digit by digit. JSON is read with `json`.

A path has keys separated by dots, and positions in brackets: `data.pages[0].items`. A key that is not a plain word is a
JSON string.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from itertools import count, islice
from typing import Any, Final, cast

from ullage.errors import BadInput
from ullage.invisible_characters import remove_invisible_counted
from ullage.tokens import Steps
from ullage.tool import Json

__all__ = [
    "ABSENT",
    "LITERAL",
    "Absent",
    "Cell",
    "Cleaned",
    "Path",
    "Row",
    "clean",
    "clean_row",
    "decode",
    "distinct_names",
    "dump_value",
    "encode",
    "quote_as_json",
    "read_path",
    "read_row",
    "record_lines",
    "records_json",
    "row_line",
    "write_path",
    "written_steps",
]

Cell = Json | Decimal
Row = tuple[Cell, ...]

_LINE_BREAK = re.compile("\r\n|[\r\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A cleaned text."""

    text: str
    removed: int
    """Number of characters removed; converted line breaks do not count."""


def clean(text: str) -> Cleaned:
    """Remove invisible characters from a text, and convert its line breaks to `\n`."""
    if text.isascii() and text.isprintable():
        return Cleaned(text, 0)
    return Cleaned(*remove_invisible_counted(_LINE_BREAK.sub("\n", text)))


def clean_row(row: Sequence[Cell]) -> tuple[Row, int]:
    """Return a row with every text in it cleaned, in lists and objects too, and the number of characters removed."""
    counted: list[tuple[Cell, int]] = [(cell, 0) if isinstance(cell, Decimal) else _clean_json(cell) for cell in row]
    return tuple(cell for cell, _ in counted), sum(removed for _, removed in counted)


def _clean_json(value: Json) -> tuple[Json, int]:
    if isinstance(value, str):
        cleaned = clean(value)
        return cleaned.text, cleaned.removed
    if isinstance(value, list):
        elements = [_clean_json(element) for element in value]
        return [element for element, _ in elements], sum(removed for _, removed in elements)
    if isinstance(value, dict):
        members = [(clean(key), _clean_json(member)) for key, member in value.items()]
        removed = sum(key.removed + inner for key, (_, inner) in members)
        return {key.text: member for key, (member, _) in members}, removed
    return value, 0


_NEVER_RAW = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that `json` leaves unescaped, though they break a line in some programs or are unpaired surrogates."""

_TOGETHER = 1_000
"""Values written by one call."""
_JOINED = 500
"""Members of a list or object that are joined at once."""
_PORTION = 2_000
"""Values written between two yields."""


class _DecimalMet(Exception):
    """Raised by the fast writer for a decimal, which it cannot write."""


def _give_up(value: object) -> str:
    if isinstance(value, Decimal):
        raise _DecimalMet
    raise TypeError(f"no JSON for `{type(value).__name__}`")


_quick = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_give_up).encode


def quote_as_json(text: str) -> str:
    """Return a text as a JSON string on one line."""
    return _one_line(json.dumps(text, ensure_ascii=False))


def dump_value(value: Cell, indent: int | None = None) -> str:
    """Return a value as JSON, compact unless `indent` is given. NaN and the infinities are written as `json` writes
    them."""
    if indent is not None:
        return "".join(_pieces(value, indent, "\n"))
    if isinstance(value, dict | list) and _is_long(value):
        # A single call for all of it would block every other thread.
        # Nor is one call given a million pieces to join: some hundred members are joined first.
        if len(value) > _JOINED:
            if isinstance(value, list):
                some = (value[at : at + _JOINED] for at in range(0, len(value), _JOINED))
                return f"[{','.join([dump_value(one)[1:-1] for one in some])}]"
            members, parts = iter(value.items()), list[str]()
            while few := dict(islice(members, _JOINED)):
                parts.append(dump_value(few)[1:-1])
            return f"{{{','.join(parts)}}}"
        if isinstance(value, list):
            return f"[{','.join(map(dump_value, value))}]"
        return f"{{{','.join(f'{quote_as_json(key)}:{dump_value(member)}' for key, member in value.items())}}}"
    try:
        return _one_line(_quick(value))
    except _DecimalMet:
        return "".join(_pieces(value, None, ""))


def _is_long(value: Cell) -> bool:
    """Return whether a value contains more values than are written by one call."""
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
    """Write compact JSON of a value that may be long, in steps. Only decimals make it slow, and only then it yields."""
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
    """Return rows as a JSON array of objects. A repeated column name gets a number, so that no value is lost."""
    names = distinct_names(columns)
    return dump_value([dict(zip(names, row, strict=True)) for row in rows], indent)  # pyright: ignore[reportArgumentType]


def distinct_names(columns: Sequence[str]) -> list[str]:
    """Return the names under which `records_json` writes columns."""
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
        # One that is not finite is written as `json` writes such a float.
        yield str(value) if value.is_finite() else _quick(float(value))
    elif isinstance(value, dict) and value:
        inner, separator = line + " " * (indent or 0), ":" if indent is None else ": "
        for number, (key, member) in enumerate(value.items()):
            yield f"{',' if number else '{'}{inner}{quote_as_json(key)}{separator}"
            yield from _pieces(member, indent, inner)
        yield f"{line}}}"
    elif isinstance(value, list) and value:
        inner = line + " " * (indent or 0)
        for number, element in enumerate(value):
            yield f"{',' if number else '['}{inner}"
            yield from _pieces(element, indent, inner)
        yield f"{line}]"
    else:
        yield _one_line(_quick(value))


class Absent(Enum):
    """Marks the cell of a key that an object does not have."""

    ABSENT = ""


ABSENT: Final = Absent.ABSENT

_NEVER = "\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
LITERAL = re.compile(r"(?:true|false|null|-?Infinity|NaN|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\Z")
"""A bare typed cell that is not text: a literal or a number."""


def _bare(first: str, within: str) -> re.Pattern[str]:
    """Return the pattern of text that needs no quotes: it has no special first character and no special character
    inside, and does not end in white space."""
    return re.compile(rf"[^\s{first}{within}{_NEVER}](?:[^{within}{_NEVER}]*[^\s{within}{_NEVER}])?\Z")


_TYPED = _bare(r"\"\[{", ",")
_LOOSE = _bare(r"\"", ",")
_ALONE = _bare(r"\"", "")
"""Bare text after `column=`, where only the line break ends it."""
_NAME = _bare(r"\"", "=")


def encode(columns: Sequence[str], rows: Iterable[Sequence[Cell | Absent]], *, typed: bool = False) -> str:
    """Return the header and every row, separated by line breaks.

    Args:
        columns: The names of the columns.
        rows: The cells of each row, in the order of the columns.
        typed: Whether cells are JSON and restored by `decode`; else they are written as a database's.
    """
    lines = [row_line(columns, typed=typed)]
    lines += [row_line(row, typed=typed) for row in rows]
    return "\n".join(lines)


def row_line(cells: Sequence[Cell | Absent], *, typed: bool = False) -> str:
    """Return the line of one row, or of the header."""
    return ",".join(map(_typed_cell if typed else _loose_cell, cells))


def record_lines(columns: Sequence[str], row: Row) -> list[str]:
    """Return the lines of one row, a line a column."""
    return [
        f"{name if _NAME.match(name) else quote_as_json(name)}={_loose_cell(cell, _ALONE)}"
        for name, cell in zip(columns, row, strict=True)
    ]


def _typed_cell(cell: Cell | Absent) -> str:
    if isinstance(cell, str):
        return cell if _TYPED.match(cell) and not LITERAL.match(cell) else quote_as_json(cell)
    return "" if cell is ABSENT else dump_value(cell)


def _loose_cell(cell: Cell | Absent, bare: re.Pattern[str] = _LOOSE) -> str:
    if isinstance(cell, str):
        return cell if bare.match(cell) or _is_json(cell) else quote_as_json(cell)
    if cell is None or cell is ABSENT:
        return ""
    return str(cell) if isinstance(cell, Decimal) else dump_value(cell)


def _is_json(text: str) -> bool:
    """Return whether a text is a JSON object or array on one line, which needs no quotes even with commas."""
    if text[:1] + text[-1:] not in ("{}", "[]") or not text.isprintable():
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


Path = tuple[str | int, ...]

_PLAIN = re.compile(r"[^\W\d][\w$-]*\Z")
_STEP = re.compile(r"\[([0-9]+)\]|(\.?)(?:([^\W\d][\w$-]*)|(?=\"))")
_scan_value = json.JSONDecoder().raw_decode


def write_path(path: Path) -> str:
    steps: list[str] = []
    for step in path:
        if isinstance(step, int):
            steps.append(f"[{step}]")
        else:
            steps.append(f".{step if _PLAIN.match(step) else quote_as_json(step)}")
    return "".join(steps).removeprefix(".")


def read_path(text: str) -> Path:
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (match[2] is not None and bool(match[2]) != bool(steps)):
            raise BadInput(f"`{text[:80]}` is not a path", suggestion="write it as in `data.items`")
        at = match.end()
        step: str | int = int(match[1]) if match[1] else match[3]
        if match[3] is None and match[1] is None:
            step, at = _scan_value(text, at)
        steps.append(step)
    return tuple(steps)


_HEADING = re.compile(r"(.*)\[([0-9]+)\]:\Z", re.DOTALL)


def decode(text: str) -> Json:
    """Return the value of a text that `recode_steps` or `encode` with `typed` wrote.

    Raises:
        BadInput: The text was not written by these.
    """
    try:
        lines = text.split("\n")
        if text[:1] in ("{", "["):
            return _document(lines)
        return json.loads(text) if len(lines) == 1 else list(_table(lines))
    except (ValueError, LookupError, TypeError) as error:
        raise _misread(text) from error


def read_row(line: str) -> Row:
    """Return the cells of one line, typed or not; None for an empty cell."""
    try:
        return tuple(value if is_there else None for is_there, value in _cells(line))
    except (ValueError, LookupError) as error:
        raise _misread(line) from error


def _document(lines: list[str]) -> Json:
    """Read JSON on the first line, and below it each table under its path and number of rows."""
    outer: Json = json.loads(lines[0])
    number = 1
    while number < len(lines):
        line = lines[number]
        match = _HEADING.match(line)
        if match is None:
            raise _misread(line)
        path, rows = read_path(match[1]), int(match[2])
        table = lines[number + 1 : number + 2 + rows]
        if len(table) != rows + 1:
            raise _misread(lines[number])
        read, holder = _table(table), cast("Any", outer)
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = read
        number += 2 + rows
    return outer


def _table(lines: list[str]) -> list[Json]:
    columns = [str(name) for _, name in _cells(lines[0])]
    records: list[Json] = []
    for line in lines[1:]:
        cells = list(_cells(line))
        if len(cells) != len(columns):
            raise _misread(line)
        records.append({name: value for name, (is_there, value) in zip(columns, cells, strict=True) if is_there})
    return records


def _cells(line: str) -> Iterator[tuple[bool, Json]]:
    """Yield for each cell whether it has a value, and the value."""
    start = 0
    while True:
        if line[start : start + 1] in ('"', "[", "{"):
            is_there, (value, end) = True, _scan_value(line, start)
        else:
            end = line.find(",", start)
            end = len(line) if end < 0 else end
            bare = line[start:end]
            is_there, value = bare != "", json.loads(bare) if LITERAL.match(bare) else bare
        yield is_there, value
        if end == len(line):
            return
        if line[end] != ",":
            raise _misread(line)
        start = end + 1


def _misread(text: str) -> BadInput:
    return BadInput(f"`{text[:80]}` is no text of ours", suggestion="give it whole, as it was written")
