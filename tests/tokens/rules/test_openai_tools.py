from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.messages import ToolDefinition
from ullage.tokens.rules.openai import MOST_SCHEMAS, is_familiar, render_answer_format, render_section, render_tool
from ullage.tool import Json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["string", "object", "array", "#/$defs/a", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "items", "anyOf", "$ref", "$defs", "a", "enum", "required", "default"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def tool(properties: dict[str, Json], **more: Json) -> ToolDefinition:
    return ToolDefinition(name="act", schema={"type": "object", "properties": properties, **more})


def rendered(properties: dict[str, Json], **more: Json) -> str:
    return render_tool(tool(properties, **more))


def text(block: str) -> str:
    return dedent(block).strip()


@pytest.mark.requirement("S3:overheads")
def test_properties_without_a_comment_share_a_line() -> None:
    shown = rendered({"x": {"type": "integer"}, "on": {"type": "boolean"}}, required=["x"])
    assert shown == "type act = (_: { x: number, on?: boolean }) => any;"


@pytest.mark.requirement("S3:overheads")
def test_a_comment_puts_each_property_on_a_line_of_its_own() -> None:
    shown = rendered({"city": {"type": "string", "title": "City", "description": "Where"}, "day": {"type": "string"}})
    assert shown == text(
        """
        type act = (_: {
        // City
        //
        // Where
        city?: string,
        day?: string,
        }) => any;
        """
    )


@pytest.mark.requirement("S3:overheads")
def test_titles_can_be_left_out_for_old_models() -> None:
    shown = render_tool(tool({"x": {"type": "string", "title": "X"}}), titles=False)
    assert shown == "type act = (_: { x?: string }) => any;"


@pytest.mark.requirement("S3:overheads")
def test_a_description_loses_its_blank_lines_and_its_indentation() -> None:
    shown = render_tool(ToolDefinition(name="act", description="Acts.\n\n    Twice.\n"))
    assert shown == "// Acts.\n// Twice.\ntype act = () => any;"


@pytest.mark.requirement("S3:overheads")
def test_choices_defaults_and_limits_are_shown() -> None:
    properties: dict[str, Json] = {
        "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
        "days": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
    }
    assert rendered(properties) == text(
        """
        type act = (_: {
        unit?: "c" | "f", // default: c
        days?: number, // minimum: 1 maximum: 9 default: 3
        }) => any;
        """
    )


@pytest.mark.requirement("S3:overheads")
def test_lists_of_plain_things_are_short_and_lists_of_described_things_long() -> None:
    described: Json = {"type": "object", "properties": {"n": {"type": "number", "description": "How many"}}}
    properties: dict[str, Json] = {
        "tags": {"type": "array", "items": {"type": "string"}},
        "rows": {"type": "array", "items": described},
    }
    assert rendered(properties) == text(
        """
        type act = (_: {
        tags?: string[],
        rows?: Array<
        {
        // How many
        n?: number,
        }
        >,
        }) => any;
        """
    )


@pytest.mark.requirement("S3:overheads")
def test_a_union_stays_on_its_line_unless_it_is_described() -> None:
    union: list[Json] = [{"type": "string"}, {"type": "null"}]
    assert rendered({"a": {"anyOf": union}}) == "type act = (_: { a?: string | null }) => any;"
    assert rendered({"a": {"type": ["string", "null"], "description": "D"}}) == text(
        """
        type act = (_: {
        // D
        a?:
         | string // D
         | null // D
        ,
        }) => any;
        """
    )


@pytest.mark.requirement("S3:overheads")
def test_references_are_followed_and_a_schema_within_itself_ends() -> None:
    node: Json = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    definitions: Json = {"Node": node}
    shown = rendered({"first": {"$ref": "#/$defs/Node"}}, **{"$defs": definitions})
    assert shown == "type act = (_: { first?: { next?: any } }) => any;"


@pytest.mark.requirement("S3:overheads")
def test_references_that_multiply_end_too() -> None:
    def twice(name: str) -> Json:
        return {"type": "object", "properties": {side: {"$ref": f"#/$defs/{name}"} for side in ("l", "r")}}

    definitions: Json = {f"d{level}": twice(f"d{level + 1}") for level in range(40)}
    shown = rendered({"top": {"$ref": "#/$defs/d0"}}, **{"$defs": definitions})
    assert shown.count("any") <= MOST_SCHEMAS


@pytest.mark.requirement("S3:overheads")
def test_deep_schemas_end() -> None:
    deep: Json = {"type": "string"}
    for _ in range(400):
        deep = {"type": "array", "items": deep}
    assert "any" in rendered({"deep": deep})
    assert not is_familiar(deep)
    render_answer_format("deep", None, deep)


@pytest.mark.requirement("S3:overheads")
def test_the_section_is_one_namespace() -> None:
    section = render_section(["type a = () => any;", "type b = () => any;"])
    assert section.startswith("Tools\n\n## functions\n\nnamespace functions {\n\ntype a")
    assert section.endswith("type b = () => any;\n\n} // namespace functions")


@pytest.mark.requirement("S3:overheads")
def test_an_answer_format_shows_no_keyword_that_is_enforced() -> None:
    schema: Json = {
        "type": "object",
        "properties": {"format": {"type": "string", "format": "date", "maxLength": 3}},
        "required": ["format"],
        "additionalProperties": False,
    }
    shown = render_answer_format("day", "A day", schema)
    body = '{"type":"object","properties":{"format":{"type":"string"}}}'
    assert shown == f"# Response Formats\n\n## day\n\n// A day\n{body}"


@pytest.mark.requirement("S3:overheads")
def test_a_schema_is_familiar_when_every_keyword_in_it_is() -> None:
    assert is_familiar({"type": "object", "properties": {"pattern": {"type": "string", "title": "P"}}})
    assert not is_familiar({"type": "object", "properties": {"a": {"type": "string", "pattern": "x+"}}})
    assert not is_familiar({"type": "array", "items": {"anyOf": []}})


@pytest.mark.requirement("S3:overheads")
@given(st.dictionaries(st.sampled_from(["a", "b", "type", "not a name"]), JSON, max_size=3), JSON)
def test_no_schema_makes_the_rendering_fail(properties: dict[str, Json], definitions: Json) -> None:
    schema: dict[str, Json] = {"properties": properties, "$defs": definitions}
    render_tool(ToolDefinition(name="act", schema=schema))
    render_answer_format("act", None, schema)
    is_familiar(schema)
