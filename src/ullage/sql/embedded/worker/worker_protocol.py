"""Messages between Ullage and a worker process.

A `Pipe` sends frames: four bytes with the length, then JSON. A separate thread reads, so that the end of the other
process is noticed while a statement runs; the engines release the interpreter lock meanwhile.

`answer` sends rows within limits of number, characters per value, total bytes and time. Rows are taken one at a time
and sent in frames, so that neither side buffers more than one frame beyond the limit.

`travelling` converts values to JSON. What JSON lacks becomes text: dates and times in ISO 8601 with a blank between the
two, bytes as `0x…`, infinities by name. A decimal is marked, because a float would round it, and so is an object,
because a mark is an object too. In a list or object that contains a decimal, every decimal and object is marked.

A `PlainFile` opens a connection of its own for each request, and only if the file exists. Each engine defines its
connections and their locks.

`checks`, `computations`, `occasion` and `query_of` extract what SQLite stores only as text: a table's checks and
generated columns, a trigger's timing and event, and a view's query. They read words, not grammar, since the engine has
already accepted the text.
"""

import json
import math
import os
import queue
import re
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import date
from datetime import time as datetime_time
from decimal import Decimal
from itertools import islice
from typing import Any, BinaryIO, Generic, Literal, NamedTuple, Protocol, TypeVar, cast

__all__ = [
    "Asked",
    "Described",
    "Failure",
    "Message",
    "Pipe",
    "PlainFile",
    "Send",
    "Source",
    "answer",
    "checks",
    "computations",
    "cut",
    "encode_message",
    "occasion",
    "query_of",
    "travelling",
]

Message = dict[str, Any]


class Asked(NamedTuple):
    sql: str
    rows: int
    cell: int
    """Maximum characters of one value."""
    bytes: int
    """Maximum bytes of all rows in transfer format."""
    deadline: float
    """Time on the monotonic clock of this process."""

    @classmethod
    def read(cls, message: Message) -> "Asked":
        return cls(
            sql=message["sql"],
            rows=message["rows"],
            cell=message["cell"],
            bytes=message["bytes"],
            deadline=time.monotonic() + message["seconds"],
        )


Kind = Literal["query", "source", "deadline", "memory"]
"""What failed: the statement, the file, the deadline, or the memory limit, after which the process ends."""

_MOST = 1_500
"""Maximum characters of an engine's message; some repeat the whole statement."""


class Failure(Exception):
    def __init__(self, kind: Kind, text: str, *, code: str | None = None) -> None:
        super().__init__(text)
        self.kind: Kind = kind
        self.text = text if len(text) <= _MOST else text[:_MOST] + "…"
        self.code = code
        """The engine's own error code, such as `SQLITE_ERROR`."""


Travelling = None | bool | int | float | str | list["Travelling"] | dict[str, "Travelling"]


def travelling(value: object, most: int) -> tuple[Travelling, bool]:
    """Return a value in transfer format, and whether it was cut to `most` characters."""
    if isinstance(value, (bytes, bytearray)):
        fitting = max(0, (most - 2) // 2)
        return "0x" + value[:fitting].hex(), len(value) > fitting
    if isinstance(value, Decimal) and value.is_finite():
        return {"decimal": str(value)}, False
    plain = _plain(value)
    if isinstance(plain, str):
        return cut(plain, most)
    if isinstance(plain, (list, dict)):
        decimals = list[Decimal]()
        text = json.dumps(plain, ensure_ascii=False, default=lambda inner: decimals.append(inner) or str(inner))
        if len(text) > most:
            return text[:most], True
        if decimals:
            return {"marked": _marked(plain)}, False
        return (plain if isinstance(plain, list) else {"json": plain}), False
    return plain, False


def _marked(value: object) -> Travelling:
    """Return a value whose decimals and objects are marked, at every depth."""
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, dict):
        return {"json": {key: _marked(inner) for key, inner in cast("dict[str, object]", value).items()}}
    if isinstance(value, list):
        return [_marked(inner) for inner in cast("list[object]", value)]
    return cast("Travelling", value)


def cut(text: str, most: int) -> tuple[str, bool]:
    return (text, False) if len(text) <= most else (text[:most], True)


