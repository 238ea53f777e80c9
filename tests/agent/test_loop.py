"""What an agent does from its prompt to its end."""

import json
from typing import Any

import anyio
import httpx2
import pytest

from agent.agents import MODEL, ScriptedModel, calls, context, delegate, says, statuses, tools
from ullage.agent import Called, ContextStatus, Corrected, End, Event, Returned, Said, Used, run_agent
from ullage.delegate import ProviderFailed
from ullage.messages import Format, Message, Text, ToolCall, faults
from ullage.tool import Call, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S2:formats", "S2:status")]


def kinds(found: list[Event]) -> list[Any]:
    return [event.to_json()["type"] for event in found]


@pytest.mark.requirement("S2:status")
async def test_the_status_comes_before_every_call_of_the_model():
    model = ScriptedModel(lambda number, _: calls(("read", '{"x": 1}')) if number == 1 else says("All", " done."))
    found = [
        event async for event in run_agent("Go.", delegate=delegate(model), context=context(), tools=tools("read"))
    ]
    assert kinds(found) == [
        *("context_status", "usage", "tool_call", "tool_result"),
        *("context_status", "text", "text", "usage", "end"),
    ]
    first, second = (event.to_json() for event in found if isinstance(event, ContextStatus))
    assert set(first) == {"type", "context"}
    said: Any = second["context"]
    assert {"model", "contextWindow", "systemPrompt", "toolDefinitions", "messages", "used", "free"} <= set(said)
    assert {"usagePercent", "compactThreshold", "willCompact", "compacted"} <= set(said)
    assert said["compacted"] is False
    assert said["model"] == MODEL
    assert said["used"] == model.reported[1], "anchored on what was reported of the first"


async def test_text_streams_in_pieces_and_the_end_has_the_whole():
    model = ScriptedModel(lambda *_: says("All", " done."))
    found = [event async for event in run_agent("Go.", delegate=delegate(model), context=context(), tools=tools())]
    assert [event.text for event in found if isinstance(event, Said)] == ["All", " done."]
    assert found[-1].to_json() == {"type": "end", "reason": "stop", "text": "All done.", "steps": 1}
    (used,) = (event.to_json() for event in found if isinstance(event, Used))
    usage: Any = used["usage"]
    assert (usage["input_tokens"], usage["reported"]) == (model.reported[0], True)
    assert used["model"] == MODEL
    assert used["cost"] is not None
    assert "warnings" not in used


async def test_what_no_waiting_mends_is_said_with_the_usage():
    first = ScriptedModel(lambda *_: httpx2.Response(401, json={"error": "no"}))
    asked = delegate(first, ScriptedModel(lambda *_: says("Done.")))
    found = [event async for event in run_agent("Go.", delegate=asked, context=context(), tools=tools())]
    (used,) = (event.to_json() for event in found if isinstance(event, Used))
    assert used["warnings"]


async def test_calls_of_one_answer_run_side_by_side_and_go_back_in_order():
    async def answer(call: Call) -> Reply:
        await anyio.sleep(0.02 if call.tool == "slow" else 0)
        return Reply.text(call.tool)

    model = ScriptedModel(
        lambda number, _: calls(("slow", "{}"), ("files_read", '{"x": 2}')) if number == 1 else says("Done.")
    )
    source = tools("slow", "files.read", answer=answer)
    found = [event async for event in run_agent("Go.", delegate=delegate(model), context=context(), tools=source)]
    assert [event.tool for event in found if isinstance(event, Called)] == ["slow", "files.read"]
    assert [event.text for event in found if isinstance(event, Returned)] == ["files.read", "slow"]
    assert [(call.tool, dict(call.arguments)) for call in source.calls] == [("slow", {}), ("files.read", {"x": 2})]
    sent = model.bodies[1]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "tool"]
    assert [(message["tool_call_id"], message["content"]) for message in sent[3:]] == [
        ("c1", "slow"),
        ("c2", "files.read"),
    ]
    assert [tool["function"]["name"] for tool in model.bodies[0]["tools"]] == ["slow", "files_read"]


