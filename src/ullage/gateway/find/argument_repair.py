"""Repair of arguments that do not fit their tool's schema, and the error for those that cannot be repaired.

Models wrap arguments once more, send objects as strings (as JSON or as Python writes them), write `issueNumber` for
`issue_number`, `filter.since` for a key inside `filter`, `yes` for `true`, an empty text where nothing is meant, and a
single value where a list is required or the other way round. The intention is then clear, and an error would cost a
round trip, so the arguments are repaired: only if they do not fit as they are, only by steps that lose nothing, and
only if the result fits the schema. Each step is described to the caller. The given `fits` decides whether arguments
fit.

The error states in one sentence where and what is wrong, with the relevant part of the schema, short enough to be
read, and the names or values that would have been accepted. It does not repeat the caller's values: the caller knows
them, and they may be long or secret.
"""

import ast
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

__all__ = ["Healed", "Verdict", "heal", "misfit", "parsed", "repairs"]

_WRAPPERS = frozenset(
    {"parameters", "params", "arguments", "args", "kwargs", "input", "inputs", "tool_input", "tool_args"}
    | {"tool_arguments", "properties", "payload", "body", "request", "data"}
)
_LAYERS = 3
_DEEPEST = 6
_STEPS = 50_000
_NAMES = 8
"""Names that cost one step to compare."""
_LETTERS = 500
"""Characters of JSON that cost one step to read."""
_LONGEST = 1_000_000
"""Most characters of JSON that are parsed; more would delay other calls."""
_LONGEST_LITERAL = 20_000
"""Most characters that are parsed as Python writes them."""
_MOST_BRACKETS = 60
_FENCED = re.compile(r"\s*```\w*\s*\n(.*)\n\s*```\s*", re.DOTALL)
_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_NOTHING = frozenset({"", "null", "none", "undefined", "nil"})
_INNER_KEY = re.compile(r"([^.\[\]]+)(?:\.([^\[\]]+)|\[([^\[\].]+)\](.*))")
"""Matches `filter.since` and `filter[since]`."""
_SEPARATORS = re.compile(r"[\W_]+")
_LONGEST_KEY = 200
_BRANCHES = ("anyOf", "oneOf", "allOf")
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
    """Repaired arguments, and the repairs."""

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
    """Return repaired arguments; None if there is no unambiguous repair.

    Args:
        names: The tool's own names, which some models wrap around its arguments.

    Raises:
        OutOfSteps: The budget was spent before a repair was found.
    """
    budget = StepBudget(_STEPS) if budget is None else budget
    return next((one for one in repairs(arguments, schema, names, budget) if fits(one.arguments)), None)


def repairs(arguments: Json, schema: Schema, names: Sequence[str], budget: StepBudget) -> Iterator[Healed]:
    """Yield the arguments after more and more repairs, whether they fit or not.

    Raises:
        OutOfSteps: The budget was spent.
    """
    for layers, base in _unwrapped(arguments, {*_WRAPPERS, *names}):
        if layers and isinstance(base, dict):
            yield Healed(base, layers)
        mender = _Mender(schema, budget)
        mended = mender.value(base, schema, "", 0)
        if mender.notes and isinstance(mended, dict):
            yield Healed(mended, (*layers, *mender.notes))


def parsed(text: str) -> Json:
    """Parse a text as JSON; return the text itself if it is not JSON, too long, or has values such as `NaN` or
    `1e999`."""
    if len(text) > _LONGEST:
        return text
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return text


def _read(text: str) -> Json:
    """Parse a text as JSON, also inside a Markdown fence, or as Python writes lists, objects, None, True and False."""
    fenced = _FENCED.fullmatch(text) if len(text) <= _LONGEST else None
    text = fenced[1] if fenced else text
    found = parsed(text)
    if found is not text or len(text) > _LONGEST_LITERAL or sum(map(text.count, "[({")) > _MOST_BRACKETS:
        return found
    if text.strip()[:1] not in ("[", "(", "{") and text.strip() not in ("None", "True", "False"):
        return text
    try:
        # As JSON has it: no sets, bytes or complex numbers, and tuples as lists.
        return json.loads(json.dumps(ast.literal_eval(text.strip()), allow_nan=False))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return text


def _refuse(constant: str) -> Json:
    raise ValueError(constant)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(digits)
    return number


