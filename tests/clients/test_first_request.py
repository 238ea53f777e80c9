"""What each program is taken to write into its first request for small definitions. The heavy tests compare it with the
programs themselves."""

import json
from typing import Any

import pytest

from ullage.clients.configs import PROGRAMS, ListedServer, first_request_texts, format_definition
from ullage.tool import Json, Tool

pytestmark = pytest.mark.requirement("U:scan", "S1:net")

SCHEMA: dict[str, Json] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 1, "default": 3, "description": "How many"},
        "kind": {"const": "full"},
        "note": {"type": ["string", "null"], "maxLength": 9},
        "rows": {"type": "array", "minItems": 1},
        "free": {"description": "Anything"},
    },
    "required": ["size"],
}
PAINT = Tool(name="paint-wall", description="Paints a wall.", input_schema=SCHEMA)
FOR_APPS = Tool(name="panel", input_schema={"type": "object"}, extra={"_meta": {"ui": {"visibility": ["app"]}}})
LOADED = Tool(name="find", input_schema={"type": "object"}, extra={"_meta": {"anthropic/alwaysLoad": True}})


def sent(program: str, tool: Tool = PAINT) -> dict[str, Any]:
    return json.loads(format_definition(program, "home-tools", tool))


def codex(schema: dict[str, Json]) -> dict[str, Any]:
    return sent("codex", Tool(name="any", input_schema=schema))["parameters"]


def texts(program: str, *servers: ListedServer, defers: bool = False) -> list[str]:
    return [text for text in first_request_texts(program, servers, defers=defers) if text]


def test_claude_code_sends_the_schema_as_it_is():
    assert sent("claude") == {
        "name": "mcp__home-tools__paint-wall",
        "description": "Paints a wall.",
        "input_schema": SCHEMA,
    }


def test_claude_code_cuts_long_texts():
    long = Tool(name="long", description="x" * 5_000, input_schema={})
    assert sent("claude", long)["description"] == "x" * 4_096 + "… [truncated]"
    (said,) = texts("claude", ListedServer("home", (), "y" * 5_000))
    assert said == "## home\n" + "y" * 4_096 + "… [truncated]"


def test_claude_code_names_the_tools_that_it_keeps_back_except_those_always_loaded():
    server = ListedServer("home", (PAINT, FOR_APPS, LOADED))
    loaded, names = texts("claude", server, ListedServer("away", (PAINT,)), defers=True)
    assert json.loads(loaded)["name"] == "mcp__home__find"
    assert names == "mcp__home__paint-wall\nmcp__away__paint-wall"


def test_tools_for_apps_are_left_out_by_the_programs_that_do_so():
    server = ListedServer("home", (PAINT, FOR_APPS))
    kept = {program: any("panel" in text for text in texts(program, server)) for program in PROGRAMS}
    assert [program for program, is_kept in kept.items() if not is_kept] == ["claude", "codex"]
    assert format_definition("codex", "home", FOR_APPS) == ""


def test_codex_keeps_part_of_a_schema():
    assert sent("codex") == {
        "type": "function",
        "name": "paint_wall",
        "description": "Paints a wall.",
        "strict": False,
        "parameters": {
            "type": "object",
            "properties": {
                "free": {},
                "kind": {"type": "string", "enum": ["full"]},
                "note": {"type": ["string", "null"]},
                "rows": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                "size": {"type": "integer", "description": "How many"},
            },
            "required": ["size"],
        },
    }


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ({"required": ["a"]}, "object"),
        ({"additionalProperties": True}, "object"),
        ({"items": {"type": "number"}}, "array"),
        ({"format": "date"}, "string"),
        ({"maximum": 4}, "number"),
    ],
)
def test_codex_infers_types(schema: dict[str, Json], type_: str):
    assert codex(schema)["type"] == type_


def test_codex_keeps_the_definitions_that_are_used():
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/used"}},
        "$defs": {
            "used": {"type": "object", "properties": {"b": {"$ref": "#/$defs/second"}}},
            "second": {"type": "string", "pattern": "x"},
            "unused": {"type": "string"},
        },
    }
    assert codex(schema)["$defs"] == {
        "used": {"type": "object", "properties": {"b": {"$ref": "#/$defs/second"}}},
        "second": {"type": "string"},
    }


