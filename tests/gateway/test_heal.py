from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ullage.errors import InvalidArguments
from ullage.gateway.find.argument_repair import Healed, heal, parsed
from ullage.gateway.find.call_tool import read_call

pytestmark = pytest.mark.requirement("S1:heal")

Value = Any
"""Any JSON, and whatever else a test hands on."""

SCHEMA: dict[str, Value] = {
    "type": "object",
    "properties": {
        "issue_number": {"type": "integer"},
        "labels": {"type": "array", "items": {"type": "string"}},
        "dryRun": {"type": "boolean"},
        "filter": {"$ref": "#/$defs/filter"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "ids": {"type": "array", "items": {"type": "integer"}},
        "order": {"type": "string", "enum": ["Newest", "mostVoted", "a-b", "a_b"]},
    },
    "required": ["issue_number"],
    "additionalProperties": False,
    "$defs": {
        "filter": {"type": "object", "properties": {"sinceDate": {"type": "string"}}, "additionalProperties": False}
    },
}
VALIDATOR = Draft202012Validator(SCHEMA)


def healed(arguments: Value) -> Healed | None:
    return heal(arguments, SCHEMA, VALIDATOR.is_valid, ("github__close", "close"))


@pytest.mark.requirement("S1:heal")
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ({"parameters": {"issue_number": 3}}, {"issue_number": 3}),
        ({"parameters": {"arguments": {"issue_number": 3}}}, {"issue_number": 3}),
        ({"input": '{"issue_number": 3}'}, {"issue_number": 3}),
        ({"close": {"issue_number": 3}}, {"issue_number": 3}),
        ('{"issue_number": 3}', {"issue_number": 3}),
        ({"issue_number": "3"}, {"issue_number": 3}),
        ({"issueNumber": 3}, {"issue_number": 3}),
        ({"issue-number": "3", "dry_run": "True"}, {"issue_number": 3, "dryRun": True}),
        ({"issue_number": 3, "labels": '["bug"]'}, {"issue_number": 3, "labels": ["bug"]}),
        ({"issue_number": 3, "labels": "bug"}, {"issue_number": 3, "labels": ["bug"]}),
        ({"issue_number": 3, "labels": [7]}, {"issue_number": 3, "labels": ["7"]}),
        ({"issue_number": 3, "ids": "5"}, {"issue_number": 3, "ids": [5]}),
        ({"issue_number": 3, "ids": ["5", 6]}, {"issue_number": 3, "ids": [5, 6]}),
        ({"issue_number": 3, "filter": '{"since_date": "x"}'}, {"issue_number": 3, "filter": {"sinceDate": "x"}}),
        ({"issue_number": 3, "labels": None}, {"issue_number": 3}),
        ({"args": {"IssueNumber": "3.0"}}, {"issue_number": 3.0}),
        ({"issue_number": 3, "order": "newest"}, {"issue_number": 3, "order": "Newest"}),
        ({"ISSUE_NUMBER": 3, "Order": "most_voted"}, {"issue_number": 3, "order": "mostVoted"}),
    ],
)
def test_what_is_plainly_meant_is_understood_and_said(said: Value, meant: Value):
    found = healed(said)
    assert found is not None
    assert found.arguments == meant
    assert found.notes


WIDE: dict[str, Value] = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "b": {"type": "boolean"},
        "s": {"type": "string"},
        "labels": {"type": "array", "items": {"type": "string"}},
        "ids": {"type": "array", "items": {"type": "integer"}},
        "opt": {"anyOf": [{"$ref": "#/$defs/options"}, {"type": "null"}]},
        "all": {"allOf": [{"$ref": "#/$defs/options"}]},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "mode": {"anyOf": [{"type": "string", "enum": ["fast", "slow"]}, {"type": "null"}]},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "list": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/options"}, {"type": "string"}]}},
        "states": {"type": "array", "items": {"type": "string", "enum": ["Open", "Closed"]}},
    },
    "additionalProperties": False,
    "$defs": {
        "options": {
            "type": "object",
            "properties": {
                "sinceDate": {"type": "string"},
                "max": {"type": "integer"},
                "deep": {"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": False},
            },
            "additionalProperties": False,
        }
    },
}


