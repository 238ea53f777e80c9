"""How many tokens, and how sure are we?

A `Count` is the only form in which a token number travels. It does not know what was counted or for whom.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

__all__ = ["ZERO", "Count", "Method", "total"]


class Method(StrEnum):
    """How a number was found, surest first; a sum is as sure as its weakest part."""

    EXACT = "exact"
    """This model's own tokenizer and the provider's own framing."""
    ANCHORED = "anchored"
    """From usage that the provider reported, plus what came after it."""
    CALIBRATED = "calibrated"
    """Other tokenizers and a factor measured on recorded requests."""
    ESTIMATED = "estimated"
    """Characters, or a part nobody outside the provider can weigh."""


_RANK = {method: rank for rank, method in enumerate(Method)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A number of tokens with the range it lies in.

    `low` and `high` bound nineteen of twenty texts like this one; for an exact count they are the count itself.
    """

    tokens: int
    method: Method = Method.EXACT
    low: int
    high: int

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.tokens <= self.high:
            raise ValueError(
                f"a count must satisfy 0 <= low <= tokens <= high, not {self.low}, {self.tokens}, {self.high}"
            )
        if self.method is Method.EXACT and self.low != self.high:
            raise ValueError("an exact count has no band")

    @classmethod
    @lru_cache(maxsize=65_536)
    def exact(cls, tokens: int) -> "Count":
        """Made once for each number: most texts are short, and so are their counts."""
        return cls(tokens=tokens, method=Method.EXACT, low=tokens, high=tokens)

    @classmethod
    def within(cls, tokens: float, band: float, method: Method = Method.CALIBRATED) -> "Count":
        """`tokens` give or take the share `band` (0.08 is 8 %), and never less than one token either way."""
        middle = max(0, round(tokens))
        reach = max(1.0, middle * band)
        return cls(tokens=middle, method=method, low=max(0, int(middle - reach)), high=int(middle + reach + 0.999))

    @property
    def band(self) -> tuple[int, int] | None:
        """The range the true number lies in, or None where the number is exact."""
        return None if self.method is Method.EXACT else (self.low, self.high)

    def __add__(self, other: "Count") -> "Count":
        return Count(
            tokens=self.tokens + other.tokens,
            method=max(self.method, other.method, key=_RANK.__getitem__),
            low=self.low + other.low,
            high=self.high + other.high,
        )


ZERO = Count.exact(0)


def total(counts: Iterable[Count]) -> Count:
    return sum(counts, start=ZERO)
