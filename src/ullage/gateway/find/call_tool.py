"""`call_tool` and `call_tool_write`: run the tool that a model names, with arguments repaired to fit its schema.

A call passes through three steps:

1. `read_call` reads the envelope `{server_name, tool_name, parameters}`. Models get it wrong in a few known ways (the
   tool's name inside `parameters`, its arguments beside `tool_name`, everything in one string, `server__tool` as the
   server); these are accepted, and each repair is noted. This step does not know the tools: a name is kept as written,
   and `Spoken.of_a_tool_with` reads the envelope again where the tool has a parameter called like a synonym of
   `parameters`.
2. `Calling` resolves the name to a tool. Only read-only tools run through `call_tool`. `call_tool_write` runs any tool,
   because sending a read-only tool there does no harm and refusing it would cost a round trip.
3. `fitting` checks the arguments against the tool's schema and repairs what can be repaired. Arguments that fit are
   sent unchanged. Each check spends from one `StepBudget` for the call.

Most checks take a few hundred steps and run in the event loop. If arguments or schema need more, `Aside` repeats the
check in a worker thread with a larger budget, one call at a time, so that other calls are not delayed. If that budget
is spent too, the arguments are passed on unvalidated.

Most calls fit a schema of types, properties and enumerations, which is checked here directly. All others are passed
to jsonschema (`schema_validation`), which is imported on first use and reports what is wrong.

Access rules are enforced by the inner source, not here.
"""

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeGuard

import anyio
import anyio.to_thread

from ullage.errors import InvalidArguments, UnknownTool
from ullage.tool import Call, Json, JsonObject, Reply

from ..merge.tool_view import Entry, MergedSource, View
from ..results import BUDGET
from ..slim.schema_walk import is_small
from ..tool_source import LimitLog, OutOfSteps, StepBudget
from .argument_repair import Verdict, misfit, parsed, repairs
from .find_settings import FindSettings
from .tool_forms import CALL, CALL_WRITE, NAMES
from .tool_index import Hashes

if TYPE_CHECKING:
    from .schema_validation import Validators

__all__ = [
    "AT_ONCE",
    "HEALED",
    "STEPS",
    "TOO_COMPLEX",
    "UNCHECKED",
    "Aside",
    "Calling",
    "Checker",
    "Fitting",
    "Spoken",
    "fitting",
    "is_plain",
    "plainly_fits",
    "read_call",
    "unvalidated",
]

STEPS = 50_000
"""Most steps for one set of arguments before it is passed on unvalidated: half a second of work."""
_KEPT = 1_000
"""Most validators kept."""
_DEEPEST = 8
"""Most levels of a schema that are checked here."""
_MOST = 64
"""Most keywords of a schema, and members of its properties, choices and enumerations, that are checked here."""
_STEPS = 500
"""Most steps taken here: a millisecond or two."""
_DIALECTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-06/schema#",
)
"""Dialects in which the plain keywords have the meaning implemented here."""


def _is_number(value: Json) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Json], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
}
_BOUNDS: Mapping[str, Callable[[Any, Json], bool]] = {
    "minimum": lambda bound, value: not _is_number(value) or value >= bound,
    "maximum": lambda bound, value: not _is_number(value) or value <= bound,
    "minLength": lambda bound, value: not isinstance(value, str) or len(value) >= bound,
    "maxLength": lambda bound, value: not isinstance(value, str) or len(value) <= bound,
    "minItems": lambda bound, value: not isinstance(value, list) or len(value) >= bound,
    "maxItems": lambda bound, value: not isinstance(value, list) or len(value) <= bound,
}
_NOTES = frozenset({"title", "description", "default", "examples", "format", "deprecated", "readOnly", "writeOnly"})
"""Keywords that assert nothing; formats are not asserted."""


_FITS = Verdict()


