"""The shape of what a tool returns: the keys of its objects and the kinds of its values, never a value.

A shape comes from a tool's `outputSchema` (`shape_of_schema`) or from replies (`shape_of_value`), and shapes of several
replies are joined (`join_shapes`). `write_shape` writes one within a number of tokens, as in `→ [{number, title, state,
assignee{login}, …}]`.

Keys of a reply may be data: ids, dates, e-mail addresses and names are keys of objects used as dictionaries, and a
secret may be one as well. So a key is kept only if it is made of words that keys of JSON usually have (`FIELD_WORDS`),
or that the tool's own definition has, which its model reads in any case. Names of files and hosts are made of known
words as well, so a key with a dot is never known, nor one of several words with hyphens as in a passphrase. An object
is taken as a dictionary, and none of its keys is kept, if any key cannot be a field's name at all, if fewer than most
of its keys are known, if its keys are codes such as tickers, if its values are objects of the same keys, or if its keys
vary between the elements of a list or between replies.

The work is bounded for any reply: at most some hundred values of it are looked at, and 12,000 characters of a text.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import cast

from ullage.invisible_characters import has_invisible
from ullage.tool import Json, JsonObject, Tool

from .field_words import FIELD_WORDS
from .held_result import Sample, ValueKind

__all__ = [
    "MOST_TOKENS",
    "ReturnShape",
    "definition_words",
    "is_informative",
    "join_shapes",
    "read_shape",
    "shape_of_sample",
    "shape_of_schema",
    "shape_of_value",
    "shape_to_json",
    "write_shape",
]

MOST_TOKENS = 25
"""Tokens that a shape may cost in a reply of `find_tool`."""
_VALUES = 500
"""Values of a reply that are looked at."""
_ELEMENTS = 12
"""Elements of a list that are looked at: most from its beginning, the others spread over it."""
_FIRST_ELEMENTS = 8
_DEEPEST = 5
"""Levels that are looked at."""
_DEEPEST_TEXT = 100
"""Levels of a long text up to which its head is parsed."""
_MOST_KEYS = 60
"""Keys above which an object is a dictionary."""
_KEPT = 32
"""Keys of an object that are kept."""
_LONGEST_KEY = 40
_MOST_WORDS = 5
_MOST_HYPHENED = 3
"""Words of a key with hyphens."""
_LINKED_DATA = frozenset({"@id", "@type", "@context", "@graph", "@value", "@language", "@list", "@set", "@attributes"})
"""Keys with an `@` that are no user's name."""
_LONGEST_CODE = 5
_MOSTLY = 0.6
"""Share of an object's keys that must be known, else none is kept."""
_STABLE = 0.5
"""Least average presence of a key in the elements of a list, and least share of keys that two replies have in
common."""
_STEPS = 300
"""Schemas that are looked at in one `outputSchema`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnShape:
    """What is known of the values at one place."""

    kinds: frozenset[ValueKind] = frozenset()
    keys: Mapping[str, "ReturnShape"] = field(default_factory=dict[str, "ReturnShape"])
    """The kept keys of its objects, in their order."""
    is_open: bool = False
    """Whether its objects have keys besides."""
    is_map: bool = False
    """Whether its objects are dictionaries, whose keys are data."""
    items: "ReturnShape | None" = None
    """The elements of its lists; None where none was seen."""


def is_informative(shape: ReturnShape) -> bool:
    """Return whether a shape says more than that there is an object or a list."""
    if shape.keys or (shape.items is not None and is_informative(shape.items)):
        return True
    return bool(shape.kinds - {"object", "list", "null"}) or shape.is_map


def shape_to_json(shape: ReturnShape) -> dict[str, Json]:
    """Return a shape as JSON, for the store."""
    said: dict[str, Json] = {"kinds": list[Json](sorted(shape.kinds))}
    if shape.keys:
        said["keys"] = {key: shape_to_json(inner) for key, inner in shape.keys.items()}
    if shape.is_open:
        said["open"] = True
    if shape.is_map:
        said["map"] = True
    if shape.items is not None:
        said["items"] = shape_to_json(shape.items)
    return said


def read_shape(said: Json) -> ReturnShape | None:
    """Parse a stored shape; None if it is in an unknown format."""
    if not isinstance(said, dict):
        return None
    kinds, keys, items = said.get("kinds"), said.get("keys", {}), said.get("items")
    if not isinstance(kinds, list) or not isinstance(keys, dict):
        return None
    inner = {key: read_shape(one) for key, one in keys.items()}
    return ReturnShape(
        kinds=frozenset(cast("list[ValueKind]", kinds)),
        keys={key: one for key, one in inner.items() if one is not None},
        is_open=said.get("open") is True,
        is_map=said.get("map") is True,
        items=None if items is None else read_shape(items),
    )


_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^\W\d_a-zA-Z]+|\d+")
_SEPARATORS = re.compile(r"[-_. ]+")
_LONG_NUMBER = re.compile(r"\d{3}|\d\D+\d\D+\d")
"""Matches keys with as many digits as only data has: ids, dates, hashes."""
_ANY_WORD = re.compile(r"\w+")
_LONGEST_READ = 4_000
"""Characters of a description, and of parameters' names, whose words are collected."""


