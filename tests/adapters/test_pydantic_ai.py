"""The history processor for Pydantic AI, with messages of its shape. With Pydantic AI itself: `test_frameworks`."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ullage.adapters.pydantic_ai import ModelSummarizer, history_processor
from ullage.context import Context, Options, SummaryRequest
from ullage.errors import BadConfiguration
from ullage.messages import Format, Media, Message, Text, Thinking, ToolCall, ToolResult, Unknown
from ullage.models import shipped
from ullage.tokens import Meter

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S2:formats")]

METER = Meter(shipped())


@dataclass(kw_only=True)
class Part:
    """As much of a part of Pydantic AI's as the processor looks at."""

    part_kind: str
    content: Any = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    outcome: str = "success"
    signature: str | None = None
    metadata: Any = None
    files: list[Any] = field(default_factory=list[Any])

    def model_response_str(self, *, wrap_if_error: bool) -> str:
        assert not wrap_if_error
        return str(self.content)

    def args_as_json_str(self) -> str:
        return str(self.content)


@dataclass
class Said:
    parts: list[Part]
    kind: str = "request"
    instructions: str | None = None
    usage: Any = field(
        default_factory=lambda: SimpleNamespace(input_tokens=0, output_tokens=0, output_reasoning_tokens=0)
    )


class RunContext:
    def __init__(self, model: object) -> None:
        self.model = model


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def module(name: str, **holds: object) -> None:
        made = ModuleType(name)
        for key, value in holds.items():
            setattr(made, key, value)
        monkeypatch.setitem(sys.modules, name, made)

    async def model_request(model: Any, messages: list[Said], *, model_settings: Any) -> Any:  # noqa: ANN401
        return model(messages, model_settings)

    module("pydantic_ai", RunContext=RunContext)
    module("pydantic_ai.direct", model_request=model_request)
    module(
        "pydantic_ai.messages",
        ModelRequest=Said,
        ModelResponse=lambda parts: Said(parts, kind="response"),
        SystemPromptPart=lambda content: Part(part_kind="system-prompt", content=content),
        UserPromptPart=prompt,
        TextPart=lambda content: Part(part_kind="text", content=content),
    )


def prompt(content: Any) -> Part:  # noqa: ANN401
    return Part(part_kind="user-prompt", content=content)


def begin(window: int = 2_000, threshold: Any = 0.65) -> Callable[[], Context]:  # noqa: ANN401
    options = Options(context_window=window, compact_threshold=threshold)
    return lambda: Context(model="gpt-4o", meter=METER, format=Format.ULLAGE, options=options)


def called(number: int) -> Said:
    call = Part(part_kind="tool-call", tool_name="read", content="{}", tool_call_id=f"c{number}")
    return Said([call], kind="response")


def returned(number: int, content: Any, **more: Any) -> Part:  # noqa: ANN401
    return Part(part_kind="tool-return", tool_name="read", content=content, tool_call_id=f"c{number}", **more)


def history(turns: int) -> list[Said]:
    said = [Said([Part(part_kind="system-prompt", content="You are a clerk."), prompt("Read the orders.")])]
    for number in range(turns):
        said += [called(number), Said([returned(number, f"order {number} is on its way. " * 12)])]
    return said


def summing_up(messages: list[Said], settings: dict[str, int]) -> SimpleNamespace:
    assert [part.part_kind for part in messages[0].parts] == ["system-prompt", "user-prompt"]
    assert settings["max_tokens"] > 0
    return SimpleNamespace(text="Orders were read; go on.", finish_reason="stop")


def test_who_has_not_installed_it_is_told_how():
    with pytest.raises(BadConfiguration) as missing:
        history_processor(begin())
    assert missing.value.suggestion == "pip install 'ullage[pydantic-ai]'"


@pytest.mark.usefixtures("installed")
async def test_a_processor_says_that_it_wants_the_run():
    assert history_processor(begin()).__annotations__["run"] is RunContext


@pytest.mark.usefixtures("installed")
async def test_what_is_let_go_leaves_the_history_and_the_system_prompt_stays_first():
    told = list[Any]()
    process, said = history_processor(begin(), tell=told.append), history(20)
    first, summary, *kept = await process(RunContext(summing_up), said)
    assert [part.part_kind for part in first.parts] == ["system-prompt"], "a piece of the request that held it"
    assert "Orders were read; go on." in summary.parts[0].content
    assert kept[-1] is said[-1]
    assert told[0]["context"]["compacted"]
    again = await process(RunContext(summing_up), [first, summary, *kept])
    assert all(one is other for one, other in zip(again, [first, summary, *kept], strict=True))


