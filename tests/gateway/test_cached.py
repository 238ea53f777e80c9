from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio
import pytest

from ullage.gateway.access_rules import Guarded
from ullage.gateway.call_cache import Bounds, Cached
from ullage.gateway.merge import Member, Merge
from ullage.gateway.reply_metadata import META
from ullage.gateway.results import ResultRules, ServerResults
from ullage.options import Rules
from ullage.testing import FakeSource
from ullage.tool import Call, Caller, Change, Json, Needs, Origin, Reply, Structured, Tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S0:meta:performance")]

ADA, BOB = (Caller(principal=name, session=f"of {name}") for name in ("ada", "bob"))
TOOLS = tuple(Tool(name=name, input_schema={"type": "object"}) for name in ("read", "read_more", "write"))


class World:
    """Two servers, `a` and `b`, of which the first has tools that may be remembered for ten seconds."""

    def __init__(self, bounds: Bounds | None = None, cache: Mapping[str, float] | None = None) -> None:
        self.now = 0.0
        self.rules = ResultRules(servers={"a": ServerResults(cache={"read*": 10.0} if cache is None else cache)})
        self.a, self.b = (FakeSource(offered=TOOLS, answer=self.answer) for _ in range(2))
        self.merge = Merge([Member(name=name, source=source, prefix=name) for name, source in self.sources.items()])
        self.cached = Cached(self.merge, lambda: self.rules, lambda: self.now, bounds)
        self.guarded = Guarded(self.cached)
        self.reply = Reply.text("fresh")
        self.gates: list[anyio.Event] = []
        """Calls wait for these, one each."""

    @property
    def sources(self) -> dict[str, FakeSource]:
        return {"a": self.a, "b": self.b}

    async def answer(self, _: Call) -> Reply:
        if self.gates:
            await self.gates.pop(0).wait()
        return self.reply

    async def call(self, tool: str = "a__read", caller: Caller = ADA, **arguments: Json) -> Reply:
        return await self.guarded.call(Call(tool=tool, arguments=arguments, caller=caller))

    async def is_cached(self, tool: str = "a__read", caller: Caller = ADA, **arguments: Json) -> bool:
        meta: Any = (await self.call(tool, caller, **arguments)).meta
        return META in meta and meta[META]["performance"]["cachedResult"]

    @property
    def ran(self) -> int:
        return len(self.a.calls) + len(self.b.calls)


@pytest.mark.requirement("S0:meta:performance")
async def test_the_same_call_is_answered_from_memory_and_says_so():
    world = World()
    world.reply = Reply.text("fresh", meta={"com.example/its": 1, META: {"data": {"rowCount": 3}}})
    first = await world.call(name="x", size=1)
    again = await world.call(size=1, name="x")
    assert first.meta == world.reply.meta
    assert again.content == first.content
    assert again.origin == Origin("a", "read")
    assert again.meta == {
        "com.example/its": 1,
        META: {"data": {"rowCount": 3}, "performance": {"cachedResult": True}},
    }
    assert world.ran == 1


async def test_other_arguments_tools_and_principals_are_other_calls():
    world = World()
    others: list[dict[str, Any]] = [{}, {"n": 1}, {"n": 1.0}, {"n": True}, {"n": "1"}, {"n": [1]}, {"m": 1}]
    for arguments in others:
        assert not await world.is_cached(**arguments)
        assert await world.is_cached(**arguments)
    assert not await world.is_cached("a__read_more")
    assert not await world.is_cached(caller=BOB)
    assert await world.is_cached(caller=replace(ADA, session="another"))


async def test_a_tool_is_the_same_by_every_name_it_is_called_by():
    world = World()
    await world.call("a__read_more")
    assert await world.is_cached("a.read-more")


async def test_what_is_not_configured_is_run_each_time():
    world = World()
    for tool in ("b__read", "a__write"):
        assert [await world.is_cached(tool) for _ in range(2)] == [False, False]
    world = World(cache={})
    assert [await world.is_cached() for _ in range(2)] == [False, False]


async def test_an_answer_is_forgotten_when_its_time_is_over_reckoned_from_when_it_was_asked():
    world = World()
    gate = anyio.Event()
    world.gates = [gate]
    async with anyio.create_task_group() as group:
        group.start_soon(world.call)
        await anyio.wait_all_tasks_blocked()
        world.now = 6.0
        gate.set()
    world.now = 9.9
    assert await world.is_cached()
    world.now = 10.0
    assert not await world.is_cached()
    assert await world.is_cached()


async def test_any_other_call_to_the_server_empties_what_is_remembered_of_it():
    world = World()
    await world.call()
    await world.call("b__write")
    assert await world.is_cached()
    await world.call("a__write", caller=BOB)
    assert not await world.is_cached()


async def test_a_failing_other_call_empties_as_well():
    world = World()
    await world.call()
    world.reply = Reply.text("broken half way", is_error=True)
    await world.call("a__write")
    world.reply = Reply.text("fresh")
    assert not await world.is_cached()


