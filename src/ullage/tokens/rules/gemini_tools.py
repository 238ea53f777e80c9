"""How are the other Geminis shown tools, calls and responses?

- In braces, from Gemini 3 on at AI Studio, and so Gemma 4: `declaration:name{…}`, keys in order and bare, a special
  token on either side of every string. It agrees with the reported counts of all 36 recorded requests with tools and no
  thoughts.
- As mere words, before Gemini 2.5 and on Vertex: names and descriptions one after another, and a token for each type.

Gemini 2.5 is shown Python, see `gemini_python`. Nothing is counted here.
"""

from collections.abc import Iterable, Iterator, Mapping
from json import dumps

from ullage.tool import Json

from .gemini_schema import Unrolled, items_of, kind_of, names_of, object_of

__all__ = ["BRACES_KEYWORDS", "QUOTE", "braces", "schema_braces", "schema_texts", "value_texts"]

QUOTE = "\uffff"
"""Stands in `braces` for the one special token that opens or closes a string; no character of any text."""

BRACES_KEYWORDS = frozenset(
    {"type", "properties", "required", "description", "title", "enum", "items", "additionalProperties", "$schema"}
    | {"propertyOrdering"}
)
"""Keywords of a schema whose writing agreed with the reported counts on every recorded request that used them."""

_UNSEEN = frozenset({"$defs", "definitions", "$schema", "$id", "additionalProperties", "default"}) | {
    "propertyOrdering",
    "property_ordering",
}


def braces(value: Json) -> str:
    """Keys sorted and bare, strings between two `QUOTE`s."""
    if isinstance(value, str):
        return f"{QUOTE}{value}{QUOTE}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{braces(item)}" for key, item in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(braces, value)) + "]"
    return dumps(value)


def schema_braces(schema: Mapping[str, Json]) -> dict[str, Json]:
    """A schema as Google keeps it before it writes it in braces: types in capitals, references filled in."""
    return _normal(schema, Unrolled(schema))


def _normal(schema: Mapping[str, Json], unrolled: Unrolled) -> dict[str, Json]:
    if not unrolled.enter(schema):
        return {}
    found: dict[str, Json] = {}
    whole = unrolled.resolve(schema)
    kinds = whole.get("type")
    if isinstance(kinds, list) and "null" in kinds:
        found["nullable"] = True
    for key, value in whole.items():
        if key not in _UNSEEN and value not in (None, "", [], {}):
            found[key] = kind_of(whole).upper() if key == "type" else _normal_value(key, value, unrolled)
    unrolled.leave()
    return found


def _normal_value(key: str, value: Json, unrolled: Unrolled) -> Json:
    if key == "properties":
        return {name: _normal(object_of(item), unrolled) for name, item in object_of(value).items()}
    if key == "items":
        return _normal(object_of(value), unrolled)
    if key in {"anyOf", "oneOf", "prefixItems"}:
        return [_normal(object_of(item), unrolled) for item in items_of(value)]
    return value


def schema_texts(schema: Mapping[str, Json], *, titles: bool = False) -> Iterator[str]:
    """The words of a schema, and a one-token text for the type of each node."""
    if schema.get("type"):
        yield "1"
    for key in ("title", "format", "description", "default") if titles else ("format", "description", "default"):
        value = schema.get(key)
        if value is not None:
            yield str(value)
    yield from (*names_of(schema.get("enum")), *names_of(schema.get("required")))
    for name, value in object_of(schema.get("properties")).items():
        yield name
        yield from schema_texts(object_of(value), titles=titles)
    for value in _below(schema):
        yield from schema_texts(object_of(value), titles=titles)


def _below(schema: Mapping[str, Json]) -> Iterable[Json]:
    choices = schema.get("anyOf", schema.get("any_of"))
    return (*items_of(choices), *([schema["items"]] if "items" in schema else []))


def value_texts(value: Json) -> Iterator[str]:
    """The words of a call's arguments or of a response; a number is one token."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from value_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from value_texts(item)
    elif isinstance(value, int | float):
        yield "1"
