"""The middleware for LangChain, with messages of LangChain's shape. With LangChain itself: `test_frameworks`."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ullage.adapters.langchain import ChatSummarizer, context_middleware
from ullage.context import Context, Options, SummaryRequest
from ullage.errors import BadConfiguration
from ullage.messages import Format, Media, Message, Text, Thinking, ToolCall, ToolResult, Unknown
from ullage.models import shipped
from ullage.tokens import Meter

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S2:formats")]

METER = Meter(shipped())


@dataclass(frozen=True)
class Said:
    """As much of a message of LangChain's as the middleware looks at."""

    content: Any
    type: str = "human"
    id: str | None = None
    name: str | None = None
    tool_call_id: str | None = None
    status: str = "success"
    tool_calls: tuple[Any, ...] = ()
    usage_metadata: Any = None
    response_metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else self.content[0]["text"]

    @property
    def content_blocks(self) -> list[Any]:
        content = [{"type": "text", "text": self.content}] if isinstance(self.content, str) else self.content
        return [*content, *({"type": "tool_call", **call} for call in self.tool_calls)]

    def model_copy(self, *, update: dict[str, Any]) -> "Said":
        return replace(self, **update)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def module(name: str, **holds: object) -> None:
        made = ModuleType(name)
        for key, value in holds.items():
            setattr(made, key, value)
        monkeypatch.setitem(sys.modules, name, made)

    for parent in ("langchain", "langchain.agents", "langchain_core", "langchain_core.utils", "langgraph"):
        module(parent)
    module("langgraph.graph")
    module("langchain.agents.middleware", AgentMiddleware=type("AgentMiddleware", (), {}))
    module("langgraph.graph.message", REMOVE_ALL_MESSAGES="everything")
    module("langchain_core.utils.function_calling", convert_to_openai_tool=lambda tool: {"function": tool})
    module(
        "langchain_core.messages",
        HumanMessage=lambda content, id=None: Said(content, id=id),  # noqa: A006
        AIMessage=lambda content, id=None: Said(content, type="ai", id=id),  # noqa: A006
        SystemMessage=lambda content: Said(content, type="system"),
        RemoveMessage=lambda id: Said("", type="remove", id=id),  # noqa: A006
    )


def begin(window: int = 2_000, threshold: Any = 0.65) -> Callable[[], Context]:  # noqa: ANN401
    options = Options(context_window=window, compact_threshold=threshold)
    return lambda: Context(model="gpt-4o", meter=METER, format=Format.ULLAGE, options=options)


def history(turns: int) -> list[Said]:
    said = [Said("Read the orders.")]
    for number in range(turns):
        call = {"name": "read", "args": {"number": number}, "id": f"c{number}"}
        said.append(Said("", type="ai", tool_calls=(call,)))
        said.append(Said(f"order {number} is on its way. " * 12, type="tool", tool_call_id=f"c{number}", name="read"))
    return said


@dataclass
class Model:
    """Sums up, in one word."""

    asked: list[Any] = field(default_factory=list[Any])
    finish: str = "stop"

    def invoke(self, messages: list[Said], config: dict[str, Any]) -> Said:
        self.asked.append((messages, config))
        return Said("Orders were read; go on.", type="ai", response_metadata={"finish_reason": self.finish})


def request(model: Model) -> SimpleNamespace:
    tool = {"name": "read", "description": "Reads.", "parameters": {"type": "object"}}
    return SimpleNamespace(system_message=Said("You are a clerk.", type="system"), tools=[tool], model=model)


def runtime(told: list[Any]) -> SimpleNamespace:
    return SimpleNamespace(stream_writer=told.append)


def test_who_has_not_installed_it_is_told_how():
    with pytest.raises(BadConfiguration) as missing:
        context_middleware(begin())
    assert missing.value.suggestion == "pip install 'ullage[langchain]'"


@pytest.mark.usefixtures("installed")
async def test_a_history_that_fits_changes_nothing_and_the_status_is_told_twice():
    told, streamed = list[Any](), list[Any]()
    middleware = context_middleware(begin(), tell=told.append)
    assert await middleware.abefore_model({"messages": history(2)}, runtime(streamed)) is None
    assert told == streamed
    assert told[0]["type"] == "context_status"


async def handled(request: object) -> str:
    return "answered"


def handled_at_once(request: object) -> str:
    return "answered"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("way", ["async", "sync", "sync in a loop"])
