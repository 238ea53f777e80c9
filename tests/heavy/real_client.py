"""What does a client in front of `ullage serve` do, see and get asked?

The SDK's client in either era of the protocol, with everything that a server may want of it. What it was asked and told
is kept in order.
"""

import json
import re
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.client import Transport
from mcp_types import (
    CallToolResult,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ListRootsResult,
    LoggingLevel,
    Root,
    ServerNotification,
    TextContent,
)
from pydantic import FileUrl

from heavy.real_processes import MARK
from heavy.real_world import World

__all__ = ["ERAS", "Front", "connected", "fronted", "listening", "run", "text_of"]

ERAS = ("legacy", "auto")
"""How the client begins: with a handshake, or asking for the newest revision."""
PATIENCE = 30


@dataclass(slots=True, kw_only=True)
class Front:
    """A client of a gateway."""

    client: Client
    asked: list[Any] = field(default_factory=list)
    """Params of what servers wanted to know."""
    heard: list[Any] = field(default_factory=list)
    """Notifications."""

    async def find(self, wish: str, **more: object) -> dict[str, Any]:
        return json.loads(text_of(await self.client.call_tool("find_tool", {"tool_description": wish, **more})))

    async def found(self, wish: str) -> list[str]:
        """The names of the tools that a search gives, those in one line too."""
        reply = await self.find(wish)
        shown = [one["name"] for one in reply["tools"]]
        return shown + [line.split("(")[0].split(" ")[0] for line in reply.get("more", [])]

    async def read(self, tool: str, **arguments: object) -> CallToolResult:
        """Through the door for tools that only read."""
        return await self.client.call_tool("call_tool", {"tool_name": tool, "parameters": arguments})

    async def write(self, tool: str, **arguments: object) -> CallToolResult:
        return await self.client.call_tool("call_tool_write", {"tool_name": tool, "parameters": arguments})

    async def hears(self, method: str) -> ServerNotification:
        """The first notification of that kind, once there is one."""
        with anyio.fail_after(PATIENCE):
            while True:
                for one in self.heard:
                    if one.method == method:
                        return one
                await anyio.sleep(0.02)


def ullage(world: World, *arguments: str) -> list[str]:
    """A command of ours about the servers of this world, as they stand in the other program's file."""
    return [sys.executable, "-m", "ullage", *arguments, "--include", str(world.settings)]


def run(world: World, *arguments: str) -> subprocess.CompletedProcess[str]:
    """That command, run to its end."""
    return subprocess.run(
        ullage(world, *arguments),
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=world.environment,
        cwd=world.folder,
        timeout=4 * PATIENCE,
        check=False,
    )


@asynccontextmanager
async def fronted(
    world: World,
    era: str,
    *,
    mark: str = "",
    roots: tuple[Path, ...] = (),
    flags: tuple[str, ...] = (),
    log_level: LoggingLevel | None = None,
) -> AsyncGenerator[Front]:
    """A client with a gateway of its own, over standard input and output."""
    program, *arguments = ullage(world, "serve", *flags)
    environment = {**world.environment, MARK: mark}
    server = StdioServerParameters(command=program, args=arguments, env=environment, cwd=str(world.folder))
    async with connected(server, era, roots=roots, log_level=log_level) as front:
        yield front


@asynccontextmanager
async def listening(world: World, *flags: str) -> AsyncGenerator[str]:
    """The address of a gateway over HTTP, for any number of clients."""
    command = ullage(world, "serve", "--http", "0", *flags)
    process = await anyio.open_process(command, stdout=None, env=world.environment, cwd=world.folder)
    try:
        assert process.stderr is not None
        said = (await process.stderr.receive()).decode()
        found = re.search(r"http://\S+/mcp\b", said)
        assert found, said
        yield found[0]
        process.terminate()
        with anyio.fail_after(PATIENCE):
            await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()


@asynccontextmanager
async def connected(
    server: StdioServerParameters | Transport | str,
    era: str,
    *,
    roots: tuple[Path, ...] = (),
    log_level: LoggingLevel | None = None,
) -> AsyncGenerator[Front]:
    asked, heard = list[Any](), list[Any]()

    async def elicited(context: object, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params)
        return ElicitResult(action="accept", content={"name": "Ada"} if params.mode == "form" else None)

    async def sampled(context: object, params: object) -> CreateMessageResult:
        asked.append(params)
        said = TextContent(type="text", text="forty-two knots")
        return CreateMessageResult(role="assistant", content=said, model="a-model")

    async def rooted(context: object) -> ListRootsResult:
        asked.append("roots/list")
        return ListRootsResult(roots=[Root(uri=FileUrl(path.as_uri()), name=path.name) for path in roots])

    async def told(message: object) -> None:
        heard.append(message)

    async with Client(
        server,
        mode=era,
        elicitation_callback=elicited,
        sampling_callback=sampled,
        list_roots_callback=rooted,
        message_handler=told,
        read_timeout_seconds=PATIENCE,
        log_level=log_level,
    ) as client:
        yield Front(client=client, asked=asked, heard=heard)


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))
