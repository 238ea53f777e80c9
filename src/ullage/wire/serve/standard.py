"""How are standard input and output read and written without holding anyone up?

Pipes and sockets, which is what clients use, are waited for by the event loop itself; a thread for each line would
cost more than the call it carries. Terminals and files, which cannot be waited for so, get a thread. What is on a line
is not known here.
"""

import os
import select
import stat
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress

import anyio
from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token
from anyio.streams.memory import MemoryObjectSendStream

from ullage.escaping import escape_json_controls

__all__ = ["Output", "claim_input", "claim_output", "lines"]

_CHUNK = 65_536
_AT_ONCE = 4_096 if sys.platform == "win32" else select.PIPE_BUF
"""Bytes that a pipe which can be written to takes without blocking."""


def claim_input() -> int:
    """Standard input under a number of its own; what child processes find in its place is empty."""
    private = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return private


def claim_output() -> int:
    """Standard output under a number of its own; what anyone else prints goes to standard error."""
    private = os.dup(1)
    os.dup2(2, 1)
    return private


class Output:
    """Writes text to a descriptor, as the SDK expects a file to."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_terminal = os.isatty(descriptor)
        self._writing = anyio.Lock(fast_acquire=True)
        if sys.platform != "win32":
            self._poll = select.poll()
            self._poll.register(descriptor, select.POLLOUT)

    async def write(self, text: str) -> None:
        if self._is_terminal:
            text = escape_json_controls(text)
        async with self._writing:
            await self._write(memoryview(text.encode()))

    async def _write(self, rest: memoryview) -> None:
        try:
            while rest:
                await self._writable()
                rest = rest[os.write(self._descriptor, rest[:_AT_ONCE]) :]
        except OSError as error:
            # Whoever read this has gone, and the end of the input will say so too.
            raise anyio.ClosedResourceError from error

    async def _writable(self) -> None:
        """Untested on Windows, where a pipe cannot be waited for: a client that does not read holds up the rest."""
        if sys.platform != "win32" and not self._poll.poll(0):
            await anyio.wait_writable(self._descriptor)

    def is_abandoned(self) -> bool:
        """Whether the other end was closed, so that nobody can read what is written; never True on Windows."""
        if sys.platform == "win32":  # pragma: no cover
            return False
        gone = select.POLLERR | select.POLLHUP | select.POLLNVAL
        return any(events & gone for _, events in self._poll.poll(0))


async def lines(descriptor: int) -> AsyncIterator[str]:
    """The lines of a descriptor, the last one whether or not it is ended."""
    parts: list[bytes] = []
    async for chunk in _waited_for(descriptor) if _can_be_waited_for(descriptor) else _pumped(descriptor):
        first, *more = chunk.split(b"\n")
        parts.append(first)
        for part in more:
            yield b"".join(parts).decode("utf-8", "replace")
            parts = [part]
    if any(parts):
        yield b"".join(parts).decode("utf-8", "replace")


def _can_be_waited_for(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


async def _waited_for(descriptor: int) -> AsyncIterator[bytes]:
    with suppress(OSError):  # a socket that was reset has ended
        while True:
            await anyio.wait_readable(descriptor)
            chunk = os.read(descriptor, _CHUNK)
            if not chunk:
                return
            yield chunk


async def _pumped(descriptor: int) -> AsyncIterator[bytes]:
    """A thread that nobody waits for reads: with the SDK's own reader, Ctrl-C waits for one more line."""
    send, receive = anyio.create_memory_object_stream[bytes](0)
    threading.Thread(target=_pump, args=(descriptor, send, current_token()), daemon=True).start()
    async with receive:
        async for chunk in receive:
            yield chunk


def _pump(descriptor: int, send: MemoryObjectSendStream[bytes], token: EventLoopToken) -> None:
    with suppress(anyio.BrokenResourceError, anyio.RunFinishedError):
        with suppress(OSError):  # a terminal that has vanished has ended
            while chunk := os.read(descriptor, _CHUNK):
                from_thread.run(send.send, chunk, token=token)
        from_thread.run(send.aclose, token=token)
