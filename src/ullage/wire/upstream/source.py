"""What is one live connection to one MCP server?

A source of tools, resources and prompts that speaks whichever era the server does and reads its answers raw. It lives
as long as the connection: opening it, starting it again, sharing it and deciding when to give it up are for others.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, cast

import anyio.to_thread

from ullage.errors import ProtocolError
from ullage.gateway import Introduction, Server
from ullage.tool import (
    Asked,
    Call,
    Complete,
    Contents,
    Json,
    JsonObject,
    Listener,
    Listing,
    PromptMessages,
    PromptRequest,
    Read,
    Reply,
    Tool,
)

from ..jsonrpc import METHOD_NOT_FOUND, Message
from ..protocol import HEADER_MISMATCH
from .era import Agreement
from .listen import Listening, kinds_announced
from .raw import listing_of, read_completion, read_contents, read_items, read_prompt, read_reply, read_tools
from .routing import Routing
from .rpc import Channel, Peer
from .waiting import Answer

__all__ = ["Connection", "Upstream"]

_NOBODY = Asked()
_PAGES = 1000
_ITEMS = 100_000
_TOOLS = 20_000
"""Tools that are taken of one server."""
_BLOCKS = 500
"""Content blocks of a reply that is read at once."""
_NOTES = 100


class Connection(Channel, Protocol):
    """What a pipe and a remote connection both are."""

    @property
    def process_id(self) -> int | None: ...

    def stderr_tail(self) -> str: ...

    def last_words(self) -> str: ...

    def printed(self) -> str: ...

    def notes(self) -> tuple[str, ...]: ...

    def refused(self) -> str | None:
        """What our requests were refused with below the protocol."""
        ...


class Upstream:
    """An open connection."""

    def __init__(
        self, server: Server, peer: Peer, connection: Connection, agreement: Agreement, routing: Routing
    ) -> None:
        self._server = server
        self._peer = peer
        self._connection = connection
        self._agreement = agreement
        self._routing = routing
        self._notes: dict[str, None] = {}
        self._log_level: str | None = None
        self._parameter_headers: dict[str, dict[tuple[str, ...], str]] | None = None
        """Which arguments a tool wants in HTTP's headers too; None before the tools were listed."""
        self._listening = Listening(
            listen=self._listen,
            announce=routing.announce,
            note=self._note,
            kinds=kinds_announced(agreement.capabilities) if agreement.modern else (),
        )
        routing.acknowledged = self._listening.acknowledged
        routing.roots.expected = self._is_local and not agreement.modern
        routing.roots.remind = lambda: peer.notify("notifications/roots/list_changed")
        self._listening.start()

    @property
    def introduction(self) -> Introduction:
        return self._agreement.introduction

    @property
    def capabilities(self) -> JsonObject:
        return self._agreement.capabilities

    @property
    def protocol_version(self) -> str:
        return self._agreement.version

    @property
    def process_id(self) -> int | None:
        return self._connection.process_id

    @property
    def notes(self) -> tuple[str, ...]:
        """What was odd about the server and could be lived with, for people."""
        return (*self._notes, *self._connection.notes())

    def stderr_tail(self) -> str:
        return self._connection.stderr_tail()

    async def ended(self) -> str:
        """Returns, with the reason, when the connection is gone."""
        return await self._peer.ended()

    async def close(self) -> None:
        """Stops listening for changes; the connection itself ends with its context."""
        await self._listening.close()

    def watch(self, listener: Listener) -> Callable[[], None]:
        return self._routing.watch(listener)

    async def tools(self) -> Listing:
        items = await self._list("tools/list", "tools")
        if len(items) > _TOOLS:
            self._note(f"lists {len(items):,} tools; the first {_TOOLS:,} are taken")
        # In a worker thread: a list may be long, and each definition large.
        tools = await anyio.to_thread.run_sync(read_tools, items[:_TOOLS], self._note)
        if self._agreement.modern and self._server.transport == "http":
            tools = self._with_headers(tools)
        return await anyio.to_thread.run_sync(listing_of, tools)

    async def call(self, call: Call) -> Reply:
        params: Message = {"name": call.tool, "arguments": dict(call.arguments)}
        try:
            result = await self._ask("tools/call", params, call)
        except ProtocolError as error:
            if error.number != HEADER_MISMATCH or self._parameter_headers is not None or self._is_local:
                raise
            # Refused before it ran: the tool wants arguments in headers, and its definition says which.
            await self.tools()
            result = await self._ask("tools/call", params, call)
        content = result.get("content")
        if isinstance(content, list) and len(cast("list[object]", content)) > _BLOCKS:
            return await anyio.to_thread.run_sync(read_reply, result)
        return read_reply(result)

    async def resources(self) -> tuple[JsonObject, ...]:
        return await self._items(await self._declared("resources", "resources/list", "resources"), "uri")

    async def templates(self) -> tuple[JsonObject, ...]:
        listed = await self._declared("resources", "resources/templates/list", "resourceTemplates")
        return await self._items(listed, "uriTemplate")

    async def read(self, read: Read) -> Contents:
        return read_contents(await self._ask("resources/read", {"uri": read.uri}, read))

    async def prompts(self) -> tuple[JsonObject, ...]:
        return await self._items(await self._declared("prompts", "prompts/list", "prompts"), "name")

    async def prompt(self, request: PromptRequest) -> PromptMessages:
        params: Message = {"name": request.name, "arguments": dict(request.arguments)}
        return read_prompt(await self._ask("prompts/get", params, request))

    async def complete(self, request: Complete) -> JsonObject:
        params: Message = {"ref": dict(request.reference), "argument": dict(request.argument)}
        if request.context:
            params["context"] = dict(request.context)
        return read_completion(await self._ask("completion/complete", params, request))

    async def subscribe(self, uri: str) -> None:
        if self._agreement.modern:
            await self._listening.follow(uri)
        else:
            await self._ask("resources/subscribe", {"uri": uri})

    async def unsubscribe(self, uri: str) -> None:
        if self._agreement.modern:
            await self._listening.leave(uri)
        else:
            await self._ask("resources/unsubscribe", {"uri": uri})

    async def set_log_level(self, level: str) -> None:
        """At once where there is a session to set it for, else with every later request."""
        self._log_level = level
        if not self._agreement.modern and "logging" in self._agreement.capabilities:
            await self._ask("logging/setLevel", {"level": level})

    async def _ask(self, method: str, params: Message, asked: Asked | None = None) -> Answer:
        if asked is not None and self._agreement.modern:
            params = {**params, **_resumed(asked)}
        params["_meta"] = self._agreement.meta(asked or _NOBODY, self._log_level)
        if asked is not None and self._routing.roots.is_open():
            await self._routing.roots.settle(asked)
        return await self._peer.request(
            method,
            params,
            silence=self._server.start_timeout if asked is None else self._server.call_timeout,
            asked=asked,
            progress=asked.progress if isinstance(asked, Call) else None,
            headers=self._headers(method, params),
        )

    async def _listen(self, params: Message, *, number: str, silence: float) -> Answer:
        method = "subscriptions/listen"
        params["_meta"] = self._agreement.meta(_NOBODY, None)
        headers = self._headers(method, params)
        return await self._peer.request(method, params, silence=silence, headers=headers, number=number)

    @property
    def _is_local(self) -> bool:
        return self._server.transport == "stdio"

    def _headers(self, method: str, params: Message) -> Mapping[str, str] | None:
        if self._is_local:
            return None
        headers = self._agreement.headers(method, params)
        wanted = (self._parameter_headers or {}).get(params.get("name", "")) if method == "tools/call" else None
        if not wanted:
            return headers
        from mcp.shared.inbound import mcp_param_headers  # the SDK has been loaded for HTTP already

        return headers | mcp_param_headers(wanted, params["arguments"])

    def _with_headers(self, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        """The tools whose wishes for headers can be met, as this era demands; the wishes are kept for their calls."""
        from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map

        kept: list[Tool] = []
        wishes: dict[str, dict[tuple[str, ...], str]] = {}
        for tool in tools:
            wrong = find_invalid_x_mcp_header(tool.input_schema)
            if wrong is None:
                kept.append(tool)
                wishes[tool.name] = x_mcp_header_map(tool.input_schema)
            else:
                self._note(f"lists the tool `{tool.name[:80]}` with headers that cannot be meant; it is left out")
        self._parameter_headers = wishes
        return tuple(kept)

    async def _items(self, listed: list[Json], key: str) -> tuple[JsonObject, ...]:
        # In a worker thread, as for tools.
        return await anyio.to_thread.run_sync(read_items, listed, key, self._note)

    async def _declared(self, capability: str, method: str, key: str) -> list[Json]:
        """A list that the server says it has; others are not asked for, as some servers never answer then."""
        return await self._list(method, key) if capability in self._agreement.capabilities else []

    async def _list(self, method: str, key: str) -> list[Json]:
        """All pages of a list; empty where the server does not know the method."""
        items: list[Json] = []
        seen: set[str] = set()
        cursor: Json = None
        while len(seen) < _PAGES and len(items) < _ITEMS:
            result = await self._page(method, cursor)
            page = result.get(key, [])
            items.extend(cast("list[Json]", page) if isinstance(page, list) else [])
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str):
                return items
            if cursor in seen:
                break
            seen.add(cursor)
        self._note(f"has no end to its `{method}`; the first {len(items)} are taken")
        return items

    async def _page(self, method: str, cursor: Json) -> Answer:
        try:
            return await self._ask(method, {} if cursor is None else {"cursor": cursor})
        except ProtocolError as error:
            if error.number != METHOD_NOT_FOUND:
                raise
            return {}

    def _note(self, text: str) -> None:
        if len(self._notes) < _NOTES:
            self._notes[text] = None


def _resumed(asked: Asked) -> Message:
    """What goes along with a request that is asked again, now that its needs are met."""
    answers: Message = {"inputResponses": dict(asked.answers)} if asked.answers else {}
    return answers | ({} if asked.state is None else {"requestState": asked.state})
