"""Scans very long JSON texts record by record.

The records of a very long JSON text.

One pass over the text, a record at a time, so that neither memory nor anyone's patience is strained: the longest list
is found, its records are counted, their keys noted, and where they stand is remembered for some of them, so that any
can be read again at once. A text that is no JSON has no records. What a record means is others' affair.

Reading of long JSON texts without a long call of the parser.

`json.loads` holds the interpreter for as long as it runs: a fifth of a second for 20 MB, in which no other thread and
no event loop goes on, whichever thread it runs in. `read_pieces` reads the same value from pieces that each take about
a millisecond, and is meant for a worker thread.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, cast

from ullage.tokens import Steps
from ullage.tool import Json

from .table_text import Path

__all__ = ["Record", "Scanned", "decode_pieces", "join_pieces", "read_pieces", "scan", "value_at"]

_SMALL, _WINDOW = 2_048, 65_536
"""Characters given to the parser at once: first few, since most members are short, then many."""
_CHUNK = 1_000_000
"""Bytes decoded at once."""
_DEEPEST = 500
_NUMBER = 8_192
"""Characters of the longest number."""
_space = re.compile(r"[ \t\n\r]*").match
_number = re.compile(r"-?[0-9.eE+-]+").match
_text = re.compile(r'[^"\\]*(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\]*)*', re.DOTALL).match
_half = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}").search
_first_half = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}").fullmatch
_second_half = re.compile(r"\\u[dD][c-fC-F][0-9a-fA-F]{2}").match
_raw: Callable[[str, int], tuple[Json, int]] = json.JSONDecoder().raw_decode
_HALVES = re.compile("[\ud800-\udfff]")


def decode_pieces(data: bytes | bytearray) -> str:
    """The text of UTF-8, with U+FFFD for what is none."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces = [decoder.decode(data[at : at + _CHUNK]) for at in range(0, len(data), _CHUNK)]
    return join_pieces([*pieces, decoder.decode(b"", final=True)])


def join_pieces(pieces: Iterable[str]) -> str:
    """The pieces as one text, without the one long copy of `str.join`: a text that only this function knows is
    extended in place."""
    joined = ""
    for piece in pieces:
        joined += piece
    return joined


def read_pieces(text: str, deepest: int, parse_float: Callable[[str], Any] = float) -> Json:
    """The value of a JSON text, with U+FFFD for every half of a surrogate pair that stands alone.

    Raises:
        ValueError: The text is no JSON.
        RecursionError: It is nested deeper than `deepest` levels.
    """
    if len(text) <= _WINDOW:
        return _read_at_once(text, deepest, parse_float)
    reader = _Reader(text, deepest, json.JSONDecoder(parse_float=parse_float).raw_decode)
    value, end = reader.value(reader.skip(0), 0)
    if reader.skip(end) != len(text):
        _fail(end)
    return value


def _read_at_once(text: str, deepest: int, parse_float: Callable[[str], Any]) -> Json:
    value = json.loads(text) if parse_float is float else json.loads(text, parse_float=parse_float)
    _check_depth(text, value, 0, deepest)
    return _mended(value) if _half(text) else value


def value_at(text: str, at: int) -> tuple[Json, int]:
    """The value that begins at a place of a text, and the place behind it, as `JSONDecoder.raw_decode` has it."""
    if len(text) - at <= 4 * _WINDOW:
        return _raw(text, at)
    return _Reader(text, _DEEPEST, _raw).value(at, 0)


def _fail(at: int) -> NoReturn:
    raise ValueError(f"no JSON at character {at}")


