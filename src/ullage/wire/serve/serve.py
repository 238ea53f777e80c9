"""How does one source become an MCP server?

One low-level server speaks both eras of the protocol: the stateless one of 2026-07-28 and the handshake ones before it.
What the source offers besides tools is offered, and nothing else. It knows neither stdio nor HTTP nor what tools do.
"""

import getpass
import os
from collections.abc import Callable
from typing import Any, cast

import mcp_types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server

from ullage.tool import Listing, ToolSource

from .answering import Answering, WhoCalls
from .envelope import FRESH_MS, Envelope
from .line import Context
from .offers import Offers, offers_of
from .profile import Identity
from .shutdown import Activity

__all__ = ["Context", "Identity", "WhoCalls", "build_server", "user_name"]


def user_name() -> str:
    """The operating system's name for whoever runs this; a number where it has none, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def build_server(
    source: ToolSource, identity: Identity, who_calls: WhoCalls, activity: Activity | None = None
) -> Server[Any]:
    offers = offers_of(source)
    envelope = Envelope(identity.name, identity.version, identity.spoken, offers.capabilities)
    answering = Answering(source, offers, who_calls, activity or Activity(), envelope)
    server: Server[Any] = Server(
        identity.name,
        version=identity.version,
        lifespan=answering.live,
        cache_hints={cast("Any", method): CacheHint(ttl_ms=fresh) for method, fresh in FRESH_MS.items()},
    )
    server.middleware.append(envelope)
    answering.when_listed = _schemas_for(server)
    _register(server, answering, offers)
    return server


def _register(server: Server[Any], answering: Answering, offers: Offers) -> None:
    add = server.add_request_handler
    add("tools/list", mcp_types.PaginatedRequestParams, answering.list_tools)
    add("tools/call", mcp_types.CallToolRequestParams, answering.call_tool)
    if offers.resources is not None:
        add("resources/list", mcp_types.PaginatedRequestParams, answering.list_resources)
        add("resources/templates/list", mcp_types.PaginatedRequestParams, answering.list_templates)
        add("resources/read", mcp_types.ReadResourceRequestParams, answering.read_resource)
    if offers.prompts is not None:
        add("prompts/list", mcp_types.PaginatedRequestParams, answering.list_prompts)
        add("prompts/get", mcp_types.GetPromptRequestParams, answering.get_prompt)
    if offers.completion is not None:
        add("completion/complete", mcp_types.CompleteRequestParams, answering.complete)
    if offers.log is not None:
        add("logging/setLevel", mcp_types.SetLevelRequestParams, answering.set_level)
    if offers.watched is not None:
        add("subscriptions/listen", mcp_types.SubscriptionsListenRequestParams, answering.listen)
        server.add_notification_handler(
            "notifications/initialized", mcp_types.NotificationParams, answering.initialized
        )
    if offers.watched is not None and offers.subscribed is not None and offers.resources is not None:
        add("resources/subscribe", mcp_types.SubscribeRequestParams, answering.subscribe)
        add("resources/unsubscribe", mcp_types.UnsubscribeRequestParams, answering.unsubscribe)


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
