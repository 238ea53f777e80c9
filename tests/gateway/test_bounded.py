"""Work on one definition or one set of arguments ends, and what was given up is logged."""

import logging
from contextlib import suppress
from typing import Any

import pytest

from ullage.errors import InvalidArguments
from ullage.gateway.find.argument_repair import heal, misfit
from ullage.gateway.find.call_tool import (
    AT_ONCE,
    STEPS,
    TOO_COMPLEX,
    UNCHECKED,
    Aside,
    Calling,
    Checker,
    Fitting,
    fitting,
    read_call,
)
from ullage.gateway.find.find_settings import FindSettings
from ullage.gateway.find.schema_validation import ways
from ullage.gateway.find.tool_forms import forms_of
from ullage.gateway.find.tool_index import Hashes
from ullage.gateway.merge.merge import Merge
from ullage.gateway.merge.tool_view import Entry, Member
from ullage.gateway.slim.tool_signature import signature
from ullage.gateway.tool_source import LimitLog, OutOfSteps, StepBudget
from ullage.testing import FakeSource
from ullage.tool import Call, Tool

Value = Any
"""Any JSON."""

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U:bounded")]


def branching(keyword: str, levels: int) -> dict[str, Value]:
    """Definitions that each refer to the next twice: as many leaves as two to the power of `levels`."""
    definitions: dict[str, Value] = {
        f"d{level}": {keyword: [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(levels)
    }
    definitions[f"d{levels}"] = {"type": "integer"}
    return {"type": "object", "properties": {"value": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def nested(keyword: str, depth: int) -> dict[str, Value]:
    schema: dict[str, Value] = {"type": "string", "pattern": "^x$"}
    for level in range(depth):
        schema = {keyword: [schema, {"const": f"never {level}"}]}
    return {"type": "object", "properties": {"value": schema}}


def tree(depth: int, width: int) -> dict[str, Value]:
    if not depth:
        return {"type": "string"}
    return {"anyOf": [tree(depth - 1, width) for _ in range(width)]}


def entry(schema: dict[str, Value]) -> Entry:
    member = Member(name="s", source=FakeSource(), prefix="s")
    return Entry(listed="s__t", tool=Tool(name="s__t", input_schema=schema), member=member, original="t")


async def fitted(schema: dict[str, Value], parameters: Value) -> Fitting:
    spoken = read_call({"tool_name": "t", "parameters": parameters})
    return await Aside().fitting(spoken, entry(schema), Checker(), "key")


def steps_of(schema: dict[str, Value], parameters: Value, steps: int = STEPS) -> int:
    """Steps that checking and mending took; more than there were means that it was given up."""
    budget = StepBudget(steps)
    with suppress(InvalidArguments, OutOfSteps):
        fitting(read_call({"tool_name": "t", "parameters": parameters}), entry(schema), Checker(), "key", budget)
    return steps - budget.left


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
async def test_arguments_of_a_schema_that_branches_without_end_pass_as_they_came(keyword: str):
    schema = branching(keyword, 40)
    value: Value = 3 if keyword == "allOf" else {"value": "x"}
    fit = await fitted(schema, {"value": value})
    assert fit.arguments == {"value": value}
    assert fit.unchecked == TOO_COMPLEX
    assert not fit.healed


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
async def test_choices_nested_thirty_deep_are_checked_within_the_steps_of_the_event_loop(keyword: str):
    assert steps_of(nested(keyword, 30), {"value": "y"}) <= AT_ONCE
    with pytest.raises(InvalidArguments):
        await fitted(nested(keyword, 30), {"value": "y"})


async def test_a_check_that_takes_more_than_the_event_loop_allows_is_finished_in_a_thread():
    schema = {"properties": {"rows": {"items": {"type": "integer", "minimum": 0}}}}
    rows = list(range(1_500))
    assert AT_ONCE < steps_of(schema, {"rows": rows}) <= STEPS
    assert (await fitted(schema, {"rows": rows})).unchecked is None
    with pytest.raises(InvalidArguments):
        await fitted(schema, {"rows": [*rows, -1]})


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"properties": {"a": {"enum": [{"x": [at] * 40} for at in range(900)]}}}, {"a": {"x": [7] * 39 + [8]}}),
        (
            {"properties": {"a": {"unevaluatedItems": False, "anyOf": [{"prefixItems": [True] * 9}]}}},
            {"a": [1] * 1_900},
        ),
        ({"required": [f"p{at}" for at in range(30_000)]}, {"a": 1}),
        ({"properties": {f"p{at}": {} for at in range(30_000)}}, {"a": 1}),
        ({"patternProperties": {f"^x{at}$": {} for at in range(300)}}, {f"x{at}": 1 for at in range(300)}),
        ({"properties": {"a": {"items": {"multipleOf": 3}}}}, {"a": [10**4000] * 40}),
        ({"properties": {"a": {}}, "additionalProperties": False}, {f"b{at}": 1 for at in range(1_900)}),
        ({"properties": {"a": tree(5, 8)}}, {"a": 3}),
    ],
)
def test_assertions_that_look_at_much_cost_many_steps(schema: dict[str, Value], arguments: Value):
    assert steps_of(schema, arguments) > 100


