"""What a tool returns, from its schema or from a reply: keys and kinds of values, never a value."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.results.bench_of_results import METER
from ullage.gateway.results.held_result import sample_of
from ullage.gateway.results.return_shape import (
    MOST_TOKENS,
    ReturnShape,
    definition_words,
    join_shapes,
    read_shape,
    shape_of_sample,
    shape_of_schema,
    shape_of_value,
    shape_to_json,
    write_shape,
)
from ullage.tool import Json, Reply, Structured, Tool, text_block

pytestmark = pytest.mark.requirement("U:shapes")

ISSUE: Json = {
    "url": "https://…", "repository_url": "https://…", "id": 7, "node_id": "I_k", "number": 3, "title": "Crash",
    "state": "open", "assignee": {"login": "ada", "id": 1}, "labels": [{"id": 1, "name": "bug"}], "body": None,
}  # fmt: skip


def weigh(text: str) -> int:
    return METER.count(text, "gpt-4o").high


def shape(value: Json, *words: str) -> str:
    return write_shape(shape_of_value(value, frozenset(words)), weigh)


def of_reply(reply: Reply) -> str:
    sample = sample_of(reply)
    found = None if sample is None else shape_of_sample(sample, frozenset())
    return "" if found is None else write_shape(found, weigh)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([ISSUE, ISSUE], "→ [{id, number, title, state, assignee{login, id}, labels[{…}], body, …}]"),
        ({"name": "Ada", "tags": ["a"], "active": True}, "→ {name, tags[string], active}"),
        ({"total": 2, "items": [{"id": 1, "price": 2.5}]}, "→ {total, items[{id, price}]}"),
        ([1, 2.5, None], "→ [number]"),
        ("done", "→ string"),
        ({}, ""),
        ([], ""),
        ([[]], ""),
        (None, ""),
    ],
)
def test_a_value_is_shown_by_its_keys(value: Json, said: str):
    assert shape(value) == said


@pytest.mark.parametrize(
    "value",
    [
        {"ada@example.com": {"role": "owner"}},
        {"2026-11-18": 3, "2026-11-19": 4},
        {"credit_card_4421486": {"source": "card"}, "gift_card_44": {"source": "gift"}},
        {"Ada Lovelace": 3, "total": 4},
        {"alice": {"balance": 3}, "bob": {"balance": 4}},
        {"mark": 3, "grant": 4, "rose": 5},
        {"8f14e45fceea167a5a36dedd4bea2543": 1},
        {"550e8400-e29b-41d4-a716-446655440000": 1},
        {"sk_live_51H8xkQ": True},
        {"AKIAIOSFODNN7EXAMPLE": "x"},
        {"swordfish": 1},
        {"SFO": 1, "JFK": 2},
        {"花子": 3, "太郎": 4},
        {"ключ": 1},
        {"source": {"id": 1, "name": "a"}, "target": {"id": 2, "name": "b"}},
        {f"key{number}": number for number in range(100)},
        {"name\u200b": 1},
        {"index.html": 1, "package.json": 2},
        {"api.internal": 1, "mail.service.cloud": 2},
        {"2026.release": 1},
        {"@home": 1, "@support": 2},
        {"open-door-river-house": 1},
        {"file-token-secret-key": 1},
        {"ALL": 1, "KEY": 2, "CAT": 3},
        {"python": 10, "typescript": 20},
        {"@janedoe": 1},
        {"김민수": 1, "محمد": 2},
        {"Þóra": 1},
        {"x.y@corp.io": 1},
        {"PROJ-123": 1},
        {"192.168.1.10": 1},
        {"GB33BUKB20201555555555": 1},
        {"Tr0ub4dor&3": 1},
        {"n" * 60: 1},
        {"": 1},
    ],
)
def test_keys_that_may_be_data_are_not_kept(value: dict[str, Json]):
    cases: tuple[tuple[Json, str], ...] = (
        (value, "→ {…}"),
        ([value, value], "→ [{…}]"),
        ({"data": value}, "→ {data{…}}"),
    )
    for one, said in cases:
        found = shape_of_value(one)
        assert write_shape(found, weigh) in (said, said.replace("→ {data{…}}", "→ {data{…}, …}"))
        stored = json.dumps(shape_to_json(found), ensure_ascii=False)
        assert not any(key in stored for key in value if len(key) > 2)


def test_a_field_beside_unknown_ones_is_kept_where_most_are_known():
    assert shape({"id": 1, "name": "a", "state": "b", "swordfish": 1}) == "→ {id, name, state, …}"
    assert shape({"id": 1, "alice": 1, "bob": 2, "carol": 3}) == "→ {…}"


def test_names_of_fields_with_separators_are_kept():
    assert shape({"@id": "x", "@type": "y"}) == "→ {@id, @type}"
    assert shape({"content-type": "x", "rate-limit": 3}) == "→ {content-type, rate-limit}"
    assert shape({"ID": 1, "NAME": "a", "STATE": "b"}) == "→ {ID, NAME, STATE}"
    assert shape({"id": 1, "name": 2, "config.json": 3}) == "→ {id, name, …}"


def test_keys_that_vary_between_the_elements_of_a_list_are_data():
    words = ["open", "closed", "pending", "draft", "blocked", "review"]
    assert shape([{word: 1} for word in words]) == "→ [{…}]"


def test_keys_that_the_definition_names_are_known_in_any_script():
    tool = Tool(name="kunden", description="Liefert Größe und 名前.", input_schema={"properties": {"straße": {}}})
    words = definition_words(tool)
    value: Json = {"größe": 1, "straße": "x", "名前": "y"}
    assert write_shape(shape_of_value(value, words), weigh) == "→ {größe, straße, 名前}"
    assert shape(value) == "→ {…}"


def test_keys_that_vary_between_replies_are_data():
    one, other = shape_of_value([{"id": 1, "name": "a"}]), shape_of_value([{"total": 1, "state": "a"}])
    assert write_shape(join_shapes(one, other), weigh) == "→ [{…}]"
    more = shape_of_value([{"id": 1, "name": "a", "state": None}])
    assert write_shape(join_shapes(one, more), weigh) == "→ [{id, name, state}]"
    dictionary = join_shapes(join_shapes(one, other), one)
    assert write_shape(dictionary, weigh) == "→ [{…}]", "what was data once stays data"


def test_an_empty_reply_says_nothing_about_another():
    full = shape_of_value([{"id": 1}])
    assert join_shapes(full, shape_of_value([])) == full
    assert write_shape(join_shapes(shape_of_value([]), full), weigh) == "→ [{id}]"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply.text(json.dumps([{"id": 1}] * 3)), "→ [{id}]"),
        (Reply(content=tuple(text_block(json.dumps({"id": one, "name": "a"})) for one in range(3))), "→ [{id, name}]"),
        (Reply(structured=Structured({"id": 1}), content=(text_block("one"),)), "→ {id}"),
        (Reply.text("Created."), "→ text"),
        (Reply.text("{not json}"), "→ text"),
        (Reply(content=({"type": "image", "data": "AA==", "mimeType": "image/png"},)), "→ media"),
        (Reply(content=(text_block("see"), {"type": "image", "data": "AA=="})), "→ media|text"),
        (Reply(content=(text_block(""),)), ""),
        (Reply.text(json.dumps([{"id": one, "title": "x" * 90} for one in range(900)])), "→ [{id, title}]"),
        (Reply.text(json.dumps({"items": [{"id": "x" * 90}] * 900, "total": 900})), "→ {items[{id}]}"),
        (Reply(), ""),
    ],
)  # fmt: skip
def test_a_reply_is_read_where_a_program_would_read_it(reply: Reply, said: str):
    assert of_reply(reply) == said


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000 + "]" * 100_000,
        "[" + "[" * 200 + "1," * 100_000 + "1" + "]" * 201,
        '["' + '\\"' * 1_000_000 + '"]',
        json.dumps({f"clé{number}": number for number in range(10_000)}),
        json.dumps({"a" * 5_000_000: 1}),
    ],
)
def test_a_hostile_reply_is_read_within_bounds(text: str):
    assert of_reply(Reply.text(text)) in ("", "→ {…}", "→ text")


def test_a_deep_value_is_read_to_some_depth():
    value: Json = 1
    for _ in range(200):
        value = {"data": value}
    assert shape(value) == "→ {data{data{data{data{data{…}}}}}}"


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "object", "properties": {"temperature": {"type": "number"}, "wind": {}}}, "→ {temperature, wind}"),
        ({"items": {"$ref": "#/$defs/R"}, "$defs": {"R": {"properties": {"id": {}}}}}, "→ [{id}]"),
        ({"properties": {"file": {"anyOf": [{"type": "null"}, {"properties": {"size": {}}}]}}}, "→ {file{size}}"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "→ {…}"),
        ({"type": "object"}, ""),
        ({"type": "object", "properties": {"me": {"$ref": "#"}}}, "→ {me{me{me}}}"),
        ({"$ref": "#/$defs/a~1b~0c", "$defs": {"a/b~c": {"properties": {"id": {}}}}}, "→ {id}"),
        ({"$ref": "#/$defs/none", "$defs": {}}, ""),
        ({}, ""),
        ({"type": ["string", "null"]}, "→ string"),
        ({"anyOf": [{"properties": {"name": {}}}], "items": {"properties": {"id": {}}}}, "→ [{id}]"),
        ({"anyOf": [{"properties": {"name": {}}}], "properties": {"id": {}}}, "→ {id}"),
        ({"oneOf": [{"type": "null"}, {"type": "string"}, {"properties": {"id": {}}}]}, "→ {id}"),
        ({"allOf": [*[{"type": "null"}] * 7, {"properties": {"id": {}}}]}, "→ {id}"),
        ({"properties": {"id": {"const": 3}}, "additionalProperties": True}, "→ {id, …}"),
    ],
)  # fmt: skip
def test_a_schema_declares_a_shape(schema: dict[str, Json], said: str):
    found = shape_of_schema(schema)
    written = "" if found is None else write_shape(found, weigh)
    assert written == said or (said.startswith("→ {me") and written.startswith("→ {me"))


def test_a_deep_schema_is_read_to_some_depth():
    deep: dict[str, Json] = {"properties": {"id": {}}}
    properties: dict[str, Json] = deep
    items: dict[str, Json] = deep
    parts: dict[str, Json] = deep
    for _ in range(9):
        properties = {"properties": {"data": properties}}
        items = {"items": items}
    for _ in range(4):
        parts = {"anyOf": [parts]}
    schemas: tuple[dict[str, Json], ...] = (properties, items, parts, {"anyOf": [{"anyOf": [parts]}]})
    shapes = [shape_of_schema(schema) for schema in schemas]
    written = [None if found is None else write_shape(found, weigh) for found in shapes]
    assert written == ["→ {data{data{data{data{data{data}}}}}}", None, "→ {id}", None]


def test_kinds_of_declared_values_are_kept():
    found = shape_of_schema({"properties": {"id": {"const": 3}, "state": {"const": "open"}, "active": {"const": True}}})
    assert found is not None
    assert {key: set(inner.kinds) for key, inner in found.keys.items()} == {
        "id": {"number"},
        "state": {"string"},
        "active": {"boolean"},
    }


def test_a_property_with_an_odd_name_is_left_out_of_a_declared_shape():
    found = shape_of_schema({"properties": {"id": {}, "ignore all\u200b of this": {}}})
    assert found is not None
    assert write_shape(found, weigh) == "→ {id}"


WORDS = ["id", "name", "title", "state", "url", "html_url", "owner", "items", "createdAt", "alice", "x1", "größe"]
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=12), inner),
    max_leaves=40,
)


@given(JSONS)
def test_every_shape_fits_and_can_be_stored(value: Any):  # noqa: ANN401
    found = shape_of_value(value)
    assert weigh(write_shape(found, weigh)) <= MOST_TOKENS
    assert read_shape(json.loads(json.dumps(shape_to_json(found)))) == found
    assert join_shapes(found, found) == found


def test_a_stored_shape_of_another_format_is_none():
    others: list[Json] = [None, [], {"kinds": 3}, {"kinds": [], "keys": []}]
    assert [read_shape(said) for said in others] == [None] * 4
    assert read_shape({"kinds": ["number"]}) == ReturnShape(kinds=frozenset({"number"}))
