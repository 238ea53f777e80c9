"""How does one source of tools become an MCP server?

One low-level server speaks both eras of the protocol: the stateless one of 2026-07-28 and the handshake ones before it.
It knows neither stdio nor HTTP, nor what the tools do.
"""

import getpass
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import mcp_types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from ullage.errors import UllageError, UnknownTool
from ullage.tool import Call, Caller, Json, Progress, Reply, ToolSource

from .content import COMPLETE, error_reply, reply_to_wire, tool_to_wire

__all__ = ["Activity", "Context", "Identity", "WhoCalls", "build_server", "user_name"]

Context = ServerRequestContext[Any, Any]
WhoCalls = Callable[[Context], Caller]
"""Tells the caller from the transport's own facts, never from what the client says of itself."""

_LIST_FRESH_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What the server says of itself."""

    name: str
    version: str
    instructions: str | None = None


@dataclass(slots=True)
class Activity:
    """How many requests are being answered."""

    open: int = 0

    @contextmanager
    def one(self) -> Generator[None, None, None]:
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1


def user_name() -> str:
    """The operating system's name for whoever runs this; a number where it has none, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def build_server(
    source: ToolSource, identity: Identity, who_calls: WhoCalls, activity: Activity | None = None
) -> Server[dict[str, Any]]:
    activity = Activity() if activity is None else activity

    async def list_tools(_: Context, __: mcp_types.PaginatedRequestParams | None) -> Any:  # noqa: ANN401
        with activity.one():
            listing = await source.tools()
        return {"resultType": COMPLETE, "tools": [tool_to_wire(tool) for tool in listing.tools]}

    async def call_tool(context: Context, params: mcp_types.CallToolRequestParams) -> Any:  # noqa: ANN401
        with activity.one():
            return reply_to_wire(await _answer(source, _call(context, params, who_calls)))

    return Server(
        identity.name,
        version=identity.version,
        instructions=identity.instructions,
        cache_hints={"tools/list": CacheHint(ttl_ms=_LIST_FRESH_MS, scope="private")},
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _answer(source: ToolSource, call: Call) -> Reply:
    try:
        return await source.call(call)
    except UnknownTool as error:
        # The protocol's own error, as it demands; the error's shape rides along for those who read `data`.
        raise MCPError(mcp_types.INVALID_PARAMS, error.message, dict(error.wire())) from error
    except UllageError as error:
        return error_reply(error)


def _call(context: Context, params: mcp_types.CallToolRequestParams, who_calls: WhoCalls) -> Call:
    return Call(
        tool=params.name,
        arguments=params.arguments or {},
        caller=who_calls(context),
        meta=_meta(context),
        progress=_progress(context),
        answers=_raw(context, "inputResponses", {}),
        state=params.request_state,
    )


def _raw(context: Context, key: str, default: Any) -> Any:  # noqa: ANN401
    """A key of the request as it came, before the SDK's types dropped what they do not know."""
    return (context.params or {}).get(key) or default


def _meta(context: Context) -> dict[str, Json]:
    return dict(_raw(context, "_meta", {}))


def _progress(context: Context) -> Progress | None:
    return context.session.report_progress if "progressToken" in _meta(context) else None
