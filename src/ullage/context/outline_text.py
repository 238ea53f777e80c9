"""Reads outlines: headings, list items and lines that give a name its value, nested by indentation.

Programs print what they found in many such forms: Markdown with `- **Price**: 12`, cards with a title line, TOML and
INI, `name ..... value`, `name="value" other=3`. All of them are lines that name a value, below lines that say what
they are about. Marks of the form (bullets, numbers, emphasis, symbols) are removed; what remains is a tree, by
indentation and by the rank of headings, titles, numbered items and bullets.

A value of a tree is an object. A name that occurs again begins another object. A line above others that names no value
is the name of their object. Program code, logs and prose are not outlines.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ullage.tool import Json

__all__ = ["HEADING", "read_outline"]

HEADING = "heading"
"""The key of the words above the values of an object."""

_LEAST, _MOST_WORDS = 2, 10
"""Fewest lines that name a value, and most words of a value that is no sentence."""
_LONGEST_TITLE, _LONGEST_LINE = 120, 2_000
"""Most characters of a line that says what others are about, and of a line that names a value."""
_TAB = 4
_HEADING = re.compile(r"(#{1,6})\s+(?P<title>\S.*?)\s*#*$")
_SECTION = re.compile(r"\[(?P<title>[\w.\" -]{1,60})\]|\[\[[\w.\" -]{1,60}\]\]")
"""The head of a section of TOML or INI. Between two brackets it is the same for all objects of a list."""
_BULLET = re.compile(r"(?:[-*•‣◦▪●○·+–—>]|☐|☑|✓|✔|✅|❌)\s+(?=\S)")
_NUMBERED = re.compile(r"(?:\(?\d{1,3}[.)]|\[\d{1,3}\]|#\d{1,3}[.:)]?)\s+(?=\S)")
_SYMBOL = re.compile(r"[^\w\s\"'`(){}\[\]<>$€£¥@~./\\#|=*-]+\s*")
"""A picture or a sign before a line."""
_EMPHASIS = re.compile(r"\*\*|__|(?<!\w)`|`(?!\w)|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])")
_KEY = r"[^\W\d][\w/'’&#%.\[\]-]{0,40}(?: [\w/'’&#%.-]{1,24}){0,3}(?: ?\([\w %/-]{1,20}\))?"
_NAMED = re.compile(
    rf"(?P<key>{_KEY})(?:\s*：|\s*:(?!//)(?=\s|$|[^\x00-\x7f])|\s+(?:->|→|⇒)\s+|\s+=\s+|\t+)\s*(?P<value>.*)"
)
"""A name with its value."""
_LEADERS = re.compile(r"(?P<key>[^\W\d_].{0,70}?)\s*(?:\.{4,}|…{2,}|_{4,}|·{4,})\s*(?P<value>\S.*)")
"""A name with its value behind a line of dots."""
_CLOSE = re.compile(r"(?P<key>[A-Za-z_][\w.-]{0,40})=(?P<value>[^\s=].*)")
"""A name and its value without space between them, as INI files and environments have them."""
_PAIRS = re.compile(r"(?<!\S)(?P<key>[A-Za-z_][\w.\[\]-]{0,40})=(?P<value>\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s,;]+)[,;]?")
"""Names with values, several on a line."""
_COVERED = 0.6
"""Share of a line that its pairs must make up."""
_RULE = re.compile(r"\W*")
_CODE = re.compile(
    r"(?:def|class|func|function|fn|impl|if|elif|else|for|while|try|except|catch|with|switch|case|public|private|static|struct|enum"
    r"|namespace|async|export)\s+\S.*[:({;]$|(?:else|try|finally|default)\s*[:{]$|(?:const|let|var)\s+\w+\s*[=:]"
    r"|(?:return|raise|throw|yield|assert|await)\b(?!\s*[:=])|from\s+\S+\s+import\b|import\s+[\w.{\"*]+|use\s+\w+::"
    r"|[@#]include\b|//|/\*|\*/|[})\]]+[;,]?$|.*(?:[;{]|\):|=>|\) ?\{)$"
)
"""A line of a program."""
_MOST_CODE = 0.1
"""Share of lines of a program from which on a text is one."""
_RANKS = 4
"""Ranks of lines at the same indentation: numbered items, plain lines, bullets, and what belongs to a bullet."""
_QUOTES = "\"'"


@dataclass(slots=True)
class _Node:
    depth: int
    key: str | None = None
    """The name of a value; None for a line that names none."""
    value: Json = None
    title: str = ""
    """The words of a line that names no value."""
    is_item: bool = False
    """Whether a bullet or a number is before the line."""
    inner: list["_Node"] = field(default_factory=list["_Node"])


def read_outline(text: str) -> Json:
    """Read an outline as an object or a list of objects; None if fewer than half of its lines name a value."""
    lines = [line.expandtabs(_TAB) if line[:1] == "\t" else line for line in text.split("\n") if line.strip()]
    if sum(_CODE.match(line.strip()) is not None for line in lines) >= _MOST_CODE * len(lines):
        return None
    nodes = [
        node for place, line in enumerate(lines) if (node := _node(line, lines[place + 1 : place + 2])) is not None
    ]
    named = sum(node.key is not None or isinstance(node.value, dict) for node in nodes)
    if not named or named + sum(isinstance(node.value, dict) for node in nodes) < _LEAST or 2 * named < len(nodes):
        return None
    wordy = sum(
        isinstance(node.value, str)
        and node.is_item
        and (node.value.count(", ") >= _LEAST or len(node.value.split()) > _MOST_WORDS)
        for node in nodes
    )
    # An item that relates several values in words is a line of a listing, not a name with its value.
    value = None if 2 * wordy > len(nodes) else _value(_tree(nodes))
    # Objects of one value relate nothing, as in a log that prints `Found: 12` again and again.
    is_related = not isinstance(value, list) or 2 * sum(len(one) > 1 for one in value if isinstance(one, dict)) >= len(
        value
    )
    return value if is_related else None


def _node(line: str, following: Sequence[str]) -> _Node | None:
    """Return what a line says; None for a rule."""
    indent, said = len(line) - len(line.lstrip()), line.strip()
    if len(said) > _LONGEST_LINE or _RULE.fullmatch(said):
        return None
    if (heading := _HEADING.match(said)) is not None:
        return _Node(-20 + len(heading[1]), title=_bare(_NUMBERED.sub("", heading["title"], count=1)))
    if (section := _SECTION.fullmatch(said)) is not None:
        return _Node(-10, title=(section["title"] or "").strip('"'))
    bullet, numbered = _BULLET.match(said), _NUMBERED.match(said)
    said = said[(bullet or numbered).end() :] if bullet or numbered else said  # type: ignore[union-attr]
    rank = 2 if bullet else 0 if numbered else 1
    depth = _RANKS * indent + rank
    if (pairs := _pairs(said)) is not None:
        return _Node(depth, value=pairs)
    bare = _bare(_SYMBOL.sub("", said, count=1) if _SYMBOL.match(said) else said)
    found = _match(bare)
    if found is not None:
        is_item = bool(bullet or numbered)
        return _Node(depth, key=" ".join(found["key"].split()), value=_plain(found["value"]), is_item=is_item)
    is_title = rank == 1 and len(bare) <= _LONGEST_TITLE and following and _names(following[0])
    # A title is above lines of its own indentation.
    return _Node(depth - 2 if is_title else depth, title=bare)


def _names(line: str) -> bool:
    said = line.strip()
    mark = _BULLET.match(said)
    return _match(_bare(said[mark.end() :] if mark else said)) is not None


def _match(bare: str) -> re.Match[str] | None:
    return _LEADERS.fullmatch(bare) or _NAMED.fullmatch(bare) or _CLOSE.fullmatch(bare)


def _pairs(said: str) -> Json:
    """Return the values of a line of several pairs; None if it has none or other words."""
    if said.count("=") < _LEAST:
        return None
    found = list(_PAIRS.finditer(said))
    if len(found) < _LEAST or sum(len(one[0]) for one in found) < _COVERED * len(said):
        return None
    held: dict[str, Json] = {one["key"]: _plain(one["value"]) for one in found}
    words = " ".join(_PAIRS.sub(" ", said).split())
    return {"text": words, **held} if any(map(str.isalnum, words)) and "text" not in held else held


def _bare(text: str) -> str:
    return _EMPHASIS.sub("", text).strip()


def _plain(value: str) -> str | None:
    text = value.strip().rstrip(",") if value.rstrip().endswith('",') else value.strip()
    if len(text) > 1 and text[0] in _QUOTES and text[-1] == text[0]:
        text = text[1:-1]
    return text or None


def _tree(nodes: Sequence[_Node]) -> list[_Node]:
    top = list[_Node]()
    open_ones = list[_Node]()
    for node in nodes:
        while open_ones and open_ones[-1].depth >= node.depth:
            open_ones.pop()
        (open_ones[-1].inner if open_ones else top).append(node)
        open_ones.append(node)
    return top


def _value(nodes: Sequence[_Node]) -> Json:
    """Return the value of the nodes below one node: an object, a list of objects, or a list of texts."""
    objects, held = list[Json](), dict[str, Json]()
    flat = list(_hoisted(nodes))
    titled = sum(node.key is None and bool(node.inner) for node in flat)
    for node in flat:
        if node.key is not None:
            if node.key in held:
                objects.append(held)
                held = {}
            held[node.key] = _value(node.inner) if node.inner else node.value
        elif isinstance(node.value, dict):
            objects.append(node.value)
        elif node.inner and (titled > 1 or not held or node.title in held):
            objects.append(_with_title(node.title, _value(node.inner)))
        elif node.inner:
            held[node.title] = _value(node.inner)
        elif node.title:
            objects.append(node.title)
    if not objects:
        return held
    held = held if any(value is not None for value in held.values()) else {}
    whole: list[Json] = [*([held] if held and titled else []), *objects, *([held] if held and not titled else [])]
    # Words between objects are left out.
    related: list[Json] = [one for one in whole if isinstance(one, dict)]
    return related[0] if len(related) == 1 else related or whole


def _with_title(title: str, inner: Json) -> Json:
    if not isinstance(inner, dict):
        return {title or "items": inner}
    return inner if not title or title in inner.values() or HEADING in inner else {HEADING: title, **inner}


def _hoisted(nodes: Sequence[_Node]) -> Iterator[_Node]:
    """Yield nodes so that a value and the lines below it are neighbours: they describe the same thing."""
    for node in nodes:
        if node.key is not None and node.value is not None and node.inner:
            yield _Node(node.depth, key=node.key, value=node.value)
            yield from _hoisted(node.inner)
        else:
            yield node
