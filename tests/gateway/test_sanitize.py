"""Invisible characters in what a source sends never reach the other side of `Merge` and `Metered`."""

import json
from dataclasses import replace

import anyio
import pytest

from ullage.gateway import META, Member, Merge, Metered, References
from ullage.gateway.sanitize import sanitize_result, sanitize_tool, sanitized_result
from ullage.invisible_characters import has_invisible
from ullage.models import shipped
from ullage.testing import FakeAnsweringSource, FakeRecorder, FakeSource
from ullage.tokens import Meter, drain
from ullage.tool import Call, Complete, Json, JsonObject, Needs, PromptRequest, Read, Reply, Structured, Tool

pytestmark = pytest.mark.requirement("U:poison")

ZERO = "\u200b"


def hostile_tool() -> Tool:
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {
            f"te{ZERO}xt": {"type": "string", "description": f"a{ZERO}b", "enum": ["plain", f"x{ZERO}"]},
            "mode": {"const": f"m{ZERO}"},
        },
        "required": [f"te{ZERO}xt"],
    }
    return Tool(
        name="go",
        title=f"G{ZERO}o",
        description=f"Do{ZERO}es.",
        input_schema=schema,
        output_schema={"type": "object", "description": f"o{ZERO}"},
        annotations={"title": f"t{ZERO}"},
        extra={"_meta": {"x": f"y{ZERO}"}},
    )


def merged(source: FakeSource) -> Merge:
    return Merge([Member(name="one", source=source, prefix="one")])


@pytest.mark.requirement("U:poison")
def test_prose_loses_invisible_characters_and_names_show_them():
    safe, originals = sanitize_tool(hostile_tool())
    assert not has_invisible(json.dumps(safe.input_schema, ensure_ascii=False))
    assert (safe.title, safe.description) == ("Go", "Does.")
    assert safe.annotations == {"title": "t"}
    properties = safe.input_schema["properties"]
    assert isinstance(properties, dict)
    assert properties["te\\u200bxt"] == {"type": "string", "description": "ab", "enum": ["plain", "x\\u200b"]}
    assert originals == {"te\\u200bxt": f"te{ZERO}xt", "x\\u200b": f"x{ZERO}", "m\\u200b": f"m{ZERO}"}


def test_a_definition_without_invisible_characters_is_the_same_object():
    tool = Tool(name="go", description="Plain ❤\ufe0f.", input_schema={"type": "object", "properties": {"é": {}}})
    assert sanitize_tool(tool) == (tool, {})
    assert sanitize_tool(tool)[0] is tool


@pytest.mark.anyio
@pytest.mark.requirement("U:poison")
async def test_a_call_reaches_the_server_with_the_names_it_knows():
    source = FakeSource(offered=(hostile_tool(),))
    merge = merged(source)
    (listed,) = (await merge.tools()).tools
    assert not has_invisible(json.dumps(listed.input_schema, ensure_ascii=False))
    arguments: dict[str, Json] = {"te\\u200bxt": "x\\u200b", "mode": "m\\u200b", "other": "keeps \\u200b as text"}
    await merge.call(Call(tool=listed.name, arguments=arguments))
    assert source.calls[0].arguments == {
        f"te{ZERO}xt": f"x{ZERO}",
        "mode": f"m{ZERO}",
        "other": "keeps \\u200b as text",
    }


