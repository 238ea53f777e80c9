"""The values that pass between packages: tools, calls, replies, and the base class of their sources.

Everything that offers tools is a `ToolSource`, and every added behaviour is a `SourceWrapper` around one. Packages
exchange no other values. Content blocks, definitions of resources and prompts, and metadata stay plain JSON, so that
fields and kinds unknown to Ullage pass through unchanged. MCP's own types are used only in `wire`.

`is_larger` measures a JSON value up to a limit. It decides whether a value is processed at once, in a worker thread or
not at all: measuring a value of any size takes less time than processing it.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, cast

from ullage.errors import UnknownResource

__all__ = [
    "ANONYMOUS",
    "Ask",
    "Asked",
    "Block",
    "Call",
    "Caller",
    "Change",
    "ClientDeclaration",
    "Complete",
    "Contents",
    "Era",
    "Feature",
    "Introduction",
    "Json",
    "JsonObject",
    "Listener",
    "Listing",
    "Needs",
    "Origin",
    "Pause",
    "Progress",
    "PromptMessages",
    "PromptRequest",
    "Read",
    "Reply",
    "SourceWrapper",
    "Structured",
    "Tell",
    "Tool",
    "ToolSource",
    "is_larger",
    "text_block",
]

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
JsonObject = Mapping[str, Json]
Block = JsonObject
"""A content block as MCP sends it, with its `type`: text, image, resource, or a kind added to the protocol later."""


def text_block(text: str) -> Block:
    """Return a content block of type `text`."""
    return {"type": "text", "text": text}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """The definition of a tool.

    Example:
        >>> Tool(name="add", input_schema={"type": "object"}).description is None
        True
    """

    name: str
    input_schema: JsonObject
    description: str | None = None
    title: str | None = None
    output_schema: JsonObject | None = None
    annotations: JsonObject = field(default_factory=dict[str, Json])
    """Hints such as `readOnlyHint`; an absent hint is unknown, not false."""
    aliases: tuple[str, ...] = ()
    """Other spellings accepted in calls; never listed."""
    extra: JsonObject = field(default_factory=dict[str, Json])
    """All other keys of the definition (`_meta`, `icons`, …), passed on unchanged."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools of a source, in a stable order."""

    tools: tuple[Tool, ...]
    revision: str
    """Changes whenever any definition changes; equal revisions mean equal listings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The identity of a caller: the key of figures, caches and handles.

    It never contains what a client reports about itself.
    """

    principal: str
    """The bearer token's name, or the operating system user over stdio."""
    session: str
    session_inferred: bool = False
    """True where the protocol has no session and one was derived from principal, client and idle time."""
    client: str | None = None
    """The client's name, configured by a flag or the URL's path."""
    model: str | None = None
    """The model configured for that client; None if none is."""


ANONYMOUS = Caller(principal="anonymous", session="none")

