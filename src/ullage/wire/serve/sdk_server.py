"""The MCP SDK's server in front of a source, for HTTP.

The SDK rebuilds every result from its own types: keys that those do not know vanish, and a result that does not fit
them becomes an internal error. A server's middleware runs last, so a handler stores the real result here and returns an
empty one for the SDK to check, and the middleware substitutes the real one. Params are checked by the SDK. The SDK
offers only typed ways to reach a client, so this file, and only this one, uses its private parts.

Large bodies of HTTP requests and answers are read and written outside the SDK, which parses a request and writes a
result in one call each. That takes 100 ms and more at 15 MB, and blocks every other client. A large result is therefore
encoded in pieces in a worker thread, the SDK writes a short mark in its place, and `send_large` replaces the mark by
the pieces. A large request is parsed in a worker thread too; the SDK receives a copy of it without the large parts of
`arguments` and `inputResponses`, and `withheld_params` returns these to the handler of the request. Both are kept in
the request's ASGI scope.
"""

import json
import logging
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import anyio.lowlevel
import anyio.to_thread
import mcp_types
from mcp.server.caching import CacheHint
from mcp.server.connection import Connection as SdkConnection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError, NoBackChannelError
from pydantic import ValidationError
from starlette.types import Message as AsgiMessage
from starlette.types import Receive, Scope, Send

from ullage.errors import ClientCannot, ProtocolError
from ullage.tool import ClientDeclaration, JsonObject, Listing

from ..jsonrpc import (
    CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    LEAST,
    LONG,
    MODERN_VERSIONS,
    Message,
    TooDeep,
    encode_any_pieces,
    error_response,
    is_large,
    keep_until_unused,
    read_long_line,
)
from .client_request import Connection, RefusedRequest, Request, check_params
from .mcp_content import COMPLETE, FRESH_MS, Envelope
from .request_handlers import Activity, Answering, Handler, Live, Profile, WhoCalls, envelope_of, era_name

__all__ = [
    "TooLargeRequest",
    "build_server",
    "held_result",
    "hold_large_request",
    "hold_large_result",
    "is_large_mark",
    "send_large",
    "withheld_params",
]

_RESULT = "ullage.large_result"
_PARAMS = "ullage.withheld_params"
_IS_PAUSED = "ullage.is_paused"
"""Set where the stream of a request was ended, so that its answer is sent on another one."""
_MARK = "dev.ullage/large_result"
_NO_JSON = b"{"
"""A body that the SDK refuses as it would have refused the large one."""


class TooLargeRequest(Exception):
    """A request is large outside its `arguments` and `inputResponses`; `answer` is the error to send."""

    def __init__(self, number: object) -> None:
        text = "a request may be large in its `arguments` and `inputResponses` alone"
        super().__init__(text)
        self.answer = error_response(cast("int | str", number), INVALID_REQUEST, text)


@dataclass(slots=True)
class HeldResult:
    """An encoded result, and the mark that the SDK writes in its place."""

    mark: bytes
    pieces: deque[bytes]
    growth: int
    """Bytes by which the answer grows when the pieces replace the mark."""


async def hold_large_result(scope: Scope, result: Message) -> Message:
    """Return the result itself, or a mark in its place where writing it would take long."""
    if _IS_PAUSED in scope or not is_large(result):
        return result
    pieces = await anyio.to_thread.run_sync(encode_any_pieces, result)
    marked = {_MARK: secrets.token_hex(16)}
    mark = json.dumps(marked, separators=(",", ":")).encode()
    scope[_RESULT] = HeldResult(mark, deque(pieces), sum(map(len, pieces)) - len(mark))
    return marked


def is_large_mark(result: object) -> bool:
    """Return whether a result only marks the place of a large one."""
    return isinstance(result, dict) and _MARK in result


def held_result(scope: Scope) -> HeldResult | None:
    return scope.get(_RESULT)


