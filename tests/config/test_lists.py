import pytest

from ullage.config.permissions import Lists

pytestmark = pytest.mark.requirement("U:access")


@pytest.mark.parametrize(
    ("value", "expected", "is_unclear"),
    [
        (None, None, False),
        ([], (), False),
        (["a", "b"], ("a", "b"), False),
        (["a", "", 5], ("a",), True),
        ("a", ("a",), True),
        ({}, (), True),
    ],
)
def test_what_can_be_read_of_a_list_counts(value: object, expected: object, *, is_unclear: bool):
    lists = Lists({"x": {"y": value}})
    assert lists.names("x", "y") == expected
    assert bool(lists.unclear) == is_unclear


@pytest.mark.parametrize(("value", "expected"), [(None, None), (["a", 1], ("a",)), ("a", ()), (7, ())])
def test_a_list_of_all_that_is_wanted_wants_nothing_where_it_is_none(value: object, expected: object):
    assert Lists({"x": value}).only("x") == expected


def test_no_place_is_asked_of_what_is_no_table():
    assert Lists([]).names("x", "y") is None
    assert Lists({"x": 1}).names("x", "y") is None
