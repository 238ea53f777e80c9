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

__all__ = ["PREFIX", "Parts", "combine", "gather", "inline", "size_apart", "size_in_place"]

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
    names, taken = dict[Pointer, str](), set[str]()
    for target in targets:
        spoken = [part for kind, part in pairwise(target) if kind in _NAMING]
        stem = re.sub(r"[^A-Za-z0-9._-]", "_", spoken[-1]) if spoken else "part"
        tries = (stem, *(f"{stem}{number}" for number in range(2, len(names) + 3)))
        names[target] = next(name for name in tries if name not in taken)
        taken.add(names[target])
    return names


_NAMING = frozenset({"$defs", "definitions", "properties"})


def inline(parts: Parts) -> Parts:
    """Puts each definition in place where that is shorter, innermost first; leaves out what nobody refers to."""
    named = {name: list(_named(body)) for name, body in parts.definitions.items()}
    order = _reachable(_named(parts.root), named)
    in_itself, sites = _in_themselves(named), _sites(parts)
    chosen, kept = dict[str, Schema](), dict[str, Json]()
    for name in order:
        body = _put_in_place(parts.definitions[name], chosen)
        if name not in in_itself and isinstance(body, dict) and _is_better_inline(name, body, sites[name]):
            chosen[name] = body
        else:
            kept[name] = body
    root = _put_in_place(parts.root, chosen)
    kept = {name: kept[name] for name in parts.definitions if name in kept}
    return Parts(root, kept) if isinstance(root, dict) else parts


def _reachable(names: Iterable[str], named: Mapping[str, list[str]]) -> list[str]:
    """The definitions of these names and all they refer to; those referred to by another come before it."""
    found, open_ = list[str](), set[str]()

    def visit(name: str) -> None:
        if name not in open_ and name in named:
            open_.add(name)
            for other in named[name]:
                visit(other)
            found.append(name)

    for name in names:
        visit(name)
    return found


def _in_themselves(named: Mapping[str, list[str]]) -> set[str]:
    """The definitions that refer to themselves, directly or not. They cannot be put in place."""
    bits = {name: 1 << at for at, name in enumerate(named)}
    reached = {name: sum(bits[other] for other in {*others} & bits.keys()) for name, others in named.items()}
    for middle, bit in bits.items():
        beyond = reached[middle]
        reached = {name: seen | beyond if seen & bit else seen for name, seen in reached.items()}
    return {name for name, bit in bits.items() if reached[name] & bit}


def _named(schema: Json) -> Iterator[str]:
    for _, part in _places((), schema):
        if isinstance(part, dict) and isinstance(reference := part.get("$ref"), str):
            yield reference.removeprefix(PREFIX)


def _sites(parts: Parts) -> Mapping[str, list[Schema]]:
    """Where each definition is referred to."""
    found: dict[str, list[Schema]] = {name: [] for name in parts.definitions}
    for schema in (parts.root, *parts.definitions.values()):
        for _, part in _places((), schema):
            if isinstance(part, dict) and isinstance(reference := part.get("$ref"), str):
                found.setdefault(reference.removeprefix(PREFIX), []).append(part)
    return found


def _is_better_inline(name: str, body: Schema, sites: list[Schema]) -> bool:
    if depth_exceeds(body, _DEEPEST):
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


def _put_in_place(schema: Json, chosen: Mapping[str, Schema]) -> Json:
    """The schema with these definitions in place of the references to them."""
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    body = chosen.get(reference.removeprefix(PREFIX)) if isinstance(reference, str) else None
    if body is not None:
        return combine({key: value for key, value in schema.items() if key != "$ref"}, body)
    return map_children(schema, lambda _, child: _put_in_place(child, chosen))


def combine(outer: Schema, inner: Schema) -> Schema:
    """One schema of an inner one and the annotations around it; both descriptions are kept, of the rest the outer's."""
    first, second = outer.get("description"), inner.get("description")
    both = {**inner, **outer}
    if isinstance(first, str) and isinstance(second, str):
        both["description"] = join_texts(first, second)
    return both