async def send_large(held: HeldResult, message: AsgiMessage, send: Send) -> None:
    """Send a part of an answer, with the stored result in place of its mark."""
    if message["type"] == "http.response.start":
        headers = [
            (name, str(int(value) + held.growth).encode() if name.lower() == b"content-length" else value)
            for name, value in message.get("headers", ())
        ]
        return await send({**message, "headers": headers})
    before, mark, after = message.get("body", b"").partition(held.mark)
    if not mark:
        return await send(message)
    await send({"type": "http.response.body", "body": before, "more_body": True})
    while held.pieces:
        await send({"type": "http.response.body", "body": held.pieces.popleft(), "more_body": True})
        await anyio.lowlevel.checkpoint()
    return await send({**message, "body": after})


async def hold_large_request(scope: Scope, receive: Receive, most: int) -> Receive:
    """Return what the SDK is to receive: the request itself, or a small copy of a large one.

    A body of more than `most` bytes is passed to the SDK, which refuses it.

    Raises:
        TooLargeRequest: No small copy can be made.
    """
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    if scope["method"] != "POST" or (length.isdigit() and not LONG < int(length) <= most):
        return receive
    body, received = bytearray(), deque[AsgiMessage]()
    while len(body) <= most:
        message = await receive()
        received.append(message)
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    last = received[-1]
    if LONG < len(body) <= most and last["type"] == "http.request":
        small = await anyio.to_thread.run_sync(_read, scope, body)
        if len(body) > LEAST:
            keep_until_unused(scope.get(_PARAMS))
        if small is not None:
            received = deque[AsgiMessage]([{"type": "http.request", "body": small, "more_body": False}])

    async def receive_again() -> AsgiMessage:
        return received.popleft() if received else await receive()

    return receive_again


def _read(scope: Scope, body: bytearray) -> bytes | None:
    """Return a small body in place of a large request, whose large parts are withheld; None for what is no request."""
    try:
        message: object = read_long_line(body)
    except (ValueError, TooDeep):
        return _NO_JSON
    if not isinstance(message, dict):
        return None
    request = cast("Message", message)
    params: object = request.get("params")
    if "method" not in request or not isinstance(params, dict):
        return None
    small = dict(cast("Message", params))
    withheld: Message = {}
    for key in ("arguments", "inputResponses"):
        if is_large(small.get(key)):
            withheld[key] = small.pop(key)
    arguments: object = withheld.get("arguments")
    if isinstance(arguments, dict):
        # Small values stay, since the SDK compares some of them with headers.
        rest = {name: one for name, one in cast("Message", arguments).items() if not is_large(one)}
        small["arguments"] = {} if is_large(rest) else rest
    if is_large(small):
        raise TooLargeRequest(request.get("id"))
    scope[_PARAMS] = withheld
    return json.dumps({**request, "params": small}).encode()


def withheld_params(transport: object) -> dict[str, Any]:
    """Return the params that were withheld from the SDK for the request on this HTTP request."""
    return getattr(transport, "scope", {}).get(_PARAMS) or {}


_log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]

_CONNECTION = "ullage.connection"
_IS_DECLARED = "ullage.is_declared"
_SDK_PARAMS: Mapping[str, type[Any]] = {
    "tools/list": mcp_types.PaginatedRequestParams,
    "tools/call": mcp_types.CallToolRequestParams,
    "resources/list": mcp_types.PaginatedRequestParams,
    "resources/templates/list": mcp_types.PaginatedRequestParams,
    "resources/read": mcp_types.ReadResourceRequestParams,
    "resources/subscribe": mcp_types.SubscribeRequestParams,
    "resources/unsubscribe": mcp_types.UnsubscribeRequestParams,
    "prompts/list": mcp_types.PaginatedRequestParams,
    "prompts/get": mcp_types.GetPromptRequestParams,
    "completion/complete": mcp_types.CompleteRequestParams,
    "logging/setLevel": mcp_types.SetLevelRequestParams,
    "subscriptions/listen": mcp_types.SubscriptionsListenRequestParams,
}
_EMPTY: Mapping[str, Mapping[str, Any]] = {
    "tools/list": {"tools": []},
    "tools/call": {"content": []},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": []},
    "prompts/list": {"prompts": []},
    "prompts/get": {"messages": []},
    "completion/complete": {"completion": {"values": []}},
}
"""By method, results that the SDK accepts; for other methods it gets the real one."""
_INTRODUCTIONS = ("initialize", "server/discover")