Era = Literal["handshake", "stateless"]
"""`handshake`: the protocol before 2026-07-28, with a handshake and sessions. `stateless`: the protocol since then,
without."""

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Callback for the progress of a call: amount done, total if known, and a message if there is one."""

Ask = Callable[[str, JsonObject], Awaitable[JsonObject]]
"""Callback that sends a request to the client during a call (`elicitation/create`, `sampling/createMessage`,
`roots/list`): method and params to result. Raises `ClientCannot` if the client lacks that capability,
`ProtocolError` if it refuses."""

Tell = Callable[[str, JsonObject], Awaitable[None]]
"""Callback that sends the client a notification that belongs to a request (`notifications/message`): method and
params."""

Pause = Callable[[], Awaitable[None]]
"""Callback that ends the HTTP stream on which the client waits for an answer. The client comes back for the answer, as
it does where a server ends such a stream before it has answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDeclaration:
    """What a client declares about itself, in its handshake or with each request."""

    info: JsonObject = field(default_factory=dict[str, Json])
    """The client's name and version, in the protocol's format."""
    capabilities: JsonObject = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Fields that requests of every kind have."""

    caller: Caller = ANONYMOUS
    meta: JsonObject = field(default_factory=dict[str, Json])
    """The request's `_meta`: trace context and anything else the client sent."""
    era: Era | None = None
    """The era of the client's protocol; None for a request that did not arrive by the protocol."""
    deadline: float | None = None
    """Deadline on the event loop's clock (`anyio.current_time`); None for no limit."""
    answers: JsonObject = field(default_factory=dict[str, Json])
    """Answers to the requests in an earlier reply's `needs`, by the same keys."""
    state: str | None = None
    """The `state` of those `needs`, returned unchanged."""
    capabilities: JsonObject = field(default_factory=dict[str, Json])
    """The capabilities that the client declared, in the protocol's format."""
    client_info: JsonObject = field(default_factory=dict[str, Json])
    """The client's name and version, in the protocol's format; empty if it gave none."""
    ask: Ask | None = None
    """None if the client cannot be asked during the request; a source may still answer with `needs`."""
    tell: Tell | None = None
    pause: Pause | None = None
    """None if the request has no stream that can be resumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Asked):
    """A request to run a tool. To cancel it, cancel the task that awaits the reply."""

    tool: str
    arguments: JsonObject = field(default_factory=dict[str, Json])
    progress: Progress | None = None
    """None if the client did not ask for progress."""

    def changed(  # noqa: PLR0913 - the fields that wrappers replace
        self,
        *,
        tool: str | None = None,
        arguments: JsonObject | None = None,
        meta: JsonObject | None = None,
        progress: Progress | None = None,
        ask: Ask | None = None,
        tell: Tell | None = None,
    ) -> "Call":
        """Return a copy with the given fields replaced, in half the time of `dataclasses.replace`."""
        return Call(
            tool=self.tool if tool is None else tool,
            arguments=self.arguments if arguments is None else arguments,
            progress=self.progress if progress is None else progress,
            caller=self.caller,
            meta=self.meta if meta is None else meta,
            era=self.era,
            deadline=self.deadline,
            answers=self.answers,
            state=self.state,
            capabilities=self.capabilities,
            client_info=self.client_info,
            ask=self.ask if ask is None else ask,
            tell=self.tell if tell is None else tell,
            pause=self.pause,
        )


@dataclass(frozen=True, slots=True)
class Structured:
    """A reply's structured content. Wrapped because JSON null is a value, while None means no structured content."""

    value: Json
    text: str | None = field(default=None, compare=False)
    """The JSON text that the value was read from, where known; it then need not be written again to be examined."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The server and tool that answered, whatever name was called."""

    server: str
    tool: str


@dataclass(frozen=True, slots=True)
class Needs:
    """Input required from the user or the client before the call can continue."""

    requests: JsonObject
    """The requests by key, in the protocol's format (`elicitation/create`, …)."""
    state: str | None = None
    """Opaque; returned unchanged with the answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The result of a call. A reply with `needs` is not final: the call is repeated with the answers.

    Example:
        >>> Reply.text("done").content
        ({'type': 'text', 'text': 'done'},)
    """

    content: tuple[Block, ...] = ()
    structured: Structured | None = None
    meta: JsonObject = field(default_factory=dict[str, Json])
    """Metadata for the client, never for the model."""
    is_error: bool = False
    origin: Origin | None = None
    """Set where sources are merged; None before."""
    needs: Needs | None = None
    extension: JsonObject | None = None
    """The whole result, if its `resultType` belongs to an extension that client and server negotiated."""
    json_lists: tuple[str, ...] | None = None
    """For text that must remain valid JSON when shortened: the keys of its lists, in the order in which to shorten
    them. None for any other reply, whose text may be rewritten in a shorter form."""
    error_code: str | None = None
    """The code of an error of Ullage's own; None for a server's error."""

    @classmethod
    def text(
        cls,
        text: str,
        *,
        meta: JsonObject | None = None,
        is_error: bool = False,
        json_lists: tuple[str, ...] | None = None,
    ) -> "Reply":
        """Return a reply with one text block."""
        return cls(content=(text_block(text),), meta=meta or {}, is_error=is_error, json_lists=json_lists)

    def changed(
        self,
        *,
        content: tuple[Block, ...] | None = None,
        meta: JsonObject | None = None,
        origin: Origin | None = None,
    ) -> "Reply":
        """Return a copy with the given fields replaced, in half the time of `dataclasses.replace`."""
        return Reply(
            content=self.content if content is None else content,
            structured=self.structured,
            meta=self.meta if meta is None else meta,
            is_error=self.is_error,
            origin=self.origin if origin is None else origin,
            needs=self.needs,
            extension=self.extension,
            json_lists=self.json_lists,
            error_code=self.error_code,
        )


