"""Which documents share words with this query?

A field-weighted index (BM25F: Robertson, Zaragoza, Taylor, "Simple BM25 extension to multiple weighted fields", 2004).
A term counts by its rarity, by the fields it stands in and by how little else stands there. Pure and deterministic;
equal scores keep the order in which documents were added. What a term is, `words` knows; meaning beyond words, nobody
here.

Postings are made ready when a query first asks for their term and kept until the next change: to build or change an
index costs little, and a query pays for the terms it has.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nlargest

from .document import Document, Field
from .hit import Hit, Named, Reason
from .names import Names
from .words import Wanted, terms, wanted

__all__ = ["LexicalIndex"]

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
_HOLES = 64
"""Slots of removed documents that are tolerated beyond one a living document."""

_Postings = list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A document, counted."""

    document: Document
    counts: tuple[Counter[str], ...]
    """One a field."""
    lengths: tuple[int, ...]


class LexicalIndex:
    """Holds documents and finds those that share words with a query. An `Index`."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        self._clear()
        for document in documents:
            self.add(document)

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, document_id: object) -> bool:
        return document_id in self._slots

    def add(self, document: Document) -> None:
        """Takes a document in; one with the same id is replaced and keeps its place."""
        slot = self._slots.get(document.id)
        if slot is None:
            slot = self._end
            self._end += 1
        else:
            self._take_out(slot)
        counts = tuple(Counter(terms(text)) for text in document.texts())
        self._put_in(slot, _Entry(document, counts, tuple(count.total() for count in counts)))

    def remove(self, document_id: str) -> None:
        """Lets a document go; one that is not there is no error."""
        slot = self._slots.get(document_id)
        if slot is None:
            return
        self._take_out(slot)
        if self._end > 2 * len(self._slots) + _HOLES:
            self._close_ranks()

    def search(self, query: str, limit: int = 10) -> tuple[Hit, ...]:
        """The nearest documents, best first: those the query names, then those it is near to."""
        wants = wanted(query)
        totals, named = self._totals(wants), self._names.named(query)
        ranked = sorted(
            {*_best(totals, limit), *named}, key=lambda slot: (-named.get(slot, Named.NO), -totals[slot], slot)
        )[:limit]
        worth = {term: (want, want.weight * self._rarity(term)) for term, want in wants.items()} if ranked else {}
        return tuple(
            Hit(
                document=self._entries[slot].document,
                score=totals[slot],
                named=named.get(slot, Named.NO),
                explain=partial(_reasons, self._entries[slot].counts, self._scale(slot), worth),
            )
            for slot in ranked
        )

    def scores(self, query: str) -> dict[str, float]:
        """How near each document is that shares a term with the query, by id, in the order of documents."""
        totals = self._totals(wanted(query))
        return {
            id_: totals[slot] for id_, slot in sorted(self._slots.items(), key=lambda pair: pair[1]) if totals[slot]
        }

    def _clear(self) -> None:
        self._slots: dict[str, int] = {}
        """A slot is a document's place in the order; a removed document leaves a hole."""
        self._end = 0
        self._entries: dict[int, _Entry] = {}
        self._holders: dict[str, dict[int, None]] = {}
        """The slots of each term."""
        self._names = Names()
        self._totals_of_lengths = [0] * len(_FIELDS)
        self._forget()

    def _forget(self) -> None:
        """What was made ready for queries holds no more."""
        self._ready: dict[str, _Postings] = {}
        self._scales: dict[int, tuple[float, ...]] = {}

    def _put_in(self, slot: int, entry: _Entry) -> None:
        self._slots[entry.document.id] = slot
        self._entries[slot] = entry
        self._names.add(slot, entry.document)
        for term in set[str]().union(*entry.counts):
            self._holders.setdefault(term, {})[slot] = None
        self._lengthen(entry, 1)

    def _take_out(self, slot: int) -> None:
        entry = self._entries.pop(slot)
        del self._slots[entry.document.id]
        self._names.remove(slot, entry.document)
        for term in set[str]().union(*entry.counts):
            holders = self._holders[term]
            del holders[slot]
            if not holders:
                del self._holders[term]
        self._lengthen(entry, -1)

    def _lengthen(self, entry: _Entry, sign: int) -> None:
        for field, length in enumerate(entry.lengths):
            self._totals_of_lengths[field] += sign * length
        self._forget()

    def _close_ranks(self) -> None:
        """Numbers the documents anew, in their order and without holes."""
        entries = [self._entries[slot] for slot in sorted(self._entries)]
        self._clear()
        for slot, entry in enumerate(entries):
            self._put_in(slot, entry)
        self._end = len(entries)

    def _totals(self, wants: Mapping[str, Wanted]) -> list[float]:
        """The score of every slot."""
        totals = [0.0] * self._end
        for term, want in wants.items():
            weight = want.weight
            for slot, impact in self._postings(term):
                totals[slot] += weight * impact
        return totals

    def _postings(self, term: str) -> _Postings:
        """The slots of a term with what it gives to each, for a query that wants it once."""
        found = self._ready.get(term)
        if found is None:
            rarity = self._rarity(term)
            found = [(slot, rarity * self._amount(term, slot)) for slot in self._holders.get(term, ())]
            if found:
                self._ready[term] = found
        return found

    def _rarity(self, term: str) -> float:
        holders = len(self._holders.get(term, ()))
        return math.log(1 + (len(self._entries) - holders + 0.5) / (holders + 0.5))

    def _amount(self, term: str, slot: int) -> float:
        """How much of the term the document holds, from 0 to 1: more of the same counts less and less."""
        share = sum(_shares(self._entries[slot].counts, self._scale(slot), term))
        return share / (share + _SATURATION)

    def _scale(self, slot: int) -> tuple[float, ...]:
        """What one occurrence in each field of this document weighs."""
        scales = self._scales.get(slot)
        if scales is None:
            number = len(self._entries)
            scales = self._scales[slot] = tuple(
                weight / (1 - _LENGTH + _LENGTH * length * number / (total or 1))
                for weight, length, total in zip(
                    _WEIGHTS.values(), self._entries[slot].lengths, self._totals_of_lengths, strict=True
                )
            )
        return scales


def _best(totals: Sequence[float], limit: int) -> list[int]:
    """The slots of the greatest totals, and all that equal the last of them."""
    least = min(nlargest(limit, totals), default=0.0)
    return [slot for slot, total in enumerate(totals) if total >= least and total]


def _shares(counts: Iterable[Counter[str]], scales: Iterable[float], term: str) -> list[float]:
    """How much of the term each field holds, weighted, and less the longer the field."""
    return [count.get(term, 0) * scale for count, scale in zip(counts, scales, strict=True)]


def _reasons(
    counts: Sequence[Counter[str]], scales: Sequence[float], worth: Mapping[str, tuple[Wanted, float]]
) -> tuple[Reason, ...]:
    """What each term in each field gave to a document, greatest first."""
    found: list[Reason] = []
    for term, (want, most) in worth.items():
        shares = _shares(counts, scales, term)
        given = most / (sum(shares) + _SATURATION)
        found += [
            Reason(term=term, field=field, score=given * share, asked=want.asked)
            for field, share in zip(_FIELDS, shares, strict=True)
            if share
        ]
    return tuple(sorted(found, key=lambda reason: -reason.score))
