import pytest

from ullage.errors import UnsupportedModel
from ullage.messages import read_request
from ullage.models import shipped
from ullage.tokens import Count, Meter, Method, unheard

TEXT = "Please compare the two drafts and say which reads better, and why. " * 20


@pytest.mark.requirement("S2:count", "S3:method")
def test_a_model_in_no_table_is_counted_for_within_a_wide_band_where_that_is_asked():
    meter = Meter(shipped())
    count = meter.count(TEXT, unheard("my-own"))
    assert count.method is Method.ESTIMATED
    assert count.low < meter.count(TEXT, "gpt-4o").tokens < count.high
    request = read_request({"messages": [{"role": "user", "content": TEXT}]})
    assert meter.weigh(request, unheard("my-own")).total.tokens > count.tokens
    with pytest.raises(UnsupportedModel):
        meter.count(TEXT, "my-own")


@pytest.mark.requirement("S2:count", "S3:method")
def test_what_is_learnt_of_one_such_model_is_not_anothers():
    meter = Meter(shipped())
    before = meter.count(TEXT, unheard("one"))
    for _ in range(40):
        ours = meter.count(TEXT, unheard("one"))
        meter.learn(ours, round(1.3 * before.tokens), unheard("one"))
    assert abs(meter.count(TEXT, unheard("one")).tokens / before.tokens - 1.3) < 0.01
    assert meter.count(TEXT, unheard("two")) == before


@pytest.mark.requirement("S2:count", "S3:method")
@pytest.mark.parametrize("ours", [Count.exact(500), Count.within(20, 0.3), Count.within(90, 0.3)])
def test_exact_counts_short_texts_and_absurd_reports_teach_nothing(ours: Count):
    meter = Meter(shipped())
    before = meter.count(TEXT, "claude-sonnet-4-5")
    meter.learn(ours, 600, "claude-sonnet-4-5")
    assert meter.count(TEXT, "claude-sonnet-4-5") == before
