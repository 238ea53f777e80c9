"""Anthropic's Messages API: requests and streamed answers.

`POST {base}/v1/messages`. An answer is complete when a `message_delta` contains the stop reason; `message_stop` comes
last.
"""

import json
from dataclasses import dataclass, field

from ullage.messages import Format, read_usage, table_at, tables_at, text_at, tokens_at, write_messages
from ullage.models import Usage
from ullage.tool import Json, JsonObject

from ..model_call import Completion, Event, Finish, Outgoing, WireRequest, is_strict
from .answer_stream import Gathered, before, fail_in_band, parse_event, truncated_error

__all__ = ["Anthropic", "AnthropicReader"]

_VERSION = "2023-06-01"
_OUTPUT = 4_096
"""Default output limit, because this API requires one."""
_FINISH: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}


@dataclass(frozen=True, slots=True)
class Anthropic:
    """The wire format of Anthropic's Messages API."""

    def write(self, outgoing: Outgoing) -> WireRequest:
        system, messages = before(outgoing)
        body: dict[str, Json] = {
            "model": outgoing.model,
            "max_tokens": outgoing.max_output_tokens or _OUTPUT,
            "messages": list[Json](write_messages(messages, Format.ANTHROPIC)),
            "stream": True,
        }
        if system:
            body["system"] = system
        if outgoing.temperature is not None:
            # This API's maximum is 1.
            body["temperature"] = min(outgoing.temperature, 1.0)
        if outgoing.tools:
            tools: list[Json] = []
            for tool in outgoing.tools:
                written: dict[str, Json] = {"name": tool.name, "input_schema": dict(tool.schema)}
                if tool.description is not None:
                    written["description"] = tool.description
                tools.append(written)
            body["tools"] = tools
        if outgoing.tool_choice is not None:
            body["tool_choice"] = outgoing.tool_choice
        if outgoing.output_schema is not None and is_strict(outgoing.output_schema):
            # This API refuses other schemas; they are requested in words, and the answer is checked.
            body["output_config"] = {"format": {"type": "json_schema", "schema": dict(outgoing.output_schema)}}
        return WireRequest(path="/v1/messages", headers={"anthropic-version": _VERSION}, body=body)

    def reader(self) -> "AnthropicReader":
        return AnthropicReader()

    def authorize(self, key: str) -> dict[str, str]:
        return {"x-api-key": key}


@dataclass(slots=True)
class AnthropicReader:
    """Reads one answer of Anthropic's Messages API."""

    _gathered: Gathered = field(default_factory=Gathered)
    _said: dict[str, Json] = field(default_factory=dict[str, Json])
    """The usage: fields of the first report, updated by later ones."""
    _reason: str | None = None
    _stopped: bool = False
    _model: str | None = None
    _signature: str | None = None

    def feed(self, event: str | None, data: str) -> tuple[Event, ...]:
        said = parse_event(data)
        kind = text_at(said, "type")
        # An event without a name is called `message`, which is also the type of a complete answer.
        match kind or ("error" if "error" in said else event if event != "message" else None):
            case "error":
                fail_in_band(said.get("error") or "an error")
            case "message_start":
                # A second one restarts the answer; what came before is not part of it.
                self._gathered, self._signature = Gathered(), None
                message = table_at(said, "message")
                self._model = text_at(message, "model")
                self._said |= table_at(message, "usage")
            case "message":
                return self._whole(said)
            case "content_block_start":
                return self._begin(_place(said), table_at(said, "content_block"))
            case "content_block_delta":
                delta = table_at(said, "delta")
                if text_at(delta, "type") == "input_json_delta":
                    self._gathered.call(_place(said)).arguments.append(text_at(delta, "partial_json") or "")
                self._signature = text_at(delta, "signature") or self._signature
                return (
                    *self._gathered.thinking(text_at(delta, "thinking")),
                    *self._gathered.text(text_at(delta, "text")),
                )
            case "content_block_stop":
                self._gathered.thought_ends(self._signature, "signature")
                self._signature = None
            case "message_delta":
                self._reason = text_at(table_at(said, "delta"), "stop_reason") or self._reason
                # Some proxies report 0 at the end for what they counted at the beginning.
                usage = table_at(said, "usage").items()
                self._said |= {key: value for key, value in usage if value or (value == 0 and not self._said.get(key))}
            case "message_stop":
                self._stopped = True
            case _:
                pass
        return ()

    def _whole(self, message: JsonObject) -> tuple[Event, ...]:
        """Read an answer that was not streamed."""
        heard = list[Event]()
        for place, block in enumerate(tables_at(message, "content")):
            if text_at(block, "type") == "thinking":
                heard += self._gathered.thinking(text_at(block, "thinking"))
                self._gathered.thought_ends(text_at(block, "signature"), "signature")
            heard += self._begin(place, block)
            if "input" in block:
                self._gathered.call(place).arguments.append(json.dumps(block["input"], ensure_ascii=False))
        self._model, self._said = text_at(message, "model"), dict(table_at(message, "usage"))
        self._reason = text_at(message, "stop_reason")
        self._stopped = self._reason is not None
        return tuple(heard)

    def _begin(self, place: int, block: JsonObject) -> tuple[Event, ...]:
        kind = text_at(block, "type")
        if kind == "tool_use":
            call = self._gathered.call(place)
            call.id, call.name = text_at(block, "id"), text_at(block, "name") or ""
        elif kind == "redacted_thinking":
            self._gathered.thought_ends(text_at(block, "data"), "redacted")
        return self._gathered.text(text_at(block, "text"))

    @property
    def is_whole(self) -> bool:
        return self._reason is not None

    @property
    def is_over(self) -> bool:
        return self._stopped

    def finish(self) -> Completion:
        if not self.is_whole or self._reason is None:
            raise truncated_error()
        finish = _FINISH.get(self._reason, "other")
        return self._gathered.completion(finish, self.so_far(), model=self._model)

    def so_far(self) -> Usage:
        return read_usage(self._said, Format.ANTHROPIC)


def _place(said: JsonObject) -> int:
    return tokens_at(said, "index") or 0
