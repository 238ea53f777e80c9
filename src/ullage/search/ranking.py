"""Which come first?

Names before scores, and equal scores in the order of documents. Knows numbers by place, not what they are of.
"""

import numpy as np
from numpy.typing import NDArray

from .names import Levels

__all__ = ["Scores", "best", "ranked"]

Scores = NDArray[np.float64]


def ranked(scores: Scores, named: Levels, limit: int) -> list[int]:
    """The places of those that come first; what is neither named nor has a score does not come at all."""
    found = list[int]()
    for level in range(int(named.max(initial=0)), 0, -1):
        places = np.flatnonzero(named == level)
        found += places[best(scores[places], limit - len(found))].tolist()
    return found + best(np.where(named, 0, scores), limit - len(found), above=0).tolist()


def best(scores: Scores, limit: int, above: float = -np.inf) -> NDArray[np.intp]:
    """Where the greatest are that are above this, in falling order, those first among equals that stand first."""
    if limit <= 0:
        return np.zeros(0, dtype=np.intp)
    least = np.partition(scores, -limit)[-limit] if limit < len(scores) else -np.inf
    candidates = np.flatnonzero((scores >= least) & (scores > above))
    return candidates[np.argsort(-scores[candidates], kind="stable")][:limit]
