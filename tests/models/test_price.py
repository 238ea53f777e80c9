"""Costs are exact to the last digit, and unknown is never nothing."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from ullage.models import Cost, Price, Usage, cost_of, price_of, shipped

pytestmark = pytest.mark.requirement("S4:cost")

TABLE = shipped()
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
OWN = Price(
    input=Decimal("0.000003"),
    output=Decimal("0.000015"),
    cache_read=Decimal("0.0000003"),
    cache_write=Decimal("0.00000375"),
    currency="EUR",
    source="own",
    date=date(2026, 10, 1),
)


def cost(name: str, usage: Usage, host: str | None = None) -> Cost | None:
    return cost_of(usage, TABLE.find(name), when=NOON, host=host)


def test_cached_input_is_part_of_the_input_and_priced_apart() -> None:
    # 10,000 in: 5,000 fresh at 3, 4,000 read at 0.30, 1,000 written at 3.75; 500 out at 15 (dollars a million)
    found = OWN.cost(Usage(input=10_000, cache_read=4_000, cache_write=1_000, output=500, reasoning=200))
    assert found.input == Decimal("0.015") + Decimal("0.0012") + Decimal("0.00375")
    assert found.output == Decimal("0.0075")
    assert str(found.total) == "0.02745000"
    assert (found.currency, found.source, found.date) == ("EUR", "own", date(2026, 10, 1))


def test_what_has_no_cache_price_costs_as_other_input() -> None:
    flat = Price(input=Decimal("0.000001"), output=Decimal("0.000002"), source="own", date=date(2026, 10, 1))
    assert flat.cost(Usage(input=1_000, cache_read=900, output=0)).total == Decimal("0.001")


def test_a_free_cache_costs_nothing_and_not_the_input_price() -> None:
    free = Price(input=Decimal(1), output=Decimal(1), cache_read=Decimal(0), source="own", date=date(2026, 10, 1))
    assert free.cost(Usage(input=10, cache_read=9, output=0)).total == Decimal(1)


def test_unknown_tokens_make_an_unknown_cost() -> None:
    found = OWN.cost(Usage(input=1_000))
    assert found.input == Decimal("0.003")
    assert found.output is None
    assert found.total is None


@pytest.mark.parametrize(
    "parts",
    [
        {"input": -1},
        {"input": 5, "cache_read": 6},
        {"input": 5, "cache_read": 3, "cache_write": 3},
        {"output": 5, "reasoning": 6},
    ],
)
def test_a_part_larger_than_its_whole_is_refused(parts: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"usage|includes"):
        Usage(**parts)


def test_claude_with_a_cache_is_exact() -> None:
    # Sonnet 4.5, to 200,000 tokens: 3 in, 0.30 read, 3.75 written, 15 out
    found = cost("claude-sonnet-4-5", Usage(input=10_000, cache_read=4_000, cache_write=1_000, output=500))
    assert found is not None
    assert (found.input, found.output, found.total) == (Decimal("0.01995"), Decimal("0.0075"), Decimal("0.02745"))
    assert (found.currency, found.date) == ("USD", NOON.date())
    assert found.source.startswith("genai-prices ")


def test_gpt_with_a_cache_is_exact() -> None:
    # GPT-4o: 2.50 in, 1.25 read, 10 out; 7,777 in of which 4,096 read, and 123 out
    found = cost("gpt-4o", Usage(input=7_777, cache_read=4_096, output=123))
    assert found is not None
    assert found.input == Decimal("0.0092025") + Decimal("0.00512")
    assert found.total == Decimal("0.0143225") + Decimal("0.00123")


def test_a_price_that_rises_with_the_prompt_takes_its_step() -> None:
    # Gemini 2.5 Pro: 1.25 and 10 up to 200,000 tokens of prompt, 2.50 and 15 beyond
    short, long = Usage(input=200_000, output=1_000), Usage(input=200_001, output=1_000)
    low, high = cost("gemini-2.5-pro", short), cost("gemini-2.5-pro", long)
    assert low is not None
    assert high is not None
    assert low.total == Decimal("0.25") + Decimal("0.01")
    assert high.total == Decimal("0.5000025") + Decimal("0.015")


def test_the_host_of_the_name_sets_the_price() -> None:
    usage = Usage(input=1_000_000, output=0)
    regional = cost("us.anthropic.claude-haiku-4-5-20251001-v1:0", usage)
    direct = cost("claude-haiku-4-5", usage)
    assert regional is not None
    assert direct is not None
    assert (direct.total, regional.total) == (Decimal(1), Decimal("1.1"))


def test_a_host_given_apart_sets_the_price() -> None:
    match = TABLE.find("llama-3.3-70b-versatile")
    assert price_of(match, when=NOON, host="nobody") is None
    found = price_of(match, when=NOON, host="groq")
    assert found is not None
    assert (found.input, found.output) == (Decimal("0.00000059"), Decimal("0.00000079"))


def test_the_users_own_price_wins_over_the_table() -> None:
    match = TABLE.find("gpt-4o")
    assert price_of(match, when=NOON, own=OWN) is OWN
    found = cost_of(Usage(input=1_000, output=0), match, when=NOON, own=OWN)
    assert found is not None
    assert (found.total, found.currency) == (Decimal("0.003"), "EUR")


def test_a_model_that_nobody_prices_has_no_price() -> None:
    match = TABLE.find("qwen3-0.6b")
    assert price_of(match, when=NOON) is None
    assert cost_of(Usage(input=1, output=1), match, when=NOON) is None


def test_a_card_found_by_family_lends_no_price() -> None:
    for name, how in (("claude-opus-99", "version"), ("gpt-4o-anything", "family")):
        match = TABLE.find(name)
        assert match.how == how
        assert price_of(match, when=NOON) is None


def test_an_embedding_has_no_price_of_output_and_none_is_needed() -> None:
    found = cost("text-embedding-3-small", Usage(input=1_000_000, output=0))
    assert found is not None
    assert found.total == Decimal("0.02")
    unknown = cost("text-embedding-3-small", Usage(input=1_000_000, output=7))
    assert unknown is not None
    assert unknown.total is None


def test_the_price_of_a_token_is_exact() -> None:
    found = price_of(TABLE.find("claude-sonnet-4-5"), when=NOON)
    assert found is not None
    assert (found.input, found.output) == (Decimal("0.000003"), Decimal("0.000015"))
    assert (found.cache_read, found.cache_write) == (Decimal("0.0000003"), Decimal("0.00000375"))
