import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.wire.supervise.health import (
    Admission,
    Incident,
    Patience,
    Standing,
    admission,
    after_failure,
    forgiven,
    state_of,
)

pytestmark = pytest.mark.requirement("S1:live")

PATIENCE = Patience(first_delay=1, factor=2, failures_allowed=4, cool_down=100, longest_wait=3, healthy_after=60)


def failed(
    standing: Standing, at: float, *, began: float | None = None, lived: float = 0, chance: float = 1
) -> Standing:
    incident = Incident(began=at if began is None else began, lived=lived, at=at)
    return after_failure(standing, incident, PATIENCE, chance=chance)


def test_each_failure_in_a_row_doubles_the_delay():
    standing, delays = Standing(), list[float]()
    for at in (10, 20, 30):
        standing = failed(standing, at)
        delays.append(standing.retry_at - at)
    assert delays == [1, 2, 4]
    assert not standing.is_broken


def test_too_many_failures_in_a_row_open_the_breaker_for_the_cool_down():
    standing = Standing()
    for at in (10, 20, 30, 40):
        standing = failed(standing, at)
    assert standing.is_broken
    assert standing.retry_at == 140


def test_a_failed_attempt_after_the_cool_down_opens_the_breaker_again():
    standing = Standing(failures=4, failed_at=40, retry_at=140, is_broken=True)
    again = failed(standing, 150)
    assert again.is_broken
    assert again.retry_at == 250


def test_connections_that_fall_together_are_one_failure():
    first = failed(Standing(), 100, began=50)
    assert failed(first, 101, began=60) == first
    assert failed(first, 103, began=102).failures == 2


def test_a_connection_that_lived_long_makes_the_failures_before_it_forgotten():
    standing = Standing(failures=3, failed_at=40, retry_at=44)
    assert failed(standing, 200, began=45, lived=150).failures == 1
    assert failed(standing, 60, began=45, lived=14).failures == 4


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 10))
def test_chance_spreads_a_delay_over_its_second_half(chance: float, failures: int):
    before = Standing(failures=failures, failed_at=0)
    longest = failed(before, 10).retry_at - 10
    delay = failed(before, 10, chance=chance).retry_at - 10
    assert longest / 2 <= delay <= longest


def test_a_call_waits_for_the_next_attempt_only_where_it_is_near():
    standing = Standing(failures=1, failed_at=0, retry_at=10)
    assert admission(standing, 5, PATIENCE) == Admission(5, refused=True)
    assert admission(standing, 7, PATIENCE) == Admission(3)
    assert admission(standing, 11, PATIENCE) == Admission(0)
    assert admission(Standing(), 5, PATIENCE) == Admission(0)


def test_failures_are_forgiven_once_a_newer_connection_has_lived_long_enough():
    standing = Standing(failures=2, failed_at=100, retry_at=102)
    assert forgiven(standing, [103], 162, PATIENCE) == standing
    assert forgiven(standing, [103], 163, PATIENCE) == Standing()
    assert forgiven(standing, [50], 163, PATIENCE) == standing, "an older connection proves nothing"
    assert forgiven(standing, [50, 103], 163, PATIENCE) == Standing()
    assert forgiven(standing, [], 163, PATIENCE) == standing
    assert forgiven(Standing(), [1], 163, PATIENCE) == Standing()


def test_the_state_is_said_in_one_word():
    failing, broken = Standing(failures=1), Standing(failures=5, is_broken=True)
    assert state_of(Standing(), ready=False, starting=False) == "idle"
    assert state_of(broken, ready=False, starting=True) == "starting"
    assert state_of(broken, ready=True, starting=True) == "ready"
    assert state_of(failing, ready=False, starting=False) == "backing off"
    assert state_of(broken, ready=False, starting=False) == "broken"
