from typing import Any

import pytest

from ullage.gateway import one_line, signature
from ullage.gateway.slim import slim
from ullage.tool import Tool

pytestmark = pytest.mark.requirement("S1:budget")

Value = Any
"""Any JSON."""


DEFINITIONS: dict[str, Any] = {
    "a/b~c": {"type": "string"},
    "list": {"anyOf": [{"type": "string"}, {"type": "number"}]},
    **{f"chain{at}": {"$ref": f"#/$defs/chain{at + 1}"} for at in range(20)},
    "chain20": {"type": "boolean"},
}


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
        ({"enum": list("abcdef")}, '"a"|"b"|"c"|"d"|"e"|"f"'),
        ({"enum": list("abcdefg")}, '"a"|"b"|"c"|"d"|"e"|"f"|"g"'),
        ({"enum": list("abcdefgh")}, '"a"|"b"|"c"|"d"|"e"|"f"|…'),
        ({"const": 3, "enum": [4]}, "3"),
        ({"const": "x" * 28}, '"' + "x" * 28 + '"'),
        ({"const": "x" * 29}, '"' + "x" * 28 + "…"),
        ({"const": {"a": [1]}}, '{"a":[1]}'),
        ({"const": {"a": "x" * 14}}, '{"a":"' + "x" * 14 + '"}'),
        ({"const": {"a": "x" * 15}}, "{…}"),
        ({"const": ["x" * 15]}, '["' + "x" * 15 + '"]'),
        ({"const": ["x" * 16]}, "[…]"),
        ({"enum": 3, "type": "string"}, "string"),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, "string|null"),
        ({"anyOf": [{"type": kind} for kind in ("string", "number", "null", "integer", "boolean")]},
         "string|number|null|integer|boolean"),
        ({"anyOf": [{"type": kind} for kind in ("string", "number", "null", "integer", "boolean", "array")]},
         "string|number|null|integer|…"),
        ({"anyOf": [{"type": "string"}], "items": {"type": "number"}}, "number[]"),
        ({"anyOf": [{"type": "string"}], "properties": {"a": {}}}, "{a?: any}"),
        ({"anyOf": "odd"}, "any"),
        ({"type": "array", "items": True}, "any[]"),
        ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "(string|null)[]"),
        ({"type": "object", "additionalProperties": {}}, "object"),
        ({"type": "object", "additionalProperties": True}, "object"),
        ({"type": "object", "additionalProperties": {"type": ["string", "null"]}}, "{[key]: string|null}"),
        ({"type": "object", "properties": {}, "additionalProperties": {"type": "number"}}, "{[key]: number}"),
        ({"properties": {"a": {"properties": {"b": {"properties": {}}}}}}, "{a?: {b?: object}}"),
        ({"properties": {"a": {"properties": {"b": {"properties": {"c": {}}}}}}}, "{a?: {b?: {…}}}"),
        ({"$ref": "#/$defs/a~1b~0c"}, "string"),
        ({"$ref": "#/$defs/list/anyOf/1"}, "number"),
        ({"$ref": "#/$defs/list/anyOf/2"}, "…"),
        ({"$ref": "#/$defs/list/anyOf/x"}, "…"),
        ({"$ref": "#/$defs/list/anyOf"}, "…"),
        ({"$ref": "#/$defs/chain1"}, "boolean"),
        ({"$ref": "#/$defs/chain0"}, "…"),
        ({"$ref": 7, "type": "string"}, "string"),
    ],
)  # fmt: skip
def test_a_type_is_written_short(schema: Value, written: str):
    assert parameter(schema, DEFINITIONS) == written


def test_an_optional_parameter_that_is_only_null_says_so():
    assert signature(tool({"a": {"type": "null"}, "b": {"type": ["null", "string"]}})) == "paint(a?: null, b?: string)"


@pytest.mark.parametrize(("count", "ending"), [(15, "p14?: any)"), (16, "p14?: any, …1 more)"), (17, "…2 more)")])
def test_up_to_15_optional_parameters_are_named(count: int, ending: str):
    line = signature(tool({f"p{number}": {} for number in range(count)}))
    assert line.endswith(ending)
    assert line.count("?: ") == min(count, 15)


def test_what_is_required_and_not_described_is_not_named():
    assert signature(tool({"a": {}}, "b", "a")) == "paint(a: any)"
    odd = Tool(name="paint", input_schema={"properties": {"a": {}}, "required": [3, "a"]}, title="Paint it. Now.")
    assert signature(odd) == "paint(a: any) — Paint it"


@pytest.mark.parametrize("key", ["anyOf", "oneOf", "allOf", "patternProperties"])
def test_parameters_that_are_described_in_another_way_are_hinted_at(key: str):
    assert signature(Tool(name="paint", input_schema={key: []})) == "paint(…)"
    assert signature(Tool(name="paint", input_schema={"title": "x"})) == "paint()"


def test_a_root_that_only_refers_is_followed_once_and_not_where_it_has_properties():
    place: dict[str, Any] = {"$ref": "#/$defs/p", "$defs": {"p": {"properties": {"a": {}}}}}
    assert signature(Tool(name="t", input_schema=place)) == "t(a?: any)"
    assert signature(Tool(name="t", input_schema={**place, "properties": {"b": {}}})) == "t(b?: any)"
    assert signature(Tool(name="t", input_schema={**place, "$ref": "#/$defs/q"})) == "t(…)"


@pytest.mark.parametrize(("types", "typed"), [(2_000, 2_000), (2_001, 2_000)])
def test_two_thousand_types_are_written(types: int, typed: int):
    names = [f"p{at}" for at in range(types)]
    said = signature(tool({name: {"type": "string"} for name in names}, *names))
    assert said.count(": string") == typed
    assert said.count(": …") == types - typed


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
