"""Serve MCP on standard input and output.

Nothing but protocol goes to standard output; messages for people go to standard error. Every request that was read is
answered before the process ends: when the input ends the calls in flight finish first, and when Ullage is told to end
they have `shutdown_grace` seconds for it and are answered with an error otherwise.
"""

import uuid
from collections import Counter
from contextlib import suppress

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from ullage.gateway import shutting_down
from ullage.tool import Caller

from ..halves import whole
from .profile import Profile
from .refusal import refusal
from .serve import Context, build_server, user_name
from .shutdown import Activity, Shutdown, finish_requests
from .standard import Output, claim_input, claim_output, lines
from .unread import read_message

__all__ = ["serve_stdio"]

_FLUSH_SECONDS = 2.0
"""Time for the last answers to be written to a client that is slow to read them."""
_POLL_SECONDS = 0.02


async def serve_stdio(profile: Profile, *, client: str | None = None, shutdown: Shutdown | None = None) -> None:
    """Serve until standard input ends or `shutdown` tells to, and every request is answered.

    The process is the session.
    """
    caller = Caller(principal=user_name(), session=uuid.uuid4().hex, client=client, model=profile.model)
    activity = Activity()

    def who_calls(_: Context) -> Caller:
        return caller

    server = build_server(profile.source, profile.identity, who_calls, activity)
    transport = _Transport(claim_input(), Output(claim_output()), activity, shutdown or Shutdown())
    async with anyio.create_task_group() as writing:
        # It ends with the last answer, when the server has closed its end of the stream, also where all is cancelled.
        writing.start_soon(transport.write)
        try:
            async with anyio.create_task_group() as reading:
                reading.start_soon(transport.read)
                reading.start_soon(transport.end_when_told)
                await server.run(transport.incoming, transport.outgoing, server.create_initialization_options())
                reading.cancel_scope.cancel()
        finally:
            transport.flushing.deadline = anyio.current_time() + _FLUSH_SECONDS


class _Transport:
    """The SDK's two streams over two descriptors, and what is unanswered on them."""

    incoming: MemoryObjectReceiveStream[SessionMessage | Exception]
    outgoing: MemoryObjectSendStream[SessionMessage]

    def __init__(self, descriptor: int, output: Output, activity: Activity, shutdown: Shutdown) -> None:
        self._descriptor = descriptor
        self._output = output
        self._activity = activity
        self._shutdown = shutdown
        self._read, self.incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self.outgoing, self._written = anyio.create_memory_object_stream[SessionMessage](0)
        self._unanswered: Counter[str] = Counter()
        """Requests of the client by id. An id that is used twice is answered twice."""
        self._asked: dict[str, RequestId] = {}
        """Requests to the client that it has not answered."""
        self._input_ended = False
        self._reading = anyio.CancelScope()
        self.flushing = anyio.CancelScope(shield=True)
        """Around the writer, whose time ends a while after the server has."""

    async def read(self) -> None:
        """Pass the client's messages on until its input ends; then wait until its requests are answered."""
        async with self._read:
            with self._reading:
                async for line in lines(self._descriptor):
                    await self._receive(whole(line))  # The SDK drops a request for half a character in it.
                self._input_ended = True
                for identity in tuple(self._asked.values()):
                    await self._refuse_question(identity)
                while not self._is_idle() and not self._output.is_abandoned():
                    await anyio.sleep(_POLL_SECONDS)
                await finish_requests(self._is_idle, self._activity, self._shutdown)

    async def end_when_told(self) -> None:
        await self._shutdown.told.wait()
        await finish_requests(self._is_idle, self._activity, self._shutdown)
        self._reading.cancel()

    def _is_idle(self) -> bool:
        return self._unanswered.total() == 0

    async def _receive(self, line: str) -> None:
        message = read_message(line)
        if isinstance(message, tuple):
            for refused in message:
                await self._write_line(refused)
            return
        if isinstance(message, JSONRPCRequest):
            if self._shutdown.told.is_set():
                error = refusal(shutting_down("takes no further requests"), modern=True).error
                await self._write_line(_to_line(JSONRPCError(jsonrpc="2.0", id=message.id, error=error)))
                return
            if message.method != "subscriptions/listen":
                self._unanswered[str(message.id)] += 1
        elif isinstance(message, JSONRPCNotification):
            if message.method == "notifications/cancelled":
                # The client no longer waits for it, and may not be sent an answer.
                self._answered((message.params or {}).get("requestId"))
        else:
            self._asked.pop(str(message.id), None)
        await self._read.send(SessionMessage(message))

    def _answered(self, identity: object) -> None:
        key = str(identity)
        if self._unanswered[key] > 1:
            self._unanswered[key] -= 1
        else:
            del self._unanswered[key]

    async def write(self) -> None:
        """Write the server's messages until it has closed its end of the stream."""
        with self.flushing, self._written:
            async for sent in self._written:
                message = sent.message
                await self._write_line(_to_line(message))
                if isinstance(message, JSONRPCResponse | JSONRPCError):
                    self._answered(message.id)
                elif isinstance(message, JSONRPCRequest):
                    self._asked[str(message.id)] = message.id
                    if self._input_ended:
                        await self._refuse_question(message.id)

    async def _write_line(self, line: str) -> None:
        """Write a line; drop it where the client has stopped reading, so that no call waits."""
        with suppress(anyio.ClosedResourceError):
            await self._output.write(line)

    async def _refuse_question(self, identity: RequestId) -> None:
        """Answer a request to the client in its place, where it can no longer answer."""
        self._asked.pop(str(identity), None)
        error = ErrorData(code=CONNECTION_CLOSED, message="the client has closed its input and cannot answer")
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await self._read.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=identity, error=error)))


def _to_line(message: JSONRPCMessage) -> str:
    return message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
