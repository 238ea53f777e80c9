"""What a source offers besides tools, and how clients learn that it changed."""

import gc
import weakref
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import pytest
from talking import ADA, ERAS, LEGACY, MODERN, Refused, Served, talking, transport

from ullage.errors import UnknownResource
from ullage.testing import FakeSource
from ullage.tool import Call, Change, Complete, Contents, JsonObject, Listing, Read, Reply, Tool, ToolSource
from ullage.wire.serve.client_request import is_heard, most_talkative, refusal
from ullage.wire.serve.notifications import Announcer
from ullage.wire.serve.request_handlers import Identity

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:live")]

__all__ = ["transport"]

TOOL = Tool(name="toy", description="a toy", input_schema={"type": "object"})


class Bare(ToolSource):
    """Offers tools and nothing else."""

    async def tools(self) -> Listing:
        return Listing((TOOL,), "1")

    async def call(self, call: Call) -> Reply:
        return Reply.text(call.tool)


@dataclass(slots=True, kw_only=True)
class Rich(FakeSource):
    """Offers all there is."""

    followed: list[str] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    completed: list[Complete] = field(default_factory=list)

    async def subscribe(self, uri: str) -> None:
        if uri == "no:thing":
            raise UnknownResource("there is no such thing")
        self.followed.append(f"+{uri}")

    async def unsubscribe(self, uri: str) -> None:
        self.followed.append(f"-{uri}")

    async def set_log_level(self, level: str) -> None:
        self.levels.append(level)

    async def complete(self, request: Complete) -> JsonObject:
        self.completed.append(request)
        return {"values": ["Ada"], "total": 1, "x-new": 1}

    async def read(self, read: Read) -> Contents:
        if read.uri not in self.texts:
            raise UnknownResource(f"nothing is at `{read.uri}`")
        return Contents(contents=({"uri": read.uri, "text": self.texts[read.uri], "x-new": 1},))


@dataclass(slots=True)
class FakeConnection:
    """As much of a client's connection as announcing needs."""

    exit_stack: AsyncExitStack
    notify: Any = None


def rich(**more) -> Rich:
    return Rich(offered=(TOOL,), texts={"a:b": "hi"}, messages={"greet": "Hello {name}"}, **more)


def server_of(source, instructions: Any = "Toys."):  # noqa: ANN401
    return Served(source=source, identity=Identity(name="toy", version="1", instructions=instructions))


@pytest.mark.parametrize("era", ERAS)
async def test_only_what_a_source_offers_is_claimed(era: str):
    async with talking(server_of(Bare()), era) as talk:
        assert talk.hello["capabilities"] == {"tools": {"listChanged": False}}
        for method in ("resources/list", "prompts/list", "subscriptions/listen"):
            with pytest.raises(Refused) as caught:
                await talk.request(method, {"notifications": {}})
            assert caught.value.code == -32601
    async with talking(server_of(rich()), era) as talk:
        assert talk.hello["capabilities"] == {
            "tools": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "prompts": {"listChanged": True},
            "completions": {},
            "logging": {},
        }


@pytest.mark.parametrize("era", ERAS)
async def test_instructions_are_those_of_the_moment_a_client_connects(era: str):
    told: list[str | None] = [None]
    server = server_of(Bare(), lambda: told[0])
    async with talking(server, era) as talk:
        assert "instructions" not in talk.hello
    told[0] = "Now."
    async with talking(server, era) as talk:
        assert talk.hello["instructions"] == "Now."


