"""Servers that other people wrote, all behind one `ullage serve`, with the SDK's client of either era in front."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from heavy.real_client import ERAS, fronted, run, text_of
from heavy.real_processes import left_behind, marked, marking
from heavy.real_world import STDIO, World, make_world

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """Something a model wants, the tool that does it, and what then is to be read in the reply."""

    wish: str
    tool: str
    arguments: dict[str, object] = field(default_factory=dict[str, object])
    outcome: str
    fails: bool = False


def errands(world: World) -> list[Errand]:
    """One for each server."""
    return [
        Errand(
            wish="read the contents of a text file",
            tool="files__read_text_file",
            arguments={"path": str(world.files / "log.txt")},
            outcome="the barometer fell\nthe wind backed\n",
        ),
        Errand(
            wish="show the commit log of a repository",
            tool="git__git_log",
            arguments={"repo_path": str(world.repository)},
            outcome="Message: raise the mainsail",
        ),
        Errand(
            wish="convert a time between timezones",
            tool="time__convert_time",
            arguments={"source_timezone": "Asia/Kolkata", "time": "12:00", "target_timezone": "Asia/Tokyo"},
            outcome='"time_difference":"+3.5h"',
        ),
        Errand(wish="the sum of two numbers", tool="everything__get-sum", arguments={"a": 2, "b": 40}, outcome="is 42"),
        Errand(wish="read the knowledge graph", tool="memory__read_graph", outcome='"relations": []'),
        Errand(wish="list datasources", tool="grafana__list_datasources", outcome="connection refused", fails=True),
    ]


@pytest.mark.requirement("S1:aggregate", "S1:find", "S1:call")
@in_both_eras
async def test_every_real_server_is_found_and_called_and_none_is_left_running(era: str, world: World, mark: str):
    before = world.settings.read_bytes()
    async with fronted(world, era, mark=mark) as front:
        assert front.client.protocol_version == {"legacy": "2025-11-25", "auto": "2026-07-28"}[era]
        listed = {tool.name for tool in (await front.client.list_tools()).tools}
        for errand in errands(world):
            assert errand.tool in await front.found(errand.wish), errand.wish
            result = await front.read(errand.tool, **errand.arguments)
            assert errand.outcome in text_of(result)
            assert result.is_error is errand.fails
        running = list(marked(mark))
    assert listed == {"find_tool", "call_tool", "call_tool_write", "read_result", "count-tokens"}
    assert len(running) >= 1 + len(STDIO)
    assert await left_behind(mark) == []
    assert world.settings.read_bytes() == before


@in_both_eras
async def test_a_search_shows_the_definitions_as_the_server_gave_them(era: str, world: World):
    async with fronted(world, era) as front:
        reply = await front.find("time__convert_time")
    (tool,) = reply["tools"]
    assert set(tool["inputSchema"]["required"]) == {"source_timezone", "time", "target_timezone"}
    assert reply["token_metrics"]["baseline_tokens"] > 20_000


@pytest.mark.requirement("S1:call")
@in_both_eras
async def test_what_writes_goes_through_its_own_door_and_is_really_written(era: str, world: World):
    path = world.files / f"{era}.txt"
    async with fronted(world, era) as front:
        refused = await front.read("files__write_file", path=str(path), content="all is well")
        assert refused.is_error
        assert "call_tool_write" in text_of(refused)
        assert not path.exists()
        written = await front.write("files__write_file", path=str(path), content="all is well")
    assert not written.is_error
    assert path.read_text(encoding="utf-8") == "all is well"


@in_both_eras
async def test_a_servers_own_refusal_comes_back_as_it_is(era: str, world: World):
    async with fronted(world, era) as front:
        outside = await front.read("files__read_text_file", path="/etc/passwd")
        nowhere = await front.read("git__git_log", repo_path=str(world.folder / "nowhere"))
    assert outside.is_error
    assert "Access denied" in text_of(outside)
    assert nowhere.is_error
    assert "nowhere" in text_of(nowhere)


@pytest.mark.requirement("S1:heal")
async def test_arguments_that_do_not_fit_are_refused_before_the_server_sees_them(world: World):
    async with fronted(world, "auto") as front:
        refused = await front.read("time__convert_time", time="12:00")
        healed = await front.client.call_tool(
            "call_tool", {"tool_name": "everything__get-sum", "parameters": '{"a": 1, "b": 2}'}
        )
    assert "INVALID_ARGUMENTS" in text_of(refused)
    assert "source_timezone" in text_of(refused)
    assert "is 3" in text_of(healed)


@in_both_eras
async def test_one_process_remembers_from_call_to_call(era: str, world: World):
    async with fronted(world, era) as front:
        await front.write(
            "memory__create_entities",
            entities=[{"name": f"Sloop {era}", "entityType": "ship", "observations": ["one mast"]}],
        )
        await front.write(
            "memory__add_observations", observations=[{"entityName": f"Sloop {era}", "contents": ["fast"]}]
        )
        opened = await front.read("memory__open_nodes", names=[f"Sloop {era}"])
        await front.write("memory__delete_entities", entityNames=[f"Sloop {era}"])
    structured = opened.structured_content
    assert structured is not None
    assert structured["entities"] == [
        {"name": f"Sloop {era}", "entityType": "ship", "observations": ["one mast", "fast"]}
    ]


@pytest.mark.parametrize("server", STDIO)
def test_the_doctor_finds_nothing_wrong_with_a_server(server: str, world: World):
    done = run(world, "doctor", server)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{server}  ok" in done.stdout


def test_what_the_servers_cost_is_shown_and_adds_up(world: World):
    table, data = run(world, "tools"), json.loads(run(world, "tools", "--json").stdout)
    by_server = dict[str, int]()
    for tool in data["tools"]:
        by_server[tool["server"]] = by_server.get(tool["server"], 0) + tool["token_count"]
    first = data["first_request"]
    assert data["missing"] == []
    assert sum(by_server[server] for server in STDIO) <= first["without"]
    assert first["surface"] + first["instructions"] < first["without"] / 20
    for server in STDIO:
        assert by_server[server] > 100
        assert f"{by_server[server]:,}" in table.stdout


def test_the_commands_find_and_call_without_a_client(world: World):
    found = run(world, "find", "convert a time between timezones")
    called = run(world, "call", "everything__get-sum", '{"a": 20, "b": 3}')
    assert "time__convert_time" in found.stdout
    assert called.returncode == 0
    assert "The sum of 20 and 3 is 23." in called.stdout
