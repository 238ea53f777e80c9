"""The values that pass between packages: tools, calls, replies and their sources.

Everything that offers tools is a `ToolSource`; everything that adds something wraps one. These values are all that
passes between rooms. Content blocks, definitions of resources and prompts, and metadata stay the JSON they were, so
that what nobody here has heard of still passes whole. MCP's own types are the wire's affair, not this file's.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

__all__ = [
    "ANONYMOUS",
    "Ask",
    "Asked",
    "Block",
    "Call",
    "Caller",
    "Change",
    "ClientDeclaration",
    "Closing",
    "Complete",
    "CompletionSource",
    "Contents",
    "Era",
    "Json",
    "JsonObject",
    "Listener",
    "Listing",
    "Needs",
    "Origin",
    "Progress",
    "PromptMessages",
    "PromptRequest",
    "PromptSource",
    "Read",
    "Reply",
    "ResourceSource",
    "Structured",
    "Subscribed",
    "Tell",
    "Tool",
    "ToolSource",
    "Watched",
    "text_block",
]

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
JsonObject = Mapping[str, Json]
Block = JsonObject
"""One block of content with its `type`, as it stands on the wire: text, image, resource, or a kind not yet invented."""


def text_block(text: str) -> Block:
    return {"type": "text", "text": text}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool as it is offered."""

    name: str
    input_schema: JsonObject
    description: str | None = None
    title: str | None = None
    output_schema: JsonObject | None = None
    annotations: JsonObject = field(default_factory=dict[str, Json])
    """Hints such as `readOnlyHint`; what a hint does not say is unknown, not false."""
    aliases: tuple[str, ...] = ()
    """Other spellings accepted in calls; never listed."""
    extra: JsonObject = field(default_factory=dict[str, Json])
    """Every other key of the definition (`_meta`, `icons`, …), passed on untouched."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools of a source, in a stable order."""

    tools: tuple[Tool, ...]
    revision: str
    """Differs whenever any definition does; equal revisions mean equal listings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who is calling. Figures, caches and handles go by this and never by what a client says of itself."""

    principal: str
    """The bearer token's name, or the operating system's user over stdio."""
    session: str
    session_inferred: bool = False
    """True where the protocol has no session and one was made of principal, client and a pause."""
    client: str | None = None
    """What the user configured by a flag or the URL's path."""
    model: str | None = None
    """The model the user named for that client; None where nobody did."""


ANONYMOUS = Caller(principal="anonymous", session="none")

Era = Literal["handshake", "stateless"]
"""The protocol before 2026-07-28, with a handshake and sessions, or since then, without."""

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Told how far a call is: so much done, of so much where known, with a word where there is one."""

Ask = Callable[[str, JsonObject], Awaitable[JsonObject]]
"""Asks the client something in the middle of a request (`elicitation/create`, `sampling/createMessage`, `roots/list`):
method and params to result. Raises `ClientCannot` where the client has not that ability, `ProtocolError` where it
refuses."""

Tell = Callable[[str, JsonObject], Awaitable[None]]
"""Passes a notification that belongs to a request (`notifications/message`) on to its client: method and params."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDeclaration:
    """What a client says of itself: in its handshake, or with each request."""

    info: JsonObject = field(default_factory=dict[str, Json])
    """Its name and version, as the protocol writes them."""
    capabilities: JsonObject = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What every request carries, whatever it asks for."""

    caller: Caller = ANONYMOUS
    meta: JsonObject = field(default_factory=dict[str, Json])
    """The request's `_meta`: trace context and whatever else the client sent along."""
    era: Era | None = None
    """The era of the protocol in which the client asks; None where nobody asks by the protocol."""
    deadline: float | None = None
    """On the event loop's clock (`anyio.current_time`); None for no limit."""
    answers: JsonObject = field(default_factory=dict[str, Json])
    """To the requests of an earlier reply's `needs`, by the same keys."""
    state: str | None = None
    """The `state` of those needs, handed back unopened."""
    capabilities: JsonObject = field(default_factory=dict[str, Json])
    """What the client says it can do, as the protocol writes it."""
    client_info: JsonObject = field(default_factory=dict[str, Json])
    """The client's name and version, as the protocol writes them; empty where it gave none."""
    ask: Ask | None = None
    """None where nobody is there to be asked; a source may still answer with `needs`."""
    tell: Tell | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Asked):
    """A tool to be run. To cancel it, cancel the task that awaits its reply."""

    tool: str
    arguments: JsonObject = field(default_factory=dict[str, Json])
    progress: Progress | None = None
    """None where the client did not ask to be told."""


@dataclass(frozen=True, slots=True)
class Structured:
    """A reply's structured content. Wrapped because JSON's null is a value and None means there is none."""

    value: Json


