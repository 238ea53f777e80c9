"""Where does something new begin in a text?

Headings in prose, definitions in code, paragraphs in both: each line gets a strength at which a passage may begin with
it, and those that begin a section say its title. By the look of lines alone, in any language, so that nothing fails on
a file that is broken; no parser is asked.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["CONTINUED", "Line", "outline"]

CONTINUED = 0
"""The strength of a line that belongs to the one before."""
_LISTED, _PARAGRAPH, _INNER, _TOP = 1, 2, 3, 8
"""Of an item or an indented paragraph, a paragraph, the innermost section, the outermost."""

_PROSE = frozenset(("md", "markdown", "mdx", "rst", "txt", "adoc", "asciidoc", "org", "textile", "tex", "wiki", ""))
_HEADING = re.compile(r" {0,3}(#{1,6}|={1,6}|\*{1,6})\s+(\S.*)|\\(part|chapter|(?:sub){0,2}section)\*?\{(.*)")
_RULED = re.compile(r"([=\-~^\"'`*+#:.])\1{2,}\s*$")
_FENCE = re.compile(r"\s*(```|~~~)")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s")
_BEFORE = (
    *("export", "default", "public", "private", "protected", "internal", "static", "final", "abstract", "async", "pub"),
    *("unsafe", "extern", "inline", "virtual", "override", "open", "sealed", "data", "const", "declare", "local"),
    *("create", "or", "replace"),
)
_DEFINING = (
    *("def", "class", "function", "func", "fun", "fn", "sub", "proc", "impl", "struct", "interface", "enum", "trait"),
    *("type", "module", "mod", "namespace", "package", "object", "protocol", "extension", "record", "union", "macro"),
    *("table", "view", "procedure", "trigger", "resource", "service", "message"),
)
_FIRST = re.compile(r"\s*([A-Za-z]+)")
_DEFINING_FIRST = frozenset((*_BEFORE, *_DEFINING))
_DEFINITION = re.compile(
    rf"(\s*)(?:(?:{'|'.join(_BEFORE)})(?:\([a-z]+\))?\s+)*(?:{'|'.join(_DEFINING)})\b[\s*]+([\w.:$<>~]+)", re.IGNORECASE
)
"""In most languages: words such as `public static`, a word such as `class`, a name."""
_ATTACHED = re.compile(r"\s*(?:@|#|//|/\*|\*|--|;|\[|<!--|\"\"\")")
"""Begins a decorator or a comment, which belongs to what it stands on."""
_LONG = 200
"""Characters of a line that are looked at."""
_DEEP = 8
"""Spaces of indentation beyond which a definition is a detail."""
_ATTACHABLE = 30
"""Lines of comments and decorators that a definition takes along at the most."""


@dataclass(frozen=True, slots=True)
class Line:
    """What a passage that begins here would begin with."""

    strength: int
    title: str = ""
    depth: int = 0
    """Of the section that it begins: a title ends all that are as deep or deeper."""


def outline(lines: list[str], suffix: str) -> list[Line]:
    """One for each line of a text, whose name ends in that suffix."""
    heads = [line[:_LONG] for line in lines]
    return _prose(heads) if suffix.lower() in _PROSE else _code(heads)


def _prose(heads: list[str]) -> list[Line]:
    found: list[Line] = []
    fenced = False
    for before, (line, after) in zip(["", *heads], pairwise([*heads, ""]), strict=False):
        was_fenced = fenced
        fenced ^= _FENCE.match(line) is not None
        found.append(_of_paragraph(before, line) if was_fenced else _of_prose(before, line, after))
    return found


def _of_prose(before: str, line: str, after: str) -> Line:
    heading = _HEADING.match(line)
    if heading is not None:
        depth = len(heading[1]) if heading[1] else 1 + heading[3].count("sub")
        return Line(_TOP - min(depth, 4), heading[2] or heading[4], depth)
    if line.strip() and _RULED.match(after) and not _RULED.match(line):
        depth = 1 if after[0] == "=" else 2
        return Line(_TOP - depth, line.strip(), depth)
    return _of_paragraph(before, line)


def _of_paragraph(before: str, line: str) -> Line:
    if line.strip() and not before.strip():
        return Line(_LISTED if line[0].isspace() else _PARAGRAPH)
    return Line(_LISTED if _ITEM.match(line) else CONTINUED)


def _code(heads: list[str]) -> list[Line]:
    found = [_of_code(before, line) for before, line in zip(["", *heads], heads, strict=False)]
    for at, line in enumerate(found):
        if line.title:
            _take_along(found, heads, at)
    return found


def _of_code(before: str, line: str) -> Line:
    first = _FIRST.match(line)
    definition = _DEFINITION.match(line) if first and first[1].lower() in _DEFINING_FIRST else None
    if definition is not None:
        deep = len(definition[1].expandtabs(4))
        return Line(_TOP - 2 if not deep else _INNER + (deep <= _DEEP), definition[2], deep)
    return _of_paragraph(before, line)


def _take_along(found: list[Line], heads: list[str], at: int) -> None:
    """Lets a definition begin with the decorators and comments right above it."""
    begin = at
    while begin and at - begin < _ATTACHABLE and _ATTACHED.match(heads[begin - 1]) and not found[begin - 1].title:
        begin -= 1
    if begin < at:
        found[begin], found[at] = found[at], Line(CONTINUED)
