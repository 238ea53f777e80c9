"""Standard input and output, read and written without blocking the event loop.

Pipes and sockets, which clients use, are watched by the event loop itself; a thread or a task for each line would cost
more than the call on it. Terminals and files cannot be watched, and get a thread.

Lines are parsed into a client's messages. If a line that cannot be parsed still shows the id of a request, that request
is answered with an error, so that the client does not wait endlessly; a line without a request is dropped.
"""

import asyncio
import json
import os
import re
import select
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, cast

from ullage.control_characters import escape_json_controls

from ..jsonrpc import INVALID_REQUEST, PARSE_ERROR, Line, Message, ReadLine, TooDeep, error_response, read_line

__all__ = ["Input", "Output", "read_message"]

_CHUNK = 65_536
_AT_ONCE = 4_096 if sys.platform == "win32" else select.PIPE_BUF
"""Bytes that a writable pipe takes without blocking."""
_ONE_TURN = 262_144
"""Bytes written per turn of the event loop."""
_MUCH = 1_048_576
"""Unwritten bytes beyond which senders of notifications wait."""


def _can_be_watched(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


class Output:
    """Writes lines to a descriptor in order, at once where it takes them.

    On Windows a pipe cannot be watched, and a client that does not read blocks the rest (untested there).
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_terminal = os.isatty(descriptor)
        self._is_watched = self._is_terminal or _can_be_watched(descriptor)
        """Whether the event loop signals when it is writable; a file always is."""
        self._queue: deque[memoryview] = deque()
        self._room = asyncio.Event()
        self.unwritten = 0
        """Bytes that the client has not read yet."""
        self.is_abandoned = False
        """Whether the reading end is closed."""
        self.when_changed: Callable[[], None] = lambda: None
        """Called when unwritten bytes were written, and when the other end was closed."""
        if self._is_watched:
            self._poll = select.poll()
            self._poll.register(descriptor, select.POLLOUT)

    def send(self, line: bytes) -> None:
        """Write a line, now or as soon as the client reads; dropped once the reading end is closed."""
        if self.is_abandoned:
            return
        if self._is_terminal:
            line = escape_json_controls(line.decode()).encode()
        rest = memoryview(line)
        if not self._queue:
            rest = self._write(rest)
            if not rest or self.is_abandoned:
                return
            asyncio.get_running_loop().add_writer(self._descriptor, self._go_on)
        self._queue.append(rest)
        self.unwritten += len(rest)

    async def wait_for_room(self) -> None:
        """Wait until little is unwritten, or the reading end is closed."""
        while self.unwritten > _MUCH:
            self._room.clear()
            await self._room.wait()

    def watch_closing(self) -> None:
        """Watch for the closing of a pipe's other end; without this it is noticed only when writing."""
        if self._is_watched and stat.S_ISFIFO(os.fstat(self._descriptor).st_mode) and not self.is_abandoned:
            asyncio.get_running_loop().add_reader(self._descriptor, self._look)

    def close(self) -> None:
        """Stop writing."""
        self._abandon()

    def _look(self) -> None:
        gone = select.POLLERR | select.POLLHUP | select.POLLNVAL
        if any(events & gone for _, events in self._poll.poll(0)):
            self._abandon()

    def _write(self, rest: memoryview) -> memoryview:
        """Write what is taken without blocking; return the rest."""
        turn = _ONE_TURN
        try:
            while rest and (not self._is_watched or (turn > 0 and self._poll.poll(0))):
                written = os.write(self._descriptor, rest[:_AT_ONCE])
                rest = rest[written:]
                turn -= written
        except BlockingIOError:
            # The descriptor was set to non-blocking by its owner, and is full.
            pass
        except OSError:
            # The reading end is closed; the end of the input will follow.
            self._abandon()
        return rest

    def _go_on(self) -> None:
        rest = self._queue.popleft()
        left = self._write(rest)
        if self.is_abandoned:
            return
        self.unwritten -= len(rest) - len(left)
        if left:
            self._queue.appendleft(left)
        elif not self._queue:
            asyncio.get_running_loop().remove_writer(self._descriptor)
        self._room.set()
        self.when_changed()

    def _abandon(self) -> None:
        if self.is_abandoned:
            return
        self.is_abandoned = True
        self._queue.clear()
        self.unwritten = 0
        with suppress(OSError, ValueError, NotImplementedError):
            loop = asyncio.get_running_loop()
            loop.remove_writer(self._descriptor)
            loop.remove_reader(self._descriptor)
        self._room.set()
        self.when_changed()


class Input:
    """Reads chunks of bytes from a descriptor and passes them on as they arrive."""

    def __init__(self, descriptor: int, feed: Callable[[bytes], None], when_ended: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._feed = feed
        self._when_ended = when_ended
        self._is_watched = _can_be_watched(descriptor)
        self._go_on = threading.Event()
        self._is_stopped = False

    def start(self) -> None:
        self._go_on.set()
        if self._is_watched:
            asyncio.get_running_loop().add_reader(self._descriptor, self._read)
        else:
            # A daemon thread: otherwise Ctrl-C would wait for one more line.
            threading.Thread(target=self._pump, args=(asyncio.get_running_loop(),), daemon=True).start()

    def pause(self) -> None:
        self._go_on.clear()
        if self._is_watched and not self._is_stopped:
            asyncio.get_running_loop().remove_reader(self._descriptor)

    def resume(self) -> None:
        self._go_on.set()
        if self._is_watched and not self._is_stopped:
            asyncio.get_running_loop().add_reader(self._descriptor, self._read)

    def stop(self) -> None:
        if not self._is_stopped:
            self.pause()
            self._is_stopped = True

    def _read(self) -> None:
        try:
            chunk = os.read(self._descriptor, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # a socket that was reset has ended
            chunk = b""
        self._take_chunk(chunk)

    def _take_chunk(self, chunk: bytes) -> None:
        if self._is_stopped:
            return
        if chunk:
            self._feed(chunk)
        else:
            self.stop()
            self._when_ended()

    def _pump(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # the event loop was closed
            chunk = b" "
            while chunk:
                self._go_on.wait()
                try:
                    chunk = os.read(self._descriptor, _CHUNK)
                except OSError:  # a terminal that has vanished has ended
                    chunk = b""
                taken = threading.Event()
                loop.call_soon_threadsafe(self._take_chunk_from_thread, chunk, taken)
                taken.wait()

    def _take_chunk_from_thread(self, chunk: bytes, taken: threading.Event) -> None:
        try:
            self._take_chunk(chunk)
        finally:
            taken.set()


_LONGEST_NUMBER = 300
"""Maximum digits of an id; Python refuses to parse integers of more than some thousands."""
_SCALAR = r'"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"'
_ID = r'"id"\s*:\s*(?P<id>-?\d{1,18}|"[^"\\]*")'
_LEADING = re.compile(rf"\s*\{{\s*(?:{_SCALAR}\s*,\s*)*{_ID}\s*,")
_TRAILING = re.compile(rf",\s*{_ID}\s*(?:,\s*{_SCALAR}\s*)*\}}\s*\Z")
_END = 4096
"""Characters at the end of a line in which the members after `params` are."""
_UNREADABLE = "Parse error: it is not JSON, or nested too deeply, or has a number that is too long"
_INVALID = "Invalid request: send one JSON-RPC 2.0 request, with an object for `params`"


def read_message(line: Line, read: ReadLine = read_line) -> Message | tuple[Message, ...]:
    """Parse a line into a message; for a line that cannot be parsed, return the errors to answer."""
    try:
        value = read(line)
    except (TooDeep, ValueError, RecursionError):
        code, text = PARSE_ERROR, _UNREADABLE
    else:
        if isinstance(value, dict) and _is_message(cast("Message", value)):
            return cast("Message", value)
        code, text = INVALID_REQUEST, _INVALID
    return tuple(error_response(number, code, text) for number in _find_ids(line.decode("utf-8", "replace")))


def _is_message(value: Message) -> bool:
    if value.get("jsonrpc") != "2.0":
        return False
    if "method" in value:
        return isinstance(value["method"], str) and isinstance(value.get("params"), dict | None)
    if isinstance(value.get("result"), dict):
        number = value.get("id")
        return isinstance(number, int | str) and not isinstance(number, bool)
    return isinstance(value.get("error"), dict)


def _find_ids(line: str) -> Iterator[int | str]:
    """Yield the ids of the requests on a line."""
    try:
        value: Any = json.loads(line, parse_int=lambda digits: int(digits) if len(digits) < _LONGEST_NUMBER else None)
    except (ValueError, RecursionError):
        found = _LEADING.match(line) or _TRAILING.search(line, max(0, len(line) - _END))
        if found is not None:
            yield json.loads(found["id"])
        return
    for one in cast("list[Any]", value) if isinstance(value, list) else [value]:
        said = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        identity = said.get("id")
        if "method" in said and isinstance(identity, int | str) and not isinstance(identity, bool):
            yield identity
