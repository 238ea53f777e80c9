"""`call_tool`: resolves the tool that is meant, repairs the arguments and makes the call.

Finds the tool that is meant, keeps what may change something out of the door for reading, and makes the arguments
fit. A tool that only reads may go through the other door: nobody is harmed, and refusing would cost a round trip.
Whether a call is allowed at all, the inner source decides.

`call_tool` has arguments of its own around the tool's, and models mix the two up: the tool's name inside `parameters`,
its arguments beside `tool_name`, everything in one string, `server__tool` as the server. This reads all of them and
says what it had to mend. It knows no tools: a name is kept as it was said, and where a tool has a parameter called like
one of the words for `parameters`, whoever knows the tool asks again (`Spoken.of_a_tool_with`).

Checks of a call's arguments that do not hold up other calls.

Most take a few hundred steps and are done at once. Where arguments or schema need more, the check begins anew in a
worker thread with a larger budget, one call after another. Where even that is spent, the arguments pass unvalidated.

The arguments with which the real tool is called.

Takes what a caller said, checks it against the tool's own schema and mends what can be mended. What fits as it is goes
out as it is. Everything here spends from one `StepBudget` for each call.
"""

import logging
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace

import anyio
import anyio.to_thread

from ullage.errors import InvalidArguments, UnknownTool
from ullage.tool import Call, Json, JsonObject, Reply

from ..merge.tool_view import Entry, View
from ..results import BUDGET
from ..slim.schema_walk import is_small
from ..tool_source import LimitLog, OutOfSteps, StepBudget
from .argument_repair import heal, misfit, parsed
from .find_settings import FindSettings, Searched
from .tool_forms import CALL, CALL_WRITE, NAMES
from .tool_index import Hashes
from .validate_arguments import STEPS, Checker

__all__ = [
    "AT_ONCE",
    "HEALED",
    "TOO_COMPLEX",
    "UNCHECKED",
    "Aside",
    "Calling",
    "Fitting",
    "Spoken",
    "fitting",
    "read_call",
    "unvalidated",
]

_TOOL = ("tool_name", "toolName", "tool", "name")
_SERVER = ("server_name", "serverName", "server")
"""The last only beside parameters: where there are none, it may well be one itself."""
_PARAMETERS = ("parameters", "params", "arguments", "args", "input", "tool_input")
_KEYS = ("server_name", "tool_name", "parameters")
_LAYERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """What a call says."""

    tool: str
    """As it was said."""
    server: str | None = None
    parameters: Json = field(default_factory=dict[str, Json])
    """An object, or whatever else was sent in its place."""
    beside: JsonObject = field(default_factory=dict[str, Json])
    """What stood beside `parameters` and is none of call_tool's own arguments."""
    notes: tuple[str, ...] = ()
    said: JsonObject = field(default_factory=dict[str, Json])
    """All that was said besides the names."""
    read_from: str | None = None
    """The word that stood for `parameters`."""

    @property
    def bare(self) -> str:
        """The name out of a line that was copied whole: `name(args) — sentence [write]`."""
        name = self.tool.split("(", 1)[0].split(" — ", 1)[0].split(" [", 1)[0]
        return name.strip().strip("`'\"") or self.tool

    def of_a_tool_with(self, properties: Container[str]) -> "Spoken":
        """The same call of a tool that has these parameters: what is called like one of them is an argument.

        `parameters` itself is one only where the tool's others all stand beside it and none of them in it.
        """
        if self.read_from is None or self.read_from not in properties:
            return self
        all_beside = bool(self.beside) and all(name in properties for name in self.beside)
        if self.read_from == _PARAMETERS[0] and (not all_beside or self.holds_any(properties)):
            return self
        notes = tuple(note for note in self.notes if note != _read_as(self.read_from, _PARAMETERS[0]))
        words = tuple(word for word in _PARAMETERS if word not in properties)
        return _with_parameters(replace(self, notes=notes), words)

    def holds_any(self, properties: Container[str]) -> bool:
        """Whether any of these stands in what was read as the parameters."""
        inside = _opened(self.parameters)
        return isinstance(inside, dict) and any(name in properties for name in inside)


def read_call(arguments: JsonObject) -> Spoken:
    """Raises `InvalidArguments` where no tool is named."""
    for from_server in (False, True):
        for depth, (layer, outer) in enumerate(_layers(arguments)):
            spoken = _read(layer, outer, from_server=from_server)
            if spoken is not None:
                notes = ("the call stood inside `parameters`; taken out",) if depth else ()
                return replace(spoken, notes=(*notes, *spoken.notes))
    raise InvalidArguments(
        "`tool_name` is missing",
        suggestion='Give {"tool_name": "…", "parameters": {…}}; `find_tool` finds the name.',
        options=_KEYS,
    )


