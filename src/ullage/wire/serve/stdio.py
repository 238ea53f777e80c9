"""Serve MCP on standard input and output.

Only protocol messages are written to standard output; messages for people go to standard error. Every request that was
read is answered before the process exits: when the input ends, the calls in flight finish first, and on shutdown they
have `shutdown_grace` seconds to finish and are answered with an error otherwise.

`Core` implements the protocol on one duplex connection, in both eras, without the SDK. The client's first request
decides the era: one that names its version in `_meta` opens a stateless connection of 2026-07-28, anything else a
connection of the earlier era with its handshake. A later request of the other era is refused. Every accepted request is
answered exactly once, unless the client withdraws it; `wait_idle` returns when all are answered.
"""

import asyncio
import logging
import math
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import cast

import anyio
import anyio.to_thread

from ullage.errors import ClientCannot, ProtocolError, UllageError
from ullage.gateway import shutting_down
from ullage.processes import user_name
from ullage.start_cache import digest_of_tools
from ullage.start_session import Handover, claim_input, claim_output
from ullage.tool import Caller, Change, ClientDeclaration, JsonObject

from ..jsonrpc import (
    CONNECTION_CLOSED,
    HANDSHAKE_VERSIONS,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    LATEST_HANDSHAKE_VERSION,
    MODERN_VERSIONS,
    UNSUPPORTED_VERSION,
    Endpoint,
    Line,
    LineReader,
    Message,
    count_scheduled,
    encode_line,
    encode_long_line,
    error_response,
    is_decimal,
    is_large,
    run_scheduled,
)
from .client_request import (
    Connection,
    RefusedRequest,
    Request,
    check_envelope,
    check_params,
    has_envelope,
    invalid_params,
    refusal,
    unknown_method,
)
from .mcp_content import Envelope
from .request_handlers import (
    Activity,
    Answering,
    Handler,
    Live,
    Profile,
    Shutdown,
    WhoCalls,
    envelope_of,
    era_name,
    finish_requests,
)
from .standard_streams import Input, Output, read_message

__all__ = ["Core", "serve_descriptors", "serve_stdio"]

_log = logging.getLogger(__name__)

_EARLY = 8
"""Maximum notifications before the first request that are kept until it has decided the era."""
_CLEANUP_SECONDS = 5.0
"""Seconds for the callbacks at a connection's end."""
_CLOSED = "the client has closed its input and cannot answer"


class _OpenRequest(Request):
    """A request that is being answered."""

    __slots__ = ("_is_cancelled", "core", "has_begun", "is_answered", "is_withdrawn", "task")

    def __init__(self, core: "Core", number: int | str, method: str, params: Message, *, is_modern: bool) -> None:
        super().__init__(method, params, number=number, is_modern=is_modern, connection=core.connection)
        self.core = core
        self.task: asyncio.Task[None] | None = None
        self.has_begun = False
        """Whether its task runs; a task that is cancelled before would not even answer with an error."""
        self._is_cancelled = False
        self.is_answered = False
        self.is_withdrawn = False
        """Whether the client withdrew it; it is then not answered."""

    def cancel(self) -> None:
        """End the work on it. Cancelling the task costs no call anything, unlike a cancel scope around each."""
        self._is_cancelled = True
        if self.has_begun and self.task is not None:
            self.task.cancel()

    def begin(self) -> None:
        """Called within its task; raises `CancelledError` if it was cancelled before."""
        self.has_begun = True
        if self._is_cancelled:
            raise asyncio.CancelledError

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        if self.is_modern or self.is_answered:
            raise ClientCannot(f"this client cannot be asked for `{method}` in the middle of a request")
        return await self.core.ask(method, params)

    async def notify(self, method: str, params: Message | None = None) -> None:
        if not self.is_answered:
            await self.core.notify(method, params)


