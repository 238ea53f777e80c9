"""Which passages share words with this query?

An `Index` for a hundred thousand small texts that come and go, a file at a time, where `LexicalIndex` is made anew for
the next query after a change. Here a word in a passage is four bytes, and nothing that the collector must visit.

Passages are ranked by BM25 over one text in which what a passage is about (its path and headings) is written twice
more (Robertson, Zaragoza, Taylor, "Simple BM25 extension to multiple weighted fields", 2004). What a term is, `search`
knows. Pure and deterministic.
"""

import math
from array import array
from collections import Counter
from sys import byteorder

from ullage.search import Document, terms

__all__ = ["PassageIndex"]

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
            self._close_ranks()

    def scores(self, query: str) -> dict[str, float]:
        """How near each passage is that shares a term with the query, by id."""
        totals = [0.0] * len(self._ids)
        for term, times in Counter(terms(query)).most_common(_MOST_TERMS):
            words = self._living(term)
            self._add_up(totals, words, math.sqrt(times) * self._rarity(len(words)))
        return {name: total for name, total in zip(self._ids, totals, strict=True) if total and name is not None}

    def _add_up(self, totals: list[float], words: list[int], worth: float) -> None:
        """Adds what one term gives to each passage that has it: more of the same counts less and less."""
        lengths = self._lengths
        least = _SATURATION * (1 - _LENGTH)
        scale = _SATURATION * _LENGTH * len(self._slots) / (self._length or 1)
        for word in words:
            slot, count = word >> 8, word & 0xFF
            totals[slot] += worth * count / (count + least + scale * lengths[slot])

    def _living(self, term: str) -> list[int]:
        """The postings of a term. Numbers, since a list of pairs would give the collector work."""
        words, ids = _words(self._postings.get(term)), self._ids
        return words if len(ids) == len(self._slots) else [word for word in words if ids[word >> 8] is not None]

    def _rarity(self, holders: int) -> float:
        return math.log(1 + (len(self._slots) - holders + 0.5) / (holders + 0.5))

    def _close_ranks(self) -> None:
        """Numbers the passages anew, in their order and without holes."""
        kept = [slot for slot, name in enumerate(self._ids) if name is not None]
        moved = dict(zip(kept, range(len(kept)), strict=True))
        self._postings = {term: found for term, words in self._postings.items() if (found := _moved(words, moved))}
        self._lengths = array("I", [self._lengths[slot] for slot in kept])
        self._ids = [self._ids[slot] for slot in kept]
        self._slots = {name: slot for slot, name in enumerate(self._ids) if name is not None}


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
