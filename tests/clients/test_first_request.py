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
