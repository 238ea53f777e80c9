"""What is in a schema, whichever of Google's two spellings it has?

OpenAPI in capitals or in numbers, or JSON Schema with references: both are read here, and references that lead back to
themselves are followed only so far. How a schema is then written is not known here.
"""

from collections.abc import Iterator, Mapping

from ullage.tool import Json

__all__ = ["Unrolled", "has_lone_enum", "is_familiar", "items_of", "kind_of", "names_of", "object_of", "text_of"]

MOST_SCHEMAS = 4_000
"""Sub-schemas visited of one tool, so that references cannot multiply without end."""
_DEPTH = 5
"""How many references deep a schema that refers back to itself is unrolled."""
_NUMBERED = ("", "string", "number", "integer", "boolean", "array", "object")
"""The protocol's enumeration, which some clients send as numbers."""


def object_of(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def items_of(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def names_of(value: Json) -> list[str]:
    return [str(item) for item in items_of(value)]


def text_of(value: Json) -> str:
    return value if isinstance(value, str) else ""


def kind_of(schema: Mapping[str, Json]) -> str:
    """The type in lower case; of a list of types the first that is not null."""
    value = schema.get("type")
    if isinstance(value, list):
        value = next((item for item in value if item != "null"), "")
    if isinstance(value, int):
        return _NUMBERED[value] if 0 < value < len(_NUMBERED) else ""
    return value.lower() if isinstance(value, str) else ""


def is_familiar(schema: Json, keywords: frozenset[str]) -> bool:
    """Whether a schema uses only these keywords."""
    if isinstance(schema, list):
        return all(is_familiar(item, keywords) for item in schema)
    if not isinstance(schema, dict):
        return True
    named = [value for key in ("properties", "$defs") for value in object_of(schema.get(key)).values()]
    below = [schema.get(key) for key in ("items", "anyOf", "prefixItems")]
    return schema.keys() <= keywords and is_familiar([*named, *below], keywords)


def has_lone_enum(schema: Json) -> bool:
    """Whether an enumeration of one value is anywhere in a schema."""
    if isinstance(schema, list):
        return any(map(has_lone_enum, schema))
    if not isinstance(schema, dict):
        return False
    return len(items_of(schema.get("enum"))) == 1 or any(map(has_lone_enum, schema.values()))


class Unrolled:
    """The references of one schema, followed as deep as Google follows them."""

    def __init__(self, schema: Mapping[str, Json]) -> None:
        self._definitions = {**object_of(schema.get("definitions")), **object_of(schema.get("$defs"))}
        self._open: list[str] = []
        self._steps: Iterator[int] = iter(range(MOST_SCHEMAS))

    def resolve(self, schema: Mapping[str, Json]) -> dict[str, Json]:
        """The schema with its reference replaced by what it names."""
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return dict(schema)
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return {**object_of(self._definitions.get(reference.rpartition("/")[2])), **rest}

    def enter(self, schema: Mapping[str, Json]) -> bool:
        """Whether this schema is to be written out; if so, `leave` it when that is done."""
        reference = schema.get("$ref")
        name = reference if isinstance(reference, str) else ""
        again = bool(name) and name in self._open and sum(map(bool, self._open)) >= _DEPTH
        if again or next(self._steps, None) is None:
            return False
        self._open.append(name)
        return True

    def leave(self) -> None:
        self._open.pop()
