"""Writes replies, tools, resources and prompts as MCP JSON.

Replies, tools, resources and prompts go out as plain mappings, so that a key nobody here has heard of is not lost
in a typed model on the way. Only what a client would choke on is changed: a content block of a kind the protocol
does not know, and for clients of the earlier era what that era could not say. Nothing is sent from here.

What a result carries besides its content, and what the server says of itself.

Every result of 2026-07-28 says its kind, who answered, and for how long a list may be kept. Capabilities and
instructions are written as they are at the moment.

Told from its methods, since each of these Protocols is optional, and from what it says of itself where it does: a
gateway has methods for what its servers may not have. What it does not offer, the server does not claim, because
clients pay for claims: some add tools of their own for resources, in every request.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast
from urllib.parse import quote

from ullage.gateway import definition
from ullage.tool import (
    Block,
    CompletionSource,
    Contents,
    Json,
    JsonObject,
    Needs,
    PromptMessages,
    PromptSource,
    Reply,
    ResourceSource,
    Subscribed,
    Tool,
    ToolSource,
    Watched,
    text_block,
)

from ..jsonrpc import MODERN_VERSIONS, SERVER_INFO_KEY, Message

__all__ = [
    "COMPLETE",
    "FRESH_MS",
    "Envelope",
    "LogLevelled",
    "Offers",
    "block_to_wire",
    "contents_to_wire",
    "needs_to_wire",
    "offers_of",
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


class LogLevelled(Protocol):
    """A source whose log messages can be asked to be graver."""

    async def set_log_level(self, level: str) -> None: ...


class Capable(Protocol):
    """A source that knows what it can do for the moment."""

    @property
    def capabilities(self) -> JsonObject | None:
        """As the protocol writes them; None where that is not known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """The source, once for each thing it offers; None where it does not."""

    resources: ResourceSource | None = None
    prompts: PromptSource | None = None
    completion: CompletionSource | None = None
    subscribed: Subscribed | None = None
    watched: Watched | None = None
    log: LogLevelled | None = None
    capable: Capable | None = None

    def capabilities(self) -> dict[str, Json]:
        """As the protocol writes them, true of this source as far as it is known now."""
        can = None if self.capable is None else self.capable.capabilities
        changed = self.watched is not None
        found: dict[str, Json] = {"tools": {"listChanged": changed}}
        if self.resources is not None and _may(can, "resources"):
            subscribe = changed and self.subscribed is not None and _may_subscribe(can)
            found["resources"] = {"subscribe": subscribe, "listChanged": changed}
        if self.prompts is not None and _may(can, "prompts"):
            found["prompts"] = {"listChanged": changed}
        if self.completion is not None and _may(can, "completions"):
            found["completions"] = {}
        if self.log is not None and _may(can, "logging"):
            found["logging"] = {}
        return found


def _may(can: JsonObject | None, ability: str) -> bool:
    return can is None or ability in can


def _may_subscribe(can: JsonObject | None) -> bool:
    resources = None if can is None else can.get("resources")
    return not isinstance(resources, dict) or resources.get("subscribe") is True


def offers_of(source: ToolSource) -> Offers:
    found = cast("Any", source)
    return Offers(
        resources=found if _has(source, "resources", "templates", "read") else None,
        prompts=found if _has(source, "prompts", "prompt") else None,
        completion=found if _has(source, "complete") else None,
        subscribed=found if _has(source, "subscribe", "unsubscribe") else None,
        watched=found if _has(source, "watch") else None,
        log=found if _has(source, "set_log_level") else None,
        capable=found if hasattr(source, "capabilities") else None,
    )


def _has(source: object, *methods: str) -> bool:
    return all(callable(getattr(source, method, None)) for method in methods)


FRESH_MS: Mapping[str, int] = {
    "tools/list": 0,
    "resources/list": 0,
    "resources/templates/list": 0,
    "prompts/list": 0,
    "resources/read": 0,
    "server/discover": 60_000,
}
"""For how long a client may keep an answer, each for itself alone: lists differ by who asks. A list may change at any
moment with the servers behind, and a client that does not listen for changes would not see it; a repeated list is
answered from memory."""


class Envelope:
    """The identity of one server, and its marks on results."""

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
        # Over what a server behind us said of itself: it is we who are spoken to.
        result["_meta"] = {**result.get("_meta", {}), **self._stamp}
        fresh = FRESH_MS.get(method)
        if fresh is not None and result["resultType"] == COMPLETE:
            result["ttlMs"] = fresh
            result["cacheScope"] = "private"
        return result

    def initialization(self, version: str) -> Message:
        """The result of `initialize` for a client that is spoken to in this revision."""
        return {"protocolVersion": version, **self.introduction(), "serverInfo": dict(self._info)}

    def discovery(self) -> Message:
        """The result of `server/discover`."""
        return self.seal("server/discover", {"supportedVersions": list(MODERN_VERSIONS), **self.introduction()})

    def introduction(self) -> dict[str, Any]:
        """Capabilities, and instructions where there are any."""
        told = self._instructions()
        return {"capabilities": self._capabilities(), **({} if told is None else {"instructions": told})}
