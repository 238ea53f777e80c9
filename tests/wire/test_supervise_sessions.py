"""Whose connection is whose, and what becomes of it when the session is over."""

import anyio
import pytest
from fake_servers import FakeServers, call, host, server, settle, until

from ullage.errors import Unavailable
from ullage.tool import Call, Change, Reply
from ullage.wire.supervise.health import Bounds

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:aggregate")]


async def test_a_session_of_the_same_name_is_another_principals_own():
    servers = FakeServers()
    async with host(servers) as keeper:
        source = keeper.source(server())
        await source.call(call("s", principal="alice"))
        await source.call(call("s", principal="bob"))
        assert [len(one.calls) for one in servers.open] == [1, 1]


async def test_one_principal_cannot_use_up_a_server_for_all():
    servers = FakeServers()
    async with host(servers, bounds=Bounds(connections=12, room_wait=0.05)) as keeper:
        source = keeper.source(server())
        for number in range(6):
            await source.call(call(f"s{number}", principal="bob"))
        with pytest.raises(Unavailable, match="your sessions already have 6 connections") as caught:
            await source.call(call("one more", principal="bob"))
        assert "shared" in caught.value.suggestion
        await source.call(call("s0", principal="bob"))
        await source.call(call("s", principal="alice"))


@pytest.mark.parametrize(("connections", "share"), [(32, 16), (6, 4), (2, 2)])
def test_a_share_is_half_and_at_least_four_where_there_are_four(connections: int, share: int):
    assert Bounds(connections=connections).share == share


async def test_one_that_was_opened_for_a_listing_counts_when_it_is_taken():
    servers = FakeServers()
    async with host(servers, bounds=Bounds(connections=8, room_wait=0.05)) as keeper:
        source = keeper.source(server())
        await source.tools()
        for number in range(4):
            await source.call(call(f"s{number}"))
        assert len(servers.started) == 4
        with pytest.raises(Unavailable, match="4 connections"):
            await source.call(call("s4"))
        source.release("p", "s0")
        await settle()
        await source.call(call("s4"))


async def test_a_session_that_is_over_lets_go_of_its_connections_and_no_others():
    servers = FakeServers()
    async with host(servers) as keeper:
        one, two = keeper.source(server("one")), keeper.source(server("two"))
        for source in (one, two):
            await source.call(call("s", principal="alice"))
            await source.call(call("s", principal="bob"))
        keeper.release("alice", "s")
        keeper.release("alice", "never heard of")
        await settle()
        assert sorted(servers.ended) == [1, 3]
        await one.call(call("s", principal="bob"))
        assert len(servers.started) == 4
        assert [health.state for health in keeper.health()] == ["ready", "ready"]


async def test_an_open_call_of_a_session_that_is_over_may_finish():
    begun, finish = anyio.Event(), anyio.Event()

    async def answer(_: Call) -> Reply:
        begun.set()
        await finish.wait()
        return Reply.text("done")

    servers = FakeServers(answer=answer)
    replies = list[Reply]()
    async with host(servers) as keeper:
        source = keeper.source(server())

        async def ask() -> None:
            replies.append(await source.call(call()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await begun.wait()
            keeper.release("p", "s")
            await settle()
            assert servers.ended == []
            finish.set()
        assert replies == [Reply.text("done")]
        await until(lambda: bool(servers.ended))


async def test_a_call_that_does_not_end_with_its_session_is_cut_off_in_time():
    async def answer(_: Call) -> Reply:
        await anyio.sleep_forever()
        raise AssertionError

    servers = FakeServers(answer=answer)
    async with host(servers, bounds=Bounds(retiring=0.05)) as keeper, anyio.create_task_group() as tasks:
        tasks.start_soon(keeper.source(server()).call, call())
        await settle()
        keeper.release("p", "s")
        await until(lambda: bool(servers.ended))
        tasks.cancel_scope.cancel()


async def test_a_shared_connection_outlives_a_session():
    servers = FakeServers()
    async with host(servers) as keeper:
        await keeper.source(server(shared=True)).call(call())
        keeper.release("p", "s")
        keeper.release("", "s")
        await settle()
        assert servers.ended == []


async def test_the_last_that_hears_of_a_subscription_stays_and_nobody_enters_it():
    servers = FakeServers()
    async with host(servers) as keeper:
        source = keeper.source(server())
        await source.call(call("s"))
        await source.subscribe("file:///a")
        keeper.release("p", "s")
        await settle()
        assert servers.ended == []
        await source.call(call("s"))
        assert [len(one.calls) for one in servers.open] == [1, 1]


async def test_nothing_is_said_to_have_changed_because_one_of_two_sessions_is_over():
    servers = FakeServers()
    heard = list[Change]()
    async with host(servers) as keeper:
        source = keeper.source(server())
        source.watch(heard.append)
        await source.call(call("a"))
        await source.call(call("b"))
        keeper.release("p", "a")
        await settle()
        await source.call(call("c"))
        assert heard == []
        keeper.release("p", "b")
        keeper.release("p", "c")
        await settle()
        await source.call(call("d"))
        assert Change("tools") in heard
