"""How does Google's Gemini wire look?

`POST {base}/v1beta/models/{model}:streamGenerateContent?alt=sse`. An answer is whole when a candidate has said why it
finished, or the prompt was blocked.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

from ullage.messages import (
    Format,
    Media,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
    read_usage,
    table_at,
    tables_at,
    text_at,
)
from ullage.models import Usage
from ullage.tool import Json, JsonObject

from ..exchange import Completion, Event, Finish, Outgoing, Written
from .gathered import Gathered, truncated
from .in_band import fail_in_band
from .parsed import parsed
from .parts import arguments, before, text_of

__all__ = ["Gemini", "GeminiReader"]

_FINISH: dict[str, Finish] = {"STOP": "stop", "MAX_TOKENS": "length"}
_REFUSALS = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY"})


@dataclass(frozen=True, slots=True)
class Gemini:
    def write(self, outgoing: Outgoing) -> Written:
        system, messages = before(outgoing)
        body: dict[str, Json] = {"contents": _contents(messages)}
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        if outgoing.tools:
            body["tools"] = [{"functionDeclarations": [_tool(tool) for tool in outgoing.tools]}]
        if outgoing.tool_choice is not None:
            body["toolConfig"] = outgoing.tool_choice
        if settings := dict(_settings(outgoing)):
            body["generationConfig"] = settings
        path = f"/v1beta/models/{quote(outgoing.model, safe='')}:streamGenerateContent?alt=sse"
        return Written(path=path, headers={}, body=body)

    def reader(self) -> "GeminiReader":
        return GeminiReader()

    def authorize(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key}


def _settings(outgoing: Outgoing) -> Iterator[tuple[str, Json]]:
    if outgoing.max_output_tokens is not None:
        yield "maxOutputTokens", outgoing.max_output_tokens
    if outgoing.temperature is not None:
        yield "temperature", outgoing.temperature
    if outgoing.output_schema is not None:
        yield "responseMimeType", "application/json"
        yield "responseJsonSchema", dict(outgoing.output_schema)


def _contents(messages: tuple[Message, ...]) -> list[Json]:
    turns: list[tuple[str, list[Json]]] = []
    for message in messages:
        role = "model" if message.role == "assistant" else "user"
        parts = list(_parts(message.parts))
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(parts)
        elif parts:
            turns.append((role, parts))
    return [{"role": role, "parts": parts} for role, parts in turns]


def _parts(parts: tuple[Part, ...]) -> Iterator[Json]:
    """A thought's signature stands on the part that follows it; a thought itself is not sent back."""
    signature: str | None = None
    for part in parts:
        if isinstance(part, Thinking):
            signature = part.signature
            continue
        written = _part(part)
        if signature is not None and isinstance(written, dict):
            written = {**written, "thoughtSignature": signature}
            signature = None
        yield written


def _part(part: Part) -> Json:
    match part:
        case Text():
            return {"text": part.text}
        case ToolCall():
            return {"functionCall": {"name": part.name, "args": arguments(part)}}
        case ToolResult():
            key = "error" if part.is_error else "result"
            return {"functionResponse": {"name": part.name, "response": {key: text_of(part.parts)}}}
        case Media():
            if part.data is None:
                return {"fileData": {"fileUri": part.url, "mimeType": part.media_type}}
            return {"inlineData": {"mimeType": part.media_type, "data": part.data}}
        case Thinking():
            return None
        case _:
            return part.value


def _tool(tool: ToolDefinition) -> dict[str, Json]:
    written: dict[str, Json] = {"name": tool.name, "parametersJsonSchema": dict(tool.schema)}
    if tool.description is not None:
        written["description"] = tool.description
    return written


@dataclass(slots=True)
class GeminiReader:
    _gathered: Gathered = field(default_factory=Gathered)
    _usage: Usage = field(default_factory=Usage)
    _finish: Finish | None = None
    _model: str | None = None

    def feed(self, event: str | None, data: str) -> tuple[Event, ...]:
        said = parsed(data)
        fail_in_band(said.get("error"))
        self._model = text_at(said, "modelVersion") or self._model
        if table_at(said, "usageMetadata"):
            self._usage = read_usage(table_at(said, "usageMetadata"), Format.GEMINI)
        if text_at(table_at(said, "promptFeedback"), "blockReason") is not None:
            self._finish = "refusal"
        return tuple(heard for one in tables_at(said, "candidates")[:1] for heard in self._candidate(one))

    def _candidate(self, candidate: JsonObject) -> Iterator[Event]:
        for part in tables_at(table_at(candidate, "content"), "parts"):
            yield from self._part(part)
        reason = text_at(candidate, "finishReason")
        if reason is not None:
            self._finish = "refusal" if reason in _REFUSALS else _FINISH.get(reason, "other")

    def _part(self, part: JsonObject) -> Iterator[Event]:
        signature = text_at(part, "thoughtSignature")
        if part.get("thought") is True:
            yield from self._gathered.thinking(text_at(part, "text"))
            return
        self._gathered.thought_ends(signature)
        yield from self._gathered.text(text_at(part, "text"))
        asked = table_at(part, "functionCall")
        if asked:
            call = self._gathered.call(len(self._gathered.calls))
            call.name, call.id = text_at(asked, "name") or "", text_at(asked, "id")
            call.arguments.append(json.dumps(asked.get("args") or {}, ensure_ascii=False))

    def finish(self) -> Completion:
        if self._finish is None:
            raise truncated()
        return self._gathered.completion(self._finish, self._usage, model=self._model)

    def so_far(self) -> Usage:
        return self._usage
