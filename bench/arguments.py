"""Which arguments tell two schemas apart, if anything does?

Values built to fit a schema, and the same values spoilt: a part left out, added, emptied, doubled, made null or of
another type, or replaced by what stands at the edge of some assertion of the schema (a bound, a length, a value).
"""

import copy
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

Value = Any
"""Any JSON."""
_TEXTS = (
    "a", "abc", "A1", "0", "10", "-1.5", "", " ", "é", "a b", "a_b", "a-b", "#a1b2c3", "2024-01-31", "12:30",
    "12:30:00", "2024-01-31T12:30:00Z", "2024-01-31T12:30:00.000+01:00", "https://example.com/a?b=c", "/a/b.txt",
    "user@example.com", "6f1c24a6-3a86-4d4b-9c8e-1f0e7f2f8a11", "10.0.0.1", "10.0.0.0/8", "+441234567890", "US", "USD",
    "en", "P1D", "abcd" * 16,
)  # fmt: skip
_ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    1.0,
    1.5,
    2**53,
    -(2**53),
    "",
    "a",
    "1",
    "null",
    [],
    [None],
    ["a"],
    {},
)
_DEEPEST = 7


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes values that fit a schema, as far as that can be had by construction."""

    root: dict[str, Any]
    random: Random
    stray: float = 0.0
    """How often a part is made just beyond what its own schema allows, where that has an edge."""

    def make(self, schema: Value, depth: int = 0) -> Value:
        if not isinstance(schema, dict):
            return copy.deepcopy(self.random.choice(_ODD))
        if depth > 3 * _DEEPEST:
            return None
        if isinstance(reference := schema.get("$ref"), str):
            return self.make(_merged(_without(schema, "$ref"), find(self.root, reference)), depth + 1)
        for key in ("anyOf", "oneOf"):
            if branches := schema.get(key):
                return self.make(_merged(_without(schema, key), self.random.choice(branches)), depth + 1)
        if parts := schema.get("allOf"):
            return self.make(_merged(_without(schema, "allOf"), *parts), depth + 1)
        if "const" in schema:
            return copy.deepcopy(schema["const"])
        if values := schema.get("enum"):
            return copy.deepcopy(self.random.choice(values))
        return self._typed(schema, depth)

    def _typed(self, schema: dict[str, Any], depth: int) -> Value:
        declared = schema.get("type") or (
            "object" if "properties" in schema else "array" if "items" in schema else None
        )
        name = self.random.choice(declared) if isinstance(declared, list) else declared
        makers: dict[Any, Callable[[], Any]] = {
            "object": lambda: self._object(schema, depth),
            "array": lambda: self._array(schema, depth),
            "string": lambda: self._string(schema),
            "integer": lambda: int(self._number(schema)),
            "number": lambda: self._number(schema),
            "boolean": lambda: self.random.random() < 0.5,
            "null": lambda: None,
        }
        beyond = list(_beyond(schema)) if self.random.random() < self.stray else []
        if beyond:
            return self.random.choice(beyond)
        return makers.get(name, lambda: copy.deepcopy(self.random.choice(_ODD)))()

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties, required = schema.get("properties") or {}, schema.get("required") or []
        share = self.random.choice((0, 0.3, 1)) if depth < _DEEPEST else 0
        names = [name for name in properties if name in required or self.random.random() < share]
        made = {name: self.make(properties[name], depth + 1) for name in [*names, *(set(required) - set(properties))]}
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict) and self.random.random() < 0.7:
            made["extra"] = self.make(extra, depth + 1)
        return made

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        least = schema.get("minItems", 0)
        number = max(least, min(schema.get("maxItems", 3), self.random.choice((0, 1, 2)) if depth < _DEEPEST else 0))
        return [self.make(schema.get("items", True), depth + 1) for _ in range(min(number, 50))]

    def _string(self, schema: dict[str, Any]) -> str:
        pattern, least, most = schema.get("pattern"), schema.get("minLength", 0), schema.get("maxLength", math.inf)
        fitting = [text for text in _TEXTS if least <= len(text) <= most and _matches(pattern, text)]
        return self.random.choice(fitting or ["a" * min(least, 5_000)])

    def _number(self, schema: dict[str, Any]) -> float:
        least = schema.get("minimum", schema.get("exclusiveMinimum", -5) + 1 if "exclusiveMinimum" in schema else 0)
        most = schema.get("maximum", least + 10)
        return self.random.choice((least, most, least + (most - least) // 2))


def _beyond(schema: dict[str, Any]) -> Iterator[Value]:
    """Values one step past an assertion."""
    for key, step in (("minimum", -1), ("maximum", 1), ("exclusiveMinimum", 0), ("exclusiveMaximum", 0)):
        if key in schema:
            yield schema[key] + step
    if 0 <= schema.get("maxLength", -1) < 100_000:
        yield "a" * (schema["maxLength"] + 1)
    if schema.get("minLength"):
        yield "a" * (schema["minLength"] - 1)
    if "pattern" in schema:
        yield from (text for text in _TEXTS if not _matches(schema["pattern"], text))
    if 0 <= schema.get("maxItems", -1) < 1_000:
        yield ["a"] * (schema["maxItems"] + 1)


def arguments(schema: dict[str, Any], random: Random, number: int, spoilt: int) -> Iterator[Any]:
    """So many values made to fit, each followed by so many spoilt ones."""
    edges = [*_ODD, *_edges(schema)]
    maker, straying = Maker(schema, random), Maker(schema, random, stray=0.25)
    for _ in range(number):
        fitting = maker.make(schema)
        yield fitting
        for _ in range(spoilt // 2):
            yield _spoil(fitting, random, edges)
            yield straying.make(schema)


def _spoil(value: Value, random: Random, edges: list[Any]) -> Value:
    """A copy with one or two places changed."""
    changed = {"": copy.deepcopy(value)}
    for _ in range(random.choice((1, 1, 2))):
        holder, key = random.choice(list(_places(changed)))
        _change(holder, key, random, edges)
        if "" not in changed:
            return {}
    return changed[""]


def _change(holder: Value, key: Value, random: Random, edges: list[Any]) -> None:
    value, kind = holder[key], random.randrange(5)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(value, dict):
        value[random.choice(("extra", "type", "x", ""))] = copy.deepcopy(random.choice(edges))
    elif kind == 2 and isinstance(value, list):
        value.extend(copy.deepcopy(value or [random.choice(edges)]))
    elif kind == 3 and isinstance(value, str | int | float) and not isinstance(value, bool):
        holder[key] = (
            value + random.choice(("x", " ", value)) if isinstance(value, str) else value + random.choice((-1, 1, 0.5))
        )
    else:
        holder[key] = copy.deepcopy(random.choice(edges))


def _places(value: Value) -> Iterator[tuple[Any, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield value, key
        yield from _places(inner)


def _edges(schema: Value) -> Iterator[Any]:
    """What stands at the edge of the schema's assertions, wherever in it they stand."""
    if isinstance(schema, list):
        for part in schema:
            yield from _edges(part)
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        yield from _edges_of(key, value)
        yield from _edges(value)


