import pytest

from ullage.gateway.find.find_settings import Decision, Mode, Remembered, Surface, decide

pytestmark = pytest.mark.requirement("S1:surface")


def surface(catalogue: int | None, previous: Surface | None = None, mode: Mode = "auto") -> Surface:
    return decide(mode, catalogue=catalogue, window=200_000, previous=previous).surface


@pytest.mark.requirement("S1:surface")
def test_a_catalogue_below_two_percent_of_the_window_is_shown_directly():
    assert surface(3_999) == "direct"
    assert surface(4_000) == "search"


@pytest.mark.requirement("S1:surface")
def test_a_catalogue_that_is_not_known_is_searched_and_the_choice_is_not_kept():
    decision = decide("auto", catalogue=None, window=200_000, previous="direct")
    assert decision == Decision(surface="search", reason="the catalogue is not known yet", certain=False)


@pytest.mark.requirement("S1:surface")
def test_a_catalogue_near_the_threshold_does_not_flip():
    assert [surface(tokens, "direct") for tokens in (3_900, 4_100, 4_999, 5_000)] == [*["direct"] * 3, "search"]
    assert [surface(tokens, "search") for tokens in (4_100, 3_900, 3_000, 2_999)] == [*["search"] * 3, "direct"]


def test_a_choice_kept_by_the_margin_says_so():
    assert "kept" in decide("auto", catalogue=4_100, window=200_000, previous="direct").reason
    assert "kept" not in decide("auto", catalogue=3_900, window=200_000, previous="direct").reason


@pytest.mark.parametrize("mode", ["direct", "search"])
def test_what_the_settings_say_is_done(mode: Mode):
    other: Surface = "search" if mode == "direct" else "direct"
    assert surface(None, other, mode) == surface(10**6, other, mode) == surface(0, other, mode) == mode


def test_the_share_of_the_window_can_be_set():
    assert decide("auto", catalogue=9_000, window=100_000, share=0.1).surface == "direct"


def test_a_memory_keeps_decisions_by_key():
    memory = Remembered()
    decision = decide("auto", catalogue=1, window=200_000)
    memory.remember("cursor", decision)
    assert (memory.recall("cursor"), memory.recall("codex")) == (decision, None)
