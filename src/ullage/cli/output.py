"""Prints text, tables, JSON and errors, for people and for programs.

Data goes to standard output, everything else to standard error. Colour only where a terminal shows it and `NO_COLOR` is
not set. What is printed is each verb's own affair.
"""

import json
import logging
import os
import re
import secrets
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from ullage.control_characters import escape_controls, escape_json_controls
from ullage.errors import UllageError
from ullage.tool import Json

if TYPE_CHECKING:
    from ullage.config import Loaded

__all__ = [
    "NO_SERVERS",
    "LineFormatter",
    "TerminalStream",
    "bold",
    "columns",
    "complain",
    "cut",
    "dim",
    "emit",
    "emit_json",
    "emit_json_text",
    "emit_wrapped",
    "escaping_terminals",
    "fitted_columns",
    "green",
    "how_many",
    "is_coloured",
    "own_sequence",
    "page",
    "painted",
    "plain",
    "red",
    "say",
    "screen",
    "short_path",
    "table_width",
    "waiting_or",
    "width_of",
    "without_name",
    "wrap_line",
    "yellow",
]

_WORD = secrets.token_hex(8)
_OWN = re.compile(f"\x00{_WORD}<([^\x00]*)>\x00")


class TerminalStream:
    """A terminal that shows control characters instead of obeying them; all else is the stream's own.

    Args:
        stream: the terminal, or a pipe that is to have colours.
        escapes: False for a pipe, which gets every character but the colours as it is.
    """

    def __init__(self, stream: TextIO, *, escapes: bool = True) -> None:
        self._stream = stream
        self._escapes = escapes

    def write(self, text: str) -> int:
        # The odd parts are what our own marks hold.
        parts = _OWN.split(text)
        is_plain = not self._escapes
        self._stream.write(
            "".join(part if at % 2 or is_plain else escape_controls(part) for at, part in enumerate(parts))
        )
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def own_sequence(sequence: str, stream: TextIO) -> str:
    """A control sequence of our own, as it may be written to this stream among other text."""
    return f"\x00{_WORD}<{sequence}>\x00" if isinstance(stream, TerminalStream) else sequence


@contextmanager
def escaping_terminals(*, for_good: bool) -> Generator[None]:
    """Escapes what is printed to terminals; `for_good` also after the end, for the traceback of what went wrong."""
    before = sys.stdout, sys.stderr
    is_forced = os.environ.get("FORCE_COLOR", "0") not in ("", "0")
    sys.stdout, sys.stderr = (
        cast("TextIO", TerminalStream(stream, escapes=stream.isatty()))
        if (is_forced or stream.isatty()) and not isinstance(stream, TerminalStream)
        else stream
        for stream in before
    )
    try:
        yield
    finally:
        if not for_good:
            sys.stdout, sys.stderr = before


class LineFormatter(logging.Formatter):
    """Writes each record on one line, so that no name or message in it can pass for another record.

    A traceback follows on lines of its own, which are indented.

    Args:
        pattern: As for `logging.Formatter`.
        is_json: Whether the line is JSON, and must stay it.
    """

    def __init__(self, pattern: str, *, is_json: bool = False) -> None:
        super().__init__(pattern)
        self._is_json = is_json

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging calls it so
        line = super().formatMessage(record)
        return escape_json_controls(line) if self._is_json else escape_controls(line, keep_lines=False)

    def formatException(self, ei: Any) -> str:  # noqa: N802, ANN401 - logging calls it so
        return textwrap.indent(escape_controls(super().formatException(ei)), "  ")


NO_SERVERS = """\
Ullage has no servers yet. Use those of another program:
  ullage scan               shows what your programs have
  ullage install codex      moves them; `ullage uninstall codex` gives them back
or read a file of another program in place, with --include ~/.cursor/mcp.json,
or name your own in an ullage.toml:
  [servers.github]
  command = "npx"
  args = ["-y", "@modelcontextprotocol/server-github"]"""


