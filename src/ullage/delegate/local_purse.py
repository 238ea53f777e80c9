"""Where is it kept what was spent, if there is no store?

In this process, and for as long as it runs: every ceiling holds within it, and other processes are not known. What fits
under a ceiling, `ceilings` knows.
"""

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal

from ullage.tool import Caller

from .ceilings import Alert, Ceilings, Scope, alerts, check, current, since
from .spending import NO_SPEND, Spend, Ticket

__all__ = ["LocalPurse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spent:
    time: datetime
    principal: str
    session: str
    task: str | None
    spend: Spend
    is_settled: bool = False


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
        check(self.ceilings(), {**self._sums(spent, self._spent.values()), "call": already}, estimate)
        ticket = Ticket(secrets.token_hex(16))
        self._spent[ticket.id] = spent
        return ticket

    async def settle(self, ticket: Ticket, actual: Spend) -> None:
        mine = replace(self._spent[ticket.id], time=self.now(), spend=actual, is_settled=True)
        # Of what is settled, so that an estimate alone passes no threshold, and each is passed once.
        settled = [one for one in self._spent.values() if one.is_settled]
        self._spent[ticket.id] = mine
        before, after = self._sums(mine, settled), self._sums(mine, [*settled, mine])
        for one in alerts(self.ceilings(), before, after):
            self.alert(one)

    async def end(self, caller: Caller, task: str | None = None) -> None:
        ended = f"ended {secrets.token_hex(8)}"
        for key, one in self._spent.items():
            if one.principal != caller.principal:
                continue
            if task is None and one.session == caller.session:
                self._spent[key] = replace(one, session=ended)
            elif task is not None and one.task == task:
                self._spent[key] = replace(one, task=ended)

    def _forget(self) -> None:
        """Sums of one principal's sessions and tasks are kept as long as those of a month."""
        start = since("month", self.now())
        self._spent = {key: one for key, one in self._spent.items() if start is None or one.time >= start}

    def _sums(self, asked: _Spent, spends: Collection[_Spent]) -> dict[Scope, Spend]:
        return {scope: _sum(self._within(scope, asked, spends)) for scope in self.ceilings().kept()}

    def _within(self, scope: Scope, asked: _Spent, spends: Collection[_Spent]) -> Iterator[Spend]:
        start, now = since(scope, self.now()), self.now()
        if start is not None:
            return (one.spend for one in spends if one.time >= start)
        mine = (one for one in spends if one.principal == asked.principal)
        if scope == "session":
            same = [one for one in mine if one.session == asked.session]
        else:
            same = [one for one in mine if asked.task is not None and one.task == asked.task]
        newest_first = sorted(same, key=lambda one: one.time, reverse=True)
        going_on = current(newest_first, lambda one: one.time.timestamp(), now.timestamp())
        return (one.spend for one in going_on)


def _sum(spends: Iterable[Spend]) -> Spend:
    listed = list(spends)
    dollars = sum((one.dollars for one in listed if one.dollars is not None), Decimal(0))
    return Spend(tokens=sum(one.tokens for one in listed), dollars=dollars)
