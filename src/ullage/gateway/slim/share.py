"""What does a schema say many times over that it could say once?

A long part that recurs, whatever is noted beside it, becomes a definition that the others refer to: a date's pattern in
each of twenty properties, say. Only annotations stand beside such a `$ref`, so that every dialect reads it alike.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator

from ullage.tool import Json

from .references import PREFIX, Parts, size_apart, size_in_place
from .subschemas import ANNOTATIONS, Pointer, Schema, children, map_children

__all__ = ["share"]

_WORTH = 200
"""Characters that must be saved; a reference is also something the model has to follow."""


def share(parts: Parts) -> Parts:
    """Makes definitions of what recurs, the most worthwhile first, until none is worth it."""
    while (best := _most_worth(parts)) is not None:
        parts = _shared(parts, best)
    return parts


def _most_worth(parts: Parts) -> tuple[str, str] | None:
    """What to share, as its JSON, and under which name."""
    counted, names = Counter[str](), dict[str, str]()
    for name, schema in _named_parts(parts):
        text = _written(schema)
        counted[text] += 1
        names.setdefault(text, name)
    worth = {text: _saved(text, names[text], uses) for text, uses in counted.items() if uses > 1}
    best = max(worth, key=worth.__getitem__, default="")
    return (best, names[best]) if worth.get(best, 0) >= _WORTH else None


def _saved(text: str, name: str, uses: int) -> int:
    return size_in_place(len(text), uses) - size_apart(len(text), name, uses)


def _asserted(schema: Schema) -> Schema:
    """The schema without its own annotations."""
    return {key: value for key, value in schema.items() if key not in ANNOTATIONS}


def _written(schema: Schema) -> str:
    """What to compare it by. One that already refers to a definition is not worth sharing: nothing."""
    if "$ref" in schema:
        return ""
    return json.dumps(_asserted(schema), ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _named_parts(parts: Parts) -> Iterator[tuple[str, Schema]]:
    """Every subschema with the name of the property nearest to it; the root and the definitions themselves aside."""
    for name, schema in (("part", parts.root), *parts.definitions.items()):
        yield from _named_below(name, schema)


def _named_below(name: str, schema: Json) -> Iterator[tuple[str, Schema]]:
    if not isinstance(schema, dict):
        return
    for pointer, child in children(schema):
        own = pointer[1] if pointer[0] == "properties" and pointer[1].isidentifier() else name
        if isinstance(child, dict):
            yield own, child
        yield from _named_below(own, child)


def _shared(parts: Parts, best: tuple[str, str]) -> Parts:
    text, stem = best
    tries = (stem, *(f"{stem}{number}" for number in range(2, len(parts.definitions) + 3)))
    name = next(each for each in tries if each not in parts.definitions)

    def put(_: Pointer, schema: Json) -> Json:
        if not isinstance(schema, dict):
            return schema
        if _written(schema) == text:
            return {"$ref": PREFIX + name} | {key: value for key, value in schema.items() if key in ANNOTATIONS}
        return map_children(schema, put)

    definitions = {other: _below(body, put) for other, body in parts.definitions.items()}
    root = _below(parts.root, put)
    body = next(_asserted(schema) for _, schema in _named_parts(parts) if _written(schema) == text)
    return Parts(root if isinstance(root, dict) else parts.root, {**definitions, name: body})


def _below(schema: Json, put: Callable[[Pointer, Json], Json]) -> Json:
    return map_children(schema, put) if isinstance(schema, dict) else schema
