from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.tool import Reply, Structured, Tool, text_block
from ullage.wire.upstream.parse_results import (
    capabilities_of,
    introduction_of,
    listing_of,
    read_completion,
    read_contents,
    read_items,
    read_prompt,
    read_reply,
    read_tools,
)

pytestmark = pytest.mark.requirement("U:bounded")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def tools_of(*items) -> tuple[tuple[Tool, ...], list[str]]:
    notes: list[str] = []
    return read_tools(items, notes.append), notes


def test_a_whole_definition_is_read_and_what_is_not_known_is_kept():
    (tool,), notes = tools_of(
        {
            "name": "make",
            "title": "Make",
            "description": "Makes.",
            "inputSchema": {"type": "object", "properties": {"a": {}}, "required": ["a"], "$schema": "x", "new": 1},
            "outputSchema": {"type": "array"},
            "annotations": {"readOnlyHint": True, "newHint": 1},
            "_meta": {"a/b": 1},
            "icons": [{"src": "data:,"}],
            "unheard": {"of": None},
        }
    )
    assert notes == []
    assert tool == Tool(
        name="make",
        title="Make",
        description="Makes.",
        input_schema={"type": "object", "properties": {"a": {}}, "required": ["a"], "$schema": "x", "new": 1},
        output_schema={"type": "array"},
        annotations={"readOnlyHint": True, "newHint": 1},
        extra={"_meta": {"a/b": 1}, "icons": [{"src": "data:,"}], "unheard": {"of": None}},
    )


@pytest.mark.parametrize(
    ("schema", "read"),
    [
        ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
        ({"type": ["object", "null"]}, {"type": "object"}),
        (None, {"type": "object"}),
        ({"type": "object", "required": True}, {"type": "object", "required": []}),
        ({"type": "object", "required": ["a", 1]}, {"type": "object", "required": ["a"]}),
        ({"type": "object", "properties": []}, {"type": "object", "properties": {}}),
        (
            {"type": "object", "properties": {"a": "string", "b": True}},
            {"type": "object", "properties": {"a": {}, "b": True}},
        ),
        ({"type": "object", "$schema": 7}, {"type": "object"}),
    ],
)
def test_a_schema_that_can_be_mended_is_mended_and_noted(schema, read):
    (tool,), notes = tools_of({"name": "odd", "inputSchema": schema})
    assert tool.input_schema == read
    assert len(notes) == 1
    assert "`odd`" in notes[0]


@pytest.mark.parametrize(
    "item",
    [
        {"inputSchema": {"type": "object"}},
        {"name": "", "inputSchema": {"type": "object"}},
        {"name": 7, "inputSchema": {"type": "object"}},
        {"name": "odd", "inputSchema": "object"},
        {"name": "odd", "inputSchema": []},
        {"name": "odd", "inputSchema": {"type": "string"}},
        "odd",
        None,
    ],
)
def test_a_tool_that_cannot_be_meant_is_left_out_and_costs_no_other(item):
    tools, notes = tools_of(
        {"name": "a", "inputSchema": {"type": "object"}}, item, {"name": "b", "inputSchema": {"type": "object"}}
    )
    assert [tool.name for tool in tools] == ["a", "b"]
    assert len(notes) == 1


def test_of_tools_that_share_a_name_the_first_stays():
    tools, notes = tools_of(
        {"name": "a", "description": "first", "inputSchema": {"type": "object"}},
        {"name": "a", "description": "second", "inputSchema": {"type": "object"}},
    )
    assert [tool.description for tool in tools] == ["first"]
    assert "twice" in notes[0]


def test_a_definition_nested_without_end_is_left_out():
    schema: Any = {}
    for _ in range(200):
        schema = {"anyOf": [schema]}
    tools, notes = tools_of({"name": "deep", "inputSchema": {"type": "object", "properties": {"a": schema}}})
    assert tools == ()
    assert "nested" in notes[0]


