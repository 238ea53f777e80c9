r"""JSON values as lines of bytes: one message a line, in both directions.

JSON may contain what cannot be written again: half a character (`\ud800`), or nesting so deep that writing it fails.
The first is replaced by U+FFFD, as every decoder does; the second is refused with the id of the message, where there is
one, so that it costs one request and not the connection. Pure.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ullage.json_size import is_larger
from ullage.table import decode_pieces, read_pieces
from ullage.tool import Json

__all__ = [
    "DEEPEST",
    "LONG",
    "LineSplitter",
    "TooDeep",
    "TooLong",
    "encode_any_pieces",
    "encode_line",
    "encode_long_line",
    "encode_pieces",
    "is_large",
    "read_line",
    "read_long_line",
    "replace_halves",
]

LONG = 200_000
"""Bytes of a line above which it is read in pieces, by `read_long_line` in a worker thread."""

DEEPEST = 200
"""Levels of a message; the SDK writes 255, and the deepest of a hundred recorded catalogues has 27."""
_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")')
_ENDS = 400
"""Bytes at either end of a line in which its `id` is looked for."""
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_VALUES, _LETTERS = 20_000, 400_000
"""JSON values and characters that are written within about two milliseconds."""
_AT_ONCE = 64
"""Items of a long list that are written together, each of them no larger than that."""
_PIECE = 65_536
"""Characters of JSON that are handed on together."""
_MARK = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, which some programs write first."""


class TooDeep(Exception):
    """A message is nested too deeply; `number` is its `id`, where one was found."""

    def __init__(self, number: object) -> None:
        super().__init__("nested too deeply")
        self.number = number


class TooLong(Exception):
    """A line exceeds the longest that is kept."""


@dataclass(slots=True)
class LineSplitter:
    """Splits a stream of bytes into lines of at most `longest` bytes."""

    longest: float
    _parts: list[bytes] = field(default_factory=list[bytes])
    _long: bytearray | None = None
    """A line that exceeds `LONG`, extended part by part: joining its parts at the end would be one long copy."""
    _length: int = 0

    def split(self, chunk: bytes) -> Iterator[bytes | bytearray]:
        """The lines that `chunk` completes; its rest is kept for the next."""
        first, *more = chunk.split(b"\n")
        self._keep(first)
        for part in more:
            line = self.rest()
            self._keep(part)
            yield line

    def rest(self) -> bytes | bytearray:
        """Take what came after the last whole line."""
        rest = self._long
        if rest is None:
            rest = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts, self._long, self._length = [], None, 0
        return rest

    def _keep(self, part: bytes) -> None:
        self._length += len(part)
        if self._length > self.longest:
            self._parts, self._long, self._length = [], None, 0
            raise TooLong
        if self._long is not None:
            self._long += part
        elif self._length > LONG and self._parts:
            self._long = bytearray(b"".join([*self._parts, part]))
            self._parts = []
        else:
            self._parts.append(part)


def read_line(line: bytes | bytearray) -> Any:  # noqa: ANN401 - whatever JSON there is
    """The value of a line.

    Raises:
        ValueError: It is not JSON.
        TooDeep: It is nested so deeply that it could not be written again.
    """
    if line[:3] == _MARK:
        line = line[3:]
    text = line.decode("utf-8", "replace")
    try:
        value = json.loads(replace_halves(text) if "\\u" in text else text)
    except RecursionError:
        raise TooDeep(_find_id(line)) from None
    if line.count(b"[") + line.count(b"{") > DEEPEST and _is_deep(value):
        raise TooDeep(_find_id(line))
    return value


def read_long_line(line: bytes | bytearray) -> Any:  # noqa: ANN401 - whatever JSON there is
    """The same as `read_line`, slower and without a long call of the parser, which would hold up every thread."""
    try:
        return read_pieces(decode_pieces(line).lstrip("\ufeff"), DEEPEST)
    except RecursionError:
        raise TooDeep(_find_id(line)) from None


