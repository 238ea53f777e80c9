"""The session for the OpenAI Agents SDK, with things of its shape. With the SDK itself: `test_frameworks`."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ullage.adapters.openai_agents import CompactingSession, ModelSummarizer
from ullage.context import Context, Options, SummaryRequest
from ullage.errors import BadConfiguration
from ullage.messages import Format, faults
from ullage.models import shipped
from ullage.tokens import Meter

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S2:formats")]

METER = Meter(shipped())
REQUEST = SummaryRequest(instructions="Be brief.", text="History.", max_tokens=100)


@dataclass
class Kept:
    """A session in memory."""

    session_id: str = "s"
    items: list[Any] = field(default_factory=list[Any])

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return list(self.items if limit is None else self.items[-limit:])

    async def add_items(self, items: list[Any]) -> None:
        self.items += items

    async def pop_item(self) -> Any:  # noqa: ANN401
        return self.items.pop()

    async def clear_session(self) -> None:
        self.items.clear()


@dataclass
class Model:
    """Sums up, in one word."""

    content: list[Any] = field(
        default_factory=lambda: [SimpleNamespace(type="output_text", text="Orders were read; go on.")]
    )
    status: str = "completed"
    asked: list[Any] = field(default_factory=list[Any])

    async def get_response(self, instructions: str, text: str, *_: object, **more: object) -> SimpleNamespace:
        self.asked.append((instructions, text, more))
        message = SimpleNamespace(type="message", content=self.content, status=self.status)
        return SimpleNamespace(output=[SimpleNamespace(type="reasoning"), message])


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = ModuleType("agents")
    made.ModelSettings = lambda max_tokens: max_tokens  # pyright: ignore[reportUnknownLambdaType]
    made.ModelTracing = SimpleNamespace(DISABLED=0)
    made.MultiProvider = lambda: SimpleNamespace(get_model=lambda name: Model([], status=f"{name}"))  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setitem(sys.modules, "agents", made)


def begin(window: int = 2_000) -> Callable[[], Context]:
    options = Options(context_window=window)
    return lambda: Context(model="gpt-4o", meter=METER, format=Format.OPENAI_RESPONSES, options=options)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def step(number: int) -> list[dict[str, Any]]:
    """A call and its output."""
    output = f"order {number} is on its way. " * 12
    return [
        {"type": "function_call", "name": "read", "call_id": f"c{number}", "arguments": "{}"},
        {"type": "function_call_output", "call_id": f"c{number}", "output": output},
    ]


def shown(items: list[Any], model: object) -> SimpleNamespace:
    tool = SimpleNamespace(name="read", description="Reads.", params_json_schema={"type": "object"})
    agent = SimpleNamespace(model=model, tools=[tool, SimpleNamespace(name="web_search")])
    return SimpleNamespace(model_data=SimpleNamespace(input=items, instructions="You are a clerk."), agent=agent)


@pytest.mark.usefixtures("installed")
async def test_a_run_that_is_longer_than_the_window_goes_through_and_nothing_is_lost():
    """As the SDK does it: a run shows what it began with and all that came since, again and again."""
    told, model = list[Any](), Model()
    session = CompactingSession(inner=Kept(), begin=begin(), tell=told.append)
    assert (session.session_id, session.session_settings) == ("s", None)
    steps = 0
    for _ in range(5):
        running = [*await session.get_items(), user("Read ten orders.")]
        fresh = [running[-1]]
        for _ in range(10):
            filtered = await session.fit(shown(list(running), model))
            assert filtered.instructions == "You are a clerk."
            assert faults(filtered.input, Format.OPENAI_RESPONSES) == ()
            running += step(steps)
            fresh += step(steps)
            steps += 1
        await session.add_items(fresh)
    assert len(session.inner.items) == 5 * 21
    compacted = [event for event in told if event["context"]["compacted"]]
    assert len(compacted) >= 3
    assert len(model.asked) == len(compacted), "what was summed up is not summed up again"
    assert all(event["context"]["usagePercent"] < 65 for event in told)


@pytest.mark.usefixtures("installed")
async def test_items_that_are_kept_are_the_same_objects():
    inner = Kept(items=[user("Read the orders.")])
    for number in range(20):
        inner.items += step(number)
    given = await CompactingSession(inner=inner, begin=begin()).get_items()
    assert len(given) < len(inner.items)
    assert given[-1] is inner.items[-1]
    assert "<context_summary>" in str(given[0])


@pytest.mark.usefixtures("installed")
async def test_what_is_taken_back_and_what_is_cleared_goes_to_the_session_inside():
    session = CompactingSession(inner=Kept(), begin=begin())
    await session.add_items([user("One."), user("Two.")])
    assert await session.get_items() == [user("One."), user("Two.")]
    assert await session.get_items(1) == [user("Two.")]
    assert await session.pop_item() == user("Two.")
    assert await session.get_items() == [user("One.")]
    await session.clear_session()
    assert await session.get_items() == []


async def test_who_has_not_installed_it_is_told_how():
    with pytest.raises(BadConfiguration) as missing:
        await ModelSummarizer("gpt-4o").summarize(REQUEST)
    assert missing.value.suggestion == "pip install 'ullage[openai-agents]'"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("model", "complete", "refused"),
    [
        (Model(), True, False),
        (Model(status="incomplete"), False, False),
        (Model([SimpleNamespace(type="refusal", refusal="no")]), True, True),
    ],
)
async def test_a_model_that_sums_up_says_how_it_ended(model: Model, complete: bool, refused: bool):  # noqa: FBT001
    found = await ModelSummarizer(model).summarize(REQUEST)
    assert (found.complete, found.refused) == (complete, refused)
    assert model.asked[0][:2] == ("Be brief.", "History.")


@pytest.mark.usefixtures("installed")
async def test_a_model_that_is_only_named_is_the_sdks():
    assert (await ModelSummarizer("incomplete").summarize(REQUEST)).complete is False