@dataclass(slots=True, eq=False, kw_only=True)
class Core(Endpoint["asyncio.Future[Message]"]):
    """One client's connection to one server."""

    answering: Answering
    envelope: Envelope
    live: Live
    output: Output
    is_ending: Callable[[], bool] = lambda: False
    """Whether further requests are refused because the server is shutting down."""
    connection: Connection = field(init=False)
    _handlers: Mapping[str, Handler] = field(init=False)
    _is_modern: bool | None = None
    """None before the first request."""
    _is_initialized: bool = False
    _early: list[tuple[str, Message]] = field(default_factory=list[tuple[str, Message]])
    _open: dict[int | str, _OpenRequest] = field(default_factory=dict[int | str, _OpenRequest])
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _unanswered: int = 0
    """Number of requests, other than open streams, that are not yet answered."""
    _stirred: asyncio.Event = field(default_factory=asyncio.Event)
    _input_ended: bool = False

    def __post_init__(self) -> None:
        self.connection = Connection(self.notify)
        self._handlers = self.answering.handlers()
        self.output.when_changed = self.stir

    def take(self, read: object) -> None:
        """Process what `read_message` returned for a line: a message, or the errors to answer."""
        if isinstance(read, tuple):
            for error in cast("tuple[Message, ...]", read):
                self._send(error)
        else:
            self.received(read)

    def take_request(self, number: int | str, method: str, params: Message) -> None:
        try:
            if self._is_modern is None:
                self._meet(is_modern=method != "initialize" and has_envelope(params))
                early, self._early = self._early, []
                for one in early:
                    self.take_notification(*one)
            request = _OpenRequest(self, number, method, params, is_modern=self._is_modern is True)
            handler = self._route(request)
        except RefusedRequest as refused:
            self._send(error_response(number, refused.code, refused.message, refused.data))
            return
        except Exception:  # noqa: BLE001 - last resort: instructions and capabilities come from other packages
            _log.exception("answering `%s` failed", method)
            self._send(error_response(number, INTERNAL_ERROR, "Internal error"))
            return
        if handler is not None:
            # Two requests with one id are both answered; a withdrawal applies to the later one.
            self._open[_key(number)] = request
            self._unanswered += method != "subscriptions/listen"
            loop = asyncio.get_running_loop()
            scheduled = count_scheduled(loop)
            request.task = loop.create_task(self._answer(request, handler))
            self._tasks.add(request.task)
            run_scheduled(loop, scheduled)

    def take_notification(self, method: str, params: Message) -> None:
        if self._is_modern is None and len(self._early) < _EARLY:
            self._early.append((method, params))
        elif method == "notifications/cancelled":
            # The client no longer waits for this request, and must not be sent an answer.
            number = params.get("requestId")
            is_number = isinstance(number, int | str) and not isinstance(number, bool)
            request = self._open.get(_key(cast("int | str", number))) if is_number else None
            if request is not None and not request.is_withdrawn:
                request.is_withdrawn = True
                self._count_answered(request)
                request.cancel()
        elif method == "notifications/initialized" and self._is_modern is False:
            self._is_initialized = True
            self.answering.initialized(self.connection, self.live)
        elif method == "notifications/roots/list_changed" and self._is_modern is False:
            self.answering.roots_changed(_OpenRequest(self, 0, method, params, is_modern=False))

    def take_answer(self, waiting: "asyncio.Future[Message]", message: Message) -> None:
        if waiting.done():
            return
        result, error = message.get("result"), message.get("error")
        if isinstance(result, dict):
            waiting.set_result(cast("Message", result))
            return
        said = cast("Message", error) if isinstance(error, dict) else {}
        code, text = said.get("code"), said.get("message")
        waiting.set_exception(
            ProtocolError(
                text if isinstance(text, str) else "the client answered with an error",
                number=code if isinstance(code, int) else INTERNAL_ERROR,
                data=said.get("data"),
            )
        )

    def _meet(self, *, is_modern: bool) -> None:
        self._is_modern = is_modern
        self.answering.when_met(era_name(is_modern=is_modern), None)

    def _route(self, request: _OpenRequest) -> Handler | None:
        """Return the handler of a request; None where it has been answered at once."""
        if self.is_ending():
            raise refusal(shutting_down("takes no further requests"), modern=True)
        method, params = request.method, request.params
        if request.is_modern:
            if method == "initialize":
                asked = params.get("protocolVersion")
                supported: Message = {"supported": list(MODERN_VERSIONS)}
                raise RefusedRequest(
                    UNSUPPORTED_VERSION,
                    "connection is serving the 2026-07-28 protocol; the initialize handshake is not accepted",
                    {**supported, "requested": asked} if isinstance(asked, str) else supported,
                )
            check_envelope(params)
        elif method != "initialize" and has_envelope(params):
            raise RefusedRequest(
                INVALID_REQUEST,
                "this connection serves the handshake protocol era; "
                "requests carrying the 2026-07-28 envelope are not accepted on it",
            )
        check_params(method, params, is_modern=request.is_modern)
        result = self._answer_at_once(method, params)
        if result is not None:
            self._send({"jsonrpc": "2.0", "id": request.number, "result": result})
            return None
        handler = self._handlers.get(method)
        if handler is None:
            raise unknown_method(method)
        if not request.is_modern and not self._is_initialized:
            raise invalid_params()
        return handler

    def _answer_at_once(self, method: str, params: Message) -> Message | None:
        match method:
            case "ping":
                return {}
            case "server/discover":
                return self.envelope.discovery()
            case "initialize":
                self._accept(params)
                return self.envelope.initialization(self.connection.version or LATEST_HANDSHAKE_VERSION)
            case _:
                return None

    def _accept(self, params: Message) -> None:
        self._is_initialized = True
        asked: str = params["protocolVersion"]
        self.connection.version = asked if asked in HANDSHAKE_VERSIONS else LATEST_HANDSHAKE_VERSION
        declared: Message = params["capabilities"]
        self.connection.capabilities = {
            ability: {part: value for part, value in cast("Message", parts).items() if value is not None}
            for ability, parts in declared.items()
            if isinstance(parts, dict)
        }
        info = params.get("clientInfo")
        self.connection.client_info = cast("JsonObject", info) if isinstance(info, dict) else {}
        client = ClientDeclaration(info=self.connection.client_info, capabilities=self.connection.capabilities)
        self.answering.when_met("handshake", client)

    async def _answer(self, request: _OpenRequest, handler: Handler) -> None:
        number = cast("int | str", request.number)
        line: bytes | None = None
        try:
            request.begin()
            response = await self._respond(request, handler)
            if is_large(response):
                line = await anyio.to_thread.run_sync(_encode, response, encode_long_line)
            else:
                line = _encode(response, encode_line)
        finally:
            if self._open.get(_key(number)) is request:
                del self._open[_key(number)]
            request.is_answered = True
            if not request.is_withdrawn:
                closed = error_response(number, CONNECTION_CLOSED, "Connection closed")
                self.output.send(line or encode_line(closed))
                self._count_answered(request)
            # Here instead of in a callback, which would take one more turn of the event loop.
            self._tasks.discard(cast("asyncio.Task[None]", request.task))

    async def _respond(self, request: _OpenRequest, handler: Handler) -> Message:
        number = cast("int | str", request.number)
        try:
            result = await handler(request, self.live)
        except RefusedRequest as refused:
            return error_response(number, refused.code, refused.message, refused.data)
        except Exception:  # noqa: BLE001 - last resort
            # Unexpected errors are logged here; the client learns only that there was one.
            _log.exception("answering `%s` failed", request.method)
            return error_response(number, INTERNAL_ERROR, "Internal error")
        if request.is_modern:
            self.envelope.seal(request.method, result)
        return {"jsonrpc": "2.0", "id": number, "result": result}

    def _count_answered(self, request: _OpenRequest) -> None:
        self._unanswered -= request.method != "subscriptions/listen"
        if not self._unanswered:
            self._stirred.set()

    def _send(self, message: Message) -> None:
        self.output.send(_encode(message, encode_line))

    async def notify(self, method: str, params: Message | None = None) -> None:
        """Send a notification; waits while the client has much unread output."""
        message: Message = {"jsonrpc": "2.0", "method": method}
        self._send(message if params is None else {**message, "params": params})
        if self.output.unwritten:
            await self.output.wait_for_room()

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send the client a request and wait for its result; on cancellation the request is withdrawn."""
        if self._input_ended:
            raise ProtocolError(_CLOSED, number=CONNECTION_CLOSED)
        number = self.next_number()
        message: Message = {"jsonrpc": "2.0", "id": number, "method": method}
        answer = self.waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._send({**message, "params": dict(params)} if params else message)
            return await answer
        except asyncio.CancelledError:
            cancelled = {"requestId": number, "reason": "caller cancelled"}
            self._send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
            raise
        finally:
            self.waiting.pop(number, None)

    def end_input(self) -> None:
        """Handle the end of the input: open requests to the client fail."""
        self._input_ended = True
        for waiting in tuple(self.waiting.values()):
            if not waiting.done():
                waiting.set_exception(ProtocolError(_CLOSED, number=CONNECTION_CLOSED))

    def stir(self) -> None:
        """Wake the tasks that wait for idleness."""
        self._stirred.set()

    async def wait_idle(self) -> None:
        """Wait until every request has been answered and every answer written."""
        while self._unanswered or self.output.unwritten:
            self._stirred.clear()
            await self._stirred.wait()

    async def wait_idle_or_abandoned(self) -> None:
        """Wait like `wait_idle`, or until the reading end of the output is closed."""
        while (self._unanswered or self.output.unwritten) and not self.output.is_abandoned:
            self._stirred.clear()
            await self._stirred.wait()

    async def close(self, seconds: float) -> None:
        """End and answer streams and other open requests, and give the client some seconds to read the last answers."""
        self.live.announcer.close()
        self.end_input()
        with anyio.CancelScope(shield=True):
            if self._tasks:
                # A stream ends by itself; any other request is ended and answered with an error.
                streams = {one for one in self._open.values() if one.method == "subscriptions/listen"}
                for request in set(self._open.values()) - streams:
                    request.cancel()
                await asyncio.wait(tuple(self._tasks), timeout=seconds)
                for task in tuple(self._tasks):
                    task.cancel()
            with anyio.move_on_after(seconds):
                await self.wait_idle()
            with anyio.move_on_after(_CLEANUP_SECONDS):
                try:
                    await self.connection.exit_stack.aclose()
                except Exception:  # noqa: BLE001 - the edge
                    _log.exception("cleaning up after a connection failed")

    def adopt(self, handover: Handover) -> None:
        """Take over a connection on which requests have been answered before the server was loaded."""
        self.output.send(handover.outgoing)
        if handover.initialize is not None:
            self._meet(is_modern=False)
            self._accept(handover.initialize)
            if handover.tools_digest is not None:
                # The client has requested the tools, so it is initialized, whether or not that message has arrived yet.
                self.answering.initialized(self.connection, self.live)
        elif handover.protocol_version in MODERN_VERSIONS:
            self._meet(is_modern=True)

    async def correct_tools(self, tools_digest: str) -> None:
        """Announce that the tools changed, if they differ from those sent before.

        Args:
            tools_digest: `digest_of_tools` of the list that was sent.
        """
        with suppress(RefusedRequest, UllageError):
            tools = await self.answering.tools(modern=self._is_modern is True)
            if digest_of_tools(tools) != tools_digest:
                self.live.announcer.owe(Change("tools"))


def _encode(message: Message, encode: Callable[[Message], bytes]) -> bytes:
    """Encode a message as a line. If it cannot be written as JSON, return an error, or nothing for a notification."""
    try:
        return encode(message)
    except (ValueError, TypeError, RecursionError):
        _log.exception("a message cannot be written as JSON")
        is_answer = "id" in message and "method" not in message
        return encode_line(error_response(message["id"], INTERNAL_ERROR, "Internal error")) if is_answer else b""


def _key(number: int | str) -> int | str:
    """Return the key of a request's id: some clients write a number as text when they withdraw a request."""
    return int(number) if is_decimal(number) else number


