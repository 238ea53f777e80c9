"""Python functions as tools: the schema from the signature, the call with checked arguments.

    async for event in run_agent("What is in stock?", model="gpt-5.6-sol", tools=[in_stock]):
        ...

The arguments are checked with pydantic, so an argument may be anything that pydantic can read from JSON: plain types,
`Literal`, enums, dataclasses and models. A function that is not async runs in a thread, so that it does not hold up
other calls.
"""

import hashlib
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast, get_type_hints

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError

from ullage.errors import InvalidArguments, UnknownTool
from ullage.tool import Call, Json, JsonObject, Listing, Reply, Structured, Tool, ToolSource

__all__ = ["FunctionTools", "ToolsGiven", "as_sources"]

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
