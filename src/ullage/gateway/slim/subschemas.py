"""Where in a JSON Schema do schemas stand, which of its words are assertions, and how large is it?

What draft-07 and 2020-12 read alike, and nothing else: a schema that uses more is not plain (`is_plain`), and is left
in the shape it has.
"""

from collections.abc import Callable, Iterator

from ullage.tool import Json

__all__ = ["ANNOTATIONS", "Pointer", "Schema", "children", "depth_exceeds", "is_plain", "is_small", "map_children"]

Schema = dict[str, Json]
Pointer = tuple[str, ...]

_ONE = frozenset({"items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf"})
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})

ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment"}
)
"""Words that no validator asks about."""

_UNEVEN = frozenset(
    {
        "$id", "id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary",
        "prefixItems", "additionalItems", "dependencies", "dependentRequired", "dependentSchemas", "minContains",
        "maxContains", "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip
"""Words that the two dialects read differently, or that give a schema an address besides its place."""
_DIALECTS = frozenset(
    {None, "json-schema.org/draft-07/schema", "json-schema.org/draft/2020-12/schema"},
)


def children(schema: Schema) -> Iterator[tuple[Pointer, Json]]:
    """Each direct subschema with its place."""
    for key, value in schema.items():
        if key in _ONE:
            yield (key,), value
        elif key in _LISTS and isinstance(value, list):
            yield from (((key, str(index)), child) for index, child in enumerate(value))
        elif key in _MAPS and isinstance(value, dict):
            yield from (((key, name), child) for name, child in value.items())


def map_children(schema: Schema, change: Callable[[Pointer, Json], Json]) -> Schema:
    """The same schema with each direct subschema changed."""
    changed = dict(schema)
    for key, value in schema.items():
        if key in _ONE:
            changed[key] = change((key,), value)
        elif key in _LISTS and isinstance(value, list):
            changed[key] = [change((key, str(index)), child) for index, child in enumerate(value)]
        elif key in _MAPS and isinstance(value, dict):
            changed[key] = {name: change((key, name), child) for name, child in value.items()}
    return changed


def is_plain(schema: Schema) -> bool:
    """Whether its shape may be changed: a dialect we know, and only words that all its readers read alike."""
    return _dialect(schema) in _DIALECTS and _is_even(schema)


def _dialect(schema: Schema) -> str | None:
    declared = schema.get("$schema")
    if declared is None:
        return None
    return str(declared).removeprefix("https://").removeprefix("http://").rstrip("#")


def _is_even(schema: Json) -> bool:
    if not isinstance(schema, dict):
        return isinstance(schema, bool)
    return _UNEVEN.isdisjoint(schema) and all(_is_even(child) for _, child in children(schema))


def depth_exceeds(value: Json, limit: int) -> bool:
    """Whether a value is nested deeper than this; asked first, so that no walk runs out of stack."""
    level: list[Json] = [value]
    for _ in range(limit):
        level = [inner for outer in level for inner in _parts(outer)]
        if not level:
            return False
    return True


def is_small(value: Json, *, values: int, letters: int) -> bool:
    """Whether no more values than these stand in it, and no more letters: each counts once for every level that it
    stands under, as often as it is read where every part is written out."""
    todo: list[tuple[Json, int]] = [(value, 1)]
    values -= 1
    while todo and values >= 0 and letters >= 0:
        outer, depth = todo.pop()
        if isinstance(outer, str):
            letters -= depth * len(outer)
        elif isinstance(outer, dict | list):
            # Not looked into where their number alone decides it.
            values -= len(outer)
            if values >= 0:
                letters -= depth * sum(map(len, outer)) if isinstance(outer, dict) else 0
                todo.extend((inner, depth + 1) for inner in (outer.values() if isinstance(outer, dict) else outer))
    return values >= 0 and letters >= 0


def _parts(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
