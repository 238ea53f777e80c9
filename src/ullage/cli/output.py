"""Prints text, tables, JSON and errors, for people and for programs.

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

from ullage.control_characters import escape_controls, escape_json_controls
from ullage.errors import UllageError
from ullage.tool import Json

from .terminal import TerminalStream, own_sequence

__all__ = [
    "bold",
    "columns",
    "complain",
    "cut",
    "dim",
    "emit",
    "emit_json",
    "emit_json_text",
    "green",
    "is_coloured",
    "page",
    "painted",
    "plain",
    "red",
    "say",
    "screen",
    "width_of",
    "yellow",
]

_PAGE = 100
"""Columns beyond which text is tiring to read."""
_WIDEST = 120
"""Columns of a table at most."""


def emit(line: str = "") -> None:
    print(line, file=sys.stdout)


def emit_json(value: Json) -> None:
    emit(_json(value, sys.stdout, indent=2))


def emit_json_text(text: str) -> None:
    """JSON that is written already."""
    emit(escape_json_controls(text) if sys.stdout.isatty() else text)


def _json(value: object, stream: TextIO, *, indent: int | None = None) -> str:
    """Escaped where the stream's encoding lacks letters: what Python would write in their place is no JSON."""
    has_all = "utf" in (stream.encoding or "utf-8").lower()
    text = json.dumps(value, ensure_ascii=not has_all, indent=indent)
    return escape_json_controls(text) if stream.isatty() else text


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
    print(f"{painted('error', '31;1', sys.stderr)}: {message}", file=sys.stderr)
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


def cut(text: str, width: int) -> str:
    """The text in at most so many columns, with an ellipsis where something was left out."""
    if width_of(text) <= width:
        return text
    kept, room = list[str](), max(width - 1, 0)
    for letter in text:
        room -= width_of(letter)
        if room < 0:
            break
        kept.append(letter)
    return f"{''.join(kept).rstrip(' ,;')}…"


def screen() -> int:
    """Columns for tables: those of the terminal that shows them, up to 120."""
    return min(_WIDEST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _PAGE


def plain(text: str) -> str:
    """A name on one line: what would steer the terminal, end the line or cannot be written is spelt out."""
    return escape_controls(text, keep_lines=False)


def page() -> int:
    """Columns for running text: no wider than the terminal that shows it."""
    return min(_PAGE, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _PAGE


def bold(text: str) -> str:
    return painted(text, "1")


def dim(text: str) -> str:
    return painted(text, "2")


def red(text: str) -> str:
    return painted(text, "31;1")


def yellow(text: str) -> str:
    return painted(text, "33;1")


def green(text: str) -> str:
    return painted(text, "32")


def is_coloured(stream: TextIO) -> bool:
    return isinstance(stream, TerminalStream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, code: str | int, stream: TextIO | None = None) -> str:
    """The text in a colour or weight, by its code, where the stream (standard output) shows it."""
    shown_on = sys.stdout if stream is None else stream
    if not text or not is_coloured(shown_on):
        return text
    return own_sequence(f"\x1b[{code}m", shown_on) + text + own_sequence("\x1b[0m", shown_on)
