import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.tokens import ZERO, Count, Method, total

numbers = st.integers(0, 10**9)


@pytest.mark.requirement("S3:method")
def test_an_exact_count_has_no_band():
    assert Count.exact(7).band is None
    assert Count.exact(7).tokens == Count.exact(7).low == Count.exact(7).high == 7


@pytest.mark.requirement("S3:method")
@pytest.mark.parametrize(("tokens", "low", "high"), [(5, 6, 7), (5, 4, 4), (-1, -1, 0)])
def test_a_count_outside_its_own_band_cannot_be_made(tokens: int, low: int, high: int):
    with pytest.raises(ValueError, match="low <= tokens <= high"):
        Count(tokens=tokens, method=Method.ESTIMATED, low=low, high=high)


@pytest.mark.requirement("S3:method")
def test_an_exact_count_with_a_band_cannot_be_made():
    with pytest.raises(ValueError, match="no band"):
        Count(tokens=5, method=Method.EXACT, low=4, high=6)


@pytest.mark.requirement("S3:method")
@given(numbers, st.floats(0, 1))
def test_a_band_holds_its_middle_and_at_least_one_token_either_way(tokens: int, band: float):
    count = Count.within(tokens, band)
    assert count.low <= max(0, tokens - 1)
    assert count.high >= tokens + 1


@pytest.mark.requirement("S3:method")
def test_a_sum_is_as_sure_as_its_weakest_part():
    exact, anchored = Count.exact(1), Count(tokens=1, method=Method.ANCHORED, low=1, high=1)
    calibrated, estimated = Count.within(10, 0.1), Count.within(10, 0.5, Method.ESTIMATED)
    assert (exact + anchored).method is Method.ANCHORED
    assert (anchored + calibrated).method is Method.CALIBRATED
    assert total((exact, estimated, calibrated)).method is Method.ESTIMATED
    assert total((exact, estimated)).band == (1 + estimated.low, 1 + estimated.high)


@pytest.mark.requirement("S3:method")
def test_the_sum_of_nothing_is_exactly_nothing():
    assert total(()) == ZERO
    assert ZERO.band is None
