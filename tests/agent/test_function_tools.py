"""Python functions as tools of an agent."""

import enum
import time
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import anyio
import pytest
from pydantic import Field

from agent.agents import ScriptedModel, calls, context, delegate, says, tools
from ullage.agent import FunctionTools, Returned, run_agent
from ullage.agent.function_tools import as_sources
from ullage.errors import InvalidArguments, UnknownTool
from ullage.tool import Call, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S2:formats")]


@dataclass
class Line:
    sku: str
    number: int = 1


class Speed(enum.Enum):
    FAST = "fast"
    SLOW = "slow"


def order(
    lines: list[Line],
    note: Annotated[str, Field(description="Printed on the parcel")] = "",
    *,
    speed: Speed = Speed.SLOW,
    title: Literal["a", "b"] = "a",
) -> dict[str, Any]:
    """Place an order.

    Args:
        lines: What to order,
            each with its number.
        title (str): Of the customer.
    """
    return {"number": sum(line.number for line in lines), "speed": speed, "title": title, "note": note}


async def call(function: Any, arguments: dict[str, Any]) -> Reply:  # noqa: ANN401
    source = FunctionTools([function])
    (tool,) = (await source.tools()).tools
    return await source.call(Call(tool=tool.name, arguments=arguments))


async def test_schema_and_descriptions_come_from_the_signature_and_docstring():
    (tool,) = (await FunctionTools([order]).tools()).tools
    properties: Any = tool.input_schema["properties"]
    assert (tool.name, tool.description) == ("order", "Place an order.")
    assert properties["lines"]["description"] == "What to order, each with its number."
    assert properties["title"] == {
        "type": "string",
        "enum": ["a", "b"],
        "default": "a",
        "description": "Of the customer.",
    }
    assert properties["note"]["description"] == "Printed on the parcel"
    assert tool.input_schema["required"] == ["lines"]


async def test_arguments_arrive_as_the_types_of_the_signature_and_a_dict_is_sent_as_json():
    reply = await call(order, {"lines": [{"sku": "x", "number": 3}], "speed": "fast"})
    assert reply.content[0]["text"] == '{"number":3,"speed":"fast","title":"a","note":""}'
    assert reply.structured is not None


async def test_async_functions_methods_and_odd_parameter_names_work():
    class Shop:
        async def price(self, schema: str, model_config: int = 2, /) -> str:
            await anyio.sleep(0)
            return f"{schema} {model_config}"

    assert (await call(Shop().price, {"schema": "tea"})).content[0]["text"] == "tea 2"


async def test_an_exception_is_an_error_that_the_model_reads():
    def fail(number: int) -> None:
        raise ValueError(f"no order {number}")

    reply = await call(fail, {"number": 7})
    assert reply.is_error
    assert reply.content[0]["text"] == "`fail` failed: ValueError: no order 7"


async def test_arguments_that_do_not_fit_never_reach_the_function():
    reached = list[int]()
    with pytest.raises(InvalidArguments, match="number: Input should be a valid integer"):
        await call(_integer(reached), {"number": "x"})
    with pytest.raises(InvalidArguments, match="other: Extra inputs"):
        await call(_integer(reached), {"number": 1, "other": 2})
    assert reached == []


def _integer(reached: list[int]) -> Any:  # noqa: ANN401
    def take(number: int) -> None:
        reached.append(number)

    return take


async def test_a_blocking_function_does_not_hold_up_the_loop():
    ticks = list[int]()

    def block() -> str:
        time.sleep(0.2)
        return "done"

    async def tick() -> None:
        while True:
            await anyio.sleep(0.01)
            ticks.append(1)

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        await call(block, {})
        group.cancel_scope.cancel()
    assert len(ticks) >= 3


async def test_what_is_no_tool_is_refused_when_it_is_given():
    def anything(*values: int, **named: int) -> None: ...
    def unknown(value: "NoSuchType") -> None: ...  # pyright: ignore[reportUndefinedVariable]  # noqa: F821

    for given in ([anything], [unknown], [3], [order, order], [str]):
        with pytest.raises(InvalidArguments):
            as_sources(given)  # pyright: ignore[reportArgumentType]
    assert as_sources(None) == ()
    with pytest.raises(UnknownTool):
        await FunctionTools([order]).call(Call(tool="other"))


async def test_functions_and_sources_are_offered_together():
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    source = tools("read")
    model = ScriptedModel(lambda number, _: calls(("add", '{"a":2,"b":3}')) if number == 1 else says("5"))
    events = [
        event async for event in run_agent("Go.", delegate=delegate(model), context=context(), tools=[add, source])
    ]
    (returned,) = [event for event in events if isinstance(event, Returned)]
    assert (returned.tool, returned.text, returned.is_error) == ("add", "5", False)
    assert {one["function"]["name"] for one in model.bodies[0]["tools"]} >= {"add", "read"}