async def test_a_picture_that_a_tool_shows_reaches_the_model():
    async def shows(call: Call) -> Reply:
        return Reply(content=({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},))

    model = ScriptedModel(lambda number, _: calls(("read", "{}")) if number == 1 else says("A cat."))
    source = tools("read", answer=shows)
    found = [event async for event in run_agent("Go.", delegate=delegate(model), context=context(), tools=source)]
    assert [event.media for event in found if isinstance(event, Returned)] == [1]
    assert "iVBORw0KGgo=" in json.dumps(model.bodies[1])
    assert faults(model.bodies[1]["messages"], Format.OPENAI_CHAT) == ()


async def test_malformed_arguments_are_told_to_the_model_and_do_not_spoil_what_follows():
    model = ScriptedModel(
        lambda number, _: calls(("read", '{"x": '), finish="length") if number == 1 else says("Sorry.")
    )
    source = tools("read")
    found = [event async for event in run_agent("Go.", delegate=delegate(model), context=context(), tools=source)]
    (returned,) = (event for event in found if isinstance(event, Returned))
    assert returned.is_error
    assert "not JSON" in returned.text
    assert not source.calls
    carried = model.bodies[1]["messages"][2]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(carried) == {"malformed": '{"x": '}


async def test_a_tool_that_nobody_has_does_not_end_the_work():
    model = ScriptedModel(lambda number, _: calls(("fly", "{}")) if number == 1 else says("I cannot fly."))
    found = [
        event async for event in run_agent("Go.", delegate=delegate(model), context=context(), tools=tools("read"))
    ]
    assert isinstance(found[-1], End)
    assert "UNKNOWN_TOOL" in model.bodies[1]["messages"][3]["content"]


@pytest.mark.parametrize(("finish", "reason"), [("length", "length"), ("content_filter", "refusal"), ("odd", "stop")])
async def test_the_end_says_why(finish: str, reason: str):
    model = ScriptedModel(lambda *_: says("Well", finish=finish))
    found = [event async for event in run_agent("Go.", delegate=delegate(model), context=context(), tools=tools())]
    assert found[-1] == End(reason=reason, text="Well", steps=1)  # pyright: ignore[reportArgumentType]


async def test_an_empty_answer_ends_the_work_and_is_not_kept():
    model, kept = ScriptedModel(lambda *_: says()), context()
    found = [event async for event in run_agent("Go.", delegate=delegate(model), context=kept, tools=tools())]
    assert found[-1] == End(reason="stop", text="", steps=1)
    assert len(kept.messages) == 1


async def test_an_agent_makes_no_more_steps_than_it_may_and_can_be_told_to_go_on():
    model = ScriptedModel(lambda number, _: calls(("read", "{}"), first=number) if number < 4 else says("Done."))
    kept, asked = context(), delegate(model)
    first = [event async for event in run_agent("Go.", delegate=asked, context=kept, tools=tools("read"), max_steps=2)]
    assert first[-1] == End(reason="steps", text="", steps=2)
    second = [event async for event in run_agent(None, delegate=asked, context=kept, tools=tools("read"))]
    assert second[-1] == End(reason="stop", text="Done.", steps=2)
    assert [message["role"] for message in model.bodies[-1]["messages"]].count("user") == 1


async def test_a_deadline_ends_the_work_with_all_calls_answered():
    async def answer(call: Call) -> Reply:
        await anyio.sleep_forever()
        return Reply.text("never")

    model, kept = ScriptedModel(lambda *_: calls(("read", "{}"))), context()
    deadline = anyio.current_time() + 1.5
    source = tools("read", answer=answer)
    found = [
        event
        async for event in run_agent("Go.", delegate=delegate(model), context=kept, tools=source, deadline=deadline)
    ]
    assert found[-1] == End(reason="deadline", text="", steps=1)
    assert faults(kept.messages, Format.ULLAGE) == ()


