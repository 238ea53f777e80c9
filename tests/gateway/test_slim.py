from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator

from ullage.gateway.slim import slim
from ullage.gateway.slim.schema_walk import is_name, is_said_in, repeats, spaced
from ullage.gateway.slim.shrink_definition import Parts, share
from ullage.tool import Tool

pytestmark = pytest.mark.requirement("S1:surface")

Value = Any
"""Any JSON."""
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


def slimmed(schema: dict[str, Any], description: str | None = "Does something") -> dict[str, Any]:
    return dict(slim(Tool(name="paint_wall", description=description, input_schema=schema)).input_schema)


def of_property(schema: Value, name: str = "colour") -> Value:
    """What a property's schema becomes inside a tool."""
    whole = slimmed({"type": "object", "properties": {name: schema}, "required": [name]})
    return whole["properties"][name]


def test_what_is_for_clients_is_not_shown_to_the_model():
    tool = Tool(
        name="paint",
        description="  Paints a wall.\n\n\n\n    Twice,   if asked.  ",
        title="Paint",
        input_schema={"type": "object", "properties": {}, "$schema": DRAFT_2020, "x-order": 3},
        output_schema={"type": "object"},
        annotations={"readOnlyHint": False},
        aliases=("paint_it",),
        extra={"_meta": {"a": 1}, "icons": []},
    )
    assert slim(tool) == Tool(
        name="paint",
        description="Paints a wall.\n\nTwice, if asked.",
        input_schema={"type": "object", "properties": {}},
        aliases=("paint_it",),
    )


def test_a_title_is_kept_where_it_is_all_there_is_to_read():
    assert slim(Tool(name="p", title="Paint a wall", input_schema={"type": "object"})).title == "Paint a wall"


@pytest.mark.parametrize("title", ["Wall Colour", "Wallcolour", "wall_colour", "Colour"])
def test_a_title_that_repeats_the_name_goes(title: str):
    assert of_property({"type": "string", "title": title}, "wallColour") == {"type": "string"}


def test_a_title_that_says_more_than_the_name_stays():
    schema = {"type": "string", "title": "RAL number"}
    assert of_property(schema) == schema


def test_a_property_named_like_a_keyword_is_a_property():
    names = ("title", "$schema", "description", "x-a", "default", "$ref", "$defs", "enum", "required", "anyOf")
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": ["title"]}
    assert slimmed(schema) == schema


@pytest.mark.parametrize("text", ["The colour.", "colour", "", "  \n "])
def test_a_description_that_says_only_the_name_goes(text: str):
    assert of_property({"type": "string", "description": text}) == {"type": "string"}


def test_a_description_that_shows_a_form_stays():
    schema = {"type": "string", "description": "owner/repo"}
    assert of_property(schema, "owner_repo") == schema


def test_a_parameter_described_in_the_tools_description_is_not_described_twice():
    text = "Paints.\n\nArgs:\n    colour (str): Name of the\n        colour\n    coats: How many"
    properties = {
        "colour": {"type": "string", "description": "Name of the colour"},
        "coats": {"type": "integer", "description": "How many, at most 3"},
    }
    kept = slimmed({"type": "object", "properties": properties}, text)["properties"]
    assert kept == {"colour": {"type": "string"}, "coats": properties["coats"]}


def test_indentation_inside_a_fenced_block_stays():
    text = "Runs code:\n```\nif a:\n    b  = 1\n```"
    assert slim(Tool(name="run", description=text, input_schema={"type": "object"})).description == text


@pytest.mark.parametrize(
    "nothing",
    [
        {"additionalProperties": True},
        {"additionalProperties": {}},
        {"required": []},
        {"properties": {}},
        {"propertyNames": {"type": "string"}},
        {"minProperties": 0},
        {"items": {}},
        {"minItems": 0},
        {"minLength": 0},
        {"uniqueItems": False},
        {"deprecated": False},
        {"$comment": "generated"},
    ],
)
def test_what_everything_passes_goes(nothing: dict[str, Any]):
    assert of_property({"type": "object", **nothing}) == {"type": "object"}


@pytest.mark.parametrize(
    "something",
    [
        {"additionalProperties": False},
        {"additionalProperties": {"type": "string"}},
        {"minimum": -9007199254740991},
        {"minItems": 1},
        {"pattern": "^a"},
        {"format": "date"},
        {"default": 0},
        {"default": False},
        {"examples": ["red"]},
        {"propertyNames": {"pattern": "^a"}},
        {"not": {"const": 1}},
        {"unknown": 1},
    ],
)
def test_what_changes_a_call_or_helps_to_make_one_stays(something: dict[str, Any]):
    schema = {"type": "object", **something}
    assert of_property(schema) == schema


