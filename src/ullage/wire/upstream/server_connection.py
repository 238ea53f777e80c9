"""A connection to an MCP server as a source of tools, resources and prompts, in either protocol era.

The source uses the era that the server supports and reads its answers raw. It lives as long as the connection; opening,
restarting and sharing it, and deciding when to give it up, are done elsewhere.

There are two eras: the stateless one of 2026-07-28, found by `server/discover`, and the handshake revisions before it.
If the server hesitates, both are requested and the first good answer decides, so that a server that is slow to start is
not mistaken for one that does not know the request.

Changes are announced by the request `subscriptions/listen`, which is answered only when the server stops announcing. It
is kept open, repeated when it ends, and replaced when other resources are to be followed. A failure of it is a note,
never an error.
"""

import asyncio
import math
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast

import anyio
import anyio.to_thread

from ullage import __version__
from ullage.errors import ProtocolError, SourceFailed, UllageError, Unavailable
from ullage.gateway import Server
from ullage.tool import (
    Asked,
    Call,
    Change,
    ClientDeclaration,
    Complete,
    Contents,
    Era,
    Introduction,
    Json,
    JsonObject,
    Listener,
    Listing,
    PromptMessages,
    PromptRequest,
    Read,
    Reply,
    Tool,
    ToolSource,
)
from ullage.tracing import child_span, is_recording, trace_fields

from ..jsonrpc import (
    CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    CONNECTION_CLOSED,
    HANDSHAKE_VERSIONS,
    HEADER_MISMATCH,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    LOG_LEVEL_KEY,
    METHOD_HEADER,
    METHOD_NOT_FOUND,
    MODERN_VERSIONS,
    NAME_HEADER,
    RESERVED_PREFIX,
    SERVER_INFO_KEY,
    SUBSCRIPTION_KEY,
    VERSION_HEADER,
    VERSION_KEY,
    Message,
)
from .parse_results import (
    as_object,
    as_text,
    capabilities_of,
    introduction_of,
    listing_of,
    read_completion,
    read_contents,
    read_items,
    read_prompt,
    read_reply,
    read_tools,
)
from .rpc_peer import Answer, Channel, Peer, Routing

__all__ = [
    "HESITATION",
    "Agreement",
    "Connection",
    "Listen",
    "Listening",
    "Upstream",
    "agree",
    "era_of",
    "kinds_announced",
]

HESITATION = 3.0
"""Seconds after which a server that has not answered the first request gets the other one as well."""
_NAME_BEARING = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""By method, the param that is repeated in a header."""
_INFO: Message = {"name": "ullage", "version": __version__}
_ABILITIES: Message = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": True}}
"""Abilities declared where no client is known, or several share a connection; what a client then lacks is refused."""
_RELAYED = ("elicitation", "sampling", "roots", "extensions", "experimental")
"""Abilities of a client that a server can use through Ullage."""


def era_of(version: str) -> Era:
    """Return `stateless` for the revisions found by `server/discover`, `handshake` for those before them."""
    return "stateless" if version in MODERN_VERSIONS else "handshake"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The protocol revision and capabilities agreed with a server."""

    version: str
    introduction: Introduction
    capabilities: JsonObject
    client: ClientDeclaration | None = None
    """The client for which the connection was opened; None for no particular one."""

    @property
    def modern(self) -> bool:
        return self.version in MODERN_VERSIONS

    def meta(self, asked: Asked, log_level: str | None) -> Message:
        """Return the `_meta` of a request: the client's own entries, and what this era requires in each request."""
        meta: Message = {
            key: value
            for key, value in asked.meta.items()
            if key != "progressToken" and not key.startswith(RESERVED_PREFIX)
        }
        if not self.modern:
            return meta
        level = asked.meta.get(LOG_LEVEL_KEY) or log_level
        if level is not None:
            meta[LOG_LEVEL_KEY] = level
        info = asked.client_info or (None if self.client is None else self.client.info)
        return meta | _envelope(self.version, asked.capabilities, info)

    def headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """Return the HTTP headers that describe a request."""
        headers = {VERSION_HEADER: self.version}
        if self.modern:
            headers[METHOD_HEADER] = method
            name = params.get(_NAME_BEARING.get(method, ""))
            if isinstance(name, str):
                from mcp.shared.inbound import encode_header_value  # the SDK has been loaded for HTTP already

                headers[NAME_HEADER] = encode_header_value(name)
        return headers