_FLUSH_SECONDS = 2.0
"""Seconds for writing the last answers to a client that is slow to read them."""
_MOST_UNWRITTEN = 64 * 1024 * 1024
"""Unread bytes of answers beyond which no more of the client's requests are read."""


async def serve_stdio(
    profile: Profile,
    *,
    client: str | None = None,
    shutdown: Shutdown | None = None,
    handover: Handover | None = None,
) -> None:
    """Serve until standard input ends or `shutdown` is set, and every request is answered.

    The process is the session.

    Args:
        profile: The source and its introduction.
        client: The client name that the user set by a flag.
        shutdown: When and how to shut down.
        handover: A connection on which the start module has already answered requests; None for a new one.
    """
    caller = Caller(principal=user_name(), session=uuid.uuid4().hex, client=client, model=profile.model)

    def who_calls(_: Request) -> Caller:
        return caller

    reader = claim_input() if handover is None else handover.reader
    writer = claim_output() if handover is None else handover.writer
    await serve_descriptors(profile, who_calls, reader, writer, shutdown=shutdown, handover=handover)


async def serve_descriptors(  # noqa: PLR0913 - `serve_stdio` in its parts
    profile: Profile,
    who_calls: WhoCalls,
    reader: int,
    writer: int,
    *,
    shutdown: Shutdown | None = None,
    handover: Handover | None = None,
) -> None:
    """Serve one client on two descriptors, which stay open."""
    activity, shutdown, output = Activity(), shutdown or Shutdown(), Output(writer)
    answering = Answering(profile.source, who_calls, activity)
    answering.when_met = profile.when_met
    answering.when_roots_changed = profile.when_roots_changed
    answering.tracer = profile.tracer
    async with answering.live() as live:
        core = Core(
            answering=answering,
            envelope=envelope_of(profile),
            live=live,
            output=output,
            is_ending=shutdown.told.is_set,
        )
        reading = _Reading(reader, core)
        try:
            async with anyio.create_task_group() as tasks:
                reading.start(handover)
                if handover is not None and handover.tools_digest is not None:
                    tasks.start_soon(core.correct_tools, handover.tools_digest)
                tasks.start_soon(_end_when_told, core, activity, shutdown, tasks.cancel_scope)
                await reading.ended.wait()
                output.watch_closing()
                await core.wait_idle_or_abandoned()
                await finish_requests(core.wait_idle, activity, shutdown)
                tasks.cancel_scope.cancel()
        finally:
            reading.stop()
            await core.close(_FLUSH_SECONDS)
            output.close()


