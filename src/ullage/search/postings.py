"""Postings: which documents contain which terms, and BM25F over them.

A posting is a number of eight bytes in one sorted array, where a dictionary needs a hundred bytes. The 64 bits are the
term's number, the document's position, the field, and the number of occurrences. Sorted, the keys of a term are
adjacent, and among them those of a document. Counts of unchanged documents are taken from an earlier index by
arithmetic.

`Postings` scores by BM25F: a term counts by its rarity, by the fields in which it occurs and by how little else these
contain (Robertson, Zaragoza, Taylor, "Simple BM25 extension to multiple weighted fields", 2004). Everything that does
not depend on the query is computed beforehand; a query only adds up. Immutable. Terms are defined in `text_terms`.
"""

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from .document import Document, Field, Reason
from .name_match import Places, moved, places_before
from .text_terms import Wanted, of_run, runs

__all__ = [
    "Counted",
    "Keys",
    "Postings",
    "count",
    "counts_of",
    "fields_of",
    "first_key",
    "keys_of",
    "pairs_of",
    "places_of",
    "terms_of",
    "with_places",
    "with_terms",
]

Keys = NDArray[np.uint64]
Numbers = NDArray[np.int64]

_COUNT, _FIELD, _PLACE = 14, 3, 21
"""Bits of each part. The 26 bits above them are the term's: room for two million documents, and for more terms than fit
into memory."""
_MOST = (1 << _COUNT) - 1
"""The most occurrences of a term in a field that are counted."""
_OF_FIELD, _OF_PLACE, _OF_TERM = (np.uint64(bits) for bits in (_COUNT, _COUNT + _FIELD, _COUNT + _FIELD + _PLACE))


def keys_of(terms: Numbers, places: Numbers, fields: Numbers) -> Keys:
    """Return sorted keys, one for each term in each field of each document, from single occurrences."""
    places_and_fields = places.astype(np.uint64) << np.uint64(_FIELD) | fields.astype(np.uint64)
    different, counts = np.unique(
        terms.astype(np.uint64) << np.uint64(_FIELD + _PLACE) | places_and_fields, return_counts=True
    )
    return different << _OF_FIELD | np.minimum(counts, _MOST).astype(np.uint64)


def first_key(term: int, place: int) -> np.uint64:
    """Return a lower bound of the keys of this term in this document and in later ones."""
    return np.uint64((term << _PLACE | place) << (_FIELD + _COUNT))


def pairs_of(keys: Keys) -> Keys:
    """Return numbers that are equal for the same term in the same document."""
    return keys >> _OF_PLACE


def terms_of(keys: Keys) -> Numbers:
    return (keys >> _OF_TERM).astype(np.int64)


def places_of(keys: Keys) -> Numbers:
    return (keys >> _OF_PLACE & np.uint64((1 << _PLACE) - 1)).astype(np.int64)


def fields_of(keys: Keys) -> Numbers:
    return (keys >> _OF_FIELD & np.uint64((1 << _FIELD) - 1)).astype(np.int64)


def counts_of(keys: Keys) -> Numbers:
    return (keys & np.uint64(_MOST)).astype(np.int64)


def with_places(keys: Keys, places: NDArray[np.int32]) -> Keys:
    """Return the keys with other positions."""
    mask = ~(np.uint64((1 << _PLACE) - 1) << _OF_PLACE)
    return keys & mask | places.astype(np.uint64) << _OF_PLACE


def with_terms(keys: Keys, terms: Numbers) -> Keys:
    """Return the keys with other terms."""
    return keys & ((np.uint64(1) << _OF_TERM) - np.uint64(1)) | terms.astype(np.uint64) << _OF_TERM


_FIELDS = len(Field)
_AT_ONCE = 1 << 20
"""Terms that are collected before they are counted, to limit memory."""
_UNUSED = 1_000
"""Unused terms that are tolerated, in addition to one for each used term."""