@pytest.mark.anyio
@pytest.mark.requirement("U:poison")
async def test_results_show_invisible_characters_in_every_part():
    reply = Reply(
        content=(
            {"type": "text", "text": f"a{ZERO}"},
            {"type": "text", "text": f"b{ZERO}", "annotations": {"x": f"y{ZERO}"}},
            {"type": "resource", "resource": {"uri": "a://b", "text": f"c{ZERO}"}},
            {"type": "image", "data": "QUJD", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "a://b", "name": f"d{ZERO}", "description": f"e{ZERO}"},
        ),
        structured=Structured({f"k{ZERO}": [f"v{ZERO}"]}),
        meta={"trace": f"t{ZERO}"},
    )

    async def respond(_: Call) -> Reply:
        return reply

    source = FakeSource(offered=(Tool(name="go", input_schema={"type": "object"}),), answer=respond)
    got = await merged(source).call(Call(tool="one__go"))
    assert not has_invisible(json.dumps([dict(block) for block in got.content], ensure_ascii=False))
    assert got.content[0]["text"] == "a\\u200b"
    assert got.structured == Structured({"k\\u200b": ["v\\u200b"]})
    assert got.content[3] is reply.content[3]
    assert got.meta["trace"] == "t\\u200b"


@pytest.mark.anyio
async def test_questions_log_messages_and_progress_are_escaped_on_their_way_to_the_client():
    heard: list[object] = []

    async def ask(method: str, params: object) -> dict[str, Json]:
        heard.append((method, params))
        return {}

    async def tell(method: str, params: object) -> None:
        heard.append((method, params))

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    async def respond(call: Call) -> Reply:
        assert call.ask is not None
        assert call.tell is not None
        assert call.progress is not None
        await call.ask("elicitation/create", {"message": f"who{ZERO}?"})
        await call.tell("notifications/message", {"data": f"x{ZERO}"})
        await call.progress(1, None, f"step{ZERO}")
        return Reply(needs=Needs({"a": {"params": {"message": f"n{ZERO}"}}}, f"state{ZERO}"))

    source = FakeSource(offered=(Tool(name="go", input_schema={"type": "object"}),), answer=respond)
    reply = await merged(source).call(Call(tool="one__go", ask=ask, tell=tell, progress=progress))
    assert heard == [
        ("elicitation/create", {"message": "who\\u200b?"}),
        ("notifications/message", {"data": "x\\u200b"}),
        (1, None, "step\\u200b"),
    ]
    assert reply.needs == Needs({"a": {"params": {"message": "n\\u200b"}}}, f"state{ZERO}")


@pytest.mark.anyio
@pytest.mark.requirement("U:bounded")
async def test_a_log_message_too_large_to_pass_on_says_so():
    heard: list[object] = []

    async def tell(_: str, params: object) -> None:
        heard.append(params)

    async def respond(call: Call) -> Reply:
        assert call.tell is not None
        data: list[Json] = [1] * 300_000
        await call.tell("notifications/message", {"level": "info", "data": data})
        return Reply()

    source = FakeSource(offered=(Tool(name="go", input_schema={"type": "object"}),), answer=respond)
    await merged(source).call(Call(tool="one__go", tell=tell))
    assert heard == [{"level": "info", "data": "[The server sent a log message that is too large to pass on.]"}]


def test_a_clean_reply_is_the_same_object_and_a_long_text_is_read_in_steps():
    reply = Reply.text("plain")
    assert drain(sanitize_result(reply)) is reply
    long = Reply.text(f"word{ZERO} " * 60_000)
    steps = sanitize_result(long)
    next(steps)
    text = drain(sanitize_result(long)).content[0]["text"]
    assert text == "word\\u200b " * 60_000


@pytest.mark.anyio
async def test_a_name_with_invisible_characters_is_listed_without_them():
    source = FakeSource(offered=(replace(hostile_tool(), name=f"go{ZERO}on"),))
    bare = Merge([Member(name="one", source=source, prefix="")])
    (entry,) = (await bare.view()).entries
    assert not has_invisible(entry.listed)


@pytest.mark.anyio
async def test_addresses_of_resources_are_quoted_and_lead_back():
    uri = f"note://{ZERO}a%20b"
    source = FakeSource(texts={uri: f"text{ZERO}"})
    merge = merged(source)
    (resource,) = await merge.resources()
    shown = str(resource["uri"])
    assert shown == "ullage+quoted://one/note://%E2%80%8Ba%2520b"
    contents = await merge.read(Read(uri=shown))
    assert contents.contents[0]["text"] == "text\\u200b"
    assert not has_invisible(json.dumps([dict(one) for one in contents.contents], ensure_ascii=False))


