from types import MappingProxyType

import pytest

from ullage.json_size import is_larger

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
