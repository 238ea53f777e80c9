"""Runs the tool calls of an answer. Defines the events of a run and the names of its tools.

All calls of one answer run concurrently. Each gets a result, also if the tool fails, its arguments are not JSON, the
deadline passes or the run is cancelled. Nothing is retried here, since a call may have been carried out.

`Offered` combines the tools of several sources. If a source's tools change from one step to the next, the definitions
change; otherwise they are the same objects, so that the prompt cache stays valid.

Providers accept tool names of letters, digits, `_` and `-`, at most 64 characters, beginning with a letter or `_`.
Other names are rewritten; acceptable names stay as they are.

A reply's content becomes message parts: text and images as they are, everything else described in words. Metadata for
the client is left out.

Each event is a value, and in JSON an object with its `type`. The order is that of the run: before every call of the
model a `context_status`, then the streamed answer, its usage, its tool calls and their results, and finally one `end`.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, cast

import anyio

from ullage.delegate import cost_json, usage_json
from ullage.errors import DeadlinePassed, InvalidArguments, UllageError, Unavailable, UnknownTool
from ullage.messages import Media, Message, Part, Text, ToolCall, ToolDefinition, ToolResult
from ullage.models import Cost, Usage
from ullage.tool import Block, Call, Caller, Json, JsonObject, Listing, Reply, Tool, ToolSource

__all__ = [
    "Called",
    "Calls",
    "ContextStatus",
    "Corrected",
    "End",
    "Ending",
    "Event",
    "Offered",
    "Offering",
    "Returned",
    "Said",
    "Thought",
    "Used",
    "acceptable_names",
    "cut_off",
    "find_unanswered_calls",
    "make_sendable",
    "parts_of",
    "text_in",
    "with_own_ids",
]

Ending = Literal["stop", "length", "refusal", "steps", "deadline"]
"""Why an agent ended: the model was done (`stop`), had no room left for its answer (`length`), refused to answer
(`refusal`), or reached the limit of steps (`steps`) or of time (`deadline`)."""


@dataclass(frozen=True, slots=True)
class ContextStatus:
    """How full the window is just before the model is called."""

    context: JsonObject
    """The usage with `compacted`, and `before` and `warning` if they apply."""

    def to_json(self) -> dict[str, Json]:
        return {"type": "context_status", "context": dict(self.context)}


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of the answer's text."""

    text: str

    def to_json(self) -> dict[str, Json]:
        return {"type": "text", "text": self.text}


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of the model's thinking."""

    text: str

    def to_json(self) -> dict[str, Json]:
        return {"type": "thinking", "text": self.text}


@dataclass(frozen=True, slots=True)
class Corrected:
    """The full text of the answer. It replaces the pieces since the last status, some of which belong to an attempt
    that failed."""

    text: str

    def to_json(self) -> dict[str, Json]:
        return {"type": "text_corrected", "text": self.text}


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Usage of one call of the model."""

    step: int
    """Number of the call, from 1."""
    model: str
    """Name of the model that answered, as its provider spells it."""
    usage: Usage
    reported: bool
    """Whether the provider reported the usage. If False, Ullage counted it."""
    cost: Cost | None
    """Cost of all attempts together; None if unknown."""
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Json]:
        said: dict[str, Json] = {"type": "usage", "step": self.step, "model": self.model}
        said |= {"usage": {**usage_json(self.usage), "reported": self.reported}, "cost": cost_json(self.cost)}
        if self.warnings:
            said["warnings"] = list(self.warnings)
        return said


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A tool call of the model."""

    id: str
    tool: str
    """Name of the tool in its source."""
    arguments: str
    """JSON text, as the model wrote it."""

    def to_json(self) -> dict[str, Json]:
        return {"type": "tool_call", "id": self.id, "tool": self.tool, "arguments": self.arguments}


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """Result of a tool call. Events of one answer come as the results are ready; the model receives the results in the
    order of its calls."""

    id: str
    tool: str
    text: str
    """The text that the model receives; images are counted in `media`."""
    media: int = 0
    is_error: bool = False
    meta: JsonObject = field(default_factory=dict[str, Json])
    """Metadata from the tool's source, which the model does not see."""

    def to_json(self) -> dict[str, Json]:
        said: dict[str, Json] = {"type": "tool_result", "id": self.id, "tool": self.tool, "text": self.text}
        said["isError"] = self.is_error
        if self.media:
            said["media"] = self.media
        if self.meta:
            said["meta"] = dict(self.meta)
        return said


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of a run, as its last event. A run that raises has none."""

    reason: Ending
    text: str
    """The text of the last answer."""
    steps: int
    """Number of calls of the model."""

    def to_json(self) -> dict[str, Json]:
        return {"type": "end", "reason": self.reason, "text": self.text, "steps": self.steps}


Event = ContextStatus | Said | Thought | Corrected | Used | Called | Returned | End

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Image types that every provider accepts. An image of another type would make the provider refuse the whole
request."""
_NOTHING = "(no output)"
"""Some providers refuse a result without any text."""