def _layers(arguments: JsonObject) -> Iterator[tuple[dict[str, Json], dict[str, Json]]]:
    """The call, then what stands inside its parameters, each with what was said around it."""
    layer, outer = dict(arguments), dict[str, Json]()
    for _ in range(_LAYERS):
        yield layer, outer
        key = next((key for key in _PARAMETERS if key in layer), None)
        inner = _opened(layer[key]) if key else None
        if key is None or not isinstance(inner, dict):
            return
        outer = outer | {name: value for name, value in layer.items() if name != key}
        layer = inner


def _read(layer: dict[str, Json], outer: dict[str, Json], *, from_server: bool) -> Spoken | None:
    """The call that this layer is, if it names a tool; `from_server` says to look for its name there too."""
    rest = outer | layer
    has_parameters = any(key in rest for key in _PARAMETERS)
    tool_key, tool = _taken(rest, _TOOL)
    server_key, server = _taken(rest, _SERVER if has_parameters else _SERVER[:-1])
    if tool is None and from_server:
        tool_key, tool, server_key, server = server_key, server, None, None
    if tool is None:
        return None
    read = ((tool_key, _TOOL[0]), (server_key, _SERVER[0]))
    notes = tuple(_read_as(key, own) for key, own in read if key not in (None, own))
    return _with_parameters(Spoken(tool=tool, server=server, said=rest, notes=notes), _PARAMETERS)


def _with_parameters(spoken: Spoken, words: tuple[str, ...]) -> Spoken:
    """The call with its parameters under the first of the words that was said, and the rest beside them."""
    beside = dict(spoken.said)
    key = next((word for word in words if word in beside), None)
    parameters = beside.pop(key) if key else None
    notes = () if key in (None, _PARAMETERS[0]) else (_read_as(key, _PARAMETERS[0]),)
    return replace(
        spoken,
        parameters={} if parameters is None or parameters == "" else parameters,
        beside=beside,
        read_from=key,
        notes=(*spoken.notes, *notes),
    )


def _read_as(key: str | None, own: str) -> str:
    return f"`{key}` read as `{own}`"


def _taken(layer: dict[str, Json], keys: tuple[str, ...]) -> tuple[str | None, str | None]:
    """The first of the keys that holds a text, with it; taken out of the layer, as is the first that holds nothing."""
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
    arguments: JsonObject
    healed: tuple[str, ...] = ()
    """What was mended, in sentences."""
    unchecked: str | None = None
    """Why the arguments were not checked, where they were not."""


def fitting(  # noqa: PLR0913
    spoken: Spoken,
    entry: Entry,
    checker: Checker,
    key: str,
    budget: StepBudget | None = None,
    *,
    must_heal: bool = False,
) -> Fitting:
    """Checks and mends the arguments of a call.

    Args:
        key: Stands for the tool's definition.
        budget: Of the whole call; `STEPS` where none is given.
        must_heal: Whether running out of steps while mending is an error, and not the end of mending.

    Raises:
        InvalidArguments: They neither fit nor can be mended.
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
    names = (entry.listed, entry.original)
    try:
        healed = heal(
            given, dict(schema), lambda value: checker.check(key, schema, value, budget).fits, names, budget=budget
        )
    except OutOfSteps:
        if must_heal:
            raise
        healed = None
    if healed is not None:
        return Fitting(arguments=healed.arguments, healed=(*notes, *healed.notes))
    raise misfit(entry.tool, verdict.misfit) if verdict.misfit and isinstance(given, dict) else _no_object()


def unvalidated(spoken: Spoken, entry: Entry) -> Fitting:
    """The arguments as they came, for a call whose check takes too many steps."""
    given, notes = _gathered(spoken.of_a_tool_with(_properties(entry.tool.input_schema)), entry)
    return _unchecked(given, notes, TOO_COMPLEX)


def _properties(schema: JsonObject) -> Container[str]:
    """The tool's own parameters."""
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else ()


def _gathered(spoken: Spoken, entry: Entry) -> tuple[Json, tuple[str, ...]]:
    """The parameters, with what stood beside them."""
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
"""Steps taken in the event loop: some 15 ms."""

