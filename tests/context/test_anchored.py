from dataclasses import replace

import pytest

from ullage.context.token_weights import Anchored, Entry, Fixed, Scale, observe, summed
from ullage.messages import Format, Message, Text, Thinking
from ullage.models import Usage, shipped
from ullage.tokens import ZERO, Count, Meter, Method, drain, total

pytestmark = pytest.mark.requirement("S2:usage")

FIXED = Fixed(system_prompt=Count.within(1_000, 0.05))
SCALE = Scale(Meter(shipped()), "claude-sonnet-4-5", Format.ULLAGE)


def entry(tokens: int, *, thinks: bool = False, band: float = 0.06, method: Method = Method.CALIBRATED) -> Entry:
    parts = (Text("said"), *((Thinking(text="thought"),) if thinks else ()))
    weight = Count.exact(tokens) if method is Method.EXACT else Count.within(tokens, band, method)
    return Entry(native=object(), message=Message(role="assistant", parts=parts), weight=weight)


def seen(reported: int, *sent: Entry, before: Anchored | None = None, fixed: Fixed = FIXED) -> Anchored | None:
    return observe(SCALE, Usage(input=reported), fixed=fixed, sent=sent, before=before)


def test_what_was_sent_weighs_what_the_provider_said_and_what_follows_is_added():
    sent, new = entry(9_000), entry(500)
    anchored = seen(10_400, sent)
    assert anchored is not None
    again = anchored.weigh(FIXED, (sent,))
    assert (again.tokens, again.low, again.high, again.method) == (10_400, 10_400, 10_400, Method.ANCHORED)
    grown = anchored.weigh(FIXED, (sent, new))
    assert grown.tokens == 10_900
    assert (grown.low, grown.high) == (10_400 + new.weight.low, 10_400 + new.weight.high)
    assert grown.method is Method.ANCHORED


@pytest.mark.parametrize(
    ("usage", "answer", "added"),
    [
        (Usage(input=10_000, output=410), entry(400), 410),
        (Usage(input=10_000, output=5), entry(400), 400),
        (Usage(input=10_000), entry(400), 400),
        (Usage(input=10_000, output=4_000), entry(400), 400),
        (Usage(input=10_000, output=2_410, reasoning=2_000), entry(400), 410),
        (Usage(input=10_000, output=1_300, reasoning=900), entry(1_200, thinks=True, band=0.35), 1_300),
        (Usage(input=10_000, output=410), entry(400, method=Method.EXACT), 400),
    ],
    ids=["its output", "broken off", "unreported", "not all sent back", "without thinking", "with thinking", "exact"],
)
def test_an_answer_weighs_its_output_where_that_is_what_was_sent_back(usage: Usage, answer: Entry, added: int):
    sent = entry(9_000)
    anchored = observe(SCALE, usage, fixed=FIXED, sent=(sent,), answer=(answer,))
    assert anchored is not None
    assert anchored.weigh(FIXED, (sent, answer)).tokens == 10_000 + added
    assert anchored.weigh(FIXED, (sent, answer, entry(70))).tokens == 10_070 + added


@pytest.mark.parametrize(
    ("model", "added"),
    [
        ("a-model-of-ours", 415),
        ("qwen3-32b", 400),
    ],
    ids=["a frame that is no output", "its own vocabulary knows better"],
)
def test_an_answer_in_a_chat_template_weighs_what_stands_around_it_too(model: str, added: int):
    scale, sent, answer = Scale(Meter(shipped()), model, Format.ULLAGE), entry(9_000), entry(400)
    assert scale.around(answer.message) == 5
    anchored = observe(scale, Usage(input=10_000, output=410), fixed=FIXED, sent=(sent,), answer=(answer,))
    assert anchored is not None
    assert anchored.weigh(FIXED, (sent, answer)).tokens == 10_000 + added


def test_a_report_of_less_than_can_be_is_passed_over():
    assert seen(40, entry(9_000)) is None
    assert observe(SCALE, Usage(), fixed=FIXED, sent=(entry(9_000),)) is None


