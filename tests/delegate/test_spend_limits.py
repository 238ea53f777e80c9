"""Sums, thresholds and gaps of what was spent, at every bound."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from ullage.delegate import NO_SPEND, Alert, Ceiling, Ceilings, ModelEntry, Spend, alerts, check, since
from ullage.delegate.spend_limits import (
    NOTHING,
    complete_usage,
    current,
    drop_impossible_usage,
    largest_spend,
    least,
    price_attempt,
    sum_spend,
    together,
    use_reported_cost,
)
from ullage.errors import OverBudget
from ullage.models import Cost, Price, Usage, shipped

pytestmark = pytest.mark.requirement("S4:budgets", "S4:cost")

WHEN = datetime(2026, 11, 15, 12, tzinfo=UTC)


def spend(tokens: int, dollars: str | None = "0") -> Spend:
    return Spend(tokens=tokens, dollars=None if dollars is None else Decimal(dollars))


def cost(one: str | None, other: str | None = "0", currency: str = "USD", *, reported: str | None = None) -> Cost:
    parts = [None if part is None else Decimal(part) for part in (one, other)]
    return Cost(
        input=parts[0], output=parts[1], currency=currency, source="s", date=date(2026, 1, 1),
        reported=None if reported is None else Decimal(reported),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ceiling", "spent", "estimate", "message"),
    [
        (Ceiling(tokens=100), spend(60), spend(40), None),
        (
            Ceiling(tokens=2_000),
            spend(1_600),
            spend(401),
            "over the budget of this day: 1,600 of 2,000 tokens spent or set aside, and this call may take 401 tokens",
        ),
        (Ceiling(dollars=Decimal(1)), spend(0, "0.6"), spend(0, "0.4"), None),
        (
            Ceiling(dollars=Decimal(1)),
            spend(0, "0.6"),
            spend(0, "0.4000001"),
            "over the budget of this day: $0.6 of $1 spent or set aside, and this call may take up to $0.4",
        ),
        (Ceiling(dollars=Decimal(1)), spend(0, None), spend(0), "what this call costs is not known"),
        (Ceiling(dollars=Decimal(1)), spend(0), spend(0, None), "what this call costs is not known"),
        (Ceiling(tokens=0), NO_SPEND, spend(1), "over the budget of this day: 0 of 0 tokens"),
        (Ceiling(tokens=0), NO_SPEND, spend(0), None),
        (Ceiling(), spend(10**9, None), spend(10**9, None), None),
    ],
)
def test_an_estimate_fits_up_to_the_ceiling(ceiling: Ceiling, spent: Spend, estimate: Spend, message: str | None):
    limits = Ceilings(by_scope={"day": ceiling})
    if message is None:
        check(limits, {"day": spent}, estimate)
        return
    with pytest.raises(OverBudget) as refused:
        check(limits, {"day": spent}, estimate)
    assert refused.value.message.startswith(message)


def test_a_scope_without_a_sum_begins_at_nothing_and_every_scope_is_checked():
    limits = Ceilings(by_scope={"call": Ceiling(tokens=5), "month": Ceiling(tokens=3)})
    check(limits, {}, spend(3))
    with pytest.raises(OverBudget, match="this month"):
        check(limits, {}, spend(4))
    assert limits.kept() == ("month",)
    assert limits.alert_at == (Decimal("0.5"), Decimal("0.8"), Decimal(1))


@pytest.mark.parametrize(
    ("ceiling", "before", "after", "part"),
    [
        (Ceiling(tokens=100), spend(49), spend(50), "0.5"),
        (Ceiling(tokens=100), spend(50), spend(79), None),
        (Ceiling(tokens=100), spend(50), spend(80), "0.8"),
        (Ceiling(tokens=100), spend(0), spend(85), "0.8"),
        (Ceiling(tokens=100), spend(80), spend(100), "1"),
        (Ceiling(tokens=100), spend(99), spend(500), "1"),
        (Ceiling(tokens=100), spend(100), spend(500), None),
        (Ceiling(dollars=Decimal(2)), spend(0, "0.99"), spend(0, "1"), "0.5"),
        (Ceiling(dollars=Decimal(2)), spend(0, None), spend(0, None), None),
        (Ceiling(tokens=100, dollars=Decimal(2)), spend(0), spend(10, "1.7"), "0.8"),
        (Ceiling(tokens=100, dollars=Decimal(2)), spend(0), spend(90, "0.1"), "0.8"),
        (Ceiling(tokens=0), spend(0), spend(90), None),
    ],
)
def test_the_highest_threshold_that_was_passed_is_reported(
    ceiling: Ceiling, before: Spend, after: Spend, part: str | None
):
    found = list(alerts(Ceilings(by_scope={"day": ceiling}), {"day": before}, {"day": after}))
    if part is None:
        assert found == []
    else:
        said = f"{Decimal(part):.0%} of the budget of this day is spent"
        assert found == [Alert(scope="day", part=Decimal(part), message=said)]
    assert list(alerts(Ceilings(by_scope={"day": ceiling}), {}, {"day": after})) == []
    assert list(alerts(Ceilings(by_scope={"day": ceiling}), {"day": before}, {})) == []


def test_a_day_and_a_month_begin_in_utc():
    late = datetime(2026, 11, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert since("day", late) == datetime(2026, 10, 31, tzinfo=UTC)
    assert since("month", late) == datetime(2026, 10, 1, tzinfo=UTC)
    assert [since(scope, late) for scope in ("call", "task", "session")] == [None] * 3


@pytest.mark.parametrize(
    ("times", "kept"),
    [
        ([], []),
        ([8_201], [8_201]),
        ([8_200], []),
        ([9_000, 7_201], [9_000, 7_201]),
        ([9_000, 7_200, 7_100], [9_000]),
        ([9_500, 8_000, 6_300, 4_400], [9_500, 8_000, 6_300]),
    ],
)
def test_a_session_reaches_back_to_the_first_pause_of_half_an_hour(times: list[float], kept: list[float]):
    assert list(current(times, lambda one: one, 10_000.0)) == kept


@pytest.mark.parametrize(
    ("said", "believed"),
    [
        (Usage(input=1, output=0), Usage(input=1, output=0)),
        (Usage(input=0, output=5), Usage(output=5)),
        (Usage(input=0, output=0), Usage()),
        (Usage(output=0), Usage(output=0)),
    ],
)
def test_an_answered_request_had_some_input(said: Usage, believed: Usage):
    assert drop_impossible_usage(said) == believed


@pytest.mark.parametrize(
    ("said", "whole", "is_own"),
    [
        (Usage(input=7, output=4), Usage(input=7, output=4), True),
        (Usage(input=7, output=3), Usage(input=7, output=4), False),
        (Usage(input=7), Usage(input=7, output=4), False),
        (Usage(output=9), Usage(input=10, output=9), False),
        (Usage(output=9, cache_read=8, cache_write=5), Usage(input=13, output=9, cache_read=8, cache_write=5), False),
        (Usage(cache_read=8), Usage(input=10, output=4, cache_read=8), False),
        (Usage(input=7, reasoning=6), Usage(input=7, output=6, reasoning=6), False),
        (Usage(), Usage(input=10, output=4), False),
    ],
)
def test_gaps_are_filled_with_what_is_known(said: Usage, whole: Usage, *, is_own: bool):
    assert complete_usage(said, sent=10, came=4) == (whole, is_own)


def test_an_attempt_is_priced_by_the_users_own_price_first_and_nothing_is_free():
    own = Price(input=Decimal(1), output=Decimal(2), currency="EUR", source="own", date=None)
    entry = ModelEntry(id="m", provider="p", model="gpt-4o", price=own)
    priced = price_attempt(Usage(input=2, output=3), entry, shipped(), host=None, when=WHEN)
    assert priced is not None
    assert (priced.total, priced.currency) == (Decimal(8), "EUR")
    free = price_attempt(NOTHING, entry, shipped(), host=None, when=WHEN)
    assert free == Cost(
        input=Decimal(0), output=Decimal(0), currency="USD", source="nothing was used", date=date(2026, 11, 15)
    )
    listed = price_attempt(Usage(input=2, output=3), replace(entry, price=None), shipped(), host=None, when=WHEN)
    assert listed is not None
    assert listed.currency == "USD"


@pytest.mark.parametrize(
    ("known", "reported", "total"),
    [
        (cost("1", "2"), None, "3"),
        (cost("1", "2"), "5", "5"),
        (cost("1", "2"), "0", "3"),
        (cost("0", "0"), "0", "0"),
        (cost("1", None), "0", "0"),
        (None, "5", "5"),
        (None, "0.0", "0"),
        (None, None, None),
    ],
)
def test_what_a_biller_reports_is_the_total(known: Cost | None, reported: str | None, total: str | None):
    found = use_reported_cost(known, reported, "router", WHEN)
    assert (None if found is None else found.total) == (None if total is None else Decimal(total))
    if known is None and found is not None:
        assert (found.source, found.date, found.currency) == ("reported by router", WHEN.date(), "USD")


@pytest.mark.parametrize(
    ("costs", "total"),
    [
        ([], None),
        ([None], None),
        ([cost("1")], "1 USD"),
        ([cost("1"), None], None),
        ([cost("1", "2"), cost("3", "4")], "10 USD"),
        ([cost("1"), cost("1", currency="EUR")], None),
        ([cost("0"), cost("1", currency="EUR")], "1 EUR"),
        ([cost("1", currency="EUR"), cost("0")], "1 EUR"),
        ([cost("0"), cost("0", currency="EUR")], "0 EUR"),
        ([cost("1", reported="5"), cost("2", "3")], "10 USD"),
        ([cost("1"), cost(None)], None),
        ([cost("1", reported="5"), cost(None)], None),
        ([cost("1", reported="5"), cost(None, reported="2")], "7 USD"),
    ],
)
def test_costs_are_added_where_all_are_known(costs: list[Cost | None], total: str | None):
    found = together(costs)
    shown = None if found is None or found.total is None else f"{found.total} {found.currency}"
    assert shown == total


def test_what_was_spent_is_all_input_and_output_and_dollars_alone():
    usages = [Usage(input=1, output=2), Usage(input=4), Usage(output=8), Usage()]
    assert sum_spend(usages, cost("1", "2")) == spend(15, "3")
    assert sum_spend(usages, cost("1", "2", "EUR")) == spend(15, None)
    assert sum_spend([], None) == spend(0, None)
    assert least([cost("1"), None, cost("2", currency="EUR"), cost(None), cost("3")]) == 4
    assert least([]) == 0


def test_the_dearest_of_several_candidates_is_the_most_of_each():
    usages = [Usage(input=9, output=1), Usage(input=1, output=1), Usage(input=20, output=0)]
    assert largest_spend(usages, [cost("1"), cost("5"), None]) == spend(20, "5")
    assert largest_spend(usages, [None, cost("5", currency="EUR"), None]) == spend(20, None)
