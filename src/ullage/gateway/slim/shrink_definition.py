"""Slimming of tool definitions: fewer tokens, the same meaning.

A slimmed schema accepts and refuses exactly the same arguments as the original, read in the dialect it declares
(2020-12 by default, as in the protocol). Removed is what carries no information for the model: titles that repeat a
name, assertions that every value passes, references that are longer than their targets, and everything meant for
clients. `find` decides whether and how fully a tool is shown.

The time is bounded for any definition: a large schema keeps its structure and only its texts are shortened; a very
large schema or a very long description is passed on unchanged.

Each rule takes one schema and what is known of its place, and returns an equivalent one. Rules that need a plain
dialect (`schema_walk.is_plain`) are separate from those about texts, which hold in any dialect.

`gather` turns every target of a `$ref` into a definition of its own, wherever it was; `inline` then puts back those
that are shorter in place. Between the two, no `$ref` depends on the structure of the schema.

`share` makes a long part that recurs (a date's pattern in each of twenty properties, say) a definition that its places
refer to. Only annotations may stand beside such a `$ref`, so that every dialect reads it alike. Equal parts are
recognised by a number they share; in a schema with too many recurring parts, only the most worthwhile are shared.

`said_as_one` writes `anyOf: [{type: string}, {type: null}]` as `type: [string, null]`. This is valid where the
choices differ in type and each has only keywords that concern its type, or where each is a list of values. Any other
choice is left unchanged.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from urllib.parse import unquote

from ullage.tool import Json, Tool

from ..tool_source import StepBudget
from .schema_walk import (
    ANNOTATIONS,
    Pointer,
    Schema,
    children,
    depth_exceeds,
    is_name,
    is_plain,
    is_said_in,
    is_small,
    join_texts,
    map_children,
    repeats,
    spaced,
    tidy,
)

__all__ = [
    "FAMILIES",
    "PREFIX",
    "SHAPE",
    "STEPS",
    "WORDS",
    "Parts",
    "Place",
    "Rule",
    "combine",
    "gather",
    "inline",
    "said_as_one",
    "share",
    "simplify",
    "size_apart",
    "size_in_place",
    "slim",
    "types_of",
    "values_of",
]

PREFIX = "#/$defs/"
_MOST = 300
"""Number of definitions above which a schema keeps its structure."""
_DEEPEST = 20
"""Nesting above which a definition is not put in place, so that a chain of them does not nest without limit."""
_BESIDE = len('"":,')
_AROUND = len('{"$ref":""}') + len(PREFIX)


@dataclass(frozen=True, slots=True)
class Parts:
    """A schema with its definitions separated: every `$ref` in it is `#`, or `#/$defs/` and the name of a
    definition."""

    root: Schema
    definitions: Mapping[str, Json]

    def whole(self) -> Schema:
        return {**self.root, "$defs": dict(self.definitions)} if self.definitions else self.root


def gather(schema: Schema, *, siblings_count: bool) -> Parts | None:
    """Return the schema with the targets of every `$ref`, and nothing else, as its definitions.

    None if a `$ref` points elsewhere or nowhere. In draft-07 the assertions beside a `$ref` have no effect; they are
    removed.
    """
    places = dict(_places((), schema))
    parts = places.values()
    targets = {_pointer(str(part["$ref"])) for part in parts if isinstance(part, dict) and "$ref" in part}
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


def _pointer(reference: str) -> Pointer | None:
    if reference == "#":
        return ()
    if not reference.startswith("#/"):
        return None
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in unquote(reference[2:]).split("/"))


def _names(targets: Iterable[Pointer]) -> dict[Pointer, str]:
    """Return a short name for each target: its own, or that of the nearest property."""
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
    """Put each definition in place where that is shorter, innermost first, and remove unused ones."""
    named = {name: list(_named(body)) for name, body in parts.definitions.items()}
    order = _reachable(_named(parts.root), named)
    # Definitions that refer to themselves, directly or not, cannot be put in place.
    bits = {name: 1 << at for at, name in enumerate(named)}
    reached = {name: sum(bits[other] for other in {*others} & bits.keys()) for name, others in named.items()}
    for middle, bit in bits.items():
        beyond = reached[middle]
        reached = {name: seen | beyond if seen & bit else seen for name, seen in reached.items()}
    in_itself, sites = {name for name, bit in bits.items() if reached[name] & bit}, _sites(parts)
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
    """Return these definitions and all they refer to, dependencies first."""
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


def _named(schema: Json) -> Iterator[str]:
    for _, part in _places((), schema):
        if isinstance(part, dict) and isinstance(reference := part.get("$ref"), str):
            yield reference.removeprefix(PREFIX)


def _sites(parts: Parts) -> Mapping[str, list[Schema]]:
    """Return the places that refer to each definition."""
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
    """Return the characters of a definition and of all references to it."""
    return size + len(name) + _BESIDE + uses * (len(name) + _AROUND)


def _put_in_place(schema: Json, chosen: Mapping[str, Schema]) -> Json:
    """Return the schema with these definitions in place of the references to them."""
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    body = chosen.get(reference.removeprefix(PREFIX)) if isinstance(reference, str) else None
    if body is not None:
        return combine({key: value for key, value in schema.items() if key != "$ref"}, body)
    return map_children(schema, lambda _, child: _put_in_place(child, chosen))


def combine(outer: Schema, inner: Schema) -> Schema:
    """Combine a schema with the annotations around it. Both descriptions are kept; otherwise the outer annotation
    wins."""
    first, second = outer.get("description"), inner.get("description")
    both = {**inner, **outer}
    if isinstance(first, str) and isinstance(second, str):
        both["description"] = join_texts(first, second)
    return both


_WORTH = 200
"""Least number of characters to save, since the model has to follow the reference."""
_STEPS = 8_000
"""Most parts examined in all; each new definition examines every part once."""


def share(parts: Parts, steps: int = _STEPS) -> Parts:
    """Make recurring parts definitions, the most worthwhile first, until none is worth it or the steps are spent."""
    written = _Written()
    while steps > 0:
        named = list[tuple[str, Schema]]()
        for name, schema in (("part", parts.root), *parts.definitions.items()):
            named.extend(_named_below(name, schema))
        steps -= len(named)
        best = _most_worth(named, written)
        if best is None:
            break
        parts = _shared(parts, *best, written)
    return parts


class _Written:
    """The lengths of parts as JSON, and a number that equal parts share."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._lengths: list[int] = []
        self._known: dict[int, tuple[Json, int]] = {}
        """By object identity. The object is kept in the value so that its id stays valid."""
        self._asserted: dict[int, tuple[Schema, int]] = {}

    def length(self, number: int) -> int:
        return self._lengths[number]

    def asserted(self, schema: Schema) -> int:
        """Return the length of the schema without its own annotations."""
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
    """Return the characters of brackets and commas."""
    return 2 + max(0, len(members) - 1)


