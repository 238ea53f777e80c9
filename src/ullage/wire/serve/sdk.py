"""The MCP SDK's server in front of a source, for HTTP.

The SDK rebuilds every result from its own types: keys that those do not know vanish, and a result that does not fit
them becomes an internal error. Its last word belongs to a server's middleware, so a handler leaves the real result here
and returns an empty one for the SDK to check, and the middleware puts the real one in its place. Params are checked by
the SDK. The SDK offers only typed ways to a client, so its private parts are touched in this file, and only here.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import mcp_types
from mcp.server.caching import CacheHint
from mcp.server.connection import Connection as SdkConnection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError, NoBackChannelError
from pydantic import ValidationError

from ullage.errors import ClientCannot, ProtocolError
from ullage.tool import JsonObject, Listing

from ..jsonrpc import INTERNAL_ERROR, Message
from ..protocol import MODERN_VERSIONS
from .answering import Answering, Handler, Live, WhoCalls
from .content import COMPLETE
from .envelope import FRESH_MS, Envelope
from .large_bodies import hold_large_result, withheld_params
from .offers import offers_of
from .params import check_params
from .profile import Profile
from .refusal import RefusedRequest
from .request import Connection, Request
from .serve import envelope_of
from .shutdown import Activity

__all__ = ["build_server"]

_log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]

_CONNECTION = "ullage.connection"
_IS_DECLARED = "ullage.is_declared"
_PARAMS: Mapping[str, type[Any]] = {
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
"""Results that the SDK accepts, by method; of others it is shown the real one."""
_INTRODUCTIONS = ("initialize", "server/discover")


def build_server(profile: Profile, who_calls: WhoCalls, activity: Activity | None = None) -> Server[Any]:
    """A server of the SDK that answers from a profile's source, in both eras of the protocol."""
    source, identity = profile.source, profile.identity
    offers = offers_of(source)
    envelope = envelope_of(identity, offers)
    answering = Answering(source, offers, who_calls, activity or Activity())
    answering.when_met = profile.when_met

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
    results = _Results(envelope)
    server.middleware.append(results)
    answering.when_listed = _schemas_for(server)
    for method, handler in answering.handlers().items():
        server.add_request_handler(method, _PARAMS[method], results.adapt(handler))
    server.add_notification_handler("notifications/initialized", mcp_types.NotificationParams, initialized)
    return server


class SdkRequest(Request):
    """A request in a context of the SDK."""

    __slots__ = ("_outbound", "_session")

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
        # What is sent here arrives beside the answer of this request, not on a stream that may not exist.
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

    async def report_progress(self, done: float, total: float | None, message: str | None) -> None:
        await self._session.report_progress(done, total, message)


def _connection_of(context: Context) -> Connection:
    """Our view of the client's connection, made once for as long as it lasts."""
    theirs: SdkConnection = context.session._connection  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001
    ours: Connection | None = theirs.state.get(_CONNECTION)
    if ours is None:
        ours = theirs.state[_CONNECTION] = Connection(theirs.notify, exit_stack=theirs.exit_stack)
    declared = theirs.client_capabilities
    if declared is not None and not ours.state.get(_IS_DECLARED):
        # They come with `initialize`, which need not be the first message.
        ours.state[_IS_DECLARED] = True
        ours.capabilities = declared.model_dump(by_alias=True, mode="json", exclude_none=True)
    return ours


class _Results:
    """Middleware that puts the real results in the place of those that the SDK has checked."""

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
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
            seen = await call_next(ctx)
        except (MCPError, ValidationError):
            raise
        except Exception as error:
            # The edge: what no one foresaw is logged here, and the client learns no more than that it happened.
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


def _schemas_for(server: Server[Any]) -> Callable[[Listing | None], None]:
    """Over HTTP the SDK compares headers with a tool's schema; unless told one, it lists all tools for every call."""
    revision: str | None = None

    def listed(listing: Listing | None) -> None:
        nonlocal revision
        if listing is None:
            revision = server.get_tool_input_schema = None
        elif listing.revision != revision:
            revision = listing.revision
            server.get_tool_input_schema = {tool.name: tool.input_schema for tool in listing.tools}.get

    return listed