@pytest.mark.requirement("S1:heal")
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ({"b": "yes"}, {"b": True}),
        ({"b": 1}, {"b": True}),
        ({"b": "0"}, {"b": False}),
        ({"labels": "['bug', 'ui']"}, {"labels": ["bug", "ui"]}),
        ({"env": "{'A': 'x'}"}, {"env": {"A": "x"}}),
        ({"ids": "(1, 2)"}, {"ids": [1, 2]}),
        ({"opt": "None"}, {"opt": None}),
        ({"n": "null"}, {}),
        ({"n": ""}, {}),
        ({"kind": ""}, {}),
        ({"ids": "none"}, {}),
        ({"s": ["a"]}, {"s": "a"}),
        ({"n": ["4"]}, {"n": 4}),
        ({"labels": [["a"]]}, {"labels": ["a"]}),
        ({"s": 7.5}, {"s": "7.5"}),
        ({"s": True}, {"s": "true"}),
        ({"opt": '```json\n{"max": 3}\n```'}, {"opt": {"max": 3}}),
        ({"opt": {"since_date": "x", "max": "3"}}, {"opt": {"sinceDate": "x", "max": 3}}),
        ({"all": {"since_date": "x"}}, {"all": {"sinceDate": "x"}}),
        ({"list": [{"since_date": "x"}, "y"]}, {"list": [{"sinceDate": "x"}, "y"]}),
        ({"env": {"A": 1, "B": True}}, {"env": {"A": "1", "B": "true"}}),
        ({"mode": "FAST"}, {"mode": "fast"}),
        ({"ids": "5,6, 7"}, {"ids": [5, 6, 7]}),
        ({"states": "open, closed"}, {"states": ["Open", "Closed"]}),
        ({"labels": "salt, pepper"}, {"labels": ["salt, pepper"]}),
        ({"opt.max": 3, "opt.since_date": "x"}, {"opt": {"max": 3, "sinceDate": "x"}}),
        ({"opt[deep][x]": "3", "opt": {"max": 1}}, {"opt": {"deep": {"x": 3}, "max": 1}}),
        ({"payload": '{"n": 3}'}, {"n": 3}),
    ],
)
def test_mistakes_that_models_make_are_understood(said: Value, meant: Value):
    found = heal(said, WIDE, Draft202012Validator(WIDE).is_valid, ("t",))
    assert found is not None
    assert found.arguments == meant
    assert found.notes


@pytest.mark.requirement("S1:heal")
@pytest.mark.parametrize(
    "said",
    [
        {"n": "3 items"},
        {"n": ["1", "2"]},
        {"b": 2},
        {"b": "perhaps"},
        {"ids": "5;6"},
        {"ids": "{1, 2}"},
        {"env": "dict(A=1)"},
        {"opt": {"max": 1}, "opt.max": 3},
        {"n.x": 3},
        {"kind": "c"},
        {"labels": {"bug": "x", "ui": ["y"]}, "n": "x"},
        {"ids": "[" * 10_000},
        {"ids": "-" * 10_000 + "1"},
    ],
)
def test_mistakes_with_more_than_one_meaning_are_left_alone(said: Value):
    assert heal(said, WIDE, Draft202012Validator(WIDE).is_valid, ("t",)) is None


@pytest.mark.requirement("S1:heal")
@pytest.mark.parametrize(
    "said",
    [
        {},
        {"issue_number": "three"},
        {"issue_number": 3, "colour": "red"},
        {"issue_number": None},
        {"issue_number": "NaN"},
        {"issue_number": "1e999"},
        {"issue_number": 3, "ids": "five"},
        {"parameters": {"colour": 3}},
        {"parameters": {"issue_number": 3}, "colour": 1},
        {"issueNumber": 3, "issue-number": 4},
        {"issue_number": True},
        {"issue_number": 3, "order": "oldest"},
        {"issue_number": 3, "order": "AB"},
        "not json",
        ["issue_number"],
        3,
        None,
        '"' + "[" * 100_000,
    ],
)
def test_what_is_not_plain_is_left_alone(said: Value):
    assert healed(said) is None