def deep(width: int, text: int) -> dict[str, Json]:
    leaves: dict[str, Json] = {f"leaf{number}": {"type": "string"} for number in range(width)}
    inner: Json = {"type": "object", "properties": {"inner": {"type": "object", "properties": leaves}}}
    return {
        "type": "object",
        "description": "d" * text,
        "properties": {"a": {"type": "object", "properties": {"b": inner}}},
    }


def test_codex_reduces_a_large_schema_only_as_far_as_needed():
    assert codex(deep(10, 4_000))["description"] == "d" * 4_000
    undescribed = codex(deep(10, 6_000))
    assert "description" not in undescribed
    b = undescribed["properties"]["a"]["properties"]["b"]
    assert len(b["properties"]["inner"]["properties"]) == 10
    reduced = codex(deep(1_000, 10))
    assert reduced["properties"]["a"]["properties"]["b"] == {"type": "object", "properties": {"inner": {}}}


def test_codex_empties_references_and_alternatives_of_a_large_schema():
    many: dict[str, Json] = {f"name{number}": {"type": "string", "enum": ["a" * 40]} for number in range(100)}
    referring = codex(
        {
            "type": "object",
            "properties": {"x": {"$ref": "#/$defs/t"}},
            "$defs": {"t": {"type": "object", "properties": many}},
        }
    )
    assert referring == {"type": "object", "properties": {"x": {}}}
    flat: Json = [{"type": "string", "enum": ["b" * 40]} for _ in range(120)]
    assert codex({"type": "object", "properties": {"y": {"anyOf": flat}}}) == {
        "type": "object",
        "properties": {"y": {}},
    }


def test_codex_puts_instructions_into_the_namespace():
    said, plain = texts("codex", ListedServer("a-b", (), "Be kind."), ListedServer("c", ()))
    assert json.loads(said) == {"type": "namespace", "name": "mcp__a_b", "description": "Be kind.", "tools": []}
    assert json.loads(plain)["description"] == "Tools in the mcp__c namespace."


def test_gemini_cli_adds_a_property_and_rewrites_types_that_may_be_null():
    said = sent("gemini")
    properties = said["parametersJsonSchema"]["properties"]
    assert said["name"] == "mcp_home-tools_paint-wall"
    assert properties.pop("wait_for_previous")["type"] == "boolean"
    assert properties.pop("note") == {"type": "string", "nullable": True, "maxLength": 9}
    assert {**SCHEMA["properties"], **properties} == SCHEMA["properties"]  # type: ignore[dict-item]


def test_opencode_closes_a_schema():
    said = sent("opencode")
    assert said["function"]["name"] == "home-tools_paint-wall"
    assert said["function"]["parameters"] == {**SCHEMA, "additionalProperties": False}
    is_open = Tool(name="open", input_schema={"type": "object", "additionalProperties": True})
    assert sent("opencode", is_open)["function"]["parameters"]["additionalProperties"] is True


def test_qwen_code_lists_tools_with_the_first_line_of_their_descriptions():
    tools = (
        Tool(name="short", description='\n Says  "hi".\n\nMore of it.', input_schema={}),
        Tool(name="long", description="z" * 200, input_schema={}),
    )
    said, listed = texts("qwen", ListedServer("home", tools, "Be kind."), defers=True)
    assert said.endswith("### home\nBe kind.")
    assert listed.split("\n")[-3:] == [
        "#### home",
        '- "mcp__home__short": "Says \\"hi\\"."',
        f'- "mcp__home__long": "{"z" * 157}..."',
    ]


def test_a_program_without_a_rule_sends_name_description_and_schema():
    assert sent("cursor") == {"name": "paint-wall", "description": "Paints a wall.", "inputSchema": SCHEMA}
    assert texts("cursor", ListedServer("home", (PAINT,), "Be kind."), defers=True)[0] == "Be kind."


