r"""One end of a JSON-RPC connection, to a client or to a server.

It routes incoming messages, matches answers to the requests that were sent, and delivers lines in order without
blocking the event loop. It knows no method, starts nothing and reads from nowhere.

Messages are JSON values as lines of bytes: one message per line, in both directions.

JSON may contain what cannot be written again: half a surrogate pair (`\ud800`), or nesting so deep that writing it
fails. The first is replaced by U+FFFD, as every decoder does. The second is refused with the message's id, where there
is one, so that it costs one request and not the connection.

Large values are freed in portions. The interpreter frees a list with all its contents in one go, wherever its last
reference is dropped, and blocks every thread meanwhile: 20 ms for 20 MB of rows, 70 ms for 3 million empty lists.
`keep_until_unused` keeps a reference of its own until all others are gone and then takes the value apart in a worker
thread, some thousand objects at a time. That takes ten times as long in all, so it is only for values that would
block others.

The names and numbers of the Model Context Protocol are plain constants here. They equal the SDK's, which takes most of
a second to import; a test compares the two.
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

from ullage.table import decode_pieces, read_pieces
from ullage.tool import Json, is_larger

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
    "count_scheduled",
    "encode_any_pieces",
    "encode_ascii",
    "encode_line",
    "encode_long_line",
    "encode_pieces",
    "error_response",
    "free_unused",
    "is_decimal",
    "is_deeper",
    "is_large",
    "keep_until_unused",
    "read_line",
    "read_long_line",
    "replace_halves",
    "run_scheduled",
]

LEAST = 4_000_000
"""Bytes of JSON from which a value is freed in portions."""

_PAUSE = 0.5
"""Seconds between two checks of whether values are still in use."""
_MOST_LOOKS = 240
"""Checks after which a value that is still in use is no longer tracked."""
_PORTION = 1_000
"""Items of a list that are freed together."""
_ALONE = 2
"""Reference count of a value that only this module uses: the variable, and the argument of `getrefcount`."""

_kept: deque[tuple[int, list[object]]] = deque()
_task: asyncio.Task[None] | None = None


def keep_until_unused(value: object) -> None:
    """Free a value in portions once nothing else refers to it. Call this on the event loop."""
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
    """Take apart the lists and objects to which only `todo` refers; return those still in use elsewhere.

    The contents of a value in use elsewhere are left as they are.
    """
    used: list[object] = []
    while todo:
        one = todo.pop()
        if not isinstance(one, list | dict):
            continue
        # No second variable may refer to it, or it would count as in use; nor may an object still refer to its members.
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
"""Maximum nesting of a message; the SDK writes 255, and the deepest of a hundred recorded catalogues has 27."""
_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")')
_ENDS = 400
"""Bytes at either end of a line that are searched for its `id`."""
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_VALUES, _LETTERS = 20_000, 400_000
"""JSON values and characters that are written within about two milliseconds."""
_AT_ONCE = 64
"""Items of a long list that are written together; each of them is below the limits above."""
_PIECE = 65_536
"""Characters of JSON per piece."""
_MARK = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, which some programs write first."""


class TooDeep(Exception):
    """A message is nested too deeply; `number` is its `id`, where one was found."""

    def __init__(self, number: object) -> None:
        super().__init__("nested too deeply")
        self.number = number


class TooLong(Exception):
    """A line is longer than the limit."""


@dataclass(slots=True)
class LineSplitter:
    """Splits a stream of bytes into lines of at most `longest` bytes."""

    longest: float
    _parts: list[bytes] = field(default_factory=list[bytes])
    _long: bytearray | None = None
    """The unfinished line if longer than `LONG`, extended in place: joining parts at the end would be one long copy."""
    _length: int = 0

    def split(self, chunk: bytes) -> Iterator[bytes | bytearray]:
        """Yield the lines that `chunk` completes; the rest is kept for the next chunk."""
        first, *more = chunk.split(b"\n")
        self._keep(first)
        for part in more:
            line = self.rest()
            self._keep(part)
            yield line

    @property
    def has_begun(self) -> bool:
        """Whether a line has begun and its end has not yet arrived."""
        return self._length > 0

    def rest(self) -> bytes | bytearray:
        """Remove and return what came after the last complete line."""
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


_plain_decode = json.JSONDecoder().decode
_scan: Callable[[str, int], tuple[Any, int]] = cast("Any", json.JSONDecoder()).scan_once


def _decode(text: str) -> Any:  # noqa: ANN401 - whatever JSON there is
    """Parse like `json.loads`, in less time for a text with nothing around the value."""
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        return _plain_decode(text)
    return value if end == len(text) else _plain_decode(text)


