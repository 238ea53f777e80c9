"""Reads requests and messages of OpenAI's Chat Completions and Responses APIs.

The older formats of OpenAI are read here too: `functions`, completions (`prompt`) and embeddings (`input`). Nothing is
checked and nothing is dropped: a role, part or tool of unknown shape is kept raw.

Both APIs write content as a text or as a list of typed parts; they differ only in the names. Other vendors' parts in
the same places (Mistral's `thinking`, `video_url`, `document_url`) are read too. A part of any other shape becomes
`Unknown`.

Of the Responses API, each item of `input` becomes one message, in order: a call, its output and a reasoning item are
separate messages, as they are on the wire. The id under which the API stores a call or a reasoning item is kept beside
it as `{"id": …}`. Items that the provider produced itself (searches, interpreter runs) are kept raw, with the
assistant's role.
"""

from collections.abc import Callable, Iterator, Mapping
from json import dumps
from typing import Literal

from ullage.tool import Json

from .parts import (
    Format,
    Media,
    Message,
    Part,
    Request,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Unknown,
    extras,
    items_of,
    text_of,
    text_or_none,
)

__all__ = [
    "read_arguments",
    "read_chat",
    "read_chat_message",
    "read_content",
    "read_reasoning_details",
    "read_responses",
    "read_responses_message",
    "read_thinking",
    "read_tool",
]

Kind = Literal["image", "audio", "video", "document"]
Reader = Callable[[Mapping[str, Json]], tuple[Part, ...] | None]

MARKS = frozenset({"cache_control", "prompt_cache_breakpoint", "type"})
"""Keys of a part that steer caching or name its kind; no model reads them."""


def read_content(content: Json) -> tuple[Part, ...]:
    """Read the parts of a `content` (or of a Responses `output`): a text, a list of typed parts, or nothing."""
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, list):
        return tuple(part for item in content for part in _read_part(item))
    return (Unknown(content),)


def read_arguments(arguments: Json) -> str:
    """Return a call's arguments as JSON text: unchanged where they are text, else compact."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def read_thinking(value: Json) -> tuple[Part, ...]:
    """Read reasoning written as a text, or as a list of texts (`summary_text`, `reasoning_text`)."""
    if not value:
        return ()
    if isinstance(value, str):
        return (Thinking(text=value),)
    items = value if isinstance(value, list) else [None]
    texts = [item.get("text") if isinstance(item, dict) else item for item in items]
    known = [text for text in texts if isinstance(text, str)]
    return (Thinking(text="\n".join(known)),) if len(known) == len(texts) else (Unknown(value),)


def read_reasoning_details(details: Json) -> tuple[Part, ...]:
    """Read reasoning in the form of OpenRouter and MiniMax: a list of texts, summaries and encrypted blocks.

    Texts are chunks of one thought; its signature may be on a chunk without text.
    """
    items = [item for item in details if isinstance(item, dict)] if isinstance(details, list) else []
    if not items:
        return (Unknown({"reasoning_details": details}),) if details else ()
    texts = [text for item in items for key in ("text", "summary") if isinstance(text := item.get(key), str)]
    sealed = [data for item in items for key in ("data", "signature") if isinstance(data := item.get(key), str)]
    return (Thinking(text="".join(texts), signature="".join(sealed) or None),)


def _read_part(item: Json) -> tuple[Part, ...]:
    if isinstance(item, str):
        return (Text(item),)
    if not isinstance(item, dict):
        return (Unknown(item),)
    kind = item.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    return (reader and reader(item)) or (Unknown(item),)


def _text_at(key: str) -> Reader:
    def read(item: Mapping[str, Json]) -> tuple[Part, ...] | None:
        text = item.get(key)
        known = MARKS | {key, "annotations", "logprobs"}
        return (Text(text), *extras(item, known)) if isinstance(text, str) else None

    return read


def _address_at(key: str, kind: Kind) -> Reader:
    """Return a reader of parts with an address under `key`, or an object with `url` and optionally `detail`."""

    def read(item: Mapping[str, Json]) -> tuple[Part, ...] | None:
        place = item.get(key)
        inner = place if isinstance(place, dict) else {"url": place}
        address, detail = inner.get("url"), inner.get("detail", item.get("detail"))
        if not isinstance(address, str):
            return None
        known = MARKS | {key, "detail"}
        return (_media(kind, address, detail), *extras(inner, frozenset({"url", "detail"})), *extras(item, known))

    return read


def _read_input_image(item: Mapping[str, Json]) -> tuple[Part, ...] | None:
    file = item.get("file_id")
    if isinstance(file, str):
        return (Media(kind="image", url=file, detail=text_or_none(item.get("detail"))),)
    return _address_at("image_url", "image")(item)


def _read_audio(item: Mapping[str, Json]) -> tuple[Part, ...] | None:
    """Read audio: OpenAI has an object with `data` and `format`; Mistral the data alone, or an address."""
    sound = item.get("input_audio")
    if isinstance(sound, str):
        is_address = sound.startswith(("https://", "http://", "data:"))
        return (_media("audio", sound, None) if is_address else Media(kind="audio", data=sound),)
    if not isinstance(sound, dict) or not isinstance(data := sound.get("data"), str):
        return None
    form = sound.get("format")
    return (Media(kind="audio", media_type=f"audio/{form}" if isinstance(form, str) else None, data=data),)


def _read_file(item: Mapping[str, Json]) -> tuple[Part, ...] | None:
    """Read a chat `file` (its fields one level down) or a Responses `input_file` (its fields beside the type)."""
    inner = item.get("file", item)
    if not isinstance(inner, dict):
        return None
    for key in ("file_data", "file_url", "file_id"):
        address = inner.get(key)
        if isinstance(address, str):
            return (_media("document", address, None), *extras(inner, MARKS | {key}))
    return None


def _media(kind: Kind, address: str, detail: Json) -> Media:
    head, comma, data = address.partition(",")
    if comma and head.startswith("data:"):
        media_type = head.removeprefix("data:").partition(";")[0] or None
        return Media(kind=kind, media_type=media_type, data=data, detail=text_or_none(detail))
    return Media(kind=kind, url=address, detail=text_or_none(detail))


_READERS: Mapping[str, Reader] = {
    "text": _text_at("text"),
    "input_text": _text_at("text"),
    "output_text": _text_at("text"),
    "refusal": _text_at("refusal"),
    "thinking": lambda item: read_thinking(item.get("thinking")) or None,
    "image_url": _address_at("image_url", "image"),
    "video_url": _address_at("video_url", "video"),
    "document_url": _address_at("document_url", "document"),
    "input_image": _read_input_image,
    "computer_screenshot": _read_input_image,
    "input_audio": _read_audio,
    "file": _read_file,
    "input_file": _read_file,
}

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_SCHEMAS = ("parameters", "arguments", "input_schema", "inputSchema")
"""The key of a definition's schema, as OpenAI, Anthropic and MCP spell it."""
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_READ_KEYS = frozenset(
    {"model", "messages", "prompt", "input", "tools", "functions", "tool_choice", "function_call", "response_format"}
)
_MESSAGE_KEYS = frozenset(
    {
        *("role", "content", "name", "refusal", "tool_calls", "function_call", "tool_call_id", "tool_name", "images"),
        *("thinking", "reasoning_content", "reasoning", "reasoning_details", "annotations", "prefix", "usage"),
    }
)


