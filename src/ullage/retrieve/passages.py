"""Cuts texts into passages and indexes their terms.

`cut` divides a text where something new begins: every line is in exactly one passage, in order. A passage is long
enough to be understood and short enough that several fit into a reply; a single line is never cut, however long. Sizes
are in characters, because a passage is cut once and weighed for models with different tokenizers.

`outline` finds headings in prose, definitions in code, and paragraphs in both: each line gets a strength with which a
passage may begin there, and lines that begin a section have its title. It looks at the form of lines alone, in any
language and without a parser, so that broken files are no problem.

`PassageIndex` is an `Index` for a hundred thousand small texts that change a file at a time; `LexicalIndex` is rebuilt
for the next query after a change. A word in a passage takes four bytes here, and creates no objects for the garbage
collector.

Passages are ranked by BM25 over one text in which the path and headings are repeated twice more (Robertson, Zaragoza,
Taylor, "Simple BM25 extension to multiple weighted fields", 2004). Terms are those of `ullage.search`. Pure and
deterministic.
"""

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from sys import byteorder

from ullage.search import Document, terms

__all__ = ["Outline", "PassageIndex", "Span", "Title", "cut", "outline"]

_CONTINUED, _LISTED, _PARAGRAPH, _INNER, _TOP = 0, 1, 2, 3, 8
"""The strength of a line that continues the one before, of a list item or indented paragraph, of a paragraph, of the
innermost section, and of the outermost."""

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
"""A definition in most languages: words such as `public static`, a word such as `class`, a name."""
_ATTACHED = re.compile(r"\s*(?:@|#|//|/\*|\*|--|;|\[|<!--)")
"""The beginning of a decorator or a comment, which belongs to the definition below it."""
_LONG = 200
"""Characters of a line that are examined."""
_DEEP = 8
"""Spaces of indentation beyond which a definition counts as a detail."""
_ATTACHABLE = 30
"""The most lines of comments and decorators that belong to a definition."""


@dataclass(frozen=True, slots=True)
class Title:
    """The title of a section, by its first line."""

    text: str
    depth: int
    """Depth of the section; a title ends all sections of the same or a greater depth."""
    strength: int


@dataclass(frozen=True, slots=True)
class Outline:
    """The strengths and titles of a text's lines: numbers for all lines and objects for few, to spare the garbage
    collector."""

    strengths: list[int]
    """The strength with which a passage may begin with each line."""
    titles: dict[int, Title]
    """Titles by line."""


def outline(lines: Sequence[str], suffix: str) -> Outline:
    """Return the outline of a text whose file name ends in `suffix`."""
    heads = [line[:_LONG] for line in lines]
    strengths = list[int]()
    for before, line in zip(["", *heads], heads, strict=False):
        is_first = bool(line) and not line.isspace() and (not before or before.isspace())
        if is_first and not line[0].isspace():
            strengths.append(_PARAGRAPH)
        else:
            strengths.append(_LISTED if is_first or _ITEM.match(line) else _CONTINUED)
    found = Outline(strengths, {})
    for at, title in _headings(heads) if suffix.lower() in _PROSE else _definitions(heads):
        found.titles[at] = title
        found.strengths[at] = title.strength
    return found


def _headings(heads: list[str]) -> Iterator[tuple[int, Title]]:
    """Yield the headings of prose outside fenced code: marked ones, and lines with a rule below."""
    fenced = False
    for at, line in enumerate(heads):
        if _FENCE.match(line):
            fenced = not fenced
        if fenced:
            continue
        after = heads[at + 1] if at + 1 < len(heads) else ""
        heading = _HEADING.match(line)
        if heading is not None:
            depth = len(heading[1]) if heading[1] else 1 + heading[3].count("sub")
            yield at, Title(heading[2] or heading[4], depth, _TOP - min(depth, 4))
        elif line.strip() and _RULED.match(after) and not _RULED.match(line):
            depth = 1 if after[0] == "=" else 2
            yield at, Title(line.strip(), depth, _TOP - depth)


def _definitions(heads: list[str]) -> Iterator[tuple[int, Title]]:
    """Yield the titles of definitions. A definition begins with the decorators and comments directly above it."""
    free = 0
    for at, line in enumerate(heads):
        first = _FIRST.match(line)
        found = _DEFINITION.match(line) if first and first[1].lower() in _DEFINING_FIRST else None
        if found is None:
            continue
        depth = len(found[1].expandtabs(4))
        begin, least = at, max(free, at - _ATTACHABLE)
        while begin > least and _ATTACHED.match(heads[begin - 1]):
            begin -= 1
        yield begin, Title(found[2], depth, _INNER + (depth <= _DEEP) if depth else _TOP - 2)
        free = at + 1


_TITLED = 2
"""Additional copies of path and headings in the counted text: a title is more significant than a word in the text."""
_SATURATION = 1.2
"""BM25's k1: how quickly further occurrences of a term stop counting."""
_LENGTH = 0.75
"""BM25's b: how much the length of a text reduces the weight of its terms."""
_MOST = 255
"""The most occurrences of a term in a passage that count."""
_MOST_TERMS = 64
"""Different terms of a query that are looked up."""
_WORD = 4
"""Bytes of a posting: a slot in 24 bits, a count in 8."""
_HOLES = 1_000
"""Slots of removed passages tolerated in addition to one for each present passage."""


