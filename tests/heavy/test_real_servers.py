"""Servers that other people wrote, all behind one `ullage serve`, with the SDK's client of either era in front."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from mcp import MCPError
from mcp_types import ImageContent, InputRequiredResult, PromptReference, ResourceLink, TextResourceContents

from heavy.real_client import ERAS, Front, fronted, text_of, ullage
from heavy.real_processes import left_behind, marked
from heavy.real_world import STDIO, World, entries, make_world, serving_everything

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.anyio,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are counted in /proc"),
]

in_both_eras = pytest.mark.parametrize("era", ERAS)
EVERYWHERE = ("everything", "over-http", "over-sse")
"""One server by three ways of reaching it."""
over_each_transport = pytest.mark.parametrize("server", EVERYWHERE)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world with the everything-server in it three times: as a process, over HTTP and over SSE."""
    world = make_world(tmp_path_factory.mktemp("reached"))
    with serving_everything(world, "streamableHttp") as http, serving_everything(world, "sse") as sse:
        remote = {"over-http": {"type": "http", "url": http}, "over-sse": {"type": "sse", "url": sse}}
        world.rewrite(everything=entries(world)["everything"], **remote)
        yield world


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    """A mark of this test's own; what still bears it in the end is ended."""
    yield str(tmp_path)
    for process in marked(str(tmp_path)):
        os.kill(process, signal.SIGKILL)


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
            outcome='"time_difference": "+3.5h"',
        ),
        Errand(wish="the sum of two numbers", tool="everything__get-sum", arguments={"a": 2, "b": 40}, outcome="is 42"),
        Errand(wish="read the knowledge graph", tool="memory__read_graph", outcome='"relations": []'),
        Errand(
            wish="list datasources", tool="grafana__list_datasources", outcome="connection refused", fails=True
        ),
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
    assert listed == {"find_tool", "call_tool", "call_tool_write", "count-tokens"}
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


@in_both_eras
@over_each_transport
async def test_content_of_every_kind_passes_whole(era: str, server: str, reached: World):
    async with fronted(reached, era) as front:
        weather = await front.read(f"{server}__get-structured-content", location="Chicago")
        image = await front.read(f"{server}__get-tiny-image")
        annotated = await front.read(f"{server}__get-annotated-message", messageType="error", includeImage=True)
    assert weather.structured_content == {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}
    assert json.loads(text_of(weather)) == weather.structured_content
    (picture,) = [block for block in image.content if isinstance(block, ImageContent)]
    assert picture.mime_type == "image/png"
    assert picture.data.startswith("iVBOR")
    assert annotated.content[0].annotations is not None
    assert annotated.content[0].annotations.priority == 1.0


@in_both_eras
@over_each_transport
async def test_progress_is_heard_step_by_step(era: str, server: str, reached: World):
    heard = list[tuple[float, float | None]]()

    async def far(progress: float, total: float | None, _: str | None) -> None:
        heard.append((progress, total))

    tool = {"tool_name": f"{server}__trigger-long-running-operation", "parameters": {"duration": 0.4, "steps": 4}}
    async with fronted(reached, era) as front:
        result = await front.client.call_tool("call_tool", tool, progress_callback=far)
    assert "completed" in text_of(result)
    assert heard == [(1.0, 4.0), (2.0, 4.0), (3.0, 4.0), (4.0, 4.0)]


@in_both_eras
async def test_the_same_resource_of_three_servers_is_read_back_from_each(era: str, reached: World):
    static = "demo://resource/static/document/features.md"
    async with fronted(reached, era) as front:
        listed = [one.uri for one in (await front.client.list_resources()).resources]
        templates = [one.uri_template for one in (await front.client.list_resource_templates()).resource_templates]
        same = [uri for uri in listed if uri.endswith(static)]
        texts = [(await front.client.read_resource(uri)).contents[0] for uri in same]
    assert len(same) == len(set(same)) == len(EVERYWHERE)
    assert static in same
    assert len(templates) == len(set(templates)) == 2 * len(EVERYWHERE)
    assert [one.uri for one in texts] == same
    assert len({one.text for one in texts if isinstance(one, TextResourceContents)}) == 1


