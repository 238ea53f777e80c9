import socket
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ullage.errors import InvalidArguments
from ullage.gateway.find.argument_repair import Verdict, misfit
from ullage.gateway.find.call_tool import STEPS, Checker, is_plain, plainly_fits
from ullage.gateway.find.schema_validation import Validators, affordable, compiled
from ullage.gateway.tool_source import OutOfSteps, StepBudget
from ullage.tool import Tool

pytestmark = pytest.mark.requirement("S1:heal")

Value = Any
"""Any JSON, and whatever else a test hands on."""

ISSUE: dict[str, Value] = {
    "type": "object",
    "properties": {
        "owner": {"type": "string"},
        "title": {"type": "string", "minLength": 1},
        "labels": {"type": "array", "items": {"type": "string"}},
        "state": {"enum": ["open", "closed"]},
        "assignee": {
            "type": "object",
            "properties": {"login": {"type": "string"}},
            "required": ["login"],
            "additionalProperties": False,
        },
    },
    "required": ["owner", "title"],
    "additionalProperties": False,
}
GOOD = {"owner": "ann", "title": "Leak", "labels": ["bug"]}


def check(schema: dict[str, Value], arguments: Value) -> Verdict:
    return Checker().check("one", schema, arguments)


def refusal(arguments: Value, schema: dict[str, Value] = ISSUE) -> InvalidArguments:
    verdict = check(schema, arguments)
    assert verdict.misfit is not None
    return misfit(Tool(name="github__create_issue", input_schema=schema), verdict.misfit)


def test_arguments_that_fit_fit():
    assert check(ISSUE, GOOD) == Verdict()


def test_a_validator_is_made_once_for_a_key_and_the_oldest_is_let_go():
    checker = Checker(most=2)
    for key in ("one", "two", "three"):
        assert checker.check(key, ISSUE, GOOD).fits
    assert checker.check("three", {"not": {}}, GOOD).fits, "the same key stands for the same schema"
    assert not checker.check("one", {"not": {}}, GOOD).fits, "it was let go"


@pytest.mark.parametrize(
    ("dialect", "fits"),
    [
        ("http://json-schema.org/draft-07/schema#", True),
        ("https://json-schema.org/draft/2020-12/schema", False),
        (None, False),
        ("https://example.invalid/a-dialect-of-its-own", False),
    ],
)
def test_a_schema_is_read_by_the_dialect_that_it_declares(dialect: str | None, *, fits: bool):
    # Draft 7 ignores what stands beside a reference.
    schema: dict[str, Value] = {
        "$defs": {"any": {}},
        "properties": {"size": {"$ref": "#/$defs/any", "type": "string"}},
    }
    schema |= {"$schema": dialect} if dialect else {}
    assert check(schema, {"size": 3}).fits is fits


def test_formats_are_not_asserted():
    assert check({"properties": {"at": {"type": "string", "format": "date-time"}}}, {"at": "tomorrow"}).fits


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "strin"}}},
        {"properties": {"a": {"type": "string", "required": True}}},
        {"required": "owner"},
        {"properties": [{"a": 1}]},
        {"properties": {"a": {"$ref": "#/$defs/nowhere"}}},
        {"$ref": "#"},
        {"properties": {"a": {"minimum": "5"}}},
        {"properties": {"a": {"multipleOf": 0}}},
        {"anyOf": []},
        {"properties": {"a": {"anyOf": [{"enum": "5"}]}}},
        {"patternProperties": {"(": {}}},
        {"patternProperties": {"^x": {}}, "allOf": [{"unevaluatedProperties": False}]},
        {"properties": {"a": {"multipleOf": float("inf")}}},
        {"properties": {"a": {"$id": "https://example.invalid/inner", "$ref": "#/b"}}},
    ],
)
def test_a_schema_that_cannot_be_read_is_not_held_against_the_caller(schema: dict[str, Value]):
    verdict = check(schema, {"a": 5})
    assert verdict.misfit is None
    assert verdict.unchecked
    assert not verdict.fits, "nobody knows"


