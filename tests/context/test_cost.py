from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import anyio
import pytest

from context.sessions import METER, Summarising
from ullage.context import CachePrices, Context, Options, Shed, context, context_options
from ullage.context.context import shed_json
from ullage.context.context_options import cache_prices_of, price_per_call
from ullage.models import ModelTable, Price, shipped

pytestmark = pytest.mark.requirement("S2:money")
PRICES = CachePrices()
WHEN = datetime(2026, 11, 1, tzinfo=UTC)
LINE = "a line of a file that was read and is long enough to weigh something, number {}\n"


def price(left: int, extra: float = 0.0, growth: float = 1_000) -> float:
    return price_per_call(left=left, rewritten=left, extra=extra, refill=130_000, growth=growth, prices=PRICES)


def test_a_summary_that_leaves_little_is_cheaper_than_masks_that_leave_much():
    assert price(30_000, extra=135_000) < price(95_000)


def test_a_summary_that_leaves_as_much_as_masks_costs_more_than_they_do():
    assert price(60_000, extra=100_000) > price(60_000)


def test_a_compaction_that_frees_nothing_is_paid_for_with_every_call():
    assert price(130_000) == pytest.approx(0.1 * 130_000 + 1.25 * 130_000)


def test_prices_are_the_models_own_in_tokens_of_its_input():
    claude = cache_prices_of(shipped(), "claude-sonnet-4-5", when=WHEN)
    assert (claude.read, claude.write, claude.output) == pytest.approx((0.1, 1.25, 5.0))
    assert cache_prices_of(shipped(), "gpt-4o", when=WHEN).read == pytest.approx(0.5)


def test_a_model_without_a_known_price_has_the_default_prices():
    assert cache_prices_of(shipped(), "nobody/knows-it", when=WHEN) == PRICES


@pytest.mark.parametrize(
    ("left", "rewritten", "extra", "growth", "each"),
    [
        (95_000, 95_000, 0, 1_000, 14_642.857),
        (30_000, 30_000, 135_000, 1_000, 9_725.0),
        (30_000, 30_000, 135_000, 2_000, 11_450.0),
        (30_000, 30_000, 135_000, 0.5, 8_001.725),
        (129_500, 10, 7, 1_000, 12_994.5),
        (129_500, 10, 7, 0.5, 12_975.039),
        (140_000, 1_000, 500, 1_000, 15_750.0),
    ],
)
def test_a_compaction_is_paid_by_the_calls_until_the_next_one(
    left: int, rewritten: int, extra: float, growth: float, each: float
):
    paid = price_per_call(
        left=left, rewritten=rewritten, extra=extra, refill=130_000, growth=growth, prices=CachePrices()
    )
    assert paid == pytest.approx(each, abs=0.001)


@pytest.mark.parametrize(
    ("own", "prices"),
    [
        (
            {"input": "2", "cache_read": "1", "cache_write": "3", "output": "8"},
            CachePrices(read=0.5, write=1.5, output=4),
        ),
        ({"input": "2"}, CachePrices(read=1, write=1, output=1)),
        ({"input": "2", "cache_read": "0"}, CachePrices(read=0, write=1, output=1)),
        ({"input": "0", "output": "1"}, PRICES),
        ({"output": "1"}, PRICES),
    ],
)
def test_a_missing_price_of_the_cache_is_that_of_input(
    own: dict[str, str], prices: CachePrices, monkeypatch: pytest.MonkeyPatch
):
    said: dict[str, Any] = {"input": None, "output": None, **{name: Decimal(one) for name, one in own.items()}}
    price = Price(**said, source="own", date=WHEN.date())
    monkeypatch.setattr(context_options, "price_of", lambda *_, **__: price)
    assert cache_prices_of(shipped(), "gpt-4o", when=WHEN) == prices


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def working(clock: Clock, *, lines: int = 550, **options: object) -> Context:
    """A context after a call, with so many lines of results in a window of 40,000 tokens (550 fill 28 % of it)."""
    made = Context(
        model="gpt-4o",
        meter=METER,
        options=Options(context_window=40_000, **options),  # pyright: ignore[reportArgumentType]
        summarizer=Summarising(),
        clock=clock,
    )
    made.add({"role": "user", "content": "Mend the export."})
    for number in range(10):
        call = {"name": "read", "arguments": f'{{"path": "part{number}.py"}}'}
        made.add({"role": "assistant", "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}]})
        text = "".join(LINE.format(line) for line in range(lines // 10 * number, lines // 10 * (number + 1)))
        made.add({"role": "tool", "tool_call_id": f"c{number}", "content": text})
    made.observe(answer=[{"role": "assistant", "content": "All parts are read."}])
    made.add({"role": "user", "content": "Go on."})
    return made


def after(made: Context, clock: Clock, seconds: float) -> tuple[Shed, ...]:
    clock.now += seconds
    return anyio.run(made.prepare).sheds


def test_a_cold_cache_is_used_to_compact_before_the_threshold():
    clock = Clock()
    made = working(clock, lines=1_200)
    assert 50 < made.status().usage_percent < 65
    assert not after(made, clock, 299)
    clock.now += 301
    assert anyio.run(made.prepare).sheds
    assert made.status().usage_percent < 50


def test_prices_are_looked_up_only_to_compact(monkeypatch: pytest.MonkeyPatch):
    """The list of prices takes longer to import than a call takes to prepare."""
    looked_up = list[str]()

    def note(models: ModelTable, model: str, *, when: datetime) -> CachePrices:
        looked_up.append(model)
        return cache_prices_of(models, model, when=when)

    monkeypatch.setattr(context, "cache_prices_of", note)
    clock = Clock()
    made = working(clock, lines=1_200)
    assert not after(made, clock, 299)
    assert looked_up == []
    assert after(made, clock, 301)
    assert looked_up == ["gpt-4o"]


@pytest.mark.parametrize(("waited", "is_due"), [(3_599, False), (3_601, True)])
def test_a_cache_is_cold_after_the_lifetime_that_is_given(waited: float, is_due: bool):  # noqa: FBT001
    clock = Clock()
    made = working(clock, lines=1_200, cache_prices=CachePrices(lifetime=3_600))
    assert bool(after(made, clock, waited)) is is_due


def test_a_cold_cache_is_no_reason_to_compact_a_window_that_is_hardly_used():
    clock = Clock()
    made = working(clock)
    assert made.status().usage_percent < 50
    assert not after(made, clock, 10_000)


def test_a_cold_threshold_of_1_leaves_a_cold_cache_alone():
    clock = Clock()
    assert not after(working(clock, lines=1_200, cold_threshold=1), clock, 10_000)


def test_who_waits_for_a_cold_cache_compacts_once_it_has_expired():
    clock = Clock()
    made = working(clock, lines=1_500, wait_for_cold_cache=True)
    assert 65 < made.status().usage_percent < 85
    assert not after(made, clock, 10)
    assert after(made, clock, 301)


def test_who_waits_for_a_cold_cache_compacts_a_full_window_at_once():
    clock = Clock()
    made = working(clock, lines=1_950, wait_for_cold_cache=True)
    assert made.status().usage_percent > 85
    assert after(made, clock, 10)


@pytest.mark.requirement("S2:compact:when", "S2:money")
def test_what_a_tier_gave_is_written_with_the_place_where_the_cache_breaks():
    shed = Shed(tier="clamp", tokens=5, messages=4, broke_at=3, reread=2)
    assert shed_json(shed) == {"tier": "clamp", "tokens": 5, "messages": 4, "brokeAt": 3, "reread": 2}
