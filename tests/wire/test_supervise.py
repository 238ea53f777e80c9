"""How servers are started, fail and are started again."""

import time
from dataclasses import replace

import anyio
import anyio.abc
import anyio.lowlevel
import pytest
from fake_servers import QUICK, FakeServers, call, forever, host, refuse, server, settle, until

from ullage.errors import DeadlinePassed, ProtocolError, SourceFailed
from ullage.tool import Call, Complete, Contents, Introduction, PromptRequest, Read, Reply
from ullage.wire.supervise.health import Bounds
from ullage.wire.supervise.host import Supervised
from ullage.wire.upstream.rpc_peer import Unsent

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:live", "S1:aggregate")]


async def test_nothing_is_started_before_its_first_use():
    servers = FakeServers()
    async with host(servers) as keeper:
        source = keeper.source(server())
        assert source.introduction() is None
        assert source.capabilities == {}
        await settle()
        assert servers.started == []
        assert keeper.health()[0].state == "idle"


async def test_every_request_passes_through():
    servers = FakeServers()
    async with host(servers) as keeper:
        source = keeper.source(server())
        assert [tool.name for tool in (await source.tools()).tools] == ["echo"]
        servers.open[0].texts["file:///a"] = "text"
        servers.open[0].messages["greet"] = "hello {who}"
        assert (await source.call(call())).content
        assert await source.resources() == ({"uri": "file:///a", "name": "file:///a"},)
        assert await source.templates() == ()
        assert (await source.read(Read(uri="file:///a", caller=call().caller))) == Contents(
            contents=({"uri": "file:///a", "text": "text"},)
        )
        assert await source.prompts() == ({"name": "greet"},)
        assert (
            await source.prompt(PromptRequest(name="greet", caller=call().caller, arguments={"who": "you"}))
        ).messages
        assert await source.complete(Complete(caller=call().caller, reference={}, argument={"value": "x"})) == {
            "values": ["x…"]
        }
        assert source.introduction() == Introduction(name="the one")
        assert source.capabilities == {"tools": {}}
        assert servers.environments[0] == {"PATH": "/bin", "ULLAGE_DEPTH": "1"}


async def test_concurrent_first_calls_share_one_start():
    servers = FakeServers(on_start={"one": lambda: anyio.sleep(0.02)})
    async with host(servers) as keeper:
        source = keeper.source(server())
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(source.call, call())
        assert servers.started == ["one"]
        assert len(servers.open[0].calls) == 20


@pytest.mark.requirement("S1:aggregate")
async def test_servers_start_side_by_side_and_a_hanging_one_holds_up_no_other():
    servers = FakeServers(on_start={"hangs": forever, "bad": refuse, "slow": lambda: anyio.sleep(0.05)})
    async with host(servers) as keeper:
        names = ("hangs", "bad", "slow", "quick")
        sources = {name: keeper.source(server(name)) for name in names}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sources["hangs"].tools)
            with pytest.raises(SourceFailed, match="no such table"):
                await sources["bad"].tools()
            with anyio.fail_after(20):
                assert (await sources["quick"].tools()).tools
                assert (await sources["slow"].tools()).tools
            states = {health.server: health.state for health in keeper.health()}
            assert states == {"hangs": "starting", "bad": "backing off", "slow": "ready", "quick": "ready"}
            tasks.cancel_scope.cancel()


async def test_a_start_that_hangs_is_given_up_after_its_time():
    servers = FakeServers(on_start={"one": forever})
    async with host(servers, bounds=Bounds(start_slack=0)) as keeper:
        source = keeper.source(server(start_timeout=0.02))
        with pytest.raises(SourceFailed, match=r"no answer within 0\.02 s") as caught:
            await source.tools()
        assert "start_timeout" in caught.value.suggestion


async def test_all_who_wait_for_a_failing_start_are_told_why_and_it_is_tried_once():
    async def slowly_refuse() -> None:
        await anyio.sleep(0.01)
        await refuse()

    servers = FakeServers(on_start={"bad": slowly_refuse})
    reasons = list[str]()

    async def ask(source: Supervised) -> None:
        with pytest.raises(SourceFailed) as caught:
            await source.call(call())
        reasons.append(caught.value.message + caught.value.suggestion)

    async with host(servers) as keeper:
        source = keeper.source(server("bad"))
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(ask, source)
        assert reasons == ["`bad` exited with code 3: no such table" + "run it by hand"] * 10
        assert servers.started == ["bad"]


async def test_a_call_waits_out_a_short_back_off_and_restarts_the_server():
    servers = FakeServers()
    async with host(servers) as keeper:
        source = keeper.source(server())
        await source.call(call())
        await servers.kill()
        assert keeper.health()[0].state == "backing off"
        assert (await source.call(call())).content
        assert servers.started == ["one", "one"]
        health = keeper.health()[0]
        assert (health.state, health.failures, health.failures_in_a_row) == ("ready", 1, 1)
        assert health.last_error is not None
        assert "exited with code 9" in health.last_error