_VALUES = 2_000
_LETTERS = 200_000
_SLOW = 1_000
"""Definitions remembered for taking long."""


class Aside:
    """A worker thread's checker, and the way to it."""

    def __init__(self) -> None:
        self._checker = Checker()
        """For that thread alone."""
        self._slow: set[str] = set()
        self._lock: anyio.Lock | None = None

    async def fitting(self, spoken: Spoken, entry: Entry, checker: Checker, key: str) -> Fitting:
        """What `fitting` says, by this checker where that takes few steps."""
        if key not in self._slow and is_small(dict(spoken.said), values=_VALUES, letters=_LETTERS):
            try:
                return fitting(spoken, entry, checker, key, StepBudget(AT_ONCE), must_heal=True)
            except OutOfSteps:
                # A definition that took too many steps once is checked in the worker thread from then
                # on.
                if len(self._slow) >= _SLOW:
                    self._slow.clear()
                self._slow.add(key)
        async with self._one_at_a_time():
            try:
                return await anyio.to_thread.run_sync(fitting, spoken, entry, self._checker, key)
            except OutOfSteps:
                return await anyio.to_thread.run_sync(unvalidated, spoken, entry)

    def _one_at_a_time(self) -> anyio.Lock:
        """Made late: a lock belongs to the event loop that is running."""
        if self._lock is None:
            self._lock = anyio.Lock()
        return self._lock


_log = logging.getLogger(__name__)

HEALED = "dev.ullage/healed"
"""In a reply's `meta`: what was mended in the arguments."""
UNCHECKED = "dev.ullage/unchecked"
"""In a reply's `meta`: why the arguments were not checked."""
_BUDGET = "max_tokens"
"""Beside `parameters`: the tokens that the caller wants at most."""


@dataclass(frozen=True, slots=True)
class Calling:
    """Turns calls of `call_tool` into calls of what is meant."""

    inner: Searched
    hashes: Hashes
    checker: Checker
    aside: Aside = field(default_factory=Aside)
    limits: LimitLog = field(default_factory=lambda: LimitLog(_log))

    async def call(self, call: Call, settings: FindSettings) -> Reply:
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
        reply = await self.inner.call(replace(call, tool=entry.listed, arguments=fit.arguments, meta=meta))
        notes: Mapping[str, Json] = {
            **({HEALED: list[Json](fit.healed)} if fit.healed else {}),
            **({UNCHECKED: fit.unchecked} if fit.unchecked else {}),
        }
        return replace(reply, meta={**reply.meta, **notes}) if notes else reply

    async def _meant(self, spoken: Spoken, wait: float) -> tuple[Entry, Spoken]:
        view = await self.inner.view()
        try:
            return _found(view, spoken)
        except UnknownTool as error:
            if not view.missing:
                raise _unknown(error) from error
        try:
            return _found(await self.inner.view(wait), spoken)
        except UnknownTool as error:
            raise _unknown(error) from error


def _found(view: View, spoken: Spoken) -> tuple[Entry, Spoken]:
    """By the name as it was said, for tools are called all sorts of things; only then by what it begins with."""
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
        named = _by_full_name(view, spoken)
        if named is None:
            raise
        note = f"no server is called `{spoken.server}`; the tool's name says which"
        return named, replace(spoken, notes=(*spoken.notes, note))


def _by_full_name(view: View, spoken: Spoken) -> Entry | None:
    """The tool that is listed by exactly this name, where the server beside it does not exist and so cannot differ."""
    if spoken.server is None or spoken.server in view.servers:
        return None
    return next((entry for entry in view.entries if entry.listed == spoken.tool), None)


def _budgeted(spoken: Spoken, entry: Entry) -> tuple[Spoken, int | None]:
    """The call without the budget that stood beside it, and that; a tool's own parameter of the name is the tool's."""
    properties, budget = entry.tool.input_schema.get("properties"), spoken.beside.get(_BUDGET)
    is_the_tools = isinstance(properties, dict) and _BUDGET in properties
    if is_the_tools or not isinstance(budget, int) or isinstance(budget, bool):
        return spoken, None
    beside, said = dict(spoken.beside), dict(spoken.said)
    del beside[_BUDGET], said[_BUDGET]
    return replace(spoken, beside=beside, said=said), budget


def _unknown(error: UnknownTool) -> InvalidArguments:
    """`call_tool` itself is known; that its argument names no tool is a failed result, no error of the protocol."""
    return InvalidArguments(error.message, suggestion=error.suggestion, options=error.options)
