"""Walks the subschemas of a JSON schema, and shortens its texts.

What draft-07 and 2020-12 read alike, and nothing else: a schema that uses more is not plain (`is_plain`), and is
left in the shape it has.

Texts only: white space that carries nothing, titles and descriptions that repeat what stands beside them, and the first
sentence of a longer text. Nothing here looks at what a schema accepts.
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


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\da-zA-Z_]+")
_FENCE = "```"
_MARKUP = re.compile(r"^(?:<[^<>]*>|[#*_>`\s])+")
_SENTENCE = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!etc)(?<!vs)(?<!\b[A-Z])[.!?](?=\s|$)|[。！？]")
_BREAK = re.compile(r"\n\s*\n|\n\s*[-*#<•]|\n(?=[^\n]*:[ \t]*(?:\n|$))")
_PLAIN = re.compile(r"[\w\s]+\.?")
_ARTICLES = ("a", "an", "the")
_WITH_ITS_NAME = re.compile(r"[`*\"')]{0,8}(?: ?\([^()]{0,80}\))?[`*]{0,8} ?[:=–—-]{1,8} ?")
"""What stands between a parameter's name and what is said of it."""
_AT_MOST = 110
"""Characters of that."""
_PLACES = 8
"""In which a text is looked at for the name before it."""
_LONG_TITLE = 300
_READ = 1_000
"""Characters of a text that a title may repeat."""
_OPENING = 4_000
"""Characters in which a first sentence is looked for."""


def tidy(text: str) -> str:
    """The text without indentation common to all lines, trailing or doubled spaces, and blank lines in a row.

    Inside a fenced block, spaces within a line stay.
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
    """Whether every word of a short text already stands in the others, near their beginnings."""
    if len(text) > _LONG_TITLE:
        return False
    others = tuple(other[:_READ] for other in others)
    said = {word for other in others for word in _words(other)} | {"".join(_words(other)) for other in others}
    return said.issuperset(_words(text))


def is_name(text: str, name: str) -> bool:
    """Whether a description is no more than the name: `The owner.` for `owner`, not `owner/repo` for `owner_repo`."""
    if len(text) > 4 * len(name) + _LONG_TITLE:
        return False
    words = _words(text)
    bare = words[1:] if words[:1] and words[0] in _ARTICLES else words
    return _PLAIN.fullmatch(text) is not None and bare == _words(name)


def _words(text: str) -> list[str]:
    """In lower case; names are split at case and underscores."""
    return [word.lower() for word in _WORD.findall(text)]


def is_said_in(whole: str, name: str, text: str) -> bool:
    """Whether a tool's description, single-spaced, already says this of a parameter: `name: text`, `name (type): text`,
    `name - …`. A name without a letter is never looked for: it would be found in every rule and table."""
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
    """Whether the name is what the text at this place is said of."""
    start = max(0, at - _AT_MOST - len(name))
    while (start := whole.find(name, start, at)) >= 0:
        alone = start == 0 or not _is_of_a_word(whole[start - 1])
        if alone and _WITH_ITS_NAME.fullmatch(whole, start + len(name), at):
            return True
        start += 1
    return False


def _is_of_a_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def spaced(text: str) -> str:
    """The text in one line, with one space wherever there is any."""
    return " ".join(text.split())


def join_texts(first: str, second: str) -> str:
    """Two descriptions of one thing as one; a text that the other holds is not repeated."""
    if second in first:
        return first
    return second if first in second else f"{first}\n{second}"


def first_sentence(text: str, limit: int) -> str:
    """The first sentence, without markup before it or its full stop; cut at a word with `…` where it is too long."""
    paragraph = spaced(_BREAK.split(_MARKUP.sub("", text[:_OPENING]), 1)[0])
    end = _SENTENCE.search(paragraph)
    sentence = paragraph[: end.start()] if end else paragraph
    if len(sentence) <= limit:
        return sentence.rstrip(":;, ")
    return sentence[: limit - 1].rsplit(" ", 1)[0].rstrip(":;,. ") + "…"