class Checker:
    """Checks arguments and caches validators by key. Not thread-safe."""

    def __init__(self, most: int = _KEPT) -> None:
        self._most = most
        self._plain: dict[str, bool] = {}
        self._validators: Validators | None = None

    def check(self, key: str, schema: JsonObject, arguments: Json, budget: StepBudget | None = None) -> Verdict:
        """Check arguments within a budget, `STEPS` by default.

        Args:
            key: Identifies the schema: equal keys mean equal schemas.
            schema: The tool's input schema.
            arguments: The arguments to check.
            budget: Steps for the check.

        Raises:
            OutOfSteps: The budget was spent before anything was found wrong.
        """
        if self._is_plain(key, schema) and plainly_fits(schema, arguments):
            return _FITS
        if self._validators is None:
            from .schema_validation import Validators

            self._validators = Validators(self._most)
        return self._validators.check(key, schema, arguments, StepBudget(STEPS) if budget is None else budget)

    def _is_plain(self, key: str, schema: JsonObject) -> bool:
        found = self._plain.get(key)
        if found is None:
            if len(self._plain) >= self._most:
                self._plain.clear()
            found = self._plain[key] = is_plain(schema)
        return found


def is_plain(schema: JsonObject) -> bool:
    """Return whether a schema is valid and uses only the keywords that `plainly_fits` implements."""
    try:
        return _is_plain(dict(schema), 0, StepBudget(_STEPS))
    except OutOfSteps:
        return False


def _is_plain(schema: Json, depth: int, budget: StepBudget) -> bool:
    if not isinstance(schema, dict) or depth > _DEEPEST or len(schema) > _MOST:
        return False
    budget.spend()
    return all(
        word in _NOTES or (word in _SHAPES and _SHAPES[word](said, depth + 1, budget)) for word, said in schema.items()
    )


def _are_plain(schemas: Iterable[Json], depth: int, budget: StepBudget) -> bool:
    return all(_is_plain(one, depth, budget) for one in schemas)


def _is_few(said: Json) -> bool:
    return isinstance(said, list) and 0 < len(said) <= _MOST


def _is_type(said: Json) -> bool:
    return isinstance(said, str) and said in _TYPES


def _are_texts(said: Json) -> bool:
    return isinstance(said, list) and 0 < len(said) <= _MOST and all(isinstance(one, str) for one in said)


def _are_properties(said: Json, depth: int, budget: StepBudget) -> bool:
    return isinstance(said, dict) and len(said) <= _MOST and _are_plain(said.values(), depth, budget)


_SHAPES: Mapping[str, Callable[[Any, int, StepBudget], bool]] = {
    "$schema": lambda said, depth, _: depth == 1 and said in _DIALECTS,
    "type": lambda said, _depth, _budget: _is_type(said) or (_is_few(said) and all(map(_is_type, said))),
    "enum": lambda said, _depth, _budget: _are_texts(said),
    "required": lambda said, _depth, _budget: said == [] or _are_texts(said),
    "additionalProperties": lambda said, _depth, _budget: isinstance(said, bool),
    "properties": _are_properties,
    "items": _is_plain,
    "anyOf": lambda said, depth, budget: _is_few(said) and _are_plain(said, depth, budget),
    **dict.fromkeys(_BOUNDS, lambda said, _depth, _budget: _is_number(said)),
}
"""Checks the value of each keyword, at a depth."""


def plainly_fits(schema: JsonObject, value: Json) -> bool:
    """Return whether a value certainly fits a plain schema. False means only that a full validation is needed."""
    try:
        return _fits(schema, value, StepBudget(_STEPS))
    except OutOfSteps:
        return False


def _fits(schema: Mapping[str, Any], value: Json, budget: StepBudget) -> bool:
    budget.spend()
    kind = schema.get("type")
    if kind is not None and not any(_TYPES[one](value) for one in ([kind] if isinstance(kind, str) else kind)):
        return False
    if "enum" in schema and not (isinstance(value, str) and value in schema["enum"]):
        return False
    if "anyOf" in schema and not any(_fits(one, value, budget) for one in schema["anyOf"]):
        return False
    if not _BOUNDS.keys().isdisjoint(schema) and any(
        word in schema and not within(schema[word], value) for word, within in _BOUNDS.items()
    ):
        return False
    if isinstance(value, list):
        items = schema.get("items")
        return items is None or all(_fits(items, one, budget) for one in value)
    if not isinstance(value, dict):
        return True
    properties: Mapping[str, Any] = schema.get("properties", {})
    if not all(name in value for name in schema.get("required", ())):
        return False
    if not schema.get("additionalProperties", True) and not value.keys() <= properties.keys():
        return False
    return all(_fits(properties[name], member, budget) for name, member in value.items() if name in properties)


