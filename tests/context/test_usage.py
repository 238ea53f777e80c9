import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.context import Entry, Options
from ullage.context.token_weights import Fixed, Scale, ToolWeight, apportioned, observe
from ullage.context.window_usage import ContextUsage, usage_of
from ullage.messages import Format, Message, read_request
from ullage.models import Usage, shipped
from ullage.tokens import Count, Meter, Method, drain

pytestmark = pytest.mark.requirement("S2:usage")

METER = Meter(shipped())
SCALE = Scale(METER, "openai/gpt-4o", Format.OPENAI_CHAT)
FIXED = Fixed(
    system_prompt=Count.exact(1_000),
    tool_definitions=Count.exact(3_200),
    tools=(
        ToolWeight(name="github__search", server="github", weight=Count.exact(2_000)),
        ToolWeight(name="github__read", server="github", weight=Count.exact(600)),
        ToolWeight(name="clock", server=None, weight=Count.exact(590)),
    ),
)


def entry(tokens: int, *, band: float | None = None, **shares: int) -> Entry:
    weight = Count.exact(tokens) if band is None else Count.within(tokens, band)
    return Entry(
        native=object(),
        message=Message(role="user", parts=()),
        weight=weight,
        shares=shares or {"user": tokens},  # pyright: ignore[reportArgumentType]
    )


def usage_with(
    messages: list[Any],
    *,
    model: str = "gpt-4o",
    form: Format = Format.OPENAI_CHAT,
    system: str | None = None,
    tools: Sequence[object] = (),
) -> ContextUsage:
    """Of messages alone, weighed here and now."""
    scale = Scale(METER, model, form)
    entries = drain(scale.entries(messages))
    return usage_of(scale, drain(scale.fixed(system, tools, entries)), entries)


def check_sums(usage: ContextUsage) -> None:
    parts = usage.breakdown
    assert usage.used == usage.system_prompt + usage.tool_definitions + usage.messages
    assert usage.free - usage.overflow == usage.context_window - usage.used
    assert usage.free == parts.free
    assert min(usage.free, usage.overflow) == 0
    assert usage.usage_percent == pytest.approx(100 * min(usage.used, usage.context_window) / usage.context_window)
    assert parts.system == usage.system_prompt
    assert sum(tool.tokens for tool in parts.tools) + parts.tools_added == usage.tool_definitions
    assert sum(parts.messages.values()) == usage.messages
    assert usage.low <= usage.used <= usage.high


@pytest.mark.requirement("S2:usage")
def test_the_parts_sum_to_what_is_used_and_the_rest_is_free():
    usage = usage_of(SCALE, FIXED, [entry(20_000), entry(4_500, tool_calls=500, tool_results=4_000)])
    check_sums(usage)
    assert (usage.model, usage.context_window, usage.resolved) == ("openai/gpt-4o", 128_000, True)
    assert (usage.system_prompt, usage.tool_definitions, usage.messages) == (1_000, 3_200, 24_500)
    assert (usage.used, usage.free, usage.weighed) == (28_700, 99_300, 28_700)
    assert (usage.method, usage.low, usage.high) == (Method.EXACT, 28_700, 28_700)
    assert (usage.reserve, usage.breakdown.reserve) == (19_200, 19_200)
    assert usage.breakdown.messages == {"user": 20_000, "tool_calls": 500, "tool_results": 4_000}
    assert usage.breakdown.tools_added == 10
    assert usage.breakdown.servers == {"github": 2_600, None: 590}


@pytest.mark.requirement("S2:usage")
def test_json_speaks_camel_case_with_the_contracts_own_keys_first():
    usage = usage_of(SCALE, FIXED, [entry(24_600, thinking=600, tool_results=24_000)])
    said = usage.to_json()
    assert list(said)[:10] == [
        *("model", "contextWindow", "systemPrompt", "toolDefinitions", "messages", "used", "free"),
        *("usagePercent", "compactThreshold", "willCompact"),
    ]
    assert said["usagePercent"] == 22.5
    assert said["compactThreshold"] == 65.0
    assert said["willCompact"] is False
    assert said["method"] == "exact"
    assert json.loads(json.dumps(said)) == said
    parts = usage.breakdown.to_json()
    assert parts["toolResults"] == 24_000
    assert parts["thinking"] == 600
    assert (parts["summary"], parts["images"]) == (0, 0)
    assert parts["tools"] == [
        {"name": "github__search", "server": "github", "tokens": 2_000},
        {"name": "github__read", "server": "github", "tokens": 600},
        {"name": "clock", "server": None, "tokens": 590},
    ]


