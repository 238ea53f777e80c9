"""Removal or escaping of invisible characters in everything a source sends, before a model can see it.

Prose of definitions (descriptions, titles, instructions) loses them. Results, errors, questions and log messages keep
them as visible JSON escapes, so that nothing is lost. Names and values that a model has to write back (properties,
enum, const, defaults) are escaped too, and `restore_arguments` turns them back into what the server knows.

`Merge` sanitizes what comes from its members. `Metered` sanitizes what leaves, because JSON that is read and written
again (by `read_result` and tables) has the character where the server wrote an escape such as `\\u200b`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, cast

import anyio.to_thread

from ullage.invisible_characters import escape_invisible, escape_json, has_invisible_in, map_strings, remove_invisible
from ullage.table import join_pieces
from ullage.tokens import Steps, drain
from ullage.tool import (
    Ask,
    Asked,
    Block,
    Call,
    Contents,
    Json,
    JsonObject,
    Needs,
    Progress,
    PromptMessages,
    Reply,
    Structured,
    Tell,
    Tool,
    is_larger,
)

__all__ = [
    "restore_arguments",
    "sanitize_contents",
    "sanitize_item",
    "sanitize_messages",
    "sanitize_request",
    "sanitize_result",
    "sanitize_tool",
    "sanitized_contents",
    "sanitized_json",
    "sanitized_messages",
    "sanitized_result",
]

_PROSE = frozenset({"description", "title", "$comment", "markdownDescription"})
_BINARY = frozenset({"data", "blob"})
_STEP = 20_000
"""Characters of a text that are examined in one step."""
_LONGEST_MESSAGE = 20_000
"""Most characters of a progress message that are passed on."""
_MESSAGE_VALUES, _MESSAGE_LETTERS = 5_000, 200_000
"""JSON values and characters above which a log message's data is left out."""
_SCALARS = frozenset({int, float, bool, type(None)})
_ESCAPES = ("\\u", "\\b", "\\f", "\\r")
"""JSON escapes that may stand for an invisible character."""
_LEFT_OUT = "[The server sent a log message that is too large to pass on.]"
_LARGE_VALUES, _LARGE_LETTERS = 10_000, 20_000
"""Most JSON values, and characters outside ASCII, that are examined on the event loop; more are left to a thread."""

RequestT = TypeVar("RequestT", bound=Asked)
ValueT = TypeVar("ValueT")


def sanitize_tool(tool: Tool) -> tuple[Tool, Mapping[str, str]]:
    """Return the definition as a model may see it, and the originals of escaped names and values by their escaped form.

    Unchanged parts are the same objects. The tool's own name is not changed here; `merge.tool_names` assigns it.
    """
    schemas = (tool.input_schema, tool.output_schema, tool.annotations, tool.extra)
    if not has_invisible_in(tool.description, tool.title, *cast("tuple[Json, ...]", schemas)):
        return tool, {}
    originals: dict[str, str] = {}
    input_schema = cast("JsonObject", _sanitize_schema(cast("Json", tool.input_schema), originals))
    output_schema = cast("JsonObject | None", _sanitize_schema(cast("Json", tool.output_schema), {}))
    annotations = cast("JsonObject", _sanitize_schema(cast("Json", tool.annotations), {}))
    extra = cast("JsonObject", _sanitize_schema(cast("Json", tool.extra), {}))
    description = None if tool.description is None else remove_invisible(tool.description)
    title = None if tool.title is None else remove_invisible(tool.title)
    safe = replace(
        tool,
        input_schema=input_schema,
        output_schema=output_schema,
        annotations=annotations,
        extra=extra,
        description=description,
        title=title,
    )
    return safe, originals


def sanitize_item(item: JsonObject) -> tuple[JsonObject, Mapping[str, str]]:
    """Sanitize the definition of a prompt, a resource or a template as `sanitize_tool` does; `merge.tool_names`
    writes its address."""
    originals: dict[str, str] = {}
    addresses = {key: item[key] for key in ("uri", "uriTemplate") if key in item}
    safe = cast("JsonObject", _sanitize_schema(cast("Json", item), originals))
    return (item if safe is item else {**safe, **addresses}), originals


