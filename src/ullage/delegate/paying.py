"""Is there money for one more attempt, and is every one paid for?

An estimate is set aside before anyone is asked, and covers one answer of any candidate whose price is known. Where an
attempt was paid for and came to nothing, or the next candidate has no price, what was set aside is settled and an
estimate set aside anew, and the purse told what this run has spent already. Both are brought to their end whenever the
run is cancelled. How much either is, and what fits under which ceiling, is not decided here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio

from ullage.errors import StoreFailed
from ullage.tool import Caller

from .finishing import to_its_end
from .outcome import Attempt
from .spending import NO_SPEND, Purse, Spend, Ticket
from .tally import NOTHING, spent, together

__all__ = ["Payment"]


@dataclass(slots=True, kw_only=True)
class Payment:
    """For one run."""

    purse: Purse
    estimate: Spend
    """Of one answer, at the most that any known price makes of it."""
    caller: Caller
    task: str | None
    _ticket: Ticket | None = None
    _is_priced: bool = True
    """Whether the ticket is for a candidate whose price is known."""
    _paid: int = 0
    """Attempts that are settled."""

    async def set_aside(self, attempts: Sequence[Attempt], *, is_priced: bool = True) -> list[str]:
        """For the attempt after these; warnings. Raises `OverBudget` where there is not enough left, or where nobody
        knows what it costs and there is a ceiling of money."""
        warnings = list[str]()
        if self._ticket is not None:
            if is_priced == self._is_priced and all(one.usage == NOTHING for one in attempts[self._paid :]):
                return warnings
            warnings = await self.settle(attempts)
        try:
            await to_its_end(self._reserve(_spent(attempts), is_priced=is_priced))
        except anyio.get_cancelled_exc_class():
            # Nobody will be asked: it is given back.
            await self.settle(attempts)
            raise
        return warnings

    async def _reserve(self, already: Spend, *, is_priced: bool) -> None:
        estimate = self.estimate if is_priced else replace(self.estimate, dollars=None)
        self._ticket = await self.purse.reserve(estimate, self.caller, self.task, already=already)
        self._is_priced = is_priced

    async def settle(self, attempts: Sequence[Attempt]) -> list[str]:
        """Pays for these, however the run ended; warnings."""
        ticket, used = self._ticket, attempts[self._paid :]
        self._ticket, self._paid = None, len(attempts)
        if ticket is None:
            return []
        try:
            await to_its_end(self.purse.settle(ticket, _spent(used)))
        except StoreFailed as failed:
            # An answer that was paid for is not lost over it.
            return [f"what was spent could not be written down, and the estimate stands: {failed.message}"]
        return []


def _spent(attempts: Sequence[Attempt]) -> Spend:
    if not attempts:
        return NO_SPEND
    return spent([one.usage for one in attempts], together([one.cost for one in attempts]))