@pytest.mark.requirement("U:bounded")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {f"p{at}": {"type": "string"} for at in range(15_000)}},
        {"type": "object", "properties": {"a": {"enum": ["x" * 400_001]}}},
        {"type": "object", "properties": {"x" * 400_001: {}}},
    ],
)
def test_a_definition_too_large_to_work_with_is_kept_by_its_name_and_first_words(schema):
    hints = {"readOnlyHint": True}
    item = {"name": "large", "description": "Does much. " * 500, "inputSchema": schema, "annotations": hints, "x": [1]}
    (large, small), notes = tools_of(item, {"name": "small", "inputSchema": {"type": "object"}})
    assert large.name == "large"
    assert large.description is not None
    assert large.description.startswith("Does much.")
    assert len(large.description) == 1_000
    assert large.input_schema == {"type": "object"}
    assert large.annotations == hints
    assert not large.extra
    assert small.name == "small"
    assert ["its arguments are not checked" in note for note in notes] == [True]


@pytest.mark.requirement("U:bounded")
def test_of_very_many_blocks_the_texts_are_joined_and_few_others_kept():
    texts: list[Any] = [{"type": "text", "text": f"t{at}"} for at in range(2_500)]
    assert read_reply({"content": texts}).content == (text_block("\n".join(f"t{at}" for at in range(2_500))),)
    odd: list[Any] = [{"type": "odd", "value": at} for at in range(2_500)]
    content = read_reply({"content": [*texts[:1], *odd]}).content
    assert content[1] == text_block("[500 more content blocks were left out]")
    assert content[2:] == tuple(odd[:2_000])
    assert len(read_reply({"content": texts[:2_000]}).content) == 2_000


def test_parts_of_the_wrong_kind_are_read_as_missing():
    (tool,), _ = tools_of(
        {
            "name": "a",
            "title": 1,
            "description": [],
            "outputSchema": "x",
            "annotations": 3,
            "inputSchema": {"type": "object"},
        }
    )
    assert tool == Tool(name="a", input_schema={"type": "object"})


@given(st.lists(json_values))
def test_no_list_of_tools_is_too_odd_to_be_read(items: list[Any]):
    listing_of(tools_of(*items)[0])


@given(
    st.dictionaries(
        st.sampled_from(["content", "structuredContent", "isError", "_meta", "resultType", "toolResult"]), json_values
    )
)
def test_no_result_is_too_odd_to_be_read(result: dict[str, Any]):
    reply = read_reply(result)
    assert all(isinstance(block["type"], str) for block in reply.content)
    read_contents(result)
    read_prompt(result)
    read_completion(result)


def test_a_revision_differs_whenever_a_definition_does():
    tool = {"name": "a", "inputSchema": {"type": "object"}}
    variants = [
        [tool],
        [tool | {"description": "x"}],
        [tool | {"title": "x"}],
        [tool | {"annotations": {"readOnlyHint": True}}],
        [tool | {"outputSchema": {}}],
        [tool | {"icons": []}],
        [tool | {"inputSchema": {"type": "object", "properties": {}}}],
        [tool, tool | {"name": "b"}],
        [tool | {"name": "b"}, tool],
    ]
    revisions = [listing_of(tools_of(*variant)[0]).revision for variant in variants]
    assert len(set(revisions)) == len(variants)
    assert listing_of(tools_of(tool)[0]).revision == revisions[0]


def test_blocks_pass_untouched_whatever_their_kind():
    blocks: Any = [{"type": "text", "text": "a", "new": 1}, {"type": "hologram", "data": {"x": [None]}}]
    reply = read_reply({"content": blocks, "isError": True, "_meta": {"a/b": None}, "structuredContent": {"x": 1}})
    assert reply == Reply(content=tuple(blocks), is_error=True, meta={"a/b": None}, structured=Structured({"x": 1}))


def test_who_answered_on_this_hop_is_not_passed_on():
    meta: Any = {"io.modelcontextprotocol/serverInfo": {"name": "toy"}, "a/b": 1}
    assert read_reply({"content": [], "_meta": meta}).meta == {"a/b": 1}
    assert read_contents({"_meta": meta}).meta == {"a/b": 1}
    assert read_prompt({"_meta": meta}).meta == {"a/b": 1}


