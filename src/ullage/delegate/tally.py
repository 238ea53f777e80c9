"""What did an attempt take, and what did all of them cost together?

By what the provider reported; where it reported nothing and had begun to answer, by the estimate of what was sent and
the count of what came. What failed before it began took nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from ullage.models import Cost, ModelTable, Usage, cost_of

from .policy import ModelEntry
from .spending import Spend

__all__ = [
    "NOTHING",
    "as_reported",
    "believable",
    "completed",
    "dearest",
    "least",
    "price_attempt",
    "spent",
    "together",
]

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
        input=_sum([cost.input for cost in paid]),
        output=_sum([cost.output for cost in paid]),
        reported=_sum(reported) if reported else None,
    )


def _sum(parts: Sequence[Decimal | None]) -> Decimal | None:
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