def test_a_schema_nested_beyond_measure_is_not_checked():
    schema: dict[str, Value] = {}
    for _ in range(5_000):
        schema = {"properties": {"a": schema}}
    assert check(schema, {"a": {}}).unchecked == "the schema is nested too deeply"


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: Value, **__: Value) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    for reference in ("http://127.0.0.1:9/schema.json", "other.json", "file:///etc/hostname", "//127.0.0.1/x"):
        verdict = check({"properties": {"a": {"$ref": reference}}}, {"a": 1})
        assert verdict.unchecked == "the schema refers to another document"


def test_a_reference_within_the_document_holds_though_the_document_has_an_address():
    schema = {
        "$id": "https://example.invalid/tool.json",
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"size": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "integer"}},
        "properties": {"size": {"$ref": "#/definitions/size"}},
    }
    assert check(schema, {"size": 3}) == Verdict()
    assert not check(schema, {"size": "3"}).fits


def test_a_property_may_be_called_like_a_word_of_the_language():
    schema = {"properties": {"$schema": {"type": "string"}, "$ref": {"type": "string"}, "id": {"type": "integer"}}}
    assert check(schema, {"$schema": "x", "$ref": "y", "id": 3}) == Verdict()
    assert not check(schema, {"id": "3"}).fits


def test_a_constant_that_looks_like_a_reference_is_only_data():
    schema = {"properties": {"a": {"const": {"$ref": "http://example.invalid", "$schema": "x"}}}}
    assert check(schema, {"a": {"$ref": "http://example.invalid", "$schema": "x"}}) == Verdict()


def test_a_pattern_is_asserted_where_python_can_read_it_and_skipped_where_not():
    def fits(pattern: str, text: str) -> bool:
        return check({"properties": {"a": {"type": "string", "pattern": pattern}}}, {"a": text}).fits

    assert fits("^[a-z]+$", "abc")
    assert not fits("^[a-z]+$", "ABC")
    assert fits(r"^\p{L}+$", "123")
    assert fits("[[:alpha:]]x{2}", "nothing")
    assert fits("(?<year>[0-9]{4})", "no year")


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a|a)*$", "^(a?){30}a{30}$", "^((ab*)*c)*$", "(x+x+)+y", "a*" * 12 + "b"]
)
def test_a_hostile_pattern_is_not_tried(pattern: str, monkeypatch: pytest.MonkeyPatch):
    tried: list[str] = []
    monkeypatch.setattr("ullage.gateway.find.schema_validation.compiled", tried.append)
    assert check({"properties": {"a": {"pattern": pattern}}}, {"a": "a" * 5_000 + "!"}).fits
    assert tried == []
    check({"properties": {"a": {"pattern": "^a+$"}}}, {"a": "a"})
    assert tried == ["^a+$"]


@pytest.mark.parametrize(
    ("pattern", "length"),
    [
        ("^[a-z]+@[a-z]+\\.[a-z]{2,}$", 40),
        ("^(?:open|closed)$", 9_000),
        ("^\\d{4}-\\d{2}-\\d{2}$", 10),
        ("[A-Z]", 99_999),
    ],
)
def test_ordinary_patterns_are_tried(pattern: str, length: int):
    assert affordable(pattern, length)
    assert compiled(pattern) is not None


def test_a_pattern_as_long_as_a_book_is_not_tried():
    assert not affordable("a" * 3_000, 1)
    assert not affordable("^a{1,2000000}$", 10)
    assert affordable("^a{3}b{1,4}c?$", 10)


