"""What is a document's score, by words, by meaning and by use together?

Words and meaning are each divided by their best, so that both are on one scale, and share the score as the query has
it: where many rare words fit, words decide, and where few do, meaning. Scores are fused, not ranks: a rank forgets
whether the first was near or only the least far. Knows numbers by place, not what they are of.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .meaning import Nearness
from .ranking import Scores

__all__ = ["Fused", "closer_look", "fuse"]

_LEAST, _GROWTH, _START = 0.1, 0.04, 0.06
"""Of what is nearest to a text without sense: half of some thirty such texts came nearer than 0.10 to 0.15 to one of
45 tools, 0.14 to 0.21 to one of 100, 0.22 to 0.27 of 500, 0.28 to 0.36 of 4,000. The more tools, the nearer chance
comes, as the logarithm of their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """Numbers by place."""

    scores: Scores
    """What words, meaning, the closer look and use sum to; 0 for what was not found."""
    words: Scores
    meaning: Scores
    closer: Scores
    """What the best candidates gained when they were looked at again; see `rerank`."""
    use: Scores
    nearness: Nearness | None
    share: float
    """What meaning can give at the most."""
    worth: float
    """What a point of the score by words alone became."""


def fuse(totals: Scores, nearness: Nearness | None, use: Scores, weight: float = 0.0) -> Fused:
    """Of one document or more: scores by words, nearness where it is known, what use adds, 0 or more, and what nearness
    weighs: the best score by words at which both have half."""
    near = np.zeros(len(totals)) if nearness is None else np.maximum(nearness, 0)
    best_total, nearest = float(totals.max()), float(near.max())
    share = weight / (weight + best_total) if nearest else 0.0
    worth = (1 - share) / best_total if best_total else 0.0
    found = (totals > 0) | (near >= _floor(len(totals)))
    words, meaning = worth * totals, np.where(found, near * (share / nearest if nearest else 0.0), 0.0)
    return Fused(
        scores=words + meaning + use,
        words=words,
        meaning=meaning,
        closer=np.zeros(len(totals)),
        use=use,
        nearness=nearness,
        share=share,
        worth=worth,
    )


def closer_look(fused: Fused, places: Sequence[int], gains: Scores, weight: float) -> Fused:
    """With what the candidates at these places gained; words and meaning weigh so much beside it, for all documents."""
    closer = np.zeros(len(fused.scores))
    closer[places] = gains
    words, meaning = weight * fused.words, weight * fused.meaning
    return replace(
        fused,
        scores=words + meaning + closer + fused.use,
        words=words,
        meaning=meaning,
        closer=closer,
        share=weight * fused.share,
        worth=weight * fused.worth,
    )


def _floor(number: int) -> float:
    """What shares no word with the query must be nearer than chance would bring one of so many documents."""
    return max(_LEAST, _GROWTH * math.log(number) - _START)
