"""Spending ceilings, and the tally of what was spent in each scope.

Pure: what is set, what has been spent in each scope, and an estimate in; a refusal or an alert out. Where sums are
kept is not known here.

Asked before a call with an estimate, told after it with what it really was. Who keeps the sums, and where, is not known
here; `Unlimited` keeps none.

In this process, and for as long as it runs: every ceiling holds within it, and other processes are not known. What fits
under a ceiling, `ceilings` knows.

By what the provider reported; where it reported nothing and had begun to answer, by the estimate of what was sent and
the count of what came. What failed before it began took nothing.

An estimate is set aside before anyone is asked, and covers one answer of any candidate whose price is known. Where an
attempt was paid for and came to nothing, or the next candidate has no price, what was set aside is settled and an
estimate set aside anew, and the purse told what this run has spent already. Both are brought to their end whenever the
run is cancelled. How much either is, and what fits under which ceiling, is not decided here.

In a task of its own, which is waited for whatever comes. A shielded scope keeps out only those who cancel by scopes:
`asyncio.wait_for`, and whoever cancels a task, reach into it; hence a plain task.
"""

import asyncio
import secrets
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, Protocol, TypeVar

import anyio

from ullage.errors import OverBudget, StoreFailed
from ullage.models import Cost, ModelTable, Usage, cost_of
from ullage.tool import Caller

from .model_call import Attempt
from .policy import ModelEntry

__all__ = [
    "IDLE",
    "NOTHING",
    "NO_SPEND",
    "Alert",
    "Ceiling",
    "Ceilings",
    "LocalPurse",
    "Payment",
    "Purse",
    "Scope",
    "Spend",
    "Ticket",
    "Unlimited",
    "alerts",
    "as_reported",
    "believable",
    "check",
    "completed",
    "current",
    "dearest",
    "least",
    "price_attempt",
    "since",
    "spent",
    "to_its_end",
    "together",
]


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


Value = TypeVar("Value")


async def to_its_end(work: Coroutine[Any, Any, Value]) -> Value:
    """What came of it. Where we were cancelled meanwhile, that is raised once it has ended: whoever needs to know what
    came of it then has the work write it down."""
    task = asyncio.get_running_loop().create_task(work)
    cancelled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is None:
        return task.result()
    # Looked at, or asyncio would say on the log that nobody did.
    task.exception()
    raise cancelled


