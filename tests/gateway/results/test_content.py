import json

import pytest

from gateway.results.bench_of_results import records, said
from ullage.gateway.results.held_result import contents, is_repeated
from ullage.tokens import drain
from ullage.tool import Json, Reply, Structured, text_block

pytestmark = pytest.mark.requirement("U:budget")


def repeated(text: str, value: Json) -> bool:
    return drain(is_repeated(Reply(content=(text_block(text),), structured=Structured(value))))


def test_structured_content_is_repeated_where_the_text_is_its_json():
    small, large = records(3), records(5_000)
    for value in (small, large):
        assert repeated(json.dumps(value, indent=1), value)  # pyright: ignore[reportArgumentType]
        assert repeated(json.dumps(value), {"result": value})  # pyright: ignore[reportArgumentType]
        assert repeated(json.dumps({"a": {"b": value}}), {"a": {"b": value}})  # pyright: ignore[reportArgumentType]
    assert repeated("a line", {"result": "a line"})
    assert drain(is_repeated(Reply()))


@pytest.mark.parametrize(
    "value",
    [
        {"items": []},
        {"items": [*records(4_999), {"id": 0}]},
        {"items": records(4_999)},
        {"items": records(5_000), "more": 1},
        {"result": records(5_000)},
        [],
        None,
    ],
)
def test_it_is_not_where_the_text_says_otherwise(value: Json):
    assert not repeated(json.dumps({"items": records(5_000)}), value)


@pytest.mark.parametrize("text", ["two found", "[" * 3, "word " * 60_000, json.dumps({"a": "x" * 300_000})])
def test_it_is_not_where_the_text_is_something_else(text: str):
    assert not repeated(text, {"a": [1]})


def test_it_is_not_where_there_are_several_blocks():
    assert not drain(is_repeated(Reply(content=said("1", "2").content, structured=Structured([1, 2]))))
    pair = Reply(content=said('{"a": 1}', '{"a": 2}').content, structured=Structured({"result": [{"a": 1}, {"a": 2}]}))
    assert drain(is_repeated(pair))
    assert len(drain(contents(pair))) == 1


def test_every_block_is_a_part():
    blocks = (
        text_block("a\nb"),
        {"type": "resource", "resource": {"uri": "x:y", "text": "c"}},
        {"type": "resource", "resource": {"uri": "x:y", "blob": "QUJD"}},
        {"type": "text", "text": None},
        {"type": "resource", "resource": None},
    )
    found = drain(contents(Reply(content=blocks, structured=Structured({"more": 1}))))
    assert [content.part.layout.kind for content in found] == ["lines", "lines", "block", "block", "block", "lines"]
    assert [content.part.label for content in found] == ["", "x:y", "", "", "", "structuredContent"]
    assert json.loads(found[2].part.text) == blocks[2]
