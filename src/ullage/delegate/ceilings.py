"""How much may be spent, and is there enough left?

Pure: what is set, what has been spent in each scope, and an estimate in; a refusal or an alert out. Where sums are kept
is not known here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Literal, TypeVar

from ullage.errors import OverBudget

from .spending import NO_SPEND, Spend

__all__ = ["IDLE", "Alert", "Ceiling", "Ceilings", "Scope", "alerts", "check", "current", "since"]

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
