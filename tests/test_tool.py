"""Each kind of source that Ullage will have, as a toy: the values every room hangs on are proved before the rooms."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

import anyio
import pytest

from ullage.errors import DeadlinePassed, UnknownTool
from ullage.testing import FakeSource, check_closing, check_prompts, check_resources, check_source, check_watched
from ullage.tool import (
    Call,
    Caller,
    Change,
    Listing,
    Needs,
    Origin,
    PromptRequest,
    Reply,
    SourceWrapper,
    Structured,
    Tool,
    ToolSource,
    text_block,
)

pytestmark = pytest.mark.anyio

EMPTY = {"type": "object"}


def tool(name: str, **more: object) -> Tool:
    return Tool(name=name, description=f"does {name}", input_schema=EMPTY, **more)  # pyright: ignore[reportArgumentType]


async def test_a_server_passes_blocks_of_unknown_kind_and_unknown_keys_whole():
    strange = {"type": "hologram", "depth": 3, "x-vendor": {"a": [1, None]}}

    async def answer(_: Call) -> Reply:
        return Reply(content=(strange, text_block("hi")), structured=Structured(None), meta={"vendor/key": 1})

    upstream = FakeSource(offered=(tool("show", extra={"icons": [], "_meta": {"a": 1}}),), answer=answer)
    reply = await check_source(upstream, Call(tool="show"))
    assert reply.content[0] == strange
    assert reply.structured == Structured(None)
    assert reply.structured is not None, "a structured null is not the same as no structured content"


async def test_a_call_that_needs_an_answer_goes_on_where_it_stopped():
    question = {"name": {"method": "elicitation/create", "params": {"message": "Who are you?"}}}

    async def answer(call: Call) -> Reply:
        if call.state is None:
            return Reply(needs=Needs(question, state="sealed"))
        assert call.state == "sealed"
        return Reply.text(f"hello {call.answers['name']}")

    upstream = FakeSource(offered=(tool("greet"),), answer=answer)
    first = await check_source(upstream, Call(tool="greet"))
    assert first.needs is not None
    assert not first.content
    second = await upstream.call(Call(tool="greet", answers={"name": "Ada"}, state=first.needs.state))
    assert second == Reply.text("hello Ada")


async def test_a_server_offers_resources_prompts_changes_and_an_end():
    upstream = FakeSource(offered=(tool("a"),), texts={"memo://1": "one"}, messages={"greet": "Hello {who}"})
    await check_resources(upstream)
    await check_prompts(upstream, PromptRequest(name="greet", arguments={"who": "Ada"}))
    check_watched(upstream)
    heard: list[Change] = []
    unwatch = upstream.watch(heard.append)
    upstream.change(Change("tools"))
    unwatch()
    upstream.change(Change("resource", uri="memo://1"))
    assert heard == [Change("tools")]
    await check_closing(upstream)
    assert upstream.closed


@dataclass
class Database(ToolSource):
    """A source with a result that has figures for the client beside text for the model."""

    rows: tuple[tuple[int, str], ...] = ((1, "ann"), (2, "bob"))

    async def tools(self) -> Listing:
        return Listing((tool("query", aliases=("secureDatabaseQuery",), annotations={"readOnlyHint": True}),), "1")

    async def call(self, call: Call) -> Reply:
        if call.tool not in ("query", "secureDatabaseQuery"):
            raise UnknownTool(f"no tool is called `{call.tool}`", options=("query",))
        text = "\n".join(f"{number},{name}" for number, name in self.rows)
        return Reply.text(text, meta={"rows": len(self.rows)})


async def test_a_database_answers_by_name_and_by_alias_with_figures_for_the_client_alone():
    database = Database()
    reply = await check_source(database, Call(tool="query"))
    assert reply.meta == {"rows": 2}
    assert reply == await database.call(Call(tool="secureDatabaseQuery"))


async def _slow_model(call: Call) -> Reply:
    with anyio.CancelScope(deadline=call.deadline if call.deadline is not None else float("inf")) as scope:
        for done in range(3):
            await anyio.sleep(0.01)
            if call.progress is not None:
                await call.progress(done + 1, 3, "thinking")
        return Reply.text("42")
    assert scope.cancelled_caught
    raise DeadlinePassed("the model did not answer in time")


async def test_a_delegate_reports_progress_and_holds_a_deadline():
    heard: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, of: float | None, message: str | None) -> None:
        heard.append((done, of, message))

    delegate = FakeSource(offered=(tool("run"),), answer=_slow_model)
    call = Call(tool="run", progress=progress)
    assert (await delegate.call(call)).content == (text_block("42"),)
    assert heard == [(1, 3, "thinking"), (2, 3, "thinking"), (3, 3, "thinking")]
    with pytest.raises(DeadlinePassed):
        await delegate.call(replace(call, deadline=anyio.current_time() + 0.001))


async def test_cancelling_whoever_waits_cancels_the_call():
    ended: list[str] = []

    async def answer(_: Call) -> Reply:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("ended")
        return Reply()

    source = FakeSource(offered=(tool("wait"),), answer=answer)
    with anyio.move_on_after(0.01):
        await source.call(Call(tool="wait"))
    assert ended == ["ended"]


@dataclass
class Gateway(ToolSource):
    """Many sources as one: the name says which, and the reply says who really answered."""

    sources: dict[str, ToolSource] = field(default_factory=dict)

    async def tools(self) -> Listing:
        listings = {name: await source.tools() for name, source in self.sources.items()}
        tools = [replace(t, name=f"{name}__{t.name}", aliases=()) for name, one in listings.items() for t in one.tools]
        return Listing(tuple(tools), revision="|".join(one.revision for one in listings.values()))

    async def call(self, call: Call) -> Reply:
        server, _, name = call.tool.partition("__")
        if server not in self.sources:
            raise UnknownTool(f"no tool is called `{call.tool}`", options=tuple(self.sources))
        reply = await self.sources[server].call(replace(call, tool=name))
        return replace(reply, origin=Origin(server, name))


@dataclass
class Timed(SourceWrapper[ToolSource]):
    """A wrapper changes only what it adds."""

    inner: ToolSource
    clock: Callable[[], float]

    async def call(self, call: Call) -> Reply:
        started = self.clock()
        reply = await self.inner.call(call)
        return replace(reply, meta={**reply.meta, "seconds": self.clock() - started})


async def test_a_gateway_is_a_source_of_sources_and_a_wrapper_is_one_too():
    ticks = iter([1.0, 3.0, 3.0, 3.5])
    echo = FakeSource(offered=(tool("echo"),))
    gateway = Timed(Gateway({"shop": Database(), "misc": echo}), lambda: next(ticks))
    ada = Caller(principal="ada", session="s1", client="codex", model="gpt-5")
    call = Call(tool="misc__echo", arguments={"a": 1}, caller=ada, meta={"traceparent": "00-1"})
    await check_source(gateway.inner, Call(tool="shop__query"))
    reply = await gateway.call(call)
    assert reply.origin == Origin("misc", "echo")
    assert reply.meta == {"seconds": 2.0}
    assert echo.calls[-1].caller == ada
    assert echo.calls[-1].meta == {"traceparent": "00-1"}
    assert [t.name for t in (await gateway.tools()).tools] == ["shop__query", "misc__echo"]
    assert json.dumps(dict(echo.calls[-1].arguments)) == '{"a": 1}'


def test_a_changed_call_keeps_everything_that_was_not_given():
    values = {field.name: object() for field in fields(Call)}
    call = Call(**values)  # type: ignore[arg-type]
    assert all(getattr(call.changed(), name) is value for name, value in values.items())
    given = {name: object() for name in ("tool", "arguments", "meta", "progress", "ask", "tell")}
    changed = call.changed(**given)  # type: ignore[arg-type]
    assert all(getattr(changed, name) is value for name, value in (values | given).items())


def test_a_changed_reply_keeps_everything_that_was_not_given():
    values = {field.name: object() for field in fields(Reply)}
    changed = Reply(**values).changed()  # type: ignore[arg-type]
    assert all(getattr(changed, name) is value for name, value in values.items())