def read_line(line: bytes | bytearray) -> Any:  # noqa: ANN401 - whatever JSON there is
    """Parse a line.

    Raises:
        ValueError: It is not JSON.
        TooDeep: It is nested so deeply that it could not be written again.
    """
    if line[:3] == _MARK:
        line = line[3:]
    text = line.decode("utf-8", "replace")
    try:
        value = _decode(replace_halves(text) if "\\u" in text else text)
    except RecursionError:
        raise TooDeep(_find_id(line)) from None
    if line.count(b"[") + line.count(b"{") > DEEPEST and is_deeper(value, DEEPEST):
        raise TooDeep(_find_id(line))
    return value


def read_long_line(line: bytes | bytearray) -> Any:  # noqa: ANN401 - whatever JSON there is
    """Parse a line like `read_line`, more slowly, but without one long parser call that would block every thread."""
    try:
        return read_pieces(decode_pieces(line).lstrip("\ufeff"), DEEPEST)
    except RecursionError:
        raise TooDeep(_find_id(line)) from None


def replace_halves(text: str) -> str:
    """Replace halves of surrogate pairs in JSON text; return it unchanged where there are none, or if it is not JSON.

    Two escapes that make one character are joined when JSON is read; a lone one becomes U+FFFD.
    """
    if _HALF.search(text) is None:
        return text
    try:
        written = json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
    return written.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _make_encoder(*, is_ascii: bool) -> Callable[[object], str]:
    """Return a function that encodes as JSON: `JSONEncoder.encode` without making an encoder for each call, and without
    tracking objects that contain themselves, which end in a `RecursionError`."""
    plain = json.JSONEncoder(ensure_ascii=is_ascii, separators=(",", ":"), allow_nan=False, check_circular=False)
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # an interpreter without the C part
        return plain.encode
    texts = json.encoder.encode_basestring_ascii if is_ascii else json.encoder.encode_basestring
    write: Any = make(None, plain.default, texts, None, ":", ",", False, False, False)
    join = "".join
    return lambda value: join(write(value, 0))


_encode = _make_encoder(is_ascii=False)
encode_ascii = _make_encoder(is_ascii=True)
"""Encodes a value as JSON in ASCII."""


def encode_line(message: Mapping[str, Any]) -> bytes:
    """Encode a message as one line of UTF-8.

    A number that JSON lacks becomes null, half a surrogate pair U+FFFD.

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
    """Return whether writing the value takes longer than about two milliseconds. Stops as soon as that is known."""
    return is_larger(value, _VALUES, _LETTERS)


def encode_long_line(message: Mapping[str, Any]) -> bytes:
    """Encode a message like `encode_line`, in pieces that each take about two milliseconds; for a worker thread.

    One call of the encoder would block the interpreter, and with it every other thread, for as long as it runs.
    """
    return b"".join([*encode_any_pieces(message), b"\n"])


def encode_any_pieces(message: Mapping[str, Any]) -> list[bytes]:
    """Encode a message like `encode_pieces`, with null for a number that JSON lacks."""
    try:
        return encode_pieces(message)
    except (ValueError, TypeError):
        return encode_pieces(cast("Mapping[str, Any]", _to_plain(message)))


def encode_pieces(message: Mapping[str, Any], *, is_ascii: bool = False) -> list[bytes]:
    """Encode a message as JSON without a line feed, in pieces of about 64 kB; for a worker thread.

    Args:
        message: The message.
        is_ascii: Whether other characters are written as escapes.

    Raises:
        ValueError, TypeError: It has a part that JSON lacks.
    """
    encode = encode_ascii if is_ascii else _encode
    return [_to_bytes(text) for text in _join_pieces(_write_pieces(cast("Json", message), encode))]


def _join_pieces(texts: Iterator[str]) -> Iterator[str]:
    """Join texts into pieces of about `_PIECE` characters; a single longer text stays whole."""
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
    """Group items that are written at once; a large item is a group of its own."""
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
    """Replace what JSON lacks: NaN and infinities by null, other mappings by objects."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {str(key): _to_plain(one) for key, one in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_to_plain(one) for one in cast("Iterable[object]", value)]
    return cast("Json", value)


