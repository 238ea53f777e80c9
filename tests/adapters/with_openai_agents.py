"""An agent of the OpenAI Agents SDK through a session that is compacted several times."""

# pyright: reportMissingImports=false, reportUntypedFunctionDecorator=false
import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from frameworks import Short, Watched, begin, order, result
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from ullage.adapters.openai_agents import CompactingSession
from ullage.messages import Format

STEPS, TURNS = 12, 5
SUMMARIES = list[Any]()


@function_tool
def read(number: int) -> str:
    """Reads an order."""
    return order(number)


class Scripted(Model):
    def __init__(self, watched: Watched) -> None:
        self.watched = watched

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **more: Any) -> ModelResponse:  # noqa: A002, ANN401
        tools = more.get("tools", args[1] if len(args) > 1 else [])
        if not tools:
            SUMMARIES.append(input)
            return self._said("The user wants every order read. Go on with the next one.")
        written = [
            {"type": "function", "name": one.name, "parameters": one.params_json_schema, "description": one.description}
            for one in tools
        ]
        self.watched.tokens(input, instructions=system_instructions, tools=written)
        number = len(self.watched.requests)
        if number % STEPS == 0:
            return self._said("Done.")
        arguments = json.dumps({"number": number})
        call = ResponseFunctionToolCall(arguments=arguments, call_id=f"c{number}", name="read", type="function_call")
        return ModelResponse(output=[call], usage=Usage(), response_id=None)

    def _said(self, text: str) -> ModelResponse:
        part = ResponseOutputText(annotations=[], text=text, type="output_text")
        message = ResponseOutputMessage(id="m", content=[part], role="assistant", status="completed", type="message")
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:  # noqa: ANN401
        raise NotImplementedError


def compacting(watched: Watched, name: str) -> CompactingSession:
    return CompactingSession(
        inner=SQLiteSession(name), begin=lambda: begin(Format.OPENAI_RESPONSES), tell=watched.events.append
    )


async def check_identity() -> int:
    """What is kept is what was given, and the session inside has everything still."""
    watched = Watched(Format.OPENAI_RESPONSES)
    session = CompactingSession(
        inner=Keeping(), begin=lambda: begin(Format.OPENAI_RESPONSES, summarizer=Short()), tell=watched.events.append
    )
    await session.add_items([{"role": "user", "content": "Read the next orders."}])
    for number in range(1, 20):
        call = {"type": "function_call", "name": "read", "call_id": f"c{number}", "arguments": "{}"}
        await session.add_items([call])
        await session.add_items([{"type": "function_call_output", "call_id": f"c{number}", "output": order(number)}])
    summary, *kept = await session.get_items()
    assert json.dumps(summary).find("<context_summary>") > 0
    same = [one for one in kept if any(one is other for other in session.inner.items)]
    assert len(same) >= len(kept) - 1, "all but a bridge"
    assert len(session.inner.items) == 39
    assert await session.get_items() == [summary, *kept], "and is not summed up again"
    assert await session.pop_item() == session.inner.popped
    await session.clear_session()
    assert await session.get_items() == []
    return len(same)


class Keeping:
    """A session in memory."""

    session_id = "s"

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.popped: Any = None

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return list(self.items)

    async def add_items(self, items: list[Any]) -> None:
        self.items += items

    async def pop_item(self) -> Any:  # noqa: ANN401
        self.popped = self.items.pop()
        return self.popped

    async def clear_session(self) -> None:
        self.items.clear()


async def main() -> None:
    set_tracing_disabled(True)
    watched = Watched(Format.OPENAI_RESPONSES)
    session = compacting(watched, "1")
    agent = Agent(name="clerk", instructions="You are a clerk.", model=Scripted(watched), tools=[read])
    config = RunConfig(call_model_input_filter=session.fit)
    at_start = list[Any]()
    for _ in range(TURNS):
        before = len(watched.events)
        done = await Runner.run(agent, "Read the next orders.", session=session, run_config=config, max_turns=50)
        assert done.final_output == "Done."
        at_start.append(watched.events.pop(before))
    watched.check(STEPS * TURNS)
    kept = await session.inner.get_items()
    assert len(kept) == TURNS * (2 * STEPS), len(kept)
    assert not any(event["context"]["compacted"] for event in at_start), (
        "what was summed up is not forgotten between runs"
    )
    result(**watched.measured, summaries=len(SUMMARIES), same=await check_identity(), kept=len(kept))


asyncio.run(main())
