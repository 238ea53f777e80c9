"""Spending ceilings, and the tally of what was spent in each scope.

`check` and `alerts` are pure functions of the ceilings, the sums per scope and an estimate; they refuse a call or
return an alert. A `Purse` keeps the sums: it reserves an estimate before a call and settles it afterwards with the
actual cost. `Unlimited` keeps none. `LocalPurse` keeps them in this process while it runs, without regard to other
processes; `shared_budget.StoredPurse` shares them.

`complete_usage` and `price_attempt` account for an attempt by what the provider reported. If it reported nothing and
had begun to answer, the input is estimated and the received output is counted. An attempt that failed before it began
costs nothing.

`Payment` reserves an estimate before a model is called. It covers one answer of any candidate with a known price. If an
attempt was billed without an answer, or the next candidate has no known price, the reservation is settled and a new one
is made, including what the run has already spent.

`run_to_completion` completes reservations and settlements in a task of their own even if the run is cancelled. A
shielded scope is not enough: it blocks only cancellation by scopes, not `asyncio.wait_for` or `Task.cancel`.
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
    "check",
    "complete_usage",
    "current",
    "drop_impossible_usage",
    "largest_spend",
    "least",
    "price_attempt",
    "run_to_completion",
    "since",
    "sum_spend",
    "together",
    "use_reported_cost",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """Tokens and money of one or more attempts."""

    tokens: int
    dollars: Decimal | None
    """None if the price is unknown."""


NO_SPEND = Spend(tokens=0, dollars=Decimal(0))


@dataclass(frozen=True, slots=True)
class Ticket:
    """A reservation, to settle once."""

    id: str


class Purse(Protocol):
    """Enforces the user's ceilings. Every method may wait for a store."""

    async def reserve(self, estimate: Spend, caller: Caller, task: str | None, *, already: Spend = NO_SPEND) -> Ticket:
        """Reserve the estimate.

        Args:
            estimate: the most the call is expected to cost.
            caller: the caller whose session and principal are charged.
            task: the caller's task, if it named one.
            already: what earlier attempts of the same call spent and settled.

        Raises:
            OverBudget: a ceiling leaves too little for the estimate.
        """
        ...

    async def settle(self, ticket: Ticket, actual: Spend) -> None:
        """Replace the reservation by what was actually spent. Called once, also for a failed call."""
        ...

    async def end(self, caller: Caller, task: str | None = None) -> None:
        """End a task of the caller, or the caller's session if `task` is None; the next call begins a new one."""
        ...


@dataclass(frozen=True, slots=True)
class Unlimited:
    """A purse without ceilings, which keeps no sums."""

    async def reserve(self, estimate: Spend, caller: Caller, task: str | None, *, already: Spend = NO_SPEND) -> Ticket:
        return Ticket("none")

    async def settle(self, ticket: Ticket, actual: Spend) -> None:
        return None

    async def end(self, caller: Caller, task: str | None = None) -> None:
        return None


Value = TypeVar("Value")


async def run_to_completion(work: Coroutine[Any, Any, Value]) -> Value:
    """Await work that must complete, and return its result.

    If the caller is cancelled meanwhile, `CancelledError` is raised after the work has ended and its result is lost, so
    the work must record any result that is needed afterwards.
    """
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
    # Retrieve the exception, or asyncio logs that it was never retrieved.
    task.exception()
    raise cancelled


