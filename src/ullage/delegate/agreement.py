"""How far do several answers agree?

By their words in pairs, without case and punctuation; short answers by whether they are the same. It measures words,
not truth.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, pairwise

__all__ = ["agreement", "groups"]

_WORD = re.compile(r"\w+(?:[.,]\d+)*")
_SHORT = 8
"""Words up to which an answer is the same or is not."""


def _words(answer: str) -> list[str]:
    return _WORD.findall(answer.lower())


def agreement(answers: Sequence[str]) -> float | None:
    """From 0 to 1, the mean over all pairs; None where there are not two."""
    pairs = list(combinations([_words(answer) for answer in answers], 2))
    return sum(_alike(*pair) for pair in pairs) / len(pairs) if pairs else None


def _alike(one: list[str], other: list[str]) -> float:
    if max(len(one), len(other)) <= _SHORT:
        return float(one == other)
    left, right = Counter(_pairs(one)), Counter(_pairs(other))
    shared = sum(count * right[pair] for pair, count in left.items())
    lengths = math.sqrt(sum(count**2 for count in left.values()) * sum(count**2 for count in right.values()))
    return shared / lengths if lengths else 0.0


def _pairs(words: list[str]) -> list[tuple[str, str]]:
    padded = ["", *words, ""]
    return list(pairwise(padded))


def groups(answers: Sequence[str]) -> list[list[int]]:
    """Places of answers that say the same in the same words, the largest group first."""
    found = dict[tuple[str, ...], list[int]]()
    for place, answer in enumerate(answers):
        found.setdefault(tuple(_words(answer)), []).append(place)
    return sorted(found.values(), key=len, reverse=True)