def replace_halves(text: str) -> str:
    """The text of a JSON value without half a character; untouched where there is none, or where it is not JSON.

    Two escapes that make one character are joined when JSON is read; one that is left alone becomes U+FFFD.
    """
    if _HALF.search(text) is None:
        return text
    try:
        written = json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
    return written.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_encode_ascii = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def encode_line(message: Mapping[str, Any]) -> bytes:
    """A message as one line of UTF-8.

    A number that JSON does not have becomes null, half a character U+FFFD.

    Raises:
        ValueError, TypeError: It has a part that cannot be written as JSON.
    """
    try:
        text = _encode(message)
    except (ValueError, TypeError):
        text = _encode(_to_plain(message))
    return _to_bytes(f"{text}\n")


def _to_bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def is_large(value: object) -> bool:
    """Whether writing the value takes longer than about two milliseconds. Stops as soon as that is known."""
    return is_larger(value, _VALUES, _LETTERS)


def encode_long_line(message: Mapping[str, Any]) -> bytes:
    """The same as `encode_line`, in pieces that each take about two milliseconds; meant for a worker thread.

    One call of the encoder would hold the interpreter, and with it every other thread, for as long as it runs.
    """
    return b"".join([*encode_any_pieces(message), b"\n"])


def encode_any_pieces(message: Mapping[str, Any]) -> list[bytes]:
    """The same as `encode_pieces`, with null for a number that JSON does not have."""
    try:
        return encode_pieces(message)
    except (ValueError, TypeError):
        return encode_pieces(cast("Mapping[str, Any]", _to_plain(message)))


def encode_pieces(message: Mapping[str, Any], *, is_ascii: bool = False) -> list[bytes]:
    """The JSON of a message, without a line feed, in pieces of about 64 kB; meant for a worker thread.

    Args:
        is_ascii: Whether other characters are written as escapes.

    Raises:
        ValueError, TypeError: It has a part that JSON does not have.
    """
    encode = _encode_ascii if is_ascii else _encode
    return [_to_bytes(text) for text in _joined(_write_pieces(cast("Json", message), encode))]


def _joined(texts: Iterator[str]) -> Iterator[str]:
    """The same text in pieces that are neither short nor, unless one of them is, long."""
    parts: list[str] = []
    length = 0
    for text in texts:
        parts.append(text)
        length += len(text)
        if length >= _PIECE:
            yield "".join(parts)
            parts, length = [], 0
    if parts:
        yield "".join(parts)


def _write_pieces(value: Json, encode: Callable[[object], str]) -> Iterator[str]:
    if not is_large(value):
        yield encode(value)
    elif isinstance(value, str):
        texts = (encode(value[at : at + _PIECE])[1:-1] for at in range(0, len(value), _PIECE))
        yield from ('"', *texts, '"')
    elif isinstance(value, list | tuple):
        yield "["
        for number, group in enumerate(_group(value)):
            if number:
                yield ","
            if len(group) == 1:
                yield from _write_pieces(group[0], encode)
            else:
                yield encode(group)[1:-1]
        yield "]"
    elif isinstance(value, dict):
        yield "{"
        for number, (key, member) in enumerate(value.items()):
            yield "," if number else ""
            yield from _write_pieces(key, encode)
            yield ":"
            yield from _write_pieces(member, encode)
        yield "}"
    else:
        raise TypeError(f"{type(value).__name__} is no part of JSON")


def _group(items: Sequence[Json]) -> Iterator[list[Json]]:
    """The items in groups that are written at once; a large one is alone."""
    group: list[Json] = []
    for item in items:
        is_alone = is_large(item)
        if group and (is_alone or len(group) >= _AT_ONCE):
            yield group
            group = []
        group.append(item)
        if is_alone:
            yield group
            group = []
    if group:
        yield group


def _to_plain(value: object) -> Json:
    """A value with what JSON lacks replaced: NaN and infinities by null, other mappings by objects."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {str(key): _to_plain(one) for key, one in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_to_plain(one) for one in cast("Iterable[object]", value)]
    return cast("Json", value)


def _is_deep(value: Json) -> bool:
    """Level by level: a text that has brackets in it is no level, and may be most of the line."""
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        level = [inner for outer in level for inner in _within(outer) if isinstance(inner, dict | list)]
        depth += 1
    return depth > DEEPEST


def _within(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _find_id(line: bytes | bytearray) -> object:
    found = _ID.search(line[:_ENDS]) or _ID.search(line[-_ENDS:])
    return None if found is None else json.loads(found[1])
