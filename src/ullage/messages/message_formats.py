"""Detects the format of messages and requests, and reads them in any format.

A format is recognised by keys that only it uses; where two formats could have written the same, the model's name
decides. Objects of SDKs are recognised by the methods that make them plain, without importing any SDK. Nothing is
dropped, and the input is never changed.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from ullage.errors import UnreadableRequest
from ullage.tool import Json

from .anthropic import read as read_anthropic
from .anthropic import read_message as read_message_anthropic
from .bedrock import is_converse, unwrap_count_tokens
from .gemini import read as read_gemini
from .gemini import read_message as read_message_gemini
from .neutral import from_json, to_json
from .neutral import read as read_neutral
from .openai import read_chat, read_chat_message, read_responses, read_responses_message
from .parts import Format, Message, Request, text_of

__all__ = ["detect_format", "detect_messages", "plain", "read_message", "read_request"]

_MESSAGE_READERS: Mapping[Format, Callable[[Json], Message]] = {
    Format.OPENAI_CHAT: read_chat_message,
    Format.OPENAI_RESPONSES: read_responses_message,
    Format.ANTHROPIC: read_message_anthropic,
    Format.GEMINI: read_message_gemini,
    Format.ULLAGE: from_json,
}
_SCALARS = frozenset({str, int, float, bool, type(None)})


def read_message(native: object, format: Format) -> Message:  # noqa: A002
    """Read one message or item into neutral parts.

    Args:
        native: A dict or an SDK's object; a bare text where the format allows one. A neutral `Message` is returned as
            is.
        format: The format of the message; `detect_messages` finds it.
    """
    if isinstance(native, Message):
        return native
    try:
        return _MESSAGE_READERS[format](native if isinstance(native, str) else plain(native))
    except RecursionError as error:
        raise UnreadableRequest("a message is nested too deeply to be read") from error


def plain(native: object) -> dict[str, Json]:
    """Return the JSON that would be sent. A dict that is already JSON is returned itself; other values are copied only
    as far as needed."""
    made = _json(native)
    if not isinstance(made, dict):
        raise _unreadable(native)
    return made


def _json(value: object) -> Json:
    kind = type(value)
    if kind in _SCALARS:
        return cast("Json", value)
    if kind is dict:
        table = cast("dict[str, object]", value)
        changed = table
        for key, inner in table.items():
            if type(inner) not in _SCALARS and (made := _json(inner)) is not inner:
                changed = dict(table) if changed is table else changed
                changed[key] = made
        return cast("Json", changed)
    if kind is list:
        values = cast("list[object]", value)
        listed = [_json(inner) for inner in values]
        same = all(new is old for new, old in zip(listed, values, strict=True))
        return cast("Json", values) if same else listed
    return _json_other(value)


def _json_other(value: object) -> Json:
    match value:
        case str() | int() | float():
            return value
        case bytes() | bytearray():
            return b64encode(value).decode("ascii")
        case Message():
            return to_json(value)
        case Mapping():
            return {str(key): _json(inner) for key, inner in cast("Mapping[object, object]", value).items()}
        case Sequence():
            return [_json(inner) for inner in cast("Sequence[object]", value)]
        case _:
            return _json_object(value)


def _json_object(value: Any) -> Json:  # noqa: ANN401
    """Convert an SDK's object as the SDK itself would send it."""
    if not isinstance(value, type):
        if callable(getattr(value, "model_dump", None)):
            # OpenAI's and Anthropic's clients send what was set, less their internal fields; Google's, recognised by
            # `to_json_dict`, send all that is not None, under the wire's names.
            if hasattr(value, "to_json_dict"):
                return _json(value.model_dump(mode="json", by_alias=True, exclude_none=True))
            own = getattr(value, "__api_exclude__", None)
            return _json(value.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=own, warnings=False))
        if callable(getattr(value, "to_dict", None)):
            return _json(value.to_dict())
        if hasattr(value, "__dataclass_fields__"):
            return _json(asdict(value, dict_factory=lambda own: {key: one for key, one in own if one is not None}))
    raise _unreadable(value)


