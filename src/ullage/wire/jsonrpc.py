r"""One end of a JSON-RPC connection, towards a client or towards a server.

It routes what comes in, matches answers to the requests that were sent, and hands in lines in their order without
holding up the event loop. It knows no method, starts nothing and reads from nowhere.

JSON values as lines of bytes: one message a line, in both directions.

JSON may contain what cannot be written again: half a character (`\ud800`), or nesting so deep that writing it fails.
The first is replaced by U+FFFD, as every decoder does; the second is refused with the id of the message, where there is
one, so that it costs one request and not the connection. Pure.

Freeing of large values in portions.

The interpreter frees a list with all that is in it in one go, wherever its last reference is dropped, and no thread
goes on meanwhile: 20 ms for 20 MB of rows, 70 ms for 3 million empty lists. `keep_until_unused` keeps a reference of
its own until all others are gone and then takes the value apart in a worker thread, some thousand objects at a time.
That takes ten times as long in all, so it is for values that would hold up others.

Names and numbers of the Model Context Protocol, as plain constants.

They are the same as the SDK's, which takes most of a second to import; a test compares the two.
"""

import asyncio
import json
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar, cast

import anyio.to_thread

from ullage.json_size import is_larger
from ullage.table import decode_pieces, read_pieces
from ullage.tool import Json

__all__ = [
    "CAPABILITIES_KEY",
    "CLIENT_INFO_KEY",
    "CONNECTION_CLOSED",
    "DEEPEST",
    "HANDSHAKE_VERSIONS",
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "LATEST_HANDSHAKE_VERSION",
    "LATEST_MODERN_VERSION",
    "LEAST",
    "LOG_LEVEL_KEY",
    "LONG",
    "METHOD_HEADER",
    "METHOD_NOT_FOUND",
    "MODERN_VERSIONS",
    "NAME_HEADER",
    "PARSE_ERROR",
    "RESERVED_PREFIX",
    "SERVER_INFO_KEY",
    "SUBSCRIPTION_KEY",
    "UNSUPPORTED_VERSION",
    "VERSION_HEADER",
    "VERSION_KEY",
    "Endpoint",
    "Line",
    "LineReader",
    "LineSplitter",
    "Message",
    "ReadLine",
    "TooDeep",
    "TooLong",
    "encode_any_pieces",
    "encode_line",
    "encode_long_line",
    "encode_pieces",
    "error_response",
    "free_unused",
    "is_decimal",
    "is_large",
    "keep_until_unused",
    "read_line",
    "read_long_line",
    "replace_halves",
]

LEAST = 4_000_000
"""Bytes of JSON whose value is worth the trouble."""

_PAUSE = 0.5
"""Seconds between two looks at whether values are still used."""
_MOST_LOOKS = 240
"""Looks after which a value that is still used is left to its users."""
_PORTION = 1_000
"""Items of a list that are let go of together."""
_ALONE = 2
"""References of a value that only this module knows: the variable, and the argument of `getrefcount`."""

_kept: deque[tuple[int, list[object]]] = deque()
_task: asyncio.Task[None] | None = None


def keep_until_unused(value: object) -> None:
    """Have a value freed in portions when nobody uses it any more; call it on the event loop."""
    global _task  # noqa: PLW0603 - one task for all values of the process
    _kept.append((_MOST_LOOKS, [value]))
    if _task is None or _task.done() or _task.get_loop() is not asyncio.get_running_loop():
        _task = asyncio.get_running_loop().create_task(_look())


async def _look() -> None:
    while _kept:
        await asyncio.sleep(_PAUSE)
        for _ in range(len(_kept)):
            looks, parts = _kept.popleft()
            used = await anyio.to_thread.run_sync(free_unused, parts, abandon_on_cancel=True)
            if used and looks > 1:
                _kept.append((looks - 1, used))


