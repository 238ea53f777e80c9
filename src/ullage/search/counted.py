"""How often does each term stand in each field of these documents?

Every answer is a number of eight bytes in one sorted array, where a dictionary needs a hundred, and what was counted of
documents that stayed is taken over by arithmetic. How texts become terms, `words` knows; what a count is worth,
`postings`.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from .document import Document, Field
from .keys import Keys, keys_of, places_of, terms_of, with_places, with_terms
from .stayed import Places, moved, places_before
from .words import of_run, runs

__all__ = ["Counted", "count"]

_FIELDS = len(Field)
_AT_ONCE = 1 << 20
"""Terms that are collected before they are counted, so that counting takes little memory."""
_UNUSED = 1_000
"""Terms of no document that are tolerated beyond one for each that is used."""


class _Numbers(dict[str, int]):
    """A number for each term, given when it is first asked for."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


class _Known(dict[str, tuple[int, ...]]):
    """The numbers of the terms of letters that stand together, found when they are first asked for. Letters outside
    ASCII are not remembered: where no spaces stand between words they hardly come again."""

    def __init__(self, numbers: _Numbers) -> None:
        self._numbers = numbers

    def __missing__(self, run: str) -> tuple[int, ...]:
        found = tuple(map(self._numbers.__getitem__, of_run(run)))
        if run.isascii():
            self[run] = found
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Never changes once made."""

    documents: Sequence[Document]
    numbers: dict[str, int]
    """Of terms; some may stand in no document any more."""
    keys: Keys
    lengths: NDArray[np.int64]
    """In terms, a row a document and a column a field."""


def count(documents: Sequence[Document], before: Counted | None = None) -> Counted:
    """Counts documents; of those that stayed as they were, what was counted before is taken over."""
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
    """Keys with their documents' new places, without those of documents that are gone."""
    now = places[places_of(keys)]
    stayed = now >= 0
    return with_places(keys[stayed], now[stayed])


def _count(
    documents: Sequence[Document], places: Iterable[int], numbers: _Numbers, lengths: NDArray[np.int64]
) -> Iterable[Keys]:
    """The keys of the documents at these places, some at a time; fills in their lengths."""
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
    """Of terms in the order of the texts in which they were found."""
    sizes = lengths[counted].ravel()
    places, fields = np.repeat(counted, _FIELDS), np.tile(np.arange(_FIELDS), len(counted))
    return keys_of(np.array(found, dtype=np.int64), np.repeat(places, sizes), np.repeat(fields, sizes))


def _without_unused(counted: Counted) -> Counted:
    """Numbers the terms anew where most of them stand in no document any more."""
    of_keys = terms_of(counted.keys)
    used = np.zeros(len(counted.numbers), dtype=bool)
    used[of_keys] = True
    if len(used) <= 2 * int(used.sum()) + _UNUSED:
        return counted
    new = np.cumsum(used) - 1
    numbers = {term: int(new[number]) for term, number in counted.numbers.items() if used[number]}
    return replace(counted, numbers=numbers, keys=with_terms(counted.keys, new[of_keys]))
