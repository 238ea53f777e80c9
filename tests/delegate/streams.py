"""Providers that answer as they are told, without a network."""

import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2

from ullage.delegate import Anthropic, Gemini, OpenAIChat, OpenAIResponses, Provider, Timeouts, Wire

__all__ = ["ANSWERS", "WIRES", "Scripted", "events", "provider"]

WIRES: dict[str, Wire] = {
    "chat": OpenAIChat(),
    "responses": OpenAIResponses(),
    "anthropic": Anthropic(),
    "gemini": Gemini(),
}

_USAGE_CHAT = {"prompt_tokens": 39, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 38}}
_USAGE_RESPONSES = {"input_tokens": 39, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 38}}
_MESSAGE = {"type": "message", "content": [{"type": "output_text", "text": "Hello there"}]}

ANSWERS: dict[str, list[Any]] = {
    "chat": [
        {"model": "m-1", "choices": [{"delta": {"role": "assistant", "content": "Hello"}}]},
        {"choices": [{"delta": {"content": " there"}, "finish_reason": None}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": _USAGE_CHAT},
        "[DONE]",
    ],
    "responses": [
        {"type": "response.created", "response": {"model": "m-1"}},
        {"type": "response.output_text.delta", "delta": "Hello"},
        {"type": "response.output_text.delta", "delta": " there"},
        {
            "type": "response.completed",
            "response": {"model": "m-1", "status": "completed", "output": [_MESSAGE], "usage": _USAGE_RESPONSES},
        },
    ],
    "anthropic": [
        {
            "type": "message_start",
            "message": {
                "model": "m-1",
                "usage": {"input_tokens": 1, "cache_read_input_tokens": 38, "output_tokens": 1},
            },
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " there"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ],
    "gemini": [
        {"modelVersion": "m-1", "candidates": [{"content": {"parts": [{"text": "Hello"}]}}]},
        {
            "candidates": [{"content": {"parts": [{"text": " there"}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 39, "cachedContentTokenCount": 38, "candidatesTokenCount": 5},
        },
    ],
}
"""The same answer on every wire: `Hello there`, 39 tokens in of which 38 were cached, 5 out."""


def events(said: Iterable[Any]) -> list[bytes]:
    return [f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n".encode() for one in said]


@dataclass
class Scripted:
    """One answer after another; the last again and again."""

    answers: list[Any]
    """Each a list of events, a response, or an exception."""
    pause: float = 0.0
    """Before the answer begins."""
    late: float = 0.0
    """Before the first event, after the headers."""
    stall: float = 0.0
    """Before each later event."""
    cut_after: int | None = None
    """Events after which the connection breaks."""
    requests: list[httpx2.Request] = field(default_factory=list[httpx2.Request])

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        await anyio.sleep(self.pause)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, httpx2.Response):
            return answer
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=self._stream(answer))

    async def _stream(self, said: list[Any]) -> AsyncIterator[bytes]:
        for number, piece in enumerate(events(said)):
            if number == self.cut_after:
                raise httpx2.ReadError("broken")
            await anyio.sleep(self.stall if number else self.late)
            yield piece

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self))

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests]


def provider(wire: str = "chat", **timeouts: float) -> Provider:
    return Provider(
        name=wire, wire=WIRES[wire], base_url="http://provider.test", key="secret-key", timeouts=Timeouts(**timeouts)
    )