def test_an_unknown_key_is_never_dropped():
    open_schema = {"type": "object", "properties": {"count": {"type": "integer"}}}
    found = heal({"count": "3", "extra": "kept"}, open_schema, Draft202012Validator(open_schema).is_valid)
    assert found is not None
    assert found.arguments == {"count": 3, "extra": "kept"}


def test_of_two_parameters_spelt_alike_neither_is_guessed():
    schema = {
        "type": "object",
        "properties": {"userId": {"type": "string"}, "user_id": {"type": "string"}},
        "minProperties": 1,
        "additionalProperties": False,
    }
    assert heal({"UserID": "x"}, schema, Draft202012Validator(schema).is_valid) is None


def test_a_null_that_is_asked_for_or_taken_stays():
    found = healed({"issue_number": "3", "note": None})
    assert found is not None
    assert found.arguments == {"issue_number": 3, "note": None}


def test_schemas_of_every_shape_are_walked_safely():
    for shape in (
        {"$ref": "#/nowhere"},
        {"$ref": "other.json"},
        {"$ref": "#"},
        True,
        {"oneOf": [{}, {"type": "null"}]},
    ):
        schema: dict[str, Value] = {"properties": {"a": shape, "b": {"type": ["integer", 3]}}}
        assert heal({"a": "1", "b": "1"}, schema, lambda value: value == {"a": "1", "b": 1}) is not None


def test_references_that_go_in_a_circle_end():
    schema: dict[str, Value] = {"properties": {"a": {"$ref": "#/$defs/b"}, "n": {"type": "integer"}}}
    schema["$defs"] = {"b": {"$ref": "#/$defs/b"}}
    assert heal({"a": "1", "n": "1"}, schema, lambda value: value == {"a": "1", "n": 1}) is not None


def test_a_schema_that_refers_to_itself_ends():
    tree: dict[str, Value] = {"type": "object", "properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}}}
    said: Value = {"n": 1}
    for _ in range(50):
        said = {"child": said, "n": "1"}
    assert heal(said, tree, lambda value: True) is not None


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["issue_number", "issueNumber", "labels", "filter", "input", "x"]), inner)
    ),
    max_leaves=6,
)


@given(values)
def test_what_is_mended_always_fits(said: Value):
    found = healed(said)
    assert found is None or VALIDATOR.is_valid(found.arguments)


def test_a_text_is_read_as_json_only_where_it_is():
    assert parsed('{"a": [1]}') == {"a": [1]}
    assert parsed("NaN") == "NaN"
    assert parsed("-Infinity") == "-Infinity"
    assert parsed('{"a": 1e999}') == '{"a": 1e999}'
    assert parsed("-1e999") == "-1e999"
    assert parsed("1e3") == 1000.0
    assert parsed("9" * 5_000) == "9" * 5_000
    assert parsed("plain") == "plain"


@pytest.mark.requirement("S1:heal")
@pytest.mark.parametrize(
    ("said", "tool", "server", "parameters", "beside"),
    [
        ({"tool_name": "x", "parameters": {"a": 1}}, "x", None, {"a": 1}, {}),
        ({"server_name": "s", "tool_name": "x", "parameters": {}}, "s:x", "s", {}, {}),
        ({"tool_name": "x"}, "x", None, {}, {}),
        ({"tool_name": "x", "parameters": None}, "x", None, {}, {}),
        ({"tool_name": "x", "parameters": '{"a": 1}'}, "x", None, '{"a": 1}', {}),
        ({"tool_name": "x", "a": 1, "name": "Bob"}, "x", None, {}, {"a": 1, "name": "Bob"}),
        ({"tool_name": "x", "parameters": {"a": 1}, "b": 2}, "x", None, {"a": 1}, {"b": 2}),
        ({"parameters": {"tool_name": "x", "parameters": {"a": 1}}}, "x", None, {"a": 1}, {}),
        ({"parameters": {"tool_name": "x", "server_name": "s", "a": 1}}, "s:x", "s", {}, {"a": 1}),
        ({"server_name": "s", "parameters": {"tool_name": "x", "a": 1}}, "s:x", "s", {}, {"a": 1}),
        ({"parameters": '{"tool_name": "x", "parameters": {"a": 1}}'}, "x", None, {"a": 1}, {}),
        ({"server_name": "s__x", "parameters": {"a": 1}}, "s__x", None, {"a": 1}, {}),
        ({"tool_name": "", "server_name": "s__x", "arguments": {"a": 1}}, "s__x", None, {"a": 1}, {}),
        ({"name": "x", "arguments": {"a": 1}}, "x", None, {"a": 1}, {}),
        ({"tool": "x", "server": "s", "input": {"a": 1}}, "s:x", "s", {"a": 1}, {}),
        ({"tool_name": "x", "server": "prod"}, "x", None, {}, {"server": "prod"}),
        ({"tool_name": " `x` ", "parameters": ""}, "`x`", None, {}, {}),
    ],
)
def test_a_call_is_read_wherever_its_parts_stand(
    said: Value, tool: str, server: str | None, parameters: Value, beside: dict[str, Value]
):
    spoken = read_call(said)
    assert (spoken.tool, spoken.server) == (tool.rsplit(":", maxsplit=1)[-1], server)
    assert (spoken.parameters, dict(spoken.beside)) == (parameters, beside)


