"""Reads and scans very long JSON texts without blocking other threads.

`scan` goes through a text once, a record at a time, with little memory. It finds the longest list, counts its records,
collects their keys and notes the positions of some, so that any record can be read again directly. A text that is not
JSON has no records.

`read_pieces` reads a whole value. `json.loads` holds the interpreter lock while it runs: a fifth of a second for 20 MB,
in which no other thread and no event loop can run, whichever thread it is called from. `read_pieces` reads the same
value from pieces that each take about a millisecond; call it in a worker thread.
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
"""Characters passed to the parser at once: few at first, because most members are short, then many."""
_CHUNK = 1_000_000
"""Bytes decoded at once."""
_DEEPEST = 500
_NUMBER = 8_192
"""Length of the longest number, in characters."""
_space = re.compile(r"[ \t\n\r]*").match
_number = re.compile(r"-?[0-9.eE+-]+").match
_text = re.compile(r'[^"\\]*(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\]*)*', re.DOTALL).match
_half = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}").search
_first_half = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}").fullmatch
_second_half = re.compile(r"\\u[dD][c-fC-F][0-9a-fA-F]{2}").match
_raw: Callable[[str, int], tuple[Json, int]] = json.JSONDecoder().raw_decode
_HALVES = re.compile("[\ud800-\udfff]")


def decode_pieces(data: bytes | bytearray) -> str:
    """Decode UTF-8 in pieces; invalid bytes become U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces = [decoder.decode(data[at : at + _CHUNK]) for at in range(0, len(data), _CHUNK)]
    return join_pieces([*pieces, decoder.decode(b"", final=True)])


def join_pieces(pieces: Iterable[str]) -> str:
    """Join the pieces without the one long copy of `str.join`: a string with a single reference is extended in
    place."""
    joined = ""
    for piece in pieces:
        joined += piece
    return joined


def read_pieces(text: str, deepest: int, parse_float: Callable[[str], Any] = float) -> Json:
    """Return the value of a JSON text, with U+FFFD for every unpaired surrogate.

    Args:
        text: The JSON text.
        deepest: The most levels of nesting.
        parse_float: Makes a number from the literal of a float.

    Raises:
        ValueError: The text is not JSON.
        RecursionError: It is nested deeper than `deepest` levels.
    """
    if len(text) <= _WINDOW:
        value = json.loads(text) if parse_float is float else json.loads(text, parse_float=parse_float)
        _check_depth(text, value, 0, deepest)
        return _replace_surrogates(value) if _half(text) else value
    reader = _Reader(text, deepest, json.JSONDecoder(parse_float=parse_float).raw_decode)
    value, end = reader.value(reader.skip(0), 0)
    if reader.skip(end) != len(text):
        _fail(end)
    return value


