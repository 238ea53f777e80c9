"""Writes replies, tools, resources and prompts as MCP JSON.

Everything is written as plain mappings, so that no typed model drops an unknown key. Only what a client would fail on
is changed: a content block of a kind that the protocol does not define, and for clients of the earlier era what that
era could not express. Nothing is sent from here.

`Envelope` adds what a result carries besides its content: every result of 2026-07-28 states its kind, which server
answered, and for how long a list may be cached. Capabilities and instructions are written as they are at the moment.

`served_capabilities` lists what a source provides: the features that it implements, without those that the servers
behind it are known to lack. The server does not claim what the source lacks, because clients pay for claims: some add
tools of their own for resources, in every request.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from ullage.gateway import definition
from ullage.tool import Block, Contents, Json, JsonObject, Needs, PromptMessages, Reply, Tool, ToolSource, text_block

from ..jsonrpc import MODERN_VERSIONS, SERVER_INFO_KEY, Message

__all__ = [
    "COMPLETE",
    "FRESH_MS",
    "Envelope",
    "block_to_wire",
    "contents_to_wire",
    "needs_to_wire",
    "prompt_to_wire",
    "reply_to_wire",
    "served_capabilities",
    "tool_to_wire",
]

COMPLETE = "complete"
"""The protocol's word for a finished result; clients of the earlier era do not receive it."""

_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
}
"""Mandatory text members of a block, by kind; embedded resources are checked more closely."""


def tool_to_wire(tool: Tool, *, modern: bool = True) -> dict[str, Json]:
    """Write a tool. Before 2026-07-28 an output schema other than an object makes the whole list invalid, and is
    omitted."""
    said = definition(tool)
    if not modern and tool.output_schema is not None and tool.output_schema.get("type") != "object":
        del said["outputSchema"]
    return said


def reply_to_wire(reply: Reply, *, modern: bool = True) -> dict[str, Json]:
    if reply.needs is not None:
        return needs_to_wire(reply.needs, reply.meta)
    if reply.extension is not None:
        return {**reply.extension, "_meta": dict(reply.meta)}
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
            content.append(_json_block(value))
    return result


def contents_to_wire(contents: Contents, uri: str, *, modern: bool = True) -> dict[str, Json]:
    if contents.needs is not None:
        return needs_to_wire(contents.needs, contents.meta)
    written: list[Json] = [
        dict(one) if _is_content(one) else {"uri": uri, "mimeType": "application/json", "text": _to_json(one)}
        for one in contents.contents
    ]
    return {**_result(contents.meta, modern=modern), "contents": written}


def prompt_to_wire(prompt: PromptMessages, *, modern: bool = True) -> dict[str, Json]:
    if prompt.needs is not None:
        return needs_to_wire(prompt.needs, prompt.meta)
    result = _result(prompt.meta, modern=modern)
    if prompt.description is not None:
        result["description"] = prompt.description
    return {**result, "messages": [_message(one) for one in prompt.messages]}


def needs_to_wire(needs: Needs, meta: JsonObject | None = None) -> dict[str, Json]:
    """Write needs, for clients of 2026-07-28 on only; earlier ones are asked by separate requests."""
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
    """Write a block. One unknown to the protocol becomes an embedded resource with its data, or else its JSON as
    text."""
    if _is_known(block):
        return dict(block)
    kind, data, mime = str(block.get("type")), block.get("data"), block.get("mimeType")
    if isinstance(data, str) and isinstance(mime, str):
        # Written as text, a video would fill the model's whole context window.
        resource: Json = {"uri": f"urn:ullage:block:{quote(kind, safe='')}", "mimeType": mime, "blob": data}
        return {"type": "resource", "resource": resource}
    return dict(text_block(f"A content block of the unknown kind `{kind}`, as JSON: {_to_json(block)}"))


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


def _message(message: JsonObject) -> dict[str, Json]:
    content = message.get("content")
    if isinstance(content, dict):
        return {**message, "content": block_to_wire(content)}
    if isinstance(content, str):
        return {**message, "content": dict(text_block(content))}
    return {**message, "content": _json_block(content)}


def _json_block(value: Json) -> dict[str, Json]:
    return dict(text_block(_to_json(value)))


def _to_json(value: Json | JsonObject | Sequence[Json]) -> str:
    return json.dumps(cast("Json", value), ensure_ascii=False)


def served_capabilities(source: ToolSource) -> dict[str, Json]:
    """Return what a source has to offer in the protocol's format, as far as that is known now."""
    features, can = source.features, source.capabilities
    changed = "changes" in features
    found: dict[str, Json] = {"tools": {"listChanged": changed}}
    if "resources" in features and _may(can, "resources"):
        resources = None if can is None else can.get("resources")
        may_subscribe = not isinstance(resources, dict) or resources.get("subscribe") is True
        subscribe = changed and "subscriptions" in features and may_subscribe
        found["resources"] = {"subscribe": subscribe, "listChanged": changed}
    if "prompts" in features and _may(can, "prompts"):
        found["prompts"] = {"listChanged": changed}
    for name in ("completions", "logging"):
        if name in features and _may(can, name):
            found[name] = {}
    return found


def _may(can: JsonObject | None, ability: str) -> bool:
    return can is None or ability in can


FRESH_MS: Mapping[str, int] = {
    "tools/list": 0,
    "resources/list": 0,
    "resources/templates/list": 0,
    "prompts/list": 0,
    "resources/read": 0,
    "server/discover": 60_000,
}
"""By method, milliseconds for which a client may cache an answer, for itself alone: lists differ by client.

A list may change at any moment with the servers behind, and a client that does not listen for changes would not notice;
a repeated list is answered from memory.
"""


class Envelope:
    """Adds one server's identity to results."""

    def __init__(
        self,
        name: str,
        version: str,
        instructions: Callable[[], str | None],
        capabilities: Callable[[], dict[str, Json]],
    ) -> None:
        self._info: dict[str, Json] = {"name": name, "version": version}
        self._stamp: dict[str, Json] = {SERVER_INFO_KEY: self._info}
        self._instructions = instructions
        self._capabilities = capabilities

    def seal(self, method: str, result: Message) -> Message:
        """Add what every result of 2026-07-28 carries."""
        result.setdefault("resultType", COMPLETE)
        # Overrides what a server behind declared about itself: the client talks to this server.
        result["_meta"] = {**result.get("_meta", {}), **self._stamp}
        fresh = FRESH_MS.get(method)
        if fresh is not None and result["resultType"] == COMPLETE:
            result["ttlMs"] = fresh
            result["cacheScope"] = "private"
        return result

    def initialization(self, version: str) -> Message:
        """Return the result of `initialize` for a client that uses this revision."""
        return {"protocolVersion": version, **self.introduction(), "serverInfo": dict(self._info)}

    def discovery(self) -> Message:
        """Return the result of `server/discover`."""
        return self.seal("server/discover", {"supportedVersions": list(MODERN_VERSIONS), **self.introduction()})

    def introduction(self) -> dict[str, Any]:
        """Return capabilities, and instructions where there are any."""
        told = self._instructions()
        return {"capabilities": self._capabilities(), **({} if told is None else {"instructions": told})}