def _plain(value: object) -> Travelling:
    """Return a value in JSON; finite decimals stay what they are."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Decimal) and value.is_finite():
        return cast("Travelling", value)
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        if math.isnan(value):
            return "NaN"
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, (date, datetime_time)):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in cast("dict[object, object]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in cast("list[object]", value)]
    if isinstance(value, (bytes, bytearray)):
        return "0x" + value.hex()
    return str(value)


_WORDS = re.compile(
    r"""--[^\n]*|/\*.*?(?:\*/|\Z)|\s+                                    # passed over
      |(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|'(?:[^']|'')*')
      |(?P<word>[\w$]+)
      |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)


class _Word(NamedTuple):
    text: str
    """In upper case, or unchanged if it is quoted."""
    start: int
    end: int


def _words(text: str) -> Iterator[_Word]:
    for found in _WORDS.finditer(text):
        if found.lastgroup is not None:
            shown = found.group()
            yield _Word(shown if found.lastgroup == "quoted" else shown.upper(), found.start(), found.end())


def checks(text: str) -> list[str]:
    """Return each `CHECK (…)` of a CREATE TABLE as written."""
    words = list(_words(text))
    openings = (at for at, word in enumerate(words[:-1]) if word.text == "CHECK" and words[at + 1].text == "(")
    return [text[words[at].start : _closing(words, at + 1)] for at in openings]


def computations(text: str) -> dict[str, str]:
    """Return the expressions of generated columns in a CREATE TABLE, by column name in lower case."""
    words = list(_words(text))
    found: dict[str, str] = {}
    depth, begins = 0, False
    column: str | None = None
    for at, word in enumerate(words):
        if begins and depth == 1:
            column, begins = word.text, False
        if depth == 1 and word.text == "AS" and column is not None and at + 1 < len(words):
            name = column[1:-1] if column[:1] in "\"`['" else column
            found[name.lower()] = text[words[at + 1].start : _closing(words, at + 1)]
        depth += (word.text == "(") - (word.text == ")")
        begins = begins or (depth == 1 and word.text in ("(", ","))
    return found


def _closing(words: list[_Word], opening: int) -> int:
    depth = 0
    for word in words[opening:]:
        depth += (word.text == "(") - (word.text == ")")
        if depth == 0:
            return word.end
    return words[-1].end


def occasion(text: str) -> tuple[str, str | None]:
    """Return a trigger's timing and event; BEFORE is SQLite's default."""
    words = [word.text for word in _words(text)]
    head = words[: words.index("ON")] if "ON" in words else words
    event = next((word for word in head if word in ("INSERT", "UPDATE", "DELETE")), None)
    if "INSTEAD" in head:
        return "INSTEAD OF", event
    return ("AFTER" if "AFTER" in head else "BEFORE"), event


def query_of(text: str) -> str:
    """Return what follows AS in a CREATE VIEW."""
    depth = 0
    for word in _words(text):
        depth += (word.text == "(") - (word.text == ")")
        if word.text == "AS" and depth == 0:
            return text[word.end :].strip().rstrip(";").rstrip()
    return text


_LENGTH = struct.Struct(">I")
_AHEAD = 4
"""Frames read in advance; the limit bounds memory."""


class Pipe:
    def __init__(self, source: BinaryIO, sink: BinaryIO, when_alone: Callable[[], None]) -> None:
        self._source = source
        self._sink = sink
        self._when_alone = when_alone
        self._waiting: queue.Queue[Message | None] = queue.Queue(_AHEAD)
        threading.Thread(target=self._read, daemon=True).start()

    def receive(self, patience: float | None = None) -> Message | None:
        """Return the next message; None if the other process has ended, or sent nothing for `patience` seconds."""
        try:
            return self._waiting.get(timeout=patience)
        except queue.Empty:
            return None

    def send(self, frame: bytes) -> None:
        self._sink.write(_LENGTH.pack(len(frame)) + frame)
        self._sink.flush()

    def _read(self) -> None:
        while len(head := self._source.read(_LENGTH.size)) == _LENGTH.size:
            length: int = _LENGTH.unpack(head)[0]
            body = self._source.read(length)
            if len(body) < length:
                break
            self._waiting.put(json.loads(body))
        self._when_alone()
        self._waiting.put(None)