def _singular(word: str) -> str:
    """Return a word without the ending of its plural; `scripts/build_field_words.py` has the same rule."""
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def definition_words(tool: Tool) -> frozenset[str]:
    """Return the words of a tool's name, description and parameters, whole names among them."""
    names = list[str]()
    todo: list[Json] = [dict(tool.input_schema)]
    while todo and len(names) < _STEPS:
        schema = todo.pop()
        if isinstance(schema, dict):
            properties = schema.get("properties")
            names += list(properties)[:_STEPS] if isinstance(properties, dict) else []
            todo += list(schema.values())[:_STEPS]
        elif isinstance(schema, list):
            todo += schema[:_STEPS]
    description = (tool.description or tool.title or "")[:_LONGEST_READ]
    text = f"{tool.name} {description} {' '.join(names)[:_LONGEST_READ]}"
    found = {word.casefold() for word in _ANY_WORD.findall(text)}
    found.update(_singular(part.casefold()) for part in _PARTS.findall(text) if not part.isdecimal())
    return frozenset(found)


def _is_field_name(key: str) -> bool:
    """Return whether a key can be a field's name: words in any script, with the separators usual in names."""
    if not 0 < len(key) <= _LONGEST_KEY or has_invisible(key) or _LONG_NUMBER.search(key):
        return False
    name = _SEPARATORS.sub("_", key.lstrip("@$_"))
    if not name.isidentifier() or " " in key:
        return False
    return key.isascii() or unicodedata.normalize("NFKC", key) == key


def _is_known(key: str, words: frozenset[str]) -> bool:
    """Return whether a key that can be a field's name consists of known words."""
    if key.casefold() in words:
        return True
    parts = [part.casefold() for part in _PARTS.findall(key)]
    if not parts or len(parts) > (_MOST_HYPHENED if "-" in key else _MOST_WORDS):
        return False
    if "." in key or (key.startswith("@") and key not in _LINKED_DATA):
        return False
    return all((word := _singular(part)) in FIELD_WORDS or word in words for part in parts)


@dataclass(slots=True)
class _Place:
    """The values seen at one place of a reply."""

    kinds: set[ValueKind] = field(default_factory=set[ValueKind])
    objects: int = 0
    """Objects with at least one key."""
    is_map: bool = False
    keys: "dict[str, _Place]" = field(default_factory=dict[str, "_Place"])
    present: dict[str, int] = field(default_factory=dict[str, int])
    """Number of objects that have each key."""
    is_cut: bool = False
    """Whether some of its values were not looked at."""
    items: "_Place | None" = None


