"""Running calls are counted, and ended with an error when Ullage shuts down."""

import asyncio

import anyio
import pytest

from ullage.errors import Unavailable
from ullage.gateway import OpenCalls

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U:shutdown")]


async def test_running_call_is_counted_until_it_ends() -> None:
    calls = OpenCalls()

    async def look() -> int:
        return len(calls)

    assert await calls.run(look) == 1
    assert len(calls) == 0


async def test_end_turns_running_calls_into_errors_and_their_tasks_go_on() -> None:
    calls = OpenCalls()
    after: list[str] = []

    async def one(name: str) -> None:
        with pytest.raises(Unavailable, match="had not finished"):
            await calls.run(anyio.sleep_forever)
        await anyio.sleep(0.01)  # a task that is still being cancelled would not come back from this
        after.append(name)

    async with anyio.create_task_group() as tasks:
        for name in "abc":
            tasks.start_soon(one, name)
        await anyio.sleep(0.05)
        assert len(calls) == 3
        calls.end()
    assert sorted(after) == ["a", "b", "c"]
    assert len(calls) == 0
    with pytest.raises(Unavailable, match="no further calls"):
        await calls.run(anyio.sleep_forever)


async def test_call_in_a_call_is_ended_once_where_both_are_ended_together() -> None:
    outer, inner = OpenCalls(), OpenCalls()
    seen: list[str] = []

    async def work() -> str:
        try:
            return await inner.run(anyio.sleep_forever)  # type: ignore[arg-type,return-value]
        except Unavailable:
            await anyio.sleep(0.01)
            return "the inner error as an answer"

    async def run() -> None:
        seen.append(await outer.run(work))
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await anyio.sleep(0.05)
        inner.end()
        outer.end()
    assert seen == ["the inner error as an answer"]


async def test_cancelling_from_outside_is_no_shutdown() -> None:
    calls = OpenCalls()
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(calls.run, anyio.sleep_forever)
            await anyio.sleep(0.05)
            scope.cancel()
    assert scope.cancelled_caught
    assert len(calls) == 0
