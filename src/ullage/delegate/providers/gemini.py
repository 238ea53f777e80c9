"""Google's Gemini API: requests and streamed answers.

`POST {base}/v1beta/models/{model}:streamGenerateContent?alt=sse`. An answer is complete when a candidate has a finish
reason, or the prompt was blocked.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

from ullage.messages import Format, read_usage, table_at, tables_at, text_at, write_messages
from ullage.models import Usage
from ullage.tool import Json, JsonObject

from ..model_call import Completion, Event, Finish, Outgoing, WireRequest
from .answer_stream import Gathered, before, fail_in_band, incomplete_error, parse_event, truncated_error

__all__ = ["Gemini", "GeminiReader"]

_FINISH: dict[str, Finish] = {"STOP": "stop", "MAX_TOKENS": "length"}
_REFUSALS = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY"})
_UNFINISHED = frozenset(
    {
        *("FINISH_REASON_UNSPECIFIED", "OTHER", "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE"),
        *("UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE"),
    }
)
"""Finish reasons of an answer that the model did not complete."""


@dataclass(frozen=True, slots=True)
class Gemini:
    """The wire format of Google's Gemini API."""

    def write(self, outgoing: Outgoing) -> WireRequest:
        system, messages = before(outgoing)
        body: dict[str, Json] = {"contents": list[Json](write_messages(messages, Format.GEMINI))}
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        if outgoing.tools:
            tools: list[Json] = []
            for tool in outgoing.tools:
                written: dict[str, Json] = {"name": tool.name, "parametersJsonSchema": dict(tool.schema)}
                if tool.description is not None:
                    written["description"] = tool.description
                tools.append(written)
            body["tools"] = [{"functionDeclarations": tools}]
        if outgoing.tool_choice is not None:
            body["toolConfig"] = outgoing.tool_choice
        settings = dict[str, Json]()
        if outgoing.max_output_tokens is not None:
            settings["maxOutputTokens"] = outgoing.max_output_tokens
        if outgoing.temperature is not None:
            settings["temperature"] = outgoing.temperature
        if outgoing.output_schema is not None:
            settings["responseMimeType"] = "application/json"
            settings["responseJsonSchema"] = dict(outgoing.output_schema)
        if settings:
            body["generationConfig"] = settings
        path = f"/v1beta/models/{quote(outgoing.model, safe='')}:streamGenerateContent?alt=sse"
        return WireRequest(path=path, headers={}, body=body)

    def reader(self) -> "GeminiReader":
        return GeminiReader()

    def authorize(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key}


@dataclass(slots=True)
class GeminiReader:
    """Reads one answer of Google's Gemini API."""

    _gathered: Gathered = field(default_factory=Gathered)
    _usage: Usage = field(default_factory=Usage)
    _finish: Finish | None = None
    _model: str | None = None

    _response: str | None = None
    """The id shared by all pieces of an answer."""
    _is_over: bool = False

    def feed(self, event: str | None, data: str) -> tuple[Event, ...]:
        said = parse_event(data)
        fail_in_band(said.get("error"))
        response = text_at(said, "responseId") or self._response
        if self._response is not None and response != self._response:
            if self._finish is not None:
                # A second answer after the first.
                self._is_over = True
                return ()
            self._gathered = Gathered()
        self._response = response
        self._model = text_at(said, "modelVersion") or self._model
        if table_at(said, "usageMetadata"):
            self._usage = read_usage(table_at(said, "usageMetadata"), Format.GEMINI)
        if text_at(table_at(said, "promptFeedback"), "blockReason") is not None:
            self._finish = "refusal"
        return tuple(heard for one in tables_at(said, "candidates")[:1] for heard in self._candidate(one))

    def _candidate(self, candidate: JsonObject) -> Iterator[Event]:
        for part in tables_at(table_at(candidate, "content"), "parts"):
            # A signature on anything but reasoning is kept as empty reasoning before it, as in a request.
            signature, gathered = text_at(part, "thoughtSignature"), self._gathered
            is_thought = part.get("thought") is True
            if is_thought:
                yield from gathered.thinking(text_at(part, "text"))
            elif signature is not None:
                gathered.thought_ends()
            if signature is not None:
                gathered.thought_ends(signature, "thought_signature")
            if not is_thought:
                yield from gathered.text(text_at(part, "text"))
                asked = table_at(part, "functionCall")
                if asked:
                    call = gathered.call(len(gathered.calls))
                    call.name, call.id = text_at(asked, "name") or "", text_at(asked, "id")
                    call.arguments.append(json.dumps(asked.get("args") or {}, ensure_ascii=False))
        reason = text_at(candidate, "finishReason")
        if reason in _UNFINISHED:
            raise incomplete_error(reason)
        if reason is not None:
            self._finish = "refusal" if reason in _REFUSALS else _FINISH.get(reason, "other")

    @property
    def is_whole(self) -> bool:
        return self._finish is not None

    @property
    def is_over(self) -> bool:
        """Whether a second answer has begun. This wire has no end marker: it ends with the stream, and usage may follow
        the finish reason."""
        return self._is_over

    def finish(self) -> Completion:
        if self._finish is None:
            raise truncated_error()
        return self._gathered.completion(self._finish, self._usage, model=self._model)

    def so_far(self) -> Usage:
        return self._usage