class _Looking:
    """Looks at the values of a reply, at most so many."""

    def __init__(self) -> None:
        self.left = _VALUES

    def look(self, value: Json, place: _Place, depth: int) -> None:
        self.left -= 1
        if isinstance(value, dict):
            place.kinds.add("object")
            self._look_at_object(value, place, depth)
        elif isinstance(value, list):
            place.kinds.add("list")
            if value and depth < _DEEPEST:
                place.items = place.items or _Place()
                if len(value) <= _ELEMENTS:
                    elements = value
                else:
                    stride = max(1, (len(value) - _FIRST_ELEMENTS) // (_ELEMENTS - _FIRST_ELEMENTS))
                    elements = value[:_FIRST_ELEMENTS] + value[_FIRST_ELEMENTS::stride][: _ELEMENTS - _FIRST_ELEMENTS]
                for element in elements:
                    if self.left <= 0:
                        break
                    self.look(element, place.items, depth + 1)
        else:
            place.kinds.add(_kind_of(value))

    def _look_at_object(self, value: dict[str, Json], place: _Place, depth: int) -> None:
        if not value:
            return
        place.objects += 1
        if len(value) > _MOST_KEYS:
            place.is_map = True
        if place.is_map:
            return
        if depth >= _DEEPEST or self.left < len(value):
            place.is_cut = True
            return
        for key, inner in value.items():
            if not _is_field_name(key):
                place.is_map = True
                return
            if key not in place.keys:
                if len(place.keys) >= 2 * _MOST_KEYS:
                    place.is_map = True
                    return
                place.keys[key] = _Place()
            place.present[key] = place.present.get(key, 0) + 1
            self.look(inner, place.keys[key], depth + 1)


def _kind_of(value: Json) -> ValueKind:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "number"


def shape_of_value(value: Json, words: frozenset[str] = frozenset()) -> ReturnShape:
    """Return the shape of a value.

    Args:
        value: Of any size and depth.
        words: Words of the tool's definition, of which keys may consist.
    """
    place = _Place()
    _Looking().look(value, place, 0)
    return _judge(place, words)


def _judge(place: _Place, words: frozenset[str]) -> ReturnShape:
    """Return what may be kept of a place."""
    items = None if place.items is None else _judge(place.items, words)
    kinds = frozenset(place.kinds)
    if not place.objects:
        return ReturnShape(kinds=kinds, items=items)
    known = [key for key in place.keys if _is_known(key, words)]
    if place.is_map or _is_dictionary(place, known):
        return ReturnShape(kinds=kinds, is_map=True, items=items)
    return ReturnShape(
        kinds=kinds,
        keys={key: _judge(place.keys[key], words) for key in known[:_KEPT]},
        is_open=place.is_cut or len(place.keys) > min(len(known), _KEPT),
        items=items,
    )


def _is_dictionary(place: _Place, known: Sequence[str]) -> bool:
    """Return whether the keys of a place's objects are data."""
    if not place.keys:
        return False
    if len(known) < _MOSTLY * len(place.keys) or _has_codes(place):
        return True
    density = sum(place.present.values()) / (place.objects * len(place.keys))
    if density < _STABLE:
        return True
    inner = list(place.keys.values())
    if len(inner) < 2 or any(one.kinds - {"null"} != {"object"} for one in inner):
        return False
    first = set(inner[0].keys)
    alike = (len(first & set(one.keys)) >= _MOSTLY * max(1, len(first | set(one.keys))) for one in inner[1:])
    return all(one.is_map for one in inner) or (bool(first) and all(alike))


def _has_codes(place: _Place) -> bool:
    """Return whether a place has several keys, all of them short words in capitals, and their values are of one kind:
    tickers, currencies or countries."""
    if len(place.keys) < 2 or not all(key.isupper() and len(key) <= _LONGEST_CODE for key in place.keys):
        return False
    return len(set[ValueKind]().union(*(inner.kinds for inner in place.keys.values())) - {"null"}) <= 1


def join_shapes(one: ReturnShape, other: ReturnShape) -> ReturnShape:
    """Return the shape of both replies. An object whose keys vary between them is a dictionary."""
    items = one.items if other.items is None else other.items if one.items is None else None
    if one.items is not None and other.items is not None:
        items = join_shapes(one.items, other.items)
    kinds = one.kinds | other.kinds
    both = one.keys.keys() & other.keys.keys()
    least = min(len(one.keys), len(other.keys))
    if one.is_map or other.is_map or (least and len(both) < _STABLE * least):
        return ReturnShape(kinds=kinds, is_map=True, items=items)
    keys = {key: join_shapes(inner, other.keys[key]) if key in both else inner for key, inner in one.keys.items()}
    keys |= {key: inner for key, inner in other.keys.items() if key not in both}
    return ReturnShape(
        kinds=kinds,
        keys=dict(list(keys.items())[:_KEPT]),
        is_open=one.is_open or other.is_open or len(keys) > _KEPT,
        items=items,
    )


def shape_of_sample(sample: Sample, words: frozenset[str]) -> ReturnShape | None:
    """Return the shape of a sample; None if its text is not readable as JSON within the bounds."""
    if sample.kinds:
        return ReturnShape(kinds=sample.kinds)
    if sample.head is None:
        return shape_of_value(sample.value, words)
    text = sample.head if sample.is_whole else _closed(sample.head)
    try:
        return None if text is None else shape_of_value(json.loads(text), words)
    except (ValueError, RecursionError):
        return ReturnShape(kinds=frozenset({"text"})) if sample.is_whole else None


_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\Z)|[\[\]{},]', re.DOTALL)
"""Matches a JSON string, even without its end, a bracket or a comma."""
_CLOSING = {"[": "]", "{": "}"}
_MOST_TOKENS_READ = 4_000
"""Strings, brackets and commas of a text that are read."""


