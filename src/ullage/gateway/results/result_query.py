r"""Queries on a stored result: regular expressions, JSON paths and SQL.

A `Document` is a sequence of units of one kind: a part of the result, several consecutive parts of lines, or the values
at a JSON path. Units are read only as far as needed. Everything here may block, so run it in a thread. `read_result`
decides which units are shown, and how.

In SQL, each record is a row of table `result` and each key a column; nested values are JSON text. Lines that are one
JSON object each are records too, and so are the lines of a table as Ullage writes it, below its heading. The table is
read as needed, not loaded. The given `TableQuery` runs the SQL, safely and within its time limit.

Patterns are regular expressions without look-around and back-references, matched in time linear in the line by
pydantic's engine, because Python's own can take exponential time and cannot be interrupted. Text that is not such an
expression is searched for literally. A line is matched whole, although it is stored in parts, and also with JSON
escapes such as `\u00e9` decoded.

Paths are the part of JSONPath that selects by position: `$.items[3].name`, `items[*].id`, `..key`, `[-1]`,
`[10:20]`, `['odd key']`. Filters are left to SQL. The `$` may be omitted, and a key that is not a plain word may be
a JSON string, as tables write it.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice, takewhile
from typing import Annotated, Any, NoReturn, Protocol, cast

from ullage.errors import BadInput, InvalidArguments
from ullage.table import Cell, Path, Row, dump_value, read_pieces, read_row, write_path
from ullage.tokens import Steps
from ullage.tool import Json

from .held_result import Kind, Shape, survey
from .paging import (
    LineTooLong,
    Numbered,
    compact,
    footer_rows,
    header_of,
    lines_of_parts,
    named_by,
    rejoined,
    whole_rows,
)
from .result_store import OpenResult

__all__ = [
    "Below",
    "Document",
    "Every",
    "Lines",
    "Pattern",
    "Records",
    "Step",
    "Table",
    "TableQuery",
    "as_shown",
    "at_offset",
    "at_path",
    "is_definite",
    "matcher",
    "matching",
    "read_steps",
    "records_in",
    "records_of",
    "schema_rows",
    "select",
    "tables_beside",
]


@dataclass(frozen=True, slots=True)
class Every:
    """A step to all members of an object or array, or to the elements in a slice."""

    start: int | None = None
    stop: int | None = None
    stride: int | None = None

    @property
    def part(self) -> slice:
        return slice(self.start, self.stop, self.stride)


@dataclass(frozen=True, slots=True)
class Below:
    """A step to the value itself and everything in it, at any depth."""


Step = str | int | Every | Below
"""A key, an index in an array (negative from its end), several members, or all depths."""

_DOTS = re.compile(r"\.\.?")
_NAME = re.compile(r"[^.\[\]\"'*]+")
_PLACE = re.compile(r"\[\s*(-?[0-9]{1,15})\s*\]")
_SLICE = re.compile(r"\[\s*(-?[0-9]{0,15})\s*:\s*(-?[0-9]{0,15})\s*(?::\s*([1-9][0-9]{0,15})?\s*)?\]")
_KEY = re.compile(r"\[\s*(?='|\")")
_END = re.compile(r"\s*\]")
_APOSTROPHES = re.compile(r"'((?:[^'\\]|\\.)*)'")
_MOST = 64
"""Most steps of one path."""
_MOST_BELOW = 2
"""Most steps to all depths: each further one would multiply repeated visits."""
_read_value = json.JSONDecoder().raw_decode


def is_definite(steps: Sequence[Step]) -> bool:
    """Return whether the path selects at most one value."""
    return all(isinstance(step, str | int) for step in steps)


def select(value: Json, steps: Sequence[Step]) -> Iterator[Json]:
    """Yield every selected value, in the order of the document."""
    if not steps:
        yield value
        return
    for inner in _step(value, steps[0]):
        yield from select(inner, steps[1:])


def _step(value: Json, step: Step) -> Iterator[Json]:
    match step:
        case str() if isinstance(value, dict) and step in value:
            yield value[step]
        case int() if isinstance(value, list) and -len(value) <= step < len(value):
            yield value[step]
        case Every() if isinstance(value, list):
            yield from value[step.part]
        case Every(start=None, stop=None, stride=None) if isinstance(value, dict):
            yield from value.values()
        case Below():
            todo = [value]
            while todo:
                inner = todo.pop()
                yield inner
                if isinstance(inner, dict | list):
                    todo.extend(reversed(list(inner.values() if isinstance(inner, dict) else inner)))
        case _:
            return


def read_steps(path: str) -> tuple[Step, ...]:
    """Parse a path.

    Raises:
        InvalidArguments: The path cannot be parsed.
    """
    text = path.strip().removeprefix("$")
    steps, at = list[Step](), 0
    while at < len(text) and len(steps) <= _MOST:
        found, at = _next_steps(text, at, is_first=not steps)
        steps += found
    if len(steps) > _MOST or steps.count(Below()) > _MOST_BELOW:
        _fail(path)
    return tuple(steps)


def _next_steps(text: str, at: int, *, is_first: bool) -> tuple[list[Step], int]:
    dots = _DOTS.match(text, at)
    below: list[Step] = [Below()] if dots and dots[0] == ".." else []
    at = dots.end() if dots else at
    if text[at : at + 1] == "[":
        if text.startswith(("[*]", "[]"), at):
            step, at = Every(), text.index("]", at) + 1
        elif place := _PLACE.match(text, at):
            step, at = int(place[1]), place.end()
        elif part := _SLICE.match(text, at):
            step, at = Every(*(int(said) if said else None for said in part.groups())), part.end()
        else:
            key = _KEY.match(text, at) or _fail(text)
            name, at = _quoted(text, key.end())
            end = _END.match(text, at) or _fail(text)
            step, at = name, end.end()
    elif dots or is_first:
        if text[at : at + 1] == "*":
            step, at = Every(), at + 1
        elif text[at : at + 1] in ("'", '"'):
            step, at = _quoted(text, at)
        else:
            name = _NAME.match(text, at) or _fail(text)
            step, at = name[0], name.end()
    else:
        _fail(text)
    return [*below, step], at


def _quoted(text: str, at: int) -> tuple[str, int]:
    if found := _APOSTROPHES.match(text, at):
        return found[1].replace("\\'", "'"), found.end()
    try:
        name, end = _read_value(text, at)
    except ValueError:
        _fail(text)
    return str(name), end


def _fail(path: str) -> NoReturn:
    raise InvalidArguments(
        f"`{path[:100]}` is not a path",
        suggestion="Write it as in `items[3].name`, `items[*].id` or `..key`; for conditions use `sql` or `grep`.",
        options=("items[3].name", "items[*].id", "items[10:20]", "..key"),
    )


Pattern = Callable[[str], bool]
_LONGEST = 1_000
"""Most characters of a pattern."""
_MARKS = frozenset('":,')
_ESCAPED = re.compile(r"(?:\\u[0-9a-fA-F]{4}|\\/)+")


def matcher(pattern: str) -> tuple[Pattern, bool]:
    """Return a function that tests a text, and whether the pattern was read as a regular expression."""
    if not pattern or len(pattern) > _LONGEST:
        raise InvalidArguments(
            f"`grep` must have 1 to {_LONGEST} characters, not {len(pattern)}", suggestion="Look for less."
        )
    search = _expression(pattern)
    return (lambda line: pattern in line, False) if search is None else (search, True)


def _expression(pattern: str) -> Pattern | None:
    # Imported here, because most processes never search, and those that only count must not load it.
    from pydantic import Field, TypeAdapter

    try:
        test = TypeAdapter(Annotated[str, Field(pattern=pattern)]).validator.isinstance_python
    except Exception:  # noqa: BLE001 - pydantic passes on an error of its core that it does not export
        return None
    return lambda line: test(line) or (not line.isascii() and test(line.encode("utf-8", "replace").decode()))


def matching(units: Iterable[Numbered], matches: Pattern) -> Iterator[Numbered]:
    """Yield the units that match; of a divided line, the parts that match or across which the match lies."""
    last = -1
    for parts in lines_of_parts(units):
        if not _is_in(parts, matches):
            continue
        alone = [one for one in parts if _is_in([one], matches)]
        for number, unit in alone or _across(parts, matches):
            if number > last:
                yield number, unit
                last = number


def _across(parts: Sequence[Numbered], matches: Pattern) -> Sequence[Numbered]:
    """Return the fewest parts that match together, trimmed from both ends while the rest still matches."""
    low, high = 1, len(parts)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _is_in(parts[:middle], matches) else (middle + 1, high)
    start = 0
    while start < high and _is_in(parts[start + 1 : high], matches):
        start += 1
    return parts[start:high]


def _is_in(parts: Sequence[Numbered], matches: Pattern) -> bool:
    return any(map(matches, _spellings("".join(unit for _, unit in parts))))


def _spellings(text: str) -> Iterator[str]:
    yield text
    if "\\u" in text or "\\/" in text:
        yield _ESCAPED.sub(lambda match: str(json.loads(f'"{match[0]}"')), text)


def as_shown(pattern: str, matches: Pattern) -> Pattern:
    """Return a matcher that also tests JSON without the white space between its tokens, as it is shown.

    It is not used for a pattern without such tokens, unless a record spans several lines.
    """
    is_marked = not _MARKS.isdisjoint(pattern)
    return lambda text: matches(text) or ((is_marked or "\n" in text) and matches(compact(text)))


_DEEPEST = 500
_PORTION = 1_000
"""Values freed in one step."""
_MOST_KEYS = 20
"""Most keys listed in the error for a missing one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A sequence of units to page through, search or query."""

    kind: Kind
    total: int
    """Number of its units, or of the whole result's if it is a part of that."""
    units: Callable[[int], Iterator[Numbered]]
    """Yields the units from a number on, each with its number."""
    first: int = 0
    """Number of its first unit."""
    rest: int | None = None
    """Number of the unit to continue with after the last; None if there is none."""
    named: Callable[[int], str] | None = None
    """Returns the path of a record by its number."""
    header: Callable[[int, int], str] = lambda begun, budget: ""
    """Returns the text above a page that starts with a unit, within a budget."""