def _asserted(schema: Schema) -> Schema:
    """Return the schema without its own annotations."""
    return {key: value for key, value in schema.items() if key not in ANNOTATIONS}


def _most_worth(named: list[tuple[str, Schema]], written: _Written) -> tuple[str, Schema] | None:
    """Return the part most worth sharing, and its name. A part that already refers to a definition is not shared."""
    counted, first = Counter[int](), dict[int, tuple[str, Schema]]()
    for name, schema in named:
        if "$ref" not in schema:
            number = written.asserted(schema)
            counted[number] += 1
            first.setdefault(number, (name, schema))
    worth: dict[int, int] = {}
    for number, uses in counted.items():
        size = written.length(number)
        worth[number] = size_in_place(size, uses) - size_apart(size, first[number][0], uses)
    best = max(worth, key=worth.__getitem__, default=None)
    return first[best] if best is not None and worth[best] >= _WORTH else None


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
    """Return the schema with its parts changed; the same object if none was, so that cached facts about it stay
    valid."""
    if not isinstance(schema, dict):
        return schema
    changed = map_children(schema, lambda _, child: put(child))
    after = (child for _, child in children(changed))
    return schema if all(new is old for new, (_, old) in zip(after, children(schema), strict=True)) else changed


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
"""The assertions that concern one type and that values of any other type pass."""


def said_as_one(schema: Schema) -> Schema:
    """Write a choice shorter, if the schema has one with nothing but annotations beside it."""
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
    """Return the choices without duplicates and without those that no value fits; nested choices are flattened."""
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
    """Merge choices that are all lists of values into one list. Null may be among them as a type."""
    lists = [values_of(branch) for branch in branches]
    if all(branch == {"type": "null"} for branch in branches):
        return None
    values = [value for each in lists if each is not None for value in each]
    if any(each is None for each in lists) or not _all_differ(values):
        return None
    return _with_annotations({"enum": values}, branches)


def _all_differ(values: Sequence[Json]) -> bool:
    """Return whether all values differ, for values that are equal only if their texts are: 1 and 1.0 are equal, and
    objects have no order."""
    simple = all(value is None or isinstance(value, str | int) for value in values)
    return simple and len({json.dumps(value) for value in values}) == len(values)


def values_of(schema: Schema) -> list[Json] | None:
    """Return the values that a schema accepts, if it does nothing but list them."""
    said = schema.keys() - ANNOTATIONS
    enum = schema.get("enum")
    if said == {"const"}:
        return [schema["const"]]
    if said == {"type"} and schema["type"] == "null":
        return [None]
    return enum if said == {"enum"} and isinstance(enum, list) else None


def _types(branches: Sequence[Schema]) -> Schema | None:
    """Merge choices that differ in type into one list of types with each type's assertions."""
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
    """Return the types that a schema names; empty if it names none, or an unknown one."""
    declared = schema.get("type")
    names = declared if isinstance(declared, list) else [declared]
    known = [name for name in names if isinstance(name, str) and name in FAMILIES]
    return known if len(known) == len(names) else []


