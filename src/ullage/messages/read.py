"""Whose format is this request in, and what is in it?"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from ullage.errors import UnreadableRequest
from ullage.tool import Json

from . import anthropic, gemini, openai_chat, openai_responses
from .lenient import text_of
from .parts import Format, Request

__all__ = ["detect_format", "read_request"]

_READERS: Mapping[Format, Callable[[Mapping[str, Json]], Request]] = {
    Format.OPENAI_CHAT: openai_chat.read,
    Format.OPENAI_RESPONSES: openai_responses.read,
    Format.ANTHROPIC: anthropic.read,
    Format.GEMINI: gemini.read,
}
_GEMINI_KEYS = frozenset({"contents", "systemInstruction", "system_instruction", "generationConfig"})
_RESPONSES_KEYS = frozenset({"input", "instructions", "previous_response_id"})
_ANTHROPIC_KEYS = frozenset({"system", "anthropic_version", "stop_sequences"})
_ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "document", "image"})
_CHAT_ROLES = frozenset({"system", "developer", "tool", "function"})


def read_request(body: Mapping[str, Any], format: Format | None = None) -> Request:  # noqa: A002
    if not isinstance(body, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UnreadableRequest(f"a request body is a JSON object, not {type(body).__name__}", options=tuple(Format))
    return _READERS[detect_format(body) if format is None else format](body)


def detect_format(body: Mapping[str, Json]) -> Format:
    keys = body.keys()
    if keys & _GEMINI_KEYS:
        return Format.GEMINI
    if keys & _RESPONSES_KEYS:
        return Format.OPENAI_RESPONSES
    if "messages" in keys:
        return Format.ANTHROPIC if _looks_anthropic(body) else Format.OPENAI_CHAT
    if "prompt" in keys:
        return Format.OPENAI_CHAT
    raise UnreadableRequest(
        "the body has none of the keys of a known request: " + (", ".join(f"`{key}`" for key in body) or "it is empty"),
        suggestion="give the JSON that would be sent to the provider, with `messages`, `input` or `contents`",
        options=tuple(Format),
    )


def _looks_anthropic(body: Mapping[str, Json]) -> bool:
    """Told by what only Anthropic writes; a body that could be either is told by its model's name."""
    messages = _objects(body["messages"])
    if any(text_of(message.get("role")) in _CHAT_ROLES or "tool_calls" in message for message in messages):
        return False
    if body.keys() & _ANTHROPIC_KEYS or any("input_schema" in tool for tool in _objects(body.get("tools"))):
        return True
    blocks = [block for message in messages for block in _objects(message.get("content"))]
    return any(text_of(block.get("type")) in _ANTHROPIC_BLOCKS for block in blocks) or "claude" in str(
        body.get("model")
    )


def _objects(value: Json) -> list[Mapping[str, Json]]:
    items = value if isinstance(value, list) else []
    return [cast("Mapping[str, Json]", item) for item in items if isinstance(item, dict)]
