"""Faults of a schema that make it unfit for validation.

Servers write schemas by hand. Some are broken in ways by which a validator would refuse what the server takes, some
would make it fetch another document, hang or lose its way. The meta-schema would find the first kind, but validating
against it takes long; this looks for the faults that turn into wrong refusals. Whatever else is wrong raises an error
during validation.
"""

from collections.abc import Callable, Iterator
from typing import Any

from ullage.tool import Json

from ..step_budget import StepBudget
from .keywords import LONG_NAME
from .patterns import affordable, compiled
from .quiet import QuietDict, QuietList, quiet

__all__ = ["troubles", "undeclared"]

_DATA = frozenset({"enum", "const", "default", "examples", "example"})
"""Words whose values are no schemas."""
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_WORDS = 16
"""Members looked at in the time of one step."""
_PATTERN = 30
"""Steps of reading a pattern."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: Json) -> bool:
    return isinstance(value, list)


def _are_branches(value: Json) -> bool:
    return isinstance(value, list) and bool(value)


def _are_names(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _are_types(value: Json) -> bool:
    listed = value if isinstance(value, list) else [value]
    return all(isinstance(each, str) and each in _TYPES for each in listed)


_SHAPES: dict[str, Callable[[Json], bool]] = {
    "type": _are_types,
    "required": _are_names,
    "enum": _is_list,
    **dict.fromkeys(("anyOf", "oneOf", "allOf"), _are_branches),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_number),
}


def troubles(schema: Json, budget: StepBudget, *, is_old: bool, is_root: bool = True) -> Iterator[str]:
    """Reasons not to hand the schema to a validator. Drafts 3 and 4 (`is_old`) have shapes of their own."""
    if not isinstance(schema, dict):
        return
    budget.spend(1 + len(schema) // _WORDS)
    broken = next((key for key, fits in _SHAPES.items() if key in schema and not fits(schema[key])), None)
    if broken is not None and not is_old:
        yield f"the schema's `{broken}` breaks the rules of JSON Schema"
    if any(isinstance(at := schema.get(key), str) and not at.startswith("#") for key in _REFERENCES):
        yield "the schema refers to another document"
    if not is_root and (isinstance(schema.get("$id"), str) or isinstance(schema.get("id"), str)):
        yield "the schema holds another document"
    patterns = schema.get("patternProperties")
    if isinstance(patterns, dict):
        budget.spend(_PATTERN * len(patterns))
    if isinstance(patterns, dict) and not all(affordable(each, LONG_NAME) and compiled(each) for each in patterns):
        yield "the schema's patterns of names cannot be read"
    if is_root and _says(schema, "unevaluatedProperties", budget):
        # Which names are left over, the validator finds by following these two without measure.
        slow = next((word for word in ("patternProperties", "dependentSchemas") if _says(schema, word, budget)), None)
        if slow is not None:
            yield f"the schema's `{slow}` beside `unevaluatedProperties` may take too long"
    for inner in _inner(schema):
        yield from troubles(inner, budget, is_old=is_old, is_root=False)


def _says(schema: Json, word: str, budget: StepBudget) -> bool:
    if not isinstance(schema, dict):
        return False
    budget.spend(1 + len(schema) // _WORDS)
    return word in schema or any(_says(inner, word, budget) for inner in _inner(schema))


def _inner(schema: dict[str, Json]) -> Iterator[Json]:
    """Whatever stands inside and may be a schema, in words of any dialect."""
    for key, value in schema.items():
        if key in _MAPS and isinstance(value, dict):
            yield from value.values()
        elif key not in _DATA:
            yield from value if isinstance(value, list) else [value]


def undeclared(schema: Json, budget: StepBudget, *, is_root: bool = True) -> Any:  # noqa: ANN401 — any JSON
    """The schema without words that would make a validator change its dialect or its address on the way."""
    if isinstance(schema, list):
        budget.spend(1 + len(schema) // _WORDS)
        return QuietList(undeclared(each, budget, is_root=False) for each in schema)
    if not isinstance(schema, dict):
        return schema
    budget.spend(1 + len(schema) // _WORDS)
    return QuietDict(
        (key, quiet(value, budget) if key in _DATA else undeclared(value, budget, is_root=False))
        for key, value in schema.items()
        if not (key == "$schema" and isinstance(value, str)) and not (is_root and key in ("$id", "id"))
    )
