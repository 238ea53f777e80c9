"""What does a text or a block weigh to one caller?

By the one meter, for the model that stands for the caller, at the upper edge where a count has a band: what is held to
a budget by this never exceeds it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ullage.tokens import Meter, Steps
from ullage.tool import Block, Reply

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

    def weigh(self, text: str) -> Steps[int]:
        return (yield from self.meter.steps(text, self.model)).high

    def within(self, content: Reply | Sequence[Block], budget: int) -> Steps[int | None]:
        """The weight of a reply or some blocks; None where that is more than the budget."""
        reply = content if isinstance(content, Reply) else Reply(content=tuple(content))
        for part in shown(reply):
            if isinstance(part, str) and (yield from self._is_over(part, budget)):
                return None
            if isinstance(part, Unwritten) and (yield from self._is_over((yield from part.text()), budget)):
                return None
        weight = (yield from weighed(reply, self.meter, self.model)).high
        return weight if weight <= budget else None

    def _is_over(self, text: str, budget: int) -> Steps[bool]:
        """Whether that is certain from its head, so that the rest need not be counted."""
        head = text[: _HEAD * max(budget, _HEAD)]
        return len(head) < len(text) and (yield from self.weigh(head)) > _SURELY * budget