@dataclass(frozen=True, slots=True)
class Change:
    """A notice that something a source offers has changed."""

    kind: Literal["tools", "resources", "prompts", "resource"]
    uri: str | None = None
    """The URI of the changed resource, for kind `resource`."""
    is_announced: bool = field(default=False, compare=False)
    """Whether the server announced the change itself. A client that is shown this server's list is notified of such
    a change in any case."""


Listener = Callable[[Change], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Asked):
    """A request to read a resource."""

    uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The contents of a resource, or the input needed to read it."""

    contents: tuple[JsonObject, ...] = ()
    meta: JsonObject = field(default_factory=dict[str, Json])
    needs: Needs | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRequest(Asked):
    """A request for a prompt with its arguments filled in."""

    name: str
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMessages:
    """The messages of a prompt, or the input needed to build them."""

    messages: tuple[JsonObject, ...] = ()
    description: str | None = None
    meta: JsonObject = field(default_factory=dict[str, Json])
    needs: Needs | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete(Asked):
    """A request to complete an argument of a prompt or of a resource template."""

    reference: JsonObject
    """`ref/prompt` with a name, or `ref/resource` with a URI template."""
    argument: JsonObject
    """The argument's `name` and the `value` typed so far."""
    context: JsonObject = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """What a server reported about itself when a connection was opened. It affects no decision."""

    name: str
    version: str | None = None
    title: str | None = None
    instructions: str | None = None
    """The server's instructions for the model, shown shortened; Ullage does not follow them."""
    capabilities: JsonObject | None = None
    """The capabilities it declared, in the protocol's format; None if they are not known."""


Feature = Literal["resources", "prompts", "completions", "subscriptions", "logging", "changes"]
"""What a source may offer besides tools: completion of arguments, changes of single resources (subscriptions), a log
level, and notices that its lists have changed."""