def _closed(head: str) -> str | None:
    """Return the beginning of a JSON text, cut after its last whole member and closed; None if it is too deep or has
    no whole member."""
    tokens = list(islice(_TOKEN.finditer(head), _MOST_TOKENS_READ))
    last = next((number for number in range(len(tokens) - 1, -1, -1) if tokens[number][0] == ","), None)
    if last is None:
        return None
    closers = list[str]()
    for token in tokens[:last]:
        mark = token[0]
        if mark in _CLOSING:
            closers.append(_CLOSING[mark])
            if len(closers) > _DEEPEST_TEXT:
                return None
        elif mark in ("]", "}") and (not closers or closers.pop() != mark):
            return None
    return head[: tokens[last].start()] + "".join(reversed(closers))


def shape_of_schema(schema: JsonObject) -> ReturnShape | None:
    """Return the shape that an `outputSchema` declares; None if it says nothing."""
    found = _Reading(root=schema).read(dict(schema), 0)
    return found if is_informative(found) else None


@dataclass(slots=True, kw_only=True)
class _Reading:
    """Reads a schema, at most so many parts of it."""

    root: JsonObject
    left: int = _STEPS

    def read(self, schema: Json, depth: int) -> ReturnShape:
        self.left -= 1
        if not isinstance(schema, dict) or depth > _DEEPEST or self.left <= 0:
            return ReturnShape()
        reference = schema.get("$ref")
        if isinstance(reference, str):
            found: Json = dict(self.root)
            for part in reference.removeprefix("#").split("/")[1:]:
                found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
            return self.read(found, depth + 1)
        for name in ("anyOf", "oneOf", "allOf"):
            parts = schema.get(name)
            if isinstance(parts, list) and not schema.keys() & {"properties", "items"}:
                return self._any(parts, depth + 1)
        if "const" in schema:
            return ReturnShape(kinds=frozenset({_kind_of(schema["const"])}))
        declared = schema.get("type", "object" if "properties" in schema else "array" if "items" in schema else None)
        names = declared if isinstance(declared, list) else [declared]
        kinds = frozenset[ValueKind](_KINDS[name] for name in names if isinstance(name, str) and name in _KINDS)
        items = schema.get("items")
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            keys = {}
        else:
            some = list(properties.items())[:_KEPT]
            keys = {key: self.read(inner, depth + 1) for key, inner in some if _is_field_name(key)}
        return ReturnShape(
            kinds=kinds,
            keys=keys,
            is_open="object" in kinds and schema.get("additionalProperties") is True,
            is_map="properties" not in schema and isinstance(schema.get("additionalProperties"), dict),
            items=self.read(items, depth + 1) if isinstance(items, dict) else None,
        )

    def _any(self, parts: list[Json], depth: int) -> ReturnShape:
        """Return the first alternative that says most, with the kinds of all."""
        found = [self.read(part, depth) for part in parts[:8]]
        best = next((one for one in found if is_informative(one) and (one.keys or one.items)), None)
        kinds = frozenset[ValueKind]().union(*(one.kinds for one in found))
        best = best or next((one for one in found if one.kinds - {"null"}), ReturnShape())
        return ReturnShape(kinds=kinds, keys=best.keys, is_open=best.is_open, is_map=best.is_map, items=best.items)