class _Reader:
    def __init__(self, text: str, deepest: int, decode: Callable[[str, int], tuple[Json, int]]) -> None:
        self._whole = text
        self._deepest = deepest
        self._decode = decode

    def skip(self, at: int) -> int:
        """The place behind any space."""
        while (end := cast("re.Match[str]", _space(self._whole, at, at + _WINDOW)).end()) == at + _WINDOW:
            at = end
        return end

    def value(self, at: int, depth: int) -> tuple[Json, int]:
        """The value at a place, and the place behind it."""
        begins = self._whole[at : at + 1]
        if begins == '"':
            return self._string(at)
        if begins not in ("[", "{"):
            return self._scalar(at)
        for size in (_SMALL, _WINDOW):
            piece = self._whole[at : at + size]
            try:
                value, end = self._decode(piece, 0)
            except ValueError:
                continue  # it goes on beyond the piece, or is no JSON, which shows further in
            _check_depth(piece, value, depth, self._deepest)
            if _half(piece, 0, end):
                value = _mended(value)
            return value, at + end
        if depth >= self._deepest:
            raise RecursionError
        return self._object(at, depth) if begins == "{" else self._array(at, depth)

    def _scalar(self, at: int) -> tuple[Json, int]:
        number = _number(self._whole, at, at + _NUMBER)
        if number is not None and number.end() == at + _NUMBER:
            _fail(at)
        value, length = self._decode(self._whole[at : at + _NUMBER], 0)
        return value, at + length

    def _object(self, at: int, depth: int) -> tuple[Json, int]:
        found: dict[str, Json] = {}
        at = self.skip(at + 1)
        while self._whole[at : at + 1] != "}":
            if self._whole[at : at + 1] != '"':
                _fail(at)
            key, at = self._string(at)
            at = self.skip(at)
            if self._whole[at : at + 1] != ":":
                _fail(at)
            found[key], at = self.value(self.skip(at + 1), depth + 1)
            at = self._next(at, "}")
        return found, at + 1

    def _array(self, at: int, depth: int) -> tuple[Json, int]:
        found: list[Json] = []
        # After members could not be read together, so many are read one by one: twice as many each time.
        at, alone, wait = self.skip(at + 1), 1, 0
        while self._whole[at : at + 1] != "]":
            several = self._several(at, depth) if not wait else None
            if several is not None:
                found += several[0]
                at, alone = several[1], 1
            else:
                wait, alone = (wait - 1, alone) if wait else (alone, min(2 * alone, _SMALL))
                value, at = self.value(at, depth + 1)
                found.append(value)
            at = self._next(at, "]")
        return found, at + 1

    def _several(self, at: int, depth: int) -> tuple[list[Json], int] | None:
        """Members up to the last that seems to end within a window, and the place behind them.

        Where the window ends inside a string or an inner bracket, what is cut off there is no JSON.
        """
        end = self._whole.rfind("},", at, at + _WINDOW) + 1
        piece = f"[{self._whole[at:end]}]"
        try:
            value, length = self._decode(piece, 0)
        except ValueError:
            return None
        if not end or length != len(piece):
            return None
        _check_depth(piece, value, depth, self._deepest)
        if _half(piece):
            value = _mended(value)
        return cast("list[Json]", value), end

    def _next(self, at: int, closing: str) -> int:
        """The place of the next member, or of the closing bracket."""
        at = self.skip(at)
        if self._whole[at : at + 1] == ",":
            at = self.skip(at + 1)
            if self._whole[at : at + 1] == closing:
                _fail(at)
        elif self._whole[at : at + 1] != closing:
            _fail(at)
        return at

    def _string(self, at: int) -> tuple[str, int]:
        """A string, decoded in pieces that part no escape and no surrogate pair."""
        pieces, at = list[str](), at + 1
        while True:
            end = cast("re.Match[str]", _text(self._whole, at, at + _WINDOW)).end()
            if _first_half(self._whole, max(at, end - 6), end) and (other := _second_half(self._whole, end)):
                end = other.end()
            pieces.append(_without_halves(str(_raw(f'"{self._whole[at:end]}"', 0)[0])))
            if self._whole[end : end + 1] == '"':
                return join_pieces(pieces), end + 1
            if end == at:
                _fail(at)
            at = end


def _check_depth(piece: str, value: Json, depth: int, deepest: int) -> None:
    """Raises `RecursionError` for a value, found at a depth, that is nested too deeply."""
    if depth + piece.count("[") + piece.count("{") <= deepest:
        return
    level = [value]
    while level:
        if depth > deepest:
            raise RecursionError
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        depth += 1


def _without_halves(text: str) -> str:
    return _HALVES.sub("\ufffd", text) if not text.isascii() else text


