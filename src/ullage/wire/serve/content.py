"""How do our values look as the protocol's JSON?

Replies, tools, resources and prompts go out as plain mappings, so that a key nobody here has heard of is not lost in a
typed model on the way. Only what a client would choke on is changed: a content block of a kind the protocol does not
know, and for clients of the earlier era what that era could not say. Nothing is sent from here.
"""

import json
from collections.abc import Mapping, Sequence
from typing import cast
from urllib.parse import quote

from ullage.gateway import definition
from ullage.tool import Block, Contents, Json, JsonObject, Needs, PromptMessages, Reply, Tool, text_block

__all__ = [
    "COMPLETE",
    "block_to_wire",
    "contents_to_wire",
    "needs_to_wire",
    "prompt_to_wire",
    "reply_to_wire",
    "tool_to_wire",
]

COMPLETE = "complete"
"""The protocol's word for a result that is one; clients of the earlier era are not sent it."""

_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
}
"""What a block of each kind must have, as text; an embedded resource is looked at more closely."""


def tool_to_wire(tool: Tool, *, modern: bool = True) -> dict[str, Json]:
    """Before 2026-07-28 an output was an object or nothing: a schema of another type spoils the whole list there."""
    said = definition(tool)
    if not modern and tool.output_schema is not None and tool.output_schema.get("type") != "object":
        del said["outputSchema"]
    return said


def reply_to_wire(reply: Reply, *, modern: bool = True) -> dict[str, Json]:
    if reply.needs is not None:
        return needs_to_wire(reply.needs, reply.meta)
    content: list[Json] = [block_to_wire(block) for block in reply.content]
    result = _result(reply.meta, modern=modern)
    result["content"] = content
    result["isError"] = reply.is_error
    if reply.structured is not None:
        value = reply.structured.value
        if modern or isinstance(value, dict):
            result["structuredContent"] = value
        elif not content:
            # The earlier era has no place for it but the text.
            content.append(_written(value))
    return result


def contents_to_wire(contents: Contents, uri: str, *, modern: bool = True) -> dict[str, Json]:
    if contents.needs is not None:
        return needs_to_wire(contents.needs, contents.meta)
    return {**_result(contents.meta, modern=modern), "contents": [_content(one, uri) for one in contents.contents]}


def prompt_to_wire(prompt: PromptMessages, *, modern: bool = True) -> dict[str, Json]:
    if prompt.needs is not None:
        return needs_to_wire(prompt.needs, prompt.meta)
    result = _result(prompt.meta, modern=modern)
    if prompt.description is not None:
        result["description"] = prompt.description
    return {**result, "messages": [_message(one) for one in prompt.messages]}


def needs_to_wire(needs: Needs, meta: JsonObject | None = None) -> dict[str, Json]:
    """Only for clients of 2026-07-28 on: earlier ones are asked by requests of their own."""
    result: dict[str, Json] = {"_meta": dict(meta)} if meta else {}
    result["resultType"] = "input_required"
    if needs.requests:
        result["inputRequests"] = dict(needs.requests)
    if needs.state is not None:
        result["requestState"] = needs.state
    return result


def _result(meta: JsonObject, *, modern: bool) -> dict[str, Json]:
    result: dict[str, Json] = {"_meta": dict(meta)} if meta else {}
    if modern:
        result["resultType"] = COMPLETE
    return result


def block_to_wire(block: Block) -> dict[str, Json]:
    """The block, or where the protocol knows no such block, its data as an embedded resource, else its JSON as text."""
    if _is_known(block):
        return dict(block)
    kind, data, mime = str(block.get("type")), block.get("data"), block.get("mimeType")
    if isinstance(data, str) and isinstance(mime, str):
        # Written out as text, a film would cost the model its whole window.
        resource: Json = {"uri": f"urn:ullage:block:{quote(kind, safe='')}", "mimeType": mime, "blob": data}
        return {"type": "resource", "resource": resource}
    return dict(text_block(f"A content block of the unknown kind `{kind}`, as JSON: {_dumped(block)}"))


def _is_known(block: Block) -> bool:
    kind = block.get("type")
    if kind == "resource":
        resource = block.get("resource")
        return isinstance(resource, dict) and _is_content(resource)
    required = _REQUIRED.get(kind) if isinstance(kind, str) else None
    return required is not None and all(isinstance(block.get(key), str) for key in required)


def _is_content(content: JsonObject) -> bool:
    held = isinstance(content.get("text"), str) or isinstance(content.get("blob"), str)
    return held and isinstance(content.get("uri"), str)


def _content(content: JsonObject, uri: str) -> dict[str, Json]:
    if _is_content(content):
        return dict(content)
    return {"uri": uri, "mimeType": "application/json", "text": _dumped(content)}


def _message(message: JsonObject) -> dict[str, Json]:
    content = message.get("content")
    if isinstance(content, dict):
        return {**message, "content": block_to_wire(content)}
    if isinstance(content, str):
        return {**message, "content": dict(text_block(content))}
    return {**message, "content": _written(content)}


def _written(value: Json) -> dict[str, Json]:
    return dict(text_block(_dumped(value)))


def _dumped(value: Json | JsonObject | Sequence[Json]) -> str:
    return json.dumps(cast("Json", value), ensure_ascii=False)