async def test_what_is_let_go_leaves_the_state_and_the_agents_own_model_sums_it_up(way: str):
    middleware, model, told = context_middleware(begin()), Model(), list[Any]()
    if way == "async":
        assert await middleware.awrap_model_call(request(model), handled) == "answered"
        change = await middleware.abefore_model({"messages": history(20)}, runtime(told))
    else:
        assert middleware.wrap_model_call(request(model), handled_at_once) == "answered"
        work = (middleware.before_model, {"messages": history(20)}, runtime(told))
        change = work[0](*work[1:]) if way == "sync in a loop" else await asyncio.to_thread(*work)
    remove, summary, *kept = change["messages"]
    assert remove.id == "everything"
    assert "Orders were read; go on." in summary.text
    assert summary.id is not None
    assert len(kept) < 20
    assert told[0]["context"]["toolDefinitions"] > 0
    ((asked, config),) = model.asked
    assert [message.type for message in asked] == ["system", "human"]
    assert config == {"tags": ["nostream"]}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("finish", "complete", "refused"), [("length", False, False), ("content_filter", True, True), ("stop", True, False)]
)
async def test_a_chat_model_that_sums_up_says_how_it_ended(finish: str, complete: bool, refused: bool):  # noqa: FBT001
    summarizer = ChatSummarizer(Model(finish=finish))
    found = await summarizer.summarize(SummaryRequest(instructions="Be brief.", text="History.", max_tokens=100))
    assert (found.complete, found.refused) == (complete, refused)


@pytest.mark.usefixtures("installed")
async def test_messages_are_read_as_what_they_are():
    made = list[Context]()

    def watched() -> Context:
        made.append(begin(100_000)())
        return made[-1]

    call = {"name": "read", "args": {"x": 1}, "id": "c1"}
    image = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
    said = [
        Said("Be kind.", type="system"),
        Said([{"type": "text", "text": "Look."}, image, {"type": "image", "url": "https://x/y.png"}]),
        Said(
            [{"type": "reasoning", "reasoning": "Hm.", "extras": {"signature": "s"}}, {"type": "odd", "x": 1}],
            type="ai",
            tool_calls=(call,),
        ),
        Said("out", type="tool", tool_call_id="c1", name="read", status="error"),
    ]
    await context_middleware(watched).abefore_model({"messages": said}, runtime([]))
    read = [message for message in made[0].messages if isinstance(message, Message)]
    assert [message.role for message in read] == ["system", "user", "assistant", "tool"]
    assert read[1].parts == (
        Text("Look."),
        Media(kind="image", media_type="image/png", data="AAAA"),
        Media(kind="image", url="https://x/y.png"),
    )
    assert read[2].parts == (
        Thinking(text="Hm.", signature="s"),
        Unknown({"type": "odd", "x": 1}),
        ToolCall(name="read", arguments='{"x": 1}', id="c1"),
    )
    assert read[3].parts == (ToolResult(parts=(Text("out"),), call_id="c1", name="read", is_error=True),)


@pytest.mark.usefixtures("installed")
async def test_the_usage_of_an_answer_is_what_the_figures_go_by():
    told = list[Any]()
    middleware = context_middleware(begin(), tell=told.append)
    said = [Said("Hello.")]
    await middleware.abefore_model({"messages": said}, runtime([]))
    usage = {"input_tokens": 40, "output_tokens": 3, "output_token_details": {"reasoning": 1}}
    said += [Said("Hi.", type="ai", usage_metadata=usage), Said("How are you?")]
    await middleware.abefore_model({"messages": said}, runtime([]))
    assert told[1]["context"]["method"] == "anchored"


@pytest.mark.usefixtures("installed")
async def test_results_and_texts_in_other_words_keep_all_else():
    middleware = context_middleware(begin(window=2_500, threshold=("messages", 1)))
    giant = "a long story of orders " * 400
    said = [
        Said([{"type": "text", "text": "Go."}, {"type": "image", "url": "https://x/y.png"}], id="u"),
        Said("", type="ai", tool_calls=({"name": "read", "args": {}, "id": "c1"},)),
        Said(giant, type="tool", tool_call_id="c1", name="read", id="r"),
        Said("Ok.", type="ai"),
        Said("And?"),
    ]
    change = await middleware.abefore_model({"messages": said}, runtime([]))
    (result,) = (message for message in change["messages"] if message.id == "r")
    assert (result.tool_call_id, result.name) == ("c1", "read")
    assert len(result.content) < len(giant)
    assert any(message is said[0] for message in change["messages"])


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("in_blocks", [True, False])
async def test_a_giant_that_was_pasted_is_put_in_other_words_and_the_rest_stays(in_blocks: bool):  # noqa: FBT001
    middleware = context_middleware(begin(threshold=("messages", 1)))
    giant, image = "a long story of orders " * 400, {"type": "image", "url": "https://x/y.png"}
    blocks = [{"type": "text", "text": giant}, image, {"type": "text", "text": "short"}]
    pasted = Said(blocks if in_blocks else giant, id="u")
    said = [pasted, Said("Ok.", type="ai"), Said("And?")]
    change = await middleware.abefore_model({"messages": said}, runtime([]))
    (now,) = (message for message in change["messages"] if message.id == "u")
    if not in_blocks:
        assert len(now.content) < len(giant)
        return
    assert len(now.content[0]["text"]) < len(giant)
    assert now.content[1:] == blocks[1:]
