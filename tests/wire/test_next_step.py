import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from ullage.wire.jsonrpc import count_scheduled, run_scheduled

pytestmark = pytest.mark.requirement("U:start")


async def in_callback(work: Callable[[], None]) -> None:
    """Run the work in a callback of the event loop, outside any task, as where a message is read."""
    done = asyncio.get_running_loop().create_future()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - for the test that waits
            done.set_exception(error)
        else:
            done.set_result(None)

    asyncio.get_running_loop().call_soon(run)
    await done


@pytest.mark.anyio
async def test_the_first_step_of_a_task_runs_at_once():
    loop, steps = asyncio.get_running_loop(), list[str]()
    tasks = list[asyncio.Task[None]]()

    async def answer() -> None:
        steps.append("begun")
        await asyncio.sleep(0)
        steps.append("ended")

    def take() -> None:
        scheduled = count_scheduled(loop)
        tasks.append(loop.create_task(answer()))
        run_scheduled(loop, scheduled)
        steps.append("taken")

    await in_callback(take)
    await tasks[0]
    assert steps == ["begun", "taken", "ended"]


@pytest.mark.anyio
async def test_a_task_goes_on_at_once_when_its_answer_is_there():
    loop, steps = asyncio.get_running_loop(), list[str]()
    answer = loop.create_future()

    async def call() -> None:
        steps.append(await answer)

    task = loop.create_task(call())
    await asyncio.sleep(0)

    def take() -> None:
        scheduled = count_scheduled(loop)
        answer.set_result("answered")
        run_scheduled(loop, scheduled)
        steps.append("taken")

    await in_callback(take)
    await task
    assert steps == ["answered", "taken"]


@pytest.mark.anyio
async def test_within_another_task_it_waits_for_the_next_turn():
    loop, steps = asyncio.get_running_loop(), list[str]()

    async def answer() -> None:
        steps.append("begun")

    scheduled = count_scheduled(loop)
    task = loop.create_task(answer())
    run_scheduled(loop, scheduled)
    steps.append("taken")
    await task
    assert steps == ["taken", "begun"]


@pytest.mark.anyio
@pytest.mark.parametrize("number", [0, 2])
async def test_callbacks_keep_their_order_if_another_number_of_them_was_scheduled(number: int):
    loop, steps = asyncio.get_running_loop(), list[int]()

    def take() -> None:
        loop.call_soon(steps.append, -1)
        scheduled = count_scheduled(loop)
        for one in range(number):
            loop.call_soon(steps.append, one)
        run_scheduled(loop, scheduled)
        assert steps == []

    await in_callback(take)
    await asyncio.sleep(0.01)
    assert steps == [-1, *range(number)]


@pytest.mark.parametrize("loop", [SimpleNamespace(), SimpleNamespace(_ready=["not a queue"])])
def test_an_event_loop_without_such_a_queue_is_left_alone(loop: object):
    count = count_scheduled(cast("asyncio.AbstractEventLoop", loop))
    assert count == -1
    run_scheduled(cast("asyncio.AbstractEventLoop", loop), count)
