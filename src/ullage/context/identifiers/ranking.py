"""How likely is it that a later call needs this word to the letter?

A sum of points, in the manner of log-odds: what the word looks like, who said it and as what, how long ago; less what
it costs to write. Most points were set on one half of recorded sessions; what length costs and what a number is worth
was settled with the other half in view as well, so that only sessions of another origin are a fair test of them.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from math import log, log1p

from .kinds import Kind, kind_of
from .sightings import Seen, Sighting

__all__ = ["points"]

_FORM: Mapping[Kind, float] = {
    Kind.LINK: 1.4,
    Kind.MAIL: 1.5,
    Kind.PATH: 1.5,
    Kind.FILE: 1.3,
    Kind.DATE: 0.9,
    Kind.NUMBER: 1.2,
    Kind.HASH: 1.0,
    Kind.CODED: 2.5,
    Kind.DOTTED: 0.7,
    Kind.JOINED: 0.6,
    Kind.CAPITALS: 0.6,
    Kind.FLAG: 0.8,
    Kind.DASHED: 0.2,
    Kind.PHRASE: 0.3,
    Kind.NAME: -1.2,
    Kind.WORD: -1.2,
}
_PLACE: Mapping[int, float] = {
    Seen.USER: 0.4,
    Seen.ASSISTANT: 0.2,
    Seen.ARGUMENT: 0.8,
    Seen.BODY: 0.2,
    Seen.WHOLE: 0.9,
    Seen.FIELD: -0.8,
    Seen.EARLIER: 1.0,
}
_ONLY_READ = -0.6
"""For what stood in results and was taken up by nobody."""
_ONCE = -0.2
_PLAIN_WHOLE = 0.6
"""For a plain word, number or phrase that was the whole of an argument."""
_IDENTIFYING = 1.0
"""For a value under a name that says that it identifies."""
_AGE = 0.8
"""Lost by what was last seen a thousand messages ago; a tenth of them costs two thirds of it."""
_RANK = 2.0
"""Lost by the last of its line in an earlier ledger, against the first."""
_DIGIT = 0.04
_LENGTH, _PATH_LENGTH = 0.8, 0.3
"""For what fills a place that shorter words could have; a path is long by its nature."""

_PLAIN = frozenset({Kind.WORD, Kind.NAME, Kind.CAPITALS, Kind.PHRASE, Kind.NUMBER})
_MEANT = Seen.ARGUMENT | Seen.NAMED | Seen.TOOL | Seen.EARLIER
_MEANT_NAME = _MEANT | Seen.NAME
"""Where a plain word stands for a thing."""
_IDENTIFIER = re.compile(
    r"(?:^|[_\-a-z ])(?:id|number|code|key|name|path|file|url|email|date|hash|sha|ref|uuid|slug|version|branch|amount"
    r"|price|total)s?$",
    re.IGNORECASE,
)


def points(word: str, sighting: Sighting, messages: int) -> float | None:
    """None for a word of everyday language."""
    kind, seen = kind_of(word), sighting.seen
    if (kind is Kind.WORD and not seen & _MEANT) or (kind is Kind.NAME and not seen & _MEANT_NAME):
        return None
    age = log1p(messages - 1 - sighting.last) / log(1000)
    return _FORM[kind] + _of_places(seen) + _of_use(kind, sighting) - _AGE * age - _cost(kind, word)


@lru_cache(maxsize=4_096)
def _of_places(seen: int) -> float:
    only_read = seen | Seen.NAMED == Seen.RESULT | Seen.NAMED
    return sum(worth for place, worth in _PLACE.items() if place & seen) + (_ONLY_READ if only_read else 0.0)


def _of_use(kind: Kind, sighting: Sighting) -> float:
    total = _ONCE if sighting.times == 1 else 0.0
    if sighting.seen & Seen.WHOLE and kind in _PLAIN:
        total += _PLAIN_WHOLE
    if sighting.seen & Seen.NAMED and sighting.name is not None and _IDENTIFIER.search(sighting.name):
        total += _IDENTIFYING
    if sighting.seen & Seen.EARLIER:
        total -= _RANK * sighting.rank
    return total


def _cost(kind: Kind, word: str) -> float:
    length = _PATH_LENGTH if kind in (Kind.PATH, Kind.LINK) else _LENGTH
    return length * log(1 + len(word) / 5) - _DIGIT * sum(map(str.isdigit, word))
