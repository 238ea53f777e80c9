"""How sure is a mean over sets?

A bootstrap: queries are drawn anew within each set, as many as it has, the same ones for every ranking, and the sets'
means are averaged again. 95 of a hundred draws lie within an interval. Says nothing about sets of another kind: which
sets there are is taken as given.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Draws", "Interval", "draw"]

_DRAWS = 2_000
_SEED = 7


@dataclass(frozen=True, slots=True)
class Interval:
    mean: float
    low: float
    high: float

    def to_json(self) -> list[float]:
        return [round(value, 2) for value in (self.mean, self.low, self.high)]


@dataclass(frozen=True, slots=True)
class Draws:
    """Means over sets; a ranking a column, a measure a layer."""

    mean: np.ndarray
    """Of the queries as they are: rankings by measures."""
    drawn: np.ndarray
    """Draws by rankings by measures."""

    def of(self, ranking: int, measure: int) -> Interval:
        return _interval(self.mean[ranking, measure], self.drawn[:, ranking, measure])

    def ahead(self, ranking: int, other: int, measure: int) -> Interval:
        """How far one is ahead of the other, drawn together."""
        of, than = (self.mean[each, measure] for each in (ranking, other))
        return _interval(of - than, self.drawn[:, ranking, measure] - self.drawn[:, other, measure])


def draw(sets: Sequence[np.ndarray]) -> Draws:
    """Each set is an array of queries by rankings by measures."""
    chance = np.random.default_rng(_SEED)
    drawn = np.zeros((_DRAWS, *sets[0].shape[1:]))
    for values in sets:
        number = len(values)
        times = chance.multinomial(number, np.full(number, 1 / number), size=_DRAWS)
        drawn += np.tensordot(times / number, values, axes=1) / len(sets)
    return Draws(mean=np.mean([values.mean(axis=0) for values in sets], axis=0), drawn=drawn)


def _interval(mean: float, drawn: np.ndarray) -> Interval:
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Interval(float(mean), float(low), float(high))