def _edges_of(key: str, value: Value) -> Iterator[Any]:
    if key == "const":
        yield value
    elif key == "enum" and isinstance(value, list):
        yield from value[:5]
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return
    elif key in ("minLength", "maxLength"):
        yield from ("a" * length for length in (int(value) - 1, int(value), int(value) + 1) if 0 <= length < 5_000)
    elif key in ("minItems", "maxItems"):
        yield from (["a"] * length for length in (int(value) - 1, int(value), int(value) + 1) if 0 <= length < 500)
    elif key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
        yield from (value - 1, value, value + 1, value + 0.5, float(value))


def _without(schema: dict[str, Any], key: str) -> dict[str, Any]:
    return {other: value for other, value in schema.items() if other != key}


def _merged(schema: dict[str, Any], *others: Value) -> dict[str, Any]:
    merged = dict(schema)
    for other in others:
        if isinstance(other, dict):
            properties = {**merged.get("properties", {}), **other.get("properties", {})}
            required = [*merged.get("required", []), *other.get("required", [])]
            merged |= (
                other
                | ({"properties": properties} if properties else {})
                | ({"required": required} if required else {})
            )
    return merged


def find(root: Value, reference: str) -> Value:
    for part in reference.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        root = root[int(key)] if isinstance(root, list) else root[key]
    return root


def _matches(pattern: str | None, text: str) -> bool:
    try:
        return pattern is None or re.search(pattern, text) is not None
    except re.error:
        return True


def written(value: Value) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
