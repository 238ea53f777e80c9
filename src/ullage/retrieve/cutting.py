"""Which lines of a text belong together?

Cuts a text into passages where something new begins: every line is in exactly one of them, in order. A passage is long
enough to be understood and short enough that several fit into a reply; a single line is never cut, however long. Sizes
are in characters, since a passage is cut once and weighed for whoever asks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from .outline import Line, outline

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


def cut(lines: list[str], suffix: str) -> list[Span]:
    """The passages of a text, whose name ends in that suffix."""
    marks = outline(lines, suffix)
    found: list[Span] = []
    around: list[Line] = []
    for start, end in _stretches(lines, marks):
        titles, around = _titles(around, marks[start:end])
        found.append(Span(start, end, titles))
    return found


def _titles(around: list[Line], marks: list[Line]) -> tuple[tuple[str, ...], list[Line]]:
    """The titles over a passage, given those around its beginning, and those around its end."""
    if marks[0].title:
        around = _entered(around, marks[0])
    titles = dict.fromkeys(line.title for line in (*around, *marks) if line.title)
    for mark in marks:
        around = _entered(around, mark) if mark.title else around
    return tuple(titles), around


def _entered(around: list[Line], mark: Line) -> list[Line]:
    return [*(line for line in around if line.depth < mark.depth), mark]


def _stretches(lines: list[str], marks: list[Line]) -> Iterator[tuple[int, int]]:
    ends = list(accumulate((len(line) + 1 for line in lines), initial=0))
    start = 0
    while start < len(lines):
        end = _end(start, ends, marks)
        yield start, end
        start = end


def _end(start: int, ends: list[int], marks: list[Line]) -> int:
    """The line before which the next passage begins: the strongest within bounds, and the last among equals."""
    best, strength = start + 1, -1
    for end in range(start + 1, len(ends)):
        size = ends[end] - ends[start]
        if size > _MOST:
            break
        found = _AT_THE_END if end == len(marks) else marks[end].strength if size >= _LEAST else -1
        if found >= strength:
            best, strength = end, found
    return best