class _Numbers(dict[str, int]):
    """A number for each term, assigned on first use."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


class _Known(dict[str, tuple[int, ...]]):
    """The numbers of the terms in a run of letters, computed on first use. Runs outside ASCII are not cached: in
    scripts without spaces they rarely occur again."""

    def __init__(self, numbers: _Numbers) -> None:
        self._numbers = numbers

    def __missing__(self, run: str) -> tuple[int, ...]:
        found = tuple(map(self._numbers.__getitem__, of_run(run)))
        if run.isascii():
            self[run] = found
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The counted terms of documents. Immutable."""

    documents: Sequence[Document]
    numbers: dict[str, int]
    """Numbers of terms; some may no longer occur in any document."""
    keys: Keys
    lengths: NDArray[np.int64]
    """Lengths in terms, a row a document and a column a field."""


def count(documents: Sequence[Document], before: Counted | None = None) -> Counted:
    """Count documents; the counts of unchanged ones are taken from `before`."""
    lengths = np.zeros((len(documents), _FIELDS), dtype=np.int64)
    places = places_before(documents, () if before is None else before.documents)
    stayed = places >= 0
    numbers, portions = _Numbers(), list[Keys]()
    if before is not None and stayed.any():
        numbers.update(before.numbers)
        lengths[stayed] = before.lengths[places[stayed]]
        portions.append(_taken(before.keys, moved(places, len(before.documents))))
    portions += _count(documents, np.flatnonzero(~stayed).tolist(), numbers, lengths)
    keys = np.concatenate(portions or [np.zeros(0, dtype=np.uint64)])
    keys.sort()
    return _without_unused(Counted(documents=documents, numbers=dict(numbers), keys=keys, lengths=lengths))


def _taken(keys: Keys, places: Places) -> Keys:
    """Return keys with their documents' new positions, without those of removed documents."""
    now = places[places_of(keys)]
    stayed = now >= 0
    return with_places(keys[stayed], now[stayed])


def _count(
    documents: Sequence[Document], places: Iterable[int], numbers: _Numbers, lengths: NDArray[np.int64]
) -> Iterable[Keys]:
    """Yield the keys of the documents at these positions, some at a time, and fill in their lengths."""
    found, counted, known = array("I"), list[int](), _Known(numbers)
    for place in places:
        for field, text in enumerate(documents[place].texts()):
            if text:
                before = len(found)
                found.extend(chain.from_iterable(map(known.__getitem__, runs(text))))
                lengths[place, field] = len(found) - before
        counted.append(place)
        if len(found) >= _AT_ONCE:
            yield _keys(found, counted, lengths)
            found, counted = array("I"), []
    if found:
        yield _keys(found, counted, lengths)


def _keys(found: "array[int]", counted: Sequence[int], lengths: NDArray[np.int64]) -> Keys:
    """Return the keys of terms in the order of the texts in which they were found."""
    sizes = lengths[counted].ravel()
    places, fields = np.repeat(counted, _FIELDS), np.tile(np.arange(_FIELDS), len(counted))
    return keys_of(np.array(found, dtype=np.int64), np.repeat(places, sizes), np.repeat(fields, sizes))


def _without_unused(counted: Counted) -> Counted:
    """Renumber the terms where most of them no longer occur in any document."""
    of_keys = terms_of(counted.keys)
    used = np.zeros(len(counted.numbers), dtype=bool)
    used[of_keys] = True
    if len(used) <= 2 * int(used.sum()) + _UNUSED:
        return counted
    new = np.cumsum(used) - 1
    numbers = {term: int(new[number]) for term, number in counted.numbers.items() if used[number]}
    return replace(counted, numbers=numbers, keys=with_terms(counted.keys, new[of_keys]))


_WEIGHTS: Mapping[Field, float] = {
    Field.SERVER: 1.0,
    Field.NAME: 3.0,
    Field.TITLE: 1.0,
    Field.DESCRIPTION: 1.0,
    Field.PARAMETER_NAMES: 0.3,
    Field.PARAMETER_DESCRIPTIONS: 0.3,
}
"""Weights in the order of `Field`. Deliberately round: finer ones were better where they were tuned and worse
elsewhere."""
_POSTINGS_FIELDS = tuple(Field)
_SATURATION = 2.0
"""BM25's k1: how quickly further occurrences of a term stop counting."""
_LENGTH = 0.75
"""BM25's b: how much the length of a field reduces the weight of its terms."""
_POSTINGS_AT_ONCE = 1 << 18
"""Postings that are computed at a time, to limit memory."""