Send = Callable[[bytes], None]

_FRAME = 128_000
"""Bytes of rows per frame, so that the other side decodes only a few at a time."""


def encode_message(message: object) -> bytes:
    """Return JSON in UTF-8; unpaired surrogates become question marks."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def answer(columns: Sequence[str], rows: Iterator[Sequence[object]], asked: Asked, send: Send) -> None:
    send(encode_message({"columns": [cut(name, asked.cell)[0] for name in columns]}))
    held: list[bytes] = []
    size = total = count = cells = 0
    for row in islice(rows, asked.rows):
        if time.monotonic() > asked.deadline:
            raise Failure("deadline", "time was up while rows were being read")
        values = [travelling(value, asked.cell) for value in row]
        line = encode_message([value for value, _ in values])
        if total + len(line) > asked.bytes:
            if count == 0:
                raise Failure(
                    "query", f"the first row alone is larger than the {asked.bytes} bytes that an answer may have"
                )
            return _finish(held, send, more=True, cut_cells=cells)
        held.append(line)
        size, total, count, cells = (
            size + len(line),
            total + len(line),
            count + 1,
            cells + sum(was_cut for _, was_cut in values),
        )
        if size > _FRAME:
            _send_rows(held, send)
            held, size = [], 0
    return _finish(held, send, more=next(rows, None) is not None, cut_cells=cells)


def _send_rows(lines: list[bytes], send: Send) -> None:
    if lines:
        send(b'{"rows":[' + b",".join(lines) + b"]}")


def _finish(held: list[bytes], send: Send, *, more: bool, cut_cells: int) -> None:
    _send_rows(held, send)
    send(encode_message({"more": more, "cut_cells": cut_cells}))


Described = dict[str, Any]
"""JSON for the parent process."""


class Source(Protocol):
    """A database file or table. Each method opens what it needs, locks it, and leaves nothing open.

    Raises:
        Failure: the request failed.
    """

    @property
    def file_bytes(self) -> int:
        """Maximum size of a file written while the database is read."""
        ...

    def ask(self, message: Message, send: Send) -> None: ...

    def structure(self, message: Message) -> Described: ...

    def functions(self, message: Message) -> dict[str, str]: ...

    def take(self, message: Message) -> None:
        """Keep something for the next request."""
        ...


Connection = TypeVar("Connection")


class PlainFile(NamedTuple, Generic[Connection]):
    path: str
    file_bytes: int
    opened: Callable[[float], AbstractContextManager[Connection]]
    """Opens a connection, given the deadline on the monotonic clock."""
    run_query_of: Callable[[Connection, Asked, Send], None]
    structure_of: Callable[[Connection], Described]
    functions_of: Callable[[Connection], dict[str, str]]
    within: str | None = None
    """The real path of the folder that the file must not leave by links."""

    def ask(self, message: Message, send: Send) -> None:
        asked = Asked.read(message)
        with self._until(asked.deadline) as connection:
            self.run_query_of(connection, asked, send)

    def structure(self, message: Message) -> Described:
        with self._until(time.monotonic() + message["seconds"]) as connection:
            return self.structure_of(connection)

    def functions(self, message: Message) -> dict[str, str]:
        with self._until(time.monotonic() + message["seconds"]) as connection:
            return self.functions_of(connection)

    def take(self, message: Message) -> None:
        raise Failure("query", f"a file does not take `{message['do']}`")

    def _until(self, deadline: float) -> AbstractContextManager[Connection]:
        # Only a regular file is read, because opening a pipe or a device could block for ever.
        path = self.path
        try:
            mode = os.stat(path).st_mode  # noqa: PTH116 - pathlib would be loaded for this alone
        except FileNotFoundError:
            raise Failure("source", "there is no such file") from None
        except OSError as error:
            raise Failure("source", error.strerror or "it cannot be looked at") from None
        if not stat.S_ISREG(mode):
            raise Failure("source", "it is not a file")
        # At each opening: the file may have been replaced by a link since the settings were read.
        if self.within is not None and not os.path.realpath(path).startswith(os.path.join(self.within, "")):  # noqa: PTH118 - as above
            raise Failure("source", "it is a link that leads out of the project")
        return self.opened(deadline)
