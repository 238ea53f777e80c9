from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.gateway.find.find_reply import Carried, Savings, TokenMetrics

Value = Any
"""Any JSON, and whatever else a test hands on."""

SESSION = ("ann", "one")
CARRIED = Carried(without=1_000, surface=240, instructions=60)


def metrics(**changes: Value) -> TokenMetrics:
    right: dict[str, Value] = {
        "baseline_tokens": 200,
        "returned_tokens": 50,
        "tokens_saved": 150,
        "savings_percentage": 75.0,
    }
    return TokenMetrics(**{**right, **changes})


@pytest.mark.requirement("S1:metrics")
@given(st.integers(0, 10**9), st.floats(0, 1))
def test_figures_made_of_baseline_and_returned_always_agree(baseline: int, share: float):
    returned = int(baseline * share)
    made = TokenMetrics.of(baseline, returned)
    ratio = 100 * (baseline - returned) / baseline if baseline else 0
    assert made.tokens_saved == baseline - returned
    assert abs(made.savings_percentage - ratio) <= 0.01
    assert 0 <= made.savings_percentage <= 100


@pytest.mark.requirement("S1:metrics")
@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        # Each breaks one rule alone, so that another rule cannot stand in for it.
        ({"baseline_tokens": -200, "returned_tokens": -50, "tokens_saved": -150}, "returned tokens lie between"),
        (
            {"baseline_tokens": 0, "returned_tokens": 1, "tokens_saved": -1, "savings_percentage": 0.0},
            "returned tokens lie between",
        ),
        (
            {"baseline_tokens": 0, "returned_tokens": -1, "tokens_saved": 1, "savings_percentage": 0.0},
            "returned tokens lie between",
        ),
        ({"tokens_saved": 149, "savings_percentage": 74.5}, "tokens saved are"),
        ({"tokens_saved": 151, "savings_percentage": 75.5}, "tokens saved are"),
        ({"savings_percentage": 75.011}, "is not the percentage"),
        ({"savings_percentage": 74.989}, "is not the percentage"),
        ({"savings_percentage": float("nan")}, "is not the percentage"),
        ({"baseline_tokens": 0, "returned_tokens": 0, "tokens_saved": 0}, "is not the percentage"),
        (
            {"baseline_tokens": 0, "returned_tokens": 0, "tokens_saved": 0, "savings_percentage": -0.005},
            "a percentage lies between",
        ),
        ({"returned_tokens": 0, "tokens_saved": 200, "savings_percentage": 100.005}, "a percentage lies between"),
    ],
)
def test_figures_that_do_not_agree_cannot_be_constructed(changes: dict[str, Value], broken: str):
    with pytest.raises(ValueError, match=broken):
        metrics(**changes)


@pytest.mark.requirement("S1:metrics")
def test_figures_at_the_edges_can_be_constructed():
    assert metrics(returned_tokens=200, tokens_saved=0, savings_percentage=0.0).savings_percentage == 0
    assert metrics(returned_tokens=0, tokens_saved=200, savings_percentage=100.0).tokens_saved == 200
    assert metrics(savings_percentage=75.009).savings_percentage == 75.009
    nothing = {"baseline_tokens": 0, "returned_tokens": 0, "tokens_saved": 0}
    assert metrics(**nothing, savings_percentage=0.01).savings_percentage == 0.01
    assert TokenMetrics.of(3, 1).to_json() == {
        "baseline_tokens": 3,
        "returned_tokens": 1,
        "tokens_saved": 2,
        "savings_percentage": 66.67,
    }


@pytest.mark.requirement("S1:metrics")
def test_a_baseline_of_nothing_saves_nothing():
    assert TokenMetrics.of(0, 0).to_json() == {
        "baseline_tokens": 0,
        "returned_tokens": 0,
        "tokens_saved": 0,
        "savings_percentage": 0.0,
    }


@pytest.mark.requirement("S1:net")
def test_every_later_request_carries_a_reply_once_more():
    savings = Savings()
    savings.called(SESSION, CARRIED)
    savings.replied(SESSION, 100)  # carried by requests 2, 3 and 4
    savings.called(SESSION, CARRIED)
    savings.replied(SESSION, 10)  # carried by requests 3 and 4
    savings.called(SESSION, CARRIED)
    net = savings.net(SESSION, CARRIED)
    assert (net.turns, net.replies) == (4, 320)
    assert net.session == 4 * 700 - 320
    assert net.first_request.saved == 700


@pytest.mark.requirement("S1:net")
def test_a_net_figure_may_be_negative_and_says_so():
    savings = Savings()
    small = Carried(without=300, surface=240, instructions=100)
    savings.called(SESSION, small)
    savings.replied(SESSION, 500)
    said: Value = savings.net(SESSION, small).to_json()
    assert said["first_request"]["net_tokens"] == -40
    assert said["session"]["net_tokens"] == 2 * -40 - 500
    assert "lower" in said["session"]["bound"]


@pytest.mark.requirement("S1:net")
def test_what_is_not_known_to_be_saved_is_added_when_it_is_known():
    savings = Savings()
    savings.called(SESSION, None)
    savings.called(SESSION, None)
    assert savings.net(SESSION, CARRIED).session == 3 * CARRIED.saved
    assert savings.net(SESSION, CARRIED).session == 3 * CARRIED.saved, "once"


@pytest.mark.requirement("S1:net")
def test_sessions_are_apart_and_those_not_heard_of_are_forgotten():
    savings = Savings(most=2)
    for name in ("one", "two"):
        savings.called(("ann", name), CARRIED)
    savings.called(("ann", "one"), CARRIED)
    savings.called(("ann", "three"), CARRIED)
    assert savings.net(("ann", "one"), CARRIED).turns == 3
    assert savings.net(("ann", "two"), CARRIED).turns == 0


@pytest.mark.requirement("S1:net")
def test_each_turn_is_priced_by_what_was_carried_when_it_was_known():
    savings = Savings()
    less = Carried(without=500, surface=240, instructions=60)
    savings.called(SESSION, None)
    savings.called(SESSION, CARRIED)  # prices three turns
    savings.called(SESSION, less)
    net = savings.net(SESSION, less)
    assert (net.turns, net.session) == (4, 3 * CARRIED.saved + less.saved)
    assert net.first_request is less


@pytest.mark.requirement("S1:net", "U:ledger")
def test_the_ledger_takes_each_turn_and_each_charge_once():
    savings = Savings()
    savings.called(SESSION, CARRIED)
    savings.replied(SESSION, 100, is_recorded=True)
    assert savings.take_unrecorded(SESSION) == (2, 0)
    savings.called(SESSION, CARRIED)
    savings.replied(SESSION, 10)
    assert savings.take_unrecorded(SESSION) == (1, 110)
    assert savings.take_unrecorded(SESSION) == (0, 0)


@pytest.mark.requirement("S1:net")
def test_a_thousand_sessions_are_kept_unless_another_number_is_set():
    savings = Savings()
    for number in range(1_001):
        savings.called(("ann", str(number)), CARRIED)
    kept = [savings.net(("ann", str(number)), CARRIED).turns for number in (1_000, 1)]
    assert kept == [2, 2]
    assert savings.net(("ann", "0"), CARRIED).turns == 0