def _overlap(types: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether the types overlap; every integer is a number."""

    def classes(names: Sequence[str]) -> set[str]:
        return {"number" if name == "integer" else name for name in names}

    return bool(classes(types) & classes(others))


def _with_annotations(merged: Schema, branches: Sequence[Schema]) -> Schema | None:
    """Add the annotations of the only choice beside null; None if one of several has any, since they would apply to
    all."""
    noted = [branch for branch in branches if branch.keys() & ANNOTATIONS]
    others = [branch for branch in branches if branch not in noted]
    if not noted:
        return merged
    if len(noted) > 1 or any(other != {"type": "null"} for other in others):
        return None
    return {**{key: value for key, value in noted[0].items() if key in ANNOTATIONS}, **merged}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a schema in its definition."""

    name: str
    """Name of the property, definition or tool that it describes."""
    said: str = ""
    """The description directly above that is about the same thing."""
    whole: str = ""
    """The tool's description, single-spaced, for its parameters only."""
    is_root: bool = False
    optional: bool = False
    """Whether it is a property that may be omitted."""


Rule = Callable[[Schema, Place], Schema]


def simplify(schema: Json, place: Place, rules: tuple[Rule, ...], budget: StepBudget) -> Json:
    """Apply the rules to a schema, innermost parts first; each schema costs one step."""
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
    """Remove a default of null: to the caller it is the same as omitting the parameter."""
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
"""Assertions that every value passes."""


def _drop_assertions_of_nothing(schema: Schema, place: Place) -> Schema:
    """Remove assertions that every value passes, except empty properties of the root, which providers require."""
    empty: list[str] = []
    for key, values in _NOTHING_SAID.items():
        # By JSON equality: true is not 1.
        if key in schema and any(schema[key] == one and type(schema[key]) is type(one) for one in values):
            empty.append(key)
    return _without(schema, *(key for key in empty if not (place.is_root and key == "properties")))


def _drop_type_of_values(schema: Schema, place: Place) -> Schema:
    """Remove the type beside a list of values that all have it, except at the root, where the protocol requires one."""
    enum = [schema["const"]] if "const" in schema else schema.get("enum")
    types = types_of(schema)
    if place.is_root or not types or not isinstance(enum, list) or not enum:
        return schema
    return _without(schema, "type") if all(_has_type(value, types) for value in enum) else schema


def _has_type(value: Json, types: list[str]) -> bool:
    """Return whether the value has one of the types, for types that all validators distinguish alike."""
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

STEPS = 60_000
"""Most schemas examined in one definition, including nested ones, before slimming is given up."""

_SHRINK_DEEPEST = 150
"""Nesting above which a schema is passed on unchanged."""
_ROUNDS = 4
"""Most rounds of rules, because putting a part in place may allow its surroundings to be shortened further."""
_LONG = 200_000
"""Characters above which a description is passed on unchanged."""
_READ = 50_000
"""Characters of a description that are searched for parameters."""
_LOOKED_THROUGH = 5_000_000
"""Most characters read in all for that; with too many parameters, none is searched for."""


def slim(tool: Tool, budget: StepBudget | None = None) -> Tool:
    """Return the tool without anything the model does not need.

    Hints, output schema and metadata are for clients and are only in the original.

    Raises:
        OutOfSteps: The definition takes more steps than the budget has (`STEPS` by default).
    """
    budget = StepBudget(STEPS) if budget is None else budget
    description = tool.description or None
    if description is not None and len(description) <= _LONG:
        description = tidy(description)
    schema = dict(tool.input_schema)
    properties = schema.get("properties")
    number = len(properties) if isinstance(properties, dict) else 0
    whole = spaced((description or "")[:_READ])
    place = Place(name=tool.name, whole=whole if len(whole) * number <= _LOOKED_THROUGH else "", is_root=True)
    if depth_exceeds(schema, _SHRINK_DEEPEST) or not is_small(schema, values=12_000, letters=4_000_000):
        input_schema = schema
    else:
        is_changed = is_small(schema, values=4_000, letters=1_000_000) and is_plain(schema)
        parts = gather(schema, siblings_count="draft-07" not in str(schema.get("$schema"))) if is_changed else None
        if parts is None:
            input_schema = _rewritten(schema, place, WORDS, budget)
        else:
            parts = Parts({key: value for key, value in parts.root.items() if key != "$schema"}, parts.definitions)
            for _ in range(_ROUNDS):
                simplified = Parts(
                    _rewritten(parts.root, place, WORDS + SHAPE, budget),
                    {
                        name: simplify(body, Place(name=name), WORDS + SHAPE, budget)
                        for name, body in parts.definitions.items()
                    },
                )
                before, parts = parts, inline(share(simplified))
                if parts == before:
                    break
            input_schema = parts.whole()
    return replace(
        tool,
        description=description,
        input_schema=input_schema,
        title=None if description else tool.title,
        output_schema=None,
        annotations={},
        extra={},
    )


def _rewritten(schema: Schema, place: Place, rules: tuple[Rule, ...], budget: StepBudget) -> Schema:
    changed = simplify(schema, place, rules, budget)
    return changed if isinstance(changed, dict) else schema