def read_chat(body: Mapping[str, Json]) -> Request:
    """Read a request into neutral parts; keys that are not understood go to `settings`."""
    model = body.get("model")
    tools = (*items_of(body.get("tools")), *items_of(body.get("functions")))
    # Marks that the texts are to be continued or embedded, rather than answered as messages.
    completion = {key: True for key in ("prompt", "input") if key in body and "messages" not in body}
    # The texts of a completion or an embedding have no role; they are read as the user's.
    texts = (*items_of(body.get("prompt")), *items_of(body.get("input")))
    bare = (Message(role="user", parts=(Text(text) if isinstance(text, str) else Unknown(text),)) for text in texts)
    return Request(
        format=Format.OPENAI_CHAT,
        model=model if isinstance(model, str) else None,
        messages=(*map(read_chat_message, items_of(body.get("messages"))), *bare),
        tools=tuple(map(read_tool, tools)),
        tool_choice=body.get("tool_choice", body.get("function_call")),
        output_schema=body.get("response_format"),
        settings={key: value for key, value in body.items() if key not in _READ_KEYS} | completion,
    )


def read_tool(tool: Json) -> ToolDefinition:
    """Read a definition in either of OpenAI's forms; one that is not a plain function keeps its raw form in `hosted`.

    The schema may be under Anthropic's or MCP's key: clients pass on definitions written for other providers.
    """
    if not isinstance(tool, dict):
        return ToolDefinition(name="", hosted={"tool": tool})
    function = tool.get("function", tool)
    kind = tool.get("type", "function")
    if kind != "function" or not isinstance(function, dict) or tool.get("defer_loading"):
        return ToolDefinition(name=text_of(tool.get("name", kind)), hosted=tool)
    description, strict = function.get("description"), function.get("strict")
    schema = next((function[key] for key in _SCHEMAS if key in function), None)
    if not isinstance(description, str | None) or not isinstance(schema, dict | None):
        return ToolDefinition(name=text_of(function.get("name")), hosted=tool)
    return ToolDefinition(
        name=text_of(function.get("name")),
        description=description,
        schema=schema or {},
        strict=strict if isinstance(strict, bool) else None,
        extra={"arguments": schema} if schema and "parameters" not in function else {},
    )


def read_chat_message(message: Json) -> Message:
    """Read one of a request's `messages`."""
    role = _ROLES.get(text_of(message.get("role"))) if isinstance(message, dict) else None
    if not isinstance(message, dict) or role is None:
        return Message(role="user", parts=(Unknown(message),))
    name = text_or_none(message.get("name"))
    if role == "tool":
        result = ToolResult(
            parts=read_content(message.get("content")),
            call_id=text_or_none(message.get("tool_call_id")),
            name=text_or_none(message.get("tool_name")) if "name" not in message else name,
        )
        return Message(role="tool", parts=(result, *extras(message, _MESSAGE_KEYS)))
    return Message(role=role, parts=tuple(_read_parts(message)), name=name)