def test_a_schema_that_grows_as_it_is_followed_is_given_up():
    definitions: dict[str, Value] = {"0": {"type": "object"}}
    for step in range(1, 40):
        definitions[str(step)] = {"allOf": [{"$ref": f"#/$defs/{step - 1}"}, {"$ref": f"#/$defs/{step - 1}"}]}
    with pytest.raises(OutOfSteps):
        check({"$defs": definitions, "$ref": "#/$defs/39"}, {})


def test_a_list_too_long_to_be_looked_through_is_not_checked():
    schema = {"properties": {"rows": {"type": "array", "items": {"type": "integer"}}}}
    with pytest.raises(OutOfSteps):
        check(schema, {"rows": [1] * 100_000})


def rows(number: int, **more: Value) -> list[Value]:
    return [{"id": at, "tags": [at, str(at)], **more} for at in range(number)]


@pytest.mark.parametrize(
    "items", [rows(5_000), rows(5_000)[::-1], list(range(30_000)), [{"a": [{}] * at} for at in range(90)]]
)
def test_many_items_are_told_apart_without_comparing_each_with_each(items: list[Value]):
    # Comparing each of five thousand objects with each takes half a minute.
    schema = {"properties": {"rows": {"uniqueItems": True}}}
    assert check(schema, {"rows": items}) == Verdict()
    assert check(schema, {"rows": [*items, items[7]]}).misfit is not None


@pytest.mark.parametrize(
    ("items", "fits"),
    [
        ([1, True], True),
        ([0, False, None, "", "0", [], {}], True),
        ([{"a": 1}, {"a": True}], True),
        ([[1], [True]], True),
        ([[1, 2], [2, 1]], True),
        ([1, 1.0], False),
        ([{"a": 1, "b": 2}, {"b": 2.0, "a": 1}], False),
        ([[None], [None]], False),
        ("aa", True),
    ],
)
def test_items_are_the_same_where_json_has_them_equal(items: Value, *, fits: bool):
    assert check({"properties": {"a": {"uniqueItems": True}}}, {"a": items}).fits is fits
    assert check({"properties": {"a": {"uniqueItems": False}}}, {"a": items}).fits


def test_items_that_hold_more_than_can_be_looked_at_are_not_compared():
    schema: dict[str, Value] = {"$defs": {"tree": {"uniqueItems": True, "items": {"$ref": "#/$defs/tree"}}}}
    tree: Value = list(range(20_000))
    for _ in range(100):
        tree = [tree]
    with pytest.raises(OutOfSteps):
        check(schema | {"properties": {"a": {"$ref": "#/$defs/tree"}}}, {"a": tree})


@pytest.mark.parametrize(
    ("value", "unit", "fits"),
    [
        (19.99, 0.01, True),
        (0.3, 0.1, True),
        (1e308, 0.01, True),
        (7, 0.5, True),
        (4.0, 2, True),
        (10**400, 10, True),
        (19.995, 0.01, False),
        (7, 2, False),
        (True, 2, True),
        ("7", 2, True),
    ],
)
def test_multiples_are_those_of_the_decimals_as_they_are_written(value: Value, unit: Value, *, fits: bool):
    assert check({"properties": {"a": {"multipleOf": unit}}}, {"a": value}).fits is fits


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [
        ({"x-a": 1}, True),
        ({"x-a": "1"}, False),
        ({"known": "1"}, True),
        ({"other": 1}, False),
        ({"x-" + "a" * 300: "too long a name to be tried"}, True),
    ],
)
def test_names_are_held_against_patterns_of_names(arguments: Value, *, fits: bool):
    schema: dict[str, Value] = {"properties": {"known": {}}, "patternProperties": {"^x-": {"type": "integer"}}}
    assert check(schema | {"additionalProperties": False}, arguments).fits is fits
    strict = schema | {"additionalProperties": {"type": "string"}}
    assert check(strict, {"other": "a"}).fits
    assert not check(strict, {"other": 3}).fits
    assert check(schema | {"additionalProperties": True}, {"other": 3}).fits


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        # Each try alone may take a hundredth of a second, and there are thousands.
        ({"properties": {"a": {"items": {"pattern": "a*a*a*b"}}}}, {"a": ["a" * 29 + "b"] * 9_000}),
        ({"patternProperties": {"^a*a*b": {}}}, {"a" * 80 + str(at): 1 for at in range(9_000)}),
        (
            {"patternProperties": {"^a*a*b": {}}, "additionalProperties": {}},
            {f"{'a' * 80}{at}": 1 for at in range(9_000)},
        ),
    ],
)
def test_patterns_cost_as_much_as_they_take(schema: dict[str, Value], arguments: Value):
    with pytest.raises(OutOfSteps):
        check(schema, arguments)