_KINDS: Mapping[str, ValueKind] = {
    "null": "null",
    "boolean": "boolean",
    "number": "number",
    "integer": "number",
    "string": "string",
    "array": "list",
    "object": "object",
}

_Path = tuple[str, ...]
_TIRESOME = re.compile(r"(?:^|[_a-z])(?:url|uri|href)s?$|^_|node_?id|etag|gravatar", re.IGNORECASE)
"""Matches keys that are shown after others: links and internal marks."""
_LATER = 20
_DEPTH_COSTS = 3
_FEW = 6
"""Keys of an object up to which a list in it is taken as what it is there for."""
_TRIES = 5
"""Keys that are tried after the first that does not fit."""


def write_shape(shape: ReturnShape, weigh: Callable[[str], int], most: int = MOST_TOKENS) -> str:
    """Return a shape as text, with as many keys as fit.

    Args:
        shape: The shape.
        weigh: Counts tokens.
        most: Tokens of the text.

    Returns:
        `→ ` and the shape; empty if the shape says nothing, or not even its outline fits.
    """
    if not is_informative(shape):
        return ""
    shown = set[_Path]()
    text = _write(shape, shown)
    if weigh(text) > most:
        return ""
    failed = 0
    for _, path in sorted(_ranks(shape, (), 0)):
        if failed >= _TRIES:
            break
        if path[:-1] and path[:-1] not in shown:
            continue
        longer = _write(shape, shown | {path})
        if weigh(longer) <= most:
            text = longer
            shown.add(path)
        else:
            failed += 1
    return text


def _write(shape: ReturnShape, shown: set[_Path]) -> str:
    return f"→ {_value(shape, (), shown) or 'any'}"


def _ranks(shape: ReturnShape, outer: _Path, base: int) -> Iterator[tuple[int, _Path]]:
    # The objects of a shape: itself, or the elements of its list.
    record = shape
    while not record.keys and record.items is not None:
        record = record.items
    is_wrapper = not outer and len(record.keys) <= _FEW and record is shape
    for place, (key, inner) in enumerate(record.keys.items()):
        rank = base + place + (_LATER if _TIRESOME.search(key) else 0)
        path = (*outer, key)
        yield rank, path
        is_payload = is_wrapper and inner.items is not None
        yield from _ranks(inner, path, rank + (1 if is_payload else _DEPTH_COSTS))


def _value(shape: ReturnShape, path: _Path, shown: set[_Path]) -> str:
    """Return a value's shape; at a key, nothing for a scalar."""
    if "list" in shape.kinds and not shape.keys:
        inner = "" if shape.items is None else _value(shape.items, path, shown)
        return f"[{inner or (_scalar(shape.items) if shape.items is not None else '')}]"
    if "object" in shape.kinds:
        keys = [
            f"{key}{_value(inner, (*path, key), shown)}" for key, inner in shape.keys.items() if (*path, key) in shown
        ]
        is_all = len(keys) == len(shape.keys) and not shape.is_open and not shape.is_map and bool(keys)
        return f"{{{', '.join(keys if is_all else [*keys, '…'])}}}"
    return "" if path else _scalar(shape)


def _scalar(shape: ReturnShape) -> str:
    return "|".join(sorted(shape.kinds - {"null"}))