class PassageIndex:
    """Index of the words of passages, by id.

    A passage is the description of a `Document`, with its path and headings as name and server.
    """

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._ids: list[str | None] = []
        """Ids by slot; None for a removed passage."""
        self._lengths = array("I")
        self._length = 0
        """Length of all passages together, in terms."""
        self._postings: dict[str, bytearray] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, document: Document) -> None:
        """Add a passage; one with the same id is replaced."""
        self.remove(document.id)
        counts = Counter(terms(document.description))
        for term in terms(f"{document.name}\n{document.server}"):
            counts[term] += _TITLED
        slot = self._slots[document.id] = len(self._ids)
        self._ids.append(document.id)
        self._lengths.append(counts.total())
        self._length += self._lengths[slot]
        for term, count in counts.items():
            posting = (slot << 8 | min(count, _MOST)).to_bytes(_WORD, byteorder)
            known = self._postings.get(term)
            if known is None:
                self._postings[term] = bytearray(posting)
            else:
                known += posting

    def remove(self, document_id: str) -> None:
        """Remove a passage; an unknown id is not an error."""
        slot = self._slots.pop(document_id, None)
        if slot is None:
            return
        self._ids[slot] = None
        self._length -= self._lengths[slot]
        if len(self._ids) > 2 * len(self._slots) + _HOLES:
            # Renumbers the passages in their order, without gaps.
            kept = [slot for slot, name in enumerate(self._ids) if name is not None]
            moved = dict(zip(kept, range(len(kept)), strict=True))
            postings = dict[str, bytearray]()
            for term, words in self._postings.items():
                left = [moved[word >> 8] << 8 | word & 0xFF for word in _words(words) if word >> 8 in moved]
                if left:
                    postings[term] = bytearray(b"".join(word.to_bytes(_WORD, byteorder) for word in left))
            self._postings = postings
            self._lengths = array("I", [self._lengths[slot] for slot in kept])
            self._ids = [self._ids[slot] for slot in kept]
            self._slots = {name: slot for slot, name in enumerate(self._ids) if name is not None}

    def scores(self, query: str) -> dict[str, float]:
        """Return the score of each passage that shares a term with the query, by id."""
        totals = [0.0] * len(self._ids)
        for term, times in Counter(terms(query)).most_common(_MOST_TERMS):
            # The postings are numbers: a list of pairs would burden the garbage collector.
            words, ids = _words(self._postings.get(term)), self._ids
            if len(ids) != len(self._slots):
                words = [word for word in words if ids[word >> 8] is not None]
            # Adds the contribution of one term to each passage that has it; a rare term is worth more, and further
            # occurrences count less and less.
            rarity = math.log(1 + (len(self._slots) - len(words) + 0.5) / (len(words) + 0.5))
            worth = math.sqrt(times) * rarity
            lengths = self._lengths
            least = _SATURATION * (1 - _LENGTH)
            scale = _SATURATION * _LENGTH * len(self._slots) / (self._length or 1)
            for word in words:
                slot, count = word >> 8, word & 0xFF
                totals[slot] += worth * count / (count + least + scale * lengths[slot])
        return {name: total for name, total in zip(self._ids, totals, strict=True) if total and name is not None}


def _words(postings: bytearray | None) -> list[int]:
    return [] if postings is None else [*array("I", bytes(postings))]


_LEAST = 500
"""Least characters of a passage: some 130 tokens of prose."""
_CUTTING_MOST = 1_500
"""Most characters of a passage: some 400 tokens."""
_AT_THE_END = 100
"""The strength of a text's end: greater than that of any line."""


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive lines, counted from 0; `end` is the line after the last."""

    start: int
    end: int
    titles: tuple[str, ...]
    """Titles of the sections around it and of those that begin in it, the outermost first."""


def cut(lines: Sequence[str], suffix: str) -> list[Span]:
    """Return the passages of a text whose file name ends in `suffix`."""
    found, around = list[Span](), list[Title]()
    marks = outline(lines, suffix)
    ends = list(accumulate((len(line) + 1 for line in lines), initial=0))
    start = end = 0
    while end < len(lines):
        # The passage ends at the strongest line within bounds, and at the last among equals.
        start, end, strength = end, end + 1, -1
        for next_end in range(start + 1, len(ends)):
            size = ends[next_end] - ends[start]
            if size > _CUTTING_MOST:
                break
            if next_end == len(lines):
                found_strength = _AT_THE_END
            else:
                found_strength = marks.strengths[next_end] if size >= _LEAST else -1
            if found_strength >= strength:
                end, strength = next_end, found_strength
        inside = [title for at in range(start, end) if (title := marks.titles.get(at))]
        if start in marks.titles:
            around = _push_title(around, inside[0])
        titles = dict.fromkeys(title.text for title in (*around, *inside))
        found.append(Span(start, end, tuple(titles)))
        for title in inside:
            around = _push_title(around, title)
    return found


def _push_title(around: list[Title], inner: Title) -> list[Title]:
    return [*(title for title in around if title.depth < inner.depth), inner]