@pytest.mark.anyio
async def test_prompts_and_completions_are_sanitized():
    source = FakeAnsweringSource(messages={"help": f"He{ZERO}lp {{topic}}"}, values=(f"v{ZERO}",))
    merge = merged(source)
    (prompt,) = await merge.prompts()
    got = await merge.prompt(PromptRequest(name=str(prompt["name"]), arguments={"topic": "x"}))
    assert "He\\u200blp x" in json.dumps([dict(one) for one in got.messages], ensure_ascii=False).replace("\\\\", "\\")
    completion = await merge.complete(
        Complete(reference={"type": "ref/prompt", "name": prompt["name"]}, argument={"name": "topic", "value": ""})
    )
    assert completion["values"] == ["v\\u200b"]


@pytest.mark.anyio
@pytest.mark.requirement("U:poison")
async def test_what_a_layer_inside_decoded_from_json_is_escaped_before_it_is_weighed():
    async def respond(_: Call) -> Reply:
        return Reply.text(json.loads('"decoded \\u200b"'))

    source = FakeSource(offered=(Tool(name="go", input_schema={"type": "object"}),), answer=respond)
    metered = Metered(
        inner=source,
        meter=Meter(shipped()),
        recorder=FakeRecorder(),
        clock=lambda: 0.0,
        reference=References(shipped()),
    )
    reply = await metered.call(Call(tool="go"))
    assert reply.content[0]["text"] == "decoded \\u200b"
    counted = Meter(shipped()).count("decoded \\u200b", "gpt-4o").tokens
    assert f'"estimated": {counted}' in json.dumps(reply.meta[META])


@pytest.mark.anyio
@pytest.mark.requirement("U:bounded")
@pytest.mark.parametrize(
    "reply",
    [
        Reply(content=({"type": "text", "text": "a\u200b" * 40_000},)),
        Reply(content=({"type": "text", "text": "a\u200b" * 40_000, "annotations": {}},)),
        Reply(content=(), structured=Structured({"a": list[Json](["\u200b"] * 60_000)})),
    ],
    ids=["text", "block", "structured"],
)
async def test_others_have_their_turn_while_a_large_reply_is_sanitized(reply: Reply):
    turns = 0
    done = anyio.Event()

    async def count_turns() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            await anyio.sleep(0)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count_turns)
        await anyio.sleep(0)
        before = turns
        safe = await sanitized_result(reply)
        assert turns - before > 3
        assert safe == drain(sanitize_result(reply))
        assert "\u200b" not in str(safe)
        done.set()


@pytest.mark.anyio
@pytest.mark.requirement("U:bounded")
@pytest.mark.parametrize("data", ["x" * 300_000, [{"a": at} for at in range(6_000)], {"k" * 300_000: 1}])
async def test_a_log_message_and_a_progress_message_too_large_to_pass_on_are_cut_and_say_so(data: Json):
    told: list[JsonObject] = []
    done: list[str | None] = []

    async def tell(method: str, params: JsonObject) -> None:
        told.append(params)

    async def progress(_: float, __: float | None, message: str | None) -> None:
        done.append(message)

    async def answer(call: Call) -> Reply:
        assert call.tell is not None
        assert call.progress is not None
        await call.tell("notifications/message", {"level": "info", "data": data})
        await call.progress(1, None, "y" * 30_000)
        return Reply.text("ok")

    source = FakeSource(offered=(Tool(name="go", input_schema={}),), answer=answer)
    await merged(source).call(Call(tool="one__go", tell=tell, progress=progress))
    assert told == [{"level": "info", "data": "[The server sent a log message that is too large to pass on.]"}]
    assert str(done[0]).endswith("y… (30,000 characters in all)")
