"""What does LangChain's SummarizationMiddleware leave of a history?

Run by `context_peers`, in LangChain's own environment: reads a trace or a point of it a line, and answers a point with
the places of the messages that stay and the texts that were put in, or with null where nothing changed.
"""

import json
import sys
from typing import Any

from langchain.agents.middleware import SummarizationMiddleware  # pyright: ignore[reportMissingImports]
from langchain_core.language_models.fake_chat_models import (  # pyright: ignore[reportMissingImports]
    FakeListChatModel,
)
from langchain_core.messages import (  # pyright: ignore[reportMissingImports]
    AIMessage,
    HumanMessage,
    ToolMessage,
)


def read(message: dict[str, Any], place: int) -> Any:  # noqa: ANN401
    parts = message["parts"]
    text = "\n".join(part["text"] for part in parts if part["type"] == "text")
    if message["role"] == "tool":
        said = "\n".join(one.get("text", "") for one in parts[0]["parts"])
        return ToolMessage(said, tool_call_id=parts[0]["call_id"], id=str(place))
    if message["role"] == "user":
        return HumanMessage(text, id=str(place))
    calls = [part for part in parts if part["type"] == "tool_call"]
    made = [{"name": one["name"], "args": json.loads(one["arguments"] or "{}"), "id": one["id"]} for one in calls]
    return AIMessage(text, tool_calls=made, id=str(place))


def left(history: list[Any], says: str, point: dict[str, int]) -> list[int | str] | None:
    model = FakeListChatModel(responses=[says], profile={"max_input_tokens": point["window"]})
    middleware = SummarizationMiddleware(model, trigger=("messages", 1), keep=("tokens", point["keep"]))
    made = middleware.before_model({"messages": history[: point["step"]]}, None)
    if made is None:
        return None
    return [int(one.id) if (one.id or "").isdigit() else one.text for one in made["messages"][1:]]


def main() -> None:
    history, says = list[Any](), ""
    for line in sys.stdin:
        order = json.loads(line)
        if "history" in order:
            history = [read(message, place) for place, message in enumerate(order["history"])]
            says = order["says"]
        else:
            print(json.dumps(left(history, says, order)), flush=True)


if __name__ == "__main__":
    main()
