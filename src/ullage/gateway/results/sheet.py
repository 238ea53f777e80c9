"""Is a text a table as our databases answer with: a heading, a line a row, and a last line on how many there were?

The last line says what no row does, above all that the database had more rows, so it must be seen however few rows
are. It is known by its words and by its count, which must be that of the lines above it. What is shown of the rows is
decided elsewhere.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from ullage.errors import BadInput
from ullage.table import read_row
from ullage.tokens import Steps

from .held import Part
from .paging import Numbered
from .rejoined import rejoined

__all__ = ["Sheet", "footer_rows", "has_more", "sheet_in", "whole_rows"]

_FOOTER = re.compile(r"-- (\d{1,15})( of more)? rows(?=;|\Z)")
"""Not of a single row that is all: that one is written as `column=value`."""
_STRIDE = 500
"""Lines read before others are let in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    heading: str
    columns: int
    rows: int
    footer: str


def footer_rows(line: str) -> int | None:
    """How many rows such a last line counts; None where it is none."""
    match = _FOOTER.match(line)
    return None if match is None else int(match[1])


def has_more(footer: str) -> bool:
    """Whether it says that the database had more rows."""
    match = _FOOTER.match(footer)
    return match is not None and match[2] is not None


def sheet_in(part: Part) -> Steps[Sheet | None]:
    """None where it is not such a table, or one without rows."""
    footer = part.text[part.text.rfind("\n") + 1 :]
    count = footer_rows(footer) if part.layout.kind == "lines" and not part.label else None
    lines = part.text.split("\n") if count else []
    if not count or len(lines) != count + 2:
        return None
    columns = yield from _width(lines[:-1])
    return None if columns is None else Sheet(heading=lines[0], columns=columns, rows=count, footer=footer)


def _width(lines: Iterable[str]) -> Steps[int | None]:
    """Of every line; None where they differ, or are no rows."""
    widths = set[int]()
    for number, line in enumerate(lines):
        try:
            widths.add(len(read_row(line)))
        except BadInput:
            return None
        if number % _STRIDE == 0:
            yield
    return widths.pop() if len(widths) == 1 else None


def whole_rows(units: Iterable[Numbered]) -> Iterator[Numbered]:
    """Each row in one, under the number of its last unit; neither the heading nor the last line."""
    return (line for line, _ in islice(pairwise(rejoined(units)), 1, None))