IDLE = timedelta(minutes=30)
"""After so long without a call, a task or a session is over, and the next call begins another."""
Item = TypeVar("Item")
Scope = Literal["call", "task", "session", "day", "month"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    dollars: Decimal | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    by_scope: Mapping[Scope, Ceiling] = field(default_factory=dict[Scope, Ceiling])
    alert_at: tuple[Decimal, ...] = (Decimal("0.5"), Decimal("0.8"), Decimal(1))
    """Parts of a ceiling at which the user is told, once each."""

    def kept(self) -> tuple[Scope, ...]:
        """Those whose sums a purse keeps; what a call has spent, it says itself."""
        return tuple(scope for scope in self.by_scope if scope != "call")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    scope: Scope
    part: Decimal
    message: str


def check(ceilings: Ceilings, spent: Mapping[Scope, Spend], estimate: Spend) -> None:
    """Raises `OverBudget` where the estimate does not fit under every ceiling."""
    for scope, ceiling in ceilings.by_scope.items():
        before = spent.get(scope, NO_SPEND)
        if ceiling.tokens is not None and before.tokens + estimate.tokens > ceiling.tokens:
            raise _over(scope, f"{before.tokens:,} of {ceiling.tokens:,} tokens", f"{estimate.tokens:,} tokens")
        if ceiling.dollars is not None:
            _check_money(scope, ceiling.dollars, before, estimate)


def _check_money(scope: Scope, ceiling: Decimal, before: Spend, estimate: Spend) -> None:
    if before.dollars is None or estimate.dollars is None:
        raise OverBudget(
            f"what this call costs is not known, and there is a ceiling of ${ceiling} a {scope}",
            suggestion="give the model a price, or take the ceiling away",
        )
    if before.dollars + estimate.dollars > ceiling:
        raise _over(scope, f"${_money(before.dollars)} of ${ceiling}", f"up to ${_money(estimate.dollars)}")


def _over(scope: Scope, spent: str, wanted: str) -> OverBudget:
    return OverBudget(
        f"over the budget of this {scope}: {spent} spent or set aside, and this call may take {wanted}",
        suggestion="ask for less output, use a cheaper model, or raise the ceiling",
    )


def alerts(ceilings: Ceilings, before: Mapping[Scope, Spend], after: Mapping[Scope, Spend]) -> Iterator[Alert]:
    """The thresholds that were passed between the two."""
    for scope, ceiling in ceilings.by_scope.items():
        if scope not in before or scope not in after:
            continue
        was, now = _part(before[scope], ceiling), _part(after[scope], ceiling)
        passed = [part for part in ceilings.alert_at if was < part <= now]
        if passed:
            part = max(passed)
            yield Alert(scope=scope, part=part, message=f"{part:.0%} of the budget of this {scope} is spent")


def _part(spend: Spend, ceiling: Ceiling) -> Decimal:
    parts = [Decimal(0)]
    if ceiling.tokens:
        parts.append(Decimal(spend.tokens) / ceiling.tokens)
    if ceiling.dollars:
        parts.append((spend.dollars or Decimal(0)) / ceiling.dollars)
    return max(parts)


def since(scope: Scope, now: datetime) -> datetime | None:
    """When a day or a month began, in UTC; None for scopes that have no calendar."""
    start = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if scope == "day":
        return start
    return start.replace(day=1) if scope == "month" else None


def current(newest_first: Iterable[Item], time: Callable[[Item], float], now: float) -> Iterator[Item]:
    """Those of a task or a session that is still going on: back to the first pause of `IDLE`.

    Args:
        newest_first: spends of one task or session.
        time: when one was, in seconds since the epoch.
        now: the same for the present.
    """
    later = now
    for one in newest_first:
        if later - time(one) >= IDLE.total_seconds():
            return
        later = time(one)
        yield one


def _money(dollars: Decimal) -> str:
    return f"{dollars:.6f}".rstrip("0").rstrip(".")


NOTHING = Usage(input=0, output=0)


def believable(said: Usage) -> Usage:
    """Without what cannot be of a request that was answered: that it had no input, or took nothing at all."""
    if said.input != 0:
        return said
    return replace(said, input=None, output=said.output or None)


def completed(said: Usage, *, sent: int, came: int) -> tuple[Usage, bool]:
    """A usage without gaps, and whether it is the provider's own. What came is the least that was written."""
    if said.input is not None and said.output is not None and said.output >= came:
        return said, True
    whole = replace(
        said,
        input=max(sent, (said.cache_read or 0) + (said.cache_write or 0)) if said.input is None else said.input,
        output=max(came, said.output or 0, said.reasoning or 0),
    )
    return whole, False


def price_attempt(
    usage: Usage, entry: ModelEntry, models: ModelTable, *, host: str | None, when: datetime
) -> Cost | None:
    """None where nobody knows the price; nothing costs nothing, whoever was asked."""
    if usage == NOTHING:
        return Cost(input=Decimal(0), output=Decimal(0), currency="USD", source="nothing was used", date=when.date())
    if entry.price is not None:
        return entry.price.cost(usage)
    match = models.get(entry.model)
    return None if match is None else cost_of(usage, match, when=when, host=host)


def as_reported(cost: Cost | None, reported: str | None, provider: str, when: datetime) -> Cost | None:
    """What whoever bills says it was wins over what we reckon. A report of nothing for what has a price does not: a
    router says so of a call that is billed to an account of the user's own elsewhere."""
    if reported is None or (Decimal(reported) == 0 and cost is not None and cost.total):
        return cost
    unknown = Cost(input=None, output=None, currency="USD", source="", date=when.date())
    return replace(cost or unknown, reported=Decimal(reported), source=f"reported by {provider}")


def together(costs: Sequence[Cost | None]) -> Cost | None:
    """The sum; None where one is not known, or two currencies would be mixed. What cost nothing is of any currency."""
    known = [cost for cost in costs if cost is not None]
    paid = [cost for cost in known if cost.total != 0] or known[-1:]
    if len(known) < len(costs) or not paid or len({cost.currency for cost in paid}) > 1:
        return None
    last = paid[-1]
    reported = [cost.total for cost in paid] if any(cost.reported is not None for cost in paid) else []
    return replace(
        last,
        input=_tally_sum([cost.input for cost in paid]),
        output=_tally_sum([cost.output for cost in paid]),
        reported=_tally_sum(reported) if reported else None,
    )


def _tally_sum(parts: Sequence[Decimal | None]) -> Decimal | None:
    known = [part for part in parts if part is not None]
    return sum(known, Decimal(0)) if len(known) == len(parts) else None


def spent(usages: Sequence[Usage], cost: Cost | None) -> Spend:
    tokens = sum((usage.input or 0) + (usage.output or 0) for usage in usages)
    return Spend(tokens=tokens, dollars=cost.total if cost is not None and cost.currency == "USD" else None)


def least(costs: Iterable[Cost | None]) -> Decimal:
    """What is known of them in dollars: they cost no less together."""
    known = [cost.total for cost in costs if cost is not None and cost.currency == "USD"]
    return sum((total for total in known if total is not None), Decimal(0))


def dearest(usages: Sequence[Usage], prices: Sequence[Cost | None]) -> Spend:
    """The most of any; None for money where no price is known in dollars."""
    each = [spent([usage], price) for usage, price in zip(usages, prices, strict=True)]
    known = [one.dollars for one in each if one.dollars is not None]
    return Spend(tokens=max(one.tokens for one in each), dollars=max(known) if known else None)


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
