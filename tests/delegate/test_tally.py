from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from ullage.delegate import ModelEntry, Spend, cost_json
from ullage.delegate.spend_limits import NOTHING, complete_usage, price_attempt, sum_spend, together, use_reported_cost
from ullage.models import Cost, Usage, shipped

pytestmark = pytest.mark.requirement("S4:cost")

WHEN = datetime(2026, 11, 15, tzinfo=UTC)


def cost(one: str, other: str, currency: str = "USD") -> Cost:
    return Cost(input=Decimal(one), output=Decimal(other), currency=currency, source="s", date=date(2026, 1, 1))


def entry(model: str) -> ModelEntry:
    return ModelEntry(id=model, provider="p", model=model)


@pytest.mark.requirement("S4:cost")
@pytest.mark.parametrize(
    ("model", "usage", "total"),
    [
        # 1,000 fresh at 2.50, 3,000 cached at 1.25, 500 out at 10 a million.
        ("gpt-4o", Usage(input=4000, output=500, cache_read=3000), Decimal("0.01125")),
        # 100 fresh at 3, 1,000 read at 0.30, 2,000 written at 3.75, 50 out at 15.
        (
            "claude-3-5-sonnet-20241022",
            Usage(input=3100, output=50, cache_read=1000, cache_write=2000),
            Decimal("0.00885"),
        ),
        # 1,000 fresh at 0.30, 9,000 cached at 0.03, 200 out at 2.50, reasoning among them.
        ("gemini-2.5-flash", Usage(input=10_000, output=200, cache_read=9000, reasoning=150), Decimal("0.00107")),
    ],
)
def test_cached_tokens_cost_what_they_cost(model: str, usage: Usage, total: Decimal):
    found = price_attempt(usage, entry(model), shipped(), host=None, when=WHEN)
    assert found is not None
    assert found.total == total


@pytest.mark.requirement("S4:cost")
def test_an_unknown_price_is_none_and_never_zero():
    assert price_attempt(Usage(input=1, output=1), entry("my-own"), shipped(), host=None, when=WHEN) is None
    nothing = price_attempt(NOTHING, entry("my-own"), shipped(), host=None, when=WHEN)
    assert nothing is not None
    assert nothing.total == 0


@pytest.mark.requirement("S4:cost")
def test_costs_are_added_where_all_are_known_and_of_one_currency():
    assert together([cost("1", "2"), cost("3", "4")]) == cost("4", "6")
    assert together([cost("1", "2"), None]) is None
    assert together([cost("1", "2"), cost("3", "4", "EUR")]) is None
    assert together([cost("0", "0"), cost("3", "4", "EUR")]) == cost("3", "4", "EUR")
    assert together([cost("0", "0")]) == cost("0", "0")
    assert together([]) is None
    billed = together([cost("1", "2"), replace(cost("0", "0"), input=None, reported=Decimal(5))])
    assert billed is not None
    assert billed.total == 8


def test_what_was_billed_wins_where_it_is_said():
    assert use_reported_cost(cost("1", "2"), None, "p", WHEN) == cost("1", "2")
    known, unknown = use_reported_cost(cost("1", "2"), "0.5", "p", WHEN), use_reported_cost(None, "0.5", "p", WHEN)
    assert known is not None
    assert unknown is not None
    assert (known.total, unknown.total, unknown.input) == (Decimal("0.5"), Decimal("0.5"), None)


@pytest.mark.requirement("S4:usage")
def test_gaps_in_a_usage_are_filled_with_the_estimate_and_marked():
    assert complete_usage(Usage(input=1, output=2), sent=9, came=2) == (Usage(input=1, output=2), True)
    assert complete_usage(Usage(input=1, output=2), sent=9, came=9) == (Usage(input=1, output=9), False)
    assert complete_usage(Usage(), sent=9, came=8) == (Usage(input=9, output=8), False)
    assert complete_usage(Usage(cache_read=10, reasoning=20), sent=9, came=8)[0] == Usage(
        input=10, output=20, cache_read=10, reasoning=20
    )


def test_what_was_spent_is_in_dollars_or_unknown():
    uses = [Usage(input=1, output=2), Usage(input=3, output=4)]
    assert sum_spend(uses, cost("1", "2")) == Spend(tokens=10, dollars=Decimal(3))
    assert sum_spend(uses, cost("1", "2", "EUR")).dollars is None
    assert sum_spend(uses, None).dollars is None


@pytest.mark.requirement("S4:usage")
def test_a_usage_with_gaps_is_filled_with_what_is_known_to_have_passed():
    assert complete_usage(Usage(input=9, output=5), sent=7, came=5) == (Usage(input=9, output=5), True)
    assert complete_usage(Usage(input=9, output=4), sent=7, came=5) == (Usage(input=9, output=5), False)
    assert complete_usage(Usage(output=4, cache_read=6, cache_write=3), sent=7, came=2) == (
        Usage(input=9, output=4, cache_read=6, cache_write=3),
        False,
    )
    assert complete_usage(Usage(cache_read=1), sent=7, came=0) == (Usage(input=7, output=0, cache_read=1), False)
    assert complete_usage(Usage(input=9, reasoning=8), sent=7, came=2) == (Usage(input=9, output=8, reasoning=8), False)


@pytest.mark.requirement("S4:reply")
def test_a_cost_is_reported_with_its_parts_source_and_date():
    assert cost_json(cost("0.25", "0.5")) == {
        "currency": "USD",
        "input": 0.25,
        "output": 0.5,
        "total": 0.75,
        "price_source": "s",
        "as_of": "2026-01-01",
    }
    undated = cost_json(replace(cost("0.25", "0.5"), date=None))
    assert isinstance(undated, dict)
    assert undated["as_of"] is None
    assert cost_json(None) is None
