"""What does pydantic-ai-harness' SummarizingCompaction leave of a history?

Run by `context_peers`, in its own environment: reads a trace or a point of it a line, and answers a point with the
places of the messages that stay and the texts that were put in, or with null where nothing changed.
"""

import asyncio
import json
import sys
from itertools import groupby
from typing import Any

from pydantic_ai.messages import (  # pyright: ignore[reportMissingImports]
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel  # pyright: ignore[reportMissingImports]
from pydantic_ai_harness.compaction import SummarizingCompaction, compact_now  # pyright: ignore[reportMissingImports]

History = list[tuple[int, Any]]
"""Messages of theirs, each with the place of the first of ours that it was made of."""


def read(messages: list[dict[str, Any]]) -> History:
    """Results that follow each other are one request of theirs."""
    made, place = History(), 0
    for role, group in groupby(messages, key=lambda message: message["role"]):
        told = list(group)
        if role == "tool":
            made.append((place, ModelRequest(parts=[_returned(message["parts"][0]) for message in told])))
        else:
            made += [(place + number, _spoken(role, message["parts"])) for number, message in enumerate(told)]
        place += len(told)
    return made


def _spoken(role: str, parts: list[dict[str, Any]]) -> Any:  # noqa: ANN401
    texts = [part["text"] for part in parts if part["type"] == "text"]
    if role == "user":
        return ModelRequest(parts=[UserPromptPart("\n".join(texts))])
    calls = [part for part in parts if part["type"] == "tool_call"]
    called = [ToolCallPart(one["name"], one["arguments"], tool_call_id=one["id"]) for one in calls]
    return ModelResponse(parts=[*map(TextPart, texts), *called])


def _returned(result: dict[str, Any]) -> ToolReturnPart:
    said = "\n".join(one.get("text", "") for one in result["parts"])
    return ToolReturnPart(result.get("name") or "tool", said, tool_call_id=result["call_id"])


def left(history: History, says: str, point: dict[str, int]) -> list[int | str] | None:
    model = FunctionModel(lambda _messages, _info: ModelResponse(parts=[TextPart(says)]))
    strategy = SummarizingCompaction(max_messages=1, keep_tokens=point["keep"])
    given = [(place, message) for place, message in history if place < point["step"]]
    made = asyncio.run(compact_now(strategy, [message for _, message in given], model=model))
    ends = [place for place, _ in given[1:]] + [point["step"]]
    places = {id(message): range(place, end) for (place, message), end in zip(given, ends, strict=True)}
    if all(id(message) in places for message in made) and len(made) == len(given):
        return None
    return [item for message in made for item in (places.get(id(message)) or [_text(message)])]


def _text(message: Any) -> str:  # noqa: ANN401
    return "\n".join(str(part.content) for part in message.parts)


def main() -> None:
    history, says = History(), ""
    for line in sys.stdin:
        order = json.loads(line)
        if "history" in order:
            history, says = read(order["history"]), order["says"]
        else:
            print(json.dumps(left(history, says, order)), flush=True)


if __name__ == "__main__":
    main()
