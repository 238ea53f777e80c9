"""Reads requests and contents of Google's `generateContent`, on AI Studio or on Vertex.

Both spellings of a key are read (`functionCall`, `function_call`). A call's arguments and a function's response are
objects in this format; they become compact JSON text. A signature on another part becomes an empty `Thinking` before
that part. Nothing is dropped: what has no place in the neutral parts becomes `Unknown`, or stays in `settings`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
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
    items_of,
    text_of,
    text_or_none,
)

__all__ = ["read", "read_message", "read_part"]

_DECLARATIONS = "functionDeclarations"
_READ_KEYS = frozenset({"model", "contents", "content", "requests", "systemInstruction", "tools", "toolConfig"})
_ROLES: Mapping[str, Role] = {"model": "assistant", "function": "tool", "tool": "tool", "system": "system"}
_KINDS: Mapping[str, Literal["image", "audio", "video", "document"]] = {
    "image": "image",
    "audio": "audio",
    "video": "video",
}
_SCHEMAS = ("responseSchema", "responseJsonSchema")
_SDK_TOP_KEYS = frozenset({"systemInstruction", "tools", "toolConfig", "cachedContent", "safetySettings", "labels"})
"""Keys that Google's SDK takes in `config` and sends beside `generationConfig`."""


def read(body: Mapping[str, Json]) -> Request:
    """Read a request into neutral parts; keys that are not understood go to `settings`."""
    top = _with_sdk_config(_camel(body))
    model = top.get("model")
    config = _object(top.get("generationConfig"))
    settings = {key: value for key, value in top.items() if key not in _READ_KEYS}
    # The role in a `systemInstruction` has no effect, but Google charges a token for it.
    if isinstance(role := _object(top.get("systemInstruction")).get("role"), str):
        settings["systemInstruction"] = {"role": role}
    # An embedding has its texts in `content`, and a batch of them in `requests`.
    batch = (
        _camel(request).get("content") if isinstance(request, dict) else request
        for request in items_of(top.get("requests"))
    )
    conversation = (top.get("contents"), top.get("content"), *batch)
    declared = (
        _camel(item)
        for tool in items_of(top.get("tools"))
        if isinstance(tool, dict)
        for item in items_of(_camel(tool).get(_DECLARATIONS))
        if isinstance(item, dict)
    )
    return Request(
        format=Format.GEMINI,
        model=model if isinstance(model, str) else None,
        system=tuple(_read_contents(top.get("systemInstruction"), "system")),
        messages=tuple(message for contents in conversation for message in _read_contents(contents, "user")),
        tools=(*map(_read_declaration, declared), *_hosted_tools(top.get("tools"))),
        tool_choice=top.get("toolConfig"),
        output_schema=next((config[key] for key in _SCHEMAS if config.get(key) is not None), None),
        settings=settings,
    )


def _with_sdk_config(top: dict[str, Json]) -> dict[str, Json]:
    """Return the body with the `config` of a call of Google's SDK in the places where the API has its keys."""
    config = top.get("config")
    if not isinstance(config, dict):
        return top
    named = _camel(config)
    generation = {key: value for key, value in named.items() if key not in _SDK_TOP_KEYS}
    above = {key: value for key, value in named.items() if key in _SDK_TOP_KEYS}
    rest = {key: value for key, value in top.items() if key != "config"}
    return {**above, "generationConfig": generation, **rest}


def _read_contents(contents: Json, role: Role) -> Iterator[Message]:
    """Yield one message for each content."""
    for content in items_of(contents):
        yield read_message(content, role)


def read_message(content: Json, role: Role = "user") -> Message:
    """Read one of a request's `contents`. A part without a content around it is the user's."""
    fields = _camel(content) if isinstance(content, dict) else {}
    if "parts" not in fields:
        return Message(role=role, parts=tuple(read_part(content)))
    parts = tuple(part for item in items_of(fields["parts"]) for part in read_part(item))
    # A `systemInstruction` has the role of the system, whichever it gives.
    given = role if role == "system" else _ROLES.get(text_of(fields.get("role")), role)
    return Message(role=given, parts=(*parts, *_unknown(fields, "parts", "role")))


def read_part(item: Json) -> Iterator[Part]:
    """Read one of a content's `parts`, which may become several parts."""
    if isinstance(item, str):
        yield Text(item)
        return
    if not isinstance(item, dict):
        yield Unknown(item)
        return
    text = item.get("text")
    if len(item) == 1 and isinstance(text, str):
        yield Text(text)
        return
    fields = _camel(item)
    signature = fields.get("thoughtSignature")
    if isinstance(text, str) and fields.get("thought") is True:
        yield _signed_thinking(text, signature) if isinstance(signature, str) else Thinking(text=text)
        yield from _unknown(fields, "text", *_marks(fields))
        return
    if isinstance(signature, str):
        yield _signed_thinking("", signature)
    if isinstance(text, str):
        yield Text(text)
        yield from _unknown(fields, "text", *_marks(fields))
        return
    yield from _read_object(fields)