def test_a_value_is_not_written_into_the_errors_of_every_branch():
    # jsonschema puts the value's `repr` into each error; a value that cannot be written shows that nothing asks for it.
    class Unspeakable(dict[str, Value]):
        def __repr__(self) -> str:
            raise AssertionError("written out")

    schema: dict[str, Value] = {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "array"}]}}}
    assert Checker().check("key", schema, {"a": Unspeakable(b=1)}).misfit is not None


def test_mending_spends_steps_for_types_that_branch():
    schema: dict[str, Value] = {"properties": {"a": tree(5, 8)}}
    with pytest.raises(OutOfSteps):
        heal({"a": 3}, schema, lambda _: False, budget=StepBudget(1_000))
    budget = StepBudget(100_000)
    assert heal({"a": 3}, schema, lambda _: False, budget=budget) is None
    assert budget.left > 0


def test_alternations_multiply_the_ways_to_match_a_pattern():
    assert ways("^" + "(a|a)" * 5 + "b$", 10) == 32 * 10
    assert ways("^" + "(a|a)" * 40 + "b$", 10) is None


def test_the_names_most_like_an_unknown_one_are_looked_for_among_few():
    known = {f"property_of_number_{at}_and_more": {} for at in range(5_000)}
    given: Value = {f"property_or_numbers_{at}_and_mores": 1 for at in range(2_000)}
    schema: dict[str, Value] = {"properties": known, "additionalProperties": False}
    verdict = Checker().check("key", schema, given)
    assert verdict.misfit is not None
    refused = misfit(Tool(name="t", input_schema=schema), verdict.misfit)
    assert 0 < len(refused.options) <= 10


def test_a_long_chain_of_references_ends_in_a_signature():
    definitions: dict[str, Value] = {f"d{at}": {"$ref": f"#/$defs/d{at + 1}"} for at in range(3_000)}
    schema: dict[str, Value] = {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}
    assert signature(Tool(name="t", input_schema=schema)) == "t(a?: …)"


def test_a_definition_that_takes_too_many_steps_to_slim_is_shown_by_name(caplog: pytest.LogCaptureFixture):
    properties: dict[str, Value] = {f"p{at}": {"type": "string", "title": f"P{at}"} for at in range(50)}
    schema: dict[str, Value] = {"type": "object", "properties": properties}
    tool = Tool(name="endless_probe", description="Does much. And more.", input_schema=schema)
    with caplog.at_level(logging.WARNING):
        forms = [forms_of(tool, StepBudget(20)), forms_of(tool, StepBudget(20))]
    assert forms[0].signature == '"endless_probe(…)"'
    assert "Does much" in forms[0].definition
    assert "p49" not in forms[0].definition
    assert "p49" in forms_of(tool).definition
    assert caplog.text.count("endless_probe") == 1


async def test_calls_that_pass_unvalidated_are_logged_once_for_each_tool(caplog: pytest.LogCaptureFixture):
    probe = Tool(name="probe", input_schema=branching("anyOf", 40), annotations={"readOnlyHint": True})
    other = Tool(name="other", input_schema=branching("anyOf", 40), annotations={"readOnlyHint": True})
    source = FakeSource(offered=(probe, other))
    merge = Merge([Member(name="s", source=source, prefix="s")])
    calling = Calling(merge, Hashes(), Checker())

    async def call(name: str) -> Value:
        given = {"tool_name": name, "parameters": {"value": "x"}}
        return await calling.call(Call(tool="call_tool", arguments=given), FindSettings())

    with caplog.at_level(logging.WARNING):
        replies = [await call(name) for name in ("s__probe", "s__probe", "s__other")]
    assert all(reply.meta[UNCHECKED] == TOO_COMPLEX for reply in replies)
    said = [record.getMessage() for record in caplog.records if "unvalidated" in record.getMessage()]
    assert said == [
        f"arguments of `s__probe` are passed on unvalidated: {TOO_COMPLEX}",
        f"arguments of `s__other` are passed on unvalidated: {TOO_COMPLEX}",
    ]
    assert [call.arguments for call in source.calls] == [{"value": "x"}] * 3


def test_a_log_of_limits_goes_silent_after_many_names(caplog: pytest.LogCaptureFixture):
    limits = LimitLog(logging.getLogger("limits"), most=2)
    with caplog.at_level(logging.WARNING):
        for name in "aabbcc":
            limits.warn(name, f"gave up on {name}")
    assert [record.getMessage() for record in caplog.records] == ["gave up on a", "gave up on b"]


async def test_a_long_view_is_made_in_a_thread_while_known_tools_are_called():
    tools = tuple(Tool(name=f"t{at}", input_schema={"type": "object"}) for at in range(1_500))
    merge = Merge([Member(name="s", source=FakeSource(offered=tools), prefix="s")])
    view = await merge.view(1.0)
    assert len(view.entries) == 1_500
    assert merge.known is view, "it was made before anybody asked for what is known"
    assert (await merge.find("s__t7")).original == "t7"
