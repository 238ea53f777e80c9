"""OpenAI's Chat Completions and Responses APIs: requests and streamed answers.

`POST {base}/chat/completions` is also supported by Ollama, vLLM, llama.cpp, OpenRouter and most others. An answer is
complete when a choice has a finish reason.

`POST {base}/responses`: an answer is complete when `response.completed` or `response.incomplete` has arrived; its
content is read from that last event, not assembled from pieces.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ullage.messages import (
    Format,
    Message,
    table_at,
    tables_at,
    text_at,
    tokens_at,
    write_messages,
)
from ullage.models import Usage
from ullage.tool import Json, JsonObject

from ..model_call import Completion, Event, Finish, Outgoing, WireRequest, is_strict
from .answer_stream import (
    Gathered,
    before,
    fail_in_band,
    incomplete_error,
    parse_event,
    read_openai_usage,
    truncated_error,
)

__all__ = ["ChatReader", "OpenAIChat", "OpenAIResponses", "ResponsesReader"]

_FINISH: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
    "model_length": "length",
}
_HIGHEST_COST = 10_000
"""Maximum plausible cost of one answer in dollars; a higher report is ignored."""
_NO_REASON = frozenset({None, "", "null", "None"})
"""Finish reasons of a piece that is not the last, as compatible servers write them."""
_UNFINISHED = frozenset({"error", "abort", "aborted", "cancelled", "insufficient_system_resource"})
"""Finish reasons of an answer that the server itself interrupted."""


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """The wire format of the Chat Completions API."""

    output_key: str = "max_tokens"
    """OpenAI itself requires `max_completion_tokens`."""

    def write(self, outgoing: Outgoing) -> WireRequest:
        # A message of texts alone is written as a plain string, since many compatible servers accept no list.
        messages: list[Json] = []
        for message in write_messages(outgoing.messages, Format.OPENAI_CHAT):
            parts = tables_at(message, "content")
            texts = [text for part in parts if (text := text_at(part, "text")) is not None]
            messages.append({**message, "content": "\n".join(texts)} if parts and len(texts) == len(parts) else message)
        body: dict[str, Json] = {
            "model": outgoing.model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if outgoing.max_output_tokens is not None:
            body[self.output_key] = outgoing.max_output_tokens
        if outgoing.temperature is not None:
            body["temperature"] = outgoing.temperature
        if outgoing.tools:
            tools: list[Json] = []
            for tool in outgoing.tools:
                function: dict[str, Json] = {"name": tool.name, "parameters": dict(tool.schema)}
                if tool.description is not None:
                    function["description"] = tool.description
                tools.append({"type": "function", "function": function})
            body["tools"] = tools
        if outgoing.tool_choice is not None:
            body["tool_choice"] = outgoing.tool_choice
        if outgoing.output_schema is not None:
            strict = is_strict(outgoing.output_schema)
            schema: dict[str, Json] = {"name": "answer", "strict": strict, "schema": dict(outgoing.output_schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return WireRequest(path="/chat/completions", headers={}, body=body)

    def reader(self) -> "ChatReader":
        return ChatReader()

    def authorize(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"}


@dataclass(slots=True)
class ChatReader:
    """Reads one answer of the Chat Completions API."""

    _gathered: Gathered = field(default_factory=Gathered)
    _usage: Usage = field(default_factory=Usage)
    _finish: str | None = None
    _model: str | None = None
    _cost: str | None = None
    _places: dict[int, int] = field(default_factory=dict[int, int])
    """The current call's number, by the index that the server sends."""

    _id: str | None = None
    _pieces: int = 0
    """Number of consecutive pieces with this id."""

    def feed(self, event: str | None, data: str) -> tuple[Event, ...]:
        said = parse_event(data)
        fail_in_band(said.get("error"))
        self._model = text_at(said, "model") or self._model
        # Moonshot puts the usage into the choice, Groq into a table of its own.
        places = (said, *tables_at(said, "choices"), table_at(said, "x_groq"))
        self._usage = read_openai_usage(self._usage, *places)
        cost = table_at(said, "usage").get("cost")
        if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost <= _HIGHEST_COST:
            self._cost = repr(cost)
        choices = [one for one in tables_at(said, "choices") if not one.get("index")]
        if not choices or self._finish is not None:
            # What follows the finish reason, other than the usage, repeats the answer.
            return ()
        identity = text_at(said, "id")
        # If another completion begins within the stream, the pieces so far are dropped: a role arrives under another
        # id after several pieces that shared one. Servers that give each piece an id of its own share none.
        if identity:
            if identity == self._id:
                self._pieces += 1
            else:
                if self._pieces > 1 and text_at(table_at(choices[0], "delta"), "role") is not None:
                    self._gathered, self._places = Gathered(), {}
                self._id, self._pieces = identity, 1
        choice = choices[0]
        delta, gathered = table_at(choice, "delta") or table_at(choice, "message"), self._gathered
        reason = text_at(choice, "finish_reason")
        self._finish = self._finish if reason in _NO_REASON else reason
        for number, said in enumerate(tables_at(delta, "tool_calls")):
            place = tokens_at(said, "index")
            function = table_at(said, "function")
            name = text_at(function, "name") or ""
            # Another id with a name begins another call, whatever its index, because some servers use one index for
            # all. An id without a name does not, because others give every piece an id.
            index = number if place is None else place
            identity = text_at(said, "id")
            call = self._gathered.call(self._places.setdefault(index, len(self._gathered.calls)))
            if name and identity and call.id and identity != call.id:
                self._places[index] = len(self._gathered.calls)
                call = self._gathered.call(self._places[index])
            call.id = call.id or identity
            call.name = call.name or name
            call.arguments.append(text_at(function, "arguments") or "")
        heard = [*gathered.thinking(text_at(delta, "reasoning_content") or text_at(delta, "reasoning"))]
        heard += gathered.text(text_at(delta, "content"))
        # Mistral's models that reason send content in parts.
        for part in tables_at(delta, "content"):
            for thought in tables_at(part, "thinking"):
                heard += gathered.thinking(text_at(thought, "text"))
            heard += gathered.text(text_at(part, "text"))
        heard += gathered.text(text_at(choice, "text"))
        heard += gathered.text(text_at(delta, "refusal"))
        return tuple(heard)

    @property
    def is_whole(self) -> bool:
        return self._finish is not None and self._finish not in _UNFINISHED

    @property
    def is_over(self) -> bool:
        """Always false: `[DONE]`, which any wire may send, is handled before events are passed here."""
        return False

    def finish(self) -> Completion:
        if self._finish is None:
            raise truncated_error()
        if self._finish in _UNFINISHED:
            raise incomplete_error(self._finish)
        finish = _FINISH.get(self._finish, "other")
        return self._gathered.completion(finish, self._usage, model=self._model, reported_cost=self._cost)

    def so_far(self) -> Usage:
        return self._usage


