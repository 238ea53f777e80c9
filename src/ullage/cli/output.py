"""Prints text, tables, JSON, errors and progress, for people and for programs.

Data goes to standard output, everything else to standard error. Colours are used only if a terminal shows them and
`NO_COLOR` is not set. Each verb decides what is printed.

Progress goes to standard error. On a terminal, a bar or a line is drawn repeatedly. Elsewhere `show_waiting` writes a
line every two seconds, so that a log shows what is pending.
"""

import json
import logging
import os
import re
import secrets
import shutil
import sys
import textwrap
import time
import unicodedata
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeVar, cast

from ullage.control_characters import escape_controls, escape_json_controls
from ullage.errors import UllageError
from ullage.tool import Json

if TYPE_CHECKING:
    from ullage.config import Loaded

__all__ = [
    "NO_SERVERS",
    "LineFormatter",
    "Progress",
    "TerminalStream",
    "bold",
    "columns",
    "complain",
    "cut",
    "dialogue_width",
    "dim",
    "emit",
    "emit_json",
    "emit_json_text",
    "emit_wrapped",
    "escaping_terminals",
    "fitted_columns",
    "green",
    "hang_line",
    "how_many",
    "is_coloured",
    "own_sequence",
    "page",
    "paint_text",
    "plain",
    "red",
    "say",
    "screen",
    "short_path",
    "show_running",
    "show_waiting",
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
    """A terminal stream that shows control characters instead of interpreting them; everything else is the stream's
    own.

    Args:
        stream: The terminal, or a pipe that receives colours.
        escapes: False for a pipe, which receives every character except the colours unchanged.
    """

    def __init__(self, stream: TextIO, *, escapes: bool = True) -> None:
        self._stream = stream
        self._escapes = escapes

    def write(self, text: str) -> int:
        # The odd parts are the content of Ullage's own marks.
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
    """Return one of Ullage's own control sequences in a form that may be written to this stream among other text."""
    return f"\x00{_WORD}<{sequence}>\x00" if isinstance(stream, TerminalStream) else sequence


@contextmanager
def escaping_terminals(*, for_good: bool) -> Generator[None]:
    """Escape what is printed to terminals; with `for_good`, also after the end, for the traceback of an error."""
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
    """Formats each record on one line, so that no name or message in it can imitate another record.

    A traceback follows on indented lines of its own.

    Args:
        pattern: As for `logging.Formatter`.
        is_json: Whether the line is JSON, and must remain valid.
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
    """Return a number with its noun: `1 tool`, `1,200 tools`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def without_name(reason: str, server: str) -> str:
    """Return a reason without the server's name, for display beside the name."""
    return reason.removeprefix(f"server `{server}` ").removeprefix(f"`{server}` ")


def waiting_or(loaded: "Loaded", otherwise: str) -> str:
    """Return what to do if nothing is behind Ullage: approve pending files, or else `otherwise`."""
    if not loaded.pending:
        return otherwise
    from ullage.config import approve_command  # not every verb reads the settings

    commands = "\n".join(f"  {plain(approve_command(one.path))}" for one in loaded.pending)
    return (
        f"No servers are in use: project files wait for your approval. `ullage trust` shows them; then run\n{commands}"
    )


_PAGE = 100
"""Maximum columns of running text; wider text is tiring to read."""
_NARROWEST = 8
"""Minimum columns to which a column of text may be cut."""
_WIDEST = 120
"""Maximum columns of a table."""


def emit(line: str = "") -> None:
    print(line, file=sys.stdout)


def emit_json(value: Json) -> None:
    emit(_json(value, sys.stdout, indent=2))


def emit_json_text(text: str) -> None:
    """Print JSON that is already serialized."""
    emit(escape_json_controls(text) if sys.stdout.isatty() else text)


def _json(value: object, stream: TextIO, *, indent: int | None = None) -> str:
    """Serialize a value, escaped if the stream's encoding lacks letters: what Python would write in their place is not
    JSON."""
    has_all = "utf" in (stream.encoding or "utf-8").lower()
    text = json.dumps(value, ensure_ascii=not has_all, indent=indent)
    return escape_json_controls(text) if stream.isatty() else text


def say(*lines: str) -> None:
    """Print lines for a person to standard error, separate from the data and broken between words on a terminal."""
    # The columns of the terminal that shows this stream, or None for a file or a pipe.
    limit = min(_PAGE, shutil.get_terminal_size().columns) if sys.stderr.isatty() else None
    for line in lines:
        for piece in [line] if limit is None else wrap_line(line, limit):
            print(piece, file=sys.stderr, flush=True)


def complain(error: UllageError, *, as_json: bool) -> None:
    """Print one error, as JSON for programs or as sentences for people, broken between words on a terminal."""
    if as_json:
        print(_json(error.wire(), sys.stderr), file=sys.stderr)
        return
    first, *more = map(plain, error.message.split("\n"))
    lines = [f"{paint_text('error', '31;1', sys.stderr)}: {first}", *more]
    lines += [f"  {plain(line)}" for line in (error.suggestion or "").split("\n") if line]
    if error.options:
        lines.append(f"  options: {', '.join(map(plain, error.options))}")
    say(*lines)


def columns(rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> list[str]:
    """Return rows as lines with aligned columns; those in `right` are flush right."""
    widths = [max(width_of(row[index]) for row in rows) for index in range(len(rows[0]))] if rows else []
    return ["  ".join(_pad(cell, widths[i], i in right) for i, cell in enumerate(row)).rstrip() for row in rows]


def dialogue_width() -> int | None:
    """Return the columns for text that a person reads on either stream; None if neither is shown by a terminal."""
    if sys.stderr.isatty() or table_width() is not None:
        return min(_PAGE, shutil.get_terminal_size().columns)
    return None


def table_width() -> int | None:
    """Return the columns that a table may take: those of the terminal, or `COLUMNS` if it is set; None for no limit."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return min(_WIDEST, shutil.get_terminal_size().columns)
    return None


def fitted_columns(rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> list[str] | None:
    """Return rows as lines that fit the terminal: the widest text columns are cut with an ellipsis until they do.

    Returns:
        The lines, the first of them the header; None if too little of each column would be left to be readable.
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


def wrap_line(line: str, limit: int | None = None) -> list[str]:
    """Break a line between words into as many as the terminal needs; continuation lines are indented by two more.

    Args:
        line: The text. Text between backticks is not broken, so that a command can be copied.
        limit: The columns of a line; by default those of a table.
    """
    limit = table_width() if limit is None else limit
    if limit is None or width_of(line) <= limit:
        return [line]
    start = len(line) - len(line.lstrip(" "))
    lines, room = [line[:start]], limit - start
    for number, word in enumerate(_units(line[start:])):
        needed = width_of(word) + (number > 0)
        # What fits on no line stays where it is: the terminal breaks it, and it can still be copied.
        is_too_long = " " in word and width_of(word) > limit - start - 2
        if needed > room and lines[-1].strip() and not is_too_long:
            lines.append(" " * (start + 2) + word)
            room = limit - start - 2 - width_of(word)
        else:
            lines[-1] += (" " if number else "") + word
            room -= needed
    return lines


def hang_line(line: str, limit: int, indent: int) -> list[str]:
    """Break a text from a stranger into lines of at most `limit` columns, also inside words. All but the first are
    indented, so that no part of it looks like a line of its own."""
    lines, current = list[str](), ""
    for word in re.split(r"(?<= )", line):
        rest = word
        if current.strip() and width_of(current) + width_of(rest.rstrip()) > limit:
            lines.append(current.rstrip())
            current = " " * indent
        while width_of(current) + width_of(rest.rstrip()) > limit:
            fitting = 1
            while width_of(current) + width_of(rest[: fitting + 1]) <= limit:
                fitting += 1
            lines.append(current + rest[:fitting])
            current, rest = " " * indent, rest[fitting:]
        current += rest
    return [*lines, current.rstrip()]


_UNIT = re.compile(r"(?:s|ms|MB|%)\W*")
"""A unit, which stays on one line with its number."""


def _units(text: str) -> Iterator[str]:
    """Yield the pieces between which a line may be broken: words, text between backticks, and a number with its
    unit."""
    piece = None
    for word in text.split(" "):
        if piece is None:
            piece = word
        elif piece.count("`") % 2 or (_UNIT.fullmatch(word) and piece[-1:].isdigit()):
            piece = f"{piece} {word}"
        else:
            yield piece
            piece = word
    if piece is not None and piece.count("`") % 2:
        yield from piece.split(" ")  # a backtick without its partner
    elif piece is not None:
        yield piece


def emit_wrapped(text: str) -> None:
    """Print text to standard output, broken between words if the terminal is narrower."""
    for line in text.split("\n"):
        for piece in wrap_line(line):
            emit(piece)


def _pad(cell: str, width: int, flush_right: bool) -> str:  # noqa: FBT001
    space = " " * (width - width_of(cell))
    return space + cell if flush_right else cell + space


def width_of(cell: str) -> int:
    """Return the terminal columns that a text takes: ideographs take two, accents and Ullage's own colours none."""
    cell = _OWN.sub("", cell)
    return len(cell) if cell.isascii() else sum(map(_columns_of, cell))


def _columns_of(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Cut the text to this number of columns, with an ellipsis if something was left out. Colours are removed."""
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
    """Return a path for display: relative to the working folder if it is inside, with `~` if it is inside the home
    folder."""
    here, home = os.getcwd(), os.path.expanduser("~")  # noqa: PTH109, PTH111 - compared as texts
    if here != home and path.startswith(here + os.sep):
        return plain(path[len(here) + 1 :])
    return plain(f"~{path[len(home) :]}" if path.startswith(home + os.sep) else path)


def screen() -> int:
    """Return the columns for tables: those of the terminal that shows them, up to 120."""
    return min(_WIDEST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _PAGE


def plain(text: str) -> str:
    """Return a name on one line: characters that would control the terminal, end the line or cannot be written are
    spelled out."""
    return escape_controls(text, keep_lines=False)


def page() -> int:
    """Return the columns for running text: at most those of the terminal that shows it."""
    return min(_PAGE, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _PAGE


def bold(text: str) -> str:
    return paint_text(text, "1")


def dim(text: str) -> str:
    return paint_text(text, "2")


def red(text: str) -> str:
    return paint_text(text, "31;1")


def yellow(text: str) -> str:
    return paint_text(text, "33;1")


def green(text: str) -> str:
    return paint_text(text, "32")


def is_coloured(stream: TextIO) -> bool:
    return isinstance(stream, TerminalStream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint_text(text: str, code: str | int, stream: TextIO | None = None) -> str:
    """Return the text in a colour or weight, given by its code, if the stream (standard output by default) shows it."""
    shown_on = sys.stdout if stream is None else stream
    if not text or not is_coloured(shown_on):
        return text
    return own_sequence(f"\x1b[{code}m", shown_on) + text + own_sequence("\x1b[0m", shown_on)


_EVERY_SECONDS = 0.1
_LINE_SECONDS = 2.0
"""Seconds between two lines if nothing can be redrawn."""
_AT_ONCE = 0.4
"""Seconds before anything is shown: shorter work needs no progress."""


class Sized(Protocol):
    @property
    def size(self) -> int: ...


Item = TypeVar("Item", bound=Sized)


class Progress:
    """Shows how much of `whole` has been processed. Use it as a context manager, which clears the bar at its end."""

    def __init__(self, whole: int, label: str) -> None:
        self._whole = whole
        self._label = label
        self._done = 0
        self._shown_at = 0.0
        self._watched = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown_at:
            print(own_sequence("\r\x1b[K", sys.stderr), end="", file=sys.stderr, flush=True)

    def through(self, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            if self._watched and time.monotonic() - self._shown_at > _EVERY_SECONDS:
                self._shown_at = time.monotonic()
                part = self._done / self._whole if self._whole else 1.0
                width = max(10, min(40, shutil.get_terminal_size().columns - len(self._label) - 10))
                full = round(part * width)
                bar = "█" * full + "░" * (width - full)
                wipe = own_sequence("\r\x1b[K", sys.stderr)
                print(f"{wipe}{self._label} {bar} {part:4.0%}", end="", file=sys.stderr, flush=True)
            yield item
            self._done += item.size


@asynccontextmanager
async def show_waiting(total: int, waiting: Callable[[], Sequence[str]]) -> AsyncGenerator[None]:
    """Show which of `total` servers have not answered, until the context ends.

    Args:
        total: Number of all servers.
        waiting: Returns the names of those that have not answered yet.
    """
    begun = time.monotonic()

    def line() -> str:
        names = waiting()
        if not names:
            return f"counting the tools of {total} servers"
        named = f"; waiting for {', '.join(map(plain, names))}"
        return f"{total - len(names)} of {total} servers answered{named} ({time.monotonic() - begun:.0f} s)"

    async with _show_line(line, after=_AT_ONCE, is_logged=True):
        yield


@asynccontextmanager
async def show_running(what: str, is_paused: Callable[[], bool]) -> AsyncGenerator[None]:
    """Show on a terminal what has been running for two seconds, until the context ends.

    Args:
        what: What is running.
        is_paused: Returns whether nothing may be drawn now, because the user is being asked.
    """
    begun = time.monotonic()

    def line() -> str:
        return "" if is_paused() else f"{what} ({time.monotonic() - begun:.0f} s)"

    async with _show_line(line, after=_LINE_SECONDS, is_logged=False):
        yield


@asynccontextmanager
async def _show_line(line: Callable[[], str], *, after: float, is_logged: bool) -> AsyncGenerator[None]:
    """Redraw a line on a terminal until the context ends, and clear it then.

    Args:
        line: Returns the line; if it is empty, nothing is drawn.
        after: Seconds before it is drawn.
        is_logged: Whether it is written every two seconds where nothing can be redrawn.
    """
    import anyio  # `ullage count` shows a bar as well, and does not wait for it

    is_drawn = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    has_drawn = False

    async def tick() -> None:
        nonlocal has_drawn
        await anyio.sleep(after if is_drawn else _LINE_SECONDS)
        while is_drawn or is_logged:
            text = line()
            if is_drawn and text:
                has_drawn = True
                text = own_sequence("\r\x1b[K", sys.stderr) + cut(text, shutil.get_terminal_size().columns - 1)
                print(text, end="", file=sys.stderr, flush=True)
            elif text:
                say(f"ullage: {text}")
            await anyio.sleep(_EVERY_SECONDS * 2 if is_drawn else _LINE_SECONDS)

    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised again below: a task group would wrap it
            failure = error
        tasks.cancel_scope.cancel()
    if has_drawn:
        print(own_sequence("\r\x1b[K", sys.stderr), end="", file=sys.stderr, flush=True)
    if failure is not None:
        raise failure