@pytest.mark.parametrize(
    ("said", "bare"),
    [
        ("s__x(a: string) — Does it [write]", "s__x"),
        ("x — Does it", "x"),
        ("x [write]", "x"),
        (" `x` ", "x"),
        ("x", "x"),
        ("(x)", "(x)"),
    ],
)
def test_a_name_is_kept_as_it_was_said_beside_what_a_copied_line_begins_with(said: str, bare: str):
    spoken = read_call({"tool_name": said})
    assert (spoken.tool, spoken.bare) == (said.strip(), bare)


@pytest.mark.requirement("S1:heal")
@pytest.mark.parametrize(
    ("said", "properties", "parameters", "beside"),
    [
        ({"input": {"a": 1}, "q": "x"}, ["input", "q"], {}, {"input": {"a": 1}, "q": "x"}),
        ({"args": None}, ["args"], {}, {"args": None}),
        ({"args": ["-l"], "input": {"q": "x"}}, ["args", "q"], {"q": "x"}, {"args": ["-l"]}),
        ({"params": {"q": "x"}}, ["q"], {"q": "x"}, {}),
        ({"parameters": {"q": "x"}, "input": "i"}, ["input", "q"], {"q": "x"}, {"input": "i"}),
        ({"parameters": {"q": "x"}}, ["parameters"], {"q": "x"}, {}),
        ({"parameters": {"x": 1}, "q": "x"}, ["parameters", "q"], {}, {"parameters": {"x": 1}, "q": "x"}),
        ({"parameters": {"q": "x"}, "r": 1}, ["parameters", "q", "r"], {"q": "x"}, {"r": 1}),
        ({"parameters": {"x": 1}, "y": 1}, ["parameters", "q"], {"x": 1}, {"y": 1}),
    ],
)
def test_a_word_for_the_parameters_that_is_a_parameter_stays_an_argument(
    said: Value, properties: list[str], parameters: Value, beside: dict[str, Value]
):
    spoken = read_call({"tool_name": "x", **said}).of_a_tool_with(properties)
    assert (spoken.parameters, dict(spoken.beside)) == (parameters, beside)
    assert all(word not in note for note in spoken.notes for word in properties)


def test_what_was_said_otherwise_is_noted():
    assert read_call({"tool_name": "x", "parameters": {}}).notes == ()
    assert read_call({"name": "x", "args": {}}).notes == ("`name` read as `tool_name`", "`args` read as `parameters`")
    assert read_call({"parameters": {"tool_name": "x"}}).notes == ("the call stood inside `parameters`; taken out",)
    assert read_call({"server_name": "s__x"}).notes == ("`server_name` read as `tool_name`",)


@pytest.mark.parametrize(
    "said", [{}, {"parameters": {"a": 1}}, {"tool_name": 3}, {"tool_name": "  "}, {"parameters": "x"}]
)
def test_a_call_that_names_no_tool_is_refused(said: Value):
    with pytest.raises(InvalidArguments, match="`tool_name` is missing") as caught:
        read_call(said)
    assert caught.value.options == ("server_name", "tool_name", "parameters")