def _envelope(version: str, capabilities: JsonObject, info: JsonObject | None = None) -> Message:
    return {
        VERSION_KEY: version,
        CLIENT_INFO_KEY: dict(info or _INFO),
        CAPABILITIES_KEY: dict(capabilities),
    }


async def agree(
    peer: Peer,
    *,
    patience: float,
    hesitation: float | None,
    era: Era | None = None,
    client: ClientDeclaration | None = None,
) -> Agreement:
    """Agree with a server on a protocol revision.

    Args:
        peer: The connection.
        patience: Seconds in which the server must answer.
        hesitation: Seconds after which a server that has not answered the first request gets the other one as well;
            None to send the handshake at once and never ask for the newer era.
        era: The era to use if the server supports it; the newer one if None.
        client: The client whose name and abilities are declared to the server; Ullage itself if None.

    Raises:
        SourceFailed: The server supports no revision known here.
    """
    asking_both = _Asking(peer, patience, client)
    try:
        if hesitation is not None and era == "handshake":
            return await asking_both.greeted_or_discovered()
        if hesitation is not None:
            found = await asking_both.discovered(hesitation)
            if found is not None:
                return found
        return await asking_both.settled()
    finally:
        asking_both.stop()


class _Asking:
    """Sends `server/discover` and `initialize`, and takes the first good answer."""

    def __init__(self, peer: Peer, patience: float, client: ClientDeclaration | None) -> None:
        self._peer = peer
        self._patience = patience
        self._client = client
        if client is None:
            self._abilities = _ABILITIES
        else:
            self._abilities = {
                ability: client.capabilities[ability] for ability in _RELAYED if ability in client.capabilities
            }
        self._info: Message = dict(_INFO if client is None or not client.info else client.info)
        self._discovering: asyncio.Task[Answer] | None = None
        self._greeting: asyncio.Task[Answer] | None = None

    async def discovered(self, hesitation: float) -> Agreement | None:
        """Return the result of discovery; None if the server does not know it, or has not answered yet."""
        self._discovering = self._ask(
            "server/discover",
            {"_meta": _envelope(LATEST_MODERN_VERSION, self._abilities, self._info)},
            {VERSION_HEADER: LATEST_MODERN_VERSION, METHOD_HEADER: "server/discover"},
        )
        await asyncio.wait({self._discovering}, timeout=hesitation)
        return self._discovery() if self._discovering.done() else None

    async def greeted_or_discovered(self) -> Agreement:
        """Return the result of the handshake; if the server refuses it, that of discovery."""
        try:
            return await self.settled()
        except ProtocolError as refused:
            found = await self.discovered(self._patience)
            if found is None:
                raise refused from None
            return found

    async def settled(self) -> Agreement:
        """Send the handshake, and return its result or that of a late discovery, whichever succeeds first."""
        offer: Message = {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
            "capabilities": self._abilities,
            "clientInfo": self._info,
        }
        self._greeting = self._ask("initialize", offer, None)
        while True:
            open_ones = [one for one in (self._discovering, self._greeting) if one is not None and not one.done()]
            if open_ones:
                await asyncio.wait(open_ones, return_when=asyncio.FIRST_COMPLETED)
            found = self._discovery()
            if found is not None:
                return found
            if self._greeting.done() and (
                self._greeting.exception() is None
                or not (self._discovering is not None and not self._discovering.done())
            ):
                return self._greeted(self._greeting.result())

    def _ask(self, method: str, params: Message, headers: Mapping[str, str] | None) -> asyncio.Task[Answer]:
        # The protocol forbids cancelling these two requests.
        asking = self._peer.request(method, params, silence=self._patience, headers=headers, cancellable=False)
        return asyncio.get_running_loop().create_task(asking)

    def _discovery(self) -> Agreement | None:
        if self._discovering is None or not self._discovering.done():
            return None
        error = self._discovering.exception()
        if error is not None:
            if not isinstance(error, Unavailable):
                raise error
            return None
        result = self._discovering.result()
        spoken = result.get("supportedVersions")
        common = [one for one in MODERN_VERSIONS if isinstance(spoken, list) and one in spoken]
        if not common:
            return None
        info = as_object(result.get("_meta")).get(SERVER_INFO_KEY)
        return self._agreement(common[-1], info, result)

    def _greeted(self, result: Answer) -> Agreement:
        version = as_text(result.get("protocolVersion")) or ""
        if version not in HANDSHAKE_VERSIONS:
            known = ", ".join((*HANDSHAKE_VERSIONS, *MODERN_VERSIONS))
            raise SourceFailed(
                f"server `{self._peer.server}` speaks revision `{version[:40]}` of the protocol, which is unknown here",
                suggestion=f"known are {known}",
            )
        agreement = self._agreement(version, result.get("serverInfo"), result)
        self._peer.notify("notifications/initialized", headers=agreement.headers("notifications/initialized", {}))
        return agreement

    def _agreement(self, version: str, info: Json, result: Answer) -> Agreement:
        return Agreement(
            version=version,
            introduction=introduction_of(info, result.get("instructions"), otherwise=self._peer.server),
            capabilities=capabilities_of(result.get("capabilities")),
            client=self._client,
        )

    def stop(self) -> None:
        for one in (self._discovering, self._greeting):
            if one is not None and not one.cancel() and not one.cancelled():
                # Retrieve the exception, so that the event loop does not report it as unhandled.
                one.exception()