@pytest.mark.parametrize("era", ERAS)
async def test_resources_prompts_and_completion_pass_whole(era: str):
    source = rich()
    argument = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "A"}}
    async with talking(server_of(source), era) as talk:
        found = [
            await talk.request("resources/list"),
            await talk.request("resources/templates/list"),
            await talk.request("resources/read", {"uri": "a:b"}),
            await talk.request("prompts/list"),
            await talk.request("tools/list"),
        ]
        prompt = await talk.request("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}})
        completion = await talk.request("completion/complete", argument | {"context": {"arguments": {"a": "b"}}})
    assert found[0]["resources"] == [{"uri": "a:b", "name": "a:b"}]
    assert found[1]["resourceTemplates"] == []
    assert found[2]["contents"] == [{"uri": "a:b", "text": "hi", "x-new": 1}]
    assert found[3]["prompts"] == [{"name": "greet"}]
    assert prompt["messages"][0]["content"]["text"] == "Hello Ada"
    assert completion["completion"] == {"values": ["Ada"], "total": 1, "x-new": 1}
    assert source.completed[0].context == {"arguments": {"a": "b"}}
    fresh = [(one.get("ttlMs"), one.get("cacheScope")) for one in found]
    assert fresh == ([(0, "private")] * 5 if era == MODERN else [(None, None)] * 5)
    assert (talk.hello.get("ttlMs") == 60_000) == (era == MODERN)


@pytest.mark.parametrize(("era", "number"), [(LEGACY, -32002), (MODERN, -32602)])
async def test_what_is_not_there_is_refused_by_the_number_of_its_era(era: str, number: int):
    async with talking(server_of(rich()), era) as talk:
        with pytest.raises(Refused) as caught:
            await talk.request("resources/read", {"uri": "no:thing"})
        assert (caught.value.code, caught.value.data["error_code"]) == (number, "UNKNOWN_RESOURCE")
        assert caught.value.data["uri"] == "no:thing"
        for method, params in (("prompts/get", {"name": "nobody"}), ("tools/list", {"cursor": "2"})):
            with pytest.raises(Refused) as caught:
                await talk.request(method, params)
            assert caught.value.code == -32602


async def test_only_what_has_an_address_is_a_resource_that_is_not_there():
    unknown = UnknownResource("no prompt is called `x`")
    assert refusal(unknown, modern=False).code == -32602
    assert refusal(unknown, modern=False, uri="a:b").code == -32002


async def test_an_earlier_client_hears_of_each_change_once():
    source = rich()
    async with talking(server_of(source), LEGACY) as talk:
        await talk.request("resources/subscribe", {"uri": "a:b"})
        await talk.request("resources/subscribe", {"uri": "a:b"})
        for _ in range(5):
            source.change(Change("tools"))
        for change in (Change("resources"), Change("prompts"), Change("resource", "a:b"), Change("resource", "c:d")):
            source.change(change)
        await talk.until("notifications/resources/updated")
        await talk.request("resources/unsubscribe", {"uri": "a:b"})
        await talk.request("resources/unsubscribe", {"uri": "never:subscribed"})
        source.change(Change("resource", "a:b"))
        source.change(Change("tools"))
        await talk.until("notifications/tools/list_changed", times=2)
    assert sorted(method for method, _ in talk.heard) == [
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "notifications/tools/list_changed",
        "notifications/tools/list_changed",
    ]
    assert source.followed == ["+a:b", "-a:b"]
    assert source.listeners == []


async def test_a_resource_nobody_knows_cannot_be_subscribed_to():
    async with talking(server_of(rich()), LEGACY) as talk:
        with pytest.raises(Refused) as caught:
            await talk.request("resources/subscribe", {"uri": "no:thing"})
    assert caught.value.code == -32002


async def test_a_subscription_that_failed_for_one_is_tried_for_the_next():
    @dataclass(slots=True, kw_only=True)
    class Moody(Rich):
        async def subscribe(self, uri: str) -> None:
            self.followed.append(f"?{uri}")
            await anyio.sleep(0.02)
            if len(self.followed) == 1:
                raise UnknownResource("not now")

    source, said = Moody(offered=(TOOL,)), list[str]()
    async with anyio.create_task_group() as tasks:
        announcer = Announcer(tasks, source)

        async def follow() -> None:
            try:
                async with AsyncExitStack() as stack:
                    await announcer.subscribe(cast("Any", FakeConnection(stack)), "a:b")
                    said.append("subscribed")
                    await anyio.sleep(0.05)
            except UnknownResource:
                said.append("refused")

        async with anyio.create_task_group() as clients:
            for _ in range(3):
                clients.start_soon(follow)
    assert sorted(said) == ["refused", "subscribed", "subscribed"]
    assert source.followed == ["?a:b", "?a:b", "-a:b"]


async def test_a_later_client_hears_what_it_listens_for():
    source = rich()
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["a:b", "no:thing"]}
    async with talking(server_of(source), MODERN) as talk:
        number = await talk.ask("subscriptions/listen", {"notifications": wanted})
        await talk.until("notifications/subscriptions/acknowledged")
        for change in (Change("prompts"), Change("tools"), Change("tools"), Change("resource", "a:b")):
            source.change(change)
        await talk.until("notifications/resources/updated")
        await talk.tell("notifications/cancelled", {"requestId": number})
        with anyio.fail_after(20):
            while source.followed != ["+a:b", "-a:b"]:
                await anyio.sleep(0.01)
    assert [method for method, _ in talk.heard[1:]] == [
        "notifications/tools/list_changed",
        "notifications/resources/updated",
    ]