def test_a_null_default_goes_where_the_property_may_be_left_out():
    properties = {"a": {"type": "string", "default": None}, "b": {"type": "string", "default": None}}
    kept = slimmed({"type": "object", "properties": properties, "required": ["b"]})["properties"]
    assert kept == {"a": {"type": "string"}, "b": properties["b"]}


@pytest.mark.parametrize(
    ("choice", "shorter"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": ["string", "null"]}),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"type": ["string", "null"]}),
        (
            {"anyOf": [{"type": "string", "minLength": 2}, {"type": "null"}]},
            {"type": ["string", "null"], "minLength": 2},
        ),
        ({"anyOf": [{"type": "string", "enum": ["a", "b"]}, {"type": "null"}]}, {"enum": ["a", "b", None]}),
        ({"anyOf": [{"const": "a"}, {"const": "b", "type": "string"}]}, {"enum": ["a", "b"]}),
        ({"anyOf": [{"not": {}}, {"type": "string"}]}, {"type": "string"}),
        (
            {"anyOf": [{"anyOf": [{"type": "string"}, {"type": "number"}]}, {"type": "null"}]},
            {"type": ["string", "number", "null"]},
        ),
        ({"allOf": [{"type": "string"}], "description": "In words"}, {"type": "string", "description": "In words"}),
        ({"type": ["string"]}, {"type": "string"}),
        ({"type": "string", "const": "a"}, {"const": "a"}),
        (
            {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            {"type": ["string", "array"], "items": {"type": "string"}},
        ),
    ],
)
def test_a_choice_is_said_shorter(choice: dict[str, Any], shorter: dict[str, Any]):
    assert of_property(choice) == shorter


@pytest.mark.parametrize(
    "choice",
    [
        {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "number", "maximum": 1}]},
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        {"oneOf": [{"const": 1}, {"const": 1.0}]},
        {"anyOf": [{"type": "string", "description": "A name"}, {"type": "number", "description": "RAL"}]},
        {"anyOf": [{"type": "string", "not": {"const": "a"}}, {"type": "null"}]},
        {"anyOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}]},
        {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"type": "string", "enum": [1, "a"]},
        {"anyOf": [True, {"type": "null"}]},
        {"allOf": [{"type": "string"}, {"minLength": 1}]},
    ],
)
def test_a_choice_that_would_mean_something_else_stays(choice: dict[str, Any]):
    assert of_property(choice) == choice


def test_a_definition_used_once_is_put_in_place():
    definitions = {"Colour": {"title": "Colour", "enum": ["red", "blue"], "type": "string", "description": "RAL"}}
    kept = slimmed(
        {
            "type": "object",
            "properties": {
                "wall": {"anyOf": [{"$ref": "#/$defs/Colour"}, {"type": "null"}], "description": "Its paint"}
            },
            "$defs": {**definitions, "Unused": {"type": "string"}},
        }
    )
    wall = {"enum": ["red", "blue", None], "description": "Its paint\nRAL"}
    assert kept == {"type": "object", "properties": {"wall": wall}}


def test_a_long_definition_used_often_stays_one():
    schema = {
        "type": "object",
        "properties": {name: {"$ref": "#/$defs/Colour"} for name in "abc"},
        "$defs": {"Colour": {"enum": [f"colour number {number}" for number in range(9)]}},
    }
    assert slimmed(schema) == schema


def test_a_definition_that_holds_itself_stays():
    tree = {"type": "object", "properties": {"branches": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}
    schema = {"type": "object", "properties": {"tree": {"$ref": "#/$defs/Tree"}}, "$defs": {"Tree": tree}}
    assert slimmed(schema) == schema


def test_a_schema_may_refer_to_itself_as_a_whole():
    schema = {"type": "object", "properties": {"inner": {"$ref": "#"}, "colour": {"type": "string"}}}
    assert slimmed(schema) == schema


def test_a_shared_part_keeps_clear_of_names_already_taken():
    long = {"enum": [f"colour number {number}" for number in range(20)]}
    other = {"enum": [f"wood number {number}" for number in range(20)]}
    properties = {"a": {"items": long}, "b": {"items": {"anyOf": [long, True]}}, "c": {"properties": {"a": other}}}
    kept = slimmed({"type": "object", "properties": {**properties, "d": {"not": other}}})
    assert kept["$defs"] == {"a": long, "a2": other}


def test_a_reference_into_another_property_survives_a_change_of_its_shape():
    schema = {
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"type": "object", "properties": {"size": {"type": "integer"}}}, {"type": "null"}]},
            "b": {"$ref": "#/properties/a/anyOf/0/properties/size"},
        },
    }
    assert slimmed(schema)["properties"] == {
        "a": {"type": ["object", "null"], "properties": {"size": {"type": "integer"}}},
        "b": {"type": "integer"},
    }