def is_deeper(value: Json, levels: int) -> bool:
    """Return whether a value is nested deeper than a number of levels.

    It is examined level by level, because brackets in a line may be part of a text.
    """
    level: list[Json] = [value]
    for _ in range(levels):
        within = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [inner for values in within for inner in values if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _find_id(line: bytes | bytearray) -> object:
    found = _ID.search(line[:_ENDS]) or _ID.search(line[-_ENDS:])
    return None if found is None else json.loads(found[1])


HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions negotiated by `initialize`, oldest first."""
MODERN_VERSIONS: Final = ("2026-07-28",)
"""Stateless revisions: every request carries its version and the client's capabilities in `_meta`."""
LATEST_HANDSHAKE_VERSION: Final = HANDSHAKE_VERSIONS[-1]
LATEST_MODERN_VERSION: Final = MODERN_VERSIONS[-1]

RESERVED_PREFIX: Final = "io.modelcontextprotocol/"
"""Prefix of the `_meta` keys that the protocol reserves; they apply to one hop."""
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
"""Lines processed per turn of the event loop, so that a flood on one connection does not block the others."""
_DIGITS = 20
"""Maximum digits of an id that is a number written as text."""
_BREATH = 0.005
"""Seconds between two such turns."""

WaitingT = TypeVar("WaitingT")
Line = bytes | bytearray
ReadLine = Callable[[Line], Any]


def error_response(number: int | str, code: int, text: str, data: object = None) -> Message:
    """Build the error response to a request."""
    error: Message = {"code": code, "message": text}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": number, "error": error}


def is_decimal(number: int | str) -> bool:
    """Return whether a text is a decimal number: some programs write every id as text."""
    return isinstance(number, str) and len(number) <= _DIGITS and number.isdecimal()


@dataclass(slots=True, eq=False, kw_only=True)
class Endpoint(Generic[WaitingT]):
    """Routes messages by kind; a subclass handles each kind."""

    waiting: dict[int | str, WaitingT] = field(default_factory=dict[int | str, WaitingT])
    """Requests that were sent and are not yet answered, in the order of sending."""
    _last_number: int = 0

    def take_request(self, number: int | str, method: str, params: Message) -> None:
        raise NotImplementedError

    def take_notification(self, method: str, params: Message) -> None:
        raise NotImplementedError

    def take_answer(self, waiting: WaitingT, message: Message) -> None:
        """Settle a sent request with the message that has its `result` or `error`."""
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
        """Process a message, or a batch of messages as one revision had; return False for what is not a message."""
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
    """Reads the lines of one connection and delivers them in order.

    A long line is read in a worker thread while the lines after it wait. While lines wait, the connection is paused.
    """

    def __init__(
        self,
        read: Callable[[Line, ReadLine], object],
        take: Callable[[Line, object], None],
        *,
        longest: float,
    ) -> None:
        self._read = read
        """Parses a line with the given parser; must not raise."""
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
        """Process bytes; raises `TooLong` for a line above the limit, after the lines before it are queued."""
        if data.find(b"\n") == len(data) - 1 <= self._longest_at_once and self._is_idle():
            # One complete line and nothing else: the usual case.
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
        """Call `when_done` once every line has been delivered, including the unfinished line `with_rest`."""
        if with_rest and (rest := self._splitter.rest()):
            self._lines.append(rest)
        self._when_done = self._when_done or when_done
        self._take_some()

    def hold(self, *, is_held: bool) -> None:
        """Stop delivering lines, or continue."""
        self._is_held = is_held
        if not is_held:
            self._take_some()

    def stop(self) -> None:
        """Drop the lines that have not been delivered."""
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
            # Of a batch, no more messages are taken in a turn than lines.
            batch = cast("list[object]", value) if value.__class__ is list else []
            for start in range(0, len(batch), _JSONRPC_AT_ONCE):
                self._take(line, batch[start : start + _JSONRPC_AT_ONCE])
                await asyncio.sleep(_BREATH)
            if not batch:
                self._take(line, value)
        finally:
            self._reading = None
        self._take_some()


# -- Running a task's next step at once
#
# A turn of the event loop costs a system call and a pass over its queues. A call through the gateway would take four
# turns: its request is read, its task starts, the server's answer is read, and the task goes on. The task's two steps
# are run directly from the callbacks that read a message, which makes it two turns. The standard event loop has a queue
# of scheduled callbacks, which is not part of its public interface. Another event loop, or one whose queue looks
# different, runs the steps in its next turn as usual.


def count_scheduled(loop: asyncio.AbstractEventLoop) -> int:
    """Return the number of callbacks that are scheduled for the loop's next turn; -1 if that is not known."""
    ready = getattr(loop, "_ready", None)
    return len(cast("deque[Any]", ready)) if isinstance(ready, deque) else -1


def run_scheduled(loop: asyncio.AbstractEventLoop, count_before: int) -> None:
    """Run the one callback that was scheduled since `count_before`, if it is one and no task is running.

    A step of a task cannot run within another task's; in that case the callback stays scheduled.
    """
    if count_before < 0:
        return
    ready = cast("deque[asyncio.Handle]", getattr(loop, "_ready", ()))
    if len(ready) == count_before + 1 and asyncio.current_task(loop) is None:
        ready.pop()._run()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]
