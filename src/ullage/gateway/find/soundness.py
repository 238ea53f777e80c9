"""Can this schema be asked about arguments at all?

Servers write schemas by hand. Some are broken in ways by which a validator would refuse what the server takes, some
would make it fetch another document, hang or lose its way. The rules of JSON Schema about itself would tell the first
kind, but take long to ask; what is looked for here are the faults that turn into wrong refusals.
Whatever else is wrong raises an error while validating, and is noticed there.
"""

from collections.abc import Callable, Iterator
from typing import Any

from ullage.tool import Json

from .keywords import LONG_NAME
from .patterns import affordable, compiled

__all__ = ["troubles", "undeclared"]

_DATA = frozenset({"enum", "const", "default", "examples", "example"})
"""Words whose values are no schemas."""
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
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


def troubles(schema: Json, *, is_old: bool, is_root: bool = True) -> Iterator[str]:
    """Reasons not to hand the schema to a validator. Drafts 3 and 4 (`is_old`) have shapes of their own."""
    if not isinstance(schema, dict):
        return
    broken = next((key for key, fits in _SHAPES.items() if key in schema and not fits(schema[key])), None)
    if broken is not None and not is_old:
        yield f"the schema's `{broken}` breaks the rules of JSON Schema"
    if any(isinstance(at := schema.get(key), str) and not at.startswith("#") for key in _REFERENCES):
        yield "the schema refers to another document"
    if not is_root and (isinstance(schema.get("$id"), str) or isinstance(schema.get("id"), str)):
        yield "the schema holds another document"
    patterns = schema.get("patternProperties")
    if isinstance(patterns, dict) and not all(affordable(each, LONG_NAME) and compiled(each) for each in patterns):
        yield "the schema's patterns of names cannot be read"
    if is_root and _says(schema, "patternProperties") and _says(schema, "unevaluatedProperties"):
        # Which names are left over, the validator finds by patterns that it tries without measure.
        yield "the schema's patterns of names may take too long"
    for inner in _inner(schema):
        yield from troubles(inner, is_old=is_old, is_root=False)


def _says(schema: Json, word: str) -> bool:
    return isinstance(schema, dict) and (word in schema or any(_says(inner, word) for inner in _inner(schema)))


def _inner(schema: dict[str, Json]) -> Iterator[Json]:
    """Whatever stands inside and may be a schema, in words of any dialect."""
    for key, value in schema.items():
        if key in _MAPS and isinstance(value, dict):
            yield from value.values()
        elif key not in _DATA:
            yield from value if isinstance(value, list) else [value]


def undeclared(schema: Json, *, is_root: bool = True) -> Any:  # noqa: ANN401 — the schema's own shape, whatever it is
    """The schema without words that would make a validator change its dialect or its address on the way."""
    if isinstance(schema, list):
        return [undeclared(each, is_root=False) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value if key in _DATA else undeclared(value, is_root=False)
        for key, value in schema.items()
        if not (key == "$schema" and isinstance(value, str)) and not (is_root and key in ("$id", "id"))
    }
