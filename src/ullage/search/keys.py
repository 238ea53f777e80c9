"""How is it one number that a term stands in a field of a document so many times?

64 bits: the term's number, the document's place, the field, how often. Sorted, the keys of a term lie together, and
among them those of a document. Knows bits, not what they are for.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Keys",
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
"""Bits. The 26 above them are the term's: room for two million documents, and for more terms than fit into memory."""
_MOST = (1 << _COUNT) - 1
"""More of one term in one field are counted as so many."""
_OF_FIELD, _OF_PLACE, _OF_TERM = (np.uint64(bits) for bits in (_COUNT, _COUNT + _FIELD, _COUNT + _FIELD + _PLACE))


def keys_of(terms: Numbers, places: Numbers, fields: Numbers) -> Keys:
    """Sorted, one for each term in each field of each document, of every single time that it stands there."""
    places_and_fields = places.astype(np.uint64) << np.uint64(_FIELD) | fields.astype(np.uint64)
    different, counts = np.unique(
        terms.astype(np.uint64) << np.uint64(_FIELD + _PLACE) | places_and_fields, return_counts=True
    )
    return different << _OF_FIELD | np.minimum(counts, _MOST).astype(np.uint64)


def first_key(term: int, place: int) -> np.uint64:
    """No key of this term in this document, or in one behind it, is less."""
    return np.uint64((term << _PLACE | place) << (_FIELD + _COUNT))


def pairs_of(keys: Keys) -> Keys:
    """Equal for the same term in the same document."""
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
    """The same with other places."""
    mask = ~(np.uint64((1 << _PLACE) - 1) << _OF_PLACE)
    return keys & mask | places.astype(np.uint64) << _OF_PLACE


def with_terms(keys: Keys, terms: Numbers) -> Keys:
    """The same with other terms."""
    return keys & ((np.uint64(1) << _OF_TERM) - np.uint64(1)) | terms.astype(np.uint64) << _OF_TERM
