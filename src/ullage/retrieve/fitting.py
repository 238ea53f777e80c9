"""How many passages fit into a budget?

As many whole ones as fit, best first, and of the next as many lines as then fit: found on the whole text, citations and
last line included, by the scale that is given, so that it is exact and never over. Where a passage is cut, its citation
says so by its last line. What is searched is not known here.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ullage.table import Weigh, clean, fit

from .retriever import Passage, Place

__all__ = ["Shown", "fit_passages", "shown_as"]

_LONG = 1_000
"""Characters of a line that are shown: a longer one was written for machines."""
_WORTH = 3
"""Lines that a cut passage must have left, unless it is the only one."""

Footer = Callable[[int], str]
"""The last line, given how many passages are shown; empty for none."""


@dataclass(frozen=True, slots=True)
class Shown:
    text: str
    places: tuple[Place, ...]
    """As they are cited in the text."""


def shown_as(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The same without empty lines around them, characters that nobody sees, and texts that come twice."""
    found: dict[tuple[str, ...], Passage] = {}
    for passage in map(_trimmed, passages):
        found.setdefault(passage.lines, passage)
    return tuple(passage for lines, passage in found.items() if lines)


def fit_passages(passages: Sequence[Passage], footer: Footer, weigh: Weigh, budget: int) -> Shown:
    """Where not even a footer fits, there are as many of its words as do."""
    whole = fit("", (_written(one) for one in passages), lambda shown, _: footer(shown), weigh, budget)
    shown = list(passages[: whole.rows])
    if whole.rows == len(passages):
        return Shown(whole.text, _places(shown))
    cut = _cut_to_fit(shown, passages[whole.rows], footer(whole.rows + 1), weigh, budget)
    if cut is None:
        return Shown(whole.text, _places(shown))
    return Shown(_together([*shown, cut], footer(whole.rows + 1)), _places([*shown, cut]))


def _cut_to_fit(shown: list[Passage], last: Passage, footer: str, weigh: Weigh, budget: int) -> Passage | None:
    """The longest head of the last passage that fits behind the others."""

    def weight(lines: int) -> int:
        return weigh(_together([*shown, _head(last, lines)], footer))

    number = bisect_right(range(1, len(last.lines)), budget, key=weight)
    return _head(last, number) if number >= (_WORTH if shown else 1) else None


def _head(passage: Passage, lines: int) -> Passage:
    place = passage.place
    return Passage(Place(path=place.path, first=place.first, last=place.first + lines - 1), passage.lines[:lines])


def _together(passages: list[Passage], footer: str) -> str:
    return "\n".join([*map(_written, passages), *([footer] if footer else [])])


def _written(passage: Passage) -> str:
    """With an empty line behind it."""
    return "\n".join([passage.place.citation, *passage.lines, ""])


def _places(passages: list[Passage]) -> tuple[Place, ...]:
    return tuple(passage.place for passage in passages)


def _trimmed(passage: Passage) -> Passage:
    lines = [_seen(line) for line in passage.lines]
    full = [number for number, line in enumerate(lines) if line]
    if not full:
        return Passage(passage.place, ())
    first, last = full[0], full[-1]
    start = passage.place.first
    place = Place(path=passage.place.path, first=start + first, last=start + last)
    return Passage(place, tuple(lines[first : last + 1]))


def _seen(line: str) -> str:
    """One line stays one, whatever breaks it has inside."""
    text = clean(line[: _LONG + 1]).text.replace("\n", " ").rstrip()
    return text if len(line) <= _LONG else f"{text[:_LONG]}…"
