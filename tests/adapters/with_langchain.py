"""An agent of LangChain's through a session that is compacted several times."""

# pyright: reportMissingImports=false, reportUntypedFunctionDecorator=false
import asyncio
from types import SimpleNamespace
from typing import Any

from frameworks import Short, Watched, begin, order, result
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver

from ullage.adapters.langchain import context_middleware
from ullage.messages import Format

STEPS, TURNS = 12, 5
SUMMARIES = list[Any]()


@tool
def read(number: int) -> str:
    """Reads an order."""
    return order(number)


class Scripted(BaseChatModel):
    """Calls the tool a dozen times for every prompt, and then says that it is done; sums up where it has no tools."""

    watched: Any
    bound: list[Any] = []  # noqa: RUF012

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:  # noqa: ANN401
        return self.model_copy(update={"bound": [convert_to_openai_tool(one) for one in tools]})

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:  # noqa: ANN401
        if not self.bound:
            SUMMARIES.append(messages)
            return _said(AIMessage("The user wants every order read. Go on with the next one."))
        tokens = self.watched.tokens(convert_to_openai_messages(messages), tools=self.bound)
        number = len(self.watched.requests)
        usage: Any = {"input_tokens": tokens, "output_tokens": 20, "total_tokens": tokens + 20}
        if number % STEPS == 0:
            return _said(AIMessage("Done.", usage_metadata=usage))
        call = {"name": "read", "args": {"number": number}, "id": f"c{number}"}
        return _said(AIMessage("", tool_calls=[call], usage_metadata=usage))


def _said(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])


def agent(watched: Watched, **more: Any) -> Any:  # noqa: ANN401
    middleware = context_middleware(lambda: begin(Format.ULLAGE), tell=watched.events.append)
    return create_agent(
        Scripted(watched=watched),
        [read],
        system_prompt="You are a clerk.",
        middleware=[middleware],
        checkpointer=InMemorySaver(),
        **more,
    )


def history(length: int) -> list[Any]:
    said: list[Any] = [HumanMessage("Read the next orders.", id="m0")]
    for number in range(1, length):
        call = {"name": "read", "args": {"number": number}, "id": f"c{number}"}
        said += [AIMessage("", tool_calls=[call], id=f"m{number}")]
        said += [ToolMessage(order(number), tool_call_id=f"c{number}", name="read", id=f"r{number}")]
    return said


async def check_identity() -> int:
    """What is kept is what was given."""
    middleware = context_middleware(lambda: begin(Format.ULLAGE, summarizer=Short()))
    given = history(80)
    change = await middleware.abefore_model({"messages": given}, SimpleNamespace(stream_writer=lambda _: None))
    _, summary, *kept = change["messages"]
    assert summary.text.startswith("<context_summary>")
    same = [one for one in kept if any(one is other for other in given)]
    assert len(same) >= len(kept) - 1, "all but a bridge"
    assert await middleware.abefore_model({"messages": [summary, *kept]}, SimpleNamespace(stream_writer=None)) is None
    return len(same)


async def check_masking() -> int:
    """A result that is put in other words is a copy; its call and all else stay."""
    middleware = context_middleware(lambda: begin(Format.ULLAGE, threshold=("messages", 1)))
    given = [*history(2), AIMessage("Ok.", id="x"), HumanMessage("And?", id="y")]
    given[2] = ToolMessage(order(1) * 12, tool_call_id="c1", name="read", id="r1", artifact={"kept": 1})
    change = await middleware.abefore_model({"messages": given}, SimpleNamespace(stream_writer=lambda _: None))
    _, *kept = change["messages"]
    (result_now,) = (one for one in kept if one.id == "r1")
    assert result_now is not given[2]
    assert len(result_now.text) < len(given[2].text)
    assert (result_now.tool_call_id, result_now.artifact) == ("c1", {"kept": 1})
    return len(kept)


async def main() -> None:
    asked = {"messages": [HumanMessage("Read the next orders.")]}
    config: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 100}
    by_async = Watched(Format.OPENAI_CHAT)
    worker, told = agent(by_async), list[Any]()
    for _ in range(TURNS):
        async for event in worker.astream(asked, config, stream_mode="custom"):
            told.append(event)
    by_async.check(STEPS * TURNS)
    assert told == by_async.events, "the agent's own stream tells the same"
    by_sync = Watched(Format.OPENAI_CHAT)
    worker = agent(by_sync)
    for turn in range(TURNS):
        # Where an event loop runs already, and where none does.
        _ = worker.invoke(asked, config) if turn % 2 else await asyncio.to_thread(worker.invoke, asked, config)
    by_sync.check(STEPS * TURNS)
    result(
        **by_async.measured,
        by_sync=by_sync.measured,
        summaries=len(SUMMARIES),
        same=await check_identity(),
        masked=await check_masking(),
    )


asyncio.run(main())
