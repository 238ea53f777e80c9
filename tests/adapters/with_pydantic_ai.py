"""An agent of Pydantic AI's through a session that is compacted several times."""

# pyright: reportMissingImports=false, reportUntypedFunctionDecorator=false
import asyncio
import json
from typing import Any

from frameworks import Short, Watched, begin, order, result
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage, UsageLimits

from ullage.adapters.pydantic_ai import history_processor
from ullage.messages import Format

STEPS, TURNS = 12, 5
SUMMARIES = list[Any]()


def written(messages: list[Any], info: AgentInfo) -> list[Any]:
    """As OpenAI would get them."""
    found: list[Any] = []
    for message in messages:
        if message.kind == "response":
            said = "".join(part.content for part in message.parts if isinstance(part, TextPart))
            calls = [_call(part) for part in message.parts if isinstance(part, ToolCallPart)]
            found.append({"role": "assistant", "content": said or None, **({"tool_calls": calls} if calls else {})})
            continue
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                text = part.model_response_str()
                found.append({"role": "tool", "tool_call_id": part.tool_call_id, "content": text})
            else:
                role = "system" if part.part_kind == "system-prompt" else "user"
                found.append({"role": role, "content": part.content})
    return [{"role": "system", "content": info.instructions}, *found] if info.instructions else found


def _call(part: Any) -> dict[str, Any]:  # noqa: ANN401
    function = {"name": part.tool_name, "arguments": part.args_as_json_str()}
    return {"id": part.tool_call_id, "type": "function", "function": function}


def scripted(watched: Watched) -> FunctionModel:
    def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
        if not info.function_tools:
            SUMMARIES.append(messages)
            return ModelResponse(parts=[TextPart("The user wants every order read. Go on with the next one.")])
        tools = [
            {"type": "function", "function": {"name": one.name, "parameters": one.parameters_json_schema}}
            for one in info.function_tools
        ]
        tokens = watched.tokens(written(messages, info), tools=tools)
        number = len(watched.requests)
        usage = RequestUsage(input_tokens=tokens, output_tokens=20)
        if number % STEPS == 0:
            return ModelResponse(parts=[TextPart("Done.")], usage=usage)
        return ModelResponse(parts=[ToolCallPart("read", {"number": number}, f"c{number}")], usage=usage)

    return FunctionModel(answer)


async def through_runs(**prompts: Any) -> Watched:  # noqa: ANN401
    watched = Watched(Format.OPENAI_CHAT)
    processor = history_processor(lambda: begin(Format.ULLAGE), tell=watched.events.append)
    agent = Agent(scripted(watched), capabilities=[ProcessHistory(processor)], **prompts)

    @agent.tool
    def read(run: RunContext[None], number: int) -> str:
        return order(number)

    history: list[Any] = []
    for _ in range(TURNS):
        done = await agent.run(
            "Read the next orders.", message_history=history, usage_limits=UsageLimits(request_limit=None)
        )
        history = done.all_messages()
    watched.check(STEPS * TURNS)
    return watched


def history(length: int) -> list[Any]:
    said: list[Any] = [ModelRequest(parts=[UserPromptPart("Read the next orders.")])]
    for number in range(1, length):
        said.append(ModelResponse(parts=[ToolCallPart("read", {"number": number}, f"c{number}")]))
        said.append(ModelRequest(parts=[ToolReturnPart("read", order(number), f"c{number}")]))
    return said


async def check_identity() -> int:
    process, given = history_processor(lambda: begin(Format.ULLAGE, summarizer=Short())), history(80)
    summary, *kept = await process(None, given)
    assert summary.parts[0].content.startswith("<context_summary>")
    same = [one for one in kept if any(one is other for other in given)]
    assert len(same) >= len(kept) - 1, "all but a bridge"
    again = await process(None, [summary, *kept])
    assert all(one is other for one, other in zip(again, [summary, *kept], strict=True))
    return len(same)


async def check_masking() -> int:
    process = history_processor(lambda: begin(Format.ULLAGE, threshold=("messages", 1), summarizer=Short()))
    given = [*history(2), ModelResponse(parts=[TextPart("Ok.")]), ModelRequest(parts=[UserPromptPart("And?")])]
    given[2] = ModelRequest(parts=[ToolReturnPart("read", {"orders": order(1) * 12}, "c1", metadata={"kept": 1})])
    kept = await process(None, given)
    (part,) = (one for message in kept for one in message.parts if isinstance(one, ToolReturnPart))
    assert part is not given[2].parts[0]
    assert len(part.content) < len(json.dumps(given[2].parts[0].content))
    assert (part.tool_call_id, part.metadata) == ("c1", {"kept": 1})
    return len(kept)


async def main() -> None:
    instructed = await through_runs(instructions="You are a clerk.")
    prompted = await through_runs(system_prompt="You are a clerk.")
    assert all(any(one["role"] == "system" for one in messages) for messages, _ in prompted.requests)
    result(
        **instructed.measured,
        prompted=prompted.measured,
        summaries=len(SUMMARIES),
        same=await check_identity(),
        masked=await check_masking(),
    )


asyncio.run(main())
