import pytest

from ullage.delegate import FailureKind, Patience, ProviderFailed
from ullage.delegate.retry_fallback import ModelCooldowns, NextStep, decide_next_step

pytestmark = pytest.mark.requirement("S4:retry")

PATIENCE = Patience()


def then(
    kind: FailureKind, tries: int = 1, retry_after: float | None = None, chance: float = 1.0, left: float | None = None
) -> NextStep:
    return decide_next_step(
        ProviderFailed("x", kind=kind, retry_after=retry_after), tries, PATIENCE, chance=chance, left=left
    )


@pytest.mark.requirement("S4:retry")
def test_pauses_double_and_are_taken_at_random():
    assert [then("server", tries).wait for tries in (1, 2)] == [0.5, 1.0]
    assert then("server", 1, chance=0.0) == NextStep(do="retry", wait=0.0)
    assert then("server", 3) == NextStep(do="next", bench=30.0)


@pytest.mark.requirement("S4:retry")
def test_a_short_wait_is_waited_and_a_long_one_is_not():
    assert then("rate_limited", retry_after=1.0) == NextStep(do="retry", wait=1.0)
    assert then("rate_limited", retry_after=30.0) == NextStep(do="next", bench=30.0)
    assert then("rate_limited", retry_after=86_400) == NextStep(do="next", bench=600.0)
    assert then("overloaded", retry_after=30.0) == NextStep(do="next", bench=30.0)
    assert then("server", retry_after=1.5).wait == 1.5
    assert then("rate_limited", tries=3, retry_after=1.0).do == "next"
    assert then("rate_limited").do == "retry"


@pytest.mark.requirement("S4:retry")
def test_what_is_used_up_is_not_waited_for_however_short_the_wait_is_said_to_be():
    assert then("exhausted", retry_after=1.0) == NextStep(do="next", loud=True, bench=30.0)
    assert then("exhausted", retry_after=60.0) == NextStep(do="next", loud=True, bench=60.0)
    assert then("exhausted", retry_after=86_400) == NextStep(do="next", loud=True, bench=600.0)


@pytest.mark.requirement("S4:retry")
def test_there_is_no_waiting_past_the_deadline():
    assert then("rate_limited", retry_after=1.0, left=0.5).do == "next"
    assert then("server", left=0.1).do == "next"
    assert then("server", left=0.0).do == "stop"
    assert then("deadline").do == "stop"


@pytest.mark.requirement("S4:retry", "S4:fallback")
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("bad_request", NextStep(do="stop")),
        ("context_length", NextStep(do="next", larger=True)),
        ("refused", NextStep(do="next")),
        ("sealed", NextStep(do="retry")),
        ("unauthorized", NextStep(do="next", loud=True, bench=30.0)),
        ("not_found", NextStep(do="next", loud=True, bench=30.0)),
        ("exhausted", NextStep(do="next", loud=True, bench=30.0)),
        ("no_key", NextStep(do="next", bench=30.0)),
        ("truncated", NextStep(do="next", bench=30.0)),
        ("idle", NextStep(do="next", bench=30.0)),
        ("first_byte", NextStep(do="next", bench=30.0)),
    ],
)
def test_what_waiting_does_not_mend_goes_on_at_once_or_ends(kind: FailureKind, expected: NextStep):
    assert then(kind) == expected


def test_sealed_thoughts_are_no_reason_to_try_for_ever():
    assert then("sealed", tries=PATIENCE.retries + 1).do == "retry"
    assert then("sealed", tries=PATIENCE.retries + 2) == NextStep(do="next")


@pytest.mark.requirement("S4:fallback")
def test_a_benched_model_is_passed_by_and_then_tried_by_one():
    time = [0.0]
    cooldowns = ModelCooldowns(lambda: time[0])
    cooldowns.start("m", 30)
    cooldowns.start("m", 5)
    assert cooldowns.active() == {"m"}
    time[0] = 30
    assert cooldowns.active() == frozenset()
    cooldowns.begin_trial("m")
    assert cooldowns.active() == {"m"}, "while one call tries it, the others pass it by"
    time[0] = 91
    assert cooldowns.active() == frozenset(), "a trial that never ended does not bench it for ever"
    cooldowns.end("m")
    cooldowns.begin_trial("m")
    assert cooldowns.active() == frozenset()
