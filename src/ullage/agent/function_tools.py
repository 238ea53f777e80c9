"""Python functions as tools, the tool calls of an answer, and the events of a run.

A function's schema comes from its signature:

    async for event in run_agent("What is in stock?", model="gpt-5.6-sol", tools=[in_stock]):
        ...

The arguments are checked with pydantic, so an argument may be anything that pydantic can read from JSON: plain types,
`Literal`, enums, dataclasses and models. A function that is not async runs in a thread, so that it does not hold up
other calls.

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
import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, cast, get_type_hints

import anyio
import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError

from ullage.delegate import cost_json, usage_json
from ullage.errors import DeadlinePassed, InvalidArguments, UllageError, Unavailable, UnknownTool
from ullage.messages import Media, Message, Part, Text, ToolCall, ToolDefinition, ToolResult
from ullage.models import Cost
from ullage.models import Usage as TokenUsage
from ullage.tool import Block, Call, Caller, Json, JsonObject, Listing, Reply, Structured, Tool, ToolSource

__all__ = [
    "Called",
    "Calls",
    "ContextStatus",
    "Corrected",
    "End",
    "Ending",
    "Event",
    "FunctionTools",
    "Offered",
    "Offering",
    "Returned",
    "Said",
    "Thought",
    "ToolsGiven",
    "Used",
    "acceptable_names",
    "as_sources",
    "cut_off",
    "find_unanswered_calls",
    "make_sendable",
    "parts_of",
    "text_in",
    "with_own_ids",
]

ToolsGiven = ToolSource | Sequence[ToolSource | Callable[..., Any]] | Callable[..., Any] | None
"""What `run_agent` takes as `tools`: a source, a function, or a list of sources and functions."""

_ARGS_HEADING = re.compile(r"(?m)^(?:Args|Arguments|Parameters):[ \t]*$")
_NEXT_HEADING = re.compile(r"(?m)^\S")
_ARGUMENT = re.compile(
    r"(?m)^(?P<indent>[ \t]+)(?P<name>\w+)(?: \([^)]*\))?:[ \t]*(?P<text>.*(?:\n(?P=indent)[ \t]+.*)*)"
)


def as_sources(given: ToolsGiven) -> tuple[ToolSource, ...]:
    """Return the sources of the given tools; all plain functions together are one source.

    Raises:
        InvalidArguments: Something is neither a source nor a function, a function's signature cannot be written as a
            JSON schema, or two functions have the same name.
    """
    if given is None:
        return ()
    items = list(cast("Sequence[object]", given)) if isinstance(given, Sequence) else [given]
    sources, functions = list[ToolSource](), list[Callable[..., Any]]()
    for item in items:
        if callable(getattr(item, "tools", None)) and callable(getattr(item, "call", None)):
            sources.append(cast("ToolSource", item))
        elif callable(item) and not inspect.isclass(item):
            functions.append(item)
        else:
            raise InvalidArguments(
                f"`{item!r}` is not a tool", suggestion="give functions, or objects with `tools()` and `call(call)`"
            )
    return (*([FunctionTools(functions)] if functions else ()), *sources)


class FunctionTools(ToolSource):
    """A `ToolSource` whose tools are Python functions.

    A tool has the function's name, its docstring's text as description and its parameters as schema. A parameter is
    described by the docstring's `Args` section or by `Annotated[..., Field(description=...)]`.

    Args:
        functions: Functions, async functions or methods. What a function returns is sent to the model: text as it is,
            anything else as JSON.

    Raises:
        InvalidArguments: A signature cannot be written as a JSON schema, or two functions have the same name.
    """

    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        self._tools = dict[str, _FunctionTool]()
        for function in functions:
            made = _FunctionTool.of(function)
            if made.tool.name in self._tools:
                raise InvalidArguments(f"two functions are called `{made.tool.name}`", suggestion="rename one of them")
            self._tools[made.tool.name] = made
        tools = tuple(one.tool for one in self._tools.values())
        described = json.dumps([[one.name, one.description, dict(one.input_schema)] for one in tools], sort_keys=True)
        self._listing = Listing(tools, revision=hashlib.sha256(described.encode("utf-8", "surrogatepass")).hexdigest())

    async def tools(self) -> Listing:
        return self._listing

    async def call(self, call: Call) -> Reply:
        """Run a function. An exception that it raises becomes a reply with `is_error`, which the model can read."""
        found = self._tools.get(call.tool)
        if found is None:
            raise UnknownTool(f"no function is called `{call.tool}`", options=tuple(self._tools))
        return await found.run(call.arguments)


@dataclass(frozen=True, slots=True)
class _FunctionTool:
    function: Callable[..., Any]
    tool: Tool
    model: type[BaseModel]
    """Model of the arguments. Its fields are numbered, so that no parameter's name collides with one of pydantic's."""
    parameters: tuple[inspect.Parameter, ...]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "_FunctionTool":
        name = str(getattr(function, "__name__", type(function).__name__))
        parameters = tuple(inspect.signature(function).parameters.values())
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise InvalidArguments(
                    f"`{name}` takes `{parameter}`, which a model cannot fill in",
                    suggestion="name each parameter",
                )
        description, described = _read_docstring(inspect.getdoc(function) or "")
        hinted = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
        try:
            hints = get_type_hints(hinted, include_extras=True)
            fields: dict[str, Any] = {}
            for number, parameter in enumerate(parameters):
                said: dict[str, Any] = {"alias": parameter.name}
                if parameter.default is not parameter.empty:
                    said["default"] = parameter.default
                if parameter.name in described:
                    said["description"] = described[parameter.name]
                field = Field(**said)
                fields[f"argument_{number}"] = (hints.get(parameter.name, Any), field)
            model = create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
            schema = _without_titles(cast("Json", model.model_json_schema()))
        except (NameError, TypeError, PydanticUserError) as error:
            raise InvalidArguments(
                f"the parameters of `{name}` cannot be written as a JSON schema: {str(error).splitlines()[0]}",
                suggestion="use types that JSON can express, such as `str`, `int`, `list[str]` or a dataclass",
            ) from error
        tool = Tool(name=name, description=description or None, input_schema=cast("JsonObject", schema))
        return cls(function=function, tool=tool, model=model, parameters=parameters)

    async def run(self, arguments: JsonObject) -> Reply:
        try:
            checked = self.model.model_validate(dict(arguments))
        except ValidationError as error:
            faults = [f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in error.errors()]
            raise InvalidArguments(
                f"the arguments do not fit `{self.tool.name}`: {'; '.join(faults)}",
                suggestion="call it again with arguments that fit its schema",
            ) from error
        positional, named = list[Any](), dict[str, Any]()
        for number, parameter in enumerate(self.parameters):
            value = getattr(checked, f"argument_{number}")
            if parameter.kind is parameter.KEYWORD_ONLY:
                named[parameter.name] = value
            else:
                positional.append(value)
        call = partial(self.function, *positional, **named)
        try:
            # When a run is cancelled, a blocking function continues in its thread and its result is discarded.
            is_async = inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(
                getattr(self.function, "__call__", None)  # noqa: B004
            )
            value = call() if is_async else await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
            if inspect.isawaitable(value):
                value = await value
            return _reply(value)
        except Exception as error:  # noqa: BLE001 - a function of the user's; the model reads what went wrong
            return Reply.text(f"`{self.tool.name}` failed: {type(error).__name__}: {error}", is_error=True)


def _reply(value: object) -> Reply:
    if isinstance(value, Reply):
        return value
    if isinstance(value, str):
        return Reply.text(value)
    if value is None:
        return Reply.text("done")
    try:
        plain = cast("Json", TypeAdapter[Any](Any).dump_python(value, mode="json"))
    except ValueError:
        return Reply.text(str(value))
    reply = Reply.text(json.dumps(plain, ensure_ascii=False, separators=(",", ":")))
    return replace(reply, structured=Structured(plain)) if isinstance(plain, dict) else reply


def _without_titles(schema: Json, *, is_properties: bool = False) -> Json:
    """Return a schema without the titles that pydantic derives from names: they cost tokens and add no information."""
    if isinstance(schema, list):
        return [_without_titles(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if is_properties or key != "title"}
    return {
        key: value
        if key in ("default", "const", "enum", "examples") and not is_properties
        else _without_titles(value, is_properties=not is_properties and key in ("properties", "$defs"))
        for key, value in kept.items()
    }


def _read_docstring(text: str) -> tuple[str, Mapping[str, str]]:
    """Return the description without its `Args` section, and the description of each parameter from that section."""
    heading = _ARGS_HEADING.search(text)
    if heading is None:
        return text, {}
    end = _NEXT_HEADING.search(text, heading.end() + 1)
    section = text[heading.end() + 1 : end.start() if end else len(text)]
    found = {match["name"]: " ".join(match["text"].split()) for match in _ARGUMENT.finditer(section)}
    rest = f"{text[: heading.start()]}{text[end.start() :] if end else ''}"
    return re.sub(r"\n{3,}", "\n\n", rest).strip(), found


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
    usage: TokenUsage
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
        methods = [one.get("method") for one in reply.needs.requests.values() if isinstance(one, Mapping)]
        asked = ", ".join(f"`{method}`" for method in methods if isinstance(method, str)) or "something"
        return (
            Text(f"Before it goes on the tool asks for {asked}, and nobody can be asked here. It was not carried out."),
        )
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
        case {"type": "resource", "resource": {"text": str(text)}}:
            yield Text(text or _NOTHING)
        case {"type": "resource", "resource": {"blob": str(data), **rest}}:
            yield _bytes(data, str(rest.get("mimeType", "application/octet-stream")))
        case {"type": "resource", "resource": Mapping() as resource}:
            yield Text(_json(dict(cast("JsonObject", resource))))
        case {"type": "resource_link", "uri": str(uri)}:
            yield Text(f"{block.get('name') or 'resource'}: {uri}")
        case _:
            yield Text(_json(dict(block)))


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
        if revisions == self._last.revisions:
            return self._last
        pairs = zip(self.sources, listings, strict=True)
        offered = [(source, tool) for source, listing in pairs for tool in listing.tools]
        names = acceptable_names(tool.name for _, tool in offered)
        behind = dict(zip(names, offered, strict=True))
        # Texts that the model reads (a masked result, another tool's description) contain the sources' own names.
        for source, tool in offered:
            for name in (tool.name, *tool.aliases):
                behind.setdefault(name, (source, tool))
        definitions = tuple(
            ToolDefinition(name=name, description=tool.description, schema=dict(tool.input_schema))
            for name, (_, tool) in zip(names, offered, strict=True)
        )
        natives = tuple[JsonObject, ...](
            {"name": one.name, "description": one.description, "schema": dict(one.schema)} for one in definitions
        )
        self._last = Offering(definitions=definitions, natives=natives, behind=behind, revisions=revisions)
        return self._last


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
        tell(
            Returned(
                id=call.id or "",
                tool=self.offering.name_of(call.name),
                text=text_in(result.parts),
                media=sum(isinstance(part, Media) for part in result.parts),
                is_error=result.is_error,
                meta=reply.meta,
            )
        )

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
        raise InvalidArguments(f"the arguments are not JSON: {error}", suggestion="write them again, whole") from error
    if not isinstance(read, dict):
        raise InvalidArguments("the arguments are not a JSON object", suggestion="give each argument by its name")
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
    seen, parts = set[str](), list[Part]()
    for part in message.parts:
        own = part
        if isinstance(own, ToolCall):
            identity = own.id if own.id and own.id not in seen else new_id()
            seen.add(identity)
            own = own if identity == own.id else replace(own, id=identity)
        parts.append(own)
    return replace(message, parts=tuple(parts))


def make_sendable(message: Message) -> Message:
    """Return an answer that can be sent back. Arguments that are not a JSON object would make the provider refuse every
    later request; they are wrapped in an object as text."""
    parts = list[Part]()
    for part in message.parts:
        own = part
        if isinstance(own, ToolCall):
            try:
                _arguments(own)
            except InvalidArguments:
                own = replace(own, arguments=json.dumps({"malformed": own.arguments}, ensure_ascii=False))
        parts.append(own)
    return replace(message, parts=tuple(parts))
