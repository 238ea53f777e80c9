import json
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.errors import BadInput
from ullage.table import ABSENT, decode, dump_value, encode, record_lines, records_json, row_line
from ullage.table.table_text import written_steps
from ullage.tokens import drain

pytestmark = pytest.mark.requirement("S0:sql:query")

HOSTILE = st.sampled_from(
    [
        "",
        " ",
        "a,b",
        '"',
        '""',
        "null",
        "true",
        "NaN",
        "-Infinity",
        "1",
        "-0",
        "1e5",
        "01",
        "+1",
        ".5",
        "[1]",
        "{",
        "x\ny",
        "\r",
        "\t",
        "\u2028",
        "\x85",
        "\x7f",
        "\ud800",
        "items[2]:",
        "-- 3 rows",
        " lead",
        "trail ",
        "\xa0",
        "é",
        "1.0",
        "a=b",
    ]
)
TEXT = st.one_of(HOSTILE, st.text(max_size=8))
NUMBER = st.one_of(st.integers(), st.floats(allow_nan=False), st.just(10**400))
VALUE = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBER, TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=8,
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[object]]]:
    columns = draw(st.lists(TEXT, min_size=1, max_size=4, unique=True))
    cell = st.one_of(VALUE, st.just(ABSENT))
    return columns, draw(st.lists(st.lists(cell, min_size=len(columns), max_size=len(columns)), min_size=1, max_size=4))


def strictly(value: object) -> str:
    """So that true is not 1, nor 1 the same as 1.0."""
    return json.dumps(value, sort_keys=True)


@given(tables())
def test_typed_rows_come_back_exactly_and_take_a_line_each(table):
    columns, rows = table
    text = encode(columns, rows, typed=True)
    objects = [{key: cell for key, cell in zip(columns, row, strict=True) if cell is not ABSENT} for row in rows]
    assert strictly(decode(text)) == strictly(objects)
    assert len(text.splitlines() or [""]) <= len(rows) + 1 == len(text.split("\n"))
    text.encode("utf-8")


@given(tables())
def test_a_database_s_rows_take_a_line_each_and_can_be_sent(table):
    columns, rows = table
    text = encode(columns, rows)
    assert len(text.split("\n")) == len(rows) + 1
    assert not any(mark in text for mark in "\r\x85\u2028")
    text.encode("utf-8")


def test_what_is_not_a_number_stays_what_it_is():
    back = decode(encode(["a", "b", "c"], [(math.nan, math.inf, "NaN"), (-math.inf, 1e308, "Infinity")], typed=True))
    assert str(back) == "[{'a': nan, 'b': inf, 'c': 'NaN'}, {'a': -inf, 'b': 1e+308, 'c': 'Infinity'}]"
    assert encode(["a"], [(Decimal("1E+400"),), (Decimal("NaN"),)], typed=True) == "a\n1E+400\nNaN"
    assert decode("a\n1E+400") == [{"a": math.inf}]


def test_text_that_looks_like_a_value_is_quoted_only_where_types_count():
    row = ["12", "true", "null", "2024-01-01", "007", "", None, ABSENT, "a,b", 'say "hi"', '"hi"', "two\nlines"]
    assert row_line(row, typed=True) == (
        r'"12","true","null",2024-01-01,007,"",null,,"a,b",say "hi","\"hi\"","two\nlines"'
    )
    assert row_line(row) == r'12,true,null,2024-01-01,007,"",,,"a,b",say "hi","\"hi\"","two\nlines"'


def test_values_of_every_kind_stand_in_a_line():
    row = [True, 1, 1.5, Decimal("12.50"), [1, "é"], {"a": [Decimal("0.10"), None]}, Decimal("NaN")]
    assert row_line(row) == 'true,1,1.5,12.50,[1,"é"],{"a":[0.10,null]},NaN'


def test_json_held_as_text_is_not_quoted_again():
    assert row_line(['{"a":1,"b":[2]}', "[1, 2]", "{a,b}", "{a}", '{"a":1,\n"b":2}']) == (
        r'{"a":1,"b":[2]},[1, 2],"{a,b}",{a},"{\"a\":1,\n\"b\":2}"'
    )
    deep = "[" * 100_000 + "1,2" + "]" * 100_000
    assert row_line([deep]) == f'"{deep}"'


def test_names_are_written_as_cells_are():
    assert encode(["a,b", "", "n", "1"], [(1, 2, 3, 4)]) == '"a,b","",n,1\n1,2,3,4'
    assert encode(["1", "null"], [(1, 2)], typed=True) == '"1","null"\n1,2'


def test_one_row_is_a_line_a_column():
    lines = record_lines(["id", "a=b", "note", "gone", "none", "x y"], (7, "a, b", "two\nlines", None, "", ' "q"'))
    assert lines == ["id=7", '"a=b"=a, b', r'note="two\nlines"', "gone=", 'none=""', r'x y=" \"q\""']


def test_records_are_json_with_every_digit_of_a_decimal():
    rows = [(1, Decimal("12.50")), (2, None)]
    assert records_json(["id", "price"], rows) == '[{"id":1,"price":12.50},{"id":2,"price":null}]'
    pretty = records_json(["id", "price"], rows, indent=2)
    assert pretty == json.dumps([{"id": 1, "price": 0}, {"id": 2, "price": None}], indent=2).replace("0\n", "12.50\n")
    assert records_json(["id"], []) == "[]"


def test_a_name_that_comes_twice_keeps_both_values():
    assert json.loads(records_json(["a", "a", "a_2", "a"], [(1, 2, 3, 4)])) == [{"a": 1, "a_3": 2, "a_2": 3, "a_4": 4}]


@given(VALUE)
def test_indented_json_is_written_as_everyone_does(value):
    assert json.loads(dump_value(value, 2)) == value
    if strictly(value).isascii() and "\\u" not in strictly(value) and "\x7f" not in strictly(value):
        assert dump_value(value, 2) == json.dumps(value, indent=2)


def test_what_is_no_json_cannot_be_written():
    with pytest.raises(TypeError, match="set"):
        dump_value({"a": {1}})  # pyright: ignore[reportArgumentType]


def test_long_values_are_written_in_steps():
    value = [Decimal("1.10")] * 5_000
    steps = written_steps(value)  # pyright: ignore[reportArgumentType]
    assert next(steps) is None
    assert drain(steps) == f"[{','.join(['1.10'] * 5_000)}]"


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1",
        "a\n1,2",
        'a\n"x"y',
        "{}\nnothing",
        "{}\nx.y[1]:\na\n1",
        "[]\n[0][1]:\na\n1",
        "{}\nx[2]:\na\n1",
        '{\n"a":1}',
        "nothing",
        "a\n[1",
        "{}\n.x[1]:\na\n1",
        "{}\na b[1]:\na\n1",
        "{}\n3[1]:\na\n1",
        '{}\na"b"[1]:\na\n1',
        "{}\n[1]:\na\n1",
    ],
)
def test_what_we_did_not_write_is_not_guessed_at(text: str):
    with pytest.raises(BadInput):
        decode(text)
