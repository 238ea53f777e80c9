"""What in a schema costs tokens and says nothing?

Each rule takes one schema and what is known of its place, and gives an equal one: it accepts and refuses the same.
Rules that need the plain dialects (`subschemas.is_plain`) stand apart from those about words, which hold in any.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ullage.tool import Json

from ..step_budget import StepBudget
from .subschemas import Pointer, Schema, map_children
from .unions import said_as_one, types_of
from .wording import is_name, is_said_in, repeats, tidy

__all__ = ["SHAPE", "WORDS", "Place", "Rule", "simplify"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a schema stands."""

    name: str
    """Of the property, definition or tool it describes."""
    said: str = ""
    """The description just above that is about the same thing."""
    whole: str = ""
    """The tool's description, single-spaced, for its parameters only."""
    is_root: bool = False
    optional: bool = False
    """A property that may be left out."""


Rule = Callable[[Schema, Place], Schema]


def simplify(schema: Json, place: Place, rules: tuple[Rule, ...], budget: StepBudget) -> Json:
    """Applies the rules to a schema after its parts; each schema is a step."""
    if not isinstance(schema, dict):
        return schema
    budget.spend()
    required = schema.get("required")
    needed = frozenset(each for each in required if isinstance(each, str)) if isinstance(required, list) else _NONE
    changed = map_children(schema, lambda at, child: simplify(child, _inner(schema, place, at, needed), rules, budget))
    for rule in rules:
        changed = rule(changed, place)
    return changed


_NONE = frozenset[str]()


def _inner(schema: Schema, place: Place, pointer: Pointer, needed: frozenset[str]) -> Place:
    if pointer[0] not in ("properties", "$defs", "definitions"):
        return replace(place, said=_text(schema, "description") or place.said, whole="", is_root=False, optional=False)
    return Place(
        name=pointer[1],
        whole=place.whole if place.is_root else "",
        optional=pointer[0] == "properties" and pointer[1] not in needed,
    )


def _text(schema: Schema, key: str) -> str:
    value = schema.get(key)
    return value if isinstance(value, str) else ""


def _without(schema: Schema, *keys: str) -> Schema:
    return {key: value for key, value in schema.items() if key not in keys}


def _drop_what_is_for_machines(schema: Schema, _: Place) -> Schema:
    return {key: value for key, value in schema.items() if key != "$comment" and not key.startswith("x-")}


def _drop_what_is_not_so(schema: Schema, _: Place) -> Schema:
    flags = ("deprecated", "readOnly", "writeOnly", "nullable")
    return _without(schema, *(flag for flag in flags if schema.get(flag) is False))


def _tidy_description(schema: Schema, place: Place) -> Schema:
    if not isinstance(schema.get("description"), str):
        return schema
    text = tidy(_text(schema, "description"))
    repeated = text == place.said or is_name(text, place.name) or is_said_in(place.whole, place.name, text)
    if not text or repeated:
        return _without(schema, "description")
    return {**schema, "description": text}


_OF_ARGUMENTS = "arguments args input inputs params parameters request schema model dict output"


def _drop_title(schema: Schema, place: Place) -> Schema:
    title = schema.get("title")
    own = _text(schema, "description") or place.said
    if isinstance(title, str) and repeats(title, place.name, own, _OF_ARGUMENTS if place.is_root else ""):
        return _without(schema, "title")
    return schema


def _drop_null_default(schema: Schema, place: Place) -> Schema:
    """Leaving a parameter out and leaving it null by default are one thing to the caller."""
    return _without(schema, "default") if place.optional and schema.get("default", 0) is None else schema


_ANYTHING: tuple[Json, ...] = (True, {})
_NOTHING_SAID: dict[str, tuple[Json, ...]] = {
    "additionalProperties": _ANYTHING,
    "items": _ANYTHING,
    "propertyNames": (*_ANYTHING, {"type": "string"}),
    "required": ([],),
    "patternProperties": ({},),
    "properties": ({},),
    "minItems": (0,),
    "minLength": (0,),
    "minProperties": (0,),
    "uniqueItems": (False,),
}
"""Assertions that everything passes."""


def _drop_assertions_of_nothing(schema: Schema, place: Place) -> Schema:
    """The properties of the root stay even when there are none: providers ask for them."""
    empty = [key for key, values in _NOTHING_SAID.items() if key in schema and _is_one_of(schema[key], values)]
    return _without(schema, *(key for key in empty if not (place.is_root and key == "properties")))


def _is_one_of(value: Json, values: tuple[Json, ...]) -> bool:
    """Equality as JSON has it: True is not 1."""
    return any(value == other and type(value) is type(other) for other in values)


def _drop_type_of_values(schema: Schema, place: Place) -> Schema:
    """A list of values needs no type where they all have it; at the root the protocol demands one."""
    enum = [schema["const"]] if "const" in schema else schema.get("enum")
    types = types_of(schema)
    if place.is_root or not types or not isinstance(enum, list) or not enum:
        return schema
    return _without(schema, "type") if all(_has_type(value, types) for value in enum) else schema


def _has_type(value: Json, types: list[str]) -> bool:
    """Only for types that every validator tells apart alike."""
    if isinstance(value, bool) or value is None:
        return ("null" if value is None else "boolean") in types
    if isinstance(value, int):
        return "integer" in types or "number" in types
    return isinstance(value, str) and "string" in types


def _shorten_type(schema: Schema, _: Place) -> Schema:
    declared = schema.get("type")
    return {**schema, "type": declared[0]} if isinstance(declared, list) and len(declared) == 1 else schema


def _shorten_choice(schema: Schema, _: Place) -> Schema:
    return said_as_one(schema)


WORDS: tuple[Rule, ...] = (
    _drop_what_is_for_machines,
    _drop_what_is_not_so,
    _tidy_description,
    _drop_title,
    _drop_null_default,
)
SHAPE: tuple[Rule, ...] = (
    _drop_assertions_of_nothing,
    _shorten_type,
    _drop_type_of_values,
    _shorten_choice,
)
