"""Serves MCP over streamable HTTP on `/mcp`, and on `/mcp/NAME` for the client of that name.

The server listens on the loopback interface only, unless a bearer token is set; `Host` and `Origin` are checked either
way, so that no web page reaches it by DNS rebinding. It does not encrypt: outside a trusted network, put a TLS proxy in
front of it. Requests with a valid `Host`, `Origin` and token are passed to the server of their client.

Sessions are the SDK's where the protocol has them, and inferred where it has none. A client of 2025-11-25 whose stream
ended before the answer comes back with `Last-Event-ID` and receives the events after that one. The messages of all
sessions are kept together, within limits of number and time; an answer that is not kept is replaced by an error, so
that no client waits for it forever. An event's id contains a secret of its session, so that no session can read
another's messages. On shutdown, requests that are being answered finish, and further ones are refused with 503.

HTTP connections are uvicorn's, with time limits that it lacks: a connection whose request headers do not arrive, or
whose request body arrives too slowly, is closed. The server stops through `Shutdown`, not on signals of its own.
"""

import asyncio
import ipaddress
import itertools
import math
import secrets
import socket
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast
from urllib.parse import quote, unquote

import anyio
import h11
import mcp_types
import uvicorn
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from ullage.errors import Denied, UllageError, Unavailable
from ullage.gateway import shutting_down
from ullage.ledger import AuditEvent
from ullage.processes import user_name
from ullage.tool import ANONYMOUS, Caller, is_larger

from ..jsonrpc import INTERNAL_ERROR, is_decimal
from .client_request import Request as ClientRequest
from .http_auth import LOOPBACK, PATH, AllowedHosts, Page, Tokens, refuse_beyond_loopback
from .request_handlers import (
    Activity,
    InferredSessions,
    Profiles,
    SessionEnd,
    Shutdown,
    WhoCalls,
    finish_requests,
)
from .sdk_server import TooLargeRequest, build_server, held_result, hold_large_request, is_large_mark, send_large

__all__ = ["RETRY_MS", "Front", "KeptMessages", "Listening", "ResumableSessions", "http_app", "serve_http"]

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


_LARGEST_BODY = 64 * 1024 * 1024
_MOST_PROFILES = 64
_SESSION_IDLE = 900.0
"""Seconds without a request and without an open stream after which a session ends."""
_POLL_SECONDS = 0.02
_PRINCIPAL = "ullage.principal"
_ENDS = "ullage.session_end"


