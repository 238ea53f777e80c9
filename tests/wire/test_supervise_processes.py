"""The supervision with real processes that misbehave."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from ullage.errors import SourceFailed
from ullage.gateway import Server
from ullage.processes import process_watcher
from ullage.tool import Call, Caller, Change, Reply
from ullage.wire.supervise.health import Bounds, Patience
from ullage.wire.supervise.host import Host, Supervised
from ullage.wire.upstream.stdio_transport import open_pipe

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:aggregate")]

SERVER = Path(__file__).with_name("unruly_server.py")
QUICK = Bounds(patience=Patience(first_delay=0.05, failures_allowed=3, cool_down=5, longest_wait=0.5))


def server(manner: str, **settings: object) -> Server:
    started = {"command": sys.executable, "arguments": ("-I", "-S", str(SERVER), manner)}
    return Server(**{"name": manner, "transport": "stdio"} | started | settings)  # pyright: ignore[reportArgumentType]


@asynccontextmanager
async def hosted(*servers: Server) -> AsyncGenerator[tuple[Host, list[Supervised]]]:
    """Servers under one host; afterwards nobody of their process groups is left."""
    groups = set[int]()
    async with Host(bounds=QUICK) as keeper:
        yield keeper, [keeper.source(one) for one in servers]
        groups |= running(keeper)
    assert left_of(groups) == []


def running(keeper: Host) -> set[int]:
    return {number for health in keeper.health() for number in health.process_ids}


def left_of(groups: set[int]) -> list[int]:
    """Who still runs of these process groups, or as a child of ours with a group of its own, as every server has; who
    has ended and was not asked about does not, nor does the watcher process."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,pgid=,stat="], capture_output=True, text=True, check=True)
    rows = [line.split() for line in listed.stdout.splitlines()]
    ours = [row for row in rows if int(row[2]) in groups or (int(row[1]) == os.getpid() and row[0] == row[2])]
    return [int(row[0]) for row in ours if not row[3].startswith("Z") and int(row[0]) != process_watcher().process_id]


def call(tool: str = "echo", session: str = "s") -> Call:
    return Call(tool=tool, arguments={"say": "hello"}, caller=Caller(principal="p", session=session))


def text(reply: Reply) -> str:
    return str(reply.content[0]["text"])


async def all_answer(sources: Iterable[Supervised]) -> None:
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for source in sources:
                tasks.start_soon(source.call, call())


@pytest.mark.requirement("S1:aggregate")
async def test_a_server_that_exits_at_once_says_why_and_harms_no_other():
    async with hosted(server("exits"), server("well")) as (keeper, (bad, good)):
        with pytest.raises(SourceFailed) as caught:
            await bad.tools()
        assert "3" in caught.value.message
        assert "no such table" in caught.value.message
        await all_answer([good])
        assert [health.state for health in keeper.health()] == ["backing off", "ready"]


async def test_a_command_that_does_not_exist_is_named():
    async with Host(bounds=QUICK) as keeper:
        source = keeper.source(Server(name="gone", transport="stdio", command="no-such-command-anywhere"))
        with pytest.raises(SourceFailed, match="no-such-command-anywhere"):
            await source.tools()
    assert left_of(set()) == []


async def test_a_server_that_never_answers_is_given_up_and_holds_up_no_other():
    servers = server("mute", start_timeout=600), server("mute", name="brief", start_timeout=0.3), server("well")
    async with hosted(*servers) as (keeper, (mute, brief, good)), anyio.create_task_group() as tasks:
        tasks.start_soon(mute.tools)
        await refused(brief, r"0\.3 s")
        assert keeper.health()[1].state == "backing off"
        await all_answer([good])
        assert keeper.health()[0].state == "starting"
        tasks.cancel_scope.cancel()


async def refused(source: Supervised, reason: str) -> None:
    with pytest.raises(SourceFailed, match=reason):
        await source.tools()


async def test_what_a_server_said_that_failed_at_starting_is_kept():
    code = "import sys; sys.exit('Traceback, of many lines:\\n  line 1\\nno such table')"
    async with hosted(server("broken", arguments=("-c", code))) as (keeper, (broken,)):
        await refused(broken, "no such table")
        assert keeper.health()[0].stderr_tail == "Traceback, of many lines:\n  line 1\nno such table\n"


async def test_a_host_can_be_left_while_a_server_is_starting():
    began = time.monotonic()
    async with hosted(server("mute", start_timeout=60)) as (keeper, (mute,)):
        with anyio.move_on_after(0.3):
            await mute.tools()
        assert keeper.health()[0].state == "starting"
    assert time.monotonic() - began < 40, "it has a minute to start"


