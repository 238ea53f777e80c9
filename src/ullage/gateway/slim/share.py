"""What does a schema say many times over that it could say once?

A long part that recurs, whatever is noted beside it, becomes a definition that the others refer to: a date's pattern in
each of twenty properties, say. Only annotations stand beside such a `$ref`, so that every dialect reads it alike. Parts
are compared by numbers that equal ones share, and of a schema too large for all that recurs, only the most worthwhile
is shared.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator

from ullage.tool import Json

from .references import PREFIX, Parts, size_apart, size_in_place
from .subschemas import ANNOTATIONS, Schema, children, map_children

__all__ = ["share"]

_WORTH = 200
"""Characters that must be saved; a reference is also something the model has to follow."""
_STEPS = 8_000
"""Parts looked at in all: each definition that is made takes a look at every part."""


def share(parts: Parts, steps: int = _STEPS) -> Parts:
    """Makes definitions of what recurs, the most worthwhile first, until none is worth it or the steps are spent."""
    written = _Written()
    while steps > 0:
        named = list(_named_parts(parts))
        steps -= len(named)
        best = _most_worth(named, written)
        if best is None:
            break
        parts = _shared(parts, *best, written)
    return parts


class _Written:
    """How long parts are as JSON, and which are the same: those that have one number."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._lengths: list[int] = []
        self._known: dict[int, tuple[Json, int]] = {}
        """By the object's identity, which holds as long as the object is held here."""
        self._asserted: dict[int, tuple[Schema, int]] = {}

    def length(self, number: int) -> int:
        return self._lengths[number]

    def asserted(self, schema: Schema) -> int:
        """Of the schema without its own annotations."""
        known = self._asserted.get(id(schema))
        if known is None:
            known = self._asserted[id(schema)] = schema, self._object(_asserted(schema))
        return known[1]

    def _number(self, value: Json) -> int:
        if not isinstance(value, dict | list):
            text = json.dumps(value, ensure_ascii=False)
            return self._numbered(text, len(text))
        known = self._known.get(id(value))
        if known is None:
            number = self._object(value) if isinstance(value, dict) else self._array(value)
            known = self._known[id(value)] = value, number
        return known[1]

    def _object(self, value: Schema) -> int:
        members = sorted((key, self._number(member)) for key, member in value.items())
        letters = sum(len(json.dumps(key, ensure_ascii=False)) + 1 + self._lengths[number] for key, number in members)
        return self._numbered(("{", *members), letters + _around(members))

    def _array(self, values: list[Json]) -> int:
        numbers = [self._number(value) for value in values]
        return self._numbered(("[", *numbers), sum(self._lengths[each] for each in numbers) + _around(numbers))

    def _numbered(self, key: object, length: int) -> int:
        number = self._numbers.setdefault(key, len(self._lengths))
        if number == len(self._lengths):
            self._lengths.append(length)
        return number


def _around(members: list[tuple[str, int]] | list[int]) -> int:
    """Brackets and commas."""
    return 2 + max(0, len(members) - 1)


def _asserted(schema: Schema) -> Schema:
    """The schema without its own annotations."""
    return {key: value for key, value in schema.items() if key not in ANNOTATIONS}


def _most_worth(named: list[tuple[str, Schema]], written: _Written) -> tuple[str, Schema] | None:
    """What to share, and under which name. What already refers to a definition is not worth it."""
    counted, first = Counter[int](), dict[int, tuple[str, Schema]]()
    for name, schema in named:
        if "$ref" not in schema:
            number = written.asserted(schema)
            counted[number] += 1
            first.setdefault(number, (name, schema))
    worth = {number: _saved(written.length(number), first[number][0], uses) for number, uses in counted.items()}
    best = max(worth, key=worth.__getitem__, default=None)
    return first[best] if best is not None and worth[best] >= _WORTH else None


def _saved(size: int, name: str, uses: int) -> int:
    return size_in_place(size, uses) - size_apart(size, name, uses)


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


def _shared(parts: Parts, stem: str, shared: Schema, written: _Written) -> Parts:
    tries = (stem, *(f"{stem}{number}" for number in range(2, len(parts.definitions) + 3)))
    name = next(each for each in tries if each not in parts.definitions)
    number = written.asserted(shared)

    def put(schema: Json) -> Json:
        if not isinstance(schema, dict):
            return schema
        if "$ref" not in schema and written.asserted(schema) == number:
            return {"$ref": PREFIX + name} | {key: value for key, value in schema.items() if key in ANNOTATIONS}
        return _below(schema, put)

    definitions = {other: _below(body, put) for other, body in parts.definitions.items()}
    root = _below(parts.root, put)
    return Parts(root if isinstance(root, dict) else parts.root, {**definitions, name: _asserted(shared)})


def _below(schema: Json, put: Callable[[Json], Json]) -> Json:
    """The schema with its parts changed; itself where none was, so that what is known of it holds on."""
    if not isinstance(schema, dict):
        return schema
    changed = map_children(schema, lambda _, child: put(child))
    after = (child for _, child in children(changed))
    return schema if all(new is old for new, (_, old) in zip(after, children(schema), strict=True)) else changed
