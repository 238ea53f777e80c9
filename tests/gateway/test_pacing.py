import pytest

from ullage.gateway.tool_source import Pacing

pytestmark = pytest.mark.requirement("S1:live")


def pauses(pacing: Pacing, number: int, now: float = 100.0) -> tuple[float, list[float]]:
    """What one who says at once that something changed again has to wait, each time."""
    found = list[float]()
    for _ in range(number):
        found.append(pacing.pause(now))
        now += found[-1]
        pacing.finished(now)
    return now, found


def test_each_question_without_a_calm_waits_twice_as_long_up_to_a_minute():
    assert pauses(Pacing(), 5)[1] == [0.05, 0.1, 0.2, 0.4, 0.8]
    assert pauses(Pacing(), 13)[1][-3:] == [51.2, 60.0, 60.0]
    assert pauses(Pacing(first=0.0), 3)[1] == [0.0, 0.05, 0.1]


def test_a_calm_of_a_second_or_of_four_pauses_is_forgiven():
    now, _ = pauses(short := Pacing(), 2)
    assert short.pause(now + 1.0) == 0.2, "a second exactly is no calm"
    short.finished(now + 2)
    assert short.pause(now + 3.01) == 0.05
    now, found = pauses(long := Pacing(), 5)
    assert found[-1] == 0.8
    assert long.pause(now + 3.19) == 1.6
    now, _ = pauses(other := Pacing(), 5)
    assert other.pause(now + 3.21) == 0.05