def value_at(text: str, at: int) -> tuple[Json, int]:
    """Return the value at a position of a text, and the position after it, as `JSONDecoder.raw_decode` does."""
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
        """Return the position after any white space."""
        while (end := cast("re.Match[str]", _space(self._whole, at, at + _WINDOW)).end()) == at + _WINDOW:
            at = end
        return end

    def value(self, at: int, depth: int) -> tuple[Json, int]:
        """Return the value at a position, and the position after it."""
        begins = self._whole[at : at + 1]
        if begins == '"':
            return self._string(at)
        if begins not in ("[", "{"):
            number = _number(self._whole, at, at + _NUMBER)
            if number is not None and number.end() == at + _NUMBER:
                _fail(at)
            value, length = self._decode(self._whole[at : at + _NUMBER], 0)
            return value, at + length
        for size in (_SMALL, _WINDOW):
            piece = self._whole[at : at + size]
            try:
                value, end = self._decode(piece, 0)
            except ValueError:
                continue  # it goes on beyond the piece, or is not JSON, which shows further in
            _check_depth(piece, value, depth, self._deepest)
            if _half(piece, 0, end):
                value = _replace_surrogates(value)
            return value, at + end
        if depth >= self._deepest:
            raise RecursionError
        return self._object(at, depth) if begins == "{" else self._array(at, depth)

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
        # When members could not be read together, this many are read one by one, twice as many each time.
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
        """Return the members up to the last that seems to end within a window, and the position after them.

        Where the window ends inside a string or an inner bracket, the piece is not valid JSON, and None is returned.
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
            value = _replace_surrogates(value)
        return cast("list[Json]", value), end

    def _next(self, at: int, closing: str) -> int:
        """Return the position of the next member, or of the closing bracket."""
        at = self.skip(at)
        if self._whole[at : at + 1] == ",":
            at = self.skip(at + 1)
            if self._whole[at : at + 1] == closing:
                _fail(at)
        elif self._whole[at : at + 1] != closing:
            _fail(at)
        return at

    def _string(self, at: int) -> tuple[str, int]:
        """Read a string, decoded in pieces that split no escape and no surrogate pair."""
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
    """Raise `RecursionError` if a value at this depth is nested too deeply."""
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


def _replace_surrogates(value: Json) -> Json:
    """Return the value with every unpaired surrogate replaced."""
    if isinstance(value, dict):
        return {_without_halves(key): _replace_surrogates(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_replace_surrogates(member) for member in value]
    return _without_halves(value) if isinstance(value, str) else value


_STRIDE = 65_536
"""Characters read between two yields."""
_DEPTH = 3
"""Depth, in keys, to which lists are searched for."""
_DOMINANT = 0.5
"""Share of the text that a list must have to count as its main content."""
_MARKS = 65_536
"""The most positions noted; of longer lists, those of every second, fourth, … record."""
_COLUMNS = 1_000
"""The most keys collected; records with more have nothing in common."""


class Record(NamedTuple):
    """One record of a list, with its position in the text."""

    value: Json
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """The longest list of a text. The text itself is not stored: pass the same text to the methods."""

    path: Path
    start: int
    """Position of its opening bracket."""
    end: int
    """Position after its closing bracket."""
    count: int
    columns: tuple[str, ...]
    """Keys of its records, in order of first appearance; empty where not all records are objects."""
    marks: tuple[int, ...] = field(repr=False)
    """Positions of every `spacing`-th record."""
    spacing: int
    """Number of records between two marks."""

    def records(self, text: str, first: int = 0) -> Iterator[Record]:
        """Yield the records from number `first` on, counted from 0."""
        if first >= self.count:
            return
        skipped = first % self.spacing
        for number, record in enumerate(_records(text, self.marks[first // self.spacing])):
            if number >= skipped:
                yield record

    def is_most_of(self, text: str) -> bool:
        return self.end - self.start >= _DOMINANT * len(text)

    def rest(self, text: str) -> str:
        """Return the text with the list emptied."""
        return f"{text[: self.start]}[]{text[self.end :]}"


def scan(text: str) -> Steps[Scanned | None]:
    """Find the longest list of a text, in steps; None where the text is not JSON, or has no list."""
    walk = _Walk(text)
    try:
        end = yield from walk.value(_skip(text, 0), ())
    except (ValueError, IndexError, RecursionError):
        return None
    return walk.best if _skip(text, end) == len(text) else None


@dataclass(slots=True)
class _Walk:
    """Goes through a text once and finds the longest list."""

    text: str
    best: Scanned | None = None
    paused: int = 0
    """Position of the last yield."""

    def value(self, at: int, path: Path) -> Steps[int]:
        """Return the position of the value's end."""
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
    """The notes on a list while it is read."""

    count: int = 0
    columns: dict[str, None] | None = field(default_factory=dict[str, None])
    """Keys seen so far; None once a record was not an object, or there were too many keys."""
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
    """Yield the records from a position to the end of their list."""
    while text[at] != "]":
        value, end = value_at(text, at)
        yield Record(value, at, end)
        at = _next(text, end, "]")


def _next(text: str, at: int, closing: str) -> int:
    """Return the position of the next record, or of the closing bracket."""
    at = _skip(text, at)
    if text[at] == ",":
        at = _skip(text, at + 1)
        if text[at] == closing:
            raise ValueError("a comma with nothing behind it")
    elif text[at] != closing:
        raise ValueError("no comma")
    return at


def _skip(text: str, at: int) -> int:
    """Return the position after any white space."""
    return at if text[at : at + 1] > " " else cast("re.Match[str]", _space(text, at)).end()
