import pytest

from ullage.context import Options, limits_of, read_options


@pytest.mark.requirement("S2:compact:when")
def test_the_marks_are_shares_of_the_window():
    marks = limits_of(Options(), 100_000, fixed=5_000, used=70_000)
    assert (marks.soft, marks.hard, marks.target, marks.keep) == (65_000, 85_000, 49_000, 10_000)
    assert marks.goal == 44_000
    assert not marks.is_irreducible


@pytest.mark.requirement("S2:money")
@pytest.mark.parametrize(("window", "tail"), [(200_000, 20_000), (60_000, 8_000), (10_000, 1_500)])
def test_the_default_tail_is_a_tenth_of_the_window_but_not_under_8000_tokens(window: int, tail: int):
    assert limits_of(Options(), window, fixed=0, used=window).keep == tail


@pytest.mark.requirement("S2:money")
@pytest.mark.parametrize("given", [{"compactThreshold": 0.65}, {"contextWindow": 200_000}, {"keep": 0.30}])
def test_options_of_the_original_keep_its_30_hundredths(given: dict[str, object]):
    assert limits_of(read_options(given), 200_000, fixed=0, used=150_000).keep == 60_000


@pytest.mark.requirement("S2:compact:when")
def test_a_compaction_at_once_counts_from_the_threshold_to_the_next_one():
    marks = limits_of(Options(), 100_000, fixed=0, used=40_000, now=True)
    assert (marks.soft, marks.refill) == (40_000, 65_000)
    assert marks.keep < marks.target < marks.soft


@pytest.mark.requirement("S2:compact:when")
def test_where_the_provider_counts_more_the_marks_lie_lower():
    marks = limits_of(Options(), 100_000, fixed=5_000, used=70_000, scale=1.25)
    assert (marks.window, marks.soft) == (80_000, 52_000)


@pytest.mark.requirement("S2:compact:when")
def test_under_a_low_threshold_the_target_lies_lower_still():
    marks = limits_of(Options(compact_threshold=("tokens", 20_000)), 200_000, fixed=0, used=21_000)
    assert marks.soft == 20_000
    assert marks.keep < marks.target < marks.soft


@pytest.mark.requirement("S2:compact:when")
def test_a_threshold_of_messages_goes_by_what_is_used():
    marks = limits_of(Options(compact_threshold=("messages", 10)), 200_000, fixed=0, used=13_000)
    assert marks.soft == 13_000
    assert marks.target == 9_800


@pytest.mark.requirement("S2:compact:when")
def test_a_load_that_cannot_be_let_go_is_recognised():
    marks = limits_of(Options(), 10_000, fixed=7_000, used=8_000)
    assert marks.is_irreducible
    assert marks.goal == 1_500


@pytest.mark.requirement("S2:compact:when")
def test_the_window_is_full_where_the_room_for_the_answer_begins():
    marks = limits_of(Options(), 10_000, fixed=500, used=8_000)
    assert marks.is_over(8_000)
    assert not marks.is_over(7_999)