async def _end_when_told(core: Core, activity: Activity, shutdown: Shutdown, serving: anyio.CancelScope) -> None:
    await shutdown.told.wait()
    await finish_requests(core.wait_idle, activity, shutdown)
    serving.cancel()


class _Reading:
    """Passes the client's lines to the core; paused while the client does not read its answers."""

    def __init__(self, descriptor: int, core: Core) -> None:
        self._core = core
        self._lines = LineReader(read_message, self._take, longest=math.inf)
        self._input = Input(descriptor, self._lines.feed, self._input_ended)
        self._lines.pause, self._lines.resume = self._input.pause, self._input.resume
        self.ended = anyio.Event()

    def start(self, handover: Handover | None) -> None:
        if handover is None or not handover.is_ended:
            self._input.start()
        if handover is not None:
            self._core.adopt(handover)
            self._lines.feed(b"".join(line.rstrip(b"\n") + b"\n" for line in handover.lines) + handover.rest)
            if handover.is_ended:
                self._input.stop()
                self._input_ended()

    def stop(self) -> None:
        self._input.stop()
        self._lines.stop()

    def _take(self, _: Line, message: object) -> None:
        core, output = self._core, self._core.output
        core.take(message)
        if output.unwritten > _MOST_UNWRITTEN:
            self._lines.hold(is_held=True)
            output.when_changed = self._go_on

    def _go_on(self) -> None:
        output = self._core.output
        if output.unwritten < _MOST_UNWRITTEN:
            output.when_changed = self._core.stir
            self._lines.hold(is_held=False)
        self._core.stir()

    def _input_ended(self) -> None:
        self._lines.finish(self._all_taken, with_rest=True)

    def _all_taken(self) -> None:
        self._core.end_input()
        self.ended.set()