def _mended(value: Json) -> Json:
    """The value without halves of characters."""
    if isinstance(value, dict):
        return {_without_halves(key): _mended(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_mended(member) for member in value]
    return _without_halves(value) if isinstance(value, str) else value


_STRIDE = 65_536
"""Characters read before others are let in."""
_DEPTH = 3
"""Keys deep that a list is looked for."""
_DOMINANT = 0.5
"""Of the text, that a list must be to be what the text is about."""
_MARKS = 65_536
"""Places remembered at the most; of longer lists, every second, fourth, … record's."""
_COLUMNS = 1_000
"""Keys noted at the most; records with more have nothing in common."""


class Record(NamedTuple):
    value: Json
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """The longest list of a text. It holds no text itself: give the same again."""

    path: Path
    start: int
    """Of its bracket."""
    end: int
    """Behind its other bracket."""
    count: int
    columns: tuple[str, ...]
    """Keys of its records, in the order in which they first appear; empty where these are not all objects."""
    marks: tuple[int, ...] = field(repr=False)
    """Where every so many records begin."""
    spacing: int
    """Records from one mark to the next."""

    def records(self, text: str, first: int = 0) -> Iterator[Record]:
        """From a record on, counted from 0."""
        if first >= self.count:
            return
        skipped = first % self.spacing
        for number, record in enumerate(_records(text, self.marks[first // self.spacing])):
            if number >= skipped:
                yield record

    def is_most_of(self, text: str) -> bool:
        return self.end - self.start >= _DOMINANT * len(text)

    def rest(self, text: str) -> str:
        """The text with the list empty."""
        return f"{text[: self.start]}[]{text[self.end :]}"


def scan(text: str) -> Steps[Scanned | None]:
    """None where the text is no JSON, or has no list."""
    walk = _Walk(text)
    try:
        end = yield from walk.value(_skip(text, 0), ())
    except (ValueError, IndexError, RecursionError):
        return None
    return walk.best if _skip(text, end) == len(text) else None


@dataclass(slots=True)
class _Walk:
    """Goes through a text once and remembers the longest list."""

    text: str
    best: Scanned | None = None
    paused: int = 0
    """Where others were last let in."""

    def value(self, at: int, path: Path) -> Steps[int]:
        """Where the value ends."""
        begins = self.text[at]
        if begins == "[":
            return (yield from self._list(at, path))
        if begins == "{" and len(path) < _DEPTH:
            return (yield from self._object(at, path))
        _, end = value_at(self.text, at)
        return end

    def _object(self, at: int, path: Path) -> Steps[int]:
        text, at = self.text, _skip(self.text, at + 1)
        while text[at] != "}":
            key, at = value_at(text, at)
            at = _skip(text, at)
            if not isinstance(key, str) or text[at] != ":":
                raise ValueError("no member")
            at = yield from self.value(_skip(text, at + 1), (*path, key))
            at = _next(text, at, "}")
        return at + 1

    def _list(self, at: int, path: Path) -> Steps[int]:
        notes, start = _Notes(), at
        end = at = _skip(self.text, at + 1)
        for record in _records(self.text, at):
            notes.add(record)
            end = record.end
            if end - self.paused > _STRIDE:
                self.paused = end
                yield
        end = _skip(self.text, end) + 1
        if self.best is None or end - start > self.best.end - self.best.start:
            self.best = notes.scanned(path, start, end)
        return end


@dataclass(slots=True)
class _Notes:
    """What is remembered of a list while it is read."""

    count: int = 0
    columns: dict[str, None] | None = field(default_factory=dict[str, None])
    """None once a record was no object, or there were too many keys."""
    marks: list[int] = field(default_factory=list[int])
    spacing: int = 1

    def add(self, record: Record) -> None:
        if not self.count % self.spacing:
            self.marks.append(record.start)
            if len(self.marks) > _MARKS:
                del self.marks[1::2]
                self.spacing *= 2
        self.count += 1
        if self.columns is not None:
            columns = self.columns
            value = record.value
            if not isinstance(value, dict):
                self.columns = None
            elif not value.keys() <= columns.keys():
                columns.update(dict.fromkeys(value))
                self.columns = columns if len(columns) <= _COLUMNS else None

    def scanned(self, path: Path, start: int, end: int) -> Scanned:
        return Scanned(
            path=path,
            start=start,
            end=end,
            count=self.count,
            columns=tuple(self.columns or ()),
            marks=tuple(self.marks),
            spacing=self.spacing,
        )


def _records(text: str, at: int) -> Iterator[Record]:
    """From where one begins to the end of their list."""
    while text[at] != "]":
        value, end = value_at(text, at)
        yield Record(value, at, end)
        at = _next(text, end, "]")


def _next(text: str, at: int, closing: str) -> int:
    """Where the next one begins, or the closing bracket stands."""
    at = _skip(text, at)
    if text[at] == ",":
        at = _skip(text, at + 1)
        if text[at] == closing:
            raise ValueError("a comma with nothing behind it")
    elif text[at] != closing:
        raise ValueError("no comma")
    return at


def _skip(text: str, at: int) -> int:
    """Behind any space."""
    return at if text[at : at + 1] > " " else cast("re.Match[str]", _space(text, at)).end()
