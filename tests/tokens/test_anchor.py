import pytest

from ullage.errors import InvalidArguments
from ullage.messages import read_request
from ullage.models import shipped
from ullage.tokens import Meter, Method

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
