import pytest

from ullage.errors import InvalidArguments
from ullage.messages import read_request
from ullage.models import shipped
from ullage.tokens import Count, Meter, Method
from ullage.tokens.meter import Corrections

MODEL = "claude-sonnet-4-5"
TEXT = "Please compare the two drafts and say which reads better, and why. " * 8


def request(*texts: str, system: str = "Be brief."):
    roles = ("user", "assistant")
    messages = [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)]
    return read_request({"model": MODEL, "system": system, "max_tokens": 9, "messages": messages})


@pytest.fixture
def meter() -> Meter:
    return Meter(shipped())


@pytest.mark.requirement("S3:method")
def test_what_follows_an_anchor_is_all_that_is_counted(meter: Meter):
    first, longer = request(TEXT), request(TEXT, "Draft one.", "Why?")
    own = meter.weigh(first).total.tokens
    anchor = meter.observe(first, own)
    anchored = meter.anchored(longer, anchor)
    tail = meter.weigh(longer).messages[1:]
    assert anchored.method is Method.ANCHORED
    assert anchored.tokens == own + sum(count.tokens for count in tail)
    assert anchored.high - anchored.low < meter.weigh(longer).total.high - meter.weigh(longer).total.low


@pytest.mark.requirement("S3:method")
def test_the_same_request_weighs_exactly_what_was_reported(meter: Meter):
    anchor = meter.observe(request(TEXT), 1234)
    anchored = meter.anchored(request(TEXT), anchor)
    assert (anchored.tokens, anchored.low, anchored.high) == (1234, 1234, 1234)


@pytest.mark.requirement("S3:method")
@pytest.mark.parametrize("other", [request("Something else"), request(TEXT, system="Be long.")])
def test_an_anchor_of_another_request_is_not_used(meter: Meter, other):
    anchor = meter.observe(request(TEXT), 400)
    assert meter.anchored(other, anchor) == meter.weigh(other).total


@pytest.mark.requirement("S3:method")
def test_reports_teach_the_meter_its_own_correction_for_that_model(meter: Meter):
    before = meter.weigh(request(TEXT)).total.tokens
    reported = round(before * 1.2)
    meter.observe(request(TEXT), reported)
    assert abs(meter.weigh(request(TEXT)).total.tokens - reported) <= 2
    assert abs(meter.count(TEXT, MODEL).tokens / Meter(shipped()).count(TEXT, MODEL).tokens - 1.2) < 0.02
    assert meter.count(TEXT, "claude-opus-5") == Meter(shipped()).count(TEXT, "claude-opus-5"), "another model"


@pytest.mark.requirement("S3:method")
def test_an_absurd_report_and_an_exact_count_teach_nothing(meter: Meter):
    before = meter.weigh(request(TEXT))
    meter.observe(request(TEXT), before.total.tokens * 50)
    assert meter.weigh(request(TEXT)) == before
    body = read_request({"model": "gpt-4o", "messages": [{"role": "user", "content": TEXT}]})
    exact = meter.weigh(body)
    meter.observe(body, exact.total.tokens + 30)
    assert meter.weigh(body) == exact


@pytest.mark.requirement("S3:method")
def test_an_anchor_of_another_model_is_not_used_and_no_report_of_nothing_is_taken(meter: Meter):
    anchor = meter.observe(request(TEXT), 400)
    assert meter.anchored(request(TEXT), anchor, "claude-opus-5") == meter.weigh(request(TEXT), "claude-opus-5").total
    with pytest.raises(InvalidArguments):
        meter.observe(request(TEXT), 0)


def ours(tokens: int, method: Method = Method.CALIBRATED) -> Count:
    return Count(tokens=tokens, method=method, low=tokens - 10, high=tokens + 10)


@pytest.mark.requirement("S3:method")
@pytest.mark.parametrize(
    ("counted", "reported", "factor"),
    [
        (50, 60, 1.2),
        (60, 50, 50 / 60),
        (49, 60, 1),
        (60, 49, 1),
        (100, 200, 2),
        (100, 201, 1),
        (200, 100, 0.5),
        (300, 149, 1),
    ],
)
def test_a_report_teaches_from_fifty_tokens_on_and_up_to_twice_the_count(counted: int, reported: int, factor: float):
    for learn in (Corrections.learn, Corrections.refine):
        corrections = Corrections()
        learn(corrections, "a", ours(counted), reported)
        weight = 1 if learn is Corrections.learn else 0.2
        assert corrections.factor("a") == pytest.approx(factor**weight)
        assert corrections.factor("b") == 1


@pytest.mark.requirement("S3:method")
def test_a_later_report_counts_for_a_fifth_against_the_earlier_ones():
    corrections = Corrections()
    corrections.learn("a", ours(100), 120)
    corrections.learn("a", ours(100), 100)
    assert corrections.factor("a") == pytest.approx(1.2**0.8)
    corrections.refine("a", ours(100), 110)
    assert corrections.factor("a") == pytest.approx(1.2**0.8 * 1.1**0.2)


@pytest.mark.requirement("S3:method")
def test_a_correction_scales_count_and_band_and_leaves_an_exact_count():
    corrections = Corrections()
    assert corrections.apply("a", ours(100)) == ours(100)
    corrections.learn("a", ours(100), 120)
    assert corrections.apply("a", ours(100)) == Count(tokens=120, method=Method.CALIBRATED, low=108, high=132)
    exact = Count(tokens=100, method=Method.EXACT, low=100, high=100)
    assert corrections.apply("a", exact) == exact
    corrections.learn("a", exact, 150)
    assert corrections.factor("a") == pytest.approx(1.2)
