"""How does OpenAI's chat wire look, and that of everyone who copied it?

`POST {base}/chat/completions`, spoken by Ollama, vLLM, llama.cpp, OpenRouter and most others. An answer is whole when a
choice has said why it ended.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ullage.messages import (
    Format,
    ToolDefinition,
    read_usage,
    table_at,
    tables_at,
    text_at,
    tokens_at,
    write_messages,
)
from ullage.models import Usage
from ullage.tool import Json, JsonObject

from ..exchange import Completion, Event, Finish, Outgoing, Written
from ..strictness import is_strict
from .gathered import Gathered, UnfinishedCall, broken_off, truncated
from .in_band import fail_in_band
from .parsed import parsed

__all__ = ["ChatReader", "OpenAIChat"]

_FINISH: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
    "model_length": "length",
}
_HIGHEST_COST = 10_000
"""Dollars of one answer; what is reported beyond is no price, and is not known then."""
_UNFINISHED = frozenset({"error", "abort", "aborted", "cancelled", "insufficient_system_resource"})
"""What servers say of an answer that they themselves broke off."""


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    output_key: str = "max_tokens"
    """OpenAI itself wants `max_completion_tokens`."""

    def write(self, outgoing: Outgoing) -> Written:
        body: dict[str, Json] = {
            "model": outgoing.model,
            "messages": list(_messages(outgoing)),
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
            strict = is_strict(outgoing.output_schema)
            schema: dict[str, Json] = {"name": "answer", "strict": strict, "schema": dict(outgoing.output_schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return Written(path="/chat/completions", headers={}, body=body)

    def reader(self) -> "ChatReader":
        return ChatReader()

    def authorize(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"}


def _messages(outgoing: Outgoing) -> Iterator[Json]:
    """Texts alone are one text: many of those who copied this wire take no list."""
    for message in write_messages(outgoing.messages, Format.OPENAI_CHAT):
        parts = tables_at(message, "content")
        texts = [text for part in parts if (text := text_at(part, "text")) is not None]
        yield {**message, "content": "\n".join(texts)} if parts and len(texts) == len(parts) else message


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
    _places: dict[int, int] = field(default_factory=dict[int, int])
    """By the index that the server gives, the number of the call it stands for now."""

    _id: str | None = None
    _pieces: int = 0
    """In a row, with this id."""

    def feed(self, event: str | None, data: str) -> tuple[Event, ...]:
        said = parsed(data)
        fail_in_band(said.get("error"))
        self._model = text_at(said, "model") or self._model
        if usage := table_at(said, "usage"):
            self._count(usage)
        choices = tables_at(said, "choices")
        if not choices or self._finish is not None:
            # What comes after the reason to finish, other than the usage, is the same answer again.
            return ()
        self._note_identity(text_at(said, "id"), table_at(choices[0], "delta"))
        return self._choice(choices[0])

    def _note_identity(self, identity: str | None, delta: JsonObject) -> None:
        """Drops what came so far where another completion begins in the middle of the stream: a role under another id,
        after several pieces that shared one. Servers that give every piece an id of its own share none."""
        if not identity:
            return
        if identity == self._id:
            self._pieces += 1
        else:
            if self._pieces > 1 and text_at(delta, "role") is not None:
                self._gathered, self._places = Gathered(), {}
            self._id, self._pieces = identity, 1

    def _count(self, said: JsonObject) -> None:
        self._usage = read_usage(said, Format.OPENAI_CHAT)
        cost = said.get("cost")
        if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost <= _HIGHEST_COST:
            self._cost = repr(cost)

    def _choice(self, choice: JsonObject) -> tuple[Event, ...]:
        delta, gathered = table_at(choice, "delta") or table_at(choice, "message"), self._gathered
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
        function = table_at(said, "function")
        name = text_at(function, "name") or ""
        call = self._place(number if place is None else place, text_at(said, "id"), name)
        call.name = call.name or name
        call.arguments.append(text_at(function, "arguments") or "")

    def _place(self, index: int, identity: str | None, name: str) -> UnfinishedCall:
        """The call that a piece belongs to. Another id with a name is another call, whatever index it has: some servers
        give all of them one. Without a name it is not, for others give every piece an id."""
        call = self._gathered.call(self._places.setdefault(index, len(self._gathered.calls)))
        if name and identity and call.id and identity != call.id:
            self._places[index] = len(self._gathered.calls)
            call = self._gathered.call(self._places[index])
        call.id = call.id or identity
        return call

    @property
    def is_whole(self) -> bool:
        return self._finish is not None and self._finish not in _UNFINISHED

    @property
    def is_over(self) -> bool:
        """`[DONE]`, which every wire may have, is seen before an event comes here."""
        return False

    def finish(self) -> Completion:
        if self._finish is None:
            raise truncated()
        if self._finish in _UNFINISHED:
            raise broken_off(self._finish)
        finish = _FINISH.get(self._finish, "other")
        return self._gathered.completion(finish, self._usage, model=self._model, reported_cost=self._cost)

    def so_far(self) -> Usage:
        return self._usage