@dataclass(frozen=True, slots=True)
class OpenAIResponses:
    """The wire format of the Responses API."""

    def write(self, outgoing: Outgoing) -> WireRequest:
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
            tools: list[Json] = []
            for tool in outgoing.tools:
                written: dict[str, Json] = {
                    "type": "function",
                    "name": tool.name,
                    "parameters": dict(tool.schema),
                    "strict": False,
                }
                if tool.description is not None:
                    written["description"] = tool.description
                tools.append(written)
            body["tools"] = tools
        if outgoing.tools and outgoing.thinks:
            # Nothing is stored at the provider: reasoning before a call is sent back with its result. Models that do
            # not reason refuse the request for it.
            body["include"] = ["reasoning.encrypted_content"]
        if outgoing.tool_choice is not None:
            body["tool_choice"] = outgoing.tool_choice
        if outgoing.output_schema is not None:
            schema: dict[str, Json] = {"type": "json_schema", "name": "answer", "schema": dict(outgoing.output_schema)}
            body["text"] = {"format": {**schema, "strict": is_strict(outgoing.output_schema)}}
        return WireRequest(path="/responses", headers={}, body=body)

    def reader(self) -> "ResponsesReader":
        return ResponsesReader()

    def authorize(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"}


def _items(messages: tuple[Message, ...]) -> Iterator[Json]:
    """Yield the items; the assistant's text is a list here, since compatible servers accept nothing else."""
    for item in write_messages(messages, Format.OPENAI_RESPONSES):
        said = text_at(item, "content")
        if item.get("role") == "assistant" and said is not None:
            item["content"] = [{"type": "output_text", "text": said, "annotations": []}]
        yield item


@dataclass(slots=True)
class ResponsesReader:
    """Reads one answer of the Responses API."""

    _gathered: Gathered = field(default_factory=Gathered)
    _last: JsonObject | None = None
    _usage: Usage = field(default_factory=Usage)

    def feed(self, event: str | None, data: str) -> tuple[Event, ...]:
        said = parse_event(data)
        if text_at(said, "object") == "response" or ("output" in said and "type" not in said):
            # A complete answer that was not streamed.
            status = text_at(said, "status") or "completed"
            said = {"type": f"response.{status}", "response": dict(said)}
        kind = text_at(said, "type") or event or ""
        # Some proxies send an error without a type, or a body with nothing else.
        fail_in_band(said.get("error") or (dict(said) if kind == "error" else None))
        response = table_at(said, "response")
        self._usage = read_openai_usage(self._usage, response, said)
        if kind == "response.created":
            # A second one restarts the answer; what came before is not part of it.
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
            raise truncated_error()
        last, whole = self._last, Gathered()
        for place, item in enumerate(tables_at(last, "output")):
            kind = text_at(item, "type")
            if kind == "message":
                for part in tables_at(item, "content"):
                    whole.text(text_at(part, "text") or text_at(part, "refusal"))
            elif kind == "reasoning":
                for summary in tables_at(item, "summary"):
                    whole.thinking(text_at(summary, "text"))
                whole.thought_ends(text_at(item, "encrypted_content"), "encrypted")
            elif kind == "function_call":
                call = whole.call(place)
                call.name, call.id = text_at(item, "name") or "", text_at(item, "call_id")
                call.arguments.append(text_at(item, "arguments") or "")
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
