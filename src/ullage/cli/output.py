"""How do figures and complaints look to a person, and to a program?

Data goes to standard output, everything else to standard error. Colour only where a terminal shows it and `NO_COLOR` is
not set. What is printed is each verb's own affair.
"""

import json
import os
import shutil
import sys
import unicodedata
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
    "plain",
    "red",
    "say",
    "width_of",
    "yellow",
]

_PAGE = 100
"""Columns beyond which text is tiring to read."""


def emit(line: str = "") -> None:
    print(line, file=sys.stdout)


def emit_json(value: Json) -> None:
    emit(_json(value, sys.stdout, indent=2))


def _json(value: object, stream: TextIO, *, indent: int | None = None) -> str:
    """Escaped where the stream's encoding lacks letters: what Python would write in their place is no JSON."""
    has_all = "utf" in (stream.encoding or "utf-8").lower()
    return json.dumps(value, ensure_ascii=not has_all, indent=indent)


def say(*lines: str) -> None:
    """To a person, beside the data."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def complain(error: UllageError, *, as_json: bool) -> None:
    """One error, in the one shape for programs or as sentences for people."""
    if as_json:
        print(_json(error.wire(), sys.stderr), file=sys.stderr)
        return
    message = "\n".join(map(plain, error.message.split("\n")))
    print(f"{_paint('error', '31;1', sys.stderr)}: {message}", file=sys.stderr)
    if error.suggestion:
        print(f"  {plain(error.suggestion)}", file=sys.stderr)
    if error.options:
        print(f"  options: {', '.join(map(plain, error.options))}", file=sys.stderr)


def columns(rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> list[str]:
    """Rows as lines with aligned columns; those in `right` are flush right."""
    widths = [max(width_of(row[index]) for row in rows) for index in range(len(rows[0]))] if rows else []
    return ["  ".join(_pad(cell, widths[i], i in right) for i, cell in enumerate(row)).rstrip() for row in rows]


def _pad(cell: str, width: int, flush_right: bool) -> str:  # noqa: FBT001
    space = " " * (width - width_of(cell))
    return space + cell if flush_right else cell + space


def width_of(cell: str) -> int:
    """Columns of a terminal that a text takes: ideographs take two, accents that stand on a letter none."""
    return len(cell) if cell.isascii() else sum(map(_columns_of, cell))


def _columns_of(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def plain(text: str) -> str:
    """A name as it may be shown: what would steer the terminal, end the line or cannot be written is spelt out."""
    return text if text.isprintable() else "".join(map(_spelt, text))


def _spelt(letter: str) -> str:
    steers = unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")
    return letter.encode("unicode_escape").decode("ascii") if steers else letter


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
    return f"\x1b[{code}m{text}\x1b[0m" if text and is_coloured(stream) else text
