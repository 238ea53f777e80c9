"""How do figures and complaints look to a person, and to a program?

Data goes to standard output, everything else to standard error. Colour only where a terminal shows it and `NO_COLOR` is
not set. What is printed is each verb's own affair.
"""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from typing import TextIO

from ullage.errors import UllageError
from ullage.tool import Json

__all__ = [
    "bold",
    "columns",
    "complain",
    "dim",
    "emit",
    "emit_json",
    "green",
    "is_coloured",
    "page",
    "red",
    "say",
    "yellow",
]

_PAGE = 100
"""Columns beyond which text is tiring to read."""


def emit(line: str = "") -> None:
    print(line, file=sys.stdout)


def emit_json(value: Json) -> None:
    emit(json.dumps(value, ensure_ascii=False, indent=2))


def say(*lines: str) -> None:
    """To a person, beside the data."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def complain(error: UllageError, *, as_json: bool) -> None:
    """One error, in the one shape for programs or as sentences for people."""
    if as_json:
        print(json.dumps(error.wire(), ensure_ascii=False), file=sys.stderr)
        return
    print(f"{_paint('error', '31;1', sys.stderr)}: {error.message}", file=sys.stderr)
    if error.suggestion:
        print(f"  {error.suggestion}", file=sys.stderr)
    if error.options:
        print(f"  options: {', '.join(error.options)}", file=sys.stderr)


def columns(rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> list[str]:
    """Rows as lines with aligned columns; those in `right` are flush right."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))] if rows else []
    return ["  ".join(_pad(cell, widths[i], i in right) for i, cell in enumerate(row)).rstrip() for row in rows]


def _pad(cell: str, width: int, flush_right: bool) -> str:  # noqa: FBT001
    return cell.rjust(width) if flush_right else cell.ljust(width)


def page() -> int:
    """Columns for running text: no wider than the terminal that shows it."""
    return min(_PAGE, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _PAGE


def bold(text: str) -> str:
    return _paint(text, "1", sys.stdout)


def dim(text: str) -> str:
    return _paint(text, "2", sys.stdout)


def red(text: str) -> str:
    return _paint(text, "31;1", sys.stdout)


def yellow(text: str) -> str:
    return _paint(text, "33;1", sys.stdout)


def green(text: str) -> str:
    return _paint(text, "32", sys.stdout)


def is_coloured(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _paint(text: str, code: str, stream: TextIO) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if is_coloured(stream) else text