@in_both_eras
@over_each_transport
async def test_a_link_in_a_reply_leads_back_to_the_server_that_gave_it(era: str, server: str, reached: World):
    async with fronted(reached, era) as front:
        made = await front.write(
            f"{server}__gzip-file-as-resource", name=f"{server}-{era}.gz", data="data:text/plain,ahoy"
        )
        (link,) = [block for block in made.content if isinstance(block, ResourceLink)]
        read = await front.client.read_resource(link.uri)
    assert read.contents[0].uri == link.uri
    assert read.contents[0].mime_type == "application/gzip"


@in_both_eras
@over_each_transport
async def test_prompts_and_completion_pass(era: str, server: str, reached: World):
    prompt = PromptReference(type="ref/prompt", name=f"{server}__completable-prompt")
    async with fronted(reached, era) as front:
        names = [one.name for one in (await front.client.list_prompts()).prompts]
        asked = await front.client.get_prompt(f"{server}__args-prompt", {"city": "Cork"})
        embedded = await front.client.get_prompt(
            f"{server}__resource-prompt", {"resourceType": "Text", "resourceId": "3"}
        )
        departments = await front.client.complete(prompt, {"name": "department", "value": "S"})
        people = await front.client.complete(prompt, {"name": "name", "value": ""}, {"department": "Sales"})
        again = await front.client.read_resource(embedded.messages[1].content.resource.uri)  # pyright: ignore
    assert len(names) == len(set(names)) == 4 * len(EVERYWHERE)
    assert "Cork" in asked.messages[0].content.text  # pyright: ignore
    assert departments.completion.values == ["Sales", "Support"]
    assert people.completion.values == ["David", "Eve", "Frank"]
    assert "Resource 3" in again.contents[0].text  # pyright: ignore


@in_both_eras
@over_each_transport
async def test_what_a_server_asks_in_a_call_reaches_the_client(era: str, server: str, reached: World):
    async with fronted(reached, era, roots=(reached.files,)) as front:
        form = await front.write(f"{server}__trigger-elicitation-request")
        page = await front.write(
            f"{server}__trigger-url-elicitation", url="https://example.org/chart", message="look", elicitationId="one"
        )
        sampled = await front.write(f"{server}__trigger-sampling-request", prompt="how fast?", maxTokens=7)
        roots = await front.read(f"{server}__get-roots-list")
    assert "Name: Ada" in text_of(form)
    assert "completed" in text_of(page)
    assert "forty-two knots" in text_of(sampled)
    assert reached.files.as_uri() in text_of(roots)
    questions = [one for one in front.asked if one != "roots/list"]
    assert "name" in questions[0].requested_schema["properties"]
    assert questions[1].url == "https://example.org/chart"
    assert questions[2].max_tokens == 7


async def test_a_modern_client_is_given_the_question_and_the_call_goes_on_with_its_answer(reached: World):
    asked = {"tool_name": "over-http__trigger-elicitation-request", "parameters": {}}
    async with fronted(reached, "auto") as front:
        session = front.client.session
        first = await session.call_tool("call_tool_write", asked, allow_input_required=True)
        assert isinstance(first, InputRequiredResult)
        ((key, request),) = (first.input_requests or {}).items()
        answers = {key: {"action": "decline"}}
        last = await session.call_tool(
            "call_tool_write",
            asked,
            input_responses=answers,  # pyright: ignore
            request_state=first.request_state,
            allow_input_required=True,
        )
    assert request.method == "elicitation/create"
    assert not isinstance(last, InputRequiredResult)
    assert "declined" in text_of(last)
    assert front.asked == []


@in_both_eras
async def test_an_error_of_the_protocol_passes_with_its_number_and_data(era: str, reached: World):
    async with fronted(reached, era) as front:
        with pytest.raises(MCPError) as raised:
            await front.write(
                "everything__trigger-url-elicitation",
                url="https://example.org/chart",
                message="look",
                elicitationId=f"error-{era}",
                errorPath=True,
            )
    assert raised.value.error.code == -32042
    assert raised.value.error.data["elicitations"][0]["mode"] == "url"