REFERRED: dict[str, Json] = {"type": "object", "properties": {"b": {"$ref": "#/definitions/second"}}}


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        ({"properties": {"a": True, "b": False}}, {"a": {"type": "string"}, "b": {"type": "string"}}),
        ({"properties": {"a": {"type": "date", "enum": ["x"]}}}, {"a": {"type": "string", "enum": ["x"]}}),
        ({"properties": {"a": {"type": ["date", "null"]}}}, {"a": {"type": "null"}}),
        ({"properties": {"a": {"type": "date"}}}, {"a": {}}),
        ({"properties": {"a": {"prefixItems": []}}}, {"a": {"type": "array", "items": {"type": "string"}}}),
        ({"properties": {"a": {"type": "object"}}}, {"a": {"type": "object", "properties": {}}}),
        ({"properties": {"a": {"exclusiveMinimum": 1}}}, {"a": {"type": "number"}}),
        ({"properties": {"a": {"enum": ["x"], "minimum": 1}}}, {"a": {"type": "string", "enum": ["x"]}}),
        ({"properties": {"a": {"anyOf": [{"maximum": 1}]}}}, {"a": {"anyOf": [{"type": "number"}]}}),
        ({"properties": {"a": {"oneOf": [{"maximum": 1}]}}}, {"a": {"oneOf": [{"type": "number"}]}}),
        ({"properties": {"a": {"allOf": [True], "title": "t"}}}, {"a": {"allOf": [{"type": "string"}]}}),
        ({"properties": {"a": {"$ref": "#/x"}}}, {"a": {"$ref": "#/x"}}),
        (
            {"properties": {"a": {"additionalProperties": {"maximum": 1}}}},
            {"a": {"type": "object", "properties": {}, "additionalProperties": {"type": "number"}}},
        ),
        (
            {"properties": {"a": {"additionalProperties": False}}},
            {"a": {"type": "object", "properties": {}, "additionalProperties": False}},
        ),
    ],
)
def test_codex_keeps_of_each_property_what_it_knows(schema: dict[str, Json], kept: dict[str, Json]):
    assert codex(schema) == {"type": "object", "properties": kept}


@pytest.mark.parametrize(
    ("reference", "kept"),
    [
        ("#/definitions/first", {"first", "second"}),
        ("#/definitions/second", {"second"}),
        ("#/definitions/first/properties/b", {"first", "second"}),
        ("#/definitions", set()),
        ("x/definitions/first", set()),
        ("#/other/first", set()),
        ("#/definitions/none", set()),
    ],
)
def test_codex_keeps_the_definitions_that_a_reference_leads_to(reference: str, kept: set[str]):
    tables: dict[str, Json] = {"first": REFERRED, "second": {"type": "string"}, "third": {"type": "string"}}
    found = codex({"properties": {"a": {"items": {"$ref": reference}}}, "definitions": tables})
    assert set(found.get("definitions", {})) == kept
    assert ("definitions" in found) is bool(kept)


def test_codex_reduces_a_schema_from_5001_bytes_on():
    room = 5_000 - len(json.dumps(codex({"type": "object", "description": ""}), separators=(",", ":")))
    for letters, is_kept in ((room, True), (room + 1, False)):
        assert ("description" in codex({"type": "object", "description": "d" * letters})) is is_kept


def test_codex_empties_objects_from_the_third_level_on_and_keeps_plain_values():
    wide: dict[str, Json] = {f"leaf{number}": {"type": "string"} for number in range(300)}
    third: dict[str, Json] = {
        "plain": {"type": "string"},
        "deep": {"type": "object", "properties": wide},
        "list": {"type": "array", "items": {"type": "string"}},
    }
    schema: dict[str, Json] = {"properties": {"a": {"properties": {"b": {"properties": third}}}}}
    b = codex(schema)["properties"]["a"]["properties"]["b"]
    assert b == {"type": "object", "properties": {"deep": {}, "list": {}, "plain": {"type": "string"}}}


