"""How is a held result a table that SQL can be asked of?

Each record is a row of table `result`, each key a column; what is nested stands there as JSON text. Lines that are a
JSON object each are records too, and so are the lines of a table as we write it, under its heading. The table is read
as it is needed, not loaded. Running the SQL, safely and within its time, is the affair of whoever is given as
`TableQuery`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any, Protocol, cast

from ullage.errors import BadInput, InvalidArguments
from ullage.table import Cell, Row, read_pieces, read_row, written
from ullage.tool import Json

from .document import Document
from .rejoined import LineTooLong, rejoined
from .sheet import footer_rows, whole_rows

__all__ = ["Lines", "Records", "TableQuery", "records_in"]

_VALUE = "value"
"""The one column of records that are no objects."""
_DEEPEST = 500
_MOST_COLUMNS = 1_000
_LONGEST_CELL = 1_000_000
"""Characters of a list or an object that is one cell of a table."""


class TableQuery(Protocol):
    """Runs one read-only statement on a table made for it, named `result`."""

    async def ask(
        self, columns: Sequence[str], rows: Iterable[Row], sql: str, seconds: float
    ) -> tuple[Sequence[str], Sequence[Row], bool]:
        """Columns and rows of the answer, and whether there were more rows than came back. `rows` may be many and are
        read from a disk: they are to be taken in a thread. Raises `Refused`, `QueryFailed` or `DeadlinePassed`."""
        ...


@dataclass(frozen=True, slots=True)
class Records:
    """The rows of a document; can be gone through again."""

    document: Document
    keys: tuple[str, ...]
    """Empty where the records are no objects."""

    @property
    def columns(self) -> tuple[str, ...]:
        return _distinct(self.keys or (_VALUE,))

    def __iter__(self) -> Iterator[Row]:
        for record in _read(self.document):
            yield tuple(_cell(record.get(key)) for key in self.keys) if self.keys else (_cell(record),)


@dataclass(frozen=True, slots=True)
class Lines:
    """The rows of a table as our own tools write it; can be gone through again."""

    document: Document
    columns: tuple[str, ...]
    footer: str = ""
    """The last line, where it is no row but says how many there are."""

    def __iter__(self) -> Iterator[Row]:
        units = self.document.units(self.document.first)
        for _, line in whole_rows(units) if self.footer else islice(rejoined(units), 1, None):
            row = _read_row(line)
            if len(row) != len(self.columns):
                raise _no_table()
            yield tuple(map(_cell, row))


def records_in(document: Document) -> Records | Lines:
    """Raises `InvalidArguments` where it is no table. Goes through all of it for its keys."""
    try:
        return _records_in(document)
    except InvalidArguments:
        lines = _lines_in(document)
        if lines is None:
            raise
        return lines


def _lines_in(document: Document) -> Lines | None:
    """Where every line has as many cells as the heading, and more than one column or a count below to tell it by."""
    last = _last(document)
    if document.kind != "lines":
        return None
    counted = footer_rows(last)
    try:
        columns = tuple(map(str, _read_row(next(_lines(document), ""))))
        found = Lines(document, _distinct(columns), "" if counted is None else last)
        rows = sum(1 for _ in found)
    except (BadInput, LineTooLong):
        return None
    is_table = len(columns) > 1 if counted is None else counted == rows
    return found if rows and is_table else None


def _read_row(line: str) -> Row:
    """A row of a line; a cell of it is read in one call of the parser, so it must not be long."""
    if len(line) > _LONGEST_CELL:
        raise LineTooLong
    return read_row(line)


def _last(document: Document) -> str:
    """The last unit alone: a line that counts rows is too short to be in parts."""
    end = document.total if document.rest is None else document.rest
    return next((unit for _, unit in document.units(end - 1)), "")


def _records_in(document: Document) -> Records:
    keys, are_objects = dict[str, None](), True
    for record in _read(document):
        are_objects = are_objects and isinstance(record, dict)
        columns = cast("dict[str, Json]", record) if are_objects else {}
        if len(columns) > _MOST_COLUMNS or len(keys := keys | dict.fromkeys(columns)) > _MOST_COLUMNS:
            raise _no_table()
    return Records(document, tuple(keys) if are_objects else ())


def _distinct(keys: Sequence[str]) -> tuple[str, ...]:
    """As databases tell names apart: not by their case."""
    names = dict[str, str]()
    for key in keys:
        name, number = key, 2
        while name.lower() in names:
            name, number = f"{key}_{number}", number + 1
        names[name.lower()] = name
    return tuple(names.values())


def _lines(document: Document) -> Iterator[str]:
    return (line for _, line in rejoined(document.units(document.first)))


def _read(document: Document) -> Iterator[Any]:
    try:
        for line in _lines(document):
            yield read_pieces(line, _DEEPEST, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise _no_table() from error


def _cell(value: object) -> Cell:
    cell = cast("Cell", value)
    return written(cell)[:_LONGEST_CELL] if isinstance(cell, dict | list) else cell


def _no_table() -> InvalidArguments:
    return InvalidArguments(
        "this result is no table of which SQL could be asked",
        suggestion="Use `offset`, `grep` or `path`; with `path`, SQL can be asked of a list further in.",
    )
