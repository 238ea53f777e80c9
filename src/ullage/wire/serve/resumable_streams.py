"""Resumable answer streams over HTTP for clients of 2025-11-25.

A client whose stream ended before the answer comes back with `Last-Event-ID`, and receives the events after that one.
A stream ends early where the network fails, and where a server behind ends its own stream to Ullage: that is passed on,
so that the client waits in the same way.

The messages of all sessions are kept together, within limits of number and time. An answer that is not kept is replaced
by an error, so that no client waits for it forever. An event's id contains a secret of its session, so that no session
can read another's messages.
"""

import itertools
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote

import anyio
import mcp_types
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from ullage.tool import is_larger

from ..jsonrpc import INTERNAL_ERROR, is_decimal

__all__ = ["RETRY_MS", "KeptMessages", "ResumableSessions"]

RETRY_MS = 500
"""Milliseconds after which a client is asked to come back."""
_MOST = 200
_MOST_LARGE = 10
"""Number of messages of more than `_LARGE` characters or values that are kept."""
_LARGE = 20_000
_MOST_LOST = 2_000
"""Number of answers of which at least their loss is kept."""
_SECONDS = 300.0
"""Seconds for which a message is kept."""

Answer = mcp_types.JSONRPCResponse | mcp_types.JSONRPCError


@dataclass(frozen=True, slots=True)
class Kept:
    """A message of a session, as it is sent to a client that comes back."""

    number: int
    session: str
    stream: StreamId
    message: mcp_types.JSONRPCMessage
    time: float
    is_large: bool


@dataclass(slots=True)
class KeptMessages:
    """The latest messages to all clients."""

    clock: Callable[[], float]
    is_placeholder: Callable[[object], bool]
    """Whether a result only stands for a larger one that is sent in its place."""
    _messages: deque[Kept] = field(default_factory=deque[Kept])
    _lost: deque[Kept] = field(default_factory=lambda: deque[Kept](maxlen=_MOST_LOST))
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def next_number(self) -> int:
        return next(self._numbers)

    def keep(self, session: str, stream: StreamId, message: mcp_types.JSONRPCMessage) -> int:
        """Keep a message, and return its number."""
        content = _content(message)
        is_large = is_larger(content, _LARGE, _LARGE)
        kept = Kept(self.next_number(), session, stream, message, self.clock(), is_large)
        if self.is_placeholder(content):
            self._drop(kept)
        else:
            self._messages.append(kept)
        while self._messages and (len(self._messages) > _MOST or kept.time - self._messages[0].time > _SECONDS):
            self._drop(self._messages.popleft())
        large = [one for one in self._messages if one.is_large] if is_large else []
        for one in large[:-_MOST_LARGE]:
            self._messages.remove(one)
            self._drop(one)
        return kept.number

    def _drop(self, kept: Kept) -> None:
        """Forget a message, but not that an answer was given."""
        if isinstance(kept.message, Answer):
            text = "the connection ended before the answer had arrived, and the answer is no longer kept"
            error = mcp_types.ErrorData(code=INTERNAL_ERROR, message=text)
            self._lost.append(
                replace(kept, message=mcp_types.JSONRPCError(jsonrpc="2.0", id=kept.message.id, error=error))
            )

    def after(self, number: int, session: str, stream: StreamId) -> list[Kept]:
        """Return the messages of a stream after the one of that number."""
        found = [
            one
            for one in (*self._messages, *self._lost)
            if one.number > number and one.session == session and one.stream == stream
        ]
        return sorted(found, key=lambda one: one.number)


def _content(message: mcp_types.JSONRPCMessage) -> object:
    match message:
        case mcp_types.JSONRPCResponse():
            return message.result
        case mcp_types.JSONRPCError():
            return message.error.data
        case _:
            return message.params


class SessionEvents(EventStore):
    """The events of one session."""

    def __init__(self, kept: KeptMessages) -> None:
        self._kept = kept
        self._session = secrets.token_hex(8)
        self._came = anyio.Event()

    async def store_event(self, stream_id: StreamId, message: mcp_types.JSONRPCMessage | None) -> EventId:
        number = self._kept.next_number() if message is None else self._kept.keep(self._session, stream_id, message)
        came, self._came = self._came, anyio.Event()
        came.set()
        return f"{self._session}.{number}.{quote(stream_id, safe='')}"

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        """Send the later events, and those that come, up to the answer.

        The SDK would send those to come itself. But it misses one that comes between the two, and it keeps the stream
        open after the answer. So None is returned, which ends the stream.
        """
        session, number, stream = [*last_event_id.split(".", 2), "", ""][:3]
        if session != self._session or not is_decimal(number):
            return None
        last, stream_id = int(number), unquote(stream)
        while True:
            came = self._came
            for one in self._kept.after(last, session, stream_id):
                last = one.number
                await send_callback(EventMessage(one.message, f"{session}.{last}.{stream}"))
                if isinstance(one.message, Answer):
                    return None
            await came.wait()


class ResumableSessions(StreamableHTTPSessionManager):
    """The SDK's sessions over HTTP, each with a store of events of its own.

    The SDK gives all its sessions one store, in which streams of several sessions have the same name.
    """

    kept: KeptMessages | None = None

    @property
    def event_store(self) -> EventStore | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """A new store, which the SDK asks for once for each session."""
        return None if self.kept is None else SessionEvents(self.kept)

    @event_store.setter
    def event_store(self, _: EventStore | None) -> None: ...
