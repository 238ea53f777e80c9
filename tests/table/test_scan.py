import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.table import Scanned, scan
from ullage.tokens import drain

pytestmark = pytest.mark.requirement("S0:meta:data")

VALUE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=10,
)


def scanned(text: str) -> Scanned:
    found = drain(scan(text))
    assert found is not None
    return found


@given(VALUE, st.sampled_from([None, 1]), st.sampled_from([(",", ":"), (" , ", "  :\n")]))
def test_every_record_is_where_it_is_said_to_be(value, indent, separators):
    text = f" {json.dumps(value, indent=indent, separators=separators)}\n"
    found = drain(scan(text))
    if found is None:
        assert not isinstance(value, list)
        return
    inner = value
    for step in found.path:
        inner = inner[step]
    records = list(found.records(text))
    assert [record.value for record in records] == inner == json.loads(text[found.start : found.end])
    assert [json.loads(text[record.start : record.end]) for record in records] == inner
    assert found.count == len(inner)
    assert json.loads(found.rest(text)) is not None


def test_the_longest_list_is_taken_with_its_keys():
    text = '{"tags": ["a", "b"], "page": {"items": [{"id": 1}, {"id": 2, "name": "Ada"}]}, "none": []}'
    found = scanned(text)
    assert (found.path, found.count, found.columns) == (("page", "items"), 2, ("id", "name"))
    assert json.loads(found.rest(text)) == {"tags": ["a", "b"], "page": {"items": []}, "none": []}


def test_records_that_are_not_all_objects_have_no_columns():
    assert scanned('[{"a": 1}, 2]').columns == ()
    assert scanned(json.dumps([{f"{n} {m}": 1 for m in range(30)} for n in range(50)])).columns == ()


def test_any_record_of_many_can_be_read_alone():
    text = json.dumps([{"n": n} for n in range(200_000)])
    found = scanned(text)
    assert found.spacing > 1
    assert len(found.marks) <= 65_536
    for number in (0, 1, 7, 65_535, 65_537, 199_999):
        assert next(found.records(text, number)).value == {"n": number}
    assert len(list(found.records(text, 199_990))) == 10
    assert list(found.records(text, 200_000)) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "nothing",
        "7",
        "{}",
        '{"a": 1}',
        "[1, 2",
        "[1 2]",
        "[1,]",
        '[{"a": 1},',
        '[{"a" 1}]',
        "[1] [2]",
        "[1],",
        "[,1]",
        '{"a": [1], }',
        '{"a": [1] "b": 2}',
        '{"a" [1]}',
        "{1: [2]}",
        '{"a": [1]',
        "[" * 100000,
        '{"a": [1], "b": nothing}',
    ],
)
def test_what_is_no_json_or_has_no_list_has_no_records(text: str):
    assert drain(scan(text)) is None


def test_others_are_let_in_and_little_is_kept():
    text = json.dumps([{"id": n, "name": f"person {n}"} for n in range(100_000)])
    tracemalloc.start()
    steps = 0
    for _ in scan(text):
        steps += 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert steps >= len(text) // 80_000
    assert peak < 6_000_000