def free_unused(todo: list[object]) -> list[object]:
    """Take apart the lists and objects that only `todo` knows; returns those that are used elsewhere too.

    What is in one that is used elsewhere stays as it is.
    """
    used: list[object] = []
    while todo:
        one = todo.pop()
        if not isinstance(one, list | dict):
            continue
        # No second variable may name it, or it would be taken for used; nor may an object still name its members.
        if sys.getrefcount(one) > _ALONE:
            used.append(cast("object", one))
        elif isinstance(one, dict):
            todo += [inner for inner in cast("dict[str, object]", one).values() if isinstance(inner, list | dict)]
            one.clear()
        elif one:
            some = cast("list[object]", one)[-_PORTION:]
            del one[-_PORTION:]
            todo.append(cast("object", one))
            todo += [inner for inner in some if isinstance(inner, list | dict)]
            del some
    return used


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

    @property
    def has_begun(self) -> bool:
        """Whether a part of a line has come and its end has not."""
        return self._length > 0

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


HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions that are agreed on by `initialize`, oldest first."""
MODERN_VERSIONS: Final = ("2026-07-28",)
"""Stateless revisions: every request carries its version and the client's capabilities in `_meta`."""
LATEST_HANDSHAKE_VERSION: Final = HANDSHAKE_VERSIONS[-1]
LATEST_MODERN_VERSION: Final = MODERN_VERSIONS[-1]

RESERVED_PREFIX: Final = "io.modelcontextprotocol/"
"""Begins the keys of `_meta` that the protocol keeps for itself; they are about one hop."""
VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO_KEY: Final = "io.modelcontextprotocol/clientInfo"
SERVER_INFO_KEY: Final = "io.modelcontextprotocol/serverInfo"
LOG_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"

VERSION_HEADER: Final = "mcp-protocol-version"
METHOD_HEADER: Final = "mcp-method"
NAME_HEADER: Final = "mcp-name"

CONNECTION_CLOSED: Final = -32000
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022

Message = dict[str, Any]

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

_JSONRPC_AT_ONCE = 200
"""Lines taken in one turn of the event loop, so that a flood on one connection does not hold up the others."""
_DIGITS = 20
"""Of a number that is written as text."""
_BREATH = 0.005
"""Seconds between two such turns."""

WaitingT = TypeVar("WaitingT")
Line = bytes | bytearray
ReadLine = Callable[[Line], Any]


def error_response(number: int | str, code: int, text: str, data: object = None) -> Message:
    """The answer to a request that is refused."""
    error: Message = {"code": code, "message": text}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": number, "error": error}


def is_decimal(number: int | str) -> bool:
    """Whether a text stands for a number: some programs write every id as text."""
    return isinstance(number, str) and len(number) <= _DIGITS and number.isdecimal()


@dataclass(slots=True, eq=False, kw_only=True)
class Endpoint(Generic[WaitingT]):
    """Routes messages by their kind; a subclass says what becomes of each."""

    waiting: dict[int | str, WaitingT] = field(default_factory=dict[int | str, WaitingT])
    """Requests that were sent and have no answer yet, in the order in which they were sent."""
    _last_number: int = 0

    def take_request(self, number: int | str, method: str, params: Message) -> None:
        raise NotImplementedError

    def take_notification(self, method: str, params: Message) -> None:
        raise NotImplementedError

    def take_answer(self, waiting: WaitingT, message: Message) -> None:
        """Settle a request by the message that has its `result` or `error`."""
        raise NotImplementedError

    def next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def find_waiting(self, number: object) -> WaitingT | None:
        if isinstance(number, bool) or not isinstance(number, int | str):
            return None
        found = self.waiting.get(number)
        if found is None and is_decimal(number):
            return self.waiting.get(int(number))
        return found

    def received(self, message: object) -> bool:
        """Take a message, or a batch of them as one revision had; False for what is not a message."""
        if isinstance(message, list):
            known = [self.received(one) for one in cast("list[object]", message)]
            return any(known)
        if not isinstance(message, dict):
            return False
        whole = cast("Message", message)
        method = whole.get("method")
        if isinstance(method, str):
            params, number = whole.get("params"), whole.get("id")
            given = cast("Message", params) if isinstance(params, dict) else {}
            if isinstance(number, int | str) and not isinstance(number, bool):
                self.take_request(number, method, given)
            else:
                self.take_notification(method, given)
            return True
        if "result" not in whole and "error" not in whole:
            return False
        waiting = self.find_waiting(whole.get("id"))
        if waiting is not None:
            self.take_answer(waiting, whole)
        return True