@dataclass(frozen=True, slots=True)
class Origin:
    """Which server's tool really answered, however it was called."""

    server: str
    tool: str


@dataclass(frozen=True, slots=True)
class Needs:
    """What must be asked of the user or the client before the call can go on."""

    requests: JsonObject
    """Key to request, as the protocol writes it (`elicitation/create`, …)."""
    state: str | None = None
    """Opaque to whoever carries it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came of a call. A reply with `needs` is not an answer yet."""

    content: tuple[Block, ...] = ()
    structured: Structured | None = None
    meta: JsonObject = field(default_factory=dict[str, Json])
    """For the client, never for the model."""
    is_error: bool = False
    origin: Origin | None = None
    """Stamped where sources are merged; None before."""
    needs: Needs | None = None
    extension: JsonObject | None = None
    """The whole result, where its `resultType` is that of an extension which client and server agreed on."""
    json_lists: tuple[str, ...] | None = None
    """For a text that is JSON and must stay JSON at every size: the keys of its lists, the one to shorten first being
    the first. None for any other reply, whose text may be written in a shorter form."""

    @classmethod
    def text(
        cls,
        text: str,
        *,
        meta: JsonObject | None = None,
        is_error: bool = False,
        json_lists: tuple[str, ...] | None = None,
    ) -> "Reply":
        return cls(content=(text_block(text),), meta=meta or {}, is_error=is_error, json_lists=json_lists)

    def changed(
        self,
        *,
        content: tuple[Block, ...] | None = None,
        meta: JsonObject | None = None,
        origin: Origin | None = None,
    ) -> "Reply":
        """A copy with other values for those given, in half the time of `dataclasses.replace`."""
        return Reply(
            content=self.content if content is None else content,
            structured=self.structured,
            meta=self.meta if meta is None else meta,
            is_error=self.is_error,
            origin=self.origin if origin is None else origin,
            needs=self.needs,
            extension=self.extension,
            json_lists=self.json_lists,
        )


class ToolSource(Protocol):
    """Anything that offers tools: a server, a database, a counter, a gateway of all of them."""

    async def tools(self) -> Listing: ...

    async def call(self, call: Call) -> Reply:
        """Runs a tool by its name or an alias; raises `UnknownTool` where there is none.

        A tool that ran and failed is a reply with `is_error`; a `UllageError` raised here becomes one at the wire.
        """
        ...


@dataclass(frozen=True, slots=True)
class Change:
    """Something a source offers is no longer what it was."""

    kind: Literal["tools", "resources", "prompts", "resource"]
    uri: str | None = None
    """The resource that changed, for kind `resource`."""
    is_announced: bool = field(default=False, compare=False)
    """Whether the server itself announced it: a client that is shown this server's list hears of it in any case."""


Listener = Callable[[Change], None]


class Watched(Protocol):
    """A source whose offerings may change while it is open."""

    def watch(self, listener: Listener) -> Callable[[], None]:
        """Tells `listener` of each change, on the event loop, until the returned function is called."""
        ...


class Closing(Protocol):
    """A source that holds something: a process, a connection, a file."""

    async def close(self) -> None:
        """Lets go of it; calling twice is harmless."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Asked):
    """A resource to be read."""

    uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a resource holds, or what is needed to read it."""

    contents: tuple[JsonObject, ...] = ()
    meta: JsonObject = field(default_factory=dict[str, Json])
    needs: Needs | None = None


class ResourceSource(Protocol):
    async def resources(self) -> tuple[JsonObject, ...]: ...

    async def templates(self) -> tuple[JsonObject, ...]: ...

    async def read(self, read: Read) -> Contents: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRequest(Asked):
    """A prompt to be filled in."""

    name: str
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMessages:
    messages: tuple[JsonObject, ...] = ()
    description: str | None = None
    meta: JsonObject = field(default_factory=dict[str, Json])
    needs: Needs | None = None


class PromptSource(Protocol):
    async def prompts(self) -> tuple[JsonObject, ...]: ...

    async def prompt(self, request: PromptRequest) -> PromptMessages: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete(Asked):
    """An argument of a prompt or of a resource template to be completed."""

    reference: JsonObject
    """`ref/prompt` with a name, or `ref/resource` with a URI template."""
    argument: JsonObject
    """Its `name` and the `value` typed so far."""
    context: JsonObject = field(default_factory=dict[str, Json])


class CompletionSource(Protocol):
    async def complete(self, request: Complete) -> JsonObject:
        """`values`, and where known `total` and `hasMore`."""
        ...


class Subscribed(Protocol):
    """A source that can be asked to say when one resource changes; it says so as a `Change` of kind `resource`."""

    async def subscribe(self, uri: str) -> None: ...

    async def unsubscribe(self, uri: str) -> None: ...