@pytest.mark.parametrize(
    ("types", "said"),
    [
        (["null", "string"], {"type": "string", "nullable": True}),
        (["string", "number"], {"type": ["string", "number"]}),
        (["string", "number", "null"], {"type": ["string", "number", "null"]}),
        ("null", {"type": "null"}),
    ],
)
def test_gemini_cli_rewrites_two_types_of_which_one_is_null(types: Json, said: dict[str, Json]):
    schema: dict[str, Json] = {"items": [{"type": types}], "properties": "odd"}
    found = sent("gemini", Tool(name="any", input_schema=schema))["parametersJsonSchema"]
    assert found["items"] == [said]
    assert list(found["properties"]) == ["wait_for_previous"]


@pytest.mark.parametrize(
    ("extra", "is_left_out"),
    [
        ({"_meta": {"ui": {"visibility": ["app"]}}}, True),
        ({"_meta": {"ui": {"visibility": []}}}, True),
        ({"_meta": {"ui": {"visibility": ["app", "model"]}}}, False),
        ({"_meta": {"ui": {"visibility": "app"}}}, False),
        ({"_meta": {"ui": "app"}}, False),
        ({"_meta": "ui"}, False),
        ({}, False),
    ],
)
def test_a_tool_is_for_apps_where_its_visibility_leaves_models_out(extra: dict[str, Json], *, is_left_out: bool):
    tool = Tool(name="panel", input_schema={}, extra=extra)
    assert (format_definition("claude", "home", tool) == "") is is_left_out
    assert (texts("claude", ListedServer("home", (tool,))) == []) is is_left_out
    assert format_definition("gemini", "home", tool)


def test_a_tool_is_always_loaded_only_where_its_mark_is_true():
    tools = [Tool(name=f"t{n}", input_schema={}, extra=extra) for n, extra in enumerate(({}, {"_meta": 3}))]
    tools += [
        Tool(name=f"always{n}", input_schema={}, extra={"_meta": {"anthropic/alwaysLoad": said}})
        for n, said in enumerate((True, False, "true"))
    ]
    loaded, names = texts("claude", ListedServer("home", tools), defers=True)
    assert json.loads(loaded)["name"] == "mcp__home__always0"
    assert names.split("\n") == [f"mcp__home__{name}" for name in ("t0", "t1", "always1", "always2")]
    assert texts("claude", ListedServer("home", (LOADED,)), defers=True) == [
        format_definition("claude", "home", LOADED)
    ]


def test_texts_are_cut_only_above_their_limits():
    for letters, is_cut in ((4_096, False), (4_097, True)):
        tool = Tool(name="long", description="x" * letters, input_schema={})
        assert sent("claude", tool)["description"].endswith("[truncated]") is is_cut
    for letters, is_cut in ((160, False), (161, True)):
        tool = Tool(name="long", description="x" * letters, input_schema={})
        assert texts("qwen", ListedServer("home", (tool,)), defers=True)[0].endswith('..."') is is_cut


def test_each_program_frames_instructions_in_its_own_way_and_nothing_where_there_are_none():
    kind, silent = ListedServer("a-b", (), "Be kind.\nBe brief."), ListedServer("a-b", ())
    assert texts("gemini", kind) == [
        (
            "The following are instructions provided by the tool server 'a-b':\n---[start of server instructions]---\n"
            "Be kind.\nBe brief.\n---[end of server instructions]---"
        )
    ]
    assert texts("opencode", kind) == ['  <server name="a-b">\n    Be kind.\n    Be brief.\n  </server>']
    assert texts("claude", kind) == ["## a-b\nBe kind.\nBe brief."]
    assert texts("cursor", kind) == ["Be kind.\nBe brief."]
    assert [texts(program, silent) for program in ("gemini", "opencode", "claude", "qwen", "cursor")] == [[]] * 5


def test_a_tool_without_a_description_has_none_or_an_empty_one():
    bare = Tool(name="do it", input_schema={})
    assert [sent(program, bare).get("description") for program in ("claude", "codex")] == ["", ""]
    assert "description" not in sent("gemini", bare)
    assert sent("opencode", bare)["function"] == {
        "name": "home-tools_do_it",
        "parameters": {"additionalProperties": False},
    }
    assert texts("qwen", ListedServer("home", (bare,)), defers=True)[0].endswith('- "mcp__home__do it": ""')
