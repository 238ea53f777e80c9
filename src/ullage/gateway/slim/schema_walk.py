"""Walks the subschemas of a JSON schema, and shortens its texts.

Only keywords that draft-07 and 2020-12 read alike are handled. A schema with others is not plain (`is_plain`) and keeps
its structure.

Of texts, these are removed: white space without meaning, titles and descriptions that repeat their surroundings, and
of a longer text everything after the first sentence. The text functions do not depend on what a schema accepts.
"""

import re
from collections.abc import Callable, Iterator
from itertools import groupby

from ullage.tool import Json

__all__ = [
    "ANNOTATIONS",
    "Pointer",
    "Schema",
    "children",
    "depth_exceeds",
    "first_sentence",
    "is_name",
    "is_plain",
    "is_said_in",
    "is_small",
    "join_texts",
    "map_children",
    "repeats",
    "spaced",
    "tidy",
]

Schema = dict[str, Json]
Pointer = tuple[str, ...]

_ONE = frozenset({"items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf"})
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})

ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment"}
)
"""Keywords that validators ignore."""

_UNEVEN = frozenset(
    {
        "$id", "id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary",
        "prefixItems", "additionalItems", "dependencies", "dependentRequired", "dependentSchemas", "minContains",
        "maxContains", "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip
"""Keywords that the two dialects read differently, or that give a schema an address besides its place."""
_DIALECTS = frozenset(
    {None, "json-schema.org/draft-07/schema", "json-schema.org/draft/2020-12/schema"},
)


def children(schema: Schema) -> Iterator[tuple[Pointer, Json]]:
    """Yield each direct subschema with its place."""
    for key, value in schema.items():
        if key in _ONE:
            yield (key,), value
        elif key in _LISTS and isinstance(value, list):
            yield from (((key, str(index)), child) for index, child in enumerate(value))
        elif key in _MAPS and isinstance(value, dict):
            yield from (((key, name), child) for name, child in value.items())


def map_children(schema: Schema, change: Callable[[Pointer, Json], Json]) -> Schema:
    """Return the schema with each direct subschema changed."""
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
    """Return whether the structure may be changed: the dialect is known, and all its keywords are read alike by
    every dialect."""
    declared = schema.get("$schema")
    dialect = None if declared is None else str(declared).removeprefix("https://").removeprefix("http://").rstrip("#")
    return dialect in _DIALECTS and _is_even(schema)


def _is_even(schema: Json) -> bool:
    if not isinstance(schema, dict):
        return isinstance(schema, bool)
    return _UNEVEN.isdisjoint(schema) and all(_is_even(child) for _, child in children(schema))


def depth_exceeds(value: Json, limit: int) -> bool:
    """Return whether a value is nested deeper than the limit; checked first, so that no recursion overflows the
    stack."""
    level: list[Json] = [value]
    for _ in range(limit):
        level = [inner for outer in level for inner in _parts(outer)]
        if not level:
            return False
    return True


def is_small(value: Json, *, values: int, letters: int) -> bool:
    """Return whether a value has at most this many values and characters.

    Each counts once for every level of nesting above it, which is how often it is read if every part is written out.
    """
    todo: list[tuple[Json, int]] = [(value, 1)]
    values -= 1
    while todo and values >= 0 and letters >= 0:
        outer, depth = todo.pop()
        if isinstance(outer, str):
            letters -= depth * len(outer)
        elif isinstance(outer, dict | list):
            # Not examined if their number alone decides it.
            values -= len(outer)
            if values >= 0:
                letters -= depth * sum(map(len, outer)) if isinstance(outer, dict) else 0
                todo.extend((inner, depth + 1) for inner in (outer.values() if isinstance(outer, dict) else outer))
    return values >= 0 and letters >= 0


def _parts(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\da-zA-Z_]+")
_FENCE = "```"
_MARKUP = re.compile(r"^(?:<[^<>]*>|[#*_>`\s])+")
_SENTENCE = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!etc)(?<!vs)(?<!\b[A-Z])[.!?](?=\s|$)|[。！？]")
_BREAK = re.compile(r"\n\s*\n|\n\s*[-*#<•]|\n(?=[^\n]*:[ \t]*(?:\n|$))")
_PLAIN = re.compile(r"[\w\s]+\.?")
_ARTICLES = ("a", "an", "the")
_WITH_ITS_NAME = re.compile(r"[`*\"')]{0,8}(?: ?\([^()]{0,80}\))?[`*]{0,8} ?[:=–—-]{1,8} ?")
"""Matches the text between a parameter's name and its description."""
_AT_MOST = 110
"""Most characters of that text."""
_PLACES = 8
"""Most places of a text that are checked for the name before it."""
_LONG_TITLE = 300
_READ = 1_000
"""Characters of a text that are compared with a title."""
_OPENING = 4_000
"""Characters in which the end of the first sentence is searched."""


def tidy(text: str) -> str:
    """Remove indentation common to all lines, trailing or doubled spaces, and repeated blank lines.

    Spaces inside the lines of a fenced block are kept.
    """
    lines = text.strip().expandtabs(4).splitlines()
    margin = min((_indentation(line) for line in lines[1:] if line.strip()), default=0)
    fenced, kept = False, list[str]()
    for line in lines[:1] + [line[margin:] for line in lines[1:]]:
        fenced ^= line.lstrip().startswith(_FENCE)
        kept.append(line.rstrip() if fenced else (" " * _indentation(line) + " ".join(line.split())))
    runs = ((blank, list(run)) for blank, run in groupby(kept, key=lambda line: not line))
    return "\n".join(line for blank, run in runs for line in (run[:1] if blank else run))


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def repeats(text: str, *others: str) -> bool:
    """Return whether every word of a short text occurs in the others, near their beginnings."""
    if len(text) > _LONG_TITLE:
        return False
    others = tuple(other[:_READ] for other in others)
    said = {word for other in others for word in _words(other)} | {"".join(_words(other)) for other in others}
    return said.issuperset(_words(text))


def is_name(text: str, name: str) -> bool:
    """Return whether a description only repeats the name: `The owner.` for `owner`, not `owner/repo` for
    `owner_repo`."""
    if len(text) > 4 * len(name) + _LONG_TITLE:
        return False
    words = _words(text)
    bare = words[1:] if words[:1] and words[0] in _ARTICLES else words
    return _PLAIN.fullmatch(text) is not None and bare == _words(name)


def _words(text: str) -> list[str]:
    """Return the words in lower case; names are split at case and underscores."""
    return [word.lower() for word in _WORD.findall(text)]


def is_said_in(whole: str, name: str, text: str) -> bool:
    """Return whether a tool's description, single-spaced, already states this of a parameter: `name: text`, `name
    (type): text`, `name - …`.

    A name without a letter is never searched for: it would be found in every rule and table.
    """
    body, at = spaced(text), 0
    if not body or not any(map(str.isalnum, name)):
        return False
    for _ in range(_PLACES):
        at = whole.find(body, at)
        if at < 0:
            return False
        end = at + len(body)
        if whole[end : end + 1] in ("", " ") and _stands_before(whole, at, name):
            return True
        at += 1
    return False


def _stands_before(whole: str, at: int, name: str) -> bool:
    """Return whether the text at this place describes the name before it."""
    start = max(0, at - _AT_MOST - len(name))
    while (start := whole.find(name, start, at)) >= 0:
        alone = start == 0 or not (whole[start - 1].isalnum() or whole[start - 1] == "_")
        if alone and _WITH_ITS_NAME.fullmatch(whole, start + len(name), at):
            return True
        start += 1
    return False


def spaced(text: str) -> str:
    """Return the text on one line, with single spaces."""
    return " ".join(text.split())


def join_texts(first: str, second: str) -> str:
    """Join two descriptions of the same thing; a text that the other contains is not repeated."""
    if second in first:
        return first
    return second if first in second else f"{first}\n{second}"


def first_sentence(text: str, limit: int) -> str:
    """Return the first sentence without leading markup and full stop; if too long, cut at a word with `…`."""
    paragraph = spaced(_BREAK.split(_MARKUP.sub("", text[:_OPENING]), 1)[0])
    end = _SENTENCE.search(paragraph)
    sentence = paragraph[: end.start()] if end else paragraph
    if len(sentence) <= limit:
        return sentence.rstrip(":;, ")
    return sentence[: limit - 1].rsplit(" ", 1)[0].rstrip(":;,. ") + "…"