async def test_a_model_that_outlasts_the_deadline_ends_the_work_too():
    model = ScriptedModel(lambda *_: says("never"))
    slow = delegate(model)

    async def send(request: httpx2.Request) -> httpx2.Response:
        await anyio.sleep_forever()
        raise AssertionError

    slow.client = httpx2.AsyncClient(transport=httpx2.MockTransport(send))
    deadline = anyio.current_time() + 0.05
    found = [
        event async for event in run_agent("Go.", delegate=slow, context=context(), tools=tools(), deadline=deadline)
    ]
    assert found[-1] == End(reason="deadline", text="", steps=0)


async def test_a_model_that_cannot_answer_is_an_error_and_what_was_said_is_kept():
    model, kept = ScriptedModel(lambda *_: httpx2.Response(401, json={"error": "no"})), context()
    with pytest.raises(ProviderFailed):
        _ = [event async for event in run_agent("Go.", delegate=delegate(model), context=kept, tools=tools())]
    assert kept.messages == (Message(role="user", parts=(Text("Go."),)),)


async def test_an_answer_that_broke_off_and_was_given_again_is_told_as_a_whole():
    first = ScriptedModel(lambda *_: [{"choices": [{"delta": {"content": "Half"}}]}, "BREAK"])
    second = ScriptedModel(lambda *_: says("Whole."))
    kept = context()
    found = [event async for event in run_agent("Go.", delegate=delegate(first, second), context=kept, tools=tools())]
    assert [event.text for event in found if isinstance(event, Said)] == ["Half", "Whole."]
    assert [event.to_json() for event in found if isinstance(event, Corrected)] == [
        {"type": "text_corrected", "text": "Whole."}
    ]
    assert found[-1] == End(reason="stop", text="Whole.", steps=1)
    assert statuses(found)[0]["used"] > 0


@pytest.mark.parametrize("other", ["claude-sonnet-4-5", "a-model-of-ours"])
async def test_what_another_model_counted_is_not_taken_for_the_count_of_the_usual_one(other: str):
    first = ScriptedModel(lambda *_: httpx2.Response(500))
    second = ScriptedModel(lambda *_: [{"choices": [{"delta": {"reasoning": "Hm."}}]}, *calls(("read", "{}"))])
    kept, asked = context(), delegate(first, second, other=other)
    found = [event async for event in run_agent("Go.", delegate=asked, context=kept, tools=tools("read"), max_steps=2)]
    assert found[-1] == End(reason="steps", text="", steps=2)
    assert "thinking" in kinds(found)
    assert all(status["method"] != "anchored" for status in statuses(found)), "not even while the usual one is benched"
    assert [type(part) for part in _parts(kept.messages[1])] == [ToolCall], "what it thought is sealed for it alone"


async def test_a_fallback_to_the_same_model_elsewhere_counts_alike():
    first, second = ScriptedModel(lambda *_: httpx2.Response(500)), ScriptedModel(lambda *_: calls(("read", "{}")))
    asked = delegate(first, second)
    found = [
        event async for event in run_agent("Go.", delegate=asked, context=context(), tools=tools("read"), max_steps=2)
    ]
    assert [status["method"] for status in statuses(found)][1] == "anchored"


def _parts(message: object) -> tuple[object, ...]:
    assert isinstance(message, Message)
    return message.parts


async def test_a_message_of_pictures_can_be_the_prompt():
    asked = Message(role="user", parts=(Text("What is this?"),))
    model, kept = ScriptedModel(lambda *_: says("A cat.")), context(system=None)
    _ = [event async for event in run_agent(asked, delegate=delegate(model), context=kept, tools=tools())]
    assert kept.messages[0] is asked
    assert [message["role"] for message in model.bodies[0]["messages"]] == ["user"]