def test_null_is_structured_content_and_its_absence_is_none():
    assert read_reply({"content": [], "structuredContent": None}).structured == Structured(None)
    assert read_reply({"content": []}).structured is None


def test_what_is_no_block_becomes_text():
    reply = read_reply({"content": ["bare", 7, {"no": "kind"}]})
    assert reply.content == (text_block("bare"), text_block("7"), text_block('{"no": "kind"}'))
    assert read_reply({"content": "bare"}).content == (text_block("bare"),)
    assert read_reply({"toolResult": {"a": 1}}).content == (text_block('{"a": 1}'),)
    assert read_reply({}).content == ()


def test_a_result_that_needs_something_first_is_not_an_answer():
    requests: Any = {"a": {"method": "elicitation/create", "params": {}}}
    reply = read_reply({"resultType": "input_required", "inputRequests": requests, "requestState": "s"})
    assert reply.needs is not None
    assert (reply.needs.requests, reply.needs.state) == (requests, "s")
    contents = read_contents({"resultType": "input_required"})
    assert contents.needs is not None
    assert (contents.needs.requests, contents.needs.state) == ({}, None)


def test_resources_and_prompts_are_read_raw():
    notes: list[str] = []
    items = [{"uri": "a:1", "name": "a", "new": 1}, {"uri": "a:1"}, {"name": "no uri"}, 7]
    assert read_items(items, "uri", notes.append) == ({"uri": "a:1", "name": "a", "new": 1},)
    assert len(notes) == 2
    assert read_contents({"contents": [{"uri": "a:1", "blob": "x"}, 7]}).contents == ({"uri": "a:1", "blob": "x"},)
    prompt = read_prompt({"messages": [{"role": "user", "content": {"type": "hologram"}}], "description": "d"})
    assert prompt.messages == ({"role": "user", "content": {"type": "hologram"}},)
    assert prompt.description == "d"
    assert read_completion({"completion": {"values": ["a"], "total": 3}}) == {"values": ["a"], "total": 3}
    assert read_completion({"completion": {"values": None}}) == {"values": []}


def test_a_server_without_a_name_is_called_as_configured():
    assert introduction_of({"name": "toy", "version": "1"}, "be kind", otherwise="x").name == "toy"
    nameless = introduction_of(None, 7, otherwise="configured")
    assert (nameless.name, nameless.version, nameless.instructions) == ("configured", None, None)


def test_what_a_server_says_of_itself_is_cut_to_a_length():
    said = introduction_of({"name": "n" * 10_000_000, "title": "t" * 2_000}, "Use this. " * 1_000_000, otherwise="x")
    assert len(said.name) == len(said.title or "") == 1_000
    assert len(said.instructions or "") == 200_000


@pytest.mark.parametrize("large", [{f"k{n}": [n] for n in range(1_000)}, {"text": "x" * 30_000}, [[[1] * 900]]])
def test_a_capability_too_large_to_work_with_is_still_declared(large: object):
    declared = {"tools": {"listChanged": True}, "experimental": large, "logging": {}}
    assert capabilities_of(declared) == {**declared, "experimental": {}}


def test_capabilities_are_at_most_fifty():
    assert len(capabilities_of({f"ability {n}": {} for n in range(60_000)})) == 50
    assert capabilities_of(["tools"]) == {}


@pytest.mark.parametrize(("letters", "is_kept"), [(1_000, True), (1_001, False), (1_000_000, False)])
def test_a_tool_with_a_name_too_long_to_call_is_left_out(letters: int, is_kept: bool):  # noqa: FBT001
    tools, notes = tools_of({"name": "x" * letters, "inputSchema": {"type": "object"}})
    assert len(tools) == is_kept
    assert len(notes) == (not is_kept)
    assert all(len(note) < 300 for note in notes)


def test_a_note_about_a_long_name_is_short():
    _, notes = tools_of({"name": "x" * 10_000, "inputSchema": 7})
    assert len(notes[0]) < 200