def _unreadable(native: object) -> UnreadableRequest:
    return UnreadableRequest(
        f"a message is a JSON object or an SDK's object, not `{type(native).__name__}`",
        suggestion="give the dict that would be sent, or the object that the SDK gave",
    )


_GEMINI_KEYS = frozenset({"contents", "systemInstruction", "system_instruction", "generationConfig"})
_RESPONSES_KEYS = frozenset({"input", "instructions", "previous_response_id"})
_ANTHROPIC_KEYS = frozenset({"system", "anthropic_version", "stop_sequences"})
_ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "document", "image"})
_RESPONSES_BLOCKS = frozenset({"input_text", "output_text", "input_image", "input_file"})
_CHAT_BLOCKS = frozenset({"image_url", "input_audio", "file", "video_url", "document_url"})
_CHAT_ROLES = frozenset({"system", "developer", "tool", "function"})
_NOT_ANTHROPICS = _CHAT_ROLES - {"system"}
"""Roles that Anthropic's messages do not have. Since 2026 system messages are allowed among them, though they are rare.
"""
_CHAT_KEYS = frozenset(
    {
        *("tool_calls", "tool_call_id", "function_call", "refusal", "audio", "images"),
        *("reasoning", "reasoning_content", "reasoning_details"),
    }
)
"""Keys of a message that only chats have."""
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
"""The modules in which each SDK's classes are defined."""


def detect_format(body: Mapping[str, Json]) -> Format:
    """Return the format of a request body, by the keys that only one format uses."""
    keys = body.keys()
    if keys & _GEMINI_KEYS:
        return Format.GEMINI
    if keys & _RESPONSES_KEYS or isinstance(body.get("prompt"), dict):
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
    """Return the format of messages without a request: dicts, an SDK's objects, or neutral ones.

    Args:
        messages: The messages, all in one format.
        model: The model's name, which decides where the messages could be in either of two formats.
    """
    told, roles = None, set[str]()
    for message in messages:
        item = {} if isinstance(message, str) else plain(message)
        told = _format_of_sdk(message) or _format_of_item(item)
        if told is not None:
            return told
        roles.add(text_of(item.get("role")))
    if not roles and "gemini" in str(model):
        return Format.GEMINI
    return Format.ANTHROPIC if "claude" in str(model) and not roles & _CHAT_ROLES else Format.OPENAI_CHAT


def _of_messages(body: Mapping[str, Json]) -> Format:
    """Detect which of three formats with `messages` a body is in; where two are possible, the model's name decides."""
    messages = _objects(body["messages"])
    if any(map(_is_neutral, messages)):
        return Format.ULLAGE
    if is_converse(body):
        return Format.ANTHROPIC
    roles = {text_of(message.get("role")) for message in messages}
    if roles & _NOT_ANTHROPICS or any(message.keys() & _CHAT_KEYS for message in messages):
        return Format.OPENAI_CHAT
    said = body.keys() & _ANTHROPIC_KEYS or any("input_schema" in tool for tool in _objects(body.get("tools")))
    kinds = {text_of(block.get("type")) for message in messages for block in _objects(message.get("content"))}
    named = "system" not in roles and "claude" in str(body.get("model"))
    return Format.ANTHROPIC if said or kinds & _ANTHROPIC_BLOCKS or named else Format.OPENAI_CHAT


def _format_of_sdk(message: object) -> Format | None:
    """Return the format by the module of an SDK object's class, or of the classes of objects inside a dict."""
    if isinstance(message, Message):
        return Format.ULLAGE
    fields = cast("dict[str, object]", message if isinstance(message, dict) else {})
    inner = fields.get("content") or fields.get("parts")
    held = cast("list[object]", inner) if isinstance(inner, list) else []
    modules = [one.__class__.__module__ for one in (cast("object", message), *held)]
    return next((format for start, format in _MAKERS for name in modules if name.startswith(start)), None)  # noqa: A001


