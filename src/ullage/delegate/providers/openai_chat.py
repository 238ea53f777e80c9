"""How does OpenAI's chat wire look, and that of everyone who copied it?

`POST {base}/chat/completions`, spoken by Ollama, vLLM, llama.cpp, OpenRouter and most others. An answer is whole when a
choice has said why it ended.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ullage.messages import (
    Format,
    Media,
    Message,
    Part,
    Text,
    ToolCall,
    ToolDefinition,
    ToolResult,
    read_usage,
    table_at,
    tables_at,
    text_at,
    tokens_at,
)
from ullage.models import Usage
from ullage.tool import Json, JsonObject

from ..exchange import Completion, Event, Finish, Outgoing, Written
from .gathered import Gathered, truncated
from .in_band import fail_in_band
from .parsed import parsed
from .parts import address, of, text_of

__all__ = ["ChatReader", "OpenAIChat"]

_FINISH: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
}


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    output_key: str = "max_tokens"
    """OpenAI itself wants `max_completion_tokens`."""

    def write(self, outgoing: Outgoing) -> Written:
        body: dict[str, Json] = {
            "model": outgoing.model,
            "messages": [written for message in outgoing.messages for written in _messages(message)],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if outgoing.max_output_tokens is not None:
            body[self.output_key] = outgoing.max_output_tokens
        if outgoing.temperature is not None:
            body["temperature"] = outgoing.temperature
        if outgoing.tools:
            body["tools"] = [_tool(tool) for tool in outgoing.tools]
        if outgoing.tool_choice is not None:
            body["tool_choice"] = outgoing.tool_choice
        if outgoing.output_schema is not None:
            schema: dict[str, Json] = {"name": "answer", "strict": True, "schema": dict(outgoing.output_schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return Written(path="/chat/completions", headers={}, body=body)

    def reader(self) -> "ChatReader":
        return ChatReader()

    def authorize(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"}


def _messages(message: Message) -> Iterator[dict[str, Json]]:
    """A message may hold results of several calls, each of which is a message of its own here."""
    for result in of(ToolResult, message.parts):
        yield {"role": "tool", "tool_call_id": result.call_id, "content": text_of(result.parts)}
    calls, rest = of(ToolCall, message.parts), [part for part in message.parts if isinstance(part, Text | Media)]
    if not calls and not rest:
        return
    written: dict[str, Json] = {"role": message.role, "content": _content(rest)}
    if calls:
        written["tool_calls"] = [_call(call) for call in calls]
    yield written


def _content(parts: list[Text | Media]) -> Json:
    if not any(isinstance(part, Media) for part in parts):
        return text_of(parts) if parts else None
    return [_part(part) for part in parts]


def _part(part: Part) -> Json:
    if isinstance(part, Media):
        return {"type": "image_url", "image_url": {"url": address(part)}}
    return {"type": "text", "text": text_of((part,))}


def _call(call: ToolCall) -> dict[str, Json]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _tool(tool: ToolDefinition) -> dict[str, Json]:
    function: dict[str, Json] = {"name": tool.name, "parameters": dict(tool.schema)}
    if tool.description is not None:
        function["description"] = tool.description
    return {"type": "function", "function": function}


@dataclass(slots=True)
class ChatReader:
    _gathered: Gathered = field(default_factory=Gathered)
    _usage: Usage = field(default_factory=Usage)
    _finish: str | None = None
    _model: str | None = None
    _cost: str | None = None

    def feed(self, event: str | None, data: str) -> tuple[Event, ...]:
        if data.strip() == "[DONE]":
            return ()
        said = parsed(data)
        fail_in_band(said.get("error"))
        self._model = text_at(said, "model") or self._model
        if usage := table_at(said, "usage"):
            self._count(usage)
        choices = tables_at(said, "choices")
        return self._choice(choices[0]) if choices else ()

    def _count(self, said: JsonObject) -> None:
        self._usage = read_usage(said, Format.OPENAI_CHAT)
        cost = said.get("cost")
        if isinstance(cost, int | float) and not isinstance(cost, bool):
            self._cost = repr(cost)

    def _choice(self, choice: JsonObject) -> tuple[Event, ...]:
        delta, gathered = table_at(choice, "delta"), self._gathered
        self._finish = text_at(choice, "finish_reason") or self._finish
        for number, said in enumerate(tables_at(delta, "tool_calls")):
            self._call(number, said)
        return (
            *gathered.thinking(text_at(delta, "reasoning_content") or text_at(delta, "reasoning")),
            *gathered.text(text_at(delta, "content")),
            *gathered.text(text_at(delta, "refusal")),
        )

    def _call(self, number: int, said: JsonObject) -> None:
        place = tokens_at(said, "index")
        call = self._gathered.call(number if place is None else place)
        function = table_at(said, "function")
        call.id = text_at(said, "id") or call.id
        call.name = call.name or text_at(function, "name") or ""
        call.arguments.append(text_at(function, "arguments") or "")

    def finish(self) -> Completion:
        if self._finish is None:
            raise truncated()
        finish = _FINISH.get(self._finish, "other")
        return self._gathered.completion(finish, self._usage, model=self._model, reported_cost=self._cost)

    def so_far(self) -> Usage:
        return self._usage
