"""Whose connections are whose, what they are told, and how they end."""

import asyncio
from contextlib import suppress
from random import Random

import anyio
import anyio.abc
import anyio.lowlevel
import pytest
from fake_servers import QUICK, FakeServers, call, forever, host, nothing, refuse, server, settle, until

from ullage.errors import ProtocolError, SourceFailed, Unavailable
from ullage.tool import Call, Change, Reply
from ullage.wire.supervise.health import Bounds, Patience
from ullage.wire.supervise.host import Host, Supervised
from ullage.wire.upstream.rpc_peer import Unsent

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:live")]


async def test_each_session_has_its_own_connection_and_the_first_takes_over_that_of_the_listing():
    servers = FakeServers()
    async with host(servers) as keeper:
        source = keeper.source(server())
        await source.tools()
        await source.call(call("a"))
        assert len(servers.started) == 1
        await source.call(call("b"))
        await source.call(call("a"))
        await source.tools()
        assert len(servers.started) == 2
        assert [len(one.calls) for one in servers.open] == [2, 1]
        assert keeper.health()[0].process_ids == (1002, 1001)


async def test_a_shared_server_has_one_connection_for_all():
    servers = FakeServers()
    async with host(servers) as keeper:
        source = keeper.source(server(shared=True))
        await source.tools()
        for session in "abc":
            await source.call(call(session))
        assert len(servers.started) == 1


async def test_the_connections_of_a_server_are_bounded():
    servers = FakeServers()
    async with host(servers, bounds=Bounds(connections=2, room_wait=0.05)) as keeper:
        source = keeper.source(server())
        for session in "ab":
            await source.call(call(session))
        with pytest.raises(Unavailable, match="already has 2 connections"):
            await source.call(call("c"))
        assert (await source.call(call("a"))).content


async def test_the_death_of_one_sessions_connection_leaves_the_others():
    servers = FakeServers()
    async with host(servers) as keeper:
        source = keeper.source(server())
        for session in "ab":
            await source.call(call(session))
        await servers.kill(servers.open[0])
        await source.call(call("b"))
        assert len(servers.started) == 2
        await source.call(call("a"))
        assert len(servers.started) == 3


async def test_an_idle_server_is_stopped_and_started_again_by_the_next_call():
    servers = FakeServers()
    async with host(servers) as keeper:
        source = keeper.source(server(idle_timeout=0))
        await source.call(call())
        await until(lambda: not servers.open)
        health = keeper.health()[0]
        assert (health.state, health.failures) == ("idle", 0)
        assert (await source.call(call())).content


async def test_a_server_is_not_idle_while_a_call_is_open():
    async def long(_: Call) -> Reply:
        await anyio.sleep(0.3)
        return Reply.text("at last")

    servers = FakeServers(answer=long)
    async with host(servers) as keeper:
        source = keeper.source(server(idle_timeout=0))
        assert (await source.call(call())) == Reply.text("at last")
        assert servers.started == ["one"]


async def test_sessions_that_went_away_are_let_go_but_the_last_connection_stays():
    servers = FakeServers()
    async with host(servers, bounds=Bounds(idle=0.1)) as keeper:
        source = keeper.source(server())
        for session in "abc":
            await source.call(call(session))
        await until(lambda: len(servers.open) == 1)
        await anyio.sleep(0.25)
        assert len(servers.open) == 1


async def test_a_subscription_keeps_a_connection_and_is_made_again_on_the_next():
    servers = FakeServers()
    heard = list[Change]()
    async with host(servers) as keeper:
        source = keeper.source(server(idle_timeout=0))
        source.watch(heard.append)
        await source.set_log_level("debug")
        await source.subscribe("file:///a")
        await source.call(call("a"))
        await source.call(call("b"))
        assert [one.subscribed for one in servers.open] == [["file:///a"]] * 2
        await until(lambda: len(servers.open) == 1)
        await anyio.sleep(0.25)
        assert len(servers.open) == 1, "one stays, because someone listens"
        await servers.kill()
        await source.tools()
        await settle()
        assert [(one.subscribed, one.log_level) for one in servers.open] == [(["file:///a"], "debug")]
        servers.open[0].change(Change("resource", "file:///a"))
        assert heard[-1] == Change("resource", "file:///a")
        await source.unsubscribe("file:///a")
        assert servers.open[0].subscribed == []


