"""What does each part of a request weigh?

The shape that every provider's rule file returns, and the two things it is given. No rule is known here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ullage.models import Match

from .count import ZERO, Count, total
from .reach import Reach

if TYPE_CHECKING:
    from ullage.messages import Request

__all__ = ["CountText", "Rule", "Weight"]

CountText = Callable[[str], Count]
"""Counts a plain text with the tokenizer of the model at hand; a text seen before costs a look-up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """One request, weighed part by part; the parts sum to what the provider would report as input."""

    framing: Count = ZERO
    """What the provider adds once a request, whatever is in it."""
    system: Count = ZERO
    tools: tuple[Count, ...] = ()
    """One a definition, in the order of `Request.tools`."""
    tools_framing: Count = ZERO
    """What the presence of any tool adds once."""
    messages: tuple[Count, ...] = ()
    """One a message, its own framing included, in the order of `Request.messages`."""
    output_schema: Count = ZERO
    reach: Reach | None = None
    """What becomes of the band of the sum; None leaves it as the parts' bands add up."""

    @property
    def total(self) -> Count:
        parts = (self.framing, self.system, *self.tools, self.tools_framing, *self.messages, self.output_schema)
        return total(parts) if self.reach is None else self.reach.apply(total(parts))

    def map(self, change: Callable[[Count], Count]) -> "Weight":
        """Every part changed in the same way."""
        return Weight(
            framing=change(self.framing),
            system=change(self.system),
            tools=tuple(map(change, self.tools)),
            tools_framing=change(self.tools_framing),
            messages=tuple(map(change, self.messages)),
            output_schema=change(self.output_schema),
            reach=self.reach,
        )


Rule = Callable[["Request", Match, CountText], Weight]
"""Weighs a request for the model (and host) of the match. Pure."""
