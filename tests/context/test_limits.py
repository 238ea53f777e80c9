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


ORIGINALS = {"keep": 0.2, "target": 0.4, "reserve": 0.1, "least_gain": 0.2}


@pytest.mark.requirement("S2:compact:when", "S2:money")
@pytest.mark.parametrize(
    ("options", "given", "marks"),
    [
        # window, fixed, soft, hard, target, keep, refill, goal
        ({}, (100_000, 5_000, 70_000), (100_000, 5_000, 65_000, 85_000, 49_000, 10_000, 65_000, 44_000)),
        (ORIGINALS, (100_000, 5_000, 70_000, 1.25), (80_000, 5_000, 52_000, 72_000, 31_360, 16_000, 52_000, 26_360)),
        ({}, (100_000, 0, 40_000, 1.0, True), (100_000, 0, 40_000, 85_000, 30_153, 10_000, 65_000, 30_153)),
        ({}, (100_000, 0, 70_000, 1.0, True), (100_000, 0, 70_000, 85_000, 49_000, 10_000, 70_000, 49_000)),
        ({}, (100_000, 0, 0, 1.0, True), (100_000, 0, 1, 85_000, 0, 0, 65_000, 85_000)),
        (
            {"compact_threshold": ("tokens", 50_000)},
            (100_000, 0, 1),
            (100_000, 0, 50_000, 85_000, 37_692, 10_000, 50_000, 37_692),
        ),
        (
            {"compact_threshold": ("tokens", 50_001)},
            (100_000, 0, 1),
            (100_000, 0, 50_001, 85_000, 49_000, 10_000, 50_001, 49_000),
        ),
        (
            {"compact_threshold": ("tokens", 20_000)},
            (200_000, 0, 1, 2.0),
            (100_000, 0, 10_000, 85_000, 7_538, 4_615, 10_000, 7_538),
        ),
        (
            {"compact_threshold": ("messages", 9)},
            (200_000, 7, 13_000),
            (200_000, 7, 13_000, 170_000, 9_800, 6_000, 13_000, 9_793),
        ),
        ({}, (10_000, 4_900, 8_000), (10_000, 4_900, 6_500, 8_500, 4_900, 1_500, 6_500, 3_600)),
        ({}, (10_000, 9_000, 9_500), (10_000, 9_000, 6_500, 8_500, 4_900, 1_500, 6_500, 0)),
    ],
)
def test_every_mark_follows_from_the_options(
    options: dict[str, object], given: tuple[float, ...], marks: tuple[int, ...]
):
    window, fixed, used, scale, now = (*given, *(1.0, False)[len(given) - 3 :])
    made = limits_of(read_options(options), int(window), fixed=int(fixed), used=int(used), scale=scale, now=bool(now))
    assert (made.window, made.fixed, made.soft, made.hard, made.target, made.keep, made.refill, made.goal) == marks
    assert made.measure == min(made.window, 2 * made.target)
    assert made.least_gain == read_options(options).least_gain
    assert made.is_irreducible is (fixed >= made.soft)


@pytest.mark.requirement("S2:compact:when")
def test_a_load_is_irreducible_from_the_threshold_on():
    assert [limits_of(Options(), 10_000, fixed=fixed, used=0).is_irreducible for fixed in (6_499, 6_500)] == [
        False,
        True,
    ]
