"""What are the units of a text, between which it may be parted?

The records of a JSON text that is an array, or an object in which one array is most of it; the lines of any other. A
long line is parted further: after a comma of JSON, else between words, else between characters that do not belong
together, which is the only place where a value may be parted. What is kept or shown of the units is decided elsewhere.
"""

import re
import unicodedata
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ullage.table import Continued, Path, Scanned, scan
from ullage.tokens import Steps

__all__ = ["Kind", "Layout", "boundary", "lines_of", "one_unit", "survey"]

Kind = Literal["records", "lines", "block"]
"""A block is one unit, whatever it is."""

_LONGEST = 240
"""Characters of a line that is not parted."""
_MOST_LINES = 2_000_000
_STRIDE = 500
"""Units found before others are let in."""
_COMMA = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\Z)|,', re.DOTALL)
"""A JSON string, even where its end is cut off, or a comma that stands in none."""
_JOINING = "\u200d"
_BACK = 32
"""Characters that a boundary is moved at most for the sake of what belongs together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    kind: Kind
    spans: "array[int]"
    """Beginning and end of each unit, by turns."""
    body: tuple[int, int]
    """Where the units stand; what is before and behind surrounds them."""
    path: Path = ()
    """Where in the document the records stand."""
    is_json: bool = False
    """Whether it looks like JSON."""

    def __len__(self) -> int:
        return len(self.spans) // 2

    def span(self, unit: int) -> tuple[int, int]:
        return self.spans[2 * unit], self.spans[2 * unit + 1]

    def unit(self, text: str, unit: int) -> str:
        """One of them, of the text that was laid out; known as `Continued` where it is not the first of a line."""
        start, end = self.span(unit)
        is_continued = unit > 0 and self.spans[2 * unit - 1] == start
        return Continued(text[start:end]) if is_continued else text[start:end]


def survey(text: str) -> Steps[Layout]:
    """The layout of a text."""
    begins, ends = text[:100].lstrip()[:1], text[-100:].rstrip()[-1:]
    if begins + ends not in ("[]", "{}"):
        return (yield from lines_of(text))
    scanned = yield from scan(text)
    if scanned is None or scanned.count < 2 or not scanned.is_most_of(text):
        return (yield from lines_of(text, is_json=True))
    return (yield from _records(text, scanned))


def _records(text: str, scanned: Scanned) -> Steps[Layout]:
    spans = array("q")
    for record in scanned.records(text):
        spans.extend((record.start, record.end))
        if len(spans) % (2 * _STRIDE) == 0:
            yield
    body = scanned.start + 1, scanned.end - 1
    return Layout(kind="records", spans=spans, body=body, path=scanned.path, is_json=True)


def one_unit(text: str) -> Layout:
    """The layout of what is never parted."""
    return Layout(kind="block", spans=array("q", (0, len(text))), body=(0, len(text)))


def lines_of(text: str, *, is_json: bool = False) -> Steps[Layout]:
    spans = array("q")
    for number, span in enumerate(_line_spans(text, is_json=is_json), 1):
        spans.extend(span)
        if number % _STRIDE == 0:
            yield
    return Layout(kind="lines", spans=spans, body=(0, len(text)), is_json=is_json)


def _line_spans(text: str, *, is_json: bool) -> Iterator[tuple[int, int]]:
    # Millions of lines of a letter or two are taken several at a time.
    least = len(text) // _MOST_LINES if text.count("\n") > _MOST_LINES else 0
    start = 0
    while start < len(text):
        end = text.find("\n", start + least)
        end = len(text) if end < 0 else end
        if end - start <= _LONGEST:
            yield start, end
        else:
            yield from _parted(text, start, end, is_json=is_json)
        start = end + 1


def _parted(text: str, start: int, end: int, *, is_json: bool) -> Iterator[tuple[int, int]]:
    """One long line, in parts."""
    for stop in _stops(text, start, end, is_json=is_json):
        while stop - start > _LONGEST:
            middle = boundary(text, start, start + _LONGEST)
            yield start, middle
            start = middle
        if stop > start:
            yield start, stop
            start = stop


def _stops(text: str, start: int, end: int, *, is_json: bool) -> Iterator[int]:
    """Places behind commas of JSON, as far apart as a line may be long or as the next comma is."""
    begun, last = start, start
    for match in _COMMA.finditer(text, start, end) if is_json else ():
        if match[0] != ",":
            continue
        if match.end() - begun > _LONGEST and last > begun:
            yield last
            begun = last
        last = match.end()
    if end - begun > _LONGEST and last > begun:
        yield last
    yield end


def boundary(text: str, start: int, limit: int, *, is_json: bool = False) -> int:
    """The best place at or before `limit` to part a text in: behind a comma of JSON, else between two words, else
    between two characters that do not belong together."""
    if limit >= len(text):
        return len(text)
    commas = (match.end() for match in _COMMA.finditer(text, start, limit) if match[0] == ",") if is_json else ()
    comma = max(commas, default=start)
    if comma > start:
        return comma
    space = max(text.rfind(" ", start + 1, limit), text.rfind("\n", start + 1, limit)) + 1
    if space > start + (limit - start) // 2:
        return space
    for place in range(limit, max(start + 1, limit - _BACK), -1):
        if not _belongs(text[place - 1], text[place]):
            return place
    return limit


def _belongs(before: str, after: str) -> bool:
    """Whether the second is a part of what the first begins: an accent, half of a pair, a joined or tinted sign."""
    return (
        _JOINING in (before, after)
        or unicodedata.combining(after) > 0
        or unicodedata.category(after) in ("Mn", "Me", "Mc")
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or ("\udc00" <= after <= "\udfff" and "\ud800" <= before <= "\udbff")
    )
