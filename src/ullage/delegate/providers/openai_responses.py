"""How does OpenAI's Responses wire look?

`POST {base}/responses`. An answer is whole when `response.completed` or `response.incomplete` has come; what it holds
is read from that last event, not put together from pieces.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ullage.messages import (
    Format,
    Message,
    ToolDefinition,
    read_usage,
    table_at,
    tables_at,
    text_at,
    write_messages,
)
from ullage.models import Usage
from ullage.tool import Json, JsonObject

from ..exchange import Completion, Event, Finish, Outgoing, Written
from ..strictness import is_strict
from .gathered import Gathered, truncated
from .in_band import fail_in_band
from .parsed import parsed
from .parts import before

__all__ = ["OpenAIResponses", "ResponsesReader"]


@dataclass(frozen=True, slots=True)
class OpenAIResponses:
    def write(self, outgoing: Outgoing) -> Written:
        system, messages = before(outgoing)
        body: dict[str, Json] = {
            "model": outgoing.model,
            "input": list(_items(messages)),
            "stream": True,
            "store": False,
        }
        if system:
            body["instructions"] = system
        if outgoing.max_output_tokens is not None:
            body["max_output_tokens"] = outgoing.max_output_tokens
        if outgoing.temperature is not None:
            body["temperature"] = outgoing.temperature
        if outgoing.tools:
            body["tools"] = [_tool(tool) for tool in outgoing.tools]
        if outgoing.tools and outgoing.thinks:
            # Nothing is stored: what was thought before a call goes back with its result. Others refuse to be asked.
            body["include"] = ["reasoning.encrypted_content"]
        if outgoing.tool_choice is not None:
            body["tool_choice"] = outgoing.tool_choice
        if outgoing.output_schema is not None:
            schema: dict[str, Json] = {"type": "json_schema", "name": "answer", "schema": dict(outgoing.output_schema)}
            body["text"] = {"format": {**schema, "strict": is_strict(outgoing.output_schema)}}
        return Written(path="/responses", headers={}, body=body)

    def reader(self) -> "ResponsesReader":
        return ResponsesReader()

    def authorize(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"}


def _items(messages: tuple[Message, ...]) -> Iterator[Json]:
    """A text of the assistant's is a list here: servers that copied this wire take no other."""
    for item in write_messages(messages, Format.OPENAI_RESPONSES):
        said = text_at(item, "content")
        if item.get("role") == "assistant" and said is not None:
            item["content"] = [{"type": "output_text", "text": said, "annotations": []}]
        yield item


def _tool(tool: ToolDefinition) -> dict[str, Json]:
    written: dict[str, Json] = {"type": "function", "name": tool.name, "parameters": dict(tool.schema), "strict": False}
    if tool.description is not None:
        written["description"] = tool.description
    return written


@dataclass(slots=True)
class ResponsesReader:
    _gathered: Gathered = field(default_factory=Gathered)
    _last: JsonObject | None = None
    _usage: Usage = field(default_factory=Usage)

    def feed(self, event: str | None, data: str) -> tuple[Event, ...]:
        said = parsed(data)
        if text_at(said, "object") == "response":
            # A whole answer that was not streamed.
            status = text_at(said, "status") or "completed"
            said = {"type": f"response.{status}", "response": dict(said)}
        kind = text_at(said, "type") or event or ""
        if kind == "error":
            fail_in_band(said.get("error") or dict(said))
        response = table_at(said, "response")
        if response:
            self._usage = read_usage(table_at(response, "usage"), Format.OPENAI_RESPONSES)
        if kind == "response.created":
            # A second one is the answer begun anew: what came before it is not part of it.
            self._gathered = Gathered()
        if kind == "response.failed":
            fail_in_band(response.get("error") or "the response failed")
        if kind in ("response.completed", "response.incomplete"):
            self._last = response
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            return self._gathered.text(text_at(said, "delta"))
        if kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            return self._gathered.thinking(text_at(said, "delta"))
        return ()

    @property
    def is_whole(self) -> bool:
        return self._last is not None

    @property
    def is_over(self) -> bool:
        return self._last is not None

    def finish(self) -> Completion:
        if self._last is None:
            raise truncated()
        last = self._last
        whole = _output(tables_at(last, "output"))
        if not whole.text_so_far and not whole.calls:
            whole.text(self._gathered.text_so_far)
        return whole.completion(_finish(last), self._usage, model=text_at(last, "model"))

    def so_far(self) -> Usage:
        return self._usage


def _finish(response: JsonObject) -> Finish:
    if text_at(response, "status") != "incomplete":
        return "stop"
    reason = text_at(table_at(response, "incomplete_details"), "reason")
    return "refusal" if reason == "content_filter" else "length"


def _output(items: list[JsonObject]) -> Gathered:
    found = Gathered()
    for place, item in enumerate(items):
        kind = text_at(item, "type")
        if kind == "message":
            for part in tables_at(item, "content"):
                found.text(text_at(part, "text") or text_at(part, "refusal"))
        elif kind == "reasoning":
            for summary in tables_at(item, "summary"):
                found.thinking(text_at(summary, "text"))
            found.thought_ends(text_at(item, "encrypted_content"), "encrypted")
        elif kind == "function_call":
            call = found.call(place)
            call.name, call.id = text_at(item, "name") or "", text_at(item, "call_id")
            call.arguments.append(text_at(item, "arguments") or "")
    return found