async def test_a_flood_on_standard_error_is_bounded_and_holds_up_no_other():
    async with hosted(server("floods"), server("well")) as (keeper, (flood, good)):
        await all_answer([flood, good])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(written, flood, "100000000")
            for _ in range(5):
                await all_answer([good])
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        assert grown < 30, "megabytes, of a hundred that were written"
        assert 0 < len(keeper.health()[0].stderr_tail) <= 4000


async def written(source: Supervised, characters: str) -> None:
    assert text(await source.call(call("flood"))) == characters


async def test_a_server_that_talks_nonsense_is_refused_or_understood():
    servers = server("nonsense", start_timeout=1), server("babbles"), server("well")
    async with hosted(*servers) as (_, (nonsense, babbles, good)), anyio.create_task_group() as tasks:
        tasks.start_soon(refused, nonsense, "nonsense")
        await all_answer([babbles, good])


@pytest.mark.requirement("S1:aggregate", "S1:live")
async def test_a_server_killed_in_a_call_fails_that_call_at_once_and_is_restarted_by_the_next():
    heard = list[Change]()
    async with hosted(server("well"), server("other")) as (keeper, (source, other)):
        source.watch(heard.append)
        first = text(await source.call(call("pid")))
        with anyio.fail_after(30), pytest.raises(SourceFailed):
            await source.call(call("die"))
        await all_answer([other])
        second = text(await source.call(call("pid")))
        assert first != second
        assert Change("tools") in heard
        assert keeper.health()[0].failures == 1
        assert int(second) in running(keeper)


async def test_a_server_that_dies_again_and_again_is_left_alone():
    async with hosted(server("well")) as (keeper, (source,)):
        for _ in range(3):
            with pytest.raises(SourceFailed):
                await source.call(call("die"))
            await anyio.sleep(0)
        with pytest.raises(SourceFailed, match="3 times in a row"):
            await source.call(call())
        assert keeper.health()[0].state == "broken"


async def test_children_of_a_server_end_with_it():
    async with hosted(server("launcher")) as (keeper, (source,)):
        child = int(text(await source.call(call("child"))))
        assert child in left_of(running(keeper))


async def test_two_sessions_have_two_processes_unless_the_server_is_shared():
    async with hosted(server("well")) as (_, (source,)):
        assert text(await source.call(call("pid", "a"))) != text(await source.call(call("pid", "b")))
    async with hosted(server("well", shared=True)) as (_, (source,)):
        assert text(await source.call(call("pid", "a"))) == text(await source.call(call("pid", "b")))


async def test_a_host_that_is_cancelled_leaves_no_process_behind():
    groups = set[int]()
    with anyio.CancelScope() as scope:
        async with Host(bounds=QUICK) as keeper:
            await all_answer([keeper.source(server(name)) for name in ("well", "launcher")])
            groups |= running(keeper)
            scope.cancel()
            await anyio.sleep_forever()
    assert len(groups) == 2
    assert left_of(groups) == []


@pytest.mark.requirement("U:env")
async def test_a_server_gets_a_credential_only_where_its_entry_says_so():
    ours = {**os.environ, "ULLAGE_TOKENS": "a:b", "ULLAGE_STORE": "c", "ALICE": "d", "GH_TOKEN": "e"}
    for more, expected in (((), None), (("GH_*",), "e"), (("*",), "e")):
        async with Host(environment=ours, withheld={"ALICE"}, bounds=QUICK) as keeper:
            source = keeper.source(replace(server("well"), inherit_env=more))
            given = json.loads(text(await source.call(call("given"))))
        assert {"ULLAGE_TOKENS", "ULLAGE_STORE", "ALICE"}.isdisjoint(given)
        assert (given.get("GH_TOKEN"), given["ULLAGE_DEPTH"]) == (expected, "1")


async def test_a_gateway_deep_inside_itself_starts_no_more():
    for depth, starts in (("4", True), ("5", False)):
        async with Host(environment={**os.environ, "ULLAGE_DEPTH": depth}, bounds=QUICK) as keeper:
            source = keeper.source(server("well"))
            if starts:
                await source.tools()
                continue
            with pytest.raises(SourceFailed, match="among its own servers"):
                await source.tools()


async def test_a_server_that_ends_for_nothing_does_not_hold_us_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ullage.wire.upstream.open_pipe", partial(open_pipe, patience=20))
    async with hosted(server("stays"), server("well")) as (_, (stays, well)):
        await all_answer([stays, well])
        start = time.monotonic()
    assert time.monotonic() - start < 15, "forty seconds where nobody waits for it"
