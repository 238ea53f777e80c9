"""What does each document score for the terms of a query?

BM25F over what was counted: a term counts by its rarity, by the fields it stands in and by how little else stands there
(Robertson, Zaragoza, Taylor, "Simple BM25 extension to multiple weighted fields", 2004). Everything that does not
depend on the query is worked out beforehand; a query adds up. Never changes once made. What a term is, `words` knows.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .counted import count
from .document import Document, Field
from .hit import Reason
from .keys import Keys, counts_of, fields_of, first_key, pairs_of, places_of, terms_of
from .words import Wanted

__all__ = ["Postings"]

_WEIGHTS: Mapping[Field, float] = {
    Field.SERVER: 1.0,
    Field.NAME: 3.0,
    Field.TITLE: 1.0,
    Field.DESCRIPTION: 1.0,
    Field.PARAMETER_NAMES: 0.3,
    Field.PARAMETER_DESCRIPTIONS: 0.3,
}
"""In the order of `Field`. Round on purpose: finer ones were better where they were tuned and worse elsewhere."""
_FIELDS = tuple(Field)
_SATURATION = 2.0
"""BM25's k1: how soon more of the same term stops counting."""
_LENGTH = 0.75
"""BM25's b: how much a long field takes from each of its terms."""
_AT_ONCE = 1 << 18
"""Postings that are worked out at a time, so that it takes little memory."""

_Numbers = NDArray[np.float64]


class Postings:
    """Documents that were counted, ready for queries."""

    def __init__(self, documents: Sequence[Document], before: "Postings | None" = None) -> None:
        """What was counted of documents that stayed as they were is taken over."""
        self.counted = count(documents, None if before is None else before.counted)
        starts = _starts(self.counted.keys)
        terms = terms_of(self.counted.keys[starts])
        holders = np.bincount(terms, minlength=len(self.counted.numbers))
        self._ends = np.cumsum(holders)
        """Of each term's postings."""
        self._rarities = self._rarity(holders)
        self._scales = _scales(self.counted.lengths)
        self._places = np.empty(len(starts), dtype=np.int32)
        self._impacts = np.empty(len(starts), dtype=np.float64)
        """What a term gives to a document, for a query that wants it once."""
        self._work_out(starts, terms)

    @property
    def documents(self) -> Sequence[Document]:
        return self.counted.documents

    def holds(self, term: str) -> bool:
        """Whether any document has this term."""
        postings = self._postings(term)
        return postings.start < postings.stop

    def totals(self, wants: Mapping[str, Wanted]) -> _Numbers:
        """The score of every document."""
        places, given = list[NDArray[np.int32]](), list[_Numbers]()
        for term, want in wants.items():
            postings = self._postings(term)
            places.append(self._places[postings])
            given.append(want.weight * self._impacts[postings])
        if not places:
            return np.zeros(len(self.documents))
        totals = np.bincount(np.concatenate(places), weights=np.concatenate(given), minlength=len(self.documents))
        return totals.astype(np.float64, copy=False)

    def reasons(self, place: int, wants: Mapping[str, Wanted]) -> tuple[Reason, ...]:
        """What each term in each field gave to a document, greatest first."""
        found: list[Reason] = []
        for term, want in wants.items():
            shares = self._shares(term, place)
            if shares:
                given = want.weight * self._rarities[self.counted.numbers[term]] / (sum(shares.values()) + _SATURATION)
                found += [
                    Reason(term=term, field=_FIELDS[field], score=float(given * share), asked=want.asked)
                    for field, share in shares.items()
                ]
        return tuple(sorted(found, key=lambda reason: -reason.score))

    def _postings(self, term: str) -> slice:
        number = self.counted.numbers.get(term)
        if number is None:
            return slice(0, 0)
        return slice(int(self._ends[number - 1]) if number else 0, int(self._ends[number]))

    def _shares(self, term: str, place: int) -> dict[int, float]:
        """How much of the term each field of a document holds that holds it."""
        number = self.counted.numbers.get(term)
        if number is None:
            return {}
        start, end = np.searchsorted(self.counted.keys, [first_key(number, place), first_key(number, place + 1)])
        keys = self.counted.keys[start:end]
        fields = fields_of(keys)
        return dict(zip(fields.tolist(), (counts_of(keys) * self._scales[place, fields]).tolist(), strict=True))

    def _rarity(self, holders: NDArray[np.int64]) -> _Numbers:
        """By the standard library's logarithm, once for each number of holders: numpy's differs between machines."""
        number, (different, which) = len(self.documents), np.unique(holders, return_inverse=True)
        return np.array([math.log(1 + (number - held + 0.5) / (held + 0.5)) for held in different.tolist()])[which]

    def _work_out(self, starts: NDArray[np.int64], terms: NDArray[np.int64]) -> None:
        """Fills in places and impacts: more of the same term counts less and less."""
        keys = self.counted.keys
        for some in _portions(len(starts)):
            first = starts[some.start]
            portion = keys[first : starts[some.stop] if some.stop < len(starts) else len(keys)]
            places = places_of(portion)
            shares = np.add.reduceat(
                counts_of(portion) * self._scales[places, fields_of(portion)], starts[some] - first
            )
            self._impacts[some] = self._rarities[terms[some]] * (shares / (shares + _SATURATION))
            self._places[some] = places[starts[some] - first]


def _starts(keys: Keys) -> NDArray[np.int64]:
    """Where the keys of one term in one document begin."""
    pairs = pairs_of(keys)
    return np.flatnonzero(np.diff(pairs, prepend=~pairs[:1]))


def _scales(lengths: NDArray[np.int64]) -> _Numbers:
    """What one occurrence in each field of each document weighs: less, the longer the field is beside others."""
    total = np.maximum(lengths.sum(axis=0), 1)
    return np.array([*_WEIGHTS.values()]) / (1 - _LENGTH + _LENGTH * lengths * len(lengths) / total)


def _portions(size: int) -> Iterator[slice]:
    return (slice(start, min(start + _AT_ONCE, size)) for start in range(0, size, _AT_ONCE))
