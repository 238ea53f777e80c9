"""Which of these documents were there before, as they are?

What was made of a document that stayed as it was need not be made again. Knows places, not what was made.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .document import Document

__all__ = ["Places", "moved", "places_before"]

Places = NDArray[np.int32]


def places_before(documents: Sequence[Document], before: Sequence[Document]) -> Places:
    """Of each document its place among those of before, -1 where it is new or differs."""
    known = {document.id: place for place, document in enumerate(before)}
    found = np.full(len(documents), -1, dtype=np.int32)
    for place, document in enumerate(documents):
        old = known.get(document.id)
        if old is not None and before[old] == document:
            found[place] = old
    return found


def moved(places: Places, before: int) -> Places:
    """The same the other way round: of each of the documents of before its place now, -1 where it is gone."""
    found = np.full(before, -1, dtype=np.int32)
    kept = np.flatnonzero(places >= 0)
    found[places[kept]] = kept
    return found
