"""Can a choice between schemas be said as one schema?

`anyOf: [{type: string}, {type: null}]` is `type: [string, null]`. That holds where the choices differ in type and each
says only what concerns its type, or where each is a list of values. Any other choice is left as it is.
"""

import json
from collections.abc import Sequence

from ullage.tool import Json

from .references import combine
from .subschemas import ANNOTATIONS, Schema

__all__ = ["FAMILIES", "said_as_one", "types_of", "values_of"]

_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"})
FAMILIES: dict[str, frozenset[str]] = {
    "string": frozenset({"minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"}),
    "number": _NUMBERS,
    "integer": _NUMBERS,
    "array": frozenset({"items", "minItems", "maxItems", "uniqueItems", "contains"}),
    "object": frozenset(
        {
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "propertyNames",
            "minProperties",
            "maxProperties",
        }
    ),
    "boolean": frozenset(),
    "null": frozenset(),
}
"""The assertions that concern one type and let every other pass."""


def said_as_one(schema: Schema) -> Schema:
    """The same schema with its choice said shorter, where it has one and nothing but annotations beside it."""
    for key in ("anyOf", "oneOf", "allOf"):
        choices = schema.get(key)
        outer = {other: value for other, value in schema.items() if other != key}
        if isinstance(choices, list) and choices and outer.keys() <= ANNOTATIONS:
            return _one(key, outer, choices) or schema
    return schema


def _one(key: str, outer: Schema, choices: list[Json]) -> Schema | None:
    if key == "anyOf":
        choices = _possible(choices)
    branches = [choice for choice in choices if isinstance(choice, dict)]
    if len(branches) < len(choices):
        return None
    if len(branches) == 1:
        return combine(outer, branches[0])
    if key == "allOf":
        return None
    merged = _values(branches) or _types(branches)
    return {**outer, "anyOf": choices} if merged is None and key == "anyOf" else merged and combine(outer, merged)


def _possible(choices: list[Json]) -> list[Json]:
    """The choices without doubles and without those that nothing fits; a choice of choices counts as its choices."""
    found = dict[str, Json]()
    for choice in choices:
        inner = choice.get("anyOf") if isinstance(choice, dict) and choice.keys() == {"anyOf"} else None
        for each in _possible(inner) if isinstance(inner, list) and inner else [choice]:
            found.setdefault(json.dumps(each, sort_keys=True), each)
    possible = [
        choice for choice in found.values() if choice is not False and choice not in ({"not": {}}, {"not": True})
    ]
    return possible or choices


def _values(branches: Sequence[Schema]) -> Schema | None:
    """Choices that are all lists of values, as one list. Null may be among them as a type."""
    lists = [values_of(branch) for branch in branches]
    if all(branch == {"type": "null"} for branch in branches):
        return None
    values = [value for each in lists if each is not None for value in each]
    if any(each is None for each in lists) or not _all_differ(values):
        return None
    return _with_annotations({"enum": values}, branches)


def _all_differ(values: Sequence[Json]) -> bool:
    """Only for values whose equality is that of their text: 1 and 1.0 are equal, and objects have no order."""
    simple = all(value is None or isinstance(value, str | int) for value in values)
    return simple and len({json.dumps(value) for value in values}) == len(values)


def values_of(schema: Schema) -> list[Json] | None:
    """All values that a schema accepts, where it does nothing but list them."""
    said = schema.keys() - ANNOTATIONS
    enum = schema.get("enum")
    if said == {"const"}:
        return [schema["const"]]
    if said == {"type"} and schema["type"] == "null":
        return [None]
    return enum if said == {"enum"} and isinstance(enum, list) else None


def _types(branches: Sequence[Schema]) -> Schema | None:
    """Choices that differ in type, as one list of types with what each says of its own."""
    types, merged = list[str](), Schema()
    for branch in branches:
        own = types_of(branch)
        said = {key: value for key, value in branch.items() if key not in ANNOTATIONS and key != "type"}
        allowed = frozenset[str]().union(*(FAMILIES[name] for name in own))
        if not own or not said.keys() <= allowed or said.keys() & merged.keys() or _overlap(types, own):
            return None
        types += own
        merged |= said
    return _with_annotations({"type": [*types], **merged}, branches)


def types_of(schema: Schema) -> list[str]:
    """The types a schema names; none where it names none, or one that does not exist."""
    declared = schema.get("type")
    names = declared if isinstance(declared, list) else [declared]
    known = [name for name in names if isinstance(name, str) and name in FAMILIES]
    return known if len(known) == len(names) else []


def _overlap(types: Sequence[str], others: Sequence[str]) -> bool:
    """Every integer is a number."""

    def classes(names: Sequence[str]) -> set[str]:
        return {"number" if name == "integer" else name for name in names}

    return bool(classes(types) & classes(others))


def _with_annotations(merged: Schema, branches: Sequence[Schema]) -> Schema | None:
    """Takes over what is said of the one choice beside null; of one of several, it would be said of all."""
    noted = [branch for branch in branches if branch.keys() & ANNOTATIONS]
    others = [branch for branch in branches if branch not in noted]
    if not noted:
        return merged
    if len(noted) > 1 or any(other != {"type": "null"} for other in others):
        return None
    return {**{key: value for key, value in noted[0].items() if key in ANNOTATIONS}, **merged}
