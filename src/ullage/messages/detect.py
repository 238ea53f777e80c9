"""Whose format is this request in, or are these messages?

Told by what only one of them writes. What two of them could have written alike is told by the model's name.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from ullage.errors import UnreadableRequest
from ullage.tool import Json

from .bedrock import is_converse
from .lenient import text_of
from .native import plain
from .parts import Format, Message

__all__ = ["detect_format", "detect_messages"]

_GEMINI_KEYS = frozenset({"contents", "systemInstruction", "system_instruction", "generationConfig"})
_RESPONSES_KEYS = frozenset({"input", "instructions", "previous_response_id"})
_ANTHROPIC_KEYS = frozenset({"system", "anthropic_version", "stop_sequences"})
_ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "document", "image"})
_RESPONSES_BLOCKS = frozenset({"input_text", "output_text", "input_image", "input_file"})
_CHAT_BLOCKS = frozenset({"image_url", "input_audio", "file", "video_url", "document_url"})
_CHAT_ROLES = frozenset({"system", "developer", "tool", "function"})
_NOT_ANTHROPICS = _CHAT_ROLES - {"system"}
"""Since 2026 the system may speak among Anthropic's messages, though rarely."""
_CHAT_KEYS = frozenset({"tool_calls", "tool_call_id", "function_call"})
_GEMINI_PARTS = frozenset(
    {
        *("text", "functionCall", "function_call", "functionResponse", "function_response"),
        *("inlineData", "inline_data", "fileData", "file_data"),
    }
)
_OWN_ROLES = frozenset({"system", "developer", "assistant", "tool"})
"""Roles of neutral messages that Google's contents never have."""
_MAKERS = (
    ("anthropic.", Format.ANTHROPIC),
    ("openai.types.responses.", Format.OPENAI_RESPONSES),
    ("openai.types.chat.", Format.OPENAI_CHAT),
    ("google.genai.", Format.GEMINI),
)
"""Where the classes of SDKs live."""


def detect_format(body: Mapping[str, Json]) -> Format:
    keys = body.keys()
    if keys & _GEMINI_KEYS:
        return Format.GEMINI
    if keys & _RESPONSES_KEYS:
        return Format.OPENAI_RESPONSES
    if "messages" in keys:
        return _of_messages(body)
    if "prompt" in keys:
        return Format.OPENAI_CHAT
    raise UnreadableRequest(
        "the body has none of the keys of a known request: " + (", ".join(f"`{key}`" for key in body) or "it is empty"),
        suggestion="give the JSON that would be sent to the provider, with `messages`, `input` or `contents`",
        options=tuple(Format),
    )


def detect_messages(messages: Iterable[object], *, model: str | None = None) -> Format:
    """The format of messages alone: dicts, an SDK's objects, or neutral ones."""
    told, roles = None, set[str]()
    for message in messages:
        item = {} if isinstance(message, str) else plain(message)
        told = _maker(message) or _shape(item)
        if told is not None:
            return told
        roles.add(text_of(item.get("role")))
    if not roles and "gemini" in str(model):
        return Format.GEMINI
    return Format.ANTHROPIC if "claude" in str(model) and not roles & _CHAT_ROLES else Format.OPENAI_CHAT


def _of_messages(body: Mapping[str, Json]) -> Format:
    """Of three formats that have `messages`; a body that could be either of two is told by its model's name."""
    messages = _objects(body["messages"])
    if any(map(_is_neutral, messages)):
        return Format.ULLAGE
    if is_converse(body):
        return Format.ANTHROPIC
    roles = {text_of(message.get("role")) for message in messages}
    if roles & _NOT_ANTHROPICS or any("tool_calls" in message for message in messages):
        return Format.OPENAI_CHAT
    said = body.keys() & _ANTHROPIC_KEYS or any("input_schema" in tool for tool in _objects(body.get("tools")))
    kinds = {text_of(block.get("type")) for message in messages for block in _objects(message.get("content"))}
    named = "system" not in roles and "claude" in str(body.get("model"))
    return Format.ANTHROPIC if said or kinds & _ANTHROPIC_BLOCKS or named else Format.OPENAI_CHAT


def _maker(message: object) -> Format | None:
    """By the class of an SDK's object, or of those that a dict holds."""
    if isinstance(message, Message):
        return Format.ULLAGE
    fields = cast("dict[str, object]", message if isinstance(message, dict) else {})
    inner = fields.get("content") or fields.get("parts")
    held = cast("list[object]", inner) if isinstance(inner, list) else []
    modules = [one.__class__.__module__ for one in (cast("object", message), *held)]
    return next((format for start, format in _MAKERS for name in modules if name.startswith(start)), None)  # noqa: A001


def _shape(item: Mapping[str, Json]) -> Format | None:
    if "parts" in item:
        return Format.ULLAGE if _is_neutral(item) else Format.GEMINI
    if "role" not in item and "type" not in item and item.keys() & _GEMINI_PARTS:
        return Format.GEMINI
    if item.keys() & _CHAT_KEYS or item.get("role") in ("tool", "function"):
        return Format.OPENAI_CHAT
    if "type" in item:
        return Format.ANTHROPIC if "stop_reason" in item else Format.OPENAI_RESPONSES
    return _content(_objects(item.get("content")))


def _content(blocks: Sequence[Mapping[str, Json]]) -> Format | None:
    kinds = {text_of(block.get("type")) for block in blocks}
    if kinds & _RESPONSES_BLOCKS:
        return Format.OPENAI_RESPONSES
    if kinds & _CHAT_BLOCKS:
        return Format.OPENAI_CHAT
    anthropic = kinds & _ANTHROPIC_BLOCKS or any(kind.endswith(("tool_use", "tool_result")) for kind in kinds)
    return Format.ANTHROPIC if anthropic else None


def _is_neutral(item: Mapping[str, Json]) -> bool:
    """Parts of ours say of which kind they are; Google's do not."""
    parts = item.get("parts")
    return isinstance(parts, list) and (
        text_of(item.get("role")) in _OWN_ROLES or any("type" in part for part in _objects(parts))
    )


def _objects(value: Json) -> list[Mapping[str, Json]]:
    items = value if isinstance(value, list) else []
    return [cast("Mapping[str, Json]", item) for item in items if isinstance(item, dict)]
