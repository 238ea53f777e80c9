"""Estimates for models without a public vocabulary.

`Calibration` combines the counts of two public vocabularies with a few features of the text, weighted to fit recorded
usage. The weights and bands are the output of `scripts/fit_claude.py`: run it to renew them. No weight is negative, so
more text never has fewer tokens.

For text not covered by recordings the figures come from other sources, with a wide band. Scripts other than Latin and
Cyrillic count as in cl100k_base, which is within a third of the vocabulary of Claude 2 (the last one published) on ten
languages. That the newer tokenizer differs from the older in Latin letters alone was measured by others (sol.ava.dev
2026-04-17, muninn.austegard.com 2026-05-03), as was that both take digits in threes.

`Elder` counts with the public vocabulary of an older model of the same family. Recorded requests agree with it for
English; for other writing there was nothing to compare with, and the band is wide.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from math import ceil

from .count import Count, Method, Steps, drain

__all__ = [
    "CALIBRATIONS",
    "ELDERS",
    "VOCABULARIES",
    "Calibration",
    "CountSteps",
    "CountTokens",
    "Elder",
    "Features",
    "at_once",
    "measure",
    "measure_steps",
]

CountTokens = Callable[[str, str], int]
"""Counts a text exactly; the arguments are the name of a vocabulary and the text."""
CountSteps = Callable[[str, str], Steps[int]]
"""Counts as `CountTokens` does, in steps, so that an event loop does not wait for a worker that counts."""

VOCABULARIES = ("cl100k_base", "modernbert")
"""The vocabularies that `measure` counts with. ModernBERT's is light (27 ms to load) and the nearest of all to those of
Claude 2 and 3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The measured features of a text.

    Features of slices add up to those of the whole text if each slice after the first begins with a single space and a
    letter; `sameness` adds up only roughly, because a word may be new to a slice and not to the text.
    """

    cl100k: int = 0
    """cl100k tokens of all text that is not `foreign`."""
    modernbert: int = 0
    foreign: int = 0
    """cl100k tokens of text written in neither Latin nor Cyrillic."""
    numbers: int = 0
    """Numbers after a space: Claude's tokenizer keeps such a space as a token."""
    humps: int = 0
    """Capitals after a lower-case letter, as in `camelCase`."""
    indents: int = 0
    """Lines that begin with a space."""
    fives: int = 0
    """Runs of five letters, without overlap."""
    capitals: int = 0
    """Words with a capital after a space, a line break or a punctuation mark."""
    digits: int = 0
    characters: int = 0
    sameness: float = field(default=0.0, compare=False)
    """cl100k tokens over the square root of the distinct words. Large where few words are repeated often; the errors of
    their weights then do not cancel out."""

    def __add__(self, other: "Features") -> "Features":
        return Features(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The weights of the features for one of Claude's tokenizers, and the error to expect."""

    weights: Mapping[str, float]
    spread: float
    """The share of a text's tokens by which the estimate may be wrong."""
    jitter: float
    """Added to the error of short texts: this many times the square root of the tokens."""
    monotony: float = 0.6
    """Added to the error of repetitive texts: this share of the tokens where all is one word, and less the more
    distinct words there are (see `Features.sameness`)."""

    def count(self, features: Features) -> Count:
        weighed = sum(weight * getattr(features, name) for name, weight in self.weights.items())
        tokens = max(weighed, features.digits / 3, 1.0 if features.characters else 0.0)
        reach = self.reach(tokens, features)
        return Count(
            tokens=round(tokens),
            method=Method.CALIBRATED,
            low=max(1 if features.characters else 0, min(round(tokens), int(tokens - reach))),
            high=int(tokens + reach + 0.999),
        )

    def reach(self, tokens: float, features: Features) -> float:
        """Return how far the true number may lie from the estimate.

        The distance grows where tokens are denser or sparser than in any recorded text, where there are many digits,
        and where words are repeated, so that errors do not cancel out.
        """
        strangeness = max(0.0, tokens - 0.45 * features.characters, 0.15 * features.characters - tokens)
        share = features.sameness / max(1, features.cl100k + features.foreign)
        alike = max(0.0, (self.monotony * share - _USUAL_SAMENESS) * tokens - tokens**0.5)
        return self.spread * tokens + self.jitter * tokens**0.5 + alike + 0.5 * strangeness + 0.08 * features.digits


def measure_steps(text: str, count: CountSteps) -> Steps[Features]:
    """Measure the features of a text of any length, in steps of a few milliseconds."""
    seen, start = Features(), 0
    while start < len(text):
        end = min(start + _REACH, len(text))
        if end < len(text):
            # A slice ends before a word; inside one only where none is near.
            seams = [seam.start() for seam in _SEAM.finditer(text, end - _NEAR, end + 2)]
            end = seams[-1] if seams else end
        seen += yield from _measure_slice(text[start:end], count)
        start = end
        yield
    return seen


def measure(text: str, count: CountTokens) -> Features:
    """Measure the features of a text as one slice."""
    return drain(_measure_slice(text, at_once(count)))


def at_once(count: CountTokens) -> CountSteps:
    """Wrap a function that counts at once as one that counts in steps, without yielding."""

    def steps(vocabulary: str, text: str) -> Steps[int]:
        yield from ()
        return count(vocabulary, text)

    return steps


def _measure_slice(text: str, count: CountSteps) -> Steps[Features]:
    """Measure one slice. Everything except the two counts runs in C over the slice's bytes, in a third of the time."""
    plain, foreign = yield from _part_scripts(text, count)
    classes = _bytes_of(plain).translate(_CLASSES)
    cl100k, words = (yield from count("cl100k_base", plain)), set(text.split())
    bare = yield from count("modernbert", "")  # some engines count the marks that this vocabulary sets around a text
    modernbert = yield from count("modernbert", plain)
    return Features(
        cl100k=cl100k,
        modernbert=modernbert - bare,
        foreign=foreign,
        numbers=classes.count(b" 0"),
        humps=classes.count(b"aA"),
        indents=classes.count(b"\n "),
        fives=classes.replace(b"A", b"a").count(b"aaaaa"),
        capitals=classes.count(b" A") + classes.count(b"\nA") + classes.count(b".A"),
        digits=classes.count(b"0"),
        characters=len(text),
        sameness=(cl100k + foreign) / len(words) ** 0.5 if words else 0.0,
    )


def _part_scripts(text: str, count: CountSteps) -> Steps[tuple[str, int]]:
    """Split off the foreign runs: return the rest of the text and the tokens of the runs. A line break between two runs
    keeps them from merging."""
    if text.isascii():
        return text, 0
    # The first bytes of characters show quickly that most texts need no search.
    data = _bytes_of(text)
    runs = _FOREIGN.findall(text) if len(data.translate(None, _LEADS)) < len(data) else []
    if not runs:
        return text, 0
    tokens = yield from count("cl100k_base", "\n".join(runs))
    return _FOREIGN.sub("", text), tokens - len(runs) + 1


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _class_of(byte: int) -> str:
    character = chr(byte)
    if byte >= 128:
        return "~"
    if character in " \n":
        return character
    if character.isdigit():
        return "0"
    if character.isalpha():
        return "a" if character.islower() else "A"
    return "."


_CLASSES = "".join(map(_class_of, range(256))).encode()
_USUAL_SAMENESS = 0.09
"""The share of a text's tokens up to which sameness is that of prose with an occasional repeated paragraph."""
_REACH = 8_192
_NEAR = 512
_SEAM = re.compile(r"(?<=\S) (?=[A-Za-z])")
_LEADS = bytes((*range(0xCD, 0xD0), *range(0xD4, 0xE2), *range(0xE3, 0xEE), 0xEF))
_FOREIGN = re.compile("[\u0370-\u03ff\u0530-\u1cff\u2e80-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef]+")

_CLAUDE_2 = {"cl100k": 0.174, "modernbert": 0.82, "foreign": 1.0, "humps": 0.045, "indents": 0.101}
_CLAUDE_3 = {"cl100k": 0.301, "modernbert": 0.732, "foreign": 1.0, "numbers": 1.35, "humps": 0.609, "indents": 0.801}

CALIBRATIONS: Mapping[str, Calibration] = {
    "claude_2": Calibration(weights=_CLAUDE_2, spread=0.04, jitter=0.3),
    "claude_3": Calibration(weights=_CLAUDE_3, spread=0.06, jitter=0.3),
    "claude_4_7": Calibration(weights={**_CLAUDE_3, "fives": 0.898, "capitals": 0.873}, spread=0.09, jitter=0.6),
}
"""Calibrations by the tokenizer's name on a card: Claude 2; Claude 3 to 4.6 and Haiku 4.5; Opus 4.7 and later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elder:
    """A public vocabulary used in place of a similar one that is not public, such as that of a newer model."""

    vocabulary: str
    band: float
    """The share by which the count may be wrong where all text is ASCII."""
    saved: float
    """The share of tokens that the newer vocabulary may save in other writing, at most (assumed)."""

    lost: float = 0.0
    """The share of tokens that the newer vocabulary may cost in addition in other writing, at most (assumed)."""

    def count(self, text: str, tokens: int) -> Count:
        near = Count.within(tokens, self.band)
        if text.isascii():
            return near
        low = int(tokens * (1 - self.saved))
        return Count(
            tokens=tokens,
            method=Method.CALIBRATED,
            low=min(low, near.low),
            high=max(near.high, ceil(tokens * (1 + self.lost))),
        )


ELDERS = {
    "qwen3_5": Elder(vocabulary="qwen3", band=0.06, saved=0.4),
    "grok": Elder(vocabulary="o200k_base", band=0.03, saved=0.3, lost=0.3),
}
"""Public vocabularies by the tokenizer they replace.

Grok's vocabulary is not public and agrees with o200k_base on all but 3 of 76 recorded plain requests (1 or 2 tokens of
300 in those).

Qwen 3.5 and later have 248,320 tokens, Qwen 3 has 151,936 (their published configurations). 53 of 54 recorded requests,
all ASCII, have Qwen 3's count (`make bench-accuracy` reads them); one has one token fewer of 17. How much two thirds
more tokens save in other writing was not measured: two fifths is a guess on the safe side.
"""
