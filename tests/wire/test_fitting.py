"""What a client that reads through types would refuse is left out, and nothing else."""

from typing import Any

import mcp_types
import pytest

from ullage.tool import Json
from ullage.wire.upstream.parse_results import (
    BLOCK,
    PROMPT,
    RESOURCE,
    TOOL,
    fitted,
    read_contents,
    read_items,
    read_prompt,
    read_reply,
    read_tools,
)

pytestmark = pytest.mark.requirement("S1:aggregate")

SCHEMA: dict[str, Json] = {"type": "object"}


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        ({"annotations": 5}, None),
        (
            {"annotations": {"readOnlyHint": "maybe", "openWorldHint": True, "new": 1}},
            {"openWorldHint": True, "new": 1},
        ),
        ({"annotations": {"title": 7}}, {}),
        ({"title": 7}, None),
        ({"description": ["a"]}, None),
        ({"icons": "x"}, None),
        ({"icons": [{"src": "a:b", "theme": "pink"}, 7, {}]}, [{"src": "a:b"}]),
        ({"_meta": 5}, None),
        ({"execution": 7}, None),
        ({"execution": {"taskSupport": "perhaps"}}, {}),
        ({"outputSchema": True}, None),
    ],
)
def test_a_tools_part_of_the_wrong_kind_is_left_out_and_noted(part: dict[str, Any], kept: Json):
    whole, wrong = fitted({"name": "a", "inputSchema": SCHEMA, **part}, TOOL)
    (key,) = part
    assert wrong == [key]
    assert whole.get(key) == kept
    mcp_types.Tool.model_validate(whole)
    notes: list[str] = []
    assert [tool.name for tool in read_tools([{"name": "a", "inputSchema": SCHEMA, **part}], notes.append)] == ["a"]
    assert f"`{key}`" in notes[0]


def test_what_is_as_it_should_be_is_the_very_same():
    icon: Json = {"src": "data:,", "mimeType": "image/png", "sizes": ["any"], "theme": "dark"}
    tool: dict[str, Json] = {
        "name": "a",
        "annotations": {"readOnlyHint": True},
        "icons": [icon],
        "_meta": {"a/b": 1},
        "execution": {"taskSupport": "optional"},
    }
    assert fitted(tool, TOOL)[0] is tool
    resource: dict[str, Json] = {"uri": "a:b", "size": 7, "annotations": {"audience": ["user"], "priority": 0.5}}
    assert fitted(resource, RESOURCE)[0] is resource


def test_a_null_says_nothing_and_is_no_mistake():
    assert fitted({"icons": None, "title": None, "annotations": None, "unheard": None}, TOOL) == ({"unheard": None}, [])


@pytest.mark.parametrize(
    "part",
    [
        {"size": "big"},
        {"size": True},
        {"size": 1.5},
        {"size": float("inf")},
        {"mimeType": 5},
        {"annotations": []},
        {"annotations": {"audience": "user"}},
        {"annotations": {"audience": ["nobody"], "priority": 7, "lastModified": 1}},
        {"_meta": "x"},
    ],
)
def test_a_resource_and_a_link_to_one_lose_only_what_is_wrong(part: dict[str, Json]):
    notes: list[str] = []
    (item,) = read_items([{"uri": "a:b", "name": "n", **part}], "uri", notes.append)
    mcp_types.Resource.model_validate(dict(item))
    assert len(notes) == 1
    reply = read_reply({"content": [{"type": "resource_link", "uri": "a:b", "name": "n", **part}]})
    mcp_types.ResourceLink.model_validate(dict(reply.content[0]))


def test_what_has_no_name_is_named_by_its_uri():
    notes: list[str] = []
    assert read_items([{"uri": "a:b"}], "uri", notes.append) == ({"uri": "a:b", "name": "a:b"},)
    assert read_items([{"uriTemplate": "a:{b}", "name": 5}], "uriTemplate", notes.append) == (
        {"uriTemplate": "a:{b}", "name": "a:{b}"},
    )
    assert len(notes) == 2
    assert read_reply({"content": [{"type": "resource_link", "uri": "a:b"}]}).content[0]["name"] == "a:b"


def test_a_prompts_arguments_are_objects_with_a_name():
    arguments: Json = [{"name": "a", "required": "yes"}, {"name": 5}, "b"]
    whole, wrong = fitted({"name": "p", "arguments": arguments}, PROMPT)
    assert (whole["arguments"], wrong) == ([{"name": "a"}], ["arguments"])
    assert fitted({"name": "p", "arguments": {}}, PROMPT) == ({"name": "p"}, ["arguments"])


def test_blocks_lose_only_what_is_wrong_wherever_they_stand():
    block: dict[str, Json] = {"type": "text", "text": "x", "annotations": 5, "_meta": 5, "size": "not a block's"}
    kept = {"type": "text", "text": "x", "size": "not a block's"}
    assert fitted(block, BLOCK)[0] == kept
    assert read_reply({"content": [block]}).content == (kept,)
    assert read_prompt({"messages": [{"role": "user", "content": block}]}).messages[0]["content"] == kept
    assert read_contents({"contents": [{"uri": "a:b", "text": "x", "_meta": 5}]}).contents == (
        {"uri": "a:b", "text": "x"},
    )


def test_nobody_can_speak_as_ullage():
    meta: Json = {"dev.ullage/meta": {"rowCount": 7}, "dev.ullage/savings": 1, "a/b": 2}
    kept = {"a/b": 2}
    reply = read_reply({"content": [{"type": "text", "text": "x", "_meta": meta}], "_meta": meta})
    assert (reply.meta, reply.content[0]["_meta"]) == (kept, kept)
    notes: list[str] = []
    (tool,) = read_tools([{"name": "a", "inputSchema": SCHEMA, "_meta": meta}], notes.append)
    assert (tool.extra, notes) == ({"_meta": kept}, [])
    assert read_contents({"contents": [], "_meta": meta}).meta == kept