def at_offset(opened: OpenResult, unit: int) -> Document:
    """Return the part with this unit; if it has lines, together with the following parts of lines."""
    shapes = [shape for shape in opened.shapes if shape.end > unit]
    if not shapes:
        return Document(kind="lines", total=opened.units, units=lambda first: iter(()))
    if shapes[0].kind == "lines":
        shapes = list(takewhile(lambda shape: shape.kind == "lines" and not shape.label, shapes)) or shapes[:1]
    else:
        shapes = shapes[:1]
    return _of_shapes(opened, shapes)


def records_of(opened: OpenResult) -> Document:
    """Return the first part with records, else the first part."""
    shapes = [*(shape for shape in opened.shapes if shape.kind == "records"), *opened.shapes]
    return _of_shapes(opened, shapes[:1]) if shapes else at_offset(opened, 0)


def _of_shapes(opened: OpenResult, shapes: Sequence[Shape]) -> Document:
    def units(first: int) -> Iterator[Numbered]:
        for one in shapes:
            yield from opened.read(one, max(first, one.first))

    def header(begun: int, budget: int) -> str:
        shape = shapes[0]
        if begun != shape.first:
            if len(shapes) != 1 or begun >= shape.end - 1:
                return ""
            # A table written by Ullage ends in a count of its rows, and has its heading repeated.
            if shape.kind != "lines" or shape.label:
                return ""
            last, first = (next(opened.read(shape, unit))[1] for unit in (shape.end - 1, shape.first))
            return first if footer_rows(last) == shape.units - 2 else ""
        around = opened.around(shape) if shape.path else ("", "")
        return header_of(shape.label, write_path(shape.path), around, shape.units, budget)

    shape, end = shapes[0], shapes[-1].end
    has_path = shape.kind == "records" and shape is _json_of(opened)
    return Document(
        kind=shape.kind,
        total=opened.units,
        units=units,
        first=shape.first,
        rest=end if end < opened.units else None,
        named=named_by(shape.path, shape.first) if has_path else None,
        header=header,
    )