class LineReader:
    """Lines of one connection, read and handed in one after the other.

    A long line is read in a worker thread, and those behind it wait. While lines wait, the connection is paused.
    """

    def __init__(
        self,
        read: Callable[[Line, ReadLine], object],
        take: Callable[[Line, object], None],
        *,
        longest: float,
    ) -> None:
        self._read = read
        """Makes a value of a line with the given parser; must not raise."""
        self._take = take
        self._splitter = LineSplitter(longest)
        self._longest_at_once = min(LONG, longest)
        self._lines: deque[Line] = deque()
        self._reading: asyncio.Task[None] | None = None
        self._is_paused = False
        self._is_held = False
        self._when_done: Callable[[], None] | None = None
        self.pause: Callable[[], None] = lambda: None
        """Stops the connection from feeding more."""
        self.resume: Callable[[], None] = lambda: None

    def feed(self, data: bytes) -> None:
        """Take in bytes; raises `TooLong` for a line that exceeds the bound, after the lines before it are kept."""
        if data.find(b"\n") == len(data) - 1 <= self._longest_at_once and self._is_idle():
            # One whole line and nothing else, as nearly always.
            line = data[:-1]
            self._take(line, self._read(line, read_line))
            return
        try:
            self._lines.extend(self._splitter.split(data))
        finally:
            self._take_some()

    def _is_idle(self) -> bool:
        """Whether no line is waiting, being read or held back, and none has begun."""
        return not (
            self._lines
            or self._reading is not None
            or self._is_held
            or self._is_paused
            or self._when_done is not None
            or self._splitter.has_begun
        )

    def finish(self, when_done: Callable[[], None], *, with_rest: bool = False) -> None:
        """Call back when every line that came has been handed in, with the unfinished one where that is wanted."""
        if with_rest and (rest := self._splitter.rest()):
            self._lines.append(rest)
        self._when_done = self._when_done or when_done
        self._take_some()

    def hold(self, *, is_held: bool) -> None:
        """Hand in no more lines, or go on."""
        self._is_held = is_held
        if not is_held:
            self._take_some()

    def stop(self) -> None:
        """Drop what has not been handed in."""
        self._lines.clear()
        self._when_done = None
        if self._reading is not None:
            self._reading.cancel()

    @property
    def is_busy(self) -> bool:
        """Whether a long line is being read."""
        return self._reading is not None

    def _take_some(self) -> None:
        taken = 0
        while self._lines and self._reading is None and not self._is_held and taken < _JSONRPC_AT_ONCE:
            taken += 1
            line = self._lines.popleft()
            if len(line) > LONG:
                self._reading = asyncio.get_running_loop().create_task(self._take_long(line))
            else:
                self._take(line, self._read(line, read_line))
        if self._lines or self._reading is not None or self._is_held:
            if not self._is_paused:
                self._is_paused = True
                self.pause()
            if self._lines and self._reading is None and not self._is_held:
                asyncio.get_running_loop().call_later(_BREATH, self._take_some)
            return
        if self._is_paused:
            self._is_paused = False
            self.resume()
        if self._when_done is not None:
            when_done, self._when_done = self._when_done, None
            when_done()

    async def _take_long(self, line: Line) -> None:
        try:
            value = await anyio.to_thread.run_sync(self._read, line, read_long_line, abandon_on_cancel=True)
            if len(line) > LEAST:
                keep_until_unused(value)
            self._take(line, value)
        finally:
            self._reading = None
        self._take_some()
