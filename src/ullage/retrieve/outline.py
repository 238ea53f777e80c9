"""Where does something new begin in a text?

Headings in prose, definitions in code, paragraphs in both: each line gets a strength at which a passage may begin with
it, and those that begin a section say its title. By the look of lines alone, in any language, so that nothing fails on
a file that is broken; no parser is asked.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Outline", "Title", "outline"]

_CONTINUED, _LISTED, _PARAGRAPH, _INNER, _TOP = 0, 1, 2, 3, 8
"""The strength of a line that belongs to the one before, of an item or an indented paragraph, of a paragraph, of the
innermost section, of the outermost."""

_PROSE = frozenset(("md", "markdown", "mdx", "rst", "txt", "adoc", "asciidoc", "org", "textile", "tex", "wiki", ""))
_HEADING = re.compile(r" {0,3}(#{1,6}|={1,6})\s+(\S.*)|\\(part|chapter|(?:sub){0,2}section)\*?\{(.*)")
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
    rf"(\s*)(?:(?:{'|'.join(_BEFORE)})(?:\([a-z]+\))?\s+)*(?:{'|'.join(_DEFINING)})\b[\s*]+([\w$~]+(?:(?:\.|::)[\w$~]+)*)",
    re.IGNORECASE,
)
"""In most languages: words such as `public static`, a word such as `class`, a name."""
_ATTACHED = re.compile(r"\s*(?:@|#|//|/\*|\*|--|;|\[|<!--)")
"""Begins a decorator or a comment, which belongs to what it stands on."""
_LONG = 200
"""Characters of a line that are looked at."""
_DEEP = 8
"""Spaces of indentation beyond which a definition is a detail."""
_ATTACHABLE = 30
"""Lines of comments and decorators that a definition takes along at the most."""


@dataclass(frozen=True, slots=True)
class Title:
    """What a section is called that begins with a line."""

    text: str
    depth: int
    """A title ends all sections that are as deep or deeper."""
    strength: int


@dataclass(frozen=True, slots=True)
class Outline:
    """Numbers for most lines, and objects for few: a long text gives the collector of garbage nothing to do."""

    strengths: list[int]
    """How well a passage may begin with each line."""
    titles: dict[int, Title]
    """By line."""


def outline(lines: Sequence[str], suffix: str) -> Outline:
    """Of a text whose name ends in that suffix."""
    heads = [line[:_LONG] for line in lines]
    found = Outline([_of_paragraph(before, line) for before, line in zip(["", *heads], heads, strict=False)], {})
    titles = _headings(heads) if suffix.lower() in _PROSE else _definitions(heads)
    for at, title in titles:
        found.titles[at] = title
        found.strengths[at] = title.strength
    return found


def _of_paragraph(before: str, line: str) -> int:
    if line and not line.isspace() and (not before or before.isspace()):
        return _LISTED if line[0].isspace() else _PARAGRAPH
    return _LISTED if _ITEM.match(line) else _CONTINUED


def _headings(heads: list[str]) -> Iterator[tuple[int, Title]]:
    fenced = False
    for at, line in enumerate(heads):
        if _FENCE.match(line):
            fenced = not fenced
        title = None if fenced else _heading(line, heads[at + 1] if at + 1 < len(heads) else "")
        if title is not None:
            yield at, title


def _heading(line: str, after: str) -> Title | None:
    heading = _HEADING.match(line)
    if heading is not None:
        depth = len(heading[1]) if heading[1] else 1 + heading[3].count("sub")
        return Title(heading[2] or heading[4], depth, _TOP - min(depth, 4))
    if line.strip() and _RULED.match(after) and not _RULED.match(line):
        depth = 1 if after[0] == "=" else 2
        return Title(line.strip(), depth, _TOP - depth)
    return None


def _definitions(heads: list[str]) -> Iterator[tuple[int, Title]]:
    """A definition begins with the decorators and comments right above it."""
    free = 0
    for at, line in enumerate(heads):
        title = _definition(line)
        if title is not None:
            yield _attached(heads, at, max(free, at - _ATTACHABLE)), title
            free = at + 1


def _definition(line: str) -> Title | None:
    first = _FIRST.match(line)
    found = _DEFINITION.match(line) if first and first[1].lower() in _DEFINING_FIRST else None
    if found is None:
        return None
    depth = len(found[1].expandtabs(4))
    return Title(found[2], depth, _INNER + (depth <= _DEEP) if depth else _TOP - 2)


def _attached(heads: list[str], at: int, free: int) -> int:
    while at > free and _ATTACHED.match(heads[at - 1]):
        at -= 1
    return at