def _signed_thinking(text: str, signature: str) -> Thinking:
    return Thinking(text=text, signature=signature, sealed_as="thought_signature")


def _read_object(fields: Mapping[str, Json]) -> Iterator[Part]:
    """Read a part other than text: a call, a response, media, or one of unknown kind, kept as JSON."""
    for key, (reader, read_keys) in _READERS.items():
        value = fields.get(key)
        inner = _camel(value) if isinstance(value, dict) else {}
        known = reader(inner)
        if known is None:
            continue
        # A part's own resolution is an object with a level or, in some clients, the level itself.
        level = fields.get("mediaResolution") if isinstance(known, Media) else None
        resolution = text_or_none(level.get("level") if isinstance(level, dict) else level)
        yield replace(known, detail=resolution) if isinstance(known, Media) else known
        yield from _unknown(inner, *read_keys)
        yield from _unknown(fields, key, *_marks(fields), *(["mediaResolution"] if resolution else []))
        return
    yield from _unknown(fields, *_marks(fields))


def _marks(fields: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the keys that mark a part as a thought, where their values have the expected type."""
    marks: dict[str, type] = {"thought": bool, "thoughtSignature": str}
    return tuple(key for key, kind in marks.items() if isinstance(fields.get(key), kind))


def _read_call(call: Mapping[str, Json]) -> Part | None:
    name, identity = call.get("name"), call.get("id")
    if not isinstance(name, str):
        return None
    return ToolCall(name=name, arguments=_compact(call.get("args") or {}), id=text_or_none(identity))


def _read_response(response: Mapping[str, Json]) -> Part | None:
    name = response.get("name")
    if not isinstance(name, str):
        return None
    media = (part for item in items_of(response.get("parts")) for part in read_part(item))
    return ToolResult(
        parts=(Text(_compact(response.get("response") or {})), *media),
        call_id=text_or_none(response.get("id")),
        name=name,
    )


def _media(media: Mapping[str, Json], key: Literal["data", "fileUri"]) -> Media | None:
    """Read inline data or an address. Google's clients write data in URL-safe base64, which other providers do not
    accept; it is converted."""
    place, media_type = media.get(key), text_or_none(media.get("mimeType"))
    if not isinstance(place, str):
        return None
    kind = _KINDS.get((media_type or "").partition("/")[0], "document")
    if key == "fileUri":
        return Media(kind=kind, media_type=media_type, url=place)
    return Media(kind=kind, media_type=media_type, data=place.replace("-", "+").replace("_", "/"))


_READERS: Mapping[str, tuple[Callable[[Mapping[str, Json]], Part | None], tuple[str, ...]]] = {
    "functionCall": (_read_call, ("name", "args", "id")),
    "functionResponse": (_read_response, ("name", "response", "parts", "id")),
    "inlineData": (lambda media: _media(media, "data"), ("mimeType", "data")),
    "fileData": (lambda media: _media(media, "fileUri"), ("mimeType", "fileUri")),
}


def _read_declaration(declared: Mapping[str, Json]) -> ToolDefinition:
    """Read a declaration. A schema given as `parametersJsonSchema` stays in `extra` too: on some paths Google counts it
    differently."""
    parameters, schema = declared.get("parameters"), declared.get("parametersJsonSchema")
    known = {"name", "description", "parameters"} | ({"parametersJsonSchema"} if parameters else set[str]())
    chosen = parameters or schema
    return ToolDefinition(
        name=text_or_none(declared.get("name")) or "",
        description=text_or_none(declared.get("description")),
        schema=chosen if isinstance(chosen, dict) else {},
        extra={key: value for key, value in declared.items() if key not in known and value is not None},
    )


def _hosted_tools(tools: Json) -> Iterator[ToolDefinition]:
    """Yield the tools that Google runs (`googleSearch`, `codeExecution`, `urlContext`, …), each a key of a tool
    object."""
    for tool in items_of(tools):
        if not isinstance(tool, dict):
            yield ToolDefinition(name="", hosted={"tool": tool})
            continue
        for key, value in _camel(tool).items():
            if key != _DECLARATIONS and value is not None:
                yield ToolDefinition(name=key, hosted={key: value})


def _unknown(fields: Mapping[str, Json], *known: str) -> Iterator[Part]:
    rest: dict[str, Json] = {key: value for key, value in fields.items() if key not in known and value is not None}
    if rest:
        yield Unknown(rest)


def _camel(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Return the object with its own keys in camel case; nested keys keep their spelling."""
    camel: dict[str, Json] = {}
    for key, value in fields.items():
        head, *rest = str(key).split("_")
        camel[head + "".join(word[:1].upper() + word[1:] for word in rest) if head else str(key)] = value
    return camel


def _object(value: Json) -> Mapping[str, Json]:
    return _camel(value) if isinstance(value, dict) else {}


def _compact(value: Json) -> str:
    return dumps(value, ensure_ascii=False, separators=(",", ":"))
