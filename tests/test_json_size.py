from types import MappingProxyType

import pytest

from ullage.tool import is_larger


class Text(str):
    """A text of another class."""


pytestmark = pytest.mark.requirement("U:bounded")


@pytest.mark.parametrize("value", [[0] * 11, {str(at): 0 for at in range(11)}, [[[0] * 3] * 3], ((0,) * 6, (0,) * 4)])
def test_values_are_counted_at_all_levels(value):
    assert is_larger(value, 10, 1_000)
    assert not is_larger(value, 13, 1_000)


@pytest.mark.parametrize(
    "value", ["x" * 101, {"x" * 101: 1}, [["x" * 50], {"k": "x" * 50}], MappingProxyType({"k": "x" * 100})]
)
def test_characters_of_texts_and_keys_are_counted(value):
    assert is_larger(value, 100, 100)
    assert not is_larger(value, 100, 102)


def test_characters_of_ascii_texts_can_count_less():
    assert not is_larger("x" * 1_000, 0, 10, ascii_share=100)
    assert is_larger("ü" * 1_000, 0, 10, ascii_share=100)


@pytest.mark.parametrize("value", [None, True, 10**15, 1.5, "", [], {}])
def test_a_single_value_is_never_larger(value):
    assert not is_larger(value, 0, 0)


def test_long_numbers_count_for_more_than_their_digits():
    assert not is_larger([10**15] * 100, 1_000, 100)
    assert is_larger([10**4_000] * 100, 1_000, 400_000)


@pytest.mark.parametrize(
    ("value", "values", "letters"),
    [
        ([0] * 10, 10, 0),
        ((0,) * 10, 10, 0),
        ({str(at): 0 for at in range(10)}, 10, 10),
        (MappingProxyType({"a": [1, 2]}), 3, 1),
        ([[1], [2, [3]]], 6, 0),
        ("x" * 10, 0, 10),
        (Text("x" * 10), 0, 10),
        ({"ab": "cd"}, 1, 4),
        (["ü", 1.5, None, True], 4, 1),
        ([10**20], 1, 67),
        ([-(10**20)], 1, 67),
        ([2**64 - 1, 2**64], 2, 65),
        ([10**15, -(10**15)], 2, 0),
    ],
)
def test_a_value_of_exactly_the_most_is_not_larger(value, values: int, letters: int):
    assert not is_larger(value, values, letters)
    assert values == 0 or is_larger(value, values - 1, letters)
    assert letters == 0 or is_larger(value, values, letters - 1)


@pytest.mark.parametrize(("text", "letters"), [("x" * 299, 2), ("x" * 300, 3), ("x" * 299 + "ü", 300)])
def test_a_hundred_ascii_characters_can_count_as_one(text: str, letters: int):
    for value in (text, [text], {text: 0}, {"": text}):
        assert not is_larger(value, 1, letters, ascii_share=100)
        assert is_larger(value, 1, letters - 1, ascii_share=100)
