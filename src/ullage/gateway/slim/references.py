"""Which parts of a schema are referred to, and where do they stand best?

Every part that a `$ref` points at becomes a definition of its own, wherever it stood (`gather`); then those that cost
less in place than apart are put in place (`inline`). Between the two, no `$ref` depends on the shape of anything.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import unquote

from ullage.tool import Json

from .subschemas import ANNOTATIONS, Pointer, Schema, children, depth_exceeds, map_children
from .wording import join_texts

__all__ = ["PREFIX", "Parts", "combine", "gather", "inline", "reachable", "size_apart", "size_in_place"]

PREFIX = "#/$defs/"
_MOST = 300
"""Definitions beyond which a schema keeps its shape."""
_DEEPEST = 20
"""Nesting beyond which a definition stays one, so that a chain of them does not become a shaft."""
_BESIDE = len('"":,')
_AROUND = len('{"$ref":""}') + len(PREFIX)


@dataclass(frozen=True, slots=True)
class Parts:
    """A schema taken apart: every `$ref` in it is `#`, or `#/$defs/` and the name of a definition."""

    root: Schema
    definitions: Mapping[str, Json]

    def whole(self) -> Schema:
        return {**self.root, "$defs": dict(self.definitions)} if self.definitions else self.root


def gather(schema: Schema, *, siblings_count: bool) -> Parts | None:
    """The schema with every target of a `$ref` among its definitions, and no other definitions.

    None where a `$ref` leads elsewhere or nowhere. In draft-07 the assertions beside a `$ref` do not count: they go.
    """
    places = dict(_places((), schema))
    targets = {_pointer(reference) for reference in _references(places.values())}
    if len(targets) > _MOST or not all(target in places for target in targets):
        return None
    names = _names(sorted(target for target in targets if target))
    taking = _Taking(names, siblings_count)
    root = taking.take((), schema)
    definitions = {name: taking.take(pointer, places[pointer]) for pointer, name in names.items()}
    return Parts(root, definitions) if isinstance(root, dict) else None


@dataclass(frozen=True, slots=True)
class _Taking:
    names: Mapping[Pointer, str]
    siblings_count: bool

    def take(self, pointer: Pointer, schema: Json) -> Json:
        if not isinstance(schema, dict):
            return schema
        kept = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
        reference = kept.get("$ref")
        if isinstance(reference, str):
            target = _pointer(reference)
            kept["$ref"] = PREFIX + self.names[target] if target else "#"
            if not self.siblings_count:
                kept = {key: value for key, value in kept.items() if key == "$ref" or key in ANNOTATIONS}
        return map_children(kept, lambda place, child: self._place(pointer + place, child))

    def _place(self, pointer: Pointer, schema: Json) -> Json:
        name = self.names.get(pointer)
        return self.take(pointer, schema) if name is None else {"$ref": PREFIX + name}


def _places(pointer: Pointer, schema: Json) -> Iterator[tuple[Pointer, Json]]:
    yield pointer, schema
    if isinstance(schema, dict):
        for place, child in children(schema):
            yield from _places(pointer + place, child)


def _references(schemas: Iterable[Json]) -> Iterator[str]:
    for schema in schemas:
        if isinstance(schema, dict) and "$ref" in schema:
            yield str(schema["$ref"])


def _pointer(reference: str) -> Pointer | None:
    if reference == "#":
        return ()
    if not reference.startswith("#/"):
        return None
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in unquote(reference[2:]).split("/"))


def _names(targets: Iterable[Pointer]) -> dict[Pointer, str]:
    """A short name for each target: the one it has, or that of the property nearest to it."""
    names = dict[Pointer, str]()
    for target in targets:
        spoken = [part for kind, part in pairwise(target) if kind in _NAMING]
        stem = re.sub(r"[^A-Za-z0-9._-]", "_", spoken[-1]) if spoken else "part"
        tries = (stem, *(f"{stem}{number}" for number in range(2, len(names) + 3)))
        names[target] = next(name for name in tries if name not in names.values())
    return names


_NAMING = frozenset({"$defs", "definitions", "properties"})


def inline(parts: Parts) -> Parts:
    """Puts each definition in place where that is shorter, innermost first; leaves out what nobody refers to."""
    for name in _innermost_first(parts):
        if _is_better_inline(parts, name):
            parts = _put_in_place(parts, name)
    kept = reachable(parts.root, parts.definitions)
    return Parts(parts.root, {name: body for name, body in parts.definitions.items() if name in kept})


def reachable(schema: Json, definitions: Mapping[str, Json]) -> dict[str, None]:
    """The definitions that a schema refers to, directly or not; those referred to by another come before it."""
    found, open_ = dict[str, None](), set[str]()

    def visit(part: Json) -> None:
        for name in _named(part):
            if name not in open_ and name in definitions:
                open_.add(name)
                visit(definitions[name])
                found[name] = None

    visit(schema)
    return found


def _innermost_first(parts: Parts) -> list[str]:
    """The definitions that may be put in place: those that do not hold themselves."""
    definitions = parts.definitions
    order = reachable(parts.root, definitions)
    return [name for name in order if name not in reachable(definitions[name], definitions)]


def _named(schema: Json) -> Iterator[str]:
    for _, part in _places((), schema):
        if isinstance(part, dict) and isinstance(reference := part.get("$ref"), str):
            yield reference.removeprefix(PREFIX)


def _is_better_inline(parts: Parts, name: str) -> bool:
    body = parts.definitions[name]
    sites = [part for part in _sites(parts) if part["$ref"] == PREFIX + name]
    if not isinstance(body, dict) or depth_exceeds(body, _DEEPEST):
        return False
    if not all(site.keys() <= ANNOTATIONS | {"$ref"} for site in sites):
        return False
    size, uses = len(json.dumps(body, ensure_ascii=False, separators=(",", ":"))), len(sites)
    return size_in_place(size, uses) <= size_apart(size, name, uses)


def size_in_place(size: int, uses: int) -> int:
    return size * uses


def size_apart(size: int, name: str, uses: int) -> int:
    """Characters of a definition and of the references to it."""
    return size + len(name) + _BESIDE + uses * (len(name) + _AROUND)


def _sites(parts: Parts) -> Iterator[Schema]:
    for schema in (parts.root, *parts.definitions.values()):
        for _, part in _places((), schema):
            if isinstance(part, dict) and "$ref" in part:
                yield part


def _put_in_place(parts: Parts, name: str) -> Parts:
    body = parts.definitions[name]

    def put(_: Pointer, schema: Json) -> Json:
        if not isinstance(schema, dict):
            return schema
        if schema.get("$ref") == PREFIX + name and isinstance(body, dict):
            return combine({key: value for key, value in schema.items() if key != "$ref"}, body)
        return map_children(schema, put)

    definitions = {other: put((), schema) for other, schema in parts.definitions.items() if other != name}
    root = put((), parts.root)
    return Parts(root, definitions) if isinstance(root, dict) else parts


def combine(outer: Schema, inner: Schema) -> Schema:
    """One schema of an inner one and the annotations around it; both descriptions are kept, of the rest the outer's."""
    first, second = outer.get("description"), inner.get("description")
    both = {**inner, **outer}
    if isinstance(first, str) and isinstance(second, str):
        both["description"] = join_texts(first, second)
    return both
