"""Where is it kept what was spent, if there is no store?

In this process, and for as long as it runs: every ceiling holds within it, and other processes are not known. What fits
under a ceiling, `ceilings` knows.
"""

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal

from ullage.tool import Caller

from .ceilings import Alert, Ceilings, Scope, alerts, check, since
from .spending import NO_SPEND, Spend, Ticket

__all__ = ["LocalPurse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spent:
    time: datetime
    principal: str
    session: str
    task: str | None
    spend: Spend


@dataclass(slots=True, kw_only=True)
class LocalPurse:
    ceilings: Callable[[], Ceilings]
    alert: Callable[[Alert], None] = lambda _: None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _spent: dict[str, _Spent] = field(default_factory=dict[str, _Spent])
    """By ticket, the open ones with their estimates."""

    async def reserve(self, estimate: Spend, caller: Caller, task: str | None, *, already: Spend = NO_SPEND) -> Ticket:
        spent = _Spent(time=self.now(), principal=caller.principal, session=caller.session, task=task, spend=estimate)
        self._forget()
        check(self.ceilings(), {**self._sums(spent), "call": already}, estimate)
        ticket = Ticket(secrets.token_hex(16))
        self._spent[ticket.id] = spent
        return ticket

    async def settle(self, ticket: Ticket, actual: Spend) -> None:
        estimated = self._spent.pop(ticket.id)
        before = self._sums(estimated)
        self._spent[ticket.id] = replace(estimated, spend=actual)
        for one in alerts(self.ceilings(), before, self._sums(estimated)):
            self.alert(one)

    def _forget(self) -> None:
        """Sums of one principal's sessions and tasks are kept as long as those of a month."""
        start = since("month", self.now())
        self._spent = {key: one for key, one in self._spent.items() if start is None or one.time >= start}

    def _sums(self, asked: _Spent) -> dict[Scope, Spend]:
        everything, kept = self._spent.values(), self.ceilings().kept()
        return {scope: _sum(one.spend for one in everything if self._within(scope, asked, one)) for scope in kept}

    def _within(self, scope: Scope, asked: _Spent, one: _Spent) -> bool:
        start = since(scope, self.now())
        if start is not None:
            return one.time >= start
        if one.principal != asked.principal:
            return False
        return one.session == asked.session if scope == "session" else asked.task is not None and one.task == asked.task


def _sum(spends: Iterable[Spend]) -> Spend:
    listed = list(spends)
    dollars = sum((one.dollars for one in listed if one.dollars is not None), Decimal(0))
    return Spend(tokens=sum(one.tokens for one in listed), dollars=dollars)