async def test_a_session_that_ended_leaves_nothing_behind():
    kept: list[weakref.ref[Any]] = []
    source = rich()

    def who_calls(request):
        kept.append(weakref.ref(request.connection))
        return ADA

    server = Served(source=source, identity=Identity(name="toy", version="1"), who_calls=who_calls)
    async with talking(server, LEGACY) as talk:
        await talk.request("resources/subscribe", {"uri": "a:b"})
        await talk.request("logging/setLevel", {"level": "error"})
        await talk.call("toy")
    source.calls.clear()
    gc.collect()
    assert [one() for one in kept] == [None]
    assert source.followed == ["+a:b", "-a:b"]


async def chatty(call: Call) -> Reply:
    assert call.tell is not None
    for level in ("debug", "warning", "error"):
        await call.tell("notifications/message", {"level": level, "data": {"x": level}, "logger": "l"})
    await call.tell("notifications/x-new", {"a": 1})
    return Reply.text("done")


def levels_heard(talk) -> list[str]:
    return [params["level"] for method, params in talk.heard if method == "notifications/message"]


async def test_an_earlier_client_hears_log_messages_from_the_level_it_set():
    source = rich(answer=chatty)
    async with talking(server_of(source), LEGACY) as talk:
        await talk.call("toy")
        assert levels_heard(talk) == ["debug", "warning", "error"]
        assert talk.heard[-1] == ("notifications/x-new", {"a": 1})
        talk.heard.clear()
        await talk.request("logging/setLevel", {"level": "warning"})
        await talk.request("logging/setLevel", {"level": "error"})
        await talk.call("toy")
        assert levels_heard(talk) == ["error"]
    assert source.levels == ["warning", "error"]


async def test_a_later_client_hears_log_messages_only_where_its_request_asks():
    async with talking(server_of(rich(answer=chatty)), MODERN) as talk:
        await talk.call("toy")
        assert levels_heard(talk) == []
        level = {"io.modelcontextprotocol/logLevel": "warning"}
        await talk.request("tools/call", {"name": "toy", "arguments": {}}, **level)
        assert levels_heard(talk) == ["warning", "error"]


def test_levels_are_ranked_and_odd_ones_pass():
    assert is_heard({"level": "odd"}, "emergency")
    assert is_heard({}, "error")
    assert not is_heard({"level": "notice"}, "warning")
    assert most_talkative(["error", "info", "alert"]) == "info"


async def test_one_slow_call_holds_up_no_other():
    free = anyio.Event()

    async def answer(call: Call) -> Reply:
        if call.arguments.get("slow"):
            await free.wait()
        return Reply.text("done")

    for era in ERAS:
        free = anyio.Event()
        async with talking(server_of(rich(answer=answer)), era) as talk:
            slow = await talk.ask("tools/call", {"name": "toy", "arguments": {"slow": True}})
            with anyio.fail_after(20):
                await talk.call("toy")
                assert not talk.waiting[slow][0].is_set()
                free.set()
                await talk.waiting[slow][0].wait()