@pytest.mark.requirement("S1:live")
@over_each_transport
async def test_a_legacy_client_hears_of_changes_and_updates(server: str, reached: World):
    async with fronted(reached, "legacy") as front:
        made = await front.write(f"{server}__gzip-file-as-resource", name="log.gz", data="data:text/plain,ahoy")
        await front.hears("notifications/resources/list_changed")
        (link,) = [block for block in made.content if isinstance(block, ResourceLink)]
        assert link.uri in [one.uri for one in (await front.client.list_resources()).resources]
        await front.client.session.subscribe_resource(link.uri)  # pyright: ignore[reportDeprecated]
        await front.write(f"{server}__toggle-subscriber-updates")
        update = await front.hears("notifications/resources/updated")
        await front.write(f"{server}__toggle-subscriber-updates")
    assert update.params.uri == link.uri  # pyright: ignore


@pytest.mark.requirement("S1:live")
@over_each_transport
async def test_a_modern_client_hears_of_changes_and_updates(server: str, reached: World):
    async with fronted(reached, "auto") as front:
        async with front.client.listen(resources_list_changed=True) as changes:
            made = await front.write(f"{server}__gzip-file-as-resource", name="log.gz", data="data:text/plain,ahoy")
            (link,) = [block for block in made.content if isinstance(block, ResourceLink)]
            with anyio.fail_after(10):
                assert type(await anext(aiter(changes))).__name__ == "ResourcesListChanged"
        async with front.client.listen(resource_subscriptions=[link.uri]) as updates:
            await front.write(f"{server}__toggle-subscriber-updates")
            with anyio.fail_after(10):
                update = await anext(aiter(updates))
            await front.write(f"{server}__toggle-subscriber-updates")
    assert update.uri == link.uri  # pyright: ignore


async def test_every_tool_is_listed_where_searching_is_not_wanted(world: World):
    async with fronted(world, "auto", flags=("--mode", "direct")) as front:
        await _all_known(front)
        names = [tool.name for tool in (await front.client.list_tools(cache_mode="bypass")).tools]
        told = await front.client.call_tool("time__get_current_time", {"timezone": "UTC"})
    assert {name.split("__")[0] for name in names if "__" in name} == set(STDIO)
    assert len(names) == len(set(names)) > 100
    assert '"timezone": "UTC"' in text_of(told)


async def _all_known(front: Front) -> None:
    with anyio.fail_after(30):
        while len((await front.client.list_tools(cache_mode="bypass")).tools) < 100:
            await anyio.sleep(0.1)


@pytest.mark.parametrize("server", STDIO)
def test_the_doctor_finds_nothing_wrong_with_a_server(server: str, world: World):
    done = _run(world, "doctor", server)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{server}  well" in done.stdout


@pytest.mark.parametrize("server", EVERYWHERE)
def test_the_doctor_finds_nothing_wrong_over_any_transport(server: str, reached: World):
    done = _run(reached, "doctor", server)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{server}  well" in done.stdout


def test_what_the_servers_cost_is_shown_and_adds_up(world: World):
    table, data = _run(world, "tools"), json.loads(_run(world, "tools", "--json").stdout)
    by_server = dict[str, int]()
    for tool in data["tools"]:
        by_server[tool["server"]] = by_server.get(tool["server"], 0) + tool["token_count"]
    assert sum(by_server.values()) == data["baseline_tokens"]
    assert data["missing"] == []
    for server in STDIO:
        assert by_server[server] > 100
        assert f"{by_server[server]:,}" in table.stdout


def test_the_commands_find_and_call_without_a_client(world: World):
    found = _run(world, "find", "convert a time between timezones")
    called = _run(world, "call", "everything__get-sum", '{"a": 20, "b": 3}')
    assert "time__convert_time" in found.stdout
    assert called.returncode == 0
    assert "The sum of 20 and 3 is 23." in called.stdout


def _run(world: World, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ullage(world, *arguments),
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=world.environment,
        cwd=world.folder,
        timeout=120,
        check=False,
    )