def _json_of(opened: OpenResult) -> Shape | None:
    """Return the part that paths apply to: the first that is JSON."""
    return next((shape for shape in opened.shapes if shape.is_json), None)


def at_path(opened: OpenResult, path: str) -> Steps[Document]:
    """Return the values at a path.

    Raises:
        InvalidArguments: The path selects nothing.
    """
    steps, shape = read_steps(path), _json_of(opened)
    if shape is None:
        raise InvalidArguments("this result is not JSON", suggestion="Use `offset` or `grep`.")
    if steps == shape.path and shape.kind == "records":
        return _of_shapes(opened, [shape])
    values = yield from _values(opened, shape, steps)
    if not is_definite(steps):
        text = dump_value(values)
        _release(values)
        return (yield from _of_text(text, None))
    value = values[0] if values else _missing(opened, shape, steps, path)
    return (yield from _of_text(value if isinstance(value, str) else dump_value(value), path))


def _of_text(text: str, path: str | None) -> Steps[Document]:
    layout = yield from survey(text)

    def units(first: int) -> Iterator[Numbered]:
        for unit in range(first, len(layout)):
            yield unit, layout.unit(text, unit)

    def header(begun: int, budget: int) -> str:
        around = text[: layout.body[0]], text[layout.body[1] :]
        return header_of("", write_path(layout.path), around, len(layout), budget) if begun == 0 else ""

    inside = write_path(layout.path)
    inside = f".{inside}" if inside[:1] not in ("", "[") else inside
    is_named = path is not None and layout.kind == "records"
    return Document(
        kind=layout.kind,
        total=len(layout),
        units=units,
        named=(lambda number: f"{path}{inside}[{number}]") if is_named else None,
        header=header,
    )


