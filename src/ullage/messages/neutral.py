"""Writes neutral messages as JSON, and reads them.

    {"role": "assistant", "parts": [{"type": "text", "text": "…"}, {"type": "tool_call", "name": "…", …}]}

A part has its kind as `type` and its fields under their own names; empty fields are left out. Writing and reading lose
nothing. JSON from other sources is read too: a part of another shape becomes `Unknown`, as in the other readers.
"""

from collections.abc import Iterator, Mapping

from ullage.tool import Json

from .openai import read_tool as read_openai_tool
from .parts import (
    Format,
    Media,
    Message,
    Part,
    Request,
    Role,
    SealedAs,
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

__all__ = ["from_json", "read", "to_json"]

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_SEALS: Mapping[str, SealedAs] = {
    "signature": "signature",
    "redacted": "redacted",
    "thought_signature": "thought_signature",
    "encrypted": "encrypted",
}
_READ_KEYS = frozenset({"model", "system", "messages", "tools", "tool_choice", "output_schema"})
_SCHEMAS = ("schema", "parameters", "input_schema", "inputSchema")


def to_json(message: Message) -> dict[str, Json]:
    """Return a neutral message as JSON."""
    return _drop_none_fields(role=message.role, name=message.name, parts=[_part(part) for part in message.parts])


def from_json(value: Json) -> Message:
    """Read a message that `to_json` wrote, or JSON of similar shape."""
    role = _ROLES.get(text_of(value.get("role"))) if isinstance(value, dict) else None
    if not isinstance(value, dict) or role is None:
        return Message(role="user", parts=(Unknown(value),))
    beside = extras(value, frozenset({"role", "name", "parts"}))
    return Message(role=role, parts=(*_read_parts(value.get("parts")), *beside), name=text_or_none(value.get("name")))


def read(body: Mapping[str, Json]) -> Request:
    """Read a whole request: neutral messages, and tools in any of the usual formats of a function."""
    model, system = body.get("model"), body.get("system")
    return Request(
        format=Format.ULLAGE,
        model=model if isinstance(model, str) else None,
        system=tuple(
            Message(role="system", parts=(Text(one),)) if isinstance(one, str) else from_json(one)
            for one in items_of(system)
        ),
        messages=tuple(map(from_json, items_of(body.get("messages")))),
        tools=tuple(map(_read_tool, items_of(body.get("tools")))),
        tool_choice=body.get("tool_choice"),
        output_schema=body.get("output_schema"),
        settings={key: value for key, value in body.items() if key not in _READ_KEYS},
    )


def _read_tool(tool: Json) -> ToolDefinition:
    if isinstance(tool, dict) and tool.get("type") == "function":
        return read_openai_tool(tool)
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return ToolDefinition(name="", hosted={"tool": tool})
    schema, strict = next((tool[key] for key in _SCHEMAS if key in tool), None), tool.get("strict")
    known = {"name", "description", "strict", *_SCHEMAS}
    return ToolDefinition(
        name=text_of(tool["name"]),
        description=text_or_none(tool.get("description")),
        schema=schema if isinstance(schema, dict) else {},
        strict=strict if isinstance(strict, bool) else None,
        extra={key: value for key, value in tool.items() if key not in known},
    )


def _part(part: Part) -> dict[str, Json]:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Thinking():
            return _drop_none_fields(
                type="thinking", text=part.text, signature=part.signature, sealed_as=part.sealed_as
            )
        case Media():
            place: Mapping[str, Json] = {"data": part.data, "url": part.url}
            return _drop_none_fields(
                type="media", kind=part.kind, media_type=part.media_type, detail=part.detail, **place
            )
        case ToolCall():
            return _drop_none_fields(type="tool_call", name=part.name, arguments=part.arguments, id=part.id)
        case ToolResult():
            inner: Json = [_part(one) for one in part.parts]
            error = True if part.is_error else None
            return _drop_none_fields(
                type="tool_result", call_id=part.call_id, name=part.name, is_error=error, parts=inner
            )
        case Unknown():
            return {"type": "unknown", "value": part.value}


def _drop_none_fields(**fields: Json) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if value is not None}


def _read_parts(parts: Json) -> Iterator[Part]:
    """Yield each part, and after it the values beside its known keys; an item of another shape is unknown."""
    for item in items_of(parts):
        match item:
            case {"type": "text", "text": str(text)}:
                yield Text(text)
            case {"type": "thinking", "text": str(text)}:
                seal = _SEALS.get(text_of(item.get("sealed_as")))
                yield Thinking(text=text, signature=text_or_none(item.get("signature")), sealed_as=seal)
            case {"type": "media", "kind": "image" | "audio" | "video" | "document" as kind}:
                said = {key: text_or_none(item.get(key)) for key in ("media_type", "data", "url", "detail")}
                yield Media(kind=kind, **said)
            case {"type": "tool_call", "name": str(name), "arguments": str(arguments)}:
                yield ToolCall(name=name, arguments=arguments, id=text_or_none(item.get("id")))
            case {"type": "tool_result"}:
                yield ToolResult(
                    parts=tuple(_read_parts(item.get("parts"))),
                    call_id=text_or_none(item.get("call_id")),
                    name=text_or_none(item.get("name")),
                    is_error=item.get("is_error") is True,
                )
            case {"type": "unknown"}:
                yield Unknown(item.get("value"))
            case _:
                yield Unknown(item)
                continue
        yield from extras(item, _PART_KEYS[text_of(item["type"])])


_PART_KEYS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"type", "text"}),
    "thinking": frozenset({"type", "text", "signature", "sealed_as"}),
    "media": frozenset({"type", "kind", "media_type", "data", "url", "detail"}),
    "tool_call": frozenset({"type", "name", "arguments", "id"}),
    "tool_result": frozenset({"type", "parts", "call_id", "name", "is_error"}),
    "unknown": frozenset({"type", "value"}),
}
"""The keys that are read of each kind of part."""