def test_what_a_schema_says_many_times_over_it_says_once():
    date = {"type": "string", "pattern": "^[0-9]{4}-(0[1-9]|1[012])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3])Z$"}
    names = ("first", "second", "third", "fourth", "last")
    properties = {name: {**date, "description": f"Of the {name} coat"} for name in names}
    kept = slimmed({"type": "object", "properties": properties})
    assert kept["$defs"] == {"first": date}
    assert kept["properties"]["last"] == {"$ref": "#/$defs/first", "description": "Of the last coat"}


def test_what_draft_07_ignores_beside_a_reference_does_not_begin_to_count():
    schema = {
        "$schema": DRAFT_7,
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/A", "minLength": 5}},
        "definitions": {"A": {"type": "string"}},
    }
    assert slimmed(schema) == {"type": "object", "properties": {"a": {"type": "string"}}}


def test_what_2020_12_counts_beside_a_reference_goes_on_counting():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A", "minLength": 5}},
        "$defs": {"A": {"type": "string"}},
    }
    assert slimmed(schema) == schema


@pytest.mark.parametrize(
    "odd",
    [
        {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True},
        {"$schema": DRAFT_7, "items": [{"type": "string"}]},
        {"unevaluatedProperties": False, "additionalProperties": True},
        {"$id": "https://example.com/a", "anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"required": ["a"]}}},
        {"properties": {"a": {"$ref": "https://example.com/b"}}},
        {"properties": {"a": {"$ref": "#/nowhere"}}, "$defs": {"b": {}}},
        {"properties": ["broken"], "required": True, "anyOf": {}, "enum": 3, "type": 7},
    ],
)
def test_a_schema_beyond_the_plain_dialects_keeps_its_shape(odd: dict[str, Any]):
    assert slimmed({**odd, "title": "Paint Wall"}) == odd


def test_a_schema_nested_without_end_passes_as_it_is():
    schema: dict[str, Any] = {"type": "string", "title": "S"}
    for _ in range(5_000):
        schema = {"type": "array", "items": schema}
    assert slimmed(schema) is not None


def test_a_long_chain_of_definitions_is_slimmed_all_the_same():
    chain = {f"d{n}": {"type": "array", "items": {"$ref": f"#/$defs/d{n + 1}"}} for n in range(280)}
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/d0"}},
        "$defs": {**chain, "d280": {"type": "null"}},
    }
    assert len(str(slimmed(schema))) < len(str(schema))


VALUES = st.sampled_from([None, True, 0, 1, 1.0, 2.5, "", "a", "bb", [], ["a"], {}, {"a": 1}])
ARGUMENTS = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
CHOICES = st.lists(
    st.fixed_dictionaries({"type": TYPES}, optional={"minimum": st.sampled_from([1, 2]), "minLength": st.just(2)})
    | st.fixed_dictionaries({"const": VALUES}),
    min_size=2,
    max_size=3,
)
LEAVES = st.one_of(
    st.fixed_dictionaries({"anyOf": CHOICES}),
    st.fixed_dictionaries({"oneOf": CHOICES}),
    st.booleans(),
    st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
            "minLength": st.integers(0, 2),
            "minimum": st.sampled_from([0, 1, 2]),
            "minItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "required": st.lists(st.sampled_from("ab"), max_size=2, unique=True),
            "description": st.sampled_from(["A", "Of b"]),
            "title": st.sampled_from(["A", "Other"]),
            "default": VALUES,
        },
    ),
    st.fixed_dictionaries({"enum": st.lists(VALUES, min_size=1, max_size=3)}, optional={"type": TYPES}),
    st.fixed_dictionaries({"const": VALUES}, optional={"type": TYPES}),
    st.fixed_dictionaries(
        {"$ref": st.sampled_from(["#/$defs/a", "#/$defs/b", "#/properties/a"])},
        optional={"minLength": st.just(1), "description": st.just("Referred")},
    ),
)


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    parts: dict[str, st.SearchStrategy[Any]] = {
        "anyOf": several,
        "oneOf": several,
        "allOf": several,
        "not": inner,
        "items": inner,
        "properties": named,
        "additionalProperties": inner,
        "propertyNames": inner,
    }
    one = st.one_of(*(st.fixed_dictionaries({key: part}, optional={"type": TYPES}) for key, part in parts.items()))
    return one | st.fixed_dictionaries({}, optional={**parts, "description": st.just("Of a")})


SCHEMAS = st.recursive(LEAVES, _larger, max_leaves=8)