def _unwrapped(arguments: Json, wrappers: set[str]) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Yield the arguments, then the arguments with one wrapper after another removed."""
    notes: tuple[str, ...] = ()
    yield notes, arguments
    for _ in range(_LAYERS):
        if isinstance(arguments, str):
            note, arguments = "the arguments were a string; read as JSON", _read(arguments)
        elif isinstance(arguments, dict) and len(arguments) == 1 and (key := next(iter(arguments))) in wrappers:
            note, arguments = f"the arguments stood inside `{key}`; taken out", arguments[key]
        else:
            return
        notes = (*notes, note)
        yield notes, arguments


class _Mender:
    """Converts values that a schema refuses into accepted ones, where there is exactly one way."""

    def __init__(self, root: Schema, budget: StepBudget) -> None:
        self._root = root
        self._budget = budget
        self.notes: list[str] = []

    def value(self, value: Json, schema: Json, path: str, depth: int) -> Json:
        self._budget.spend()
        shape = self._resolved(schema)
        if shape is None or depth > _DEEPEST:
            return value
        value = self._typed(value, shape, path)
        shape = self._branch_for(value, shape)
        value = self._chosen(value, shape.get("enum"), path)
        if isinstance(value, dict):
            properties, others = shape.get("properties"), shape.get("additionalProperties")
            properties = properties if isinstance(properties, dict) else {}
            if not properties and not isinstance(others, dict):
                return value
            required = shape.get("required")
            mended: dict[str, Json] = {}
            for key, member in self._renamed(self._nested(value, properties, path), properties, path).items():
                place = f"{path}.{key}" if path else key
                inner = properties.get(key, others)
                if self._is_spare(member, inner, key, required):
                    what = "null" if member is None else "empty"
                    self.notes.append(f"`{place}` was {what} and may be left out; left out")
                else:
                    mended[key] = self.value(member, inner, place, depth + 1)
            return mended
        items = shape.get("items")
        if isinstance(value, list) and isinstance(items, dict):
            return [self.value(each, items, f"{path}[{at}]", depth + 1) for at, each in enumerate(value)]
        return value

    def _branch_for(self, value: Json, shape: Schema) -> Schema:
        """Return the only alternative of `anyOf`, `oneOf` or `allOf` that takes a value of this type; the schema itself
        if it names no alternatives or several would."""
        branches = next((many for word in _BRANCHES if isinstance(many := shape.get(word), list)), None)
        if branches is None or shape.keys() & {"properties", "items", "enum"}:
            return shape
        types, found = _types(value), list[Schema]()
        for branch in branches:
            one = self._resolved(branch)
            if one is not None and self._wanted(one).intersection(types):
                found.append(one)
        return found[0] if len(found) == 1 else shape

    def _nested(self, value: dict[str, Json], properties: Schema, path: str) -> dict[str, Json]:
        """Move `filter.since` into `filter`, where only `filter` is a parameter."""
        found: dict[str, Json] = {}
        moved: list[tuple[str, str, str]] = []
        for key, member in value.items():
            parts = None if key in properties or len(key) > _LONGEST_KEY else _INNER_KEY.fullmatch(key)
            if parts is None or parts[1] not in properties:
                found[key] = member
            else:
                moved.append((key, parts[1], parts[2] or f"{parts[3]}{parts[4]}"))
        for key, outer, inner in moved:
            holder = found.get(outer, {})
            if isinstance(holder, dict) and inner not in holder:
                self.notes.append(f"`{f'{path}.' if path else ''}{key}` read as `{inner}` inside `{outer}`")
                found[outer] = {**holder, inner: value[key]}
            else:
                found[key] = value[key]
        return found

    def _resolved(self, schema: Json) -> Schema | None:
        """Return the schema, or the part of this document that it refers to."""
        for _ in range(_DEEPEST):
            if not isinstance(schema, dict):
                return None
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return schema
            found: Json = self._root if reference.startswith("#") else None
            for step in reference.removeprefix("#").split("/")[1:]:
                found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
            schema = found
        return None

    def _is_spare(self, value: Json, schema: Json, key: str, required: Json) -> bool:
        """Return whether a key is not required and its value is null, or a text for nothing, which is not accepted."""
        is_text = isinstance(value, str) and value.strip().lower() in _NOTHING
        if not (value is None or is_text) or (isinstance(required, list) and key in required):
            return False
        shape = self._resolved(schema)
        wanted = self._wanted(shape) if shape is not None else frozenset[str]()
        if not wanted or "null" in wanted or shape is None:
            return False
        choices = self._branch_for("", shape).get("enum")
        return not is_text or "string" not in wanted or (isinstance(choices, list) and value not in choices)

    def _renamed(self, value: dict[str, Json], properties: Schema, path: str) -> dict[str, Json]:
        """Rename unknown keys that are a spelling of exactly one parameter that is not given."""
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
        """Return the types that the schema itself names; empty if it names none."""
        self._budget.spend()
        declared = schema.get("type")
        if isinstance(declared, str):
            return frozenset({declared})
        if isinstance(declared, list):
            return frozenset(each for each in declared if isinstance(each, str))
        branches = next((many for word in _BRANCHES if isinstance(many := schema.get(word), list) and many), None)
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

    def _chosen(self, value: Json, allowed: Json, path: str) -> Json:
        """Return the one allowed value that a string is another spelling of, such as `High` for `high`."""
        if not isinstance(value, str) or not isinstance(allowed, list) or value in allowed or len(value) > _SAID:
            return value
        self._budget.spend(len(allowed) // _NAMES)
        alike = [one for one in allowed if isinstance(one, str) and _plain(one) == _plain(value) != ""]
        if len(alike) != 1:
            return value
        self.notes.append(f"`{path}` read as `{_cut(alike[0])}`")
        return alike[0]

    def _typed(self, value: Json, shape: Schema, path: str) -> Json:
        """Return the value in a type that the schema accepts, where there is exactly one way to write it so."""
        wanted = self._wanted(shape)
        if not wanted or wanted.intersection(_types(value)):
            return value
        if isinstance(value, str):
            self._budget.spend(len(value) // _LETTERS)
            is_word = "boolean" in wanted and value.strip().lower() in _BOOLEANS
            meant = _BOOLEANS[value.strip().lower()] if is_word else _read(value)
            if wanted.intersection(_types(meant)):
                self.notes.append(f"`{path or 'the arguments'}` was a string; read as {_types(meant)[0]}")
                return meant
        if isinstance(value, list) and len(value) == 1 and path and "array" not in wanted:
            self.notes.append(f"`{path}` was a list of one value; taken out")
            return self._typed(value[0], shape, path)
        if type(value) is int and value in (0, 1) and wanted <= {"boolean", "null"}:
            self.notes.append(f"`{path}` was {value}; read as a boolean")
            return bool(value)
        if isinstance(value, int | float) and "string" in wanted:
            self.notes.append(f"`{path}` was a {_types(value)[-1]}; written as a string")
            return json.dumps(value)
        if "array" not in wanted or value is None or not path:
            return value
        if isinstance(value, str) and "," in value:
            items = self._resolved(self._branch_for([], shape).get("items"))
            self._budget.spend(len(value) // _NAMES)
            # A list of free texts: a comma may be part of one.
            if items is not None and ("string" not in self._wanted(items) or isinstance(items.get("enum"), list)):
                self.notes.append(f"`{path}` was a string; its parts are read as a list")
                return [part.strip() for part in value.split(",")]
        self.notes.append(f"`{path}` was one value; made a list of it")
        return [value]


def _types(value: Json) -> tuple[str, ...]:
    """Return the schema types of a value, the most specific first."""
    if isinstance(value, float) and value.is_integer():
        return ("number", "integer")
    return _TYPES[type(value)]


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name).casefold()


_FRAGMENT = 800
"""Most characters of schema in an error: some 200 tokens."""
_VALUES = 10
_STRANGERS = 3
"""Most unknown names for which the nearest parameters are looked up."""
_KNOWN = 500
"""Most parameters among which they are looked up."""
_MISFIT_LETTERS = 100_000
"""Most characters of a part of a schema that is shortened for an error by removing its texts."""
_SAID = 160
_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def misfit(tool: Tool, error: "ValidationError") -> InvalidArguments:
    """Return the error for arguments that do not fit."""
    path = _path(error.absolute_path)
    if error.validator in ("enum", "const"):
        options = tuple(_text(value) for value in _allowed(error)[:_VALUES])
    else:
        schema = error.schema
        known = _keys(schema.get("properties") if isinstance(schema, Mapping) else None)
        if error.validator == "required":
            given = frozenset(_keys(error.instance))
            options = tuple(name for name in _names(error.validator_value) if name not in given)[:_VALUES]
        elif error.validator in ("additionalProperties", "unevaluatedProperties"):
            given = frozenset(_keys(error.instance))
            spellings = [(name,) for name in known[:_KNOWN]]
            near = [one for name in _strangers(error)[:_STRANGERS] for one in nearest(name, spellings, most=3)]
            options = tuple(dict.fromkeys([*near, *(name for name in known if name not in given)]))[:_VALUES]
        else:
            options = ()
    return InvalidArguments(
        f"`{tool.name}` was not called: {_problem(error, path)}",
        suggestion=f"It takes {_fragment(tool, error)}",
        options=options,
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


def _fragment(tool: Tool, error: "ValidationError") -> str:
    """Return the violated part of the schema if it is a parameter, else the tool's signature."""
    path = _path(error.absolute_path)
    if not path:
        return _cut(_signature(tool), _FRAGMENT)
    schema = cast("Json", error.schema)
    for said in (schema, _without_words(schema)) if is_small(schema, values=_FRAGMENT, letters=_MISFIT_LETTERS) else ():
        text = f"{path}: {written(said)}"
        if len(text) <= _FRAGMENT:
            return text
    whole: Schema = {"type": "object", "properties": {path: schema}, "required": [path]}
    return _cut(_signature(Tool(name="", input_schema=whole)), _FRAGMENT)


def _without_words(schema: Json) -> Json:
    """Return the schema without keywords that explain and do not assert."""
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
    """Return an accepted value as text, shortened."""
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
    """The result of a check: `misfit` is the most informative error if the arguments do not fit.

    Unchecked arguments neither fit nor fail to fit.
    """

    misfit: "ValidationError | None" = None
    unchecked: str | None = None
    """Why nothing was checked; None if it was."""

    @property
    def fits(self) -> bool:
        """Whether the arguments were checked and fit."""
        return self.misfit is None and self.unchecked is None