@pytest.mark.requirement("S2:usage", "S2:compact:when")
@pytest.mark.parametrize(
    ("options", "tokens", "threshold", "will"),
    [
        (Options(), 83_199, 65.0, False),
        (Options(), 83_200, 65.0, True),
        (Options(disable_compaction=True), 120_000, 65.0, False),
        (Options(compact_threshold=0.07, context_window=200), 14, 7.0, True),
        (Options(compact_threshold=("tokens", 64_000)), 63_999, 50.0, False),
        (Options(compact_threshold=("tokens", 64_000)), 64_000, 50.0, True),
        (Options(compact_threshold=("tokens", 900_000)), 127_000, 100.0, False),
        (Options(compact_threshold=("messages", 2)), 10, 85.0, False),
        (Options(compact_threshold=("messages", 1)), 10, 85.0, True),
        (Options(compact_threshold=("messages", 9)), 109_000, 85.0, True),
        (Options(compact_threshold=("messages", 1), disable_compaction=True), 10, 85.0, False),
    ],
)
def test_the_threshold_is_said_in_hundredths_and_reached_at_it(
    options: Options,
    tokens: int,
    threshold: float,
    will: bool,  # noqa: FBT001
):
    usage = usage_of(SCALE, Fixed(), [entry(tokens)], options)
    assert (usage.compact_threshold, usage.will_compact) == (threshold, will)


@pytest.mark.requirement("S2:window")
def test_the_window_is_the_users_then_the_learnt_then_the_cards_then_a_default():
    unknown = Scale(METER, "nobody-knows-this-one", Format.OPENAI_CHAT)

    def window(scale: Scale, learnt: int | None = None, said: int | None = None) -> tuple[int, bool]:
        usage = usage_of(scale, Fixed(), (), Options(context_window=said), learnt=learnt)
        return usage.context_window, usage.resolved

    assert window(SCALE, 64_000, 32_000) == (32_000, True)
    assert window(SCALE, 64_000) == (64_000, True)
    assert window(SCALE) == (128_000, True)
    assert window(unknown, 8_192) == (8_192, True)
    assert window(unknown) == (128_000, False)


def test_more_than_the_window_holds_is_an_overflow():
    usage = usage_of(SCALE, Fixed(), [entry(160_000)])
    check_sums(usage)
    assert (usage.free, usage.usage_percent, usage.overflow) == (0, 100.0, 32_000)
    assert usage.to_json()["overflow"] == 32_000


def test_system_messages_among_the_others_count_as_system_prompt():
    usage = usage_of(SCALE, FIXED, [entry(300, system=300), entry(50)])
    check_sums(usage)
    assert (usage.system_prompt, usage.messages) == (1_300, 50)


def test_a_report_within_our_band_is_shared_by_all_parts():
    fixed = replace(FIXED, system_prompt=Count.within(1_000, 0.1), tool_definitions=Count.within(3_200, 0.1))
    sent = [entry(20_000, band=0.1)]
    anchored = observe(SCALE, Usage(input=25_000), fixed=fixed, sent=sent)
    usage = usage_of(SCALE, fixed, sent, anchored=anchored)
    check_sums(usage)
    assert (usage.used, usage.weighed, usage.method) == (25_000, 24_200, Method.ANCHORED)
    assert (usage.system_prompt, usage.tool_definitions, usage.messages) == (1_033, 3_306, 20_661)


def test_what_no_band_of_ours_explains_was_added_out_of_sight():
    sent = [entry(20_000)]
    anchored = observe(SCALE, Usage(input=34_200), fixed=FIXED, sent=sent)
    usage = usage_of(SCALE, FIXED, sent, anchored=anchored)
    check_sums(usage)
    assert (usage.system_prompt, usage.tool_definitions, usage.messages) == (11_000, 3_200, 20_000)