async def test_the_breaker_opens_after_repeated_failures_and_one_attempt_closes_it():
    servers, ahead = FakeServers(on_start={"bad": refuse}), 0.0
    bounds = Bounds(patience=replace(QUICK, cool_down=600, longest_wait=30))
    async with host(servers, bounds=bounds, clock=lambda: time.monotonic() + ahead) as keeper:
        source = keeper.source(server("bad"))
        for _ in range(3):
            with pytest.raises(SourceFailed, match="no such table"):
                await source.tools()
        assert keeper.health()[0].state == "broken"
        with pytest.raises(SourceFailed, match="failed 3 times in a row and is left alone") as caught:
            await source.tools()
        assert "run it by hand" in caught.value.suggestion
        assert len(servers.started) == 3, "an open breaker starts nothing"
        servers.on_start.clear()
        ahead = 600
        assert (await source.tools()).tools
        assert keeper.health()[0].state == "ready"


async def test_while_one_attempt_is_made_other_sessions_wait_for_its_outcome():
    servers = FakeServers(on_start={"bad": refuse})
    async with host(servers) as keeper:
        source = keeper.source(server("bad"))
        with pytest.raises(SourceFailed):
            await source.call(call("a"))
        up = anyio.Event()
        servers.on_start["bad"] = up.wait
        async with anyio.create_task_group() as tasks:
            for session in "abc":
                tasks.start_soon(source.call, call(session))
            await until(lambda: len(servers.started) == 2)
            await anyio.sleep(0.05)
            assert servers.started == ["bad"] * 2
            up.set()
        assert servers.started == ["bad"] * 4


async def test_a_failed_call_counts_against_nobody():
    async def fail(_: Call) -> Reply:
        raise ProtocolError("no", number=-32000)

    servers = FakeServers(answer=fail)
    async with host(servers) as keeper:
        source = keeper.source(server())
        for _ in range(10):
            with pytest.raises(ProtocolError):
                await source.call(call())
        health = keeper.health()[0]
        assert (health.state, health.failures, health.calls, health.open_calls) == ("ready", 0, 10, 0)
        assert servers.started == ["one"]


async def test_a_call_that_may_have_reached_the_server_is_not_sent_again():
    servers = FakeServers()

    async def die(_: Call) -> Reply:
        await servers.kill()
        raise SourceFailed("it died")

    servers.answer = die
    async with host(servers) as keeper:
        source = keeper.source(server())
        with pytest.raises(SourceFailed, match="it died"):
            await source.call(call())
        assert servers.started == ["one"]


async def test_a_request_that_never_reached_the_server_goes_by_a_new_connection_once():
    servers = FakeServers()

    async def unsent(_: Call) -> Reply:
        raise Unsent("the connection was dead")

    async with host(servers) as keeper:
        source = keeper.source(server())
        await source.call(call())
        servers.open[0].answer = unsent
        assert (await source.call(call())).content
        assert (servers.started, keeper.health()[0].failures) == (["one"] * 2, 1)
        servers.answer = servers.open[0].answer = unsent
        with pytest.raises(Unsent):
            await source.call(call())
        assert servers.started == ["one"] * 3


async def test_a_listing_that_never_reached_the_server_goes_by_a_new_connection_too():
    servers = FakeServers()
    async with host(servers) as keeper:
        source = keeper.source(server())
        await source.tools()
        servers.open[0].is_dead = True
        assert (await source.tools()).tools
        assert servers.started == ["one"] * 2


async def test_a_bug_in_one_connection_ends_no_other():
    async def bug() -> None:
        raise KeyError("secret")

    servers = FakeServers(on_start={"buggy": bug})
    async with host(servers) as keeper:
        good, buggy = keeper.source(server("good")), keeper.source(server("buggy"))
        await good.tools()
        with pytest.raises(SourceFailed, match="broke with KeyError") as caught:
            await buggy.tools()
        assert "secret" not in caught.value.message
        assert (await good.tools()).tools
        assert keeper.health()[1].notes == ("internal error: KeyError",)


async def test_a_caller_that_gives_up_leaves_the_start_going_on():
    up = anyio.Event()
    servers = FakeServers(on_start={"one": up.wait})
    async with host(servers) as keeper:
        source = keeper.source(server())
        with anyio.move_on_after(0.01):
            await source.tools()
        assert keeper.health()[0].state == "starting"
        with pytest.raises(DeadlinePassed, match="still starting"):
            await source.call(call(deadline=anyio.current_time() + 0.005))
        up.set()
        assert (await source.call(call())).content
        assert servers.started == ["one"]


async def test_a_host_that_was_left_starts_nothing():
    servers = FakeServers()
    async with host(servers) as keeper:
        pass
    source = keeper.source(server())
    with pytest.raises(RuntimeError, match="between its entering and its leaving"):
        await source.tools()


async def test_health_says_what_was_seen():
    servers = FakeServers()
    async with host(servers) as keeper:
        source = keeper.source(server())
        await source.call(call())
        health = keeper.health()[0]
        assert (health.server, health.state, health.connections, health.process_ids) == ("one", "ready", 1, (1001,))
        assert (health.calls, health.failures, health.last_error, health.retry_in) == (1, 0, None, None)
        assert health.introduction == Introduction(name="the one")
        assert health.start_seconds is not None
        assert health.protocol == "2025-11-25"
        assert health.stderr_tail == "connection 1 says goodbye"
        await servers.kill()
        health = keeper.health()[0]
        assert (health.state, health.process_ids) == ("backing off", ())
        assert health.retry_in is not None
        assert health.stderr_tail == "connection 1 says goodbye", "the last words stay"