def _format_of_item(item: Mapping[str, Json]) -> Format | None:
    if "parts" in item:
        return Format.ULLAGE if _is_neutral(item) else Format.GEMINI
    if "role" not in item and "type" not in item and item.keys() & _GEMINI_PARTS:
        return Format.GEMINI
    if item.keys() & _CHAT_KEYS or item.get("role") in ("tool", "function"):
        return Format.OPENAI_CHAT
    if "type" in item:
        return Format.ANTHROPIC if "stop_reason" in item else Format.OPENAI_RESPONSES
    kinds = {text_of(block.get("type")) for block in _objects(item.get("content"))}
    if kinds & _RESPONSES_BLOCKS:
        return Format.OPENAI_RESPONSES
    if kinds & _CHAT_BLOCKS:
        return Format.OPENAI_CHAT
    anthropic = kinds & _ANTHROPIC_BLOCKS or any(kind.endswith(("tool_use", "tool_result")) for kind in kinds)
    return Format.ANTHROPIC if anthropic else None


def _is_neutral(item: Mapping[str, Json]) -> bool:
    """Return whether a part is neutral: neutral parts name their kind, Google's do not."""
    parts = item.get("parts")
    return isinstance(parts, list) and (
        text_of(item.get("role")) in _OWN_ROLES or any("type" in part for part in _objects(parts))
    )


def _objects(value: Json) -> list[Mapping[str, Json]]:
    items = value if isinstance(value, list) else []
    return [cast("Mapping[str, Json]", item) for item in items if isinstance(item, dict)]


_REQUEST_READERS: Mapping[Format, Callable[[Mapping[str, Json]], Request]] = {
    Format.OPENAI_CHAT: read_chat,
    Format.OPENAI_RESPONSES: read_responses,
    Format.ANTHROPIC: read_anthropic,
    Format.GEMINI: read_gemini,
    Format.ULLAGE: read_neutral,
}
_HELD_IN: Mapping[Format, frozenset[str]] = {
    Format.OPENAI_CHAT: frozenset({"messages", "prompt", "input"}),
    Format.OPENAI_RESPONSES: frozenset({"input"}),
    Format.ANTHROPIC: frozenset({"messages"}),
    Format.GEMINI: frozenset({"contents"}),
    Format.ULLAGE: frozenset({"messages"}),
}
"""The keys under which each format has its messages."""
_HELD_IN_ANY = frozenset[str]().union(*_HELD_IN.values()) - {"prompt"}
"""`prompt` is excluded: in the Responses API it is a template."""


def read_request(body: Mapping[str, Any], format: Format | None = None) -> Request:  # noqa: A002
    """Read a request body into neutral parts.

    Args:
        body: The JSON object that is sent to the provider.
        format: The body's format; None to detect it from the body.

    Raises:
        UnreadableRequest: The body is not an object, or clearly in another format than `format`.
    """
    if not isinstance(body, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UnreadableRequest(
            f"a request body is a JSON object, not {type(body).__name__}",
            suggestion='give a dict, such as {"model": …, "messages": […]}',
            options=tuple(Format),
        )
    if format is not None:
        # Without this check the messages of another format would be read as an empty list.
        others = sorted(body.keys() & _HELD_IN_ANY)
        if others and not body.keys() & _HELD_IN[format]:
            raise UnreadableRequest(
                f"the body has `{others[0]}` and is no `{format}` request",
                suggestion="name the format it is in, or leave it out to detect it",
                options=tuple(Format),
            )
    # The body of Google's count-tokens call contains the request.
    inner = body.get("generateContentRequest")
    body = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else unwrap_count_tokens(body)
    return _REQUEST_READERS[detect_format(body) if format is None else format](body)
