"""Mending of arguments that do not fit their tool's schema.

Models wrap arguments once more, send objects as strings, write `issueNumber` for `issue_number` and one value where a
list is wanted. What is meant is then plain, and asking again costs a round trip, so it is mended: only where the
arguments do not fit as they are, only by steps that lose nothing, and only if the result fits the schema. Every step is
put into words for the caller. Whether something fits, the caller's `fits` says.

The error for a caller whose arguments do not fit.

Where and what, in a sentence; the part of the schema that matters, short enough to be read; and the names or values
that would have done. The caller's own values are not repeated: they are known to it, may be long and may be secret.

The verdict on a call's arguments.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ullage.errors import InvalidArguments
from ullage.tool import Json, Tool

from ..merge.tool_names import nearest
from ..slim.schema_walk import Schema, is_small
from ..tool_source import StepBudget
from .tool_forms import written

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

__all__ = ["Healed", "Verdict", "heal", "misfit", "parsed"]

_WRAPPERS = frozenset({"parameters", "params", "arguments", "args", "input", "tool_input", "tool_arguments", "kwargs"})
_LAYERS = 3
_DEEPEST = 6
_STEPS = 50_000
_NAMES = 8
"""Names compared in the time of one step."""
_LETTERS = 500
"""Characters of JSON read in the time of one step."""
_LONGEST = 1_000_000
"""Characters of JSON beyond which a text is not read: reading them would hold up everything else."""
_SEPARATORS = re.compile(r"[\W_]+")
_TYPES: dict[type, tuple[str, ...]] = {
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    str: ("string",),
    list: ("array",),
    dict: ("object",),
    type(None): ("null",),
}


@dataclass(frozen=True, slots=True)
class Healed:
    """Arguments that fit, and what was done to make them."""

    arguments: dict[str, Json]
    notes: tuple[str, ...]


def heal(
    arguments: Json,
    schema: Schema,
    fits: Callable[[Json], bool],
    names: Sequence[str] = (),
    *,
    budget: StepBudget | None = None,
) -> Healed | None:
    """Arguments that fit, made from some that do not; None where there is no plain way.

    Args:
        names: The tool's own, which some models put around its arguments.

    Raises:
        OutOfSteps: The budget was spent before a way was found.
    """
    budget = StepBudget(_STEPS) if budget is None else budget
    for layers, base in _unwrapped(arguments, {*_WRAPPERS, *names}):
        if layers and isinstance(base, dict) and fits(base):
            return Healed(base, layers)
        mender = _Mender(schema, budget)
        mended = mender.value(base, schema, "", 0)
        if mender.notes and isinstance(mended, dict) and fits(mended):
            return Healed(mended, (*layers, *mender.notes))
    return None


def parsed(text: str) -> Json:
    """The JSON of a text; the text itself where it is none, too long, or means more than it says (`NaN`, `1e999`)."""
    if len(text) > _LONGEST:
        return text
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return text


def _refuse(constant: str) -> Json:
    raise ValueError(constant)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(digits)
    return number


def _unwrapped(arguments: Json, wrappers: set[str]) -> Iterator[tuple[tuple[str, ...], Json]]:
    """The arguments as they are, then with one layer after another taken off."""
    notes: tuple[str, ...] = ()
    yield notes, arguments
    for _ in range(_LAYERS):
        if isinstance(arguments, str):
            note, arguments = "the arguments were a string; read as JSON", parsed(arguments)
        elif isinstance(arguments, dict) and len(arguments) == 1 and (key := next(iter(arguments))) in wrappers:
            note, arguments = f"the arguments stood inside `{key}`; taken out", arguments[key]
        else:
            return
        notes = (*notes, note)
        yield notes, arguments


class _Mender:
    """Changes what a schema does not take into what it does, where there is one way to."""

    def __init__(self, root: Schema, budget: StepBudget) -> None:
        self._root = root
        self._budget = budget
        self.notes: list[str] = []

    def value(self, value: Json, schema: Json, path: str, depth: int) -> Json:
        self._budget.spend()
        shape = self._resolved(schema)
        if shape is None or depth > _DEEPEST:
            return value
        value = self._typed(value, self._wanted(shape), path)
        if isinstance(value, dict):
            return self._members(value, shape, path, depth)
        items = shape.get("items")
        if isinstance(value, list) and isinstance(items, dict):
            return [self.value(each, items, f"{path}[{at}]", depth + 1) for at, each in enumerate(value)]
        return value

    def _resolved(self, schema: Json) -> Schema | None:
        """The schema, or the part of this document that it refers to."""
        for _ in range(_DEEPEST):
            if not isinstance(schema, dict):
                return None
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return schema
            schema = _part(self._root, reference)
        return None

    def _members(self, value: dict[str, Json], shape: Schema, path: str, depth: int) -> Json:
        properties = shape.get("properties")
        if not isinstance(properties, dict):
            return value
        required = shape.get("required")
        mended: dict[str, Json] = {}
        for key, member in self._renamed(value, properties, path).items():
            place = f"{path}.{key}" if path else key
            if member is None and self._is_spare(properties.get(key), key, required):
                self.notes.append(f"`{place}` was null and may be left out; left out")
            else:
                mended[key] = self.value(member, properties.get(key), place, depth + 1)
        return mended

    def _is_spare(self, schema: Json, key: str, required: Json) -> bool:
        """Whether null is not taken here, and nothing is asked for either."""
        shape = self._resolved(schema)
        wanted = self._wanted(shape) if shape is not None else frozenset[str]()
        return bool(wanted) and "null" not in wanted and not (isinstance(required, list) and key in required)

    def _renamed(self, value: dict[str, Json], properties: Schema, path: str) -> dict[str, Json]:
        """Keys that are no parameter's, but spelt like exactly one that is not given."""
        self._budget.spend((len(properties) + len(value)) // _NAMES)
        spelt: dict[str, list[str]] = {}
        for name in properties:
            spelt.setdefault(_plain(name), []).append(name)
        renamed: dict[str, Json] = {}
        for key, member in value.items():
            alike = spelt.get(_plain(key), [])
            if key not in properties and len(alike) == 1 and alike[0] not in value and alike[0] not in renamed:
                self.notes.append(f"`{path}{'.' if path else ''}{key}` read as `{alike[0]}`")
                renamed[alike[0]] = member
            else:
                renamed[key] = member
        return renamed

    def _wanted(self, schema: Schema, depth: int = 0) -> frozenset[str]:
        """The types that the schema takes, on its own word; empty where it does not say."""
        self._budget.spend()
        declared = schema.get("type")
        if isinstance(declared, str):
            return frozenset({declared})
        if isinstance(declared, list):
            return frozenset(each for each in declared if isinstance(each, str))
        branches = schema.get("anyOf") or schema.get("oneOf")
        if not isinstance(branches, list) or depth > _DEEPEST:
            return frozenset()
        found = set[str]()
        for branch in branches:
            shape = self._resolved(branch)
            taken = self._wanted(shape, depth + 1) if shape is not None else None
            if not taken:
                return frozenset()
            found |= taken
        return frozenset(found)

    def _typed(self, value: Json, wanted: frozenset[str], path: str) -> Json:
        if not wanted or wanted.intersection(_types(value)):
            return value
        if isinstance(value, str):
            self._budget.spend(len(value) // _LETTERS)
            meant = _meant(value, wanted)
            if wanted.intersection(_types(meant)):
                self.notes.append(f"`{path or 'the arguments'}` was a string; read as {_types(meant)[0]}")
                return meant
        if isinstance(value, int) and not isinstance(value, bool) and "string" in wanted:
            self.notes.append(f"`{path}` was a number; written as a string")
            return str(value)
        if "array" in wanted and value is not None and path:
            self.notes.append(f"`{path}` was one value; made a list of it")
            return [value]
        return value


def _meant(text: str, wanted: frozenset[str]) -> Json:
    """What a string stands for where no string is wanted."""
    if "boolean" in wanted and text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    return parsed(text)


def _types(value: Json) -> tuple[str, ...]:
    """The names that schemas have for the value's type, the nearest first."""
    if isinstance(value, float) and value.is_integer():
        return ("number", "integer")
    return _TYPES[type(value)]


def _part(root: Schema, reference: str) -> Json:
    found: Json = root
    if not reference.startswith("#"):
        return None
    for step in reference.removeprefix("#").split("/")[1:]:
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name).casefold()


_FRAGMENT = 800
"""Characters of schema that are shown: some 200 tokens."""
_VALUES = 10
_STRANGERS = 3
"""Unknown names for which the nearest parameters are looked up."""
_KNOWN = 500
"""Parameters among which they are looked up."""
_MISFIT_LETTERS = 100_000
"""Of a part of a schema that may be shown once its words are left out."""
_SAID = 160
_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def misfit(tool: Tool, error: "ValidationError") -> InvalidArguments:
    path = _path(error.absolute_path)
    return InvalidArguments(
        f"`{tool.name}` was not called: {_problem(error, path)}",
        suggestion=f"It takes {_fragment(tool, error)}",
        options=_options(error),
    )


def _path(steps: Iterable[str | int]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return _cut(text.removeprefix("."))


def _problem(error: "ValidationError", path: str) -> str:
    place = f"`{path}`" if path else "it"
    value: Any = error.validator_value
    keyword = cast("str | None", error.validator)
    match keyword:
        case "required":
            given = frozenset(_keys(error.instance))
            absent = [name for name in _names(value) if name not in given]
            return f"{_listed(absent)} missing{f' in {place}' if path else ''}"
        case "additionalProperties" | "unevaluatedProperties":
            strange = _strangers(error)
            return f"{_listed(strange)} not {'a parameter' if len(strange) == 1 else 'parameters'} of {place}"
        case "type":
            return f"{place} must be {_either(value)}, not {_kind(error.instance)}"
        case "enum" | "const":
            return f"{place} must be {_either(_allowed(error))}"
        case "anyOf" | "oneOf" | "not" | "if" | "allOf":
            return f"{place} fits none of the forms it may have"
        case "pattern":
            return f"{place} must match {_cut(str(value))}"
        case None:
            return f"{place} is not allowed"
        case _:
            return f"{place} must have {keyword} {_cut(_text(value))}"


def _kind(value: object) -> str:
    return next((name for kind, name in _KINDS.items() if isinstance(value, kind)), "null")


def _strangers(error: "ValidationError") -> list[str]:
    known = frozenset(_keys(error.schema.get("properties") if isinstance(error.schema, Mapping) else None))
    return [name for name in _keys(error.instance) if name not in known]


def _options(error: "ValidationError") -> tuple[str, ...]:
    """The names or values that would have done, the nearest first."""
    if error.validator in ("enum", "const"):
        return tuple(_text(value) for value in _allowed(error)[:_VALUES])
    schema = error.schema
    known = _keys(schema.get("properties") if isinstance(schema, Mapping) else None)
    if error.validator == "required":
        given = frozenset(_keys(error.instance))
        return tuple(name for name in _names(error.validator_value) if name not in given)[:_VALUES]
    if error.validator in ("additionalProperties", "unevaluatedProperties"):
        given = frozenset(_keys(error.instance))
        spellings = [(name,) for name in known[:_KNOWN]]
        near = [one for name in _strangers(error)[:_STRANGERS] for one in nearest(name, spellings, most=3)]
        return tuple(dict.fromkeys([*near, *(name for name in known if name not in given)]))[:_VALUES]
    return ()


def _fragment(tool: Tool, error: "ValidationError") -> str:
    """The part that was broken where that is a parameter, else the whole tool in a line."""
    path = _path(error.absolute_path)
    return _shown(path, cast("Json", error.schema)) if path else _cut(_signature(tool), _FRAGMENT)


def _shown(name: str, schema: Json) -> str:
    for said in (schema, _without_words(schema)) if is_small(schema, values=_FRAGMENT, letters=_MISFIT_LETTERS) else ():
        text = f"{name}: {written(said)}"
        if len(text) <= _FRAGMENT:
            return text
    whole: Schema = {"type": "object", "properties": {name: schema}, "required": [name]}
    return _cut(_signature(Tool(name="", input_schema=whole)), _FRAGMENT)


def _without_words(schema: Json) -> Json:
    """Without what explains and does not assert."""
    if isinstance(schema, list):
        return [_without_words(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    silent = ("description", "title", "examples", "default")
    return {key: _without_words(value) for key, value in schema.items() if key not in silent or isinstance(value, dict)}


def _allowed(error: "ValidationError") -> list[Any]:
    value: Any = error.validator_value
    return list(value) if error.validator == "enum" else [value]


def _text(value: Json) -> str:
    """A value that would have done, as far as it is short."""
    if isinstance(value, str):
        return value if len(value) <= _FRAGMENT else _cut(value)
    return written(value) if is_small(value, values=_FRAGMENT, letters=_FRAGMENT) else f"a long {_kind(value)}"


def _either(values: Json) -> str:
    listed = values if isinstance(values, list) else [values]
    shown = [_cut(_text(each)) for each in listed[:_VALUES]]
    return _cut(" or ".join(shown) + (" or …" if len(listed) > _VALUES else ""))


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"`{_cut(name)}`" for name in names[:_VALUES])
    return f"{shown} {'is' if len(names) == 1 else 'are'}"


def _names(value: object) -> list[str]:
    return [each for each in cast("list[object]", value) if isinstance(each, str)] if isinstance(value, list) else []


def _keys(value: object) -> list[str]:
    return list(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else []


def _cut(text: str, most: int = _SAID) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _signature(tool: Tool) -> str:
    from ..slim import signature  # with all that makes signatures, for calls that go wrong

    return signature(tool)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the arguments fit; `misfit` is the error that says most where they do not.

    What was not checked neither fits nor does not.
    """

    misfit: "ValidationError | None" = None
    unchecked: str | None = None
    """Why nothing was checked, where nothing was."""

    @property
    def fits(self) -> bool:
        return self.misfit is None and self.unchecked is None
