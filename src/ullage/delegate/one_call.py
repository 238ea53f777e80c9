"""What may several runs of one call spend together, and what have they?

Who asks a model again, or several side by side, makes one call in the eyes of whoever pays: its ceiling holds over all
of them, and what it cost is what every attempt of each cost, whether it came to anything or not. The other ceilings,
and every sum, are the purse's behind it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import count

from ullage.models import Cost
from ullage.tool import Caller

from .happening import Happening, Observer
from .outcome import Attempt
from .run import Delegate
from .spending import NO_SPEND, Purse, Spend, Ticket
from .tally import together

__all__ = ["OneCall", "as_one_call"]


@dataclass(slots=True)
class OneCall:
    """A purse for one call, whose runs need not know of one another, and an observer of them."""

    purse: Purse
    observers: tuple[Observer, ...] = ()
    """Those who are told of each run."""
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    """Of all runs that are over, as the observers were told of them."""
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

    async def end(self, caller: Caller, task: str | None = None) -> None:
        await self.purse.end(caller, task)

    def happened(self, happening: Happening) -> None:
        told = replace(happening, earlier=tuple(self.attempts))
        self.attempts += happening.attempts
        for observer in self.observers:
            observer.happened(told)

    @property
    def cost(self) -> Cost | None:
        """None where an attempt has no price."""
        return together([one.cost for one in self.attempts])


def as_one_call(delegate: Delegate) -> tuple[Delegate, OneCall]:
    """The same delegate, for runs that are one call together, and that call."""
    call = OneCall(delegate.purse, delegate.observers)
    return replace(delegate, purse=call, observers=(call,)), call


def _sum(taken: dict[str, Spend]) -> Spend:
    """None for money where one of them has no price."""
    dollars = [one.dollars for one in taken.values()]
    known = [one for one in dollars if one is not None]
    total = sum(known, Decimal(0)) if len(known) == len(dollars) else None
    return Spend(tokens=sum(one.tokens for one in taken.values()), dollars=total)
