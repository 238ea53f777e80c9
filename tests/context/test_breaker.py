import pytest

from ullage.context import Breaker

pytestmark = pytest.mark.requirement("S2:compact:fail")


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_it_allows_until_the_third_failure(clock: Clock):
    breaker = Breaker(clock)
    for left in (3, 2, 1):
        assert breaker.left == left
        assert breaker.allows()
        breaker.failed()
    assert breaker.left == 0
    assert not breaker.allows()


def test_failing_calls_are_counted_and_not_how_often_it_was_told(clock: Clock):
    breaker = Breaker(clock)
    breaker.failed(2)
    assert breaker.left == 1
    breaker.failed()
    assert not breaker.allows()


def test_what_was_not_tried_is_no_failure(clock: Clock):
    breaker = Breaker(clock, failures=1)
    breaker.failed(0)
    assert breaker.allows()


def test_after_its_rest_one_call_decides(clock: Clock):
    breaker = Breaker(clock, cooldown=60.0)
    breaker.failed(3)
    clock.now += 59.9
    assert not breaker.allows()
    clock.now += 0.1
    assert breaker.left == 1
    breaker.failed()
    assert not breaker.allows()
    clock.now += 60.0
    assert breaker.left == 1
    breaker.succeeded()
    assert breaker.left == 3


def test_a_success_between_failures_starts_the_count_anew(clock: Clock):
    breaker = Breaker(clock)
    breaker.failed(2)
    breaker.succeeded()
    breaker.failed(2)
    assert breaker.allows()
