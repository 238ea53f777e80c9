"""What would a real server cost that does what `gateway_server.py` does?

The same tools on the MCP SDK, as most real servers are built, for measuring what a user feels.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import anyio
import mcp_types
from gateway_server import tools
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


def build(name: str, count: int, log: Path | None) -> Server[Any]:
    listed = tools(name, count)

    async def list_tools(_: object, __: object) -> Any:  # noqa: ANN401
        if log:
            with log.open("a", encoding="utf-8") as file:
                file.write(f"{name} tools/list {time.time()}\n")
        return {"resultType": "complete", "tools": listed}

    async def call_tool(_: object, params: mcp_types.CallToolRequestParams) -> Any:  # noqa: ANN401
        words = str((params.arguments or {}).get("text"))
        return {"resultType": "complete", "content": [{"type": "text", "text": words}]}

    return Server(
        name,
        version="1",
        cache_hints={"tools/list": CacheHint(ttl_ms=3_600_000, scope="private")},
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve(server: Server[Any]) -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="echo")
    parser.add_argument("--tools", type=int, default=1)
    parser.add_argument("--log", type=Path)
    arguments = parser.parse_args()
    anyio.run(serve, build(arguments.name, arguments.tools, arguments.log))


if __name__ == "__main__":
    main()
