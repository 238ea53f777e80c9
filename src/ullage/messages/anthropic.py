"""Reads requests and messages of Anthropic's Messages API.

Nothing is checked and nothing is dropped: a block, role or tool of unknown shape is kept raw. Only the keys that steer
caching (`cache_control`) and restrict callers (`caller`) are left out of the parts, because no model reads them.
"""

from collections.abc import Mapping
from typing import Literal

from ullage.tool import Json

from .bedrock import is_converse, rewrite_converse
from .openai import read_arguments
from .openai import read_tool as read_openai_tool
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

__all__ = ["read", "read_block", "read_message"]

Block = Mapping[str, Json]

_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_MEDIA: Mapping[str, Literal["image", "video", "audio"]] = {"image": "image", "video": "video", "audio": "audio"}
_READ_KEYS = frozenset({"model", "system", "messages", "tools", "tool_choice", "output_format"})
_MARKS = frozenset({"type", "cache_control", "caller"})
_TOOL_KEYS = frozenset({"type", "name", "description", "input_schema", "strict", "cache_control"})


def read(body: Mapping[str, Json]) -> Request:
    """Read a request into neutral parts; keys that are not understood go to `settings`."""
    if is_converse(body):
        body = rewrite_converse(body)
    model, system = body.get("model"), body.get("system")
    # The schema of the answer: `output_format`, or since 2026 `output_config.format`.
    config = body.get("output_config")
    newer = config.get("format") if isinstance(config, dict) else None
    output_schema = body.get("output_format") if newer is None else newer
    return Request(
        format=Format.ANTHROPIC,
        model=model if isinstance(model, str) else None,
        system=(Message(role="system", parts=_read_content(system)),) if system else (),
        messages=tuple(map(read_message, items_of(body.get("messages")))),
        tools=tuple(map(_read_tool, items_of(body.get("tools")))),
        tool_choice=body.get("tool_choice"),
        output_schema=output_schema,
        settings={key: value for key, value in body.items() if key not in _READ_KEYS},
    )


def read_message(message: Json) -> Message:
    """Read one of a request's `messages`."""
    role = _ROLES.get(text_of(message.get("role"))) if isinstance(message, dict) else None
    if not isinstance(message, dict) or role is None:
        return Message(role="user", parts=(Unknown(message),))
    beside = extras(message, frozenset({"role", "content"}))
    return Message(role=role, parts=(*_read_content(message.get("content")), *beside))


def _read_tool(tool: Json) -> ToolDefinition:
    """Read a tool definition. One that the provider runs or defers until it is searched for stays raw in `hosted`.

    A function in OpenAI's format is read too: clients of OpenAI-compatible endpoints send these to Claude.
    """
    if not isinstance(tool, dict):
        return ToolDefinition(name="", hosted={"tool": tool})
    if tool.get("type") == "function":
        return read_openai_tool(tool)
    description, schema, strict = tool.get("description"), tool.get("input_schema"), tool.get("strict")
    own = tool.get("type", "custom") in (None, "custom") and tool.keys() <= _TOOL_KEYS
    return ToolDefinition(
        name=text_of(tool.get("name", tool.get("type"))),
        description=description if isinstance(description, str) else None,
        schema=schema if isinstance(schema, dict) else {},
        strict=strict if isinstance(strict, bool) else None,
        hosted=None if own else tool,
    )


def _read_content(content: Json) -> tuple[Part, ...]:
    """Read the parts of a `content`: a text, a list of blocks, one block, or nothing."""
    return tuple(part for item in items_of(content) for part in read_block(item))


def read_block(item: Json) -> tuple[Part, ...]:
    """Read one block of a message's `content`, which may become several parts."""
    if isinstance(item, str):
        return (Text(item),)
    if not isinstance(item, dict):
        return (Unknown(item),)
    match item:
        case {"type": "text", "text": str(text)}:
            return (Text(text), *extras(item, _MARKS | {"text"}))
        case {"type": "thinking", "thinking": str(text)}:
            seal = text_or_none(item.get("signature"))
            thinking = Thinking(text=text, signature=seal, sealed_as=None if seal is None else "signature")
            return (thinking, *extras(item, _MARKS | {"thinking", "signature"}))
        case {"type": "redacted_thinking", "data": str(data)}:
            return (Thinking(text="", signature=data, sealed_as="redacted"),)
        # Only Bedrock has blocks of video or audio.
        case {"type": "image" | "video" | "audio" as kind, "source": dict() as source}:
            media = _read_source(kind, source)
            return (*media, *extras(item, _MARKS | {"source"})) if media else (Unknown(item),)
        case {"type": "document", "source": dict() as source}:
            return _read_document(item, source) or (Unknown(item),)
        case {"type": "tool_use" | "server_tool_use" | "mcp_tool_use", "name": str(name)}:
            call = ToolCall(name=name, arguments=read_arguments(item.get("input")), id=text_or_none(item.get("id")))
            return (call, *extras(item, _MARKS | {"name", "id", "input"}))
        case {"type": str(kind)} if kind.endswith("tool_result"):
            return _read_result(item, kind)
        case _:
            return (Unknown(item),)


def _read_document(item: Block, source: Block) -> tuple[Part, ...] | None:
    """Read a document: its text, or else a medium; then its other fields as an `Unknown` part under `document`."""
    kind, data = source.get("type"), source.get("data")
    said: dict[str, Json] = {key: item[key] for key in item if key not in _MARKS | {"source"}}
    if kind == "content":
        return (*_read_content(source.get("content")), Unknown({"document": said}))
    if kind == "text" and isinstance(data, str):
        said["media_type"] = source.get("media_type")
        return (Text(data), Unknown({"document": said}))
    media = _read_source("document", source)
    return (*media, Unknown({"document": said})) if media else None


def _read_source(kind: str, source: Block) -> tuple[Part, ...]:
    """Read the source of an image or document: bytes in the request, an address, or a file stored by Anthropic."""
    media_type = source.get("media_type")
    place = {key: value for key in ("data", "url", "file_id") if isinstance(value := source.get(key), str)}
    if not place:
        return ()
    medium = Media(
        kind=_MEDIA.get(kind, "document"),
        media_type=media_type if isinstance(media_type, str) else None,
        data=place.get("data"),
        url=place.get("url", place.get("file_id")),
    )
    return (medium, *extras(source, frozenset({"type", "media_type", "data", "url", "file_id"})))


def _read_result(item: Block, kind: str) -> tuple[Part, ...]:
    """Read the result of a call. A tool that Anthropic ran itself is named by its block's type."""
    result = ToolResult(
        parts=_read_content(item.get("content")),
        call_id=text_or_none(item.get("tool_use_id")),
        name=None if kind == "tool_result" else kind,
        is_error=item.get("is_error") is True,
    )
    return (result, *extras(item, _MARKS | {"content", "tool_use_id", "is_error"}))
