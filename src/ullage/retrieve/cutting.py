"""Which lines of a text belong together?

Cuts a text into passages where something new begins: every line is in exactly one of them, in order. A passage is long
enough to be understood and short enough that several fit into a reply; a single line is never cut, however long. Sizes
are in characters, since a passage is cut once and weighed for whoever asks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from .outline import Title, outline

__all__ = ["Span", "cut"]

_LEAST = 500
"""Characters: some 130 tokens of prose."""
_MOST = 1_500
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
        if size > _MOST:
            break
        found = _AT_THE_END if end == len(strengths) else strengths[end] if size >= _LEAST else -1
        if found >= strength:
            best, strength = end, found
    return best