class RefusalAudit:
    """Reports refused requests: wrong hosts and origins, missing and unknown tokens, wrong sign-ins.

    Anyone who reaches the port can be refused as often as they like. So at most one event a minute is reported for each
    status, and the next one says how many were refused between.
    """

    _EVERY = 60.0

    def __init__(self, app: ASGIApp, audit: Callable[[AuditEvent], None], clock: Callable[[], float]) -> None:
        self._app = app
        self._audit = audit
        self._clock = clock
        self._last: dict[int, tuple[float, int]] = {}
        """By status, the time of the last event, and the refusals since."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in _REFUSED:
                request = Request(scope)
                status = message["status"]
                now = self._clock()
                last, since = self._last.get(status, (-math.inf, 0))
                if now - last < self._EVERY:
                    self._last[status] = last, since + 1
                else:
                    self._last[status] = now, 0
                    headers, address = request.headers, request.client
                    reason = _REFUSED[status]
                    if status == 421:
                        reason += f" `{ascii(', '.join(headers.getlist('host')))[1:-1][:_SHOWN]}`"
                    elif status == 403 and "origin" in headers:
                        reason += f" `{ascii(', '.join(headers.getlist('origin')))[1:-1][:_SHOWN]}`"
                    more = f"; {since} more since the last event" if since else ""
                    self._audit(
                        AuditEvent(
                            time=datetime.fromtimestamp(now, UTC),
                            kind="refusal",
                            principal=ANONYMOUS.principal,
                            subject=f"{request.method} {request.url.path[:_SHOWN]}",
                            reason=f"HTTP {status}: {reason}, from {address.host if address else 'this machine'}{more}",
                        )
                    )
            await send(message)

        return await self._app(scope, receive, sent)


_SHOWN = 100
"""Characters of a header or a path."""
_REFUSED = {
    401: "no token or sign-in that is known",
    403: "the Origin header is not of this server:",
    421: "the Host header is not of this server:",
    429: "too many wrong codes",
}
"""Statuses of refusals, with their reasons."""


class Front:
    """Authorizes requests, and passes each to its client's server; servers are created on first use."""

    def __init__(  # noqa: PLR0913, PLR0917
        self,
        profiles: Profiles,
        client: str | None,
        tokens: Tokens | None,
        hosts: AllowedHosts,
        port: int | None,
        clock: Callable[[], float],
        on_session_end: SessionEnd | None = None,
        pages: Mapping[str, Page] | None = None,
        site: ASGIApp | None = None,
        audit: Callable[[AuditEvent], None] | None = None,
    ) -> None:
        self._pages = pages or {}
        self._audit = audit
        self._site = site
        self._profiles = profiles
        self._client = client
        self._tokens = tokens
        self._hosts = hosts
        self._port = port
        """The listening port; None to take it from each request."""
        self._clock = clock
        self._on_session_end = on_session_end
        self._user = user_name()
        self._sessions = InferredSessions()
        self._servers: dict[str | None, StreamableHTTPSessionManager] = {}
        self._opening = anyio.Lock()
        self._tasks: TaskGroup | None = None
        self._handling: dict[anyio.CancelScope, str] = {}
        """The HTTP method of each open request."""
        self._activity = Activity()
        self._kept = KeptMessages(clock, is_large_mark)
        self._is_ending = False
        self._is_cut_off = False

    def application(self) -> Starlette:
        routes: list[BaseRoute] = [Route(PATH, endpoint=self), Route(f"{PATH}/{{client}}", endpoint=self)]
        routes += [
            Route(path, endpoint=partial(self._show, page), methods=["GET"]) for path, page in self._pages.items()
        ]
        if self._site is not None:
            routes.append(Mount("/", app=partial(self._pass_to_site, self._site)))
        audits = [] if self._audit is None else [Middleware(RefusalAudit, audit=self._audit, clock=self._clock)]
        return Starlette(routes=routes, middleware=audits, lifespan=self._live)

    async def _pass_to_site(self, site: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refused = self._refuse_host(Request(scope))
        if refused is None and self._is_ending:
            refused = _error(shutting_down("takes no further requests"))
        await (refused or site)(scope, receive, send)

    def _refuse_host(self, request: Request) -> Response | None:
        """Return the refusal of a request under another host name, or from another site's page."""
        headers, bound = request.headers, request.scope.get("server")
        port = self._port if self._port is not None or bound is None else bound[1]
        refused = self._hosts.refuse(headers.getlist("host"), headers.getlist("origin"), port)
        return None if refused is None else JSONResponse(dict(refused[1].wire()), status_code=refused[0])

    async def _show(self, page: Page, request: Request) -> Response:
        if not page.is_open:
            refused = self._refuse_host(request)
            if refused is not None:
                return refused
            try:
                self._admit(request.scope, request.headers.get("authorization"))
            except UllageError as error:
                return _error(error)
        status, text = (503, '{"status": "unavailable"}') if page.is_open and self._is_ending else page.answer()
        headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        return Response(text, status_code=status, media_type=page.media_type, headers=headers)

    @asynccontextmanager
    async def _live(self, _: Starlette) -> AsyncGenerator[None]:
        async with anyio.create_task_group() as self._tasks:
            yield
            while self._is_ending and self._activity.paused and not self._is_cut_off:
                # A request whose stream has ended holds no connection that the server waits for.
                await anyio.sleep(_POLL_SECONDS)
            self._tasks.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        refused = self._refuse_host(request)
        if refused is not None:
            return await refused(scope, receive, send)
        if self._is_ending:
            response = _error(shutting_down("takes no further requests"))
            response.headers["Connection"] = "close"
            return await response(scope, receive, send)
        try:
            self._admit(scope, request.headers.get("authorization"))
            server = await self._server(request.path_params.get("client", self._client))
        except UllageError as error:
            return await _error(error)(scope, receive, send)
        return await self._handle(server, scope, receive, send)

    async def _handle(self, server: StreamableHTTPSessionManager, scope: Scope, receive: Receive, send: Send) -> None:
        is_begun = False

        async def sent(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            held = held_result(scope)
            await (send(message) if held is None else send_large(held, message, send))

        with anyio.CancelScope() as handling:
            self._handling[handling] = scope["method"]
            try:
                received = await hold_large_request(scope, receive, _LARGEST_BODY)
                await server.handle_request(scope, received, sent)
            except TooLargeRequest as error:
                await JSONResponse(error.answer, status_code=413)(scope, receive, sent)
            finally:
                del self._handling[handling]
        if handling.cancelled_caught and is_begun:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        elif handling.cancelled_caught:
            await _error(shutting_down())(scope, receive, send)

    async def finish(self, shutdown: Shutdown) -> None:
        """Refuse new requests and wait until the open ones are answered; after the grace they are answered with an
        error."""
        self._is_ending = True
        await finish_requests(self._wait_idle, self._activity, shutdown)

    async def _wait_idle(self) -> None:
        """Wait until only notification streams are open."""
        activity = self._activity
        while sum(method == "POST" for method in self._handling.values()) + activity.paused > activity.streams:
            await anyio.sleep(_POLL_SECONDS)

    def cut_off(self) -> None:
        """Cancel every request that is still open, such as notification streams."""
        self._is_cut_off = True
        for handling in tuple(self._handling):
            handling.cancel()

    def _admit(self, scope: Scope, authorization: str | None) -> None:
        if not self._tokens:
            scope[_PRINCIPAL] = self._user
            return
        name = self._tokens.name_of(authorization)
        if name is None:
            raise Denied(
                "a bearer token is needed here, and there was none that is known",
                suggestion="send the header `Authorization: Bearer TOKEN`",
            )
        scope[_PRINCIPAL] = name
        # The SDK uses this to bind a session of the earlier era to the user that opened it.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))

    async def _server(self, client: str | None) -> StreamableHTTPSessionManager:
        if client not in self._servers:
            async with self._opening:
                if client not in self._servers:
                    profile = self._profiles(client)
                    if len(self._servers) >= _MOST_PROFILES:
                        raise Unavailable(f"{_MOST_PROFILES} clients are served under names of their own already")
                    server = build_server(profile, self._who_calls(client, profile.model), self._activity)
                    # Host and Origin are checked in `__call__`, more strictly than the SDK does.
                    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
                    manager = ResumableSessions(
                        server,
                        security_settings=unchecked,
                        retry_interval=RETRY_MS,
                        max_request_body_size=_LARGEST_BODY,
                        session_idle_timeout=_SESSION_IDLE,
                    )
                    manager.kept = self._kept
                    await cast("TaskGroup", self._tasks).start(_run, manager)
                    self._servers[client] = manager
        return self._servers[client]

    def _who_calls(self, client: str | None, model: str | None) -> WhoCalls:
        def who_calls(asked: ClientRequest) -> Caller:
            request = cast("Request[Any]", asked.transport)
            principal: str = request.scope[_PRINCIPAL]
            # In the later era nothing verifies such a header, and it may name a session of another principal.
            session = None if asked.is_modern else request.headers.get("mcp-session-id")
            if session is not None and self._on_session_end is not None:
                connection = asked.connection
                if _ENDS not in connection.state:
                    connection.state[_ENDS] = session
                    connection.exit_stack.callback(self._on_session_end, principal, session)
            return Caller(
                principal=principal,
                session=session or self._sessions.of(principal, client, self._clock()),
                session_inferred=session is None,
                client=client,
                model=model,
            )

        return who_calls


async def _run(
    manager: StreamableHTTPSessionManager, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    async with manager.run():
        task_status.started()
        await anyio.sleep_forever()


def _error(error: UllageError) -> Response:
    status = 401 if isinstance(error, Denied) else 503 if isinstance(error, Unavailable) else 404
    headers = {"WWW-Authenticate": 'Bearer realm="ullage"'} if status == 401 else None
    return JSONResponse(dict(error.wire()), status_code=status, headers=headers)


_CUT_OFF = 5
"""Seconds after the grace after which uvicorn ends requests that did not react to cancellation."""
_REQUEST_WITHIN = 10.0
"""Seconds within which a request's headers must arrive, and the same again for its body."""
_BODY_RATE = 16_384
"""Bytes of a body that extend its deadline by one second: a large one may take as long as it keeps arriving."""
_TIMED_OUT = b"the request body did not arrive in time"


class _TimedProtocol(H11Protocol):
    """A connection that is closed when a request does not arrive in time: slow clients cannot block others."""

    request_within = _REQUEST_WITHIN
    body_rate = _BODY_RATE
    _timer: asyncio.TimerHandle | None = None
    _body_deadline: float | None = None
    """Deadline for the body that is arriving; None where none is."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._timer = self.loop.call_later(self.request_within, self.transport.close)

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        if self._timer is None and (before is None or before.response_complete):  # pyright: ignore[reportUnnecessaryComparison]
            self._timer = self.loop.call_later(self.request_within, self.transport.close)
        super().data_received(data)
        if self.conn.their_state is h11.SEND_BODY:
            if self._body_deadline is None or self.cycle is not before:
                self._stop_timer()
                self._body_deadline = self.loop.time() + self.request_within
                self._timer = self.loop.call_at(self._body_deadline, self._check_body)
            self._body_deadline += len(data) / self.body_rate
        elif self._body_deadline is not None or self.cycle is not before:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _stop_timer(self) -> None:
        self._body_deadline = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_body(self) -> None:
        """Close the connection when its body is overdue. Time in which the server does not read it does not count."""
        assert self._body_deadline is not None
        if self.flow.read_paused:
            self._body_deadline = self.loop.time() + self.request_within
        if self.loop.time() < self._body_deadline:
            self._timer = self.loop.call_at(self._body_deadline, self._check_body)
            return
        if self.conn.our_state is h11.SEND_RESPONSE:
            headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close")]
            events = (
                h11.Response(status_code=408, headers=headers, reason="Request Timeout"),
                h11.Data(data=_TIMED_OUT),
                h11.EndOfMessage(),
            )
            for event in events:
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class _Server(uvicorn.Server):
    """A uvicorn server that installs no signal handlers."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class Listening:
    """Accepts connections for the application until shutdown."""

    def __init__(self, front: Front, *, most_connections: int) -> None:
        settings: dict[str, Any] = {
            "lifespan": "on",
            "ws": "none",
            "http": _TimedProtocol,
            "log_level": "warning",
            "log_config": None,
        }
        self._front = front
        self._config = uvicorn.Config(front.application(), limit_concurrency=most_connections, **settings)
        self._server = _Server(self._config)

    async def serve(self, bound: socket.socket, shutdown: Shutdown) -> None:
        """Serve until shutdown, when open requests get their grace, or until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._end_when_told, shutdown)
            # uvicorn would log a traceback for each request that is cut off.
            with anyio.CancelScope(shield=True):
                await self._server.serve(sockets=[bound])
            tasks.cancel_scope.cancel()

    async def _end_when_told(self, shutdown: Shutdown) -> None:
        try:
            await shutdown.told.wait()
            self._config.timeout_graceful_shutdown = math.ceil(shutdown.grace()) + _CUT_OFF
            self._server.should_exit = True
            await self._front.finish(shutdown)
        finally:
            self._config.timeout_graceful_shutdown = self._config.timeout_graceful_shutdown or _CUT_OFF
            self._server.should_exit = True
            self._front.cut_off()


_MOST_CONNECTIONS = 1_024
"""Connections above which requests are answered with 503."""


async def serve_http(  # noqa: PLR0913
    profiles: Profiles,
    bound: socket.socket,
    *,
    client: str | None = None,
    tokens: Tokens | None = None,
    hosts: tuple[str, ...] = (),
    allow_hosts: tuple[str, ...] = (),
    clock: Callable[[], float] = time.time,
    on_session_end: SessionEnd | None = None,
    shutdown: Shutdown | None = None,
    pages: Mapping[str, Page] | None = None,
    site: ASGIApp | None = None,
    audit: Callable[[AuditEvent], None] | None = None,
) -> None:
    """Serve on a bound socket until shutdown or cancellation.

    Args:
        profiles: Returns a client's profile by name.
        bound: The bound socket.
        client: The name of a client that connects without a name in the path.
        tokens: The accepted bearer tokens; None for no authorization.
        hosts: Further names of this machine, valid on the bound port.
        allow_hosts: Names under which a proxy is reached, as `NAME` or `NAME:PORT`. Without a port it is 80, 443 or the
            bound one.
        pages: Pages served beside MCP, by path.
        site: Answers every other path, once `Host` and `Origin` are checked. It authorizes requests itself.
        audit: Called with refused requests, at most once a minute for each HTTP status.
    """
    own, port = bound.getsockname()[:2]
    if not tokens:
        refuse_beyond_loopback(own)
    # HTTP's modules are imported only here: the other verbs do not wait for them.
    allowed = AllowedHosts.build((*_names_of(own), *hosts), allow_hosts)
    front = _front(profiles, client, tokens, allowed, port, clock, on_session_end, pages, site, audit)
    listening = Listening(front, most_connections=_MOST_CONNECTIONS)
    await listening.serve(bound, shutdown or Shutdown())


def http_app(  # noqa: PLR0913
    profiles: Profiles,
    *,
    client: str | None = None,
    tokens: Tokens | None = None,
    hosts: tuple[str, ...] | None = None,
    clock: Callable[[], float] = time.time,
    on_session_end: SessionEnd | None = None,
    pages: Mapping[str, Page] | None = None,
    site: ASGIApp | None = None,
    audit: Callable[[AuditEvent], None] | None = None,
) -> Starlette:
    """Return the server as an ASGI application, to be mounted in another one.

    `hosts` are the names under which it is reached, as `NAME` or `NAME:PORT`; None for those of the loopback interface
    on the port that the other application listens on; `audit` is that of `serve_http`.
    """
    allowed = AllowedHosts.build(LOOPBACK) if hosts is None else AllowedHosts.build((), hosts)
    return _front(profiles, client, tokens, allowed, None, clock, on_session_end, pages, site, audit).application()


def _front(  # noqa: PLR0913, PLR0917
    profiles: Profiles,
    client: str | None,
    tokens: Tokens | None,
    hosts: AllowedHosts,
    port: int | None,
    clock: Callable[[], float],
    on_session_end: SessionEnd | None,
    pages: Mapping[str, Page] | None = None,
    site: ASGIApp | None = None,
    audit: "Callable[[AuditEvent], None] | None" = None,
) -> Front:
    return Front(profiles, client, tokens, hosts, port, clock, on_session_end, pages, site, audit)


def _names_of(own: str) -> tuple[str, ...]:
    """Return the names of this machine that lead to the bound address."""
    if own in LOOPBACK:
        return LOOPBACK
    if not ipaddress.ip_address(own).is_unspecified:
        return (own,)
    name = socket.gethostname()
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(name, None)}
    except OSError:
        found = set[str]()
    return (*LOOPBACK, name, *sorted(found))