IDLE = timedelta(minutes=30)
"""A task or session ends after this time without a call; the next call begins a new one."""
Item = TypeVar("Item")
Scope = Literal["call", "task", "session", "day", "month"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The most that may be spent in one scope."""

    dollars: Decimal | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """The user's ceilings, and when to alert."""

    by_scope: Mapping[Scope, Ceiling] = field(default_factory=dict[Scope, Ceiling])
    alert_at: tuple[Decimal, ...] = (Decimal("0.5"), Decimal("0.8"), Decimal(1))
    """Fractions of a ceiling at which the user is alerted, once each."""

    def kept(self) -> tuple[Scope, ...]:
        """Scopes whose sums a purse keeps; the sum of a single call is passed in with each reservation."""
        return tuple(scope for scope in self.by_scope if scope != "call")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A threshold of a ceiling that was passed."""

    scope: Scope
    part: Decimal
    message: str


def check(ceilings: Ceilings, spent: Mapping[Scope, Spend], estimate: Spend) -> None:
    """Check that the estimate fits under every ceiling.

    Raises:
        OverBudget: a ceiling leaves too little.
    """
    for scope, ceiling in ceilings.by_scope.items():
        before = spent.get(scope, NO_SPEND)
        if ceiling.tokens is not None and before.tokens + estimate.tokens > ceiling.tokens:
            raise _over(scope, f"{before.tokens:,} of {ceiling.tokens:,} tokens", f"{estimate.tokens:,} tokens")
        if ceiling.dollars is not None:
            if before.dollars is None or estimate.dollars is None:
                raise OverBudget(
                    f"what this call costs is not known, and there is a ceiling of ${ceiling.dollars} a {scope}",
                    suggestion="give the model a price, or take the ceiling away",
                )
            if before.dollars + estimate.dollars > ceiling.dollars:
                raise _over(
                    scope, f"${_money(before.dollars)} of ${ceiling.dollars}", f"up to ${_money(estimate.dollars)}"
                )


def _over(scope: Scope, spent: str, wanted: str) -> OverBudget:
    return OverBudget(
        f"over the budget of this {scope}: {spent} spent or set aside, and this call may take {wanted}",
        suggestion="ask for less output, use a cheaper model, or raise the ceiling",
    )


def alerts(ceilings: Ceilings, before: Mapping[Scope, Spend], after: Mapping[Scope, Spend]) -> Iterator[Alert]:
    """Yield the thresholds passed between two states of the sums."""
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
    """Return when the current day or month began, in UTC; None for scopes without a calendar."""
    start = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if scope == "day":
        return start
    return start.replace(day=1) if scope == "month" else None


def current(newest_first: Iterable[Item], time: Callable[[Item], float], now: float) -> Iterator[Item]:
    """Yield the spends of the current task or session: back to the first pause of `IDLE`.

    Args:
        newest_first: spends of one task or session.
        time: returns the time of a spend, in seconds since the epoch.
        now: the present time, in seconds since the epoch.
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


def drop_impossible_usage(said: Usage) -> Usage:
    """Remove reported figures that are impossible for an answered request: no input, or no tokens at all."""
    if said.input != 0:
        return said
    return replace(said, input=None, output=said.output or None)


def complete_usage(said: Usage, *, sent: int, came: int) -> tuple[Usage, bool]:
    """Return a usage without gaps, and whether it is the provider's own.

    Args:
        said: the reported usage.
        sent: estimated tokens of the prompt.
        came: counted tokens of the received output, a lower bound of what was written.
    """
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
    """Return the cost of an attempt; None if the price is unknown. No tokens cost nothing with any provider."""
    if usage == NOTHING:
        return Cost(input=Decimal(0), output=Decimal(0), currency="USD", source="nothing was used", date=when.date())
    if entry.price is not None:
        return entry.price.cost(usage)
    match = models.get(entry.model)
    return None if match is None else cost_of(usage, match, when=when, host=host)


def use_reported_cost(cost: Cost | None, reported: str | None, provider: str, when: datetime) -> Cost | None:
    """Return the cost as reported by the billing provider, which overrides Ullage's own calculation.

    A reported zero does not override a known price: a router reports zero for a call billed to the user's own account
    with another provider.
    """
    if reported is None or (Decimal(reported) == 0 and cost is not None and cost.total):
        return cost
    unknown = Cost(input=None, output=None, currency="USD", source="", date=when.date())
    return replace(cost or unknown, reported=Decimal(reported), source=f"reported by {provider}")


def together(costs: Sequence[Cost | None]) -> Cost | None:
    """Return the sum; None if one cost is unknown or currencies differ. A cost of zero has any currency."""
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


def sum_spend(usages: Sequence[Usage], cost: Cost | None) -> Spend:
    """Return the tokens and the dollars of several attempts."""
    tokens = sum((usage.input or 0) + (usage.output or 0) for usage in usages)
    return Spend(tokens=tokens, dollars=cost.total if cost is not None and cost.currency == "USD" else None)


def least(costs: Iterable[Cost | None]) -> Decimal:
    """Return the sum of the known costs in dollars, a lower bound of the total."""
    known = [cost.total for cost in costs if cost is not None and cost.currency == "USD"]
    return sum((total for total in known if total is not None), Decimal(0))


def largest_spend(usages: Sequence[Usage], prices: Sequence[Cost | None]) -> Spend:
    """Return the maximum tokens and dollars of any candidate; dollars are None if no price is known in dollars."""
    each = [sum_spend([usage], price) for usage, price in zip(usages, prices, strict=True)]
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


_KEPT = timedelta(days=7)
"""The age at which spends of a month that has ended are dropped."""


@dataclass(slots=True, kw_only=True)
class LocalPurse:
    """A purse that keeps its sums in this process."""

    ceilings: Callable[[], Ceilings]
    alert: Callable[[Alert], None] = lambda _: None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _spent: dict[str, _Spent] = field(default_factory=dict[str, _Spent])
    """Spends by ticket; unsettled ones with their estimates."""

    async def reserve(self, estimate: Spend, caller: Caller, task: str | None, *, already: Spend = NO_SPEND) -> Ticket:
        spent = _Spent(time=self.now(), principal=caller.principal, session=caller.session, task=task, spend=estimate)
        # Sessions and tasks may go on when a month begins, and calls that were made before may still be settled.
        now = self.now()
        oldest = min(since("month", now) or now, now - _KEPT)
        self._spent = {key: one for key, one in self._spent.items() if one.time >= oldest or not one.is_settled}
        check(self.ceilings(), {**self._sums(spent, self._spent.values()), "call": already}, estimate)
        ticket = Ticket(secrets.token_hex(16))
        self._spent[ticket.id] = spent
        return ticket

    async def settle(self, ticket: Ticket, actual: Spend) -> None:
        mine = replace(self._spent[ticket.id], time=self.now(), spend=actual, is_settled=True)
        # Only settled spends count, so that an estimate alone passes no threshold and each is passed once.
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

    def _sums(self, asked: _Spent, spends: Collection[_Spent]) -> dict[Scope, Spend]:
        sums = dict[Scope, Spend]()
        mine = [one for one in spends if one.principal == asked.principal]
        for scope in self.ceilings().kept():
            start, now = since(scope, self.now()), self.now()
            if start is not None:
                going_on = [one for one in spends if one.time >= start]
            else:
                if scope == "session":
                    same = [one for one in mine if one.session == asked.session]
                else:
                    same = [one for one in mine if asked.task is not None and one.task == asked.task]
                newest_first = sorted(same, key=lambda one: one.time, reverse=True)
                going_on = list(current(newest_first, lambda one: one.time.timestamp(), now.timestamp()))
            dollars = sum((one.spend.dollars for one in going_on if one.spend.dollars is not None), Decimal(0))
            sums[scope] = Spend(tokens=sum(one.spend.tokens for one in going_on), dollars=dollars)
        return sums


@dataclass(slots=True, kw_only=True)
class Payment:
    """The reservation of one run."""

    purse: Purse
    estimate: Spend
    """Maximum of one answer, at the highest known price."""
    caller: Caller
    task: str | None
    _ticket: Ticket | None = None
    _is_priced: bool = True
    """Whether the ticket is for a candidate with a known price."""
    _paid: int = 0
    """Number of settled attempts."""

    async def set_aside(self, attempts: Sequence[Attempt], *, is_priced: bool = True) -> list[str]:
        """Reserve the estimate for the next attempt, and return warnings.

        Args:
            attempts: the attempts made so far.
            is_priced: whether the next candidate has a known price.

        Raises:
            OverBudget: too little is left, or the price is unknown and there is a ceiling in money.
        """
        warnings = list[str]()
        if self._ticket is not None:
            if is_priced == self._is_priced and all(one.usage == NOTHING for one in attempts[self._paid :]):
                return warnings
            warnings = await self.settle(attempts)
        try:
            await run_to_completion(self._reserve(_sum_attempts(attempts), is_priced=is_priced))
        except anyio.get_cancelled_exc_class():
            # No model will be called: release the reservation.
            await self.settle(attempts)
            raise
        return warnings

    async def _reserve(self, already: Spend, *, is_priced: bool) -> None:
        estimate = self.estimate if is_priced else replace(self.estimate, dollars=None)
        self._ticket = await self.purse.reserve(estimate, self.caller, self.task, already=already)
        self._is_priced = is_priced

    async def settle(self, attempts: Sequence[Attempt]) -> list[str]:
        """Settle the reservation for these attempts, however the run ended, and return warnings."""
        ticket, used = self._ticket, attempts[self._paid :]
        self._ticket, self._paid = None, len(attempts)
        if ticket is None:
            return []
        try:
            await run_to_completion(self.purse.settle(ticket, _sum_attempts(used)))
        except StoreFailed as failed:
            # A paid answer must not be lost because of this.
            return [f"the spending could not be recorded, so the estimate is charged: {failed.message}"]
        return []


def _sum_attempts(attempts: Sequence[Attempt]) -> Spend:
    if not attempts:
        return NO_SPEND
    return sum_spend([one.usage for one in attempts], together([one.cost for one in attempts]))
