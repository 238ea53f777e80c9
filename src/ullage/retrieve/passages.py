"""Cuts texts into passages and indexes their terms.

Cuts a text into passages where something new begins: every line is in exactly one of them, in order. A passage is
long enough to be understood and short enough that several fit into a reply; a single line is never cut, however
long. Sizes are in characters, since a passage is cut once and weighed for whoever asks.

Headings in prose, definitions in code, paragraphs in both: each line gets a strength at which a passage may begin with
it, and those that begin a section say its title. By the look of lines alone, in any language, so that nothing fails on
a file that is broken; no parser is asked.

An `Index` for a hundred thousand small texts that come and go, a file at a time, where `LexicalIndex` is made anew for
the next query after a change. Here a word in a passage is four bytes, and nothing that the collector must visit.

Passages are ranked by BM25 over one text in which what a passage is about (its path and headings) is written twice
more (Robertson, Zaragoza, Taylor, "Simple BM25 extension to multiple weighted fields", 2004). What a term is, `search`
knows. Pure and deterministic.
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


_TITLED = 2
"""How often path and headings count as written: what a text is called says more than a word in it."""
_SATURATION = 1.2
"""BM25's k1: how soon more of the same term stops counting."""
_LENGTH = 0.75
"""BM25's b: how much a long text takes from each of its terms."""
_MOST = 255
"""Of the same term in a passage, that count."""
_MOST_TERMS = 64
"""Different terms of a query that are looked up."""
_WORD = 4
"""Bytes of a posting: a slot in 24 bits, a count in 8."""
_HOLES = 1_000
"""Slots of removed passages that are tolerated beyond one a living passage."""


class PassageIndex:
    """Holds the words of passages by id: a document's description, with its name and server as headings and path."""

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._ids: list[str | None] = []
        """By slot; None for a passage that was removed."""
        self._lengths = array("I")
        self._length = 0
        """Of all passages together, in terms."""
        self._postings: dict[str, bytearray] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, document: Document) -> None:
        """Takes a passage in; one with the same id is replaced."""
        self.remove(document.id)
        counts = _counted(document)
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
        """Lets a passage go; one that is not there is no error."""
        slot = self._slots.pop(document_id, None)
        if slot is None:
            return
        self._ids[slot] = None
        self._length -= self._lengths[slot]
        if len(self._ids) > 2 * len(self._slots) + _HOLES:
            # Numbers the passages anew, in their order and without holes.
            kept = [slot for slot, name in enumerate(self._ids) if name is not None]
            moved = dict(zip(kept, range(len(kept)), strict=True))
            self._postings = {term: found for term, words in self._postings.items() if (found := _moved(words, moved))}
            self._lengths = array("I", [self._lengths[slot] for slot in kept])
            self._ids = [self._ids[slot] for slot in kept]
            self._slots = {name: slot for slot, name in enumerate(self._ids) if name is not None}

    def scores(self, query: str) -> dict[str, float]:
        """How near each passage is that shares a term with the query, by id."""
        totals = [0.0] * len(self._ids)
        for term, times in Counter(terms(query)).most_common(_MOST_TERMS):
            words = self._living(term)
            # Adds what one term gives to each passage that has it: more of the same counts less and less.
            worth = math.sqrt(times) * self._rarity(len(words))
            lengths = self._lengths
            least = _SATURATION * (1 - _LENGTH)
            scale = _SATURATION * _LENGTH * len(self._slots) / (self._length or 1)
            for word in words:
                slot, count = word >> 8, word & 0xFF
                totals[slot] += worth * count / (count + least + scale * lengths[slot])
        return {name: total for name, total in zip(self._ids, totals, strict=True) if total and name is not None}

    def _living(self, term: str) -> list[int]:
        """The postings of a term. Numbers, since a list of pairs would give the collector work."""
        words, ids = _words(self._postings.get(term)), self._ids
        return words if len(ids) == len(self._slots) else [word for word in words if ids[word >> 8] is not None]

    def _rarity(self, holders: int) -> float:
        return math.log(1 + (len(self._slots) - holders + 0.5) / (holders + 0.5))


def _counted(document: Document) -> Counter[str]:
    counts = Counter(terms(document.description))
    for term in terms(f"{document.name}\n{document.server}"):
        counts[term] += _TITLED
    return counts


def _words(postings: bytearray | None) -> list[int]:
    return [] if postings is None else [*array("I", bytes(postings))]


def _moved(postings: bytearray, moved: dict[int, int]) -> bytearray:
    words = [moved[word >> 8] << 8 | word & 0xFF for word in _words(postings) if word >> 8 in moved]
    return bytearray(b"".join(word.to_bytes(_WORD, byteorder) for word in words))


_LEAST = 500
"""Characters: some 130 tokens of prose."""
_CUTTING_MOST = 1_500
"""Some 400."""
_AT_THE_END = 100
"""The strength of a text's end: more than any line's."""


@dataclass(frozen=True, slots=True)
class Span:
    """Some lines that stand together, counted from 0; `end` is the one after the last."""

    start: int
    end: int
    titles: tuple[str, ...]
    """Of the sections that it lies in and of those that begin in it, the outermost first."""


def cut(lines: Sequence[str], suffix: str) -> list[Span]:
    """The passages of a text, whose name ends in that suffix."""
    found, around = list[Span](), list[Title]()
    marks = outline(lines, suffix)
    for start, end in _stretches(lines, marks.strengths):
        inside = [title for at in range(start, end) if (title := marks.titles.get(at))]
        if start in marks.titles:
            around = _entered(around, inside[0])
        titles = dict.fromkeys(title.text for title in (*around, *inside))
        found.append(Span(start, end, tuple(titles)))
        for title in inside:
            around = _entered(around, title)
    return found


def _entered(around: list[Title], inner: Title) -> list[Title]:
    return [*(title for title in around if title.depth < inner.depth), inner]


def _stretches(lines: Sequence[str], strengths: list[int]) -> Iterator[tuple[int, int]]:
    ends = list(accumulate((len(line) + 1 for line in lines), initial=0))
    start = 0
    while start < len(lines):
        end = _end(start, ends, strengths)
        yield start, end
        start = end


def _end(start: int, ends: list[int], strengths: list[int]) -> int:
    """The line before which the next passage begins: the strongest within bounds, and the last among equals."""
    best, strength = start + 1, -1
    for end in range(start + 1, len(ends)):
        size = ends[end] - ends[start]
        if size > _CUTTING_MOST:
            break
        found = _AT_THE_END if end == len(strengths) else strengths[end] if size >= _LEAST else -1
        if found >= strength:
            best, strength = end, found
    return best