def _sanitize_schema(value: Json, originals: dict[str, str], *, is_prose: bool = False) -> Json:
    """Return a value with prose stripped and everything else escaped; the same object if nothing changes."""
    if isinstance(value, str):
        if is_prose:
            return remove_invisible(value)
        escaped = escape_invisible(value)
        if escaped is not value:
            originals[escaped] = value
        return escaped
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Json]", value)
        changed: dict[str, Json] = {}
        same = True
        for key, member in members.items():
            new_key = cast("str", _sanitize_schema(key, originals))
            changed[new_key] = new = _sanitize_schema(member, originals, is_prose=key in _PROSE)
            same = same and new is member and new_key is key
        return value if same else changed
    if isinstance(value, list):
        items = [_sanitize_schema(item, originals, is_prose=is_prose) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def restore_arguments(arguments: JsonObject, originals: Mapping[str, str]) -> JsonObject:
    """Return the arguments with escaped names and values restored to the server's; only whole names and values are
    replaced."""
    return cast("JsonObject", _restored(cast("Json", arguments), originals)) if originals else arguments


def _restored(value: Json, originals: Mapping[str, str]) -> Json:
    if isinstance(value, str):
        return originals.get(value, value)
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Json]", value)
        return {originals.get(key, key): _restored(member, originals) for key, member in members.items()}
    if isinstance(value, list):
        return [_restored(item, originals) for item in value]
    return value


def _is_large(value: object) -> bool:
    """Return whether examining a value takes longer than a few milliseconds."""
    return is_larger(value, _LARGE_VALUES, _LARGE_LETTERS, ascii_share=100)


async def sanitized(work: Callable[[ValueT], ValueT], value: ValueT, *parts: object) -> ValueT:
    """Return the result of `work` for the value; run in a thread if its parts are large, so that other calls are not
    delayed."""
    return await anyio.to_thread.run_sync(work, value) if _is_large(parts) else work(value)


async def sanitized_result(reply: Reply) -> Reply:
    """Run `sanitize_result` without delaying other calls, however large the reply is."""
    if _is_plain_text(reply):
        meta = await sanitized(_sanitize_object, reply.meta, reply.meta) if reply.meta else reply.meta
        return reply if meta is reply.meta else reply.changed(meta=meta)
    structured = None if reply.structured is None else reply.structured.value
    requests = None if reply.needs is None else reply.needs.requests
    return await sanitized(
        lambda one: drain(sanitize_result(one)),
        reply,
        *(reply.content, structured, requests, reply.meta, reply.extension),
    )


def _is_plain_text(reply: Reply) -> bool:
    """Return whether a reply is, as most are, a single short text without invisible characters; structured content may
    repeat it. Metadata is not examined."""
    if len(reply.content) != 1 or reply.extension is not None or reply.needs is not None:
        return False
    block, structured = reply.content[0], reply.structured
    text = block.get("text")
    if not isinstance(text, str) or len(text) > _STEP or len(block) != 2 or block.get("type") != "text":
        return False
    if structured is not None and (structured.text is not text or any(escape in text for escape in _ESCAPES)):
        return False
    return escape_invisible(text) is text


async def sanitized_contents(contents: Contents) -> Contents:
    return await sanitized(sanitize_contents, contents, contents.contents, contents.meta)


async def sanitized_messages(prompt: PromptMessages) -> PromptMessages:
    return await sanitized(sanitize_messages, prompt, prompt.messages, prompt.description, prompt.meta)


async def sanitized_json(value: JsonObject) -> JsonObject:
    return cast("JsonObject", await sanitized(_escape_json, cast("Json", value), value))


def _escape_json(value: Json) -> Json:
    """Run `escape_json` in pieces that are short enough for other threads to run in between."""
    if value.__class__ in _SCALARS:
        return value
    if not _is_large(value):
        return escape_json(value)
    return map_strings(value, lambda text: drain(_escape_long(text)))


def sanitize_result(reply: Reply) -> Steps[Reply]:
    """Return a reply with every invisible character escaped; the same object if there is none. Yields within long
    texts."""
    content: list[Block] = []
    for block in reply.content:
        text = block.get("text")
        if not isinstance(text, str) or len(block) != 2:
            safe_block = _sanitize_object(block)
        else:
            safe = yield from _escape_long(text)
            safe_block = block if safe is text else {**block, "text": safe}
        content.append(safe_block)
    structured = reply.structured
    if structured is not None and (value := _escape_json(structured.value)) is not structured.value:
        structured = Structured(value)
    needs = None if reply.needs is None else _sanitize_needs(reply.needs)
    meta = _sanitize_object(reply.meta)
    extension = None if reply.extension is None else _sanitize_object(reply.extension)
    same = all(new is old for new, old in zip(content, reply.content, strict=True)) and extension is reply.extension
    if same and structured is reply.structured and needs is reply.needs and meta is reply.meta:
        return reply
    return replace(reply, content=tuple(content), structured=structured, needs=needs, meta=meta, extension=extension)