def _values(opened: OpenResult, shape: Shape, steps: tuple[Step, ...]) -> Steps[list[Json]]:
    """Return the selected values: from single records if the path leads to them, else from the whole document."""
    depth, found = len(shape.path), list[Json]()
    if shape.kind == "records" and not depth and steps[:1] == (Below(),) and isinstance(steps[1], str):
        # A list has no keys of its own, so that each record can be looked through and dropped.
        for _, record in opened.read(shape, shape.first):
            found += select(_read(record), steps)
            yield
        return found
    picks_records = steps[:depth] == shape.path and isinstance(next(iter(steps[depth:]), None), int | Every)
    if shape.kind != "records" or not picks_records:
        whole = yield from _whole(opened, shape)
        found = list(select(whole, steps))
        # Empties the list at a path of a document of which only what was found is still needed.
        path = shape.path
        holders = [whole]
        for key in path:
            holders.append(
                cast("dict[str, Json]", holders[-1]).get(str(key)) if isinstance(holders[-1], dict) else None
            )
        held = {id(one) for one in holders}
        if isinstance(holders[-1], list) and not any(id(one) in held for one in found):
            _release(holders[-1])
        return found
    for record in _records(opened, shape, steps[depth]):
        found += select(_read(record), steps[depth + 1 :])
        yield
    return found


def _release(values: list[Json]) -> None:
    """Empty a long list in steps: freeing a million objects at once blocks every other thread."""
    while values:
        del values[-_PORTION:]


def _records(opened: OpenResult, shape: Shape, step: Step) -> Iterator[str]:
    if isinstance(step, Every):
        wanted = range(shape.units)[step.part]
    else:
        place = step if isinstance(step, int) else 0
        place += shape.units if place < 0 else 0
        wanted = range(place, place + 1) if 0 <= place < shape.units else range(0)
    if not wanted:
        return
    for number, record in opened.read(shape, shape.first + wanted[0]):
        place = number - shape.first
        if place > wanted[-1]:
            return
        if place in wanted:
            yield record