_PostingsNumbers = NDArray[np.float64]


class Postings:
    """Counted documents, ready for queries."""

    def __init__(self, documents: Sequence[Document], before: "Postings | None" = None) -> None:
        """Count the documents; the counts of unchanged ones are taken from `before`."""
        self.counted = count(documents, None if before is None else before.counted)
        # Start of the keys of one term in one document.
        pairs = pairs_of(self.counted.keys)
        starts = np.flatnonzero(np.diff(pairs, prepend=~pairs[:1]))
        terms = terms_of(self.counted.keys[starts])
        holders = np.bincount(terms, minlength=len(self.counted.numbers))
        self._ends = np.cumsum(holders)
        """End of each term's postings."""
        # Uses the standard library's logarithm, once for each number of documents: numpy's differs between machines.
        number, (different, which) = len(self.documents), np.unique(holders, return_inverse=True)
        self._rarities = np.array([math.log(1 + (number - held + 0.5) / (held + 0.5)) for held in different.tolist()])[
            which
        ]
        # The weight of one occurrence in each field of each document: less, the longer the field is relative to others.
        lengths = self.counted.lengths
        total = np.maximum(lengths.sum(axis=0), 1)
        self._scales = np.array([*_WEIGHTS.values()]) / (1 - _LENGTH + _LENGTH * lengths * len(lengths) / total)
        self._places = np.empty(len(starts), dtype=np.int32)
        self._impacts = np.empty(len(starts), dtype=np.float64)
        """Contribution of a term to a document, for a query that has it once."""
        self._work_out(starts, terms)

    @property
    def documents(self) -> Sequence[Document]:
        return self.counted.documents

    def holds(self, term: str) -> bool:
        """Return whether any document has this term."""
        postings = self._postings(term)
        return postings.start < postings.stop

    def totals(self, wants: Mapping[str, Wanted]) -> _PostingsNumbers:
        """Return the score of every document."""
        places, given = list[NDArray[np.int32]](), list[_PostingsNumbers]()
        for term, want in wants.items():
            postings = self._postings(term)
            places.append(self._places[postings])
            given.append(want.weight * self._impacts[postings])
        if not places:
            return np.zeros(len(self.documents))
        totals = np.bincount(np.concatenate(places), weights=np.concatenate(given), minlength=len(self.documents))
        return totals.astype(np.float64, copy=False)

    def reasons(self, place: int, wants: Mapping[str, Wanted]) -> tuple[Reason, ...]:
        """Return the contribution of each term in each field to a document's score, greatest first."""
        found: list[Reason] = []
        for term, want in wants.items():
            shares = self._shares(term, place)
            if shares:
                given = want.weight * self._rarities[self.counted.numbers[term]] / (sum(shares.values()) + _SATURATION)
                found += [
                    Reason(term=term, field=_POSTINGS_FIELDS[field], score=float(given * share), asked=want.asked)
                    for field, share in shares.items()
                ]
        return tuple(sorted(found, key=lambda reason: -reason.score))

    def _postings(self, term: str) -> slice:
        number = self.counted.numbers.get(term)
        if number is None:
            return slice(0, 0)
        return slice(int(self._ends[number - 1]) if number else 0, int(self._ends[number]))

    def _shares(self, term: str, place: int) -> dict[int, float]:
        """Return the share of the term in each field of a document that has it."""
        number = self.counted.numbers.get(term)
        if number is None:
            return {}
        start, end = np.searchsorted(self.counted.keys, [first_key(number, place), first_key(number, place + 1)])
        keys = self.counted.keys[start:end]
        fields = fields_of(keys)
        return dict(zip(fields.tolist(), (counts_of(keys) * self._scales[place, fields]).tolist(), strict=True))

    def _work_out(self, starts: NDArray[np.int64], terms: NDArray[np.int64]) -> None:
        """Fill in positions and impacts: further occurrences of a term count less and less."""
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


def _portions(size: int) -> Iterator[slice]:
    return (slice(start, min(start + _POSTINGS_AT_ONCE, size)) for start in range(0, size, _POSTINGS_AT_ONCE))
