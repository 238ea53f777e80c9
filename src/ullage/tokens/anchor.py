"""What does a provider's own count of an earlier request tell of this one?

An anchor is the reported input of a request; a longer request that begins the same way weighs that, and what follows is
all that must be counted. Each report also corrects the meter for that model. Nothing is stored beyond the process.
"""

import math
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .count import Count, Method, total

if TYPE_CHECKING:
    from ullage.messages import Request

    from .weight import Weight

__all__ = ["Anchor", "Corrections"]

_LEAST_TOKENS = 50
"""Shorter requests say more about framing than about text, and teach nothing."""
_LEARNING = 0.2
"""The weight of one report against all before it."""
_FURTHEST = math.log(2)
"""A report further off than twice or half is a mistake in matching, not a correction."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a provider reported for a request."""

    request: "Request"
    tokens: int
    model: str
    """The id of the card that was asked."""

    def holds_for(self, request: "Request", model: str) -> bool:
        """Whether `request` is this one with messages added at its end, to the same model."""
        mine, theirs = self.request, request
        return (
            model == self.model
            and theirs.messages[: len(mine.messages)] == mine.messages
            and (theirs.system, theirs.tools) == (mine.system, mine.tools)
            and (theirs.tool_choice, theirs.output_schema) == (mine.tool_choice, mine.output_schema)
        )

    def weigh(self, weight: "Weight") -> Count:
        """The weight of a request it holds for, given that request's own weight."""
        tail = total(weight.messages[len(self.request.messages) :])
        known = Count(tokens=self.tokens, method=Method.ANCHORED, low=self.tokens, high=self.tokens)
        return replace(known + tail, method=Method.ANCHORED)


class Corrections:
    """How far our counts of each model have been from its provider's; safe between threads."""

    def __init__(self) -> None:
        self._logs: dict[str, float] = {}
        self._lock = threading.Lock()

    def learn(self, model: str, ours: Count, reported: int) -> None:
        """Takes one report into account, on what was weighed without corrections."""
        off = _off(ours, reported)
        if off is None:
            return
        with self._lock:
            before = self._logs.get(model)
            self._logs[model] = off if before is None else before + _LEARNING * (off - before)

    def refine(self, model: str, ours: Count, reported: int) -> None:
        """The same, on what was weighed with the corrections that hold now."""
        off = _off(ours, reported)
        if off is not None:
            with self._lock:
                self._logs[model] = self._logs.get(model, 0.0) + _LEARNING * off

    def factor(self, model: str) -> float:
        return math.exp(self._logs.get(model, 0.0))

    def apply(self, model: str, count: Count) -> Count:
        """The count as experience has it; exact ones are left alone."""
        factor = self.factor(model)
        if count.method is Method.EXACT or factor == 1.0:
            return count
        tokens = round(count.tokens * factor)
        return replace(
            count,
            tokens=tokens,
            low=min(tokens, math.floor(count.low * factor)),
            high=max(tokens, math.ceil(count.high * factor)),
        )


def _off(ours: Count, reported: int) -> float | None:
    """How far off, or None where it teaches nothing: an exact count differs for other reasons than the tokenizer."""
    if ours.method is Method.EXACT or min(ours.tokens, reported) < _LEAST_TOKENS:
        return None
    off = math.log(reported / ours.tokens)
    return off if abs(off) <= _FURTHEST else None