def parts_of(reply: Reply) -> tuple[Part, ...]:
    if reply.needs is not None:
        needs = reply.needs
        methods = [one.get("method") for one in needs.requests.values() if isinstance(one, Mapping)]
        asked = ", ".join(f"`{method}`" for method in methods if isinstance(method, str)) or "something"
        unanswerable = (
            f"Before it goes on the tool asks for {asked}, and nobody can be asked here. It was not carried out."
        )
        return (Text(unanswerable),)
    found = tuple(part for block in reply.content for part in _block(block))
    if not found and reply.structured is not None:
        return (Text(_json(reply.structured.value)),)
    return found or (Text(_NOTHING),)


def text_in(parts: tuple[Part, ...]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def _block(block: Block) -> Iterator[Part]:
    match block:
        case {"type": "text", "text": str(text)}:
            if text:
                yield Text(text)
        case {"type": "image" | "audio", "data": str(data), "mimeType": str(kind)}:
            yield _bytes(data, kind)
        case {"type": "resource", "resource": Mapping() as resource}:
            yield _resource(cast("JsonObject", resource))
        case {"type": "resource_link", "uri": str(uri)}:
            yield Text(f"{block.get('name') or 'resource'}: {uri}")
        case _:
            yield Text(_json(dict(block)))


def _resource(resource: JsonObject) -> Part:
    match resource:
        case {"text": str(text)}:
            return Text(text or _NOTHING)
        case {"blob": str(data)}:
            return _bytes(data, str(resource.get("mimeType", "application/octet-stream")))
        case _:
            return Text(_json(dict(resource)))


def _bytes(data: str, media_type: str) -> Part:
    if media_type in _PICTURES:
        return Media(kind="image", media_type=media_type, data=data)
    return Text(f"[{media_type}, about {len(data) * 3 // 4:,} bytes, which cannot be shown here]")


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_LONGEST = 64
_GOOD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def acceptable_names(names: Iterable[str]) -> list[str]:
    """Return a distinct acceptable name for each name, in order. An acceptable name never changes, whatever other tools
    there are."""
    asked = list(names)
    taken = {name for name in asked if _GOOD.fullmatch(name)}
    given, seen = list[str](), set[str]()
    for name in asked:
        is_good = _GOOD.fullmatch(name) is not None and name not in seen
        chosen = name if is_good else next(one for one in _spellings(name) if one not in taken)
        taken.add(chosen)
        seen.add(name)
        given.append(chosen)
    return given


def _spellings(name: str) -> Iterator[str]:
    """Yield the nearest acceptable spelling, then ones with a hash, which is always the same for this name."""
    plain = _OTHER.sub("_", name)
    plain = plain if _GOOD.match(plain) else f"_{plain}"
    if len(plain) <= _LONGEST:
        yield plain
    number = 0
    while True:
        mark = hashlib.sha256(f"{name}{number or ''}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
        yield f"{plain[: _LONGEST - 9]}_{mark}"
        number += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    """The tools that are offered at one moment."""

    definitions: tuple[ToolDefinition, ...] = ()
    natives: tuple[JsonObject, ...] = ()
    """The definitions in the form that a context takes."""
    behind: Mapping[str, tuple[ToolSource, Tool]] = field(default_factory=dict[str, tuple[ToolSource, Tool]])
    """Source and tool by the name that the model sees, and by the names and aliases of the source."""
    revisions: tuple[str, ...] = ()

    def name_of(self, called: str) -> str:
        """Return the name of a tool in its source, or `called` itself if no tool has that name."""
        return self.behind[called][1].name if called in self.behind else called

    async def call(self, call: Call) -> Reply:
        """Call a tool by the name that the model used."""
        if call.tool not in self.behind:
            seen = tuple(one.name for one in self.definitions)
            raise UnknownTool(f"no tool is called `{call.tool}`", options=seen)
        source, tool = self.behind[call.tool]
        return await source.call(replace(call, tool=tool.name))


@dataclass(slots=True)
class Offered:
    """The tools of several sources under names that every provider accepts."""

    sources: Sequence[ToolSource]
    _last: Offering = field(default_factory=Offering)

    async def now(self) -> Offering:
        """Return the tools of all sources now. If a source is unavailable, the last offering is returned."""
        try:
            listings = [await source.tools() for source in self.sources]
        except Unavailable:
            if not self._last.revisions:
                raise
            return self._last
        revisions = tuple(listing.revision for listing in listings)
        if revisions != self._last.revisions:
            self._last = _offering(self.sources, listings, revisions)
        return self._last


def _offering(sources: Sequence[ToolSource], listings: Sequence[Listing], revisions: tuple[str, ...]) -> Offering:
    pairs = zip(sources, listings, strict=True)
    offered = [(source, tool) for source, listing in pairs for tool in listing.tools]
    names = acceptable_names(tool.name for _, tool in offered)
    behind = dict(zip(names, offered, strict=True))
    # Texts that the model reads (a masked result, another tool's description) contain the sources' own names.
    for source, tool in offered:
        for name in (tool.name, *tool.aliases):
            behind.setdefault(name, (source, tool))
    definitions = tuple(_definition(name, tool) for name, (_, tool) in zip(names, offered, strict=True))
    return Offering(
        definitions=definitions, natives=tuple(map(_native, definitions)), behind=behind, revisions=revisions
    )


def _definition(name: str, tool: Tool) -> ToolDefinition:
    return ToolDefinition(name=name, description=tool.description, schema=dict(tool.input_schema))


def _native(definition: ToolDefinition) -> JsonObject:
    return {"name": definition.name, "description": definition.description, "schema": dict(definition.schema)}


_CUT = "It was cut off before it answered and may have been carried out: check before you call it again."


@dataclass(slots=True, kw_only=True)
class Calls:
    """The calls of one answer and their results so far."""

    calls: Sequence[ToolCall]
    offering: Offering
    caller: Caller
    deadline: float | None
    _results: dict[int, ToolResult] = field(default_factory=dict[int, ToolResult])

    async def run(self, tell: Callable[[Returned], None]) -> None:
        async with anyio.create_task_group() as group:
            for number, call in enumerate(self.calls):
                group.start_soon(partial(self._one, number, call, tell))

    @property
    def message(self) -> Message:
        """The results in the order of their calls. A missing result is replaced by a text that says so."""
        found = (self._results.get(number) or cut_off(call) for number, call in enumerate(self.calls))
        return Message(role="tool", parts=tuple(found))

    async def _one(self, number: int, call: ToolCall, tell: Callable[[Returned], None]) -> None:
        try:
            reply = await self._reply(call)
        except UllageError as error:
            reply = Reply.text(json.dumps(error.wire(), ensure_ascii=False), is_error=True)
        except Exception as error:  # noqa: BLE001 - a source may raise anything; the model reads the error and continues
            reply = Reply.text(f"The tool failed: {type(error).__name__}: {error}", is_error=True)
        result = _result(call, parts_of(reply), is_error=reply.is_error or reply.needs is not None)
        self._results[number] = result
        returned = Returned(
            id=call.id or "",
            tool=self.offering.name_of(call.name),
            text=text_in(result.parts),
            media=sum(isinstance(part, Media) for part in result.parts),
            is_error=result.is_error,
            meta=reply.meta,
        )
        tell(returned)

    async def _reply(self, call: ToolCall) -> Reply:
        asked = Call(tool=call.name, arguments=_arguments(call), caller=self.caller, deadline=self.deadline)
        if self.deadline is None:
            return await self.offering.call(asked)
        with anyio.move_on_at(self.deadline):
            return await self.offering.call(asked)
        raise DeadlinePassed(f"`{call.name}` had not answered when the deadline came", suggestion=_CUT)


def _arguments(call: ToolCall) -> JsonObject:
    try:
        read = cast("Json", json.loads(call.arguments or "{}"))
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"the arguments are no JSON: {error}", suggestion="write them again, whole") from error
    if not isinstance(read, dict):
        raise InvalidArguments("the arguments are no JSON object", suggestion="give each argument by its name")
    return read


def _result(call: ToolCall, parts: tuple[Part, ...], *, is_error: bool) -> ToolResult:
    return ToolResult(parts=parts, call_id=call.id, name=call.name, is_error=is_error)


def cut_off(call: ToolCall) -> ToolResult:
    return _result(call, (Text(_CUT),), is_error=True)


def find_unanswered_calls(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """Return the calls that a history ends with."""
    last = messages[-1].parts if messages and messages[-1].role == "assistant" else ()
    return tuple(part for part in last if isinstance(part, ToolCall))


def with_own_ids(message: Message, new_id: Callable[[], str]) -> Message:
    """Return an answer in which every call has a distinct id. Not every server ensures that."""
    seen = set[str]()
    return replace(message, parts=tuple(_with_own_id(part, seen, new_id) for part in message.parts))


def _with_own_id(part: Part, seen: set[str], new_id: Callable[[], str]) -> Part:
    if not isinstance(part, ToolCall):
        return part
    identity = part.id if part.id and part.id not in seen else new_id()
    seen.add(identity)
    return part if identity == part.id else replace(part, id=identity)


def make_sendable(message: Message) -> Message:
    """Return an answer that can be sent back. Arguments that are not a JSON object would make the provider refuse every
    later request; they are wrapped in an object as text."""
    return replace(message, parts=tuple(_make_part_sendable(part) for part in message.parts))


def _make_part_sendable(part: Part) -> Part:
    if not isinstance(part, ToolCall):
        return part
    try:
        _arguments(part)
    except InvalidArguments:
        return replace(part, arguments=json.dumps({"malformed": part.arguments}, ensure_ascii=False))
    return part
