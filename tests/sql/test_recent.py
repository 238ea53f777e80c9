import pytest

from ullage.sql.run_query import AnswerCache

pytestmark = pytest.mark.requirement("S0:sql:cache")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.requirement("S0:sql:cache")
def test_an_answer_is_kept_for_its_seconds_and_no_longer():
    clock = Clock()
    recent = AnswerCache[str](10, clock=clock)
    recent.put("a", "one", 3)
    assert recent.get("a") == "one"
    assert recent.get("b") is None
    clock.now = 9.9
    assert recent.get("a") == "one"
    clock.now = 10
    assert recent.get("a") is None
    assert recent.get("a") is None


def test_no_seconds_keep_nothing():
    recent = AnswerCache[str](0, clock=Clock())
    recent.put("a", "one", 3)
    assert recent.get("a") is None


def test_the_one_not_asked_for_longest_goes_first():
    recent = AnswerCache[int](10, clock=Clock(), entries=2)
    recent.put("a", 1, 1)
    recent.put("b", 2, 1)
    recent.get("a")
    recent.put("c", 3, 1)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]


def test_there_is_a_bound_on_size():
    recent = AnswerCache[int](10, clock=Clock(), size=10)
    recent.put("a", 1, 6)
    recent.put("b", 2, 6)
    assert [recent.get(key) for key in "ab"] == [None, 2]
    recent.put("c", 3, 11)
    assert [recent.get(key) for key in "bc"] == [2, None]
    recent.put("b", 4, 10)
    assert recent.get("b") == 4


def test_room_is_given_back_by_what_grew_old():
    clock = Clock()
    recent = AnswerCache[int](10, clock=clock, size=10)
    recent.put("a", 1, 10)
    clock.now = 11
    assert recent.get("a") is None
    recent.put("b", 2, 10)
    assert recent.get("b") == 2


def test_a_hundred_answers_are_kept_unless_another_number_is_set():
    recent = AnswerCache[int](10, clock=Clock())
    for key in range(101):
        recent.put(key, key, 1)
    assert [recent.get(key) for key in (0, 1, 100)] == [None, 1, 100]


def test_an_answer_that_is_kept_again_takes_its_room_once():
    recent = AnswerCache[int](10, clock=Clock(), size=10)
    for value in range(3):
        recent.put("a", value, 5)
    recent.put("b", 4, 5)
    assert [recent.get(key) for key in "ab"] == [2, 4]