def build_server(profile: Profile, who_calls: WhoCalls, activity: Activity | None = None) -> Server[Any]:
    """Create an SDK server that answers from a profile's source, in both eras of the protocol."""
    source, identity = profile.source, profile.identity
    envelope = envelope_of(profile)
    answering = Answering(source, who_calls, activity or Activity())
    answering.when_met = profile.when_met
    answering.when_roots_changed = profile.when_roots_changed
    answering.tracer = profile.tracer

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncGenerator[Live]:
        async with answering.live() as live:
            yield live

    async def initialized(context: Context, _: object) -> None:
        if context.protocol_version not in MODERN_VERSIONS:
            answering.initialized(_connection_of(context), context.lifespan_context)

    server: Server[Any] = Server(
        identity.name,
        version=identity.version,
        lifespan=lifespan,
        cache_hints={cast("Any", method): CacheHint(ttl_ms=fresh) for method, fresh in FRESH_MS.items()},
    )

    async def roots_changed(context: Context, _: object) -> None:
        if context.protocol_version not in MODERN_VERSIONS:
            answering.roots_changed(SdkRequest(context))

    results = _Results(envelope, profile)
    server.middleware.append(results)
    answering.when_listed = _schemas_for(server)
    for method, handler in answering.handlers().items():
        server.add_request_handler(method, _SDK_PARAMS[method], results.adapt(handler))
    server.add_notification_handler("notifications/initialized", mcp_types.NotificationParams, initialized)
    server.add_notification_handler("notifications/roots/list_changed", mcp_types.NotificationParams, roots_changed)
    return server


class SdkRequest(Request):
    """A request in a context of the SDK."""

    __slots__ = ("_end_stream", "_outbound", "_scope", "_session")

    def __init__(self, context: Context) -> None:
        super().__init__(
            context.method,
            dict(context.params or {}),
            number=context.request_id,
            is_modern=context.protocol_version in MODERN_VERSIONS,
            connection=_connection_of(context),
            transport=context.request,
        )
        withheld = withheld_params(context.request)
        if withheld:
            self.params |= withheld
            check_params(self.method, self.params, is_modern=self.is_modern)
        self._session = context.session
        self._end_stream = context.close_sse_stream
        self._scope: Scope = {} if context.request is None else context.request.scope
        # Sent with the answer of this request, not on a stream that may not exist.
        self._outbound = context.session._request_outbound  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        try:
            return await self._outbound.send_raw_request(method, params)
        except NoBackChannelError as error:
            raise ClientCannot(f"this client cannot be asked for `{method}` in the middle of a request") from error
        except MCPError as error:
            raise ProtocolError(error.message, number=error.code, data=error.data) from error

    async def notify(self, method: str, params: Message | None = None) -> None:
        await self._outbound.notify(method, params)

    async def pause(self) -> bool:
        if self._end_stream is None:
            return False
        self._scope[_IS_PAUSED] = True
        await self._end_stream()
        return True

    async def report_progress(self, done: float, total: float | None, message: str | None) -> None:
        await self._session.report_progress(done, total, message)


