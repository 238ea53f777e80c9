"""A configured model that puts a history into fewer words."""

import json
from pathlib import Path

import pytest

from agent.agents import MODEL, ScriptedModel, calls, context, delegate, says, statuses, tools
from ullage.agent import End, run_agent
from ullage.app.build_delegate import DelegateSummarizer
from ullage.context import Session, SummaryRequest
from ullage.delegate import ProviderFailed
from ullage.messages import Format
from ullage.tool import Call, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S2:compact:how")]

REQUEST = SummaryRequest(instructions="Be brief.", text="The history.", max_tokens=200)


async def test_the_model_gets_the_instructions_as_system_prompt_and_the_history_as_data():
    model = ScriptedModel(lambda *_: says("In short."))
    answer = await DelegateSummarizer(delegate=delegate(model)).summarize(REQUEST)
    assert answer.text == "In short."
    assert (answer.complete, answer.refused) == (True, False)
    assert float(answer.cost or 0) > 0
    (body,) = model.bodies
    assert [(one["role"], one["content"]) for one in body["messages"]] == [
        ("system", "Be brief."),
        ("user", "The history."),
    ]
    assert body["max_tokens"] == 200


@pytest.mark.parametrize(
    ("finish", "complete", "refused"), [("length", False, False), ("content_filter", True, True), ("stop", True, False)]
)
async def test_an_answer_that_is_cut_or_refused_says_so(finish: str, complete: bool, refused: bool):  # noqa: FBT001
    model = ScriptedModel(lambda *_: says("In", finish=finish))
    answer = await DelegateSummarizer(delegate=delegate(model)).summarize(REQUEST)
    assert (answer.complete, answer.refused) == (complete, refused)


async def test_what_nobody_has_a_price_for_costs_nobody_knows_what():
    model = ScriptedModel(lambda *_: says("In short."))
    asked = delegate(model, model, other="a-model-of-ours")
    assert (await DelegateSummarizer(delegate=asked, model="m1").summarize(REQUEST)).cost is None


async def test_a_model_that_fails_is_a_failure():
    with pytest.raises(ProviderFailed):
        await DelegateSummarizer(delegate=delegate(ScriptedModel(lambda *_: says(), window=1))).summarize(REQUEST)


def test_the_window_is_that_of_the_model_that_is_asked_first():
    asked = delegate(ScriptedModel(lambda *_: says()), ScriptedModel(lambda *_: says()), other="a-model-of-ours")
    assert DelegateSummarizer(delegate=asked).window == asked.models.find(MODEL).card.window
    assert DelegateSummarizer(delegate=asked, model="m1").window is None


async def lines(call: Call) -> Reply:
    return Reply.text(
        "\n".join(f"{call.arguments.get('x')}-{number}: shipped to 12 Harbour Road" for number in range(20))
    )


@pytest.mark.requirement("S2:compact:how")
async def test_an_agents_own_model_summarises_for_it(tmp_path: Path):
    def answer(number: int, body: object) -> list[object]:
        if "tools" not in json.dumps(body):
            return says("The user wants all orders read; none was lost; go on with the next.")
        return calls(("read", json.dumps({"x": number})), first=number) if number < 60 else says("Done.")

    model = ScriptedModel(answer, window=4_000)
    asked = delegate(model)
    session = Session.open(tmp_path / "session.jsonl", format=Format.ULLAGE)
    kept = context(4_000, session=session, summarizer=DelegateSummarizer(delegate=asked))
    found = [
        event
        async for event in run_agent(
            "Read them all.", delegate=asked, context=kept, tools=tools("read", answer=lines), max_steps=80
        )
    ]
    assert isinstance(found[-1], End)
    compacted = [status for status in statuses(found) if status["compacted"]]
    by_summary = [status for status in compacted if status["shed"][-1]["tier"] == "summarise"]
    assert by_summary
    assert all("warning" not in status for status in compacted)
    last = model.bodies[-1]["messages"]
    (summary,) = (one["content"] for one in last if str(one["content"]).startswith("<context_summary>"))
    assert "go on with the next" in summary
    assert sum("tools" not in body for body in model.bodies) == len(by_summary), "one whole answer each time"
