"""What is left of an agent's work when it is long, cut off, or taken up again."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from agent.agents import ScriptedModel, calls, context, delegate, says, statuses, tools
from ullage.agent import Called, End, Event, Returned, run_agent
from ullage.context import Session
from ullage.delegate import ProviderFailed
from ullage.errors import InvalidArguments
from ullage.messages import Format, Message, Text, ToolCall, ToolResult, faults
from ullage.tool import Call, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S2:formats", "S2:compact:persist")]

WINDOW = 4_000


def opened(path: Path) -> Session:
    return Session.open(path / "session.jsonl", format=Format.ULLAGE)


async def lines(call: Call) -> Reply:
    """Some 200 tokens."""
    return Reply.text(
        "\n".join(f"{call.arguments.get('x')}-{number}: shipped to 12 Harbour Road" for number in range(20))
    )


def tireless(steps: int) -> ScriptedModel:
    """Calls one tool after the other."""
    return ScriptedModel(
        lambda number, _: (
            calls(("read", json.dumps({"x": number})), first=number) if number <= steps else says("Done.")
        ),
        window=WINDOW,
    )


@pytest.mark.requirement("S2:long", "S2:compact:when", "S2:compact:after", "S2:compact:valid")
@pytest.mark.parametrize("is_kept", [True, False])
async def test_hundreds_of_messages_never_overflow(tmp_path: Path, is_kept: bool):  # noqa: FBT001
    model = tireless(110)
    kept = context(WINDOW, session=opened(tmp_path) if is_kept else None)
    found = [
        event
        async for event in run_agent(
            "Read them all.", delegate=delegate(model), context=kept, tools=tools("read", answer=lines), max_steps=200
        )
    ]
    assert found[-1] == End(reason="stop", text="Done.", steps=111)
    assert len(model.reported) == len(model.bodies) == 111, "nothing was ever refused"
    told = statuses(found)
    compacted = [status for status in told if status["compacted"]]
    assert 3 < len(compacted) < 55
    assert all(status["usagePercent"] < 50 for status in compacted)
    assert all(status["before"]["usagePercent"] >= 65 for status in compacted)
    for body in model.bodies:
        assert faults(body["messages"], Format.OPENAI_CHAT) == ()
    off = [abs(status["used"] - reported) / reported for status, reported in zip(told, model.reported, strict=True)]
    assert max(off) < 0.05
    assert max(one for one, status in zip(off, told, strict=True) if status["method"] == "anchored") < 0.01


async def test_recall_is_offered_from_the_first_step_on_and_brings_back_what_was_let_go(tmp_path: Path):
    def answer(number: int, _: Any) -> Any:  # noqa: ANN401
        if number == 40:
            return calls(("recall", '{"query": "2-7"}'), first=1000)
        return calls(("read", json.dumps({"x": number})), first=number) if number < 40 else says("Done.")

    model = ScriptedModel(answer, window=WINDOW)
    kept = context(WINDOW, session=opened(tmp_path))
    found = [
        event
        async for event in run_agent(
            "Go.", delegate=delegate(model), context=kept, tools=tools("read", answer=lines), max_steps=60
        )
    ]
    assert all([tool["function"]["name"] for tool in body["tools"]] == ["read", "recall"] for body in model.bodies)
    assert "2-7: shipped" not in json.dumps(model.bodies[39])
    (brought,) = (event for event in found if isinstance(event, Returned) and event.tool == "recall")
    assert "2-7: shipped" in brought.text


@pytest.mark.requirement("S2:compact:persist")
async def test_everything_is_in_the_session_before_the_model_is_called_again(tmp_path: Path):
    session = opened(tmp_path)
    seen = list[int]()

    def answer(number: int, _: Any) -> Any:  # noqa: ANN401
        seen.append(len((tmp_path / "session.jsonl").read_text(encoding="utf-8").splitlines()))
        return calls(("read", "{}"), first=number) if number < 3 else says("Done.")

    kept = context(session=session)
    _ = [
        event
        async for event in run_agent("Go.", delegate=delegate(ScriptedModel(answer)), context=kept, tools=tools("read"))
    ]
    assert seen == [2, 4, 6], "a header, the prompt, and then a call with its result each time"
    assert [message.role for message in _messages(context(session=opened(tmp_path)).messages)] == [
        *("user", "assistant", "tool", "assistant", "tool", "assistant")
    ]


def _messages(natives: tuple[object, ...]) -> list[Message]:
    return [native for native in natives if isinstance(native, Message)]


async def stuck(call: Call) -> Reply:
    if call.arguments.get("x") == 1:
        return Reply.text("quick")
    await anyio.sleep_forever()
    return Reply.text("never")


async def gone_on(path: Path) -> tuple[list[Event], ScriptedModel]:
    """What becomes of the session in a new process."""
    model, kept = ScriptedModel(lambda *_: says("I see.")), context(session=opened(path))
    found = [event async for event in run_agent("And?", delegate=delegate(model), context=kept, tools=tools("read"))]
    assert faults(kept.messages, Format.ULLAGE) == ()
    assert found[-1] == End(reason="stop", text="I see.", steps=1)
    return found, model


async def heard(work: AsyncGenerator[Event, None], returned: anyio.Event) -> None:
    async for event in work:
        if isinstance(event, Returned):
            returned.set()


def two_calls(*_: object) -> Any:  # noqa: ANN401
    return calls(("read", '{"x": 1}'), ("read", '{"x": 2}'))


@pytest.mark.parametrize("way", ["cancelled", "its task cancelled", "closed"])
async def test_calls_that_were_cut_off_have_results_that_say_so(tmp_path: Path, way: str):
    kept = context(session=opened(tmp_path))
    work = run_agent(
        "Go.", delegate=delegate(ScriptedModel(two_calls)), context=kept, tools=tools("read", answer=stuck)
    )
    returned = anyio.Event()
    if way == "cancelled":
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(heard, work, returned)
            await returned.wait()
            tasks.cancel_scope.cancel()
    elif way == "its task cancelled":
        task = asyncio.get_running_loop().create_task(heard(work, returned))
        await returned.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        async for event in work:
            if isinstance(event, Returned):
                break
        await work.aclose()
    results = [part for part in _messages(kept.messages)[-1].parts if isinstance(part, ToolResult)]
    assert [(result.call_id, result.is_error) for result in results] == [("c1", False), ("c2", True)]
    assert isinstance(results[1].parts[0], Text)
    assert "cut off" in results[1].parts[0].text
    _, model = await gone_on(tmp_path)
    assert faults(model.bodies[0]["messages"], Format.OPENAI_CHAT) == ()


async def test_a_run_that_is_closed_before_its_calls_have_begun_leaves_results_too(tmp_path: Path):
    kept = context(session=opened(tmp_path))
    work = run_agent("Go.", delegate=delegate(ScriptedModel(two_calls)), context=kept, tools=tools("read"))
    async for event in work:
        if isinstance(event, Called):
            break
    await work.aclose()
    assert faults(kept.messages, Format.ULLAGE) == ()


async def test_a_run_that_is_cancelled_while_the_model_speaks_keeps_the_prompt(tmp_path: Path):
    kept = context(session=opened(tmp_path))
    model = ScriptedModel(lambda *_: says("One", "Two"))
    async for event in (work := run_agent("Go.", delegate=delegate(model), context=kept, tools=tools())):
        if event.to_json()["type"] == "text":
            break
    await work.aclose()
    assert [message.role for message in _messages(kept.messages)] == ["user"]
    _, model = await gone_on(tmp_path)
    assert [message["content"] for message in model.bodies[0]["messages"] if message["role"] == "user"] == [
        "Go.",
        "And?",
    ]


async def test_a_session_that_ends_with_an_unanswered_call_is_taken_up(tmp_path: Path):
    """As after a power cut in the middle of a tool."""
    kept = context(session=opened(tmp_path))
    kept.add(Message(role="user", parts=(Text("Go."),)))
    kept.add(Message(role="assistant", parts=(ToolCall(name="read", arguments="{}", id="c1"),)))
    _, model = await gone_on(tmp_path)
    sent = model.bodies[0]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "user"]
    assert "may have been carried out" in sent[3]["content"]


async def test_an_overflow_teaches_the_window_and_the_call_is_made_again():
    """The table says 128,000 tokens, and the provider holds 4,000."""
    model = tireless(40)
    kept = context()
    found = [
        event
        async for event in run_agent(
            "Go.", delegate=delegate(model), context=kept, tools=tools("read", answer=lines), max_steps=100
        )
    ]
    assert found[-1] == End(reason="stop", text="Done.", steps=40)
    assert len(model.bodies) == len(model.reported) + 1, "it was refused once, and never again"
    assert statuses(found)[-1]["contextWindow"] == WINDOW
    assert len(statuses(found)) == len(model.bodies), "a status before every call, the refused one too"


async def test_what_no_window_holds_is_refused_after_one_more_try():
    model = ScriptedModel(lambda *_: says("never"), window=300)
    fixed = context(system="word " * 2_000)
    with pytest.raises(ProviderFailed) as failed:
        _ = [event async for event in run_agent("Go.", delegate=delegate(model), context=fixed, tools=tools())]
    assert failed.value.kind == "context_length"
    assert len(model.bodies) == 2


async def test_a_window_that_the_policy_names_is_learnt_as_one_that_the_provider_does():
    model = tireless(30)
    found = [
        event
        async for event in run_agent(
            "Go.",
            delegate=delegate(model, window=WINDOW),
            context=context(),
            tools=tools("read", answer=lines),
            max_output_tokens=200,
            max_steps=50,
        )
    ]
    assert found[-1] == End(reason="stop", text="Done.", steps=31)
    assert len(model.bodies) == len(model.reported), "nobody was asked what the policy says does not fit"


async def test_other_errors_are_not_taken_for_an_overflow():
    refusing = ScriptedModel(lambda *_: httpx2.Response(400, json={"error": {"message": "no such parameter"}}))
    with pytest.raises(ProviderFailed):
        _ = [event async for event in run_agent("Go.", delegate=delegate(refusing), context=context(), tools=tools())]
    with pytest.raises(InvalidArguments):
        _ = [
            event
            async for event in run_agent(
                "Go.", delegate=delegate(refusing), context=context(), tools=tools(), model="nobody"
            )
        ]
    assert len(refusing.bodies) == 1