def _read_parts(message: Mapping[str, Json]) -> Iterator[Part]:
    thoughts = [part for key in _THOUGHTS for part in read_thinking(message.get(key))]
    # Hosts that send details repeat the same reasoning as a text.
    yield from thoughts or read_reasoning_details(message.get("reasoning_details"))
    yield from read_content(message.get("content"))
    for image in items_of(message.get("images")):
        # Ollama's are base64 without a media type; OpenRouter's are parts as in `content`.
        yield from (Media(kind="image", data=image),) if isinstance(image, str) else _read_part(image)
    refusal = message.get("refusal")
    if refusal:
        yield Text(refusal) if isinstance(refusal, str) else Unknown({"refusal": refusal})
    for call in (*items_of(message.get("tool_calls")), *items_of(message.get("function_call"))):
        yield from _read_call(call)
    yield from extras(message, _MESSAGE_KEYS)


def _read_call(call: Json) -> Iterator[Part]:
    function = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        yield Unknown(call)
        return
    yield ToolCall(
        name=text_of(function["name"]),
        arguments=read_arguments(function.get("arguments")),
        id=text_or_none(call.get("id")),
    )
    yield from extras(call, frozenset({"id", "type", "index", "function", "name", "arguments"}))


_OPENAI_RESPONSES_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
}
_OPENAI_RESPONSES_READ_KEYS = frozenset({"model", "instructions", "input", "tools", "tool_choice", "text"})
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_CALL_KEYS = frozenset({"type", "call_id", "name", "arguments", "input", "status"})
_SAID_KEYS = frozenset({"type", "id", "role", "content", "status", "phase"})
_OUTPUTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "computer_call_output", "local_shell_call_output"}
)


def read_responses(body: Mapping[str, Json]) -> Request:
    """Read a request into neutral parts; keys that are not understood go to `settings`."""
    text, instructions = body.get("text"), body.get("instructions")
    settings = {key: value for key, value in body.items() if key not in _OPENAI_RESPONSES_READ_KEYS}
    rest = {key: value for key, value in text.items() if key != "format"} if isinstance(text, dict) else text
    if isinstance(instructions, str):
        system = (Message(role="developer", parts=(Text(instructions),)),)
    else:
        system = tuple(map(read_responses_message, items_of(instructions)))
    return Request(
        format=Format.OPENAI_RESPONSES,
        model=text_or_none(body.get("model")),
        system=system,
        messages=tuple(map(read_responses_message, items_of(body.get("input")))),
        tools=tuple(map(read_tool, items_of(body.get("tools")))),
        tool_choice=body.get("tool_choice"),
        output_schema=text.get("format") if isinstance(text, dict) else None,
        settings=settings | ({"text": rest} if rest else {}),
    )


def read_responses_message(item: Json) -> Message:
    """Read one item of a request's `input`."""
    if isinstance(item, str):
        return Message(role="user", parts=(Text(item),))
    if not isinstance(item, dict):
        return Message(role="user", parts=(Unknown(item),))
    kind = item.get("type", "message")
    if kind == "message":
        role = _OPENAI_RESPONSES_ROLES.get(text_of(item.get("role")))
        if role is None:
            return Message(role="user", parts=(Unknown(item),))
        return Message(role=role, parts=(*read_content(item.get("content")), *extras(item, _SAID_KEYS)))
    name, call_id = item.get("name"), text_or_none(item.get("call_id"))
    if isinstance(kind, str) and kind in _CALLS and isinstance(name, str):
        call = ToolCall(name=name, arguments=read_arguments(item.get(_CALLS[kind])), id=call_id)
        return Message(role="assistant", parts=(call, *extras(item, _CALL_KEYS)))
    if isinstance(kind, str) and kind in _OUTPUTS:
        output = item.get("output")
        parts = read_content([output] if isinstance(output, dict) else output)
        return Message(role="tool", parts=(ToolResult(parts=parts, call_id=call_id),))
    if kind == "reasoning":
        return Message(role="assistant", parts=tuple(_read_reasoning(item)))
    return Message(role="assistant", parts=(Unknown(item),))


def _read_reasoning(item: Mapping[str, Json]) -> Iterator[Part]:
    """Yield the readable summary and content of a reasoning item, then the encrypted reasoning that is sent back to the
    model."""
    seal = item.get("encrypted_content")
    shown = (*read_thinking(item.get("summary")), *read_thinking(item.get("content")))
    text = "\n".join(part.text for part in shown if isinstance(part, Thinking))
    yield Thinking(text=text, signature=seal, sealed_as="encrypted") if isinstance(seal, str) else Thinking(text=text)
    yield from (part for part in shown if isinstance(part, Unknown))
    yield from extras(item, frozenset({"type", "summary", "content", "encrypted_content", "status"}))
