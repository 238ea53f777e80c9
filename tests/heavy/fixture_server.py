"""Which server has everything that the protocol's conformance suite asks a server for?

This one: `python fixture_server.py` speaks on standard input and output, `--http PORT` at http://127.0.0.1:PORT/mcp,
both eras of the protocol on each. It is made to be put behind a gateway.
"""

import argparse
import json
import re
import socket
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import mcp_types
import uvicorn
from mcp import MCPError
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPDeprecationWarning

sys.path.insert(0, str(Path(__file__).parent))
from fixture_content import RESOURCES, TEMPLATE, WORDS, Object
from fixture_tools import Context, Fixture, NotYet, Turn

Result = Any
"""A result as the SDK takes it: one of its own, or the JSON with its `resultType`."""
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")


@dataclass(frozen=True, slots=True)
class Handlers:
    """One method a request."""

    fixture: Fixture

    async def list_tools(self, _: Context, __: object) -> Result:
        return _complete(tools=self.fixture.tools())

    async def call_tool(self, context: Context, params: mcp_types.CallToolRequestParams) -> Result:
        try:
            answer = await self.fixture.answer(params.name, _turn(context, params.arguments, params.request_state))
        except NotYet as question:
            return question.result
        return _complete(**answer)

    async def list_prompts(self, _: Context, __: object) -> Result:
        return _complete(prompts=self.fixture.prompts())

    async def get_prompt(self, context: Context, params: mcp_types.GetPromptRequestParams) -> Result:
        try:
            blocks = await self.fixture.prompt(params.name, _turn(context, params.arguments, params.request_state))
        except NotYet as question:
            return question.result
        return _complete(messages=[{"role": "user", "content": block} for block in blocks])

    async def list_resources(self, _: Context, __: object) -> Result:
        return _complete(resources=[{"uri": uri, "name": uri, "description": f"At {uri}."} for uri in RESOURCES])

    async def list_templates(self, _: Context, __: object) -> Result:
        return _complete(resourceTemplates=[{"uriTemplate": TEMPLATE, "name": "data", "description": "By its id."}])

    async def read(self, _: Context, params: mcp_types.ReadResourceRequestParams) -> Result:
        return _complete(contents=[_contents(str(params.uri))])

    async def subscribe(self, _: Context, params: mcp_types.SubscribeRequestParams) -> Result:
        self.fixture.subscribed.add(str(params.uri))
        return mcp_types.EmptyResult()

    async def unsubscribe(self, _: Context, params: mcp_types.UnsubscribeRequestParams) -> Result:
        self.fixture.subscribed.discard(str(params.uri))
        return mcp_types.EmptyResult()

    async def complete(self, _: Context, params: mcp_types.CompleteRequestParams) -> Result:
        values = [word for word in WORDS if word.startswith(params.argument.value)]
        return _complete(completion={"values": values, "total": len(values), "hasMore": False})

    async def set_level(self, _: Context, params: mcp_types.SetLevelRequestParams) -> Result:
        self.fixture.level = params.level
        return mcp_types.EmptyResult()


def _complete(**parts: object) -> Object:
    return {"resultType": "complete", **parts}


def _turn(context: Context, arguments: Mapping[str, Any] | None, state: str | None) -> Turn:
    given = (context.params or {}).get("inputResponses") or {}
    return Turn(context, dict(arguments or {}), given, state)


def _contents(uri: str) -> Object:
    if uri in RESOURCES:
        return {"uri": uri, **RESOURCES[uri]}
    found = re.fullmatch(re.escape(TEMPLATE).replace(r"\{id\}", "([^/]+)"), uri)
    if found is None:
        raise MCPError(mcp_types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    return {"uri": uri, "mimeType": "application/json", "text": json.dumps({"id": found[1], "templateTest": True})}


def build(fixture: Fixture) -> Server[Any]:
    handlers = Handlers(fixture)
    server = Server(
        "fixture",
        version="1",
        instructions="Everything the conformance suite asks for.",
        cache_hints={cast("Any", method): CacheHint(ttl_ms=1000, scope="private") for method in LISTS},
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read,
        on_subscribe_resource=handlers.subscribe,
        on_unsubscribe_resource=handlers.unsubscribe,
        on_subscriptions_listen=ListenHandler(fixture.bus),
        on_completion=handlers.complete,
        on_set_logging_level=handlers.set_level,
    )
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="fixture"))
    return server


async def serve_stdio(server: Server[Any]) -> None:
    changing = NotificationOptions(prompts_changed=True, tools_changed=True)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options(changing))


async def serve_http(server: Server[Any], port: int) -> None:
    with socket.create_server(("127.0.0.1", port)) as bound:
        print(f"http://127.0.0.1:{bound.getsockname()[1]}/mcp", file=sys.stderr, flush=True)  # noqa: T201
        settings = uvicorn.Config(server.streamable_http_app(), log_level="warning", timeout_graceful_shutdown=1)
        await uvicorn.Server(settings).serve(sockets=[bound])


def main() -> None:
    # The suite asks for what the protocol has deprecated, too.
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT")
    port = parser.parse_args().http
    server = build(Fixture())
    if port is None:
        anyio.run(serve_stdio, server)
    else:
        anyio.run(serve_http, server, port)


if __name__ == "__main__":
    main()
