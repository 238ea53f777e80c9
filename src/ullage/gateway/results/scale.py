"""What does a text or a block weigh to one caller?

By the one meter, for the model that stands for the caller, at the upper edge where a count has a band: what is held to
a budget by this never exceeds it. Where a client shows only so many characters of a reply, a text weighs at least its
share of them, so that what fits the budget fits the client as well.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ullage.messages import Media
from ullage.tokens import Meter, Steps
from ullage.tool import Block, Reply

from ..reference import characters
from ..shown import Unwritten, shown
from ..weighing import weighed

__all__ = ["Scale"]

_SURELY = 2
"""A text whose head weighs this many times the budget is over it, whatever follows."""
_HEAD = 16
"""Characters a token in that head."""


@dataclass(frozen=True, slots=True)
class Scale:
    meter: Meter
    model: str
    per_character: float = 0.0
    """Tokens that a character weighs at least: the budget divided by the characters that the client shows."""

    def weigh(self, text: str) -> Steps[int]:
        return max((yield from self.meter.steps(text, self.model)).high, self._by_length(text))

    def _by_length(self, text: str) -> int:
        return math.ceil(characters(text) * self.per_character) if self.per_character else 0

    def within(self, content: Reply | Sequence[Block], budget: int) -> Steps[int | None]:
        """The weight of a reply or some blocks; None where that is more than the budget."""
        reply = content if isinstance(content, Reply) else Reply(content=tuple(content))
        by_length = 0
        for part in shown(reply):
            if isinstance(part, Media):
                continue
            text = (yield from part.text()) if isinstance(part, Unwritten) else part
            by_length += self._by_length(text)
            if by_length > budget or (yield from self._is_over(text, budget)):
                return None
        weight = max((yield from weighed(reply, self.meter, self.model)).high, by_length)
        return weight if weight <= budget else None

    def _is_over(self, text: str, budget: int) -> Steps[bool]:
        """Whether that is certain from its head, so that the rest need not be counted."""
        head = text[: _HEAD * max(budget, _HEAD)]
        return len(head) < len(text) and (yield from self.weigh(head)) > _SURELY * budget
