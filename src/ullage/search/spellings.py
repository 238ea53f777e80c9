"""Which documents have exactly this name?

A spelling is known by 64 bits made of it: twelve bytes with the document's place, where the text itself takes a hundred
and more. That a query has the bits of one of a million spellings by chance happens once in ten million million queries.
Which spellings a name has, `names` knows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from .stayed import Places

__all__ = ["Spellings"]


@dataclass(frozen=True, slots=True)
class Spellings:
    marks: NDArray[np.uint64]
    """Sorted; those of equal spellings by place."""
    places: Places
    """Of the document that is spelt so."""

    @classmethod
    def of(cls, spelt: Iterable[tuple[str, int]]) -> "Spellings":
        """Of each spelling of each document, with the document's place."""
        known = [(_mark(spelling), place) for spelling, place in spelt]
        marks = np.array([mark for mark, _ in known], dtype=np.uint64)
        return _sorted(marks, np.array([place for _, place in known], dtype=np.int32))

    def holders(self, spelling: str) -> Places:
        """The places of the documents that are spelt so, in order."""
        mark = np.uint64(_mark(spelling))
        return self.places[np.searchsorted(self.marks, mark) : np.searchsorted(self.marks, mark, side="right")]

    def taken_over(self, now: Places, more: "Spellings") -> "Spellings":
        """With the places that documents have now, less those that are gone (-1), and with more."""
        places = now[self.places]
        stayed = places >= 0
        return _sorted(np.concatenate([self.marks[stayed], more.marks]), np.concatenate([places[stayed], more.places]))


def _sorted(marks: NDArray[np.uint64], places: Places) -> Spellings:
    order = np.lexsort((places, marks))
    return Spellings(marks[order], places[order])


def _mark(spelling: str) -> int:
    # A name may hold what no encoding has, such as half of a pair of surrogates: servers send what they like.
    return int.from_bytes(blake2b(spelling.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