class ToolSource(ABC):
    """Base class of everything that offers tools: a server, a database, a counter, a gateway of all of them.

    A subclass implements `tools` and `call`. Every other method has a default that offers nothing, so that it is
    overridden only where the source offers more.

    Example:
        >>> class Clock(ToolSource):
        ...     async def tools(self) -> Listing:
        ...         return Listing((Tool(name="now", input_schema={"type": "object"}),), revision="1")
        ...
        ...     async def call(self, call: Call) -> Reply:
        ...         return Reply.text("12:00")
        >>> Clock().features
        frozenset()
    """

    __slots__ = ()

    @abstractmethod
    async def tools(self) -> Listing:
        """Return the tools on offer."""

    @abstractmethod
    async def call(self, call: Call) -> Reply:
        """Run a tool by its name or an alias.

        A tool that ran and failed returns a reply with `is_error`. A `UllageError` raised here becomes such a reply at
        the wire.

        Raises:
            UnknownTool: The source has no tool of that name.
        """

    @property
    def features(self) -> frozenset[Feature]:
        """What the source can offer besides tools: by default, that whose methods its class overrides."""
        kind = type(self)
        overridden: dict[Feature, bool] = {
            "resources": kind.resources is not ToolSource.resources or kind.read is not ToolSource.read,
            "prompts": kind.prompts is not ToolSource.prompts or kind.prompt is not ToolSource.prompt,
            "completions": kind.complete is not ToolSource.complete,
            "subscriptions": kind.subscribe is not ToolSource.subscribe,
            "logging": kind.set_log_level is not ToolSource.set_log_level,
            "changes": kind.watch is not ToolSource.watch,
        }
        return frozenset(feature for feature, is_overridden in overridden.items() if is_overridden)

    @property
    def capabilities(self) -> JsonObject | None:
        """Which of its features the source is known to have now, in the protocol's format; None if that is not known,
        so that it may have all."""
        return None

    def introduction(self) -> Introduction | None:
        """Return the server's introduction; None for a source that is no server, or before the first connection."""
        return None

    async def resources(self) -> tuple[JsonObject, ...]:
        """Return the definitions of the resources."""
        return ()

    async def templates(self) -> tuple[JsonObject, ...]:
        """Return the definitions of the resource templates."""
        return ()

    async def read(self, read: Read) -> Contents:
        """Read a resource by its URI.

        Raises:
            UnknownResource: The source has no resource at that URI.
        """
        raise UnknownResource(f"no resource is at `{read.uri[:200]}`")

    async def subscribe(self, uri: str) -> None:  # noqa: B027 - by default no change is reported
        """Start reporting changes of this resource, as a `Change` of kind `resource`."""

    async def unsubscribe(self, uri: str) -> None:  # noqa: B027 - by default no change is reported
        """Stop reporting changes of this resource."""

    async def prompts(self) -> tuple[JsonObject, ...]:
        """Return the definitions of the prompts."""
        return ()

    async def prompt(self, request: PromptRequest) -> PromptMessages:
        """Fill in a prompt by its name.

        Raises:
            UnknownResource: The source has no prompt of that name.
        """
        raise UnknownResource(f"no prompt is called `{request.name[:100]}`")

    async def complete(self, request: Complete) -> JsonObject:
        """Return an object with `values`, and where known `total` and `hasMore`."""
        return {"values": []}

    async def set_log_level(self, level: str) -> None:  # noqa: B027 - by default no message is sent
        """Set the lowest level of log messages that are sent."""

    def watch(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each change, on the event loop, until the returned function is called."""
        return _ignore

    async def close(self) -> None:  # noqa: B027 - by default nothing is held
        """Release the source's process, connection or file; calling it twice is harmless."""


def _ignore() -> None:
    """Stop watching a source that reports no changes."""


Inner = TypeVar("Inner", bound=ToolSource)


class SourceWrapper(ToolSource, Generic[Inner]):
    """Base class of sources around another one: passes every request on to `inner`. A subclass overrides what it
    changes."""

    __slots__ = ()

    inner: Inner

    async def tools(self) -> Listing:
        return await self.inner.tools()

    async def call(self, call: Call) -> Reply:
        return await self.inner.call(call)

    @property
    def features(self) -> frozenset[Feature]:
        return self.inner.features

    @property
    def capabilities(self) -> JsonObject | None:
        return self.inner.capabilities

    def introduction(self) -> Introduction | None:
        return self.inner.introduction()

    async def resources(self) -> tuple[JsonObject, ...]:
        return await self.inner.resources()

    async def templates(self) -> tuple[JsonObject, ...]:
        return await self.inner.templates()

    async def read(self, read: Read) -> Contents:
        return await self.inner.read(read)

    async def subscribe(self, uri: str) -> None:
        await self.inner.subscribe(uri)

    async def unsubscribe(self, uri: str) -> None:
        await self.inner.unsubscribe(uri)

    async def prompts(self) -> tuple[JsonObject, ...]:
        return await self.inner.prompts()

    async def prompt(self, request: PromptRequest) -> PromptMessages:
        return await self.inner.prompt(request)

    async def complete(self, request: Complete) -> JsonObject:
        return await self.inner.complete(request)

    async def set_log_level(self, level: str) -> None:
        await self.inner.set_log_level(level)

    def watch(self, listener: Listener) -> Callable[[], None]:
        return self.inner.watch(listener)

    async def close(self) -> None:
        await self.inner.close()


_SCALARS = frozenset({float, bool, type(None)})
_PLAIN = frozenset({*_SCALARS, str, int, dict, list, tuple})
_SHORT = 1 << 64


def is_larger(value: object, values: int, letters: int, *, ascii_share: int = 1) -> bool:
    """Return whether a JSON value has more values, or more characters in texts and keys, than given. Stops once known.

    Args:
        value: Any JSON value; tuples count as lists.
        values: Members and items, at all levels.
        letters: Characters of texts and keys.
        ascii_share: How many characters of an ASCII text or key count as one, for work that is quicker on such texts.
    """
    todo: list[Iterable[Any]] = [(value,)]
    add = todo.append
    for items in todo:
        for one in items:
            # Comparing classes takes a fraction of the time of `isinstance`, and nearly every value is of a plain
            # class.
            kind: Any = one.__class__
            if kind is str or (kind not in _PLAIN and isinstance(one, str)):
                letters -= len(one) if ascii_share == 1 or not one.isascii() else len(one) // ascii_share
            elif kind is dict or (kind not in _PLAIN and isinstance(one, Mapping)):
                members = cast("Mapping[Any, Any]", one)
                values -= len(members)
                if values < 0:
                    return True
                add(members)
                add(members.values())
            elif kind is int:
                # Reading and writing a long number takes longer than a text of its digits, and more so the longer it
                # is.
                letters -= 0 if -_SHORT < one < _SHORT else one.bit_length()
            elif kind not in _SCALARS and isinstance(one, list | tuple):
                inner = cast("Collection[Any]", one)
                values -= len(inner)
                if values < 0:
                    return True
                add(inner)
        if letters < 0:
            return True
    return False
