import json
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest

from ullage.errors import BadConfiguration, Denied, ProtocolError, SourceFailed, UnknownResource, UnknownTool
from ullage.gateway import Guarded
from ullage.gateway.merge import prompts_and_resources as prompts
from ullage.gateway.merge import prompts_and_resources as resources
from ullage.gateway.merge.merge import Member, Merge
from ullage.gateway.merge.tool_names import Template
from ullage.gateway.merge.tool_view import Missing, RememberedSource, View
from ullage.gateway.sanitize import sanitize_item
from ullage.options import Rules
from ullage.testing import FakeSource, check_prompts, check_resources, check_source, check_watched
from ullage.tool import (
    Call,
    Change,
    Complete,
    Contents,
    JsonObject,
    Listing,
    Needs,
    Origin,
    PromptMessages,
    PromptRequest,
    Read,
    Reply,
    SourceWrapper,
    Structured,
    Tool,
    ToolSource,
)

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:aggregate")]


def tool(name: str, **more: Any) -> Tool:  # noqa: ANN401
    return Tool(name=name, description="a tool", input_schema={"type": "object"}, **more)


def source(*names: str, **more: Any) -> FakeSource:  # noqa: ANN401
    return FakeSource(offered=tuple(map(tool, names)), **more)


def member(name: str, inner: Any, prefix: str | None = None, **more: Any) -> Member:  # noqa: ANN401
    return Member(name=name, source=inner, prefix=name if prefix is None else prefix, **more)


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not true():
            await anyio.sleep(0.01)


def names(view: View) -> list[str]:
    return [entry.listed for entry in view.entries]


class Gated(ToolSource):
    """A server that lists its tools when told to, or fails to."""

    def __init__(self, *offered: str, error: Exception | None = None) -> None:
        self.listing = Listing(tuple(map(tool, offered)), revision=repr(offered))
        self.error = error
        self.opened = anyio.Event()
        self.asked = 0

    async def tools(self) -> Listing:
        self.asked += 1
        await self.opened.wait()
        if self.error is not None:
            raise self.error
        return self.listing

    async def call(self, call: Call) -> Reply:
        return Reply.text(f"{call.tool} ran")