def _is_circular(schema: Value, open_: tuple[str, ...], root: dict[str, Any]) -> bool:
    """Whether a reference leads back to itself without descending into the argument, which no validator survives."""
    if not isinstance(schema, dict):
        return False
    here = [*schema.get("anyOf", []), *schema.get("oneOf", []), *schema.get("allOf", []), schema.get("not")]
    if (reference := schema.get("$ref")) is not None:
        if reference in open_:
            return True
        _, kind, name = reference.split("/")
        here.append(root[kind][name])
        return any(_is_circular(part, (*open_, reference), root) for part in here)
    return any(_is_circular(part, open_, root) for part in here)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(SCHEMAS, min_size=3, max_size=3),
    st.lists(VALUES | ARGUMENTS, min_size=8, max_size=16),
    st.sampled_from([None, DRAFT_2020, DRAFT_7]),
)
def test_a_slimmed_schema_accepts_and_refuses_what_the_original_does(
    parts: list[Any], arguments: list[Any], dialect: str | None
):
    root = {"type": "object", "properties": {"a": parts[0]}, "$defs": {"a": parts[1], "b": parts[2]}}
    if any(_is_circular(part, (), root) for part in parts):
        return
    original = {"$schema": dialect, **root} if dialect else root
    before = (Draft7Validator if dialect == DRAFT_7 else Draft202012Validator)(original)
    short = slimmed(original)
    readers = [Draft202012Validator(short), *([Draft7Validator(short)] if dialect == DRAFT_7 else [])]
    for argument in [{"a": value} for value in arguments]:
        assert {reader.is_valid(argument) for reader in readers} == {before.is_valid(argument)}
    assert slimmed(short) == short


def pair(number: int) -> dict[str, Any]:
    fields = {f"k{number}_{at}": {"type": "string", "pattern": f"^{number}{at}[a-z]+$"} for at in range(6)}
    return {"type": "object", "properties": fields}


def test_of_a_large_schema_only_the_words_are_looked_at_and_a_very_large_one_passes_as_it_is():
    for number, is_very_large in ((250, False), (1_500, True)):
        properties = {f"p{at}{which}": pair(at) for at in range(number) for which in "ab"}
        schema = {"type": "object", "properties": properties, "$comment": "generated"}
        assert ("$comment" in slimmed(schema)) is is_very_large
        assert slimmed(schema)["properties"] == properties


def test_of_all_that_recurs_only_as_much_is_shared_as_the_steps_allow():
    root: dict[str, Any] = {"type": "object", "properties": {f"p{at}{n}": pair(at) for at in range(20) for n in "ab"}}
    parts = len(root["properties"]) * 7
    assert len(share(Parts(root, {}), steps=parts).definitions) == 1
    assert len(share(Parts(root, {}), steps=parts + 1).definitions) == 2
    assert len(share(Parts(root, {})).definitions) == 20


@pytest.mark.parametrize(
    ("description", "name"),
    [("-" * 190_000 + " z", "-"), ("```\nb" + " " * 190_000 + "a\n```", ""), ("a" * 190_000, "a")],
    ids=["dashes", "spaces", "letters"],
)
def test_a_description_made_to_be_searched_without_end_is_not(description: str, name: str):
    schema = {"type": "object", "properties": {name: {"type": "string", "description": "some words"}}}
    assert slimmed(schema, description) == schema


def test_where_there_are_too_many_parameters_none_is_looked_for_in_the_description():
    properties = {f"p{at}": {"type": "integer", "description": f"Words of {at}"} for at in range(1_200)}
    schema = {"type": "object", "properties": properties}
    said = "".join(f"p{at}: Words of {at}\n" for at in range(1_200))
    assert slimmed(schema, said[:2_000])["properties"]["p0"] == {"type": "integer"}
    assert slimmed(schema, said)["properties"]["p0"] == properties["p0"]


@pytest.mark.parametrize(
    ("whole", "name", "text", "said"),
    [
        ("Paints. colour: Its name", "colour", "Its name", True),
        ("`colour` (`string`, optional) - Its  name in English", "colour", "Its\nname", True),
        ("x_colour: Its name", "colour", "Its name", False),
        ("colour: Its names", "colour", "Its name", False),
        ("size: Its name, colour: Its name", "colour", "Its name", True),
        ("colour colour: Its name", "colour", "Its name", True),
        ("colour or what is called so: Its name", "colour", "Its name", False),
        ("Its name " * 20 + "colour: Its name", "colour", "Its name", False),
        ("-: Its name", "-", "Its name", False),
        ("colour: ", "colour", "", False),
    ],
)
def test_what_is_said_of_a_parameter_stands_behind_its_name(whole: str, name: str, text: str, *, said: bool):
    assert is_said_in(spaced(whole), name, text) is said


def test_long_texts_are_not_compared_with_names():
    assert not repeats("colour " * 100, "colour")
    assert repeats("colour", "colour " * 1_000)
    assert not is_name("colour " * 1_000, "colour")
