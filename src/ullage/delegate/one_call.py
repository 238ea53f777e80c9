"""What may several runs of one call spend together?

Who asks a model again, or several side by side, makes one call in the eyes of whoever pays: its ceiling holds over all
of them. The other ceilings, and every sum, are the purse's behind it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import count

from ullage.tool import Caller

from .run import Delegate
from .spending import NO_SPEND, Purse, Spend, Ticket

__all__ = ["OneCall", "as_one_call"]


@dataclass(slots=True)
class OneCall:
    """A purse for one call, whose runs need not know of one another."""

    purse: Purse
    _taken: dict[str, Spend] = field(default_factory=dict[str, Spend])
    """By ticket, what was set aside, or spent where it is settled."""
    _asked: Iterator[int] = field(default_factory=count)

    async def reserve(self, estimate: Spend, caller: Caller, task: str | None, *, already: Spend = NO_SPEND) -> Ticket:
        """What a run has spent already is among what was taken here."""
        before, asked = _sum(self._taken), f"asked {next(self._asked)}"
        # Before anything is waited for, so that two side by side see one another.
        self._taken[asked] = estimate
        try:
            ticket = await self.purse.reserve(estimate, caller, task, already=before)
        finally:
            del self._taken[asked]
        self._taken[ticket.id] = estimate
        return ticket

    async def settle(self, ticket: Ticket, actual: Spend) -> None:
        self._taken[ticket.id] = actual
        await self.purse.settle(ticket, actual)


def as_one_call(delegate: Delegate) -> Delegate:
    """The same delegate, for runs that are one call together."""
    return replace(delegate, purse=OneCall(delegate.purse))


def _sum(taken: dict[str, Spend]) -> Spend:
    """None for money where one of them has no price."""
    dollars = [one.dollars for one in taken.values()]
    known = [one for one in dollars if one is not None]
    total = sum(known, Decimal(0)) if len(known) == len(dollars) else None
    return Spend(tokens=sum(one.tokens for one in taken.values()), dollars=total)