_TOOL = ("tool_name", "toolName", "tool", "name")
_SERVER = ("server_name", "serverName", "server")
"""`server` counts only beside a parameters key; without one it may be an argument of the tool."""
_PARAMETERS = ("parameters", "params", "arguments", "args", "input", "tool_input")
_KEYS = ("server_name", "tool_name", "parameters")
_LAYERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """The envelope of one `call_tool` call."""

    tool: str
    """The name as the model wrote it."""
    server: str | None = None
    parameters: Json = field(default_factory=dict[str, Json])
    """An object, or the other JSON value that was sent in its place."""
    beside: JsonObject = field(default_factory=dict[str, Json])
    """Keys beside `parameters` that are not `call_tool`'s own arguments."""
    notes: tuple[str, ...] = ()
    said: JsonObject = field(default_factory=dict[str, Json])
    """Everything in the envelope except the names."""
    read_from: str | None = None
    """The key that was read as `parameters`."""

    @property
    def bare(self) -> str:
        """The tool's name, extracted from a copied search result: `name(args) — sentence [write]`."""
        name = self.tool.split("(", 1)[0].split(" — ", 1)[0].split(" [", 1)[0]
        return name.strip().strip("`'\"") or self.tool

    def of_a_tool_with(self, properties: Container[str]) -> "Spoken":
        """Return the call reread for a tool with these parameters, where a synonym of `parameters` is one of them.

        `parameters` itself is read as a tool's parameter only if the keys beside it are all parameters of the tool
        and it contains none of them.
        """
        if self.read_from is None or self.read_from not in properties:
            return self
        all_beside = bool(self.beside) and all(name in properties for name in self.beside)
        if self.read_from == _PARAMETERS[0] and (not all_beside or self.holds_any(properties)):
            return self
        notes = tuple(note for note in self.notes if note != _read_as(self.read_from, _PARAMETERS[0]))
        words = tuple(word for word in _PARAMETERS if word not in properties)
        return _with_parameters(self.tool, self.server, self.said, notes, words)

    def holds_any(self, properties: Container[str]) -> bool:
        """Return whether the parameters contain any of these names."""
        inside = _opened(self.parameters)
        return isinstance(inside, dict) and any(name in properties for name in inside)


def read_call(arguments: JsonObject) -> Spoken:
    """Parse the envelope of a call.

    Raises:
        InvalidArguments: No tool is named.
    """
    for from_server in (False, True):
        for depth, (layer, outer) in enumerate(_layers(arguments)):
            # With `from_server`, the server's key may contain the tool's name.
            rest = outer | layer
            has_parameters = any(key in rest for key in _PARAMETERS)
            tool_key, tool = _taken(rest, _TOOL)
            server_key, server = _taken(rest, _SERVER if has_parameters else _SERVER[:-1])
            if tool is None and from_server:
                tool_key, tool, server_key, server = server_key, server, None, None
            if tool is None:
                spoken = None
            else:
                read = ((tool_key, _TOOL[0]), (server_key, _SERVER[0]))
                notes = tuple(_read_as(key, own) for key, own in read if key not in (None, own))
                spoken = _with_parameters(tool, server, rest, notes, _PARAMETERS)
            if spoken is not None:
                note = "the call stood inside `parameters`; taken out"
                return replace(spoken, notes=(note, *spoken.notes)) if depth else spoken
    raise InvalidArguments(
        "`tool_name` is missing",
        suggestion='Give {"tool_name": "…", "parameters": {…}}; `find_tool` finds the name.',
        options=_KEYS,
    )


def _layers(arguments: JsonObject) -> Iterator[tuple[dict[str, Json], dict[str, Json]]]:
    """Yield the call, then each call nested in its parameters, with the keys around it."""
    layer, outer = dict(arguments), dict[str, Json]()
    for _ in range(_LAYERS):
        yield layer, outer
        key = next((key for key in _PARAMETERS if key in layer), None)
        inner = _opened(layer[key]) if key else None
        if key is None or not isinstance(inner, dict):
            return
        outer = outer | {name: value for name, value in layer.items() if name != key}
        layer = inner


