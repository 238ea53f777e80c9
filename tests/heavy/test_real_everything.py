"""The server that does everything the protocol has, as a process, over HTTP and over SSE, behind one `ullage serve`."""

import json
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from mcp import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp_types import (
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    LoggingMessageNotification,
    PromptReference,
    ResourceLink,
    ResourceUpdatedNotification,
    TextContent,
    TextResourceContents,
)

from heavy.real_client import ERAS, fronted, run, text_of
from heavy.real_world import World, entries, make_world, serving_everything

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
def reached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world with the everything-server in it three times: as a process, over HTTP and over SSE."""
    world = make_world(tmp_path_factory.mktemp("reached"))
    with serving_everything(world, "streamableHttp") as http, serving_everything(world, "sse") as sse:
        remote = {"over-http": {"type": "http", "url": http}, "over-sse": {"type": "sse", "url": sse}}
        world.rewrite(everything=entries(world)["everything"], **remote)
        yield world


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

    async def far(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))
        assert message is None

    tool = {"tool_name": f"{server}__trigger-long-running-operation", "parameters": {"duration": 0.4, "steps": 4}}
    async with fronted(reached, era) as front:
        # It asks for the client's folders first; while a modern client is asked, it has no request to be told on.
        await front.read(f"{server}__echo", message="ahoy")
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
        resource = embedded.messages[1].content
        assert isinstance(resource, EmbeddedResource)
        (again,) = (await front.client.read_resource(resource.resource.uri)).contents
    assert len(names) == len(set(names)) == 4 * len(EVERYWHERE)
    assert isinstance(asked.messages[0].content, TextContent)
    assert "Cork" in asked.messages[0].content.text
    assert departments.completion.values == ["Sales", "Support"]
    assert people.completion.values == ["David", "Eve", "Frank"]
    assert isinstance(again, TextResourceContents)
    assert "Resource 3" in again.text


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
        last = await session.call_tool(
            "call_tool_write",
            asked,
            input_responses={key: ElicitResult(action="decline")},
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
@pytest.mark.filterwarnings("ignore:resources/subscribe")
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
    assert isinstance(update, ResourceUpdatedNotification)
    assert update.params.uri == link.uri


@pytest.mark.requirement("S1:live")
@over_each_transport
async def test_a_modern_client_hears_of_changes_and_updates(server: str, reached: World):
    async with fronted(reached, "auto") as front:
        async with front.client.listen(resources_list_changed=True) as changes:
            made = await front.write(f"{server}__gzip-file-as-resource", name="log.gz", data="data:text/plain,ahoy")
            (link,) = [block for block in made.content if isinstance(block, ResourceLink)]
            with anyio.fail_after(10):
                assert await anext(aiter(changes)) == ResourcesListChanged()
        async with front.client.listen(resource_subscriptions=[link.uri]) as updates:
            await front.write(f"{server}__toggle-subscriber-updates")
            with anyio.fail_after(10):
                update = await anext(aiter(updates))
            await front.write(f"{server}__toggle-subscriber-updates")
    assert update == ResourceUpdated(uri=link.uri)


@pytest.mark.filterwarnings("ignore:The logging capability")
@in_both_eras
@over_each_transport
async def test_a_servers_log_reaches_the_client_that_wants_it(era: str, server: str, reached: World):
    async with fronted(reached, era, log_level="debug") as front:
        if era == "legacy":
            await front.client.set_logging_level("debug")  # pyright: ignore[reportDeprecated]
        await front.write(f"{server}__toggle-simulated-logging")
        said = await front.hears("notifications/message")
        await front.write(f"{server}__toggle-simulated-logging")
    assert isinstance(said, LoggingMessageNotification)
    assert "message" in str(said.params.data)


@pytest.mark.parametrize("server", EVERYWHERE)
def test_the_doctor_finds_nothing_wrong_over_any_transport(server: str, reached: World):
    done = run(reached, "doctor", server)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{server}  ok" in done.stdout