def _escape_long(text: str) -> Steps[str]:
    """Run `escape_invisible` on pieces cut at spaces, across which characters do not combine."""
    if len(text) <= _STEP:
        return escape_invisible(text)
    pieces: list[str] = []
    start, same = 0, True
    while start < len(text):
        end = start + _STEP
        cut = text.rfind(" ", start, end) if end < len(text) else -1
        end = cut + 1 if cut > start else end
        piece = text[start:end]
        pieces.append(escape_invisible(piece))
        same = same and pieces[-1] is piece
        start = end
        yield
    return text if same else join_pieces(pieces)


def _sanitize_object(value: JsonObject) -> JsonObject:
    """Return an object with its strings escaped. Base64 data is not examined, since it may be most of a message."""
    changed: dict[str, Json] = {}
    same = True
    for key, member in value.items():
        if key in _BINARY and isinstance(member, str) and member.isascii():
            new: Json = member
        elif isinstance(member, dict):
            new = cast("Json", _sanitize_object(member))
        else:
            new = _escape_json(member)
        new_key = escape_invisible(key)
        changed[new_key] = new
        same = same and new is member and new_key is key
    return value if same else changed


def _sanitize_needs(needs: Needs) -> Needs:
    requests = _escape_json(cast("Json", needs.requests))
    return needs if requests is needs.requests else Needs(cast("JsonObject", requests), needs.state)


def sanitize_contents(contents: Contents) -> Contents:
    needs = None if contents.needs is None else _sanitize_needs(contents.needs)
    safe = tuple(map(_sanitize_object, contents.contents))
    return replace(contents, contents=safe, needs=needs, meta=_sanitize_object(contents.meta))


def sanitize_messages(prompt: PromptMessages) -> PromptMessages:
    needs = None if prompt.needs is None else _sanitize_needs(prompt.needs)
    description = None if prompt.description is None else remove_invisible(prompt.description)
    messages: Sequence[JsonObject] = [_sanitize_message(message) for message in prompt.messages]
    meta = _sanitize_object(prompt.meta)
    return replace(prompt, messages=tuple(messages), description=description, needs=needs, meta=meta)


def _sanitize_message(message: JsonObject) -> JsonObject:
    content = message.get("content")
    if not isinstance(content, dict):
        return cast("JsonObject", _escape_json(cast("Json", message)))
    return {**message, "content": dict(_sanitize_object(content))}


def sanitize_request(request: RequestT, **changes: object) -> RequestT:
    """Return a request whose callbacks escape the server's questions, log messages and progress for the client;
    other fields are set to the given values."""
    if request.ask is not None:
        changes["ask"] = _ask_escaped(request.ask)
    if request.tell is not None:
        changes["tell"] = _tell_escaped(request.tell)
    if isinstance(request, Call) and request.progress is not None:
        changes["progress"] = _progress_escaped(request.progress)
    if not changes:
        return request
    if isinstance(request, Call):
        return request.changed(**changes)  # type: ignore[arg-type]
    return replace(request, **changes)  # type: ignore[arg-type]


def _ask_escaped(ask: Ask) -> Ask:
    async def escaped(method: str, params: JsonObject) -> JsonObject:
        return await ask(method, await sanitized_json(params))

    return escaped


def _tell_escaped(tell: Tell) -> Tell:
    async def escaped(method: str, params: JsonObject) -> None:
        if _is_oversized(params):
            params = {key: value for key, value in params.items() if not _is_oversized(value)}
            params = {**params, "data": _LEFT_OUT} if method == "notifications/message" else params
        await tell(method, await sanitized_json(params))

    return escaped


def _is_oversized(value: object) -> bool:
    """Return whether a log message or another notification is too large to pass on."""
    return is_larger(value, _MESSAGE_VALUES, _MESSAGE_LETTERS)


def _progress_escaped(progress: Progress) -> Progress:
    async def escaped(done: float, total: float | None, message: str | None) -> None:
        if message is not None and len(message) > _LONGEST_MESSAGE:
            message = f"{message[:_LONGEST_MESSAGE]}… ({len(message):,} characters in all)"
        await progress(done, total, None if message is None else escape_invisible(message))

    return escaped