Kind = Literal["tools", "resources", "prompts"]
_KINDS: tuple[Kind, ...] = ("tools", "resources", "prompts")
_ACKNOWLEDGING = 5.0
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0


class Listen(Protocol):
    def __call__(self, params: Message, *, number: str, silence: float) -> Awaitable[Answer]: ...


def kinds_announced(capabilities: JsonObject) -> tuple[Kind, ...]:
    """Return the kinds of changes that a server declares to announce."""
    return tuple(kind for kind in _KINDS if as_object(capabilities.get(kind)).get("listChanged") is True)


@dataclass(slots=True, eq=False, kw_only=True)
class Listening:
    """The open request for announcements of changes."""

    listen: Listen
    announce: Callable[[Change], None]
    note: Callable[[str], None]
    kinds: tuple[Kind, ...]
    _uris: dict[str, None] = field(default_factory=dict[str, None])
    _count: int = 0
    _holding: asyncio.Task[None] | None = None
    _expected: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])

    def start(self) -> None:
        if self.kinds:
            self._holding = asyncio.get_running_loop().create_task(self._hold(self._number()))

    async def follow(self, uri: str) -> None:
        self._uris[uri] = None
        await self._replace()

    async def leave(self, uri: str) -> None:
        self._uris.pop(uri, None)
        await self._replace()

    def acknowledged(self, params: Message) -> None:
        number = as_object(params.get("_meta")).get(SUBSCRIPTION_KEY)
        if isinstance(number, str) and number in self._expected:
            self._expected[number].set()

    async def close(self) -> None:
        if self._holding is not None:
            self._holding.cancel()
            await asyncio.wait({self._holding}, timeout=1.0)

    async def _replace(self) -> None:
        """Send the new request before ending the old one, so that no change is missed in between."""
        old, number = self._holding, self._number()
        self._holding = asyncio.get_running_loop().create_task(self._hold(number))
        begun = asyncio.get_running_loop().create_task(self._expected[number].wait())
        await asyncio.wait({begun, self._holding}, timeout=_ACKNOWLEDGING, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        if old is not None:
            old.cancel()

    def _number(self) -> str:
        self._count += 1
        number = f"listen-{self._count}"
        self._expected = {number: asyncio.Event()}
        return number

    async def _hold(self, number: str) -> None:
        pause = _FIRST_PAUSE
        while self.kinds or self._uris:
            try:
                wanted: Message = {f"{kind}ListChanged": True for kind in self.kinds}
                if self._uris:
                    wanted["resourceSubscriptions"] = list(self._uris)
                await self.listen({"notifications": wanted}, number=number, silence=math.inf)
            except ProtocolError as error:
                if error.number != CONNECTION_CLOSED:
                    self.note(f"does not announce changes: {error.message[:200]}")
                    return
            except Unavailable:
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            number = self._number()
            # Changes since the last request ended may have been missed, so every kind is announced.
            for kind in self.kinds:
                self.announce(Change(kind))


_NOBODY = Asked()
_PAGES = 1000
_ITEMS = 100_000
_TOOLS = 20_000
"""Maximum tools read from one server."""
_BLOCKS = 500
"""Content blocks of a reply up to which it is parsed on the event loop."""
_NOTES = 100
_UNDECLARED = 1.0
"""Seconds for a list that the server has not declared."""


class Connection(Channel, Protocol):
    """The common interface of a pipe and a remote connection."""

    @property
    def process_id(self) -> int | None: ...

    def stderr_tail(self) -> str: ...

    def last_words(self) -> str: ...

    def printed(self) -> str: ...

    def notes(self) -> tuple[str, ...]: ...

    def refused(self) -> str | None:
        """The reason for which requests were refused below the protocol level."""
        ...


class ServerConnection(ToolSource):
    """Base class of an open connection to a server. A request raises `Unsent` where it never reached the server."""

    __slots__ = ()

    @abstractmethod
    def introduction(self) -> Introduction: ...

    @property
    @abstractmethod
    def capabilities(self) -> JsonObject: ...

    @property
    @abstractmethod
    def protocol_version(self) -> str: ...

    @property
    @abstractmethod
    def process_id(self) -> int | None: ...

    @property
    @abstractmethod
    def notes(self) -> tuple[str, ...]: ...

    @abstractmethod
    def stderr_tail(self) -> str: ...

    @abstractmethod
    async def ended(self) -> str:
        """Wait until the connection is lost, and return the reason; may be cancelled and awaited again."""

    @abstractmethod
    def tell_roots_changed(self) -> None:
        """Notify the server that its client works in other folders."""


class Upstream(ServerConnection):
    """An open connection to a server."""

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
        self._unanswered: set[str] = set()
        """Lists that the server neither declared nor returned when asked."""
        self._parameter_headers: dict[str, dict[tuple[str, ...], str]] | None = None
        """By tool, the arguments that are repeated in HTTP headers; None before the tools were listed."""
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
        """Peculiarities of the server that did no harm, for the user."""
        return (*self._notes, *self._connection.notes())

    def stderr_tail(self) -> str:
        return self._connection.stderr_tail()

    async def ended(self) -> str:
        """Wait until the connection is lost; return the reason."""
        return await self._peer.ended()

    async def close(self) -> None:
        """Stop listening for changes; the connection itself ends with its context."""
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
            tools = tuple(kept)
        return await anyio.to_thread.run_sync(listing_of, tools)

    async def call(self, call: Call) -> Reply:
        params: Message = {"name": call.tool, "arguments": dict(call.arguments)}
        try:
            result = await self._ask("tools/call", params, call)
        except ProtocolError as error:
            if error.number != HEADER_MISMATCH or self._parameter_headers is not None or self._is_local:
                raise
            # Refused before it ran: the tool requires arguments in headers, and its definition says which.
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
        params: Message = {"name": request.name}
        if request.arguments:
            params["arguments"] = dict(request.arguments)
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
        """Set the log level: at once where there is a session, else with every later request."""
        self._log_level = level
        if not self._agreement.modern and "logging" in self._agreement.capabilities:
            await self._ask("logging/setLevel", {"level": level})

    def tell_roots_changed(self) -> None:
        """Notify the server that its client works in other folders; the later era has no message for it."""
        if not self._agreement.modern:
            method = "notifications/roots/list_changed"
            self._peer.notify(method, headers=self._headers(method, {}))

    async def _ask(self, method: str, params: Message, asked: Asked | None = None) -> Answer:
        if asked is not None and self._agreement.modern:
            # Sent along with a request that is repeated with its needs met.
            answers: Message = {"inputResponses": dict(asked.answers)} if asked.answers else {}
            resumed = answers | ({} if asked.state is None else {"requestState": asked.state})
            params = {**params, **resumed}
        params["_meta"] = self._agreement.meta(asked or _NOBODY, self._log_level)
        if asked is None:
            headers = self._headers(method, params)
            return await self._peer.request(method, params, silence=self._server.start_timeout, headers=headers)
        self._routing.note(asked)
        if self._routing.roots.is_open():
            await self._routing.roots.settle(asked)
        if not is_recording():
            return await self._send(method, params, asked)
        target: str | None = params.get("name")
        is_call = method == "tools/call"
        call_span = child_span(
            method if target is None else f"{method} {target}",
            mcp__method__name=method,
            mcp__protocol__version=self._agreement.version,
            gen_ai__operation__name="execute_tool" if is_call else None,
            gen_ai__tool__name=target if is_call else None,
            gen_ai__prompt__name=None if is_call else target,
            network__transport="pipe" if self._is_local else "tcp",
            network__protocol__name=None if self._is_local else "http",
            ullage__server__name=self._server.name,
        )
        with call_span as span:
            result = await self._send(method, params, asked)
            if span is not None and result.get("isError") is True:
                span.error = "tool_error"
            return result

    async def _send(self, method: str, params: Message, asked: Asked) -> Answer:
        # Only here: work in the background may have begun within a request that has long been answered.
        traced = trace_fields()
        headers = self._headers(method, params)
        params["_meta"] |= traced
        return await self._peer.request(
            method,
            params,
            silence=self._server.call_timeout,
            asked=asked,
            progress=asked.progress if isinstance(asked, Call) else None,
            headers=None if headers is None else {**headers, **traced},
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

    async def _items(self, listed: list[Json], key: str) -> tuple[JsonObject, ...]:
        # In a worker thread, as for tools.
        return await anyio.to_thread.run_sync(read_items, listed, key, self._note)

    async def _declared(self, capability: str, method: str, key: str) -> list[Json]:
        """Return a list. One that the server has not declared gets a short time limit, as some servers never answer
        then."""
        if capability in self._agreement.capabilities:
            return await self._list(method, key)
        if self._is_local or method in self._unanswered:
            return []
        # Some servers have templates or prompts and declare nothing. A process may exit at an unknown request; a server
        # that is reached by HTTP does not, and may take a moment to return nothing.
        try:
            with anyio.fail_after(_UNDECLARED):
                found = await self._list(method, key)
        except (TimeoutError, UllageError):
            found = list[Json]()
        if not found:
            self._unanswered.add(method)
        return found

    async def _list(self, method: str, key: str) -> list[Json]:
        """Return all pages of a list; empty where the server does not know the method."""
        items: list[Json] = []
        seen: set[str] = set()
        cursor: Json = None
        while len(seen) < _PAGES and len(items) < _ITEMS:
            try:
                result = await self._ask(method, {} if cursor is None else {"cursor": cursor})
            except ProtocolError as error:
                if error.number != METHOD_NOT_FOUND:
                    raise
                result = {}
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

    def _note(self, text: str) -> None:
        if len(self._notes) < _NOTES:
            self._notes[text] = None
