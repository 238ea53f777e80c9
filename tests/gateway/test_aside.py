from threading import Thread, current_thread, main_thread
from typing import Any

import anyio
import pytest

from ullage.errors import InvalidArguments
from ullage.gateway.find.call_tool import Aside, Checker, Fitting, read_call
from ullage.gateway.merge.tool_view import Entry, Member
from ullage.testing import FakeSource
from ullage.tool import Tool

Value = Any
"""Any JSON."""

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U:bounded")]


class Noting(dict[str, Value]):
    """A schema that knows in which threads it was looked at."""

    def __init__(self, schema: dict[str, Value]) -> None:
        super().__init__(schema)
        self.threads: list[Thread] = []

    def get(self, key: str, default: Value = None, /) -> Value:
        self.threads.append(current_thread())
        return super().get(key, default)


def entry(schema: dict[str, Value]) -> Entry:
    member = Member(name="s", source=FakeSource(), prefix="s")
    return Entry(listed="s__t", tool=Tool(name="s__t", input_schema=schema), member=member, original="t")


async def fitted(aside: Aside, schema: dict[str, Value], parameters: Value) -> Fitting:
    spoken = read_call({"tool_name": "t", "parameters": parameters})
    return await aside.fitting(spoken, entry(schema), Checker(), "key")


@pytest.mark.parametrize(
    ("parameters", "in_the_loop"),
    [
        ({"rows": [1]}, True),
        ({"rows": list(range(5_000))}, False),
        ({"rows": [1], "text": "x" * 200_000}, False),
        ('{"rows": [' + "1," * 99_999 + "1]}", False),
    ],
)
async def test_large_arguments_are_looked_through_in_another_thread(parameters: Value, *, in_the_loop: bool):
    schema = Noting({"properties": {"rows": {"type": "array"}}})
    fit = await fitted(Aside(), schema, parameters)
    assert fit.arguments["rows"]
    assert schema.threads
    assert all((thread is main_thread()) is in_the_loop for thread in schema.threads)


async def test_many_large_calls_at_once_each_get_their_own_verdict():
    aside, schema = Aside(), {"properties": {"rows": {"items": {"type": "integer"}}}}
    outcomes: dict[int, bool] = {}

    async def one(number: int) -> None:
        last: Value = "x" if number % 2 else number
        try:
            await fitted(aside, schema, {"rows": [*range(4_000), last]})
            outcomes[number] = True
        except InvalidArguments:
            outcomes[number] = False

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(one, number)
    assert outcomes == {number: number % 2 == 0 for number in range(6)}


@pytest.mark.requirement("S1:heal")
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"count": "1000"}, "`count` must have maximum 100"),
        ({"input": {"Count": "1000"}}, "`count` must have maximum 100"),
        ({"COUNT": 3, "colour": "red"}, "`colour` is not a parameter of it"),
    ],
)
async def test_a_refusal_says_what_is_wrong_beside_what_could_be_repaired(given: dict[str, Value], problem: str):
    count = {"type": "integer", "maximum": 100}
    schema = {"type": "object", "properties": {"count": count}, "required": ["count"], "additionalProperties": False}
    with pytest.raises(InvalidArguments, match=problem):
        await fitted(Aside(), schema, given)