class Listening(ToolSource):
    """The same, which says when it changes."""

    def __init__(self, inner: Gated, listeners: list[Callable[[Change], None]]) -> None:
        self.inner, self.listeners = inner, listeners

    async def tools(self) -> Listing:
        return await self.inner.tools()

    async def call(self, call: Call) -> Reply:
        return await self.inner.call(call)

    def watch(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return self.listeners.clear


class Peeking(Gated, RememberedSource):
    """The same, which also says at once what it knows."""

    known: Listing | None = None
    weighed = 0

    def peek(self) -> Listing | None:
        return self.known

    def token_count(self, tool: str) -> int | None:
        self.weighed += 1
        return 7 if tool == "a" else None

    async def tools(self) -> Listing:
        self.known = await super().tools()
        return self.known


class Remembering(Peeking):
    """The same, which has written it down."""

    recalled = 0

    async def load(self) -> Listing | None:
        self.recalled += 1
        if self.error is not None:
            raise self.error
        self.known = self.listing
        return self.known


@pytest.mark.requirement("S1:aggregate")
async def test_many_sources_are_listed_as_one_in_the_order_of_the_settings():
    merge = Merge([member("b", source("z", "y")), member("a", source("x")), member("own", source("count"), prefix="")])
    listing = await merge.tools()
    assert [one.name for one in listing.tools] == ["b__z", "b__y", "a__x", "count"]
    assert listing == await merge.tools()


async def test_a_definition_is_whole_under_its_new_name():
    whole = tool("z", title="Z", output_schema={"type": "object"}, annotations={"x": 1}, extra={"_meta": {"a": 1}})
    (listed,) = (await Merge([member("b", FakeSource(offered=(whole,)))]).tools()).tools
    assert listed == replace(whole, name="b__z")


async def test_a_call_goes_to_the_tools_own_server_and_the_reply_says_so():
    one, two = source("a"), source("a")
    merge = Merge([member("one", one), member("two", two)])
    reply = await merge.call(Call(tool="two__a", arguments={"x": 1}))
    assert reply.origin == Origin("two", "a")
    assert reply.content[0]["text"] == "a: {'x': 1}"
    assert one.calls == []


@pytest.mark.requirement("S1:call")
async def test_a_call_and_its_reply_pass_through_whole():
    told: list[float] = []

    async def progress(done: float, of: float | None, word: str | None) -> None:
        told.append(done)

    answer = Reply(
        content=({"type": "hologram", "unheard": [1]}, {"type": "text", "text": "a"}),
        structured=Structured(None),
        meta={"com.example/a": 1},
        is_error=True,
    )

    async def respond(call: Call) -> Reply:
        assert call.progress is not None
        await call.progress(1, None, None)
        return answer

    inner = source("a", answer=respond)
    call = Call(tool="one__a", arguments={"x": 1}, meta={"traceparent": "t"}, state="s", progress=progress)
    reply = await Merge([member("one", inner)]).call(call)
    assert reply == replace(answer, origin=Origin("one", "a"))
    assert [replace(one, progress=None) for one in inner.calls] == [replace(call, tool="a", progress=None)]
    assert told == [1]


@pytest.mark.requirement("S1:call")
async def test_a_call_that_is_cancelled_is_cancelled_at_its_server():
    begun, stopped = anyio.Event(), list[str]()

    async def forever(call: Call) -> Reply:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(call.tool)
        raise AssertionError

    merge = Merge([member("one", source("a", answer=forever))])
    async with anyio.create_task_group() as group:
        group.start_soon(merge.call, Call(tool="one__a"))
        with anyio.fail_after(20):
            await begun.wait()
        group.cancel_scope.cancel()
    assert stopped == ["a"]


async def test_a_failure_says_whose_it_was_and_an_error_of_the_protocol_stays_one():
    async def fail(call: Call) -> Reply:
        if call.arguments:
            raise ProtocolError("odd", number=-32000)
        raise SourceFailed("it died")

    merge = Merge([member("one", source("a", answer=fail))])
    reply = await merge.call(Call(tool="one__a"))
    assert reply.is_error
    assert reply.origin == Origin("one", "a")
    assert "SOURCE_FAILED" in str(reply.content[0]["text"])
    with pytest.raises(ProtocolError):
        await merge.call(Call(tool="one__a", arguments={"x": 1}))


async def test_a_reply_that_needs_something_keeps_its_needs():
    needs = Needs({"a": {}}, state="s")

    async def ask(_: Call) -> Reply:
        return Reply(needs=needs)

    assert (await Merge([member("one", source("a", answer=ask))]).call(Call(tool="one__a"))).needs is needs


async def test_an_unknown_tool_is_told_the_nearest_and_who_has_not_answered():
    dead = Gated(error=SourceFailed("it crashed"))
    dead.opened.set()
    merge = Merge([member("github", source("create_issue")), member("dead", dead)])
    await merge.view()
    with pytest.raises(UnknownTool, match="no tool is called `creat_issu`") as caught:
        await merge.call(Call(tool="creat_issu"))
    assert caught.value.options == ("github__create_issue",)
    assert "find_tool" in caught.value.suggestion
    assert "`dead` (it crashed)" in caught.value.suggestion


async def test_a_tool_is_found_by_server_and_name():
    merge = Merge([member("github", source("search")), member("jira", source("search"))])
    await merge.view()
    assert (await merge.find("search", "jira")).listed == "jira__search"
    assert (await merge.find("github__search", "GitHub")).server == "github"
    with pytest.raises(UnknownTool, match="may mean 2 tools") as caught:
        await merge.find("search")
    assert caught.value.options == ("github__search", "jira__search")
    with pytest.raises(UnknownTool, match="no server is called `zzz`") as caught:
        await merge.find("search", "zzz")
    assert caught.value.options == ("github", "jira")
    with pytest.raises(UnknownTool, match="no server is called `gitub`") as caught:
        await merge.find("search", "gitub")
    assert caught.value.options == ("github",)
    with pytest.raises(UnknownTool, match="no tool of server `jira` is called `serch`") as caught:
        await merge.find("serch", "jira")
    assert caught.value.options == ("jira__search",)


async def test_declared_aliases_are_accepted_and_never_listed_twice():
    own = FakeSource(offered=(tool("count-tokens", aliases=("count_tokens", "read")), tool("read")))
    merge = Merge([member("own", own, prefix=""), member("other", FakeSource(offered=(tool("x", aliases=("y",)),)))])
    listing = await merge.tools()
    assert [one.aliases for one in listing.tools] == [("count_tokens",), (), ()]
    assert (await merge.call(Call(tool="count_tokens"))).origin == Origin("own", "count-tokens")
    reply = await check_source(merge, Call(tool="count-tokens"))
    assert reply.origin is not None


@pytest.mark.requirement("S1:aggregate")
async def test_a_dead_server_harms_no_other():
    dead, broken = Gated(error=SourceFailed("it crashed")), Gated(error=RuntimeError("token=secret"))
    dead.opened.set()
    broken.opened.set()
    merge = Merge([member("dead", dead), member("broken", broken), member("well", source("a"))])
    view = await merge.view()
    assert names(view) == ["well__a"]
    assert [(one.server, one.reason) for one in view.missing] == [
        ("dead", "it crashed"),
        ("broken", "it failed with RuntimeError"),
    ]
    assert view.servers == ("dead", "broken", "well")
    assert (await merge.call(Call(tool="well__a"))).origin == Origin("well", "a")
    assert [one.server for one in merge.failed()] == ["dead", "broken"]


@pytest.mark.requirement("S1:aggregate")
async def test_a_silent_server_is_waited_for_only_so_long_and_announced_when_it_answers():
    silent = Peeking("a", "b")
    changes: list[Change] = []
    async with anyio.create_task_group() as group:
        merge = Merge([member("silent", silent), member("well", source("a"))], spawn=group.start_soon)
        merge.watch(changes.append)
        started = time.monotonic()
        view = await merge.view()
        assert names(view) == ["well__a"]
        assert [(one.server, one.reason) for one in view.missing] == [("silent", "it has not answered yet")]
        await merge.view(wait=0.05)
        assert 0.04 < time.monotonic() - started < 20
        assert (silent.asked, changes) == (1, [])
        silent.opened.set()
        view = await merge.view(wait=20)
        assert names(view) == ["silent__a", "silent__b", "well__a"]
        assert view.missing == ()
    assert changes == [Change("tools")]


@pytest.mark.requirement("S1:live")
async def test_a_list_that_arrives_late_and_is_empty_is_not_announced():
    silent = Peeking()
    changes: list[Change] = []
    async with anyio.create_task_group() as group:
        merge = Merge([member("silent", silent)], spawn=group.start_soon)
        merge.watch(changes.append)
        await merge.view()
        silent.opened.set()
    assert changes == []


async def test_members_are_asked_side_by_side():
    sources = [Gated("a") for _ in range(10)]

    async def when_all_are_asked() -> None:
        await until(lambda: all(one.asked for one in sources))
        for one in sources:
            one.opened.set()

    async with anyio.create_task_group() as group:
        group.start_soon(when_all_are_asked)
        view = await Merge([member(f"s{number}", one) for number, one in enumerate(sources)]).view(wait=30)
        assert len(view.entries) == 10


async def test_without_a_background_who_does_not_answer_in_time_is_asked_again():
    silent = Gated("a")
    merge = Merge([member("silent", silent)], patience=0.02)
    view = await merge.view()
    assert [one.reason for one in view.missing] == ["it did not answer in time"]
    silent.opened.set()
    assert names(await merge.view(wait=20)) == ["silent__a"]
    assert silent.asked == 2


async def test_what_was_written_down_is_listed_before_any_server_is_asked():
    warm, torn = Remembering("a", "b"), Remembering("c", error=SourceFailed("the catalogue is torn"))
    async with anyio.create_task_group() as group:
        merge = Merge([member("warm", warm), member("torn", torn)], spawn=group.start_soon)
        view = await merge.view()
        assert names(view) == ["warm__a", "warm__b"]
        assert [entry.token_count for entry in view.entries] == [7, None]
        assert (warm.asked, warm.recalled) == (0, 1)
        await merge.view()
        assert warm.recalled == 1
        torn.opened.set()


async def test_a_call_waits_for_the_server_that_its_name_belongs_to():
    slow, other = Peeking("a"), Peeking("b")
    async with anyio.create_task_group() as group:
        merge = Merge([member("slow", slow), member("other", other)], spawn=group.start_soon, patience=20)

        async def open_soon() -> None:
            await anyio.sleep(0.02)
            slow.opened.set()

        group.start_soon(open_soon)
        reply = await merge.call(Call(tool="mcp__slow__a"))
        assert reply.origin == Origin("slow", "a")
        assert (await merge.find("a", "slow")).listed == "slow__a"
        assert other.asked == 0
        with pytest.raises(UnknownTool):
            await merge.call(Call(tool="elsewhere__b"))
        assert other.asked == 0
        other.opened.set()
        assert (await merge.find("b", "Other")).listed == "other__b"


@pytest.mark.requirement("S1:live")
async def test_a_view_is_not_made_again_while_nothing_changes():
    many = Peeking()
    many.known = Listing(tuple(tool(f"tool_{number}") for number in range(5_000)), revision="1")
    merge = Merge([member("many", many)])
    first = await merge.view()
    counted = many.weighed
    for _ in range(10):
        assert await merge.view() is first
    many.known = Listing(many.known.tools, revision="1")
    assert await merge.view() is first, "the same revision is the same list"
    assert many.weighed == counted


@pytest.mark.requirement("S1:live")
async def test_a_list_with_another_revision_and_the_same_tools_is_no_change():
    inner = Peeking()
    inner.known = Listing((tool("a"),), revision="1")
    merge = Merge([member("one", inner)])
    first = await merge.view()
    inner.known = Listing((tool("a"),), revision="2")
    assert (await merge.view()).revision == first.revision
    inner.known = Listing((tool("a", title="A"),), revision="3")
    assert (await merge.view()).revision != first.revision


@pytest.mark.requirement("S1:live")
async def test_changes_of_tools_are_told_only_where_the_list_differs():
    inner = source("a")
    changes: list[Change] = []
    async with anyio.create_task_group() as group:
        merge = Merge([member("one", inner)], spawn=group.start_soon)
        merge.watch(changes.append)
        inner.change(Change("tools"))
        await anyio.wait_all_tasks_blocked()
        assert changes == [], "nobody has seen the list yet"
        await merge.view()
        inner.change(Change("tools"))
        await anyio.wait_all_tasks_blocked()
        assert changes == []
        inner.offered = (tool("b"),)
        inner.change(Change("tools"))
        await until(lambda: changes == [Change("tools")])
        assert names(await merge.view()) == ["one__b"]


@pytest.mark.requirement("S1:live")
async def test_a_change_of_a_peeked_source_is_told_at_once():
    inner = source("a")
    known = [Listing((tool("a"),), "1")]

    class Known(SourceWrapper[ToolSource], RememberedSource):
        def __init__(self) -> None:
            self.inner = inner

        def peek(self) -> Listing:
            return known[0]

    changes: list[Change] = []
    merge = Merge([member("one", Known())])
    merge.watch(changes.append)
    await merge.view()
    inner.change(Change("tools"))
    assert changes == []
    known[0] = Listing((tool("a"), tool("b")), "2")
    inner.change(Change("tools"))
    assert changes == [Change("tools")]


@pytest.mark.requirement("S1:live")
async def test_without_a_background_a_change_is_told_and_the_next_list_is_new():
    inner = source("a")
    changes: list[Change] = []
    merge = Merge([member("one", inner)])
    merge.watch(changes.append)
    await merge.view()
    inner.offered = (tool("b"),)
    inner.change(Change("tools"))
    assert changes == [Change("tools")]
    assert names(await merge.view()) == ["one__b"]


@pytest.mark.requirement("S1:live")
async def test_what_is_heard_of_a_source_that_stays_is_kept_when_the_settings_change():
    stays, goes, comes = Peeking("a"), source("b"), source("c")
    stays.known = stays.listing
    changes: list[Change] = []
    async with anyio.create_task_group() as group:
        merge = Merge([member("stays", stays), member("goes", goes)], spawn=group.start_soon)
        merge.watch(changes.append)
        await merge.view()
        merge.replace([member("stays", stays), member("goes", goes)])
        assert changes == [], "the same members are no news"
        merge.replace([member("comes", comes), member("stays", stays, prefix="s")])
        await anyio.wait_all_tasks_blocked()
        assert names(await merge.view()) == ["comes__c", "s__a"]
        await merge.close()
    assert changes == [Change("tools")] * 2
    assert goes.listeners == comes.listeners == []
    assert not goes.closed
    assert not comes.closed
    assert stays.asked == 0


def test_two_servers_of_one_name_are_refused():
    with pytest.raises(BadConfiguration, match="two servers are called `a`"):
        Merge([member("a", source()), member("a", source())])


async def test_reserved_names_are_listed_for_no_member():
    merge = Merge([member("one", source("find_tool"), prefix="")], reserved=["find_tool"])
    assert names(await merge.view())[0].startswith("find_tool_")


async def test_an_entry_knows_the_rules_for_it():
    rules = Rules(ask=("a",), pinned=("a",), writing=("a",), read_only=("b",))
    a, b = (await Merge([member("one", source("a", "b"), rules=rules)]).view()).entries
    assert (a.access, a.is_pinned, a.is_read_only) == ("ask", True, False)
    assert (b.access, b.is_pinned, b.is_read_only) == ("allow", False, True)


def reading(**texts: str) -> FakeSource:
    return FakeSource(texts={f"file:///{name}": text for name, text in texts.items()})


async def text_at(merge: Merge, uri: str) -> tuple[Any, Any]:
    (content,) = (await merge.read(Read(uri=uri))).contents
    return content["uri"], content["text"]


async def test_resources_keep_their_addresses_and_those_of_two_servers_are_told_apart():
    merge = Merge(
        [member("one", reading(a="1a", b="1b")), member("two", reading(a="2a", c="2c")), member("x", Gated())]
    )
    uris = [one["uri"] for one in await merge.resources()]
    assert uris == ["file:///a", "file:///b", "ullage+from://two/file:///a", "file:///c"]
    assert [await text_at(merge, str(uri)) for uri in uris] == [
        ("file:///a", "1a"),
        ("file:///b", "1b"),
        ("ullage+from://two/file:///a", "2a"),
        ("file:///c", "2c"),
    ]
    with pytest.raises(UnknownResource, match="nowhere"):
        await merge.read(Read(uri="nowhere://"))
    await check_resources(merge)


async def test_an_address_is_read_without_having_been_listed_by_anyone():
    merge = Merge([member("one", reading(a="1a")), member("two", reading(b="2b"))])
    assert await text_at(merge, "file:///b") == ("file:///b", "2b")


class Templated(FakeSource):
    """Reads whatever fits its template."""

    template = "note://{id}"

    async def templates(self) -> tuple[JsonObject, ...]:
        return ({"uriTemplate": self.template, "name": "note"},)

    async def read(self, read: Read) -> Contents:
        return Contents(contents=({"uri": read.uri, "text": f"{self.texts['me']} {read.uri}"},))

    async def resources(self) -> tuple[JsonObject, ...]:
        return ()

    async def complete(self, request: Complete) -> JsonObject:
        return {"values": [self.texts["me"], str(request.reference.get("uri"))]}


@pytest.mark.requirement("S1:live")
async def test_templates_of_two_servers_are_told_apart_and_lead_back():
    one, two = Templated(texts={"me": "one"}), Templated(texts={"me": "two"})
    merge = Merge([member("one", one), member("two", two)])
    shown = [str(each["uriTemplate"]) for each in await merge.templates()]
    assert shown == ["note://{id}", "ullage+from://two/note://{id}"]
    assert await text_at(merge, "note://7") == ("note://7", "one note://7")
    assert await text_at(merge, "ullage+from://two/note://7") == ("ullage+from://two/note://7", "two note://7")
    for template, expected in zip(shown, ("one", "two"), strict=True):
        completed = await merge.complete(
            Complete(reference={"type": "ref/resource", "uri": template}, argument={"name": "id", "value": ""})
        )
        assert completed["values"] == [expected, "note://{id}"]


class Open(FakeSource):
    """Reads what it does not list, as a file server does."""

    async def read(self, read: Read) -> Contents:
        return Contents(contents=({"uri": read.uri, "text": self.texts["me"]},))

    async def resources(self) -> tuple[JsonObject, ...]:
        return ()


async def test_an_address_in_a_reply_leads_back_to_the_server_it_came_from():
    def linking(uri: str) -> Callable[[Call], Awaitable[Reply]]:
        async def answer(_: Call) -> Reply:
            return Reply(
                content=(
                    {"type": "resource_link", "uri": uri, "name": "n"},
                    {"type": "resource", "resource": {"uri": uri, "text": "t"}},
                    {"type": "text", "text": "a"},
                )
            )

        return answer

    one = Open(offered=(tool("a"),), texts={"me": "one"}, answer=linking("tmp://x"))
    two = Open(offered=(tool("a"),), texts={"me": "two"}, answer=linking("tmp://x"))
    merge = Merge([member("one", one), member("two", two)])
    second = (await merge.call(Call(tool="two__a"))).content
    assert [second[0]["uri"], second[2]] == ["tmp://x", {"type": "text", "text": "a"}]
    assert await text_at(merge, "tmp://x") == ("tmp://x", "two"), "whoever showed it first"
    first = (await merge.call(Call(tool="one__a"))).content
    assert first[0]["uri"] == "ullage+from://one/tmp://x"
    assert first[1]["resource"] == {"uri": "ullage+from://one/tmp://x", "text": "t"}
    assert await text_at(merge, "ullage+from://one/tmp://x") == ("ullage+from://one/tmp://x", "one")


async def test_only_so_many_addresses_are_remembered():
    numbers = iter(range(5_000))

    async def answer(_: Call) -> Reply:
        return Reply(content=({"type": "resource_link", "uri": f"tmp://{next(numbers)}"},))

    merge = Merge([member("one", source("a", answer=answer))])
    for _ in range(4_100):
        await merge.call(Call(tool="one__a"))
    seen = [*merge._resources._seen]
    assert (len(seen), seen[-1]) == (4_096, "tmp://4099")


async def test_a_server_without_resources_or_prompts_is_no_failure_and_a_failing_one_is_noted():
    class Without(FakeSource):
        async def resources(self) -> tuple[JsonObject, ...]:
            raise ProtocolError("method not found", number=-32601)

        async def prompts(self) -> tuple[JsonObject, ...]:
            raise ProtocolError("method not found", number=-32601)

    class Failing(FakeSource):
        async def resources(self) -> tuple[JsonObject, ...]:
            raise SourceFailed("it crashed")

        async def prompts(self) -> tuple[JsonObject, ...]:
            raise ProtocolError("odd", number=-32000)

        async def read(self, read: Read) -> Contents:
            raise SourceFailed("it crashed")

    merge = Merge([member("without", Without()), member("failing", Failing()), member("well", reading(a="1"))])
    assert [one["uri"] for one in await merge.resources()] == ["file:///a"]
    assert await merge.prompts() == ()
    assert {(one.server, one.reason) for one in merge.failed()} == {("failing", "it crashed"), ("failing", "odd")}
    with pytest.raises(UnknownResource) as caught:
        await merge.read(Read(uri="elsewhere://"))
    assert "`failing` (it crashed)" in caught.value.suggestion


async def test_a_server_that_hangs_over_an_unknown_address_is_passed_by():
    asked: list[str] = []

    class Hanging(FakeSource):
        async def read(self, read: Read) -> Contents:
            asked.append(read.uri)
            await anyio.sleep_forever()
            raise AssertionError

    hanging = member("hangs", Hanging())
    merge = Merge([hanging, member("open", Open(texts={"me": "open"}))], patience=0.05)
    assert await text_at(merge, "tmp://x") == ("tmp://x", "open")
    assert await text_at(merge, "tmp://x") == ("tmp://x", "open")
    assert asked == ["tmp://x"], "whoever knew it is asked at once the next time"
    with pytest.raises(UnknownResource) as caught:
        await Merge([hanging], patience=0.05).read(Read(uri="elsewhere://"))
    assert "`hangs` (it did not answer in time)" in caught.value.suggestion


class Subscribing(FakeSource):
    def __init__(self, **more: Any) -> None:  # noqa: ANN401
        super().__init__(**more)
        self.subscribed: list[str] = []

    async def subscribe(self, uri: str) -> None:
        self.subscribed.append(uri)

    async def unsubscribe(self, uri: str) -> None:
        self.subscribed.remove(uri)


@pytest.mark.requirement("S1:live")
async def test_a_subscription_goes_to_the_owner_and_its_change_comes_back_under_the_same_address():
    one, two = Subscribing(texts={"file:///a": "1"}), Subscribing(texts={"file:///a": "2"})
    changes: list[Change] = []
    merge = Merge([member("one", one), member("two", two), member("deaf", reading(b="3"))])
    merge.watch(changes.append)
    await merge.subscribe("ullage+from://two/file:///a")
    assert (one.subscribed, two.subscribed) == ([], ["file:///a"])
    two.change(Change("resource", "file:///a"))
    one.change(Change("resource", "file:///a"))
    assert changes == [Change("resource", "ullage+from://two/file:///a"), Change("resource", "file:///a")]
    await merge.subscribe("ullage+from://two/file:///a")
    await merge.unsubscribe("ullage+from://two/file:///a")
    assert two.subscribed == ["file:///a"] * 2, "another subscriber is left"
    await merge.unsubscribe("ullage+from://two/file:///a")
    assert two.subscribed == ["file:///a"]
    await merge.unsubscribe("ullage+from://two/file:///a")
    assert two.subscribed == []
    with pytest.raises(UnknownResource, match="`deaf` does not say"):
        await merge.subscribe("file:///b")
    with pytest.raises(UnknownResource, match="no server has a resource at"):
        await merge.unsubscribe("nowhere://")


@pytest.mark.requirement("S1:live")
async def test_changes_of_resources_and_prompts_are_passed_on_and_the_next_list_is_new():
    inner = FakeSource(texts={"file:///a": "1"}, messages={"hello": "Hello {name}"})
    changes: list[Change] = []
    merge = Merge([member("one", inner)])
    merge.watch(changes.append)
    await merge.resources()
    await merge.prompts()
    inner.texts["file:///b"] = "2"
    inner.messages["bye"] = "Bye"
    inner.change(Change("resources"))
    inner.change(Change("prompts"))
    assert changes == [Change("resources"), Change("prompts")]
    assert len(await merge.resources()) == 2
    assert len(await merge.prompts()) == 2


@pytest.mark.requirement("S1:live")
async def test_changes_of_resources_and_prompts_that_change_nothing_are_not_told_and_seldom_asked_for():
    class Counted(FakeSource):
        asked = 0

        async def prompts(self) -> tuple[JsonObject, ...]:
            Counted.asked += 1
            return await super().prompts()

    inner = Counted(texts={"file:///a": "1"}, messages={"hello": "Hello {name}"})
    changes: list[Change] = []
    async with anyio.create_task_group() as group:
        merge = Merge([member("one", inner)], spawn=group.start_soon)
        merge.watch(changes.append)
        inner.change(Change("prompts"))
        await anyio.wait_all_tasks_blocked()
        assert Counted.asked == 0, "nobody has seen the list yet"
        assert changes == [Change("prompts")], "with nothing to compare it with, a change is taken at its word"
        changes.clear()
        await merge.resources()
        await merge.prompts()
        for _ in range(40):
            inner.change(Change("resources"))
            inner.change(Change("prompts"))
            await anyio.sleep(0.005)
        assert changes == []
        assert Counted.asked < 20, "of eighty"
        inner.texts["file:///b"] = "2"
        inner.messages["bye"] = "Bye"
        inner.change(Change("resources"))
        inner.change(Change("prompts"))
        await until(lambda: len(changes) == 2)
        assert sorted(change.kind for change in changes) == ["prompts", "resources"]
        group.cancel_scope.cancel()


@pytest.mark.requirement("S1:live")
async def test_a_change_during_an_answer_is_asked_for_again():
    inner = Gated("a")
    changes: list[Change] = []
    inner.opened.set()
    listeners: list[Callable[[Change], None]] = []
    watched = Listening(inner, listeners)
    async with anyio.create_task_group() as group:
        merge = Merge([member("one", watched)], spawn=group.start_soon)
        merge.watch(changes.append)
        await merge.view()
        inner.opened = anyio.Event()
        listeners[0](Change("tools"))
        await anyio.wait_all_tasks_blocked()
        listeners[0](Change("tools"))
        inner.opened.set()
        await anyio.sleep(0.01)
        inner.listing = Listing((tool("b"),), "other")
        await until(lambda: changes == [Change("tools")])
        assert inner.asked == 3
        group.cancel_scope.cancel()


@pytest.mark.requirement("S1:live")
async def test_a_change_that_could_not_be_followed_is_followed_later():
    inner = Gated("a")
    inner.opened.set()
    listeners: list[Callable[[Change], None]] = []
    async with anyio.create_task_group() as group:
        merge = Merge([member("one", Listening(inner, listeners))], spawn=group.start_soon)
        await merge.view()
        inner.listing, inner.error = Listing((tool("b"),), "other"), SourceFailed("away")
        listeners[0](Change("tools"))
        await anyio.wait_all_tasks_blocked()
        assert names(await merge.view()) == ["one__a"]
        inner.error = None
        with anyio.fail_after(20):
            while names(await merge.view()) != ["one__b"]:
                await anyio.sleep(0.05)
        group.cancel_scope.cancel()


async def test_new_members_bring_new_resources_and_prompts():
    changes: list[Change] = []
    merge = Merge([member("one", reading(a="1"))])
    unwatch = merge.watch(changes.append)
    await merge.resources()
    await merge.prompts()
    merge.replace([])
    assert changes == [Change("resources")]
    unwatch()
    unwatch()
    merge.replace([member("one", reading(a="1"))])
    assert changes == [Change("resources")]
    check_watched(merge)


async def test_prompts_are_named_as_tools_are_and_reach_their_server():
    class Embedding(FakeSource):
        async def prompt(self, request: PromptRequest) -> PromptMessages:
            block = {"type": "resource", "resource": {"uri": "file:///a", "text": "t"}}
            return PromptMessages(messages=({"role": "user", "content": block}, {"role": "user", "content": "odd"}))

        async def complete(self, request: Complete) -> JsonObject:
            return {"values": [str(request.reference["name"])]}

    greeting = FakeSource(messages={"hello": "Hello {name}"}, texts={"file:///a": "1"})
    merge = Merge([member("one", greeting), member("two", Embedding(messages={"hello": "", "other": ""}))])
    await merge.resources()
    assert [one["name"] for one in await merge.prompts()] == ["one__hello", "two__hello", "two__other"]
    answer = await merge.prompt(PromptRequest(name="one.hello", arguments={"name": "Ada"}))
    assert answer.messages == ({"role": "user", "content": {"type": "text", "text": "Hello Ada"}},)
    embedded: Any = (await merge.prompt(PromptRequest(name="other"))).messages
    assert embedded[0]["content"]["resource"]["uri"] == "ullage+from://two/file:///a"
    assert embedded[1]["content"] == "odd"
    with pytest.raises(UnknownResource) as caught:
        await merge.prompt(PromptRequest(name="hello"))
    assert caught.value.options == ("one__hello", "two__hello")
    with pytest.raises(UnknownResource) as caught:
        await merge.prompt(PromptRequest(name="two__othr"))
    assert caught.value.options[0] == "two__other"

    async def completed(name: str) -> JsonObject:
        return await merge.complete(Complete(reference={"type": "ref/prompt", "name": name}, argument={}))

    assert await completed("two__hello") == {"values": ["hello"]}
    assert await completed("one__hello") == {"values": []}, "its source completes nothing"
    with pytest.raises(UnknownResource):
        await merge.complete(Complete(reference={"type": "ref/resource", "uri": "nowhere://"}, argument={}))
    await check_prompts(merge, PromptRequest(name="one__hello", arguments={"name": "Ada"}))


async def test_a_log_level_reaches_every_member_that_can_be_told():
    class Logging(FakeSource):
        level: str | None = None

        async def set_log_level(self, level: str) -> None:
            Logging.level = level
            raise SourceFailed("not up")

    merge = Merge([member("one", source()), member("two", Logging())])
    await merge.set_log_level("debug")
    assert Logging.level == "debug"


async def test_a_server_that_failed_is_left_in_peace_for_a_while_and_then_asked_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ullage.gateway.merge.polling._SHORTEST_PAUSE", 1.5)
    dead = Gated(error=SourceFailed("it crashed"))
    dead.opened.set()
    async with anyio.create_task_group() as tasks:
        merge = Merge([member("dead", dead), member("well", source("a"))], spawn=tasks.start_soon)
        for _ in range(50):
            assert names(await merge.view()) == ["well__a"]
        assert dead.asked == 1
        with anyio.fail_after(20):
            while dead.asked < 2:
                await anyio.sleep(0.05)
                await merge.view()


@pytest.mark.requirement("S1:live")
async def test_a_view_that_finds_something_new_has_it_told():
    class Remembering(FakeSource, RememberedSource):
        loaded: Listing | None = None

        def peek(self) -> Listing | None:
            return self.loaded

        async def load(self) -> Listing | None:
            self.loaded = await self.tools()
            return self.loaded

    heard: list[Change] = []
    one = member("one", source("a"))
    merge = Merge([one])
    merge.watch(heard.append)
    await merge.view()
    merge.replace([one, member("two", Remembering(offered=(tool("b"),)))])
    assert heard == []
    for _ in range(2):
        assert names(await merge.view()) == ["one__a", "two__b"]
        assert heard == [Change("tools")]


class Declared(FakeSource):
    """A server that has methods for everything, as one under supervision does, and declares some of it."""

    capabilities: JsonObject | None = None  # pyright: ignore[reportIncompatibleMethodOverride]

    async def complete(self, request: Complete) -> JsonObject:
        return {"values": []}

    async def subscribe(self, uri: str) -> None: ...

    async def unsubscribe(self, uri: str) -> None: ...

    async def set_log_level(self, level: str) -> None: ...


def declared(capabilities: JsonObject | None) -> Declared:
    found = Declared()
    found.capabilities = capabilities
    return found


EVERYTHING: JsonObject = {"resources": {"subscribe": True}, "prompts": {}, "completions": {}, "logging": {}}


@pytest.mark.parametrize(
    ("declarations", "can"),
    [
        ([], {}),
        ([{"tools": {}}], {}),
        ([{"tools": {}}, None], EVERYTHING),
        ([{"prompts": {"listChanged": True}}, {"resources": {}}], {"prompts": {}, "resources": {}}),
        ([{"resources": {"subscribe": True}}, {"resources": {}}], {"resources": {"subscribe": True}}),
        ([{"resources": {}}, {"resources": {"subscribe": True}}], {"resources": {"subscribe": True}}),
        ([{"completions": {}, "logging": {}, "tasks": {}}], {"completions": {}, "logging": {}}),
    ],
)
def test_many_can_do_what_one_of_them_can_or_may_be_able_to(declarations: list[JsonObject | None], can: JsonObject):
    merge = Merge([member(f"server-{at}", declared(one)) for at, one in enumerate(declarations)])
    assert merge.capabilities == can


def test_a_source_that_declares_nothing_can_do_what_it_has_methods_for():
    assert Merge([member("one", FakeSource())]).capabilities == {"resources": {}, "prompts": {}}


@pytest.mark.parametrize(("reads", "expected"), [(True, "Call again"), (False, "may have been carried out")])
@pytest.mark.requirement("U:errors")
async def test_a_call_that_is_lost_with_its_server_says_what_to_do(*, reads: bool, expected: str):
    async def lost(_: Call) -> Reply:
        raise SourceFailed("server `one` was killed")

    offered = (replace(tool("a"), annotations={"readOnlyHint": reads}),)
    reply = await Merge([member("one", FakeSource(offered=offered, answer=lost))]).call(Call(tool="one__a"))
    error = json.loads(str(reply.content[0]["text"]))
    assert expected in error["suggestion"]
    assert "started anew" in error["suggestion"]
    own = replace(member("own", FakeSource(offered=offered, answer=lost)), own=True)
    reply = await Merge([own]).call(Call(tool="own__a"))
    assert json.loads(str(reply.content[0]["text"]))["suggestion"] == ""


@pytest.mark.parametrize(
    ("reason", "brief"),
    [
        ("it has not answered yet", "it has not answered yet"),
        ("server `gone` cannot be started: no such program", "cannot be started: no such program"),
        ("`gone` is closed", "is closed"),
        ("the connection to server `gone` is lost", "the connection to server `gone` is lost"),
        ("server `gone` left; last: server `gone` said no", "left; last: said no"),
        (
            "server `gone` " + "said a word " * 20,
            "said a word said a word said a word said a word said a word said a word said a…",
        ),
    ],
)
def test_a_reason_beside_a_servers_name_is_short_and_whole_and_does_not_repeat_it(reason: str, brief: str):
    assert Missing("gone", reason).brief == brief


class Crowded(FakeSource):
    """Offers more than is worked on in one turn of the event loop."""

    async def resources(self) -> tuple[JsonObject, ...]:
        return tuple({"uri": f"x:{at}", "name": "a\u200bb"} for at in range(1_000))

    async def templates(self) -> tuple[JsonObject, ...]:
        return tuple({"uriTemplate": f"y:{{a}}/{at}", "name": "t"} for at in range(100))

    async def prompts(self) -> tuple[JsonObject, ...]:
        return tuple({"name": f"p{at}", "description": "a\u200bb"} for at in range(1_000))


@pytest.mark.requirement("U:bounded")
async def test_long_lists_and_many_addresses_are_worked_on_in_a_thread(monkeypatch: pytest.MonkeyPatch):
    loops: list[object] = []
    sanitize, matches = sanitize_item, Template.matches

    def sanitize_noted(item: JsonObject) -> Any:  # noqa: ANN401
        loops.append(threading.current_thread() is threading.main_thread())
        return sanitize(item)

    def matches_noted(template: Template, uri: str) -> bool:
        loops.append(threading.current_thread() is threading.main_thread())
        return matches(template, uri)

    monkeypatch.setattr(resources, "sanitize_item", sanitize_noted)
    monkeypatch.setattr(prompts, "sanitize_item", sanitize_noted)
    monkeypatch.setattr(Template, "matches", matches_noted)

    async def answer(_: Call) -> Reply:
        return Reply(content=tuple({"type": "resource_link", "uri": f"y:1/{at}", "name": "n"} for at in range(50)))

    merge = Merge([member("one", Crowded(offered=(tool("go"),), answer=answer))])
    assert len(await merge.resources()) == 1_000
    assert [one["name"] for one in await merge.prompts()][:2] == ["one__p0", "one__p1"]
    reply = await merge.call(Call(tool="one__go"))
    assert [block["uri"] for block in reply.content] == [f"y:1/{at}" for at in range(50)]
    assert len(loops) > 2_000
    assert not any(loops)


@pytest.mark.requirement("U:bounded")
async def test_an_address_of_a_megabyte_is_neither_looked_up_nor_mapped():
    uri = "y:" + "a\u200b" * 500_000

    async def answer(_: Call) -> Reply:
        return Reply(content=({"type": "resource_link", "uri": uri, "name": "n"},))

    merge = Merge([member("one", Crowded(offered=(tool("go"),), answer=answer))])
    await merge.resources()
    (block,) = (await merge.call(Call(tool="one__go"))).content
    assert str(block["uri"]).startswith("y:a\\u200ba\\u200b")


@pytest.mark.requirement("S1:call")
async def test_a_name_that_the_only_server_without_a_prefix_does_not_list_is_passed_on_to_it():
    class Strict(FakeSource):
        async def call(self, call: Call) -> Reply:
            if call.tool == "unlisted":
                return Reply.text("ran")
            raise ProtocolError("Unknown tool", number=-32602)

    plain, prefixed = Strict(offered=(tool("echo"),)), member("other", source("ping"))
    merge = Merge([member("plain", plain, prefix="", rules=Rules(deny=("delete_*",))), prefixed])
    assert (await merge.call(Call(tool="unlisted"))).content[0]["text"] == "ran"
    with pytest.raises(ProtocolError, match=r"^Unknown tool$"):
        await merge.call(Call(tool="zzzz"))
    with pytest.raises(Denied):
        await merge.call(Call(tool="delete_all"))
    for spelt in ("Delete_All", "delete-all", "other__pong", "OTHER.pong", "mcp__other__pong", "unlisted\u200b"):
        with pytest.raises(UnknownTool):
            await merge.call(Call(tool=spelt))
    with pytest.raises(UnknownTool, match="echoo"):
        await merge.call(Call(tool="echoo"))
    two = Merge([member("plain", plain, prefix=""), member("second", source("ping"), prefix="")])
    with pytest.raises(UnknownTool):
        await two.call(Call(tool="unlisted"))


class _Lenient(FakeSource):
    """A server that takes any spelling of its tools' names, also of those that it does not list."""

    async def call(self, call: Call) -> Reply:
        return Reply.text(f"ran {call.tool}")


_DENIED = (
    *(
        "deleteFile",
        "deletefile",
        "DELETEFILE",
        "delete_file",
        "Delete-File",
        "delete.file",
        "delete/file",
        "delete:File",
    ),
    *("mcp__plain__deleteFile", "mcp__ullage__delete_file", "plain__deletefile", "x.y.z/DeleteFile"),
    *(
        "ｄｅｌｅｔｅＦｉｌｅ",
        "delete\u00adFile",
        "delete File",
        " deleteFile",
        "deleteFile ",
        "deleteFile\n",
        "dеleteFile",
    ),
    "deleteFile" + "_" * 200,
)


@pytest.mark.requirement("U:access")
@pytest.mark.parametrize("spelt", _DENIED)
@pytest.mark.parametrize("is_listed", [True, False])
async def test_no_spelling_of_a_denied_name_reaches_the_only_server(spelt: str, *, is_listed: bool):
    plain = _Lenient(offered=(tool("echo"), *([tool("deleteFile")] if is_listed else [])))
    for rules in (Rules(deny=("deleteFile",)), Rules(deny=("delete*",)), Rules(under=Rules(deny=("*eteFi[l]?",)))):
        with pytest.raises((UnknownTool, Denied)):
            await Merge([member("plain", plain, prefix="", rules=rules)]).call(Call(tool=spelt))


@pytest.mark.requirement("U:access")
async def test_a_name_that_two_denied_tools_share_in_another_spelling_is_not_passed_on():
    plain = _Lenient(offered=(tool("deleteFile"), tool("delete_file")))
    merge = Merge([member("plain", plain, prefix="", rules=Rules(deny=("deleteFile", "delete_file")))])
    for spelt in ("deletefile", "DELETE-FILE", "delete.file"):
        with pytest.raises((UnknownTool, Denied)):
            await merge.call(Call(tool=spelt))


@pytest.mark.requirement("U:access")
async def test_an_unlisted_name_under_ask_or_outside_only_is_not_passed_on_unasked():
    plain = _Lenient(offered=(tool("echo"),))
    guarded = Guarded(Merge([member("plain", plain, prefix="", rules=Rules(ask=("pay*",), allow=("payload",)))]))
    for spelt in ("pay", "Pay", "p_a_y_now", "mcp__x__pay"):
        with pytest.raises((UnknownTool, Denied)):
            await guarded.call(Call(tool=spelt))
    assert (await guarded.call(Call(tool="payload"))).content[0]["text"] == "ran payload"
    only = Merge([member("plain", plain, prefix="", rules=Rules(only=("read*",)))])
    assert (await only.call(Call(tool="readme"))).content[0]["text"] == "ran readme"
    for spelt in ("write", "Readme"):
        with pytest.raises((UnknownTool, Denied)):
            await only.call(Call(tool=spelt))


@pytest.mark.requirement("U:pin")
async def test_a_tool_that_its_server_no_longer_lists_is_not_called_under_its_name():
    plain = _Lenient(offered=(tool("echo"), tool("transfer")))
    merge = Merge([member("plain", plain, prefix="")])
    await merge.view()
    plain.offered = (tool("echo"),)
    plain.change(Change("tools"))
    await merge.view()
    for spelt in ("transfer", "Transfer", "trans_fer", "mcp__plain__transfer"):
        with pytest.raises(UnknownTool):
            await merge.call(Call(tool=spelt))


async def test_a_call_meant_for_a_server_that_left_is_sent_to_no_other():
    plain, other = _Lenient(offered=(tool("echo"),)), source("ping")
    merge = Merge([member("plain", plain, prefix=""), member("github", other, prefix="gh")])
    await merge.view()
    merge.replace([member("plain", plain, prefix="")])
    for spelt in ("gh__ping", "gh__pong", "github__ping", "github.pong", "mcp__gh__pong", "mcp__ullage__gh__pong"):
        with pytest.raises(UnknownTool):
            await merge.call(Call(tool=spelt))


@pytest.mark.requirement("S1:aggregate", "U:errors")
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("dead__search", SourceFailed),
        ("mcp__dead__search", SourceFailed),
        ("mcp__ullage__dead__search", SourceFailed),
        ("dead", UnknownTool),
        ("other__dead", UnknownTool),
        ("other__dead__search", UnknownTool),
        ("other__one__dead__search", UnknownTool),
    ],
)
async def test_an_unknown_tool_of_a_server_that_did_not_answer_says_why(name: str, error: type[Exception]):
    dead = Gated(error=SourceFailed("it crashed"))
    dead.opened.set()
    merge = Merge([member("dead", dead), member("well", source("a"))])
    await merge.view()
    with pytest.raises(error, match=r"no tool|tools of server `dead` are not known: it crashed"):
        await merge.call(Call(tool=name))
