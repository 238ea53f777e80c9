import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.gateway.tool_source import definition, definition_hash, definition_text, revision_of, tool_of
from ullage.tool import Tool

pytestmark = pytest.mark.requirement("S1:surface")

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "day": {"type": "integer"}}}
TOOL = Tool(name="wéather", description="Say the weather", input_schema=SCHEMA)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(), json_values, max_size=4)
KNOWN = {"name", "title", "description", "inputSchema", "outputSchema", "annotations"}
tools = st.builds(
    Tool,
    name=st.text(),
    input_schema=objects,
    description=st.none() | st.text(),
    title=st.none() | st.text(),
    output_schema=st.none() | objects,
    annotations=objects,
    extra=objects.map(lambda extra: {key: value for key, value in extra.items() if key not in KNOWN}),
)


def test_the_text_is_compact_and_holds_what_reaches_a_model():
    shown = replace(TOOL, title="Weather", annotations={"readOnlyHint": True}, extra={"icons": []})
    assert definition_text(shown) == (
        '{"name":"wéather","description":"Say the weather","inputSchema":{"type":"object","properties":'
        '{"city":{"type":"string"},"day":{"type":"integer"}}}}'
    )
    assert definition_text(replace(TOOL, description=None)).startswith('{"name":"wéather","inputSchema":')


@given(tools)
def test_a_definition_survives_being_written_and_read(tool: Tool):
    assert tool_of(json.loads(json.dumps(definition(tool)))) == tool


@given(tools)
def test_any_definition_has_a_hash_that_its_copy_shares(tool: Tool):
    assert definition_hash(tool) == definition_hash(tool_of(definition(tool)))


def test_halves_of_surrogate_pairs_are_hashed_too():
    assert len(definition_hash(replace(TOOL, description="\ud800"))) == 64


def test_the_hash_tells_every_difference_but_the_order_of_keys():
    changed = [
        replace(TOOL, name="w"),
        replace(TOOL, description="x"),
        replace(TOOL, title="x"),
        replace(TOOL, input_schema={**SCHEMA, "required": ["city"]}),
        replace(TOOL, output_schema={}),
        replace(TOOL, annotations={"readOnlyHint": True}),
        replace(TOOL, extra={"_meta": {"a": 1}}),
    ]
    assert len({definition_hash(tool) for tool in [TOOL, *changed]}) == len(changed) + 1
    turned = {"properties": dict(reversed(SCHEMA["properties"].items())), "type": "object"}
    assert definition_hash(replace(TOOL, input_schema=turned)) == definition_hash(TOOL)


def test_a_revision_depends_on_the_order():
    assert revision_of(["a", "b"]) != revision_of(["b", "a"])
    assert revision_of(["a", "b"]) == revision_of(iter(["a", "b"]))


def test_what_is_not_as_it_should_be_is_read_as_absent():
    assert tool_of({"name": "a", "description": 3, "inputSchema": [], "outputSchema": True}) == Tool(
        name="a", input_schema={}
    )
