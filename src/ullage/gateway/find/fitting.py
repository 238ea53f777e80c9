"""The arguments with which the real tool is called.

Takes what a caller said, checks it against the tool's own schema and mends what can be mended. What fits as it is goes
out as it is. Everything here spends from one `StepBudget` for each call.
"""

from collections.abc import Container
from dataclasses import dataclass

from ullage.errors import InvalidArguments
from ullage.tool import Json, JsonObject

from ..merge.view import Entry
from ..step_budget import OutOfSteps, StepBudget
from .envelope import Spoken
from .heal import heal, parsed
from .misfit import misfit
from .validate import STEPS, Checker

__all__ = ["TOO_COMPLEX", "Fitting", "fitting", "unvalidated"]

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
        if not _is_its_own(spoken, entry) or not checker.check(key, schema, dict(spoken.said), budget).fits:
            raise
        return Fitting(arguments=spoken.said, healed=(*spoken.notes, "`parameters` read as the tool's own parameter"))


def _is_its_own(spoken: Spoken, entry: Entry) -> bool:
    """Whether what stood under `parameters` may be the tool's parameter of that name."""
    properties = _properties(entry.tool.input_schema)
    return spoken.read_from == "parameters" and "parameters" in properties and not spoken.holds_any(properties)


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
