"""The one way to a terminal for standard output and standard error.

`escaping_terminals` puts a stream in the place of `sys.stdout` and `sys.stderr` where they are terminals. Whatever is
printed, by a verb, a library, the parser of arguments or a traceback, passes it and is escaped. Styles of our own pass
because they are marked with a word that is drawn anew in each process, so no text from outside can mark itself. A
pipe or a file gets every character as it is, and colours where `FORCE_COLOR` asks for them.
"""

import logging
import os
import re
import secrets
import sys
import textwrap
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from ullage.control_characters import escape_controls, escape_json_controls

__all__ = ["LineFormatter", "TerminalStream", "escaping_terminals", "own_sequence"]

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