async def test_a_subscription_that_is_refused_is_the_callers_error():
    servers = FakeServers(refuses_subscriptions=True)
    async with host(servers) as keeper:
        source = keeper.source(server())
        with pytest.raises(ProtocolError, match="no subscriptions here"):
            await source.subscribe("file:///a")
        assert not source.is_needed()


async def test_a_subscription_that_a_new_connection_refuses_is_noted():
    servers = FakeServers()
    async with host(servers) as keeper:
        source = keeper.source(server())
        await source.subscribe("file:///a")
        servers.refuses_subscriptions = True
        await source.call(call("a"))
        await source.call(call("b"))
        await settle()
        assert keeper.health()[0].notes == ("no subscriptions here",)


@pytest.mark.requirement("S1:live")
async def test_a_restart_is_announced_as_a_change_of_everything_and_a_first_start_is_not():
    servers = FakeServers()
    heard = list[str]()
    async with host(servers) as keeper:
        source = keeper.source(server())
        stop = source.watch(lambda change: heard.append(change.kind))
        await source.call(call("a"))
        await source.call(call("b"))
        assert heard == [], "another session's connection is no restart"
        servers.open[0].change(Change("tools"))
        assert heard == ["tools"]
        await servers.kill()
        await source.call(call("a"))
        assert heard == ["tools", "tools", "resources", "prompts"]
        stop()
        stop()
        servers.open[0].change(Change("tools"))
        assert len(heard) == 4


async def test_a_listener_that_raises_harms_neither_the_connection_nor_other_listeners():
    servers = FakeServers()
    heard = list[Change]()

    def broken(_: Change) -> None:
        raise KeyError("a mistake")

    async with host(servers) as keeper:
        source = keeper.source(server())
        source.watch(broken)
        source.watch(heard.append)
        await source.tools()
        servers.open[0].change(Change("tools"))
        assert heard == [Change("tools")]
        assert keeper.health()[0].notes == ("internal error in a listener: KeyError",)
        assert (await source.tools()).tools


async def test_a_removed_server_finishes_its_open_calls_and_takes_no_others():
    async def long(_: Call) -> Reply:
        await anyio.sleep(0.05)
        return Reply.text("done")

    servers = FakeServers(answer=long)
    replies = list[Reply]()

    async def ask(source: Supervised) -> None:
        replies.append(await source.call(call()))

    async with host(servers) as keeper:
        source = keeper.source(server())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, source)
            await settle()
            tasks.start_soon(keeper.retire, source)
            await settle()
            with pytest.raises(Unavailable, match="left the configuration"):
                await source.call(call())
        assert replies == [Reply.text("done")]
        assert servers.open == []
        assert keeper.health() == ()


async def test_a_server_configured_alike_keeps_its_connection_and_a_closed_one_is_made_anew():
    servers = FakeServers()
    async with host(servers) as keeper:
        first = keeper.source(server())
        await first.tools()
        again = keeper.source(server(call_timeout=5.0))
        assert again is first
        assert first.server.call_timeout == 5.0
        assert keeper.source(server(arguments=("-x",))) is not first
        await first.close()
        await first.close()
        assert servers.open == []
        assert keeper.source(server()) is not first


async def open_in_every_state(keeper: Host, tasks: anyio.abc.TaskGroup) -> Supervised:
    """Servers that run, start for ever, have failed, will not end, and were never used."""
    ready, starting, bad, stuck, _ = (
        keeper.source(server(name)) for name in ("one", "hangs", "bad", "stuck", "unused")
    )
    await ready.tools()
    await stuck.tools()
    await failing(bad)
    tasks.start_soon(failing, starting)
    await settle()
    return ready


async def failing(source: Supervised) -> None:
    with pytest.raises(Unavailable):
        await source.tools()


def cutting_off() -> Bounds:
    """Soon for each connection; all together would have time."""
    return Bounds(stopping=0.05, leaving=600)


