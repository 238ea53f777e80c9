"""How are rows written as text?

One dialect, called csv: a line of column names, then one line a row, cells parted by commas. A cell is bare where it
cannot be misread and a JSON string where it could; lists and objects are compact JSON. So no cell ever holds a line
break, and whoever counts lines counts rows.

There are two degrees of care. `typed` rows are JSON and come back exactly by `decode`: text that looks like a number is
quoted, an empty cell is a key that is not there, and null says `null`. The others are a database's: an empty cell is
NULL, and dates, codes and numbers held as text stay bare, because their column says what they are. One row alone is
better as `column=value`, a line a column.
"""

import json
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from enum import Enum
from typing import Final

from .cell import Cell, Row
from .writing import quoted, written

__all__ = ["ABSENT", "LITERAL", "Absent", "encode", "record_lines", "row_line"]


class Absent(Enum):
    """The value of a key that an object has not."""

    ABSENT = ""


ABSENT: Final = Absent.ABSENT

_NEVER = "\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
LITERAL = re.compile(r"(?:true|false|null|-?Infinity|NaN|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\Z")
"""What stands bare among typed cells and is no text."""


def _bare(first: str, within: str) -> re.Pattern[str]:
    """Text that needs no quotes: it neither begins with what is special there, nor holds it, nor ends in space."""
    return re.compile(rf"[^\s{first}{within}{_NEVER}](?:[^{within}{_NEVER}]*[^\s{within}{_NEVER}])?\Z")


_TYPED = _bare(r"\"\[{", ",")
_LOOSE = _bare(r"\"", ",")
_ALONE = _bare(r"\"", "")
"""After `column=`, where only the line's end ends it."""
_NAME = _bare(r"\"", "=")


def encode(columns: Sequence[str], rows: Iterable[Sequence[Cell | Absent]], *, typed: bool = False) -> str:
    """The header and every row, parted by line breaks."""
    lines = [row_line(columns, typed=typed)]
    lines += [row_line(row, typed=typed) for row in rows]
    return "\n".join(lines)


def row_line(cells: Sequence[Cell | Absent], *, typed: bool = False) -> str:
    """One row, or the header."""
    return ",".join(map(_typed_cell if typed else _loose_cell, cells))


def record_lines(columns: Sequence[str], row: Row) -> list[str]:
    """One row, a line a column."""
    return [
        f"{name if _NAME.match(name) else quoted(name)}={_loose_cell(cell, _ALONE)}"
        for name, cell in zip(columns, row, strict=True)
    ]


def _typed_cell(cell: Cell | Absent) -> str:
    if isinstance(cell, str):
        return cell if _TYPED.match(cell) and not LITERAL.match(cell) else quoted(cell)
    return "" if cell is ABSENT else written(cell)


def _loose_cell(cell: Cell | Absent, bare: re.Pattern[str] = _LOOSE) -> str:
    if isinstance(cell, str):
        return cell if bare.match(cell) or _is_json(cell) else quoted(cell)
    if cell is None or cell is ABSENT:
        return ""
    return str(cell) if isinstance(cell, Decimal) else written(cell)


def _is_json(text: str) -> bool:
    """Whether it is a JSON object or array on one line, which ends where it ends, commas or not."""
    if text[:1] + text[-1:] not in ("{}", "[]") or not text.isprintable():
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
