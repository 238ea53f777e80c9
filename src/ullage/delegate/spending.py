"""What may still be spent, and what has been?

Asked before a call with an estimate, told after it with what it really was. Who keeps the sums, and where, is not known
here; `Unlimited` keeps none.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from ullage.tool import Caller

__all__ = ["NO_SPEND", "Purse", "Spend", "Ticket", "Unlimited"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """Tokens and money of one or several attempts."""

    tokens: int
    dollars: Decimal | None
    """None where nobody knows the price."""


NO_SPEND = Spend(tokens=0, dollars=Decimal(0))


@dataclass(frozen=True, slots=True)
class Ticket:
    """A reservation, to be settled once."""

    id: str


class Purse(Protocol):
    """Keeps to the user's ceilings. Every method may wait for a store."""

    async def reserve(self, estimate: Spend, caller: Caller, task: str | None, *, already: Spend = NO_SPEND) -> Ticket:
        """Sets the estimate aside; raises `OverBudget` where a ceiling does not leave as much. `already` was spent, and
        settled, by attempts of the same call."""
        ...

    async def settle(self, ticket: Ticket, actual: Spend) -> None:
        """Puts what was really spent in its place. Called once, also for what came to nothing."""
        ...

    async def end(self, caller: Caller, task: str | None = None) -> None:
        """Ends a task of the caller, or the caller's session where no task is named: the next call begins another."""
        ...


@dataclass(frozen=True, slots=True)
class Unlimited:
    """Lets everything pass and remembers nothing."""

    async def reserve(self, estimate: Spend, caller: Caller, task: str | None, *, already: Spend = NO_SPEND) -> Ticket:
        return Ticket("none")

    async def settle(self, ticket: Ticket, actual: Spend) -> None:
        return None

    async def end(self, caller: Caller, task: str | None = None) -> None:
        return None