def in_every_state() -> FakeServers:
    return FakeServers(on_start={"hangs": forever, "bad": refuse}, on_end={"stuck": forever})


async def is_over(source: Supervised, servers: FakeServers) -> None:
    assert servers.open == []
    with pytest.raises(Unavailable, match="Ullage is ending"):
        await source.tools()


async def test_leaving_ends_every_connection_whatever_state_it_is_in():
    servers, sources = in_every_state(), list[Supervised]()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks, host(servers, bounds=cutting_off()) as keeper:
            sources.append(await open_in_every_state(keeper, tasks))
    await is_over(sources[0], servers)


async def test_a_host_that_is_cancelled_ends_every_connection_too():
    servers, sources = in_every_state(), list[Supervised]()

    async def run() -> None:
        patient = Bounds(patience=QUICK, stopping=600, leaving=600)
        async with anyio.create_task_group() as tasks, host(servers, bounds=patient) as keeper:
            sources.append(await open_in_every_state(keeper, tasks))
            await anyio.sleep_forever()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            while not sources:
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    await is_over(sources[0], servers)


async def test_an_error_inside_the_host_comes_out_as_it_is():
    servers, sources = FakeServers(), list[Supervised]()

    async def run() -> None:
        async with host(servers) as keeper:
            sources.append(keeper.source(server()))
            await sources[0].tools()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run()
    await is_over(sources[0], servers)


async def test_a_connection_that_will_not_end_is_cut_off():
    servers = FakeServers(on_end={"stuck": forever})
    with anyio.fail_after(20):
        async with host(servers, bounds=cutting_off()) as keeper:
            await keeper.source(server("stuck")).tools()
    assert servers.open == []


class Chaos:
    """Servers that start badly, answer badly and die, by chance, under callers that give up by chance."""

    def __init__(self) -> None:
        self.random = Random(3)
        self.servers = FakeServers(on_start=dict.fromkeys("abc", self.start), answer=self.answer)

    async def start(self) -> None:
        await anyio.sleep(self.random.random() / 100)
        await self.random.choice([nothing, nothing, nothing, refuse, forever])()

    async def answer(self, _: Call) -> Reply:
        await anyio.sleep(self.random.random() / 200)
        if (chance := self.random.random()) < 0.1:
            raise Unsent("dead") if chance < 0.05 else SourceFailed("died")
        return Reply.text("ok")

    async def kill(self) -> None:
        while True:
            await anyio.sleep(self.random.random() / 50)
            for one in self.servers.open[:1]:
                one.death.set()

    async def use(self, keeper: Host) -> None:
        for _ in range(30):
            name = self.random.choice("abc")
            source = keeper.source(server(name, start_timeout=0.05, shared=name == "c"))
            with suppress(Unavailable), anyio.move_on_after(self.random.choice([0.002, 1, 1])):
                await self.ask(keeper, source)

    async def ask(self, keeper: Host, source: Supervised) -> None:
        match self.random.randrange(20):
            case 0:
                await keeper.retire(source)
            case 1:
                await source.subscribe("file:///a")
            case 2 | 3:
                await source.tools()
            case session:
                await source.call(call(str(session % 7)))


async def test_whatever_happens_nobody_hangs_and_nothing_is_left():
    chaos, before = Chaos(), asyncio.all_tasks()
    patience = Patience(first_delay=0.001, factor=2, failures_allowed=4, cool_down=0.05, longest_wait=0.02)
    bounds = Bounds(connections=4, start_slack=0, stopping=0.1, retiring=0.05, idle=0.05, patience=patience)
    with anyio.fail_after(60):
        async with host(chaos.servers, bounds=bounds) as keeper, anyio.create_task_group() as others:
            others.start_soon(chaos.kill)
            async with anyio.create_task_group() as users:
                for _ in range(10):
                    users.start_soon(chaos.use, keeper)
            assert all(health.connections <= 4 for health in keeper.health())
            others.cancel_scope.cancel()
    assert len(chaos.servers.started) > 20
    assert chaos.servers.open == []
    assert asyncio.all_tasks() == before
