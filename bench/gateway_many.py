"""What do finding and calling cost with five servers of fifty tools each behind the gateway?

Both ends are the MCP SDK's, as in a user's program: a client of its own and servers built on it, so that the ratio to a
direct call is the one that is felt. Directly, too, the five are called in turn, over a connection each. Rounds are
interleaved. The servers write down how often they were asked for their tools.
"""

import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from gateway_client import MODERN, Era, Failed, milliseconds, private_environment, working_folder
from gateway_fronts import DIRECT, Front, Named, Upstream
from gateway_server import NOUNS, VERBS
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

ROUNDS = 30
CALLS = 20
LONGEST = 1.0
"""Seconds after which a block ends early, for those that take their time."""
PATIENCE = 60
NAMES = ("ledger", "forge", "board", "diary", "depot")
TOOLS = 50


@dataclass(slots=True)
class Times:
    """Of one front."""

    calls: list[float] = field(default_factory=list[float])
    finds: list[float] = field(default_factory=list[float])
    listings: Counter[str] = field(default_factory=Counter[str])
    """Server to how often it was asked for its tools."""

    @property
    def call(self) -> float:
        return milliseconds(self.calls)

    @property
    def find(self) -> float | None:
        return milliseconds(self.finds) if self.finds else None


@dataclass(slots=True)
class Open:
    """A front that is up, and how far it is."""

    front: Front
    clients: list[Client]
    """One; directly, one for each server."""
    servers: list[Upstream]
    times: Times
    turn: int = 0

    async def ask(self, client: Client, named: Named) -> str:
        result = await client.call_tool(named[0], named[1])
        text = "".join(getattr(block, "text", "") for block in result.content)
        if result.is_error:
            raise Failed(f"{self.front.name}: {text[:500]}")
        return text

    async def call(self) -> None:
        self.turn += 1
        server = self.servers[self.turn % len(self.servers)]
        named = self.front.call(self.servers, server, "echo", {"text": "hello"})
        if "hello" not in (said := await self.ask(self.clients[self.turn % len(self.clients)], named)):
            raise Failed(f"{self.front.name} said {said!r}")

    async def find(self) -> None:
        """Never the same words twice, or a memory of earlier answers would be measured."""
        assert self.front.find is not None
        self.turn += 1
        noun, verb = NOUNS[self.turn % len(NOUNS)], VERBS[self.turn // len(NOUNS) % len(VERBS)]
        await self.ask(self.clients[0], self.front.find(f"{verb} the {noun} of owner {self.turn}"))


def measure(fronts: Sequence[Front], era: Era) -> dict[str, Times]:
    return anyio.run(_measure, fronts, era)


async def _measure(fronts: Sequence[Front], era: Era) -> dict[str, Times]:
    found = {front.name: Times() for front in fronts}
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(_ready(front, era, found[front.name])) for front in fronts]
        for _ in range(ROUNDS):
            for one in opened:
                await _block(one.call, one.times.calls)
                if one.front.find is not None:
                    await _block(one.find, one.times.finds)
    return found


async def _block(once: Callable[[], Awaitable[None]], walls: list[float]) -> None:
    end = time.perf_counter() + LONGEST
    for _ in range(CALLS):
        begun = time.perf_counter()
        await once()
        walls.append(time.perf_counter() - begun)
        if walls[-1] + begun > end:
            break


@asynccontextmanager
async def _ready(front: Front, era: Era, times: Times) -> AsyncIterator[Open]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "listings.txt"
        servers = [
            Upstream(name=name, script="gateway_sdk_server.py", options=("--tools", str(TOOLS), "--log", str(log)))
            for name in NAMES
        ]
        groups = [[server] for server in servers] if front is DIRECT else [servers]
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(_client(front, group, era, folder)) for group in groups]
            one = Open(front, clients, servers, times)
            await _until_it_answers(one)
            yield one
        times.listings.update(line.split()[0] for line in log.read_text(encoding="utf-8").splitlines())


@asynccontextmanager
async def _client(front: Front, servers: Sequence[Upstream], era: Era, folder: Path) -> AsyncIterator[Client]:
    program, *arguments = front.command(servers, folder)
    parameters = StdioServerParameters(
        command=program,
        args=arguments,
        env={**private_environment(folder), **front.environment},
        cwd=str(working_folder(folder)),
    )
    mode = era if era == MODERN else "legacy"
    with (folder / "stderr.txt").open("a", encoding="utf-8") as said:
        async with Client(stdio_client(parameters, errlog=said), mode=mode) as client:
            await client.list_tools()
            yield client


async def _until_it_answers(one: Open) -> None:
    """Every server once, and once more: a gateway may answer before the servers behind it are up."""
    for _ in range(2 * len(one.servers)):
        with anyio.fail_after(PATIENCE):
            while True:
                try:
                    await one.call()
                    break
                except (Failed, MCPError):
                    await anyio.sleep(0.1)
    if one.front.find is not None:
        await one.find()
