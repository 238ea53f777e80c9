import json
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.models import shipped
from ullage.table import Recoded, decode, in_steps, recode_steps
from ullage.tokens import Meter, drain
from ullage.tool import Json

pytestmark = pytest.mark.requirement("S0:sql:query")

METER = Meter(shipped())
PEOPLE = [{"id": number, "name": f"Person {number}", "mail": None} for number in range(5)]
HOSTILE = st.sampled_from(
    [
        "a",
        "b",
        "",
        "a,b",
        '"',
        "x\ny",
        "items[2]:",
        "1",
        "null",
        "{}",
        "[0]",
        "a.b",
        ".",
        "\u2028",
        "\ud800",
        " ",
        "é",
        "key[1]:\n",
    ]
)
TEXT = st.one_of(HOSTILE, st.text(max_size=4))
LEAF = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXT)
VALUE = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(TEXT, inner, max_size=3),
        st.lists(st.fixed_dictionaries({"id": inner}, optional={"a,b": inner, "": inner}), min_size=2, max_size=4),
    ),
    max_leaves=12,
)


def tokens(text: str) -> int:
    return METER.count(text, "gpt-4o").tokens


def strictly(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def recode(given: Json, weigh: Callable[[str], int]) -> Recoded | None:
    return drain(recode_steps(given, in_steps(weigh)))


def shrinking() -> Callable[[str], int]:
    weights = iter(range(100, 0, -1))
    return lambda _: next(weights)


@given(VALUE)
def test_nothing_is_lost_whatever_the_document(value):
    recoded = recode(json.dumps(value, indent=1), shrinking())
    if isinstance(value, list | dict):
        assert recoded is not None
        assert strictly(decode(recoded.text)) == strictly(value)
        recoded.text.encode("utf-8")
    else:
        assert recoded is None


@given(VALUE)
def test_no_text_grows(value):
    for text in (
        json.dumps(value),
        json.dumps(value, indent=2),
        json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    ):
        if "\ud800" in text:
            continue
        recoded = recode(text, tokens)
        assert recoded is None or tokens(recoded.text) < tokens(text)


def test_like_objects_become_csv():
    recoded = recode(json.dumps(PEOPLE), tokens)
    assert recoded is not None
    assert recoded.text.split("\n") == ["id,name,mail", *(f"{number},Person {number},null" for number in range(5))]
    assert recoded.value == PEOPLE


def test_tables_within_stand_below_under_their_paths():
    value = {"total": 5, "page": {"items": PEOPLE, "next": None}, "odd keys": [1, PEOPLE]}
    recoded = recode(value, tokens)
    assert recoded is not None
    lines = recoded.text.split("\n")
    assert len(lines) == 15
    assert lines[:3] == ['{"total":5,"page":{"next":null},"odd keys":[1,null]}', "page.items[5]:", "id,name,mail"]
    assert lines[8] == '"odd keys"[1][5]:'
    assert decode(recoded.text) == value


def test_what_holds_no_table_becomes_compact_json():
    recoded = recode('{\n  "name": "Ada",\n  "tags": ["\\u00e9", 1.50]\n}', tokens)
    assert recoded is not None
    assert recoded.text == '{"name":"Ada","tags":["é",1.50]}'


def test_numbers_keep_every_digit():
    text = '[{"n": 1.10, "m": 1e400}, {"n": 0.1000000000000000055511151231257827, "m": 12345678901234567890123}]'
    recoded = recode(text, tokens)
    assert recoded is not None
    assert recoded.text == "n,m\n1.10,1E+400\n0.1000000000000000055511151231257827,12345678901234567890123"
    assert decode(recoded.text) == json.loads(text)
    assert Decimal("1.10") == Decimal(recoded.text.split("\n")[1].split(",")[0])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain text",
        "7",
        '"text"',
        "[1,2",
        '{"a": 1, "b": 2, "a": 3}',
        '{"a": 1e99999999999999999999999}',
        '{"a":1}',
        "[" * 100_000 + "]" * 100_000,
        f'{{"a": {"9" * 5_000}}}',
        "[ " + "1," * 600_000 + "1]",
    ],
    ids=lambda text: text[:12],
)
def test_what_cannot_be_improved_or_would_be_harmed_is_left_alone(text: str):
    assert recode(text, tokens) is None


def test_what_is_too_deep_to_walk_is_left_alone():
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    assert recode(deep, tokens) is None  # pyright: ignore[reportArgumentType]


def test_a_long_text_is_judged_by_samples_and_written_in_steps():
    rows = [{"id": number, "name": f"Person {number}", "price": number * 0.5} for number in range(8_000)]
    weighed: list[int] = []

    def weigh(text: str) -> int:
        weighed.append(len(text))
        return tokens(text)

    steps, paused = recode_steps(json.dumps(rows), in_steps(weigh)), 0
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            recoded = stop.value
            break
        paused += 1
    assert paused > 100
    assert decode(recoded.text) == rows
    assert sum(weighed) < 400_000


def test_a_long_text_that_gains_little_stays():
    rows = [{"a": "word " * 2_000} for _ in range(40)]
    assert recode(json.dumps(rows, separators=(",", ":")), tokens) is None