def _connection_of(context: Context) -> Connection:
    """Return the connection object of this client, created once per connection."""
    theirs: SdkConnection = context.session._connection  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001
    ours: Connection | None = theirs.state.get(_CONNECTION)
    if ours is None:
        ours = theirs.state[_CONNECTION] = Connection(theirs.notify, exit_stack=theirs.exit_stack)
        ours.version = context.protocol_version
    declared = theirs.client_capabilities
    if declared is not None and not ours.state.get(_IS_DECLARED):
        # They arrive with `initialize`, which need not be the first message.
        ours.state[_IS_DECLARED] = True
        ours.capabilities = declared.model_dump(by_alias=True, mode="json", exclude_none=True)
        info = None if theirs.client_params is None else theirs.client_params.client_info
        ours.client_info = {} if info is None else info.model_dump(by_alias=True, mode="json", exclude_none=True)
    return ours


class _Results:
    """Middleware that substitutes the real results for those that the SDK has checked."""

    def __init__(self, envelope: Envelope, profile: Profile) -> None:
        self._envelope = envelope
        self._profile = profile
        self._whole: dict[int, Message | None] = {}

    def adapt(self, handler: Handler) -> Callable[[Context, Any], Any]:
        async def handle(context: Context, _: object) -> Any:  # noqa: ANN401 - what the SDK takes
            try:
                request = SdkRequest(context)
                result = await handler(request, context.lifespan_context)
            except RefusedRequest as refused:
                raise MCPError(refused.code, refused.message, refused.data) from refused
            if request.is_modern:
                self._envelope.seal(request.method, result)
            if id(context) not in self._whole or request.method not in _EMPTY:
                return result
            self._whole[id(context)] = result
            return {"resultType": COMPLETE, **_EMPTY[request.method]}

        return handle

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        key = id(ctx)
        self._whole[key] = None
        try:
            if ctx.method in _INTRODUCTIONS:
                params: Message = dict(ctx.params or {})
                is_modern = ctx.method != "initialize"
                said, keys = params, ("clientInfo", "capabilities")
                if is_modern:
                    said, keys = cast("Message", params.get("_meta") or {}), (CLIENT_INFO_KEY, CAPABILITIES_KEY)
                info, capabilities = (said.get(key) for key in keys)
                client = ClientDeclaration(
                    info=cast("JsonObject", info) if isinstance(info, dict) else {},
                    capabilities=_as_declared(cast("Message", capabilities)) if isinstance(capabilities, dict) else {},
                )
                self._profile.when_met(era_name(is_modern=is_modern), client)
                await self._profile.before_introduction()
            seen = await call_next(ctx)
        except (MCPError, ValidationError):
            raise
        except Exception as error:
            # Unexpected errors are logged here; the client learns only that there was one.
            _log.exception("answering `%s` failed", ctx.method)
            raise MCPError(INTERNAL_ERROR, "Internal error") from error
        finally:
            whole = self._whole.pop(key)
        if ctx.method in _INTRODUCTIONS and isinstance(seen, dict):
            # Instructions and capabilities as they are now, which the SDK cannot know.
            rest = {name: value for name, value in seen.items() if name != "instructions"}
            return rest | self._envelope.introduction()
        if whole is None:
            return seen
        return whole if ctx.request is None else await hold_large_result(ctx.request.scope, whole)


def _as_declared(capabilities: Message) -> JsonObject:
    """Return capabilities as the SDK parses them, so that both forms identify the same client."""
    try:
        declared = mcp_types.ClientCapabilities.model_validate(capabilities)
    except ValidationError:
        return {}
    return declared.model_dump(by_alias=True, mode="json", exclude_none=True)


def _schemas_for(server: Server[Any]) -> Callable[[Listing | None], None]:
    """Return a function that sets the tools whose schemas the SDK compares with HTTP headers.

    Without it, the SDK lists all tools for every call.
    """
    revision: str | None = None

    def listed(listing: Listing | None) -> None:
        nonlocal revision
        if listing is None:
            revision = server.get_tool_input_schema = None
        elif listing.revision != revision:
            revision = listing.revision
            server.get_tool_input_schema = {tool.name: tool.input_schema for tool in listing.tools}.get

    return listed