def test_a_report_of_less_is_shared_by_all_parts_too():
    fixed = replace(FIXED, system_prompt=Count.within(1_000, 0.5))
    sent = [entry(20_000, band=0.3)]
    anchored = observe(SCALE, Usage(input=18_000), fixed=fixed, sent=sent)
    usage = usage_of(SCALE, fixed, sent, anchored=anchored)
    check_sums(usage)
    assert usage.used == 18_000
    assert usage.messages < 20_000


@given(total=st.integers(0, 10**7), parts=st.lists(st.integers(0, 10**6), min_size=1, max_size=12))
def test_a_total_is_parted_in_whole_numbers_that_sum_to_it(total: int, parts: list[int]):
    shares = apportioned(total, parts)
    assert sum(shares) == total
    whole = sum(parts)
    assert all(abs(share - total * part / whole) <= 1 for share, part in zip(shares, parts, strict=True) if whole)
    assert min(shares) >= 0


@pytest.mark.requirement("S2:usage")
def test_a_request_uses_what_the_meter_weighs_for_it():
    tools = [{"type": "function", "function": {"name": "clock", "description": "Tells.", "parameters": {}}}]
    said = [{"role": "user", "content": "What time is it in Lisbon?"}]
    usage = usage_with(said, system="Be brief.", tools=tools)
    check_sums(usage)
    whole = {"model": "gpt-4o", "messages": [{"role": "system", "content": "Be brief."}, *said], "tools": tools}
    assert usage.used == METER.weigh(read_request(whole)).total.tokens
    assert min(usage.system_prompt, usage.tool_definitions, usage.messages) > 0


def test_a_system_message_in_the_messages_is_the_system_prompt():
    usage = usage_with([{"role": "system", "content": "Be brief. " * 50}, {"role": "user", "content": "Hi"}])
    check_sums(usage)
    assert usage.system_prompt > 100 > usage.messages


@pytest.mark.requirement("S2:window")
def test_an_unknown_model_is_no_error_and_says_what_it_does_not_know():
    usage = usage_with([{"role": "user", "content": "Hi there"}], model="nobody/knows-9")
    check_sums(usage)
    assert (usage.resolved, usage.context_window, usage.method) == (False, 128_000, Method.ESTIMATED)
    assert usage.low < usage.used < usage.high


def test_no_messages_at_all_use_what_every_request_uses():
    usage = usage_with([], model="claude-sonnet-4-5", form=Format.ANTHROPIC)
    check_sums(usage)
    assert usage.messages == 0
    assert 0 < usage.used < 20


def test_a_document_to_be_cited_is_weighed_with_what_citing_adds():
    source = {"type": "text", "media_type": "text/plain", "data": "The sky was green that day."}
    document = {"type": "document", "source": source, "citations": {"enabled": True}}
    said = [{"role": "user", "content": [document, {"type": "text", "text": "What colour?"}]}]
    usage = usage_with(said, model="claude-sonnet-4-5", form=Format.ANTHROPIC)
    whole = METER.weigh(read_request({"model": "claude-sonnet-4-5", "messages": said}))
    assert usage.used == whole.total.tokens


@pytest.mark.parametrize("method", ["count", "steps", "weigh", "weigh_steps"])
def test_the_figure_of_a_history_is_had_without_counting_anything_anew(method: str, monkeypatch: pytest.MonkeyPatch):
    (one,) = drain(SCALE.entries([{"role": "user", "content": "Hi"}]))
    monkeypatch.setattr(Meter, method, None)
    assert usage_of(SCALE, FIXED, (one,) * 100).messages == 100 * one.weight.tokens


class Looked(Sequence[Entry]):
    """Entries that count how many of them were looked at."""

    def __init__(self, entries: tuple[Entry, ...]) -> None:
        self.entries = entries
        self.times = 0

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401 - an entry for a number, several for a slice
        found = self.entries[place]
        self.times += len(found) if isinstance(place, slice) else 1
        return found


def test_the_figure_of_a_large_history_costs_no_more_than_its_length():
    (one,) = drain(SCALE.entries([{"role": "user", "content": "Hi"}]))
    entries = Looked(tuple(replace(one) for _ in range(1_000)))
    anchored = observe(SCALE, Usage(input=9_000), fixed=FIXED, sent=entries.entries[:990])
    assert usage_of(SCALE, FIXED, entries, anchored=anchored).method is Method.ANCHORED
    assert 1_000 <= entries.times <= 10_000, entries.times
