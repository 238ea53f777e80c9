import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ullage.table import read_pieces, value_at
from ullage.table.json_scan import decode_pieces

pytestmark = pytest.mark.requirement("U:bounded")

Value = Any
"""Any JSON."""

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=30,
)


def filled(value: Value, size: int = 70_000) -> list[Value]:
    """The value among neighbours that make its text too long to be read at once."""
    return ['x\\"é😀' * (size // 6), value, [value], {"a": value}]


@pytest.mark.requirement("U:bounded")
@settings(max_examples=40, deadline=None)
@given(JSON, st.booleans(), st.sampled_from([None, 1]))
def test_a_long_text_reads_as_json_reads_it(value: Value, ascii_only: bool, indent: int | None):  # noqa: FBT001
    text = json.dumps(filled(value), ensure_ascii=ascii_only, indent=indent)
    assert read_pieces(text, 200) == json.loads(text)


@pytest.mark.parametrize(
    "value",
    [
        [{"id": at, "note": "},{"} for at in range(9_000)],
        {f"key {at}": [at] for at in range(9_000)},
        [[[{"a": list(range(40_000))}]]],
        ["\\" * 200_001, '"' * 100_000, "\n" * 100_000],
        [1.5, -2e10, 12345678901234567890, True, None] * 20_000,
        "😀" * 60_000,
    ],
)
def test_long_values_of_every_shape_are_read_whole(value: Value):
    for ascii_only in (True, False):
        assert read_pieces(json.dumps(value, ensure_ascii=ascii_only), 200) == value


def test_halves_of_characters_are_replaced_wherever_they_stand():
    short, long = r"x\ud83dy", r"x\ud83dy" * 20_000
    assert read_pieces(f'["{short}"]', 9) == ["x\ufffdy"]
    assert read_pieces(f'["{long}", {{"{short}": "{short}"}}]', 9) == ["x\ufffdy" * 20_000, {"x\ufffdy": "x\ufffdy"}]
    assert read_pieces('["' + r"\ud83d\ude00" * 20_000 + '"]', 9) == ["😀" * 20_000]


@pytest.mark.parametrize("cut", [1, 7, 70_000, 139_990])
def test_what_is_no_json_is_an_error(cut: int):
    text = json.dumps(["a" * 70_000, {"b": "c" * 69_980}])
    for broken in (text[:-cut], text + "]", text.replace(", ", " "), text.replace("]", ",]")):
        with pytest.raises(ValueError):  # noqa: PT011
            read_pieces(broken, 200)


def test_what_is_nested_too_deeply_is_an_error_of_its_own():
    for deep in ("[" * 300 + "]" * 300, "[" * 200_000, '["' + "x" * 70_000 + '",' + "[" * 300 + "]" * 300 + "]"):
        with pytest.raises(RecursionError):
            read_pieces(deep, 200)
    assert read_pieces("[" * 200 + "]" * 200, 200)


def test_decimals_stay_as_they_are_written():
    assert read_pieces("[1.10]", 9, parse_float=Decimal) == [Decimal("1.10")]
    long: Value = read_pieces("[1.10, " + '"' + "x" * 70_000 + '"]', 9, parse_float=Decimal)
    assert long[0] == Decimal("1.10")


def test_a_number_of_many_thousand_digits_is_an_error():
    for digits in (5_000, 100_000):
        with pytest.raises(ValueError):  # noqa: PT011
            read_pieces("[" + "1" * digits + "]", 9)


def test_a_value_is_read_from_the_middle_of_a_text():
    text = " " * 300_000 + '{"a": [1, 2]} and more' + " " * 300_000
    assert value_at(text, 300_000) == ({"a": [1, 2]}, 300_013)


def test_bytes_are_decoded_across_pieces():
    data = ("é" * 700_000).encode() + b"\xff"
    assert decode_pieces(data) == "é" * 700_000 + "\ufffd"
