"""Servers that misbehave behind `ullage serve`, with a real client in front: the others must not notice."""

import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import CallToolResult, TextContent

from heavy.real_processes import MARK, gateway_of, left_behind, marked, memory_of

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.anyio,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are counted in /proc"),
]

HOSTILE = Path(__file__).parent / "hostile.py"
MEGABYTE = 1024 * 1024
PATIENCE = 30
"""Seconds until a test gives up waiting for what ought to come at once; machines are slow and shared."""
AT_ONCE = 3
"""Seconds that are nothing to remark on."""
WHILE = 1.5
"""Seconds over which calls are timed, so that what a foe does falls into them."""
ROOM = 150 * MEGABYTE
"""What a gateway may grow by, whatever a server pours into it."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds that a call takes: half of them no more than the one, nineteen of twenty no more than the other."""

    median: float
    slow: float

    def are_about(self, usual: "Times") -> bool:
        """Whether they are the usual ones, with room for a busy machine."""
        return self.median < usual.median * 4 + 0.05 and self.slow < usual.slow * 4 + 0.2


NEVER = Times(median=float("inf"), slow=float("inf"))


class Gateway:
    """A client of `ullage serve` and what the operating system says about the processes behind it."""

    def __init__(self, client: Client, mark: str) -> None:
        self.client = client
        self.mark = mark

    async def offered(self, tool: str) -> set[str]:
        """The listed names, once that tool is among them."""
        with anyio.fail_after(PATIENCE):
            while tool not in (names := {listed.name for listed in (await self.client.list_tools()).tools}):
                await anyio.sleep(0.1)
        return names

    async def say(self, server: str, text: str = "hello") -> str:
        return text_of(await self.client.call_tool(f"{server}__echo", {"text": text}))

    async def times(self, server: str = "well") -> Times:
        """Of calls one after the other, for a while."""
        await self.say(server)
        taken = list[float]()
        while len(taken) < 60 or sum(taken) < WHILE:
            begun = time.perf_counter()
            assert await self.say(server) == "hello"
            taken.append(time.perf_counter() - begun)
        return Times(median=statistics.median(taken), slow=statistics.quantiles(taken, n=20)[-1])

    def memory(self) -> int:
        """Bytes the gateway itself holds; the servers behind it are not counted."""
        return memory_of(gateway_of(self.mark))


def text_of(result: CallToolResult) -> str:
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    """A mark of this test's own; what still bears it in the end is ended."""
    yield str(tmp_path)
    for process in marked(str(tmp_path)):
        os.kill(process, signal.SIGKILL)


def settings(folder: Path, kinds: dict[str, str]) -> Path:
    tables = ['[gateway]\nmode = "direct"\n']
    for name, kind in kinds.items():
        arguments = [str(HOSTILE), *kind.split()]
        tables.append(f"[servers.{name}]\ncommand = {sys.executable!r}\nargs = {arguments!r}\nstart_timeout = 10\n")
    path = folder / "ullage.toml"
    path.write_text("\n".join(tables), encoding="utf-8")
    return path


def serve(folder: Path, kinds: dict[str, str]) -> list[str]:
    return [sys.executable, "-m", "ullage", "serve", "--config", str(settings(folder, kinds))]


@asynccontextmanager
async def gateway(folder: Path, home: dict[str, str], mark: str, **kinds: str) -> AsyncIterator[Gateway]:
    program, *arguments = serve(folder, kinds)
    environment = {**os.environ, **home, MARK: mark}
    server = StdioServerParameters(command=program, args=arguments, env=environment, cwd=str(folder))
    async with Client(server) as client:
        yield Gateway(client, mark)


HARMFUL = (
    "silent",
    "gone",
    "loud",
    "junk",
    "endless",
    "many",
    "broken",
    "dies",
    "hangs",
    "slow 20",
    "parent",
    "stubborn",
)


@pytest.mark.requirement("S1:aggregate")
@pytest.mark.parametrize("kind", HARMFUL)
async def test_a_hostile_server_harms_no_other(kind: str, tmp_path: Path, home: dict[str, str], mark: str):
    async with gateway(tmp_path, home, mark, well="well") as served:
        await served.offered("well__echo")
        alone, memory = await served.times(), served.memory()

    async with gateway(tmp_path, home, mark, well="well", foe=kind) as served:
        await served.offered("well__echo")
        beside = NEVER
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_provoke, served)
            beside = await served.times()
            tasks.cancel_scope.cancel()
        grown = served.memory() - memory
    assert beside.are_about(alone), (beside, alone)
    assert grown < ROOM
    assert await left_behind(mark) == []


async def _provoke(served: Gateway) -> None:
    """Calls the foe again and again; whatever comes of it is not the others' affair."""
    while True:
        try:
            await served.say("foe")
        except MCPError:
            await anyio.sleep(0.05)