def test_a_misfit_found_before_the_time_is_up_is_a_misfit():
    schema = {"properties": {"rows": {"items": {"type": "integer"}}}, "required": ["other"]}
    first = {"rows": ["x", *[1] * 100_000]}
    verdict = check(schema, first)
    assert verdict.misfit is not None
    assert not verdict.fits


def test_old_dialects_have_shapes_of_their_own():
    schema: dict[str, Value] = {"properties": {"a": {"type": "integer", "minimum": 1, "exclusiveMinimum": True}}}
    assert check(schema, {"a": 1}).unchecked
    old = schema | {"$schema": "http://json-schema.org/draft-04/schema#"}
    assert check(old, {"a": 2}) == Verdict()
    assert not check(old, {"a": 1}).fits


@pytest.mark.parametrize("declared", [3, None, ["x"]])
def test_a_dialect_that_is_no_text_is_none(declared: Value):
    assert check(ISSUE | {"$schema": declared}, GOOD) == Verdict()


@pytest.mark.requirement("S1:heal")
@pytest.mark.parametrize(
    ("arguments", "problem", "options"),
    [
        ({}, "`owner`, `title` are missing", ("owner", "title")),
        ({"owner": "ann"}, "`title` is missing", ("title",)),
        (GOOD | {"titel": 1}, "`titel` is not a parameter of it", ("title", "state", "assignee")),
        (GOOD | {"labels": 3}, "`labels` must be array, not integer", ()),
        (GOOD | {"labels": ["a", None]}, "`labels[1]` must be string, not null", ()),
        (GOOD | {"state": "opne"}, "`state` must be open or closed", ("open", "closed")),
        (GOOD | {"title": ""}, "`title` must have minLength 1", ()),
        (GOOD | {"assignee": {}}, "`login` is missing in `assignee`", ("login",)),
        (GOOD | {"assignee": {"login": "b", "x": 1, "y": 2}}, "`x`, `y` are not parameters of `assignee`", ()),
    ],
)
def test_a_misfit_is_named_with_its_place_and_what_would_have_done(
    arguments: Value, problem: str, options: tuple[str, ...]
):
    error = refusal(arguments)
    assert error.message == f"`github__create_issue` was not called: {problem}"
    assert error.options == options


@pytest.mark.requirement("S1:heal")
def test_a_misfit_shows_the_part_of_the_schema_that_matters():
    assert refusal(GOOD | {"labels": 3}).suggestion == 'It takes labels: {"type":"array","items":{"type":"string"}}'
    assert refusal({}).suggestion.startswith("It takes github__create_issue(owner: string, title: string, labels?:")


def test_a_long_part_of_a_schema_is_shortened_by_its_words_and_then_by_its_shape():
    wordy = {"properties": {"a": {"type": "integer", "description": "long " * 500}}}
    assert refusal({"a": "x"}, wordy).suggestion == 'It takes a: {"type":"integer"}'
    wide = {"properties": {"a": {"enum": [f"value {number}" for number in range(900)]}}}
    error = refusal({"a": "x"}, wide)
    assert len(error.suggestion) < 1_000
    assert "…" in error.suggestion
    assert len(error.options) == 10