@pytest.mark.requirement("U:bounded")
@pytest.mark.parametrize(
    "large", [{"rows": [[1] * 10] * 2_000}, {"text": "x" * 300_000}, {f"key {at}": at for at in range(3_000)}]
)
def test_metadata_too_large_to_pass_on_is_left_out_by_name(large: dict[str, Any]):
    meta = read_reply({"content": [], "_meta": {"trace": "kept", **large}}).meta
    left_out = meta["dev.ullage/left_out"]
    assert meta["trace"] == "kept"
    assert isinstance(left_out, list)
    assert left_out
    assert {str(one) for one in left_out} <= large.keys()
    assert len(str(meta)) < 20_000


def test_small_metadata_passes_whole():
    meta = {"a": {"b": [1, 2]}, "c": "d"}
    assert read_reply({"content": [], "_meta": meta}).meta == meta


@pytest.mark.requirement("U:bounded")
@pytest.mark.parametrize(("key", "most"), [("name", 2_000), ("uri", 5_000), ("uriTemplate", 200)])
def test_a_list_too_long_to_work_with_is_cut_with_a_note(key: str, most: int):
    notes: list[str] = []
    items: list[Any] = [{key: f"x:{at}"} for at in range(most + 5)]
    read = read_items(items, key, notes.append)
    assert len(read) == most
    assert f"the first {most:,} are kept" in notes[-1]


@pytest.mark.requirement("U:bounded")
def test_a_list_with_too_many_characters_is_cut_with_a_note():
    notes: list[str] = []
    items: list[Any] = [{"uri": f"x:{at}", "name": "x", "description": "x" * 90_000} for at in range(100)]
    assert 40 < len(read_items(items, "uri", notes.append)) < 50
    assert "are kept" in notes[-1]


@pytest.mark.requirement("U:bounded")
def test_of_an_item_too_large_to_list_the_name_and_address_are_kept():
    notes: list[str] = []
    large: Any = {"uri": "x:1", "name": "n", "mimeType": "text/plain", "description": "x" * 200_000}
    assert read_items([large], "uri", notes.append) == ({"uri": "x:1", "name": "n", "mimeType": "text/plain"},)
    assert "too large" in notes[0]


@pytest.mark.requirement("U:bounded")
def test_of_a_prompt_with_too_many_messages_it_is_said_how_many_were_left_out():
    messages: list[Any] = [{"role": "user", "content": {"type": "text", "text": "x"}}] * 2_007
    prompt = read_prompt({"messages": messages})
    assert len(prompt.messages) == 2_001
    assert prompt.messages[-1]["content"] == text_block("[7 more messages of this prompt were left out]")
    odd: list[Any] = [3] * 2_007
    assert read_prompt({"messages": odd}).messages[-1]["role"] == "user"


@pytest.mark.requirement("U:bounded")
def test_of_a_resource_with_too_many_contents_it_is_said_how_many_were_left_out():
    given: list[Any] = [{"uri": "x:1", "text": "x"}] * 2_007
    odd: list[Any] = [3] * 2_007
    contents = read_contents({"contents": given}).contents
    assert len(contents) == 2_001
    assert contents[-1] == {"uri": "x:1", "mimeType": "text/plain", "text": "[7 more contents were left out]"}
    assert read_contents({"contents": odd}).contents[-1]["uri"] == ""


@pytest.mark.requirement("U:bounded")
def test_a_completion_that_is_cut_says_that_there_is_more():
    cut: Any = {"completion": {"values": [f"v{at}" for at in range(101)], "total": 101, "note": "x"}}
    assert read_completion(cut) == {
        "values": cut["completion"]["values"][:100],
        "total": 101,
        "note": "x",
        "hasMore": True,
    }
    large: Any = {"completion": {"values": ["a", "b" * 100_000], "total": 2, "note": "x" * 300_000}}
    assert read_completion(large) == {"values": ["a"], "total": 2, "hasMore": True}