@pytest.mark.parametrize("kind", ["silent", "slow 20"])
async def test_a_server_that_does_not_come_up_holds_nobody_up_again(
    kind: str, tmp_path: Path, home: dict[str, str], mark: str
):
    async with gateway(tmp_path, home, mark, well="well", foe=kind) as served:
        await served.offered("well__echo")
    async with gateway(tmp_path, home, mark, well="well", foe=kind) as served:
        with anyio.fail_after(AT_ONCE):
            listed = await served.client.list_tools()
            assert await served.say("well") == "hello"
    assert "well__echo" in {tool.name for tool in listed.tools}


async def test_killing_a_server_in_a_call_fails_that_call_alone(tmp_path: Path, home: dict[str, str], mark: str):
    async with gateway(tmp_path, home, mark, well="well", foe="hangs") as served:
        await served.offered("foe__who")
        process = int(text_of(await served.client.call_tool("foe__who", {})))
        alone = await served.times()
        outcome, beside = list[CallToolResult](), NEVER

        async def call() -> None:
            outcome.append(await served.client.call_tool("foe__echo", {"text": "x"}))

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await anyio.sleep(0.3)
                os.kill(process, signal.SIGKILL)
                beside = await served.times()
        again = int(text_of(await served.client.call_tool("foe__who", {})))
    assert outcome[0].is_error
    assert "SOURCE_FAILED" in text_of(outcome[0])
    assert beside.are_about(alone), (beside, alone)
    assert again != process
    assert await left_behind(mark) == []


async def test_what_a_server_says_on_standard_error_is_not_kept(tmp_path: Path, home: dict[str, str], mark: str):
    async with gateway(tmp_path, home, mark, foe="loud") as served:
        await served.offered("foe__echo")
        before = served.memory()
        with anyio.fail_after(PATIENCE):
            assert await served.say("foe") == "hello"
        assert served.memory() - before < 20 * MEGABYTE


async def test_five_thousand_tools_are_listed_and_called(tmp_path: Path, home: dict[str, str], mark: str):
    async with gateway(tmp_path, home, mark, foe="many") as served:
        names = await served.offered("foe__echo_4997")
        result = await served.client.call_tool("foe__echo_4997", {"text": "far down"})
    assert len({name for name in names if name.startswith("foe__")}) == 5_000
    assert text_of(result) == "far down"


async def test_a_broken_schema_costs_its_own_tool_at_most(tmp_path: Path, home: dict[str, str], mark: str):
    async with gateway(tmp_path, home, mark, foe="broken") as served:
        names = await served.offered("foe__echo")
        said = await served.say("foe")
    assert {"foe__echo", "foe__who", "foe__typeless"} <= names
    assert said == "hello"


async def test_after_a_thousand_calls_and_a_stop_no_process_is_left(tmp_path: Path, home: dict[str, str], mark: str):
    kinds = {name: name for name in ("well", "parent", "stubborn", "hangs", "dies", "silent")}
    async with gateway(tmp_path, home, mark, **kinds) as served:
        for server in ("well", "parent", "stubborn"):
            await served.offered(f"{server}__echo")
        for number in range(1000):
            server = ("well", "parent", "stubborn")[number % 3]
            assert await served.say(server, str(number)) == str(number)
            if number % 200 == 100:
                await _given_up(served, "hangs")
                await _given_up(served, "dies")
        assert len(list(marked(mark))) <= 1 + len(kinds) + 1
    assert await left_behind(mark) == []


async def _given_up(served: Gateway, server: str) -> None:
    with anyio.move_on_after(0.2):
        try:
            await served.say(server)
        except MCPError:
            return


SIGNALS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
STUBBORN = {name: name for name in ("well", "parent", "hangs", "stubborn")}


async def _use_all(served: Gateway) -> None:
    for server in STUBBORN:
        await served.offered(f"{server}__who")
        await served.client.call_tool(f"{server}__who", {})
    assert len(list(marked(served.mark))) == 1 + len(STUBBORN) + 1


@SIGNALS
async def test_a_signal_ends_the_gateway_with_all_it_started(
    number: signal.Signals, tmp_path: Path, home: dict[str, str], mark: str
):
    async with gateway(tmp_path, home, mark, **STUBBORN) as served:
        await _use_all(served)
        os.kill(gateway_of(mark), number)
        assert await left_behind(mark) == []


@SIGNALS
async def test_a_signal_ends_the_gateway_over_http_with_all_it_started(
    number: signal.Signals, tmp_path: Path, home: dict[str, str], mark: str
):
    command, environment = [*serve(tmp_path, STUBBORN), "--http", "0"], {**os.environ, **home, MARK: mark}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path) as process:
        assert process.stderr is not None
        found = re.search(r"http://\S+/mcp\b", process.stderr.readline())
        assert found
        async with Client(found[0]) as client:
            await _use_all(Gateway(client, mark))
        process.send_signal(number)
        assert await left_behind(mark) == []