def test_the_callers_own_values_are_not_repeated():
    secret = "s3cret" * 1_000
    for arguments in (GOOD | {"labels": secret}, GOOD | {"state": secret}, {"owner": secret}):
        error = refusal(arguments)
        assert "s3cret" not in error.message + error.suggestion + str(error.options)


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"properties": {"a": False}}, "is not allowed"),
        ({"properties": {"a": {"const": 4}}}, "`a` must be 4"),
        ({"properties": {"a": {"pattern": "^x$"}}}, "`a` must match ^x$"),
        ({"properties": {"a": {"anyOf": [{"minLength": 9}, {"maxLength": 1}]}}}, "`a` fits none of the forms"),
        ({"properties": {"a": {"not": {}}}}, "`a` fits none of the forms it may have"),
        ({"properties": {"a": {"type": ["integer", "null"]}}}, "`a` must be integer or null, not string"),
    ],
)
def test_every_kind_of_misfit_has_its_sentence(schema: dict[str, Value], problem: str):
    assert problem in refusal({"a": "hello"}, schema).message


_texts = st.sampled_from(["", "a", "open", "closed", "é𝄞"])
_leaves = st.one_of(_texts, st.integers(-3, 3), st.sampled_from([0.5, 1.0, 2.0]), st.booleans(), st.none())
_values = st.recursive(
    _leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=6,
)
_types = st.sampled_from(["string", "integer", "number", "boolean", "null", "object", "array"])
_schemas = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.one_of(_types, st.lists(_types, min_size=1, max_size=2)),
            "enum": st.lists(_texts, min_size=1, max_size=2),
            "minimum": st.integers(-1, 2),
            "maximum": st.integers(0, 2),
            "minLength": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "description": st.just("x"),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {"type": st.sampled_from(["object", "array"])},
        optional={
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "required": st.lists(st.sampled_from("abc"), max_size=2),
            "additionalProperties": st.booleans(),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
        },
    ),
    max_leaves=5,
)


@settings(max_examples=400)
@given(schema=_schemas, value=_values)
def test_what_plainly_fits_fits_to_the_validator_as_well(schema: dict[str, Value], value: Value):
    assert is_plain(schema)
    if plainly_fits(schema, value):
        assert Validators(1).check("one", schema, value, StepBudget(STEPS)).fits


def test_usual_arguments_are_checked_without_the_validator():
    schema: dict[str, Value] = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "minLength": 1},
            "state": {"enum": ["open", "closed"]},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
            "labels": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["id"],
        "additionalProperties": False,
    }
    given: dict[str, Value] = {"id": "7", "state": "open", "limit": None, "labels": ["a"]}
    assert is_plain(schema)
    assert plainly_fits(schema, given)
    assert not plainly_fits(schema, given | {"state": "shut"})
    assert not plainly_fits(schema, {})
    assert not plainly_fits(schema, given | {"other": 1})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strnig"},
        {"properties": {"a": {"$ref": "#/x"}}},
        {"required": "a"},
        {"minimum": "1"},
        {"pattern": "a"},
        {"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}},
    ],
)
def test_what_is_broken_or_unusual_is_not_plain(schema: dict[str, Value]):
    assert not is_plain(schema)


def test_what_takes_long_to_look_at_is_left_to_the_validator():
    many: dict[str, Value] = {f"p{number}": {"type": "string"} for number in range(60)}
    nested: dict[str, Value] = {"properties": {f"q{number}": {"properties": many} for number in range(20)}}
    assert not is_plain(nested)
    choices: dict[str, Value] = {"items": {"anyOf": [{"enum": [f"e{number}"]} for number in range(50)]}}
    assert is_plain(choices)
    early: list[Value] = ["e0"] * 100
    late: list[Value] = ["e49"] * 100
    assert plainly_fits(choices, early)
    assert not plainly_fits(choices, late)
    assert Checker().check("one", choices, late).fits
