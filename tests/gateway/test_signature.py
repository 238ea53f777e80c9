from typing import Any

import pytest

from ullage.gateway import one_line, signature
from ullage.gateway.slim import slim
from ullage.tool import Tool

pytestmark = pytest.mark.requirement("S1:budget")

Value = Any
"""Any JSON."""


def tool(
    properties: dict[str, Any],
    *required: str,
    description: str | None = None,
    definitions: dict[str, Any] | None = None,
) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(required), "$defs": definitions or {}}
    return Tool(name="paint", description=description, input_schema=schema)


def parameter(schema: Value, definitions: dict[str, Any] | None = None) -> str:
    return signature(tool({"a": schema}, "a", definitions=definitions)).removeprefix("paint(a: ").removesuffix(")")


def test_a_signature_names_what_is_needed_first_and_what_it_is_for():
    properties = {
        "coats": {"type": "integer"},
        "wall": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
    }
    line = signature(tool(properties, "wall", description="Paint a wall. Then wait."))
    assert line == "paint(wall: string, coats?: integer, tags?: string[]) — Paint a wall"


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "string"}, "string"),
        ({}, "any"),
        (True, "any"),
        ({"enum": ["red", "blue", 3, None]}, '"red"|"blue"|3|null'),
        ({"enum": list("abcdefghij")}, '"a"|"b"|"c"|"d"|"e"|"f"|…'),
        ({"const": "x" * 100}, '"' + "x" * 28 + "…"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string|null"),
        ({"type": ["string", "array"], "items": {"type": "number"}}, "string|number[]"),
        ({"type": "array", "items": {"enum": [1, 2]}}, "(1|2)[]"),
        ({"type": "array"}, "any[]"),
        ({"items": {"type": "string"}}, "string[]"),
        ({"type": "object"}, "object"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "{[key]: number}"),
        ({"properties": {"x": {"type": "number"}, "y": {}}, "required": ["x"]}, "{x: number, y?: any}"),
        ({"anyOf": [{"type": "number", "minimum": n} for n in (1, 2)]}, "number"),
        ({"$ref": "#/$defs/nowhere"}, "…"),
    ],
)
def test_a_type_is_written_short(schema: Value, written: str):
    assert parameter(schema) == written


def test_that_an_optional_parameter_may_be_null_is_no_news():
    assert signature(tool({"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}})) == "paint(a?: string)"


def test_a_definition_is_written_where_it_is_used_and_not_without_end():
    tree = {"type": "object", "properties": {"label": {"type": "string"}, "left": {"$ref": "#/$defs/Tree"}}}
    assert parameter({"$ref": "#/$defs/Tree"}, {"Tree": tree}) == "{label?: string, left?: …}"


def test_a_reference_into_a_list_is_followed():
    first = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    line = signature(tool({"a": first, "b": {"$ref": "#/properties/a/anyOf/1"}, "c": {"$ref": "#/type/x"}}, "a"))
    assert line == "paint(a: integer|string, b?: string, c?: …)"


def test_objects_deep_inside_are_only_hinted_at():
    schema: dict[str, Any] = {"type": "string"}
    for name in "dcb":
        schema = {"type": "object", "properties": {name: schema}}
    assert parameter(schema) == "{b?: {c?: {…}}}"


def test_of_many_optional_parameters_the_rest_is_counted():
    line = signature(tool({f"p{number}": {"type": "string"} for number in range(20)}, "p19"))
    assert line.startswith("paint(p19: string, p0?: string, ")
    assert line.endswith(", …4 more)")


def test_parameters_that_stand_elsewhere_are_hinted_at():
    assert signature(Tool(name="paint", input_schema={"type": "object", "anyOf": [{"required": ["a"]}]})) == "paint(…)"
    referring = {"$ref": "#/definitions/P", "definitions": {"P": {"properties": {"a": {"type": "string"}}}}}
    assert signature(Tool(name="paint", input_schema=referring)) == "paint(a?: string)"


def test_a_slimmed_tool_has_the_same_signature():
    properties = {"a": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}], "title": "A"}, "b": {"type": "string"}}
    whole = tool(properties, "b", definitions={"A": {"type": "string", "enum": ["x", "y"]}})
    assert signature(slim(whole)) == signature(whole) == 'paint(b: string, a?: "x"|"y")'


@pytest.mark.parametrize(
    ("description", "line"),
    [
        (None, "paint"),
        ("", "paint"),
        ("Paint walls, e.g. in red. Slowly.", "paint — Paint walls, e.g. in red"),
        ("\n  ## Paint a\n  wall\n\nMore", "paint — Paint a wall"),
        ("Paint a wall\nReturns:\n  a wall", "paint — Paint a wall"),
        ("Paint a wall:\n- red\n- blue", "paint — Paint a wall"),
        ("Version 2.5 of paint! Really", "paint — Version 2.5 of paint"),
        ("壁を塗る。そして待つ。", "paint — 壁を塗る"),
    ],
)
def test_one_line_is_name_and_first_sentence(description: str | None, line: str):
    assert one_line(tool({}, description=description)) == line


def test_a_sentence_without_end_is_cut_at_a_word():
    line = one_line(tool({}, description="word " * 100))
    assert line.endswith(" word…")
    assert len(line) <= len("paint — ") + 120


@pytest.mark.parametrize("schema", [{}, {"properties": 3}, {"properties": {"a": 3}}, {"$ref": 7}, {"required": "a"}])
def test_a_broken_schema_still_has_a_signature(schema: dict[str, Any]):
    assert signature(Tool(name="paint", input_schema=schema)).startswith("paint(")


def test_definitions_that_unfold_without_end_are_cut():
    # Each refers twice to the next: written out, there would be two to the power of sixty types.
    definitions: dict[str, Any] = {
        f"d{at}": {"anyOf": [{"$ref": f"#/$defs/d{at + 1}"}, {"items": {"$ref": f"#/$defs/d{at + 1}"}}]}
        for at in range(60)
    }
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}
    assert signature(Tool(name="t", input_schema=schema)).startswith("t(a?: ")


def test_of_thousands_of_required_parameters_all_are_named_and_the_first_have_types():
    names = [f"p{at}" for at in range(20_000)]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}
    said = signature(Tool(name="t", input_schema=schema))
    assert "p0: string, " in said
    assert said.endswith("p19999: …)")
