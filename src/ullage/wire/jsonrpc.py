"""One end of a JSON-RPC connection, towards a client or towards a server.

It routes what comes in, matches answers to the requests that were sent, and hands in lines in their order without
holding up the event loop. It knows no method, starts nothing and reads from nowhere.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar, cast

import anyio.to_thread

from .freeing import LEAST, keep_until_unused
from .json_lines import LONG, LineSplitter, read_line, read_long_line

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "Endpoint",
    "Line",
    "LineReader",
    "Message",
    "ReadLine",
    "error_response",
    "is_decimal",
]

Message = dict[str, Any]

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

_AT_ONCE = 200
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
        try:
            self._lines.extend(self._splitter.split(data))
        finally:
            self._take_some()

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
        while self._lines and self._reading is None and not self._is_held and taken < _AT_ONCE:
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