def how_many(number: int, thing: str) -> str:
    """`1 tool`, `1,200 tools`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def without_name(reason: str, server: str) -> str:
    """A reason that stands beside the server's name and need not repeat it."""
    return reason.removeprefix(f"server `{server}` ").removeprefix(f"`{server}` ")


def waiting_or(loaded: "Loaded", otherwise: str) -> str:
    """What to do where nothing stands behind Ullage: approve what waits for that, or else as given."""
    if not loaded.pending:
        return otherwise
    from ullage.config import approve_command  # not every verb reads the settings

    commands = "\n".join(f"  {approve_command(one.path)}" for one in loaded.pending)
    return (
        f"No servers are in use: project files wait for your approval. `ullage trust` shows them; then run\n{commands}"
    )


_PAGE = 100
"""Columns beyond which text is tiring to read."""
_NARROWEST = 8
"""Columns to which a column of text may be cut."""
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


def table_width() -> int | None:
    """Columns that a table may take: those of the terminal, or of `COLUMNS` where it is set; None for no limit."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return min(_WIDEST, shutil.get_terminal_size().columns)
    return None


def fitted_columns(rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> list[str] | None:
    """Rows as lines that fit the terminal: the widest text columns are cut with an ellipsis until they do.

    Returns:
        The lines, the first of them the header; None where so little of each column would be left that it could not be
        read.
    """
    limit = table_width()
    if limit is None or not rows:
        return columns(rows, right=right)
    widths = [max(width_of(row[index]) for row in rows) for index in range(len(rows[0]))]
    excess = sum(widths) + 2 * (len(widths) - 1) - limit
    while excess > 0:
        elastic = [index for index, width in enumerate(widths) if index not in right and width > _NARROWEST]
        if not elastic:
            return None
        widest = max(elastic, key=widths.__getitem__)
        widths[widest] -= 1
        excess -= 1
    cut_rows = [[cut(cell, widths[index]) for index, cell in enumerate(row)] for row in rows]
    return columns(cut_rows, right=right)


def wrap_line(line: str) -> list[str]:
    """A line in as many as the terminal needs, broken between words; what follows is indented by two more."""
    limit = table_width()
    if limit is None or width_of(line) <= limit:
        return [line]
    start = len(line) - len(line.lstrip(" "))
    lines, room = [line[:start]], limit - start
    for number, word in enumerate(line[start:].split(" ")):
        needed = width_of(word) + (number > 0)
        if needed > room and lines[-1].strip():
            lines.append(" " * (start + 2) + word)
            room = limit - start - 2 - width_of(word)
        else:
            lines[-1] += (" " if number else "") + word
            room -= needed
    return lines


def emit_wrapped(text: str) -> None:
    """To standard output, broken between words where the terminal is narrower."""
    for line in text.split("\n"):
        for piece in wrap_line(line):
            emit(piece)


def _pad(cell: str, width: int, flush_right: bool) -> str:  # noqa: FBT001
    space = " " * (width - width_of(cell))
    return space + cell if flush_right else cell + space


def width_of(cell: str) -> int:
    """Columns of a terminal that a text takes: ideographs take two, accents and our own colours none."""
    cell = _OWN.sub("", cell)
    return len(cell) if cell.isascii() else sum(map(_columns_of, cell))


def _columns_of(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def cut(text: str, width: int) -> str:
    """The text in at most so many columns, with an ellipsis where something was left out. Colours are left out too."""
    if width_of(text) <= width:
        return text
    text = _OWN.sub("", text)
    kept, room = list[str](), max(width - 1, 0)
    for letter in text:
        room -= width_of(letter)
        if room < 0:
            break
        kept.append(letter)
    return f"{''.join(kept).rstrip(' ,;')}…"


def short_path(path: str) -> str:
    """A path for people: from the working folder where it is in there, with `~` where it is in the home folder."""
    here, home = os.getcwd(), os.path.expanduser("~")  # noqa: PTH109, PTH111 - compared as texts
    if here != home and path.startswith(here + os.sep):
        return plain(path[len(here) + 1 :])
    return plain(f"~{path[len(home) :]}" if path.startswith(home + os.sep) else path)


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