async def test_what_was_asked_before_another_call_is_not_remembered_after_it():
    world = World()
    reading, writing = anyio.Event(), anyio.Event()
    world.gates = [reading, writing]
    async with anyio.create_task_group() as group:
        group.start_soon(world.call)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(world.call, "a__write")
        await anyio.wait_all_tasks_blocked()
        reading.set()
        await anyio.wait_all_tasks_blocked()
        writing.set()
    assert not await world.is_cached()


async def test_what_was_asked_while_another_call_ran_is_not_remembered_after_it():
    world = World()
    writing = anyio.Event()
    world.gates = [writing]
    async with anyio.create_task_group() as group:
        group.start_soon(world.call, "a__write")
        await anyio.wait_all_tasks_blocked()
        await world.call()
        writing.set()
    assert not await world.is_cached()


@pytest.mark.parametrize("reply", [Reply.text("no", is_error=True), Reply(needs=Needs({"a": {}}, "state"))])
async def test_failures_and_replies_that_need_something_are_never_remembered(reply: Reply):
    world = World()
    world.reply = reply
    await world.call()
    assert not await world.is_cached()


async def test_a_call_that_goes_on_from_another_is_neither_answered_from_memory_nor_remembered():
    world = World()
    await world.call()
    for more in ({"state": "s"}, {"answers": {"a": 1}}):
        reply = await world.guarded.call(replace(Call(tool="a__read", caller=ADA), **more))
        assert META not in reply.meta
    assert world.ran == 3
    assert await world.is_cached()


async def test_two_that_ask_at_the_same_time_both_reach_the_server():
    world = World()
    await world.cached.tools()
    gates = world.gates = [anyio.Event(), anyio.Event()]
    both = list(gates)
    async with anyio.create_task_group() as group:
        group.start_soon(world.call)
        group.start_soon(world.call)
        await anyio.wait_all_tasks_blocked()
        for gate in both:
            gate.set()
    assert world.ran == 2
    assert await world.is_cached()


async def test_a_call_that_was_cancelled_leaves_nothing_behind():
    world = World()
    world.gates = [anyio.Event()]
    with anyio.move_on_after(0.01):
        await world.call()
    assert not await world.is_cached()


async def test_the_longest_unasked_goes_first_where_there_are_too_many():
    world = World(Bounds(entries=2))
    await world.call(n=1)
    await world.call(n=2)
    assert await world.is_cached(n=1)
    await world.call(n=3)
    assert await world.is_cached(n=1)
    assert not await world.is_cached(n=2)


async def test_bytes_are_bounded_and_a_large_reply_is_not_remembered():
    world = World(Bounds(bytes=5_000, largest=4_000))
    world.reply = Reply.text("x" * 3_000)
    await world.call(n=1)
    assert await world.is_cached(n=1)
    await world.call(n=2)
    assert not await world.is_cached(n=1)
    world.reply = Reply.text("x" * 4_000)
    assert [await world.is_cached(n=3) for _ in range(2)] == [False, False]
    world.reply = Reply(structured=Structured(list[Json]([0] * 30_000)))
    assert [await world.is_cached(n=4) for _ in range(2)] == [False, False]
    world = World()
    world.reply = Reply(structured=Structured(list[Json]([0] * 30_000)))
    assert [await world.is_cached() for _ in range(2)] == [False, False]
    world.reply = Reply(structured=Structured({"a": [1, None]}))
    assert [await world.is_cached() for _ in range(2)] == [False, True]


async def test_a_call_with_very_large_arguments_is_not_remembered():
    world = World()
    assert [await world.is_cached(text="x" * 30_000) for _ in range(2)] == [False, False]


async def test_answers_are_replaced_when_they_are_asked_for_anew():
    world = World(Bounds(bytes=5_000))
    world.reply = Reply.text("x" * 3_000)
    for _ in range(3):
        await world.call()
        world.now += 10.0
    await world.call()
    assert await world.is_cached()


async def test_changed_tools_and_a_server_that_was_retired_empty_it():
    world = World()
    await world.call()
    await world.cached.tools()
    world.a.offered = (*TOOLS, Tool(name="new", input_schema={}))
    world.a.change(Change("tools"))
    await world.cached.tools()
    assert not await world.is_cached()
    world.cached.forget(["b"])
    assert await world.is_cached()
    world.cached.forget(["a"])
    assert not await world.is_cached()
    world.a.change(Change("prompts"))
    assert await world.is_cached()


async def test_settings_that_change_hold_from_the_next_call_on():
    world = World()
    await world.call()
    world.rules = ResultRules()
    assert not await world.is_cached()


async def test_a_denied_or_unasked_tool_is_not_answered_from_memory():
    world = World()
    await world.call()
    source = world.sources["a"]
    world.merge.replace([Member(name="a", source=source, prefix="a", rules=Rules(deny=("read",)))])
    with pytest.raises(Exception, match="deny"):
        await world.call()


async def test_everything_else_passes_through():
    world = World()
    assert (await world.cached.view()).servers == ("a", "b")
    assert (await world.cached.find("a__read")).original == "read"
    told: list[Change] = []
    unwatch = world.cached.watch(told.append)
    world.a.change(Change("prompts"))
    assert told == [Change("prompts")]
    unwatch()
    assert world.cached.members == world.merge.members
    await world.cached.close()