def _with_parameters(
    tool: str, server: str | None, said: JsonObject, notes: tuple[str, ...], words: tuple[str, ...]
) -> Spoken:
    """Return the call with the first of these keys as its parameters, and the other keys beside them."""
    beside = dict(said)
    key = next((word for word in words if word in beside), None)
    parameters = beside.pop(key) if key else None
    return Spoken(
        tool=tool,
        server=server,
        parameters={} if parameters is None or parameters == "" else parameters,
        beside=beside,
        notes=notes if key in (None, _PARAMETERS[0]) else (*notes, _read_as(key, _PARAMETERS[0])),
        said=said,
        read_from=key,
    )


def _read_as(key: str | None, own: str) -> str:
    return f"`{key}` read as `{own}`"


def _taken(layer: dict[str, Json], keys: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Remove and return the first of the keys with a non-empty string, and that string.

    An empty value under the first key is removed as well.
    """
    for key in keys:
        value = layer.get(key)
        if isinstance(value, str) and value.strip():
            del layer[key]
            return key, value.strip()
    if layer.get(keys[0]) in (None, ""):
        layer.pop(keys[0], None)
    return None, None


def _opened(value: Json) -> Json:
    return parsed(value) if isinstance(value, str) else value


TOO_COMPLEX = "checking these arguments against the schema takes too many steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """The arguments to call the tool with."""

    arguments: JsonObject
    healed: tuple[str, ...] = ()
    """The repairs, a sentence each."""
    unchecked: str | None = None
    """Why the arguments were not checked; None if they were."""


def fitting(  # noqa: PLR0913
    spoken: Spoken,
    entry: Entry,
    checker: Checker,
    key: str,
    budget: StepBudget | None = None,
    *,
    must_heal: bool = False,
) -> Fitting:
    """Check and repair the arguments of a call.

    Args:
        spoken: The parsed envelope.
        entry: The tool to call.
        checker: Validates arguments against the schema.
        key: Identifies the tool's definition.
        budget: For the whole call; `STEPS` by default.
        must_heal: Whether running out of steps during repair is an error; otherwise it only ends the repair.

    Raises:
        InvalidArguments: The arguments neither fit nor can be repaired.
        OutOfSteps: The budget was spent before that was known.
    """
    budget = StepBudget(STEPS) if budget is None else budget
    try:
        return _fitted(spoken, entry, checker, key, budget, must_heal=must_heal)
    except InvalidArguments:
        schema = entry.tool.input_schema
        properties = _properties(entry.tool.input_schema)
        is_its_own = (
            spoken.read_from == "parameters" and "parameters" in properties and not spoken.holds_any(properties)
        )
        if not is_its_own or not checker.check(key, schema, dict(spoken.said), budget).fits:
            raise
        return Fitting(arguments=spoken.said, healed=(*spoken.notes, "`parameters` read as the tool's own parameter"))


def _fitted(  # noqa: PLR0913
    spoken: Spoken, entry: Entry, checker: Checker, key: str, budget: StepBudget, *, must_heal: bool
) -> Fitting:
    schema = entry.tool.input_schema
    given, notes = _gathered(spoken.of_a_tool_with(_properties(schema)), entry)
    verdict = checker.check(key, schema, given, budget)
    if verdict.unchecked is not None:
        return _unchecked(given, notes, verdict.unchecked)
    if verdict.misfit is None and isinstance(given, dict):
        return Fitting(arguments=given, healed=notes)
    try:
        for one in repairs(given, dict(schema), (entry.listed, entry.original), budget):
            found = checker.check(key, schema, one.arguments, budget)
            if found.fits:
                return Fitting(arguments=one.arguments, healed=(*notes, *one.notes))
            # What can be repaired is not what is wrong.
            verdict = found if found.misfit is not None else verdict
    except OutOfSteps:
        if must_heal:
            raise
    raise misfit(entry.tool, verdict.misfit) if verdict.misfit and isinstance(given, dict) else _no_object()


def unvalidated(spoken: Spoken, entry: Entry) -> Fitting:
    """Return the arguments unchecked, for a call whose check takes too many steps."""
    given, notes = _gathered(spoken.of_a_tool_with(_properties(entry.tool.input_schema)), entry)
    return _unchecked(given, notes, TOO_COMPLEX)


def _properties(schema: JsonObject) -> Container[str]:
    """Return the tool's own parameters."""
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else ()


def _gathered(spoken: Spoken, entry: Entry) -> tuple[Json, tuple[str, ...]]:
    """Return the parameters with the keys beside them merged in."""
    if not spoken.beside:
        return spoken.parameters, spoken.notes
    inside = parsed(spoken.parameters) if isinstance(spoken.parameters, str) else spoken.parameters
    if not isinstance(inside, dict):
        raise _no_object()
    twice = [name for name, value in spoken.beside.items() if name in inside and inside[name] != value]
    if twice:
        raise InvalidArguments(
            f"`{entry.listed}` was not called: `{twice[0]}` stands inside `parameters` and beside it, and they differ",
            suggestion="Put every argument of the tool into `parameters`.",
        )
    moved = tuple(f"`{name}` stood beside `parameters`; moved into it" for name in spoken.beside)
    return {**inside, **spoken.beside}, (*spoken.notes, *moved)


def _unchecked(given: Json, notes: tuple[str, ...], reason: str) -> Fitting:
    if isinstance(given, str) and isinstance(inside := parsed(given), dict):
        given, notes = inside, (*notes, "the arguments were a string; read as JSON")
    if not isinstance(given, dict):
        raise _no_object()
    return Fitting(arguments=given, healed=notes, unchecked=reason)


def _no_object() -> InvalidArguments:
    return InvalidArguments(
        "`parameters` must be an object",
        suggestion='Give the tool\'s arguments by name: {"tool_name": "…", "parameters": {…}}.',
        options=("server_name", "tool_name", "parameters"),
    )


AT_ONCE = 1_000
"""Most steps of a check in the event loop: some 15 ms."""

_VALUES = 2_000
_LETTERS = 200_000
_SLOW = 1_000
"""Most definitions remembered as slow to check."""


class Aside:
    """Checks arguments in the event loop, or in a worker thread if that takes too many steps."""

    def __init__(self) -> None:
        self._checker = Checker()
        """Used only in the worker thread."""
        self._slow: set[str] = set()
        self._lock = anyio.Lock()

    async def fitting(self, spoken: Spoken, entry: Entry, checker: Checker, key: str) -> Fitting:
        """Return the result of `fitting`, by the given checker where that takes few steps, else in the worker
        thread."""
        if key not in self._slow and is_small(dict(spoken.said), values=_VALUES, letters=_LETTERS):
            try:
                return fitting(spoken, entry, checker, key, StepBudget(AT_ONCE), must_heal=True)
            except OutOfSteps:
                # A definition that took too many steps once is checked in the worker thread from then
                # on.
                if len(self._slow) >= _SLOW:
                    self._slow.clear()
                self._slow.add(key)
        async with self._lock:
            try:
                return await anyio.to_thread.run_sync(fitting, spoken, entry, self._checker, key)
            except OutOfSteps:
                return await anyio.to_thread.run_sync(unvalidated, spoken, entry)


_log = logging.getLogger(__name__)

HEALED = "dev.ullage/healed"
"""Key in a reply's `meta`: the repairs made to the arguments."""
UNCHECKED = "dev.ullage/unchecked"
"""Key in a reply's `meta`: why the arguments were not validated."""
_BUDGET = "max_tokens"
"""Key beside `parameters`: the most tokens that the caller wants back."""


@dataclass(frozen=True, slots=True)
class Calling:
    """Turns calls of `call_tool` and `call_tool_write` into calls of the tool they name."""

    inner: MergedSource
    hashes: Hashes
    checker: Checker
    aside: Aside = field(default_factory=Aside)
    limits: LimitLog = field(default_factory=lambda: LimitLog(_log))
    _waited: set[str] = field(default_factory=set[str])
    """Missing servers that were waited for in vain."""

    async def call(self, call: Call, settings: FindSettings) -> Reply:
        """Resolve, check and run a call.

        Raises:
            InvalidArguments: The tool is unknown, its arguments do not fit, or `call_tool` was used for a tool not
                known to be read-only.
        """
        spoken = read_call(call.arguments)
        entry, spoken = await self._meant(spoken, settings.start_wait)
        if call.tool == CALL.name and not settings.join_calls and not entry.is_read_only:
            wrong_door = InvalidArguments(
                f"`{entry.listed}` is not known to be read-only, and `{CALL.name}` runs only what is",
                suggestion=f"Call it with `{CALL_WRITE.name}` and the same arguments.",
                options=NAMES[2:],
            )
            raise wrong_door
        spoken, budget = _budgeted(spoken, entry)
        await self.hashes.find([entry.tool])
        fit = await self.aside.fitting(spoken, entry, self.checker, self.hashes.of(entry.tool))
        if fit.unchecked is not None:
            self.limits.warn(entry.listed, f"arguments of `{entry.listed}` are passed on unvalidated: {fit.unchecked}")
        meta = call.meta if budget is None else {**call.meta, BUDGET: budget}
        resolved = call.changed(tool=entry.listed, arguments=fit.arguments, meta=meta)
        reply = await self.inner.call_entry(entry, resolved)
        notes: Mapping[str, Json] = {
            **({HEALED: list[Json](fit.healed)} if fit.healed else {}),
            **({UNCHECKED: fit.unchecked} if fit.unchecked else {}),
        }
        return replace(reply, meta={**reply.meta, **notes}) if notes else reply

    async def _meant(self, spoken: Spoken, wait: float) -> tuple[Entry, Spoken]:
        """Find the tool, waiting once for each missing server that may have it."""
        view = await self.inner.view()
        self._waited.intersection_update(one.server for one in view.missing)
        try:
            return _found(view, spoken)
        except UnknownTool as error:
            late = view.late_owners(spoken.tool, spoken.server) - self._waited
            if not late:
                raise _unknown(error) from error
        view = await self.inner.view(wait)
        self._waited.update(late.intersection(one.server for one in view.missing))
        try:
            return _found(view, spoken)
        except UnknownTool as error:
            raise _unknown(error) from error


def _found(view: View, spoken: Spoken) -> tuple[Entry, Spoken]:
    """Find the tool by the name as written, since names may contain any character, then by its `bare` form."""
    try:
        return _found_as_said(view, spoken)
    except UnknownTool:
        if spoken.bare == spoken.tool:
            raise
        return _found_as_said(view, replace(spoken, tool=spoken.bare))


def _found_as_said(view: View, spoken: Spoken) -> tuple[Entry, Spoken]:
    try:
        return view.find(spoken.tool, spoken.server), spoken
    except UnknownTool:
        if spoken.server is None or spoken.server in view.servers:
            named = None
        else:
            named = next((entry for entry in view.entries if entry.listed == spoken.tool), None)
        if named is None:
            raise
        note = f"no server is called `{spoken.server}`; the tool's name says which"
        return named, replace(spoken, notes=(*spoken.notes, note))


def _budgeted(spoken: Spoken, entry: Entry) -> tuple[Spoken, int | None]:
    """Return the call without the budget beside it, and that budget. A tool's own `max_tokens` parameter is left in
    place."""
    properties, budget = entry.tool.input_schema.get("properties"), spoken.beside.get(_BUDGET)
    is_the_tools = isinstance(properties, dict) and _BUDGET in properties
    if is_the_tools or not isinstance(budget, int) or isinstance(budget, bool):
        return spoken, None
    beside, said = dict(spoken.beside), dict(spoken.said)
    del beside[_BUDGET], said[_BUDGET]
    return replace(spoken, beside=beside, said=said), budget


def _unknown(error: UnknownTool) -> InvalidArguments:
    """Convert the error: an unknown tool in `call_tool`'s arguments is a failed result, not a protocol error."""
    return InvalidArguments(error.message, suggestion=error.suggestion, options=error.options)