def test_a_report_that_jumps_without_growth_is_passed_over():
    sent, new = entry(9_000), entry(500)
    first = seen(10_400, sent)
    assert seen(21_800, sent, new, before=first) is first
    assert seen(300, sent, new, before=first) is first
    second = seen(11_300, sent, new, before=first)
    assert second is not first


def test_a_first_report_that_was_wrong_is_put_right_by_the_next_that_agrees_with_our_weight():
    sent, new = entry(9_000), entry(500)
    doubled = seen(20_800, sent)
    assert doubled is not None
    mended = seen(10_900, sent, new, before=doubled)
    assert mended is not None
    assert mended.weigh(FIXED, (sent, new)).tokens == 10_900


def test_what_a_provider_adds_out_of_sight_stays_when_messages_go():
    first, rest = entry(200), entry(40_000)
    anchored = seen(20_000, first, fixed=Fixed())
    anchored = seen(60_100, first, rest, before=anchored, fixed=Fixed())
    assert anchored is not None
    left = anchored.weigh(Fixed(), (first,))
    assert left.method is Method.CALIBRATED
    assert abs(left.tokens - 20_000) < 100


def test_what_the_provider_counts_more_for_every_token_goes_with_the_messages():
    rest, kept = entry(80_000, band=0.3, method=Method.ESTIMATED), entry(20_000, band=0.3, method=Method.ESTIMATED)
    anchored = seen(125_000, rest, kept, fixed=Fixed())
    assert anchored is not None
    left = anchored.weigh(Fixed(), (kept,))
    assert abs(left.tokens - 25_000) < 100
    assert left.low < 25_000 < left.high


def test_no_more_is_laid_on_every_token_than_our_band_allows():
    rest, kept = entry(8_000, method=Method.EXACT), entry(2_000, method=Method.EXACT)
    anchored = seen(15_000, rest, kept, fixed=Fixed())
    assert anchored is not None
    assert anchored.weigh(Fixed(), (kept,)).tokens == 7_000, "exact weights are right: 5,000 were added out of sight"


def test_a_figure_after_a_change_is_as_unsure_as_what_changed():
    kept, gone, small = entry(50_000), entry(30_000), entry(100)
    anchored = seen(81_000, kept, gone, small)
    assert anchored is not None
    little, much = anchored.weigh(FIXED, (kept, gone)), anchored.weigh(FIXED, (kept, small))
    assert little.high - little.low < 100 < much.high - much.low


def test_tools_that_changed_are_weighed_and_the_reports_before_teach_no_line():
    sent = entry(9_000)
    anchored = seen(10_400, sent)
    assert anchored is not None
    more = replace(FIXED, tool_definitions=Count.within(2_000, 0.05))
    figure = anchored.weigh(more, (sent,))
    assert figure.method is Method.CALIBRATED
    assert 12_300 < figure.tokens < 12_600
    again = seen(12_500, sent, before=anchored, fixed=more)
    assert again is not None
    assert again.least == (12_000, 12_500)


def test_what_grew_between_two_reports_teaches_a_scale_that_only_estimates():
    scale = Scale(Meter(shipped()), "nobody-knows-this-one", Format.OPENAI_CHAT)
    text = "The committee met on Tuesday to go through fourteen proposals. " * 200
    entries, anchored, reported, off = (), None, 0, []
    for number in range(30):
        before = entries
        entries = drain(scale.grown(entries, [{"role": "user", "content": f"{number} {text}"}]))
        grown = summed(entries[len(before) :]).tokens
        off.append(abs(grown / 3_120 - 1))
        reported += 3_120
        anchored = observe(scale, Usage(input=reported), fixed=Fixed(), sent=entries, before=anchored)
    assert off[0] > 0.15
    assert off[-1] < 0.02


def test_weights_are_summed_as_counts_are():
    entries = [entry(10), entry(20, method=Method.EXACT), entry(30, band=0.3, method=Method.ESTIMATED)]
    assert summed(entries) == total(one.weight for one in entries)
    assert summed(()) == ZERO