@pytest.mark.usefixtures("installed")
async def test_the_usage_of_an_answer_is_what_the_figures_go_by_and_instructions_count():
    told = list[Any]()
    process = history_processor(begin(), tell=told.append)
    said = [Said([prompt("Hello.")], instructions="Be brief, be kind, be quick.")]
    await process(RunContext(summing_up), said)
    assert told[0]["context"]["systemPrompt"] > 10
    usage = SimpleNamespace(input_tokens=40, output_tokens=3, output_reasoning_tokens=1)
    answer = Said([Part(part_kind="text", content="Hi.")], kind="response", usage=usage)
    said += [answer, Said([prompt("How are you?")], instructions="Be brief, be kind, be quick.")]
    await process(RunContext(summing_up), said)
    assert told[1]["context"]["method"] == "anchored"


@pytest.mark.usefixtures("installed")
async def test_messages_are_read_as_what_they_are():
    made = list[Context]()

    def watched() -> Context:
        made.append(begin(100_000)())
        return made[-1]

    binary = SimpleNamespace(kind="binary", media_type="image/png", base64="AAAA")
    link = SimpleNamespace(kind="document-url", media_type="application/pdf", url="https://x/y.pdf")
    noted = SimpleNamespace(kind="text-content", content="A note.")
    odd = SimpleNamespace(kind="odd", content="?")
    thought = Part(part_kind="thinking", content="Hm.", signature="s")
    said = [
        Said([prompt(["Look.", binary, link, noted, odd])]),
        Said([thought, *called(1).parts, *called(2).parts], kind="response"),
        Said(
            [
                returned(1, "one", outcome="failed", files=[binary]),
                Part(part_kind="retry-prompt", content="again", tool_name="read", tool_call_id="c2"),
                Part(part_kind="retry-feedback", content="unusable"),
            ]
        ),
        Said([]),
    ]
    await history_processor(watched)(RunContext(summing_up), said)
    read = [message for message in made[0].messages if isinstance(message, Message)]
    assert [message.role for message in read] == ["user", "assistant", "tool", "user", "user"]
    assert read[0].parts == (
        Text("Look."),
        Media(kind="image", media_type="image/png", data="AAAA"),
        Media(kind="document", media_type="application/pdf", url="https://x/y.pdf"),
        Text("A note."),
        Unknown({"kind": "odd", "content": '"?"'}),
    )
    assert read[1].parts[0] == Thinking(text="Hm.", signature="s")
    assert read[1].parts[1] == ToolCall(name="read", arguments="{}", id="c1")
    assert [part.is_error for part in read[2].parts if isinstance(part, ToolResult)] == [True, True]
    assert read[3].parts == (Unknown({"kind": "retry-feedback", "content": '"unusable"'}),)


@pytest.mark.usefixtures("installed")
async def test_results_in_other_words_keep_all_else_of_their_request():
    process, giant = history_processor(begin(threshold=("messages", 1))), "a long story of orders " * 400
    said = [
        Said([prompt("Go.")]),
        Said([*called(1).parts, *called(2).parts], kind="response"),
        Said([returned(1, giant, metadata="kept"), returned(2, "short")]),
        Said([Part(part_kind="text", content="Ok.")], kind="response"),
        Said([prompt("And?")]),
    ]
    given = await process(RunContext(summing_up), said)
    (results,) = (one for one in given if one.parts[0].part_kind == "tool-return")
    first, second = results.parts
    assert len(first.content) < len(giant)
    assert (first.tool_call_id, first.metadata) == ("c1", "kept")
    assert second is said[2].parts[1]


@pytest.mark.usefixtures("installed")
async def test_a_giant_among_the_parts_of_a_prompt_is_put_in_other_words_and_the_rest_stays():
    process, giant = history_processor(begin(threshold=("messages", 1))), "a long story of orders " * 400
    binary = SimpleNamespace(kind="binary", media_type="image/png", base64="AAAA")
    said = [
        Said([prompt([giant, binary, "short"])]),
        Said([Part(part_kind="text", content="Ok.")], kind="response"),
        Said([prompt("And?")]),
    ]
    given = await process(RunContext(summing_up), said)
    content = given[0].parts[0].content
    assert isinstance(content, list)
    assert len(content[0]) < len(giant)
    assert content[1:] == [binary, "short"]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("finish", "complete", "refused"), [("length", False, False), ("content_filter", True, True), ("stop", True, False)]
)
async def test_a_model_that_sums_up_says_how_it_ended(finish: str, complete: bool, refused: bool):  # noqa: FBT001
    def model(*_: object) -> SimpleNamespace:
        return SimpleNamespace(text=None, finish_reason=finish)

    request = SummaryRequest(instructions="Be brief.", text="History.", max_tokens=100)
    found = await ModelSummarizer(model).summarize(request)
    assert (found.text, found.complete, found.refused) == ("", complete, refused)
