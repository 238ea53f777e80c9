"""What happens to real servers in a day: many calls at once, one given up, a kill, a changed file, two clients."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest
from mcp import MCPError
from mcp_types import ResourceLink

from heavy.real_client import ERAS, Front, connected, fronted, listening, text_of
from heavy.real_processes import left_behind, marked, marking
from heavy.real_world import STDIO, World, entries, make_world

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.anyio,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are counted in /proc"),
]

in_both_eras = pytest.mark.parametrize("era", ERAS)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    with marking(tmp_path) as mark:
        yield mark


@in_both_eras
async def test_calls_side_by_side_each_get_their_own_answer(era: str, world: World):
    sums, files = dict[int, str](), list[str]()

    async def add(number: int) -> None:
        sums[number] = text_of(await front.read("everything__get-sum", a=number, b=number))

    async def read() -> None:
        files.append(text_of(await front.read("files__read_text_file", path=str(world.files / "log.txt"))))

    async with fronted(world, era) as front, anyio.create_task_group() as tasks:
        for number in range(60):
            tasks.start_soon(add, number)
            tasks.start_soon(read)
    assert sums == {number: f"The sum of {number} and {number} is {2 * number}." for number in range(60)}
    assert set(files) == {"the barometer fell\nthe wind backed\n"}
    assert len(files) == 60


@in_both_eras
async def test_a_call_that_is_given_up_harms_no_other(era: str, world: World):
    async with fronted(world, era) as front:
        await front.read("everything__get-sum", a=1, b=1)
        with anyio.move_on_after(0.3) as given_up:
            await front.read("everything__trigger-long-running-operation", duration=20, steps=2)
        began = anyio.current_time()
        again = await front.read("everything__get-sum", a=1, b=2)
    assert given_up.cancelled_caught
    assert "is 3" in text_of(again)
    assert anyio.current_time() - began < 10


async def test_a_killed_server_is_started_again_at_the_next_call(world: World, mark: str):
    async with fronted(world, "auto", mark=mark) as front:
        await front.write(
            "memory__create_entities", entities=[{"name": "Ketch", "entityType": "ship", "observations": []}]
        )
        (process,) = [one for one in marked(mark) if b"mcp-server-memory" in _command(one)]
        os.kill(process, signal.SIGKILL)
        with anyio.fail_after(10):
            while Path(f"/proc/{process}").exists():
                await anyio.sleep(0.05)
        opened = await front.read("memory__open_nodes", names=["Ketch"])
        await front.write("memory__delete_entities", entityNames=["Ketch"])
    assert "Ketch" in text_of(opened)
    assert await left_behind(mark) == []


def _command(process: int) -> bytes:
    return Path(f"/proc/{process}/cmdline").read_bytes()


@pytest.mark.requirement("S1:live")
@in_both_eras
async def test_a_server_added_to_the_other_programs_file_is_there_without_a_restart(era: str, tmp_path: Path):
    world = make_world(tmp_path)
    all_of_them = entries(world)
    world.rewrite(everything=all_of_them["everything"])
    async with fronted(world, era, flags=("--mode", "direct")) as front:
        before = await _until(front, lambda names: "everything__get-roots-list" in names)
        front.heard.clear()
        world.rewrite(everything=all_of_them["everything"], time=all_of_them["time"])
        if era == "legacy":
            await front.hears("notifications/tools/list_changed")
        await _until(front, lambda names: "time__convert_time" in names)
        after = await front.client.call_tool("time__get_current_time", {"timezone": "UTC"})
    assert "time__convert_time" not in before
    assert not after.is_error, text_of(after)


@in_both_eras
async def test_over_http_each_client_has_servers_of_its_own(era: str, world: World):
    async with listening(world) as url, connected(url, era) as one:
        made = await one.write("everything__gzip-file-as-resource", name="own.gz", data="data:text/plain,ahoy")
        (link,) = [block for block in made.content if isinstance(block, ResourceLink)]
        read = await one.client.read_resource(link.uri)
        form = await one.write("everything__trigger-elicitation-request")
        async with connected(url, "legacy") as other:
            with pytest.raises(MCPError):
                await other.client.read_resource(link.uri)
            assert "is 3" in text_of(await other.read("everything__get-sum", a=1, b=2))
    assert read.contents[0].mime_type == "application/gzip"
    assert "Name: Ada" in text_of(form)


async def test_a_file_server_without_folders_works_in_those_of_the_client(tmp_path: Path):
    world = make_world(tmp_path)
    world.rewrite(files={**entries(world)["files"], "args": []})
    async with fronted(world, "legacy", roots=(world.files,)) as front:
        result = await front.read("files__read_text_file", path=str(world.files / "log.txt"))
    assert "barometer" in text_of(result)


async def test_every_tool_is_listed_where_searching_is_not_wanted(world: World):
    async with fronted(world, "auto", flags=("--mode", "direct")) as front:
        names = await _until(front, lambda names: len(names) > 100)
        told = await front.client.call_tool("time__get_current_time", {"timezone": "UTC"})
    assert {name.split("__")[0] for name in names if "__" in name} == set(STDIO)
    assert len(names) == len(set(names))
    assert '"timezone": "UTC"' in text_of(told)


async def _names(front: Front) -> list[str]:
    return [tool.name for tool in (await front.client.list_tools(cache_mode="bypass")).tools]


async def _until(front: Front, complete: Callable[[list[str]], bool]) -> list[str]:
    """The listed names, once they are complete."""
    with anyio.fail_after(30):
        while not complete(names := await _names(front)):
            await anyio.sleep(0.1)
    return names