def _whole(opened: OpenResult, shape: Shape) -> Steps[Json]:
    """Parse the document; a long one record by record, so that the parser delays no other call."""
    if shape.kind != "records":
        return _read(opened.text(shape))
    records = list[Json]()
    for _, record in opened.read(shape, shape.first):
        records.append(_read(record))
        yield
    return _put_in(_read("".join(opened.around(shape))), shape.path, records)


def _put_in(value: Json, path: Path, records: list[Json]) -> Json:
    if not path:
        return records
    outer, key = cast("dict[str, Json]", value), str(path[0])
    return {**outer, key: _put_in(outer[key], path[1:], records)}


def _read(text: str) -> Json:
    try:
        # Digit by digit, since a float would round.
        return read_pieces(text, _DEEPEST, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise InvalidArguments("this result is not JSON", suggestion="Use `offset` or `grep`.") from error


def _missing(opened: OpenResult, shape: Shape, steps: tuple[Step, ...], path: str) -> Json:
    """Raise the error for a path that selects nothing, with the keys of the first record or of the document."""
    keys, whose = tuple[str, ...](), "a record" if steps[:1] == shape.path[:1] or not shape.path else "the document"
    if shape.kind == "records":
        first = next((unit for _, unit in opened.read(shape, shape.first)), "null")
        value = _read("".join(opened.around(shape)) if whose == "the document" else first)
        keys = tuple(value)[:_MOST_KEYS] if isinstance(value, dict) else ()
    raise InvalidArguments(
        f"nothing is at `{path[:100]}`",
        suggestion=f"The options are the keys of {whose}." if keys else "Read the beginning of the result first.",
        options=keys,
    )


_VALUE = "value"
"""The only column of records that are not objects."""
_MOST_COLUMNS = 1_000
_LONGEST_CELL = 1_000_000
"""Most characters of a list or object in one cell of a table."""


Table = tuple[Sequence[str], Iterable[Row]]
"""Columns, and rows with one cell for each."""


class TableQuery(Protocol):
    """Interface that runs one read-only statement on temporary tables: `result`, and others by name."""

    async def tables(self, sql: str) -> frozenset[str]:
        """Return the names of the tables that a statement reads, in lower case. Raises `Refused`."""
        ...

    async def ask(
        self,
        columns: Sequence[str],
        rows: Iterable[Row],
        sql: str,
        seconds: float,
        *,
        beside: Mapping[str, Table] | None = None,
    ) -> tuple[Sequence[str], Sequence[Row], bool]:
        """Run the statement.

        Returns:
            Columns and rows of the answer, and whether there were more rows. `rows` of the tables may be many and are
            read from disk, so they are to be read in a thread.

        Raises:
            Refused: The statement is not allowed.
            QueryFailed: The database reported an error.
            DeadlinePassed: It took too long.
        """
        ...


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a document as rows; can be iterated repeatedly."""

    document: Document
    keys: tuple[str, ...]
    """Keys of the records; empty if they are not objects."""

    @property
    def columns(self) -> tuple[str, ...]:
        return _distinct(self.keys or (_VALUE,))

    def __iter__(self) -> Iterator[Row]:
        for record in _query_read(self.document):
            yield tuple(_cell(record.get(key)) for key in self.keys) if self.keys else (_cell(record),)


@dataclass(frozen=True, slots=True)
class Lines:
    """The rows of a table as Ullage's tools write it; can be iterated repeatedly."""

    document: Document
    columns: tuple[str, ...]
    footer: str = ""
    """The last line, if it is a count of rows."""

    def __iter__(self) -> Iterator[Row]:
        units = self.document.units(self.document.first)
        for _, line in whole_rows(units) if self.footer else islice(rejoined(units), 1, None):
            row = _read_row(line)
            if len(row) != len(self.columns):
                raise _no_table()
            yield tuple(map(_cell, row))


def records_in(document: Document) -> Records | Lines:
    """Return the document as a table, after reading all of it to collect the keys.

    Raises:
        InvalidArguments: The document is not a table.
    """
    try:
        keys, are_objects = dict[str, None](), True
        for record in _query_read(document):
            are_objects = are_objects and isinstance(record, dict)
            columns = cast("dict[str, Json]", record) if are_objects else {}
            if len(columns) > _MOST_COLUMNS or len(keys := keys | dict.fromkeys(columns)) > _MOST_COLUMNS:
                raise _no_table()
        return Records(document, tuple(keys) if are_objects else ())
    except InvalidArguments:
        # The last unit alone: a line that counts rows is too short to be in parts.
        end = document.total if document.rest is None else document.rest
        last = next((unit for _, unit in document.units(end - 1)), "")
        if document.kind != "lines":
            lines = None
        else:
            counted = footer_rows(last)
            try:
                columns = tuple(map(str, _read_row(next(_lines(document), ""))))
                found = Lines(document, _distinct(columns), "" if counted is None else last)
                rows = sum(1 for _ in found)
            except (BadInput, LineTooLong):
                lines = None
            else:
                is_table = len(columns) > 1 if counted is None else counted == rows
                lines = found if rows and is_table else None
        if lines is None:
            raise
        return lines


def _read_row(line: str) -> Row:
    """Parse a line into a row. Each cell is parsed by one call, so it must not be long."""
    if len(line) > _LONGEST_CELL:
        raise LineTooLong
    return read_row(line)


def _distinct(keys: Sequence[str]) -> tuple[str, ...]:
    """Make the names distinct regardless of case, as databases compare them."""
    names = dict[str, str]()
    for key in keys:
        name, number = key, 2
        while name.lower() in names:
            name, number = f"{key}_{number}", number + 1
        names[name.lower()] = name
    return tuple(names.values())


def _lines(document: Document) -> Iterator[str]:
    return (line for _, line in rejoined(document.units(document.first)))


def _query_read(document: Document) -> Iterator[Any]:
    try:
        for line in _lines(document):
            yield read_pieces(line, _DEEPEST, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise _no_table() from error


def _cell(value: object) -> Cell:
    cell = cast("Cell", value)
    return dump_value(cell)[:_LONGEST_CELL] if isinstance(cell, dict | list) else cell


def _no_table() -> InvalidArguments:
    return InvalidArguments(
        "this result is no table of which SQL could be asked",
        suggestion="Use `offset`, `grep` or `path`; with `path`, SQL can be asked of a list further in.",
    )


_TABLE_NAME = re.compile(r"(r[0-9]{1,40})((?:[.$\[].*)?)", re.DOTALL | re.IGNORECASE)
"""Matches a handle as a table's name, followed by the path of a list in that result: `"r123.items"`."""
_MOST_BESIDE = 8


def tables_beside(names: Iterable[str], sql: str) -> dict[str, tuple[str, str | None]]:
    """Return the tables of a statement that are other stored results: handle and path by the table's name.

    Args:
        names: Names of all tables of the statement, in lower case.
        sql: The statement, in which the paths have their original case.

    Raises:
        InvalidArguments: There are more than eight.
    """
    found = dict[str, tuple[str, str | None]]()
    for name in sorted(names):
        matched = _TABLE_NAME.fullmatch(name)
        if matched is None:
            continue
        at = sql.lower().find(name)
        path = sql[at + len(matched[1]) : at + len(name)] if at >= 0 else matched[2]
        found[name] = matched[1], path.removeprefix("$").removeprefix(".") or None
    if len(found) > _MOST_BESIDE:
        raise InvalidArguments(
            f"a statement may read {_MOST_BESIDE} other results, not {len(found)}", suggestion="Join fewer at a time."
        )
    return found


def schema_rows(table: Records | Lines) -> Iterator[Row]:
    """Yield each column of a table with the types of its values and the number of rows."""
    kinds = [dict[str, None]() for _ in table.columns]
    rows = 0
    for row in table:
        rows += 1
        for kind, cell in zip(kinds, row, strict=True):
            kind[_kind_of(cell)] = None
    for column, kind in zip(table.columns, kinds, strict=True):
        yield column, " or ".join(kind), rows


def _kind_of(cell: Cell) -> str:
    match cell:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float() | Decimal():
            return "number"
        case str() if cell[:1] in ("{", "["):
            return "json"
        case _:
            return "text"
