"""A server is spoken to in the era of the protocol that the client speaks, where it knows that era."""

import sys
from pathlib import Path

import anyio
import pytest
from fake_servers import FakeServers, call, host, server, settle, until

from ullage.errors import Unavailable
from ullage.gateway import Server
from ullage.tool import Era
from ullage.wire import open_upstream
from ullage.wire.supervise.health import Bounds

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:aggregate")]
HERE = Path(__file__).parent


async def test_clients_of_both_eras_get_a_connection_each():
    servers = FakeServers()
    async with host(servers) as keeper:
        source = keeper.source(server())
        await source.call(call("old", era="handshake"))
        await source.call(call("new", era="stateless"))
        await source.call(call("old", era="handshake"))
        assert servers.eras == ["handshake", "stateless"]
        assert [len(one.calls) for one in servers.open] == [2, 1]


async def test_a_shared_server_has_one_connection_for_each_era():
    servers = FakeServers()
    async with host(servers) as keeper:
        source = keeper.source(server(shared=True))
        for session in ("a", "b"):
            await source.call(call(session, era="handshake"))
            await source.call(call(session, era="stateless"))
        assert servers.eras == ["handshake", "stateless"]


@pytest.mark.parametrize("known", ["handshake", "stateless"])
async def test_a_server_of_one_era_is_not_asked_twice(known: Era):
    servers = FakeServers(speaks=(known,))
    async with host(servers) as keeper:
        source = keeper.source(server(shared=True))
        await source.call(call("first", era="stateless" if known == "handshake" else "handshake"))
        await source.call(call("second", era=known))
        await source.call(call("third", era="stateless" if known == "handshake" else "handshake"))
        assert len(servers.started) == 1


async def test_what_is_opened_for_a_listing_is_taken_over_by_a_client_of_that_era():
    servers = FakeServers()
    async with host(servers) as keeper:
        source = keeper.source(server())
        keeper.client_era = "handshake"
        await source.tools()
        await source.call(call("s", era="handshake"))
        assert servers.eras == ["handshake"]


async def test_a_listing_that_was_opened_for_nobody_is_left_to_clients_of_its_era():
    servers = FakeServers(speaks=("handshake", "stateless"))
    async with host(servers) as keeper:
        source = keeper.source(server())
        await source.tools()
        await source.call(call("old", era="handshake"))
        await source.call(call("new", era="stateless"))
        assert servers.eras == [None, "handshake"]
        assert source.protocol_era == "handshake"


async def test_sessions_of_a_principal_share_the_connection_to_a_stateless_server():
    servers = FakeServers()
    async with host(servers) as keeper:
        source = keeper.source(server())
        for principal, session in (("p", "a"), ("p", "b"), ("q", "a"), ("p", "a")):
            await source.call(call(session, principal=principal, era="stateless"))
        assert [len(one.calls) for one in servers.open] == [3, 1]
        keeper.release("p", "a")
        await source.call(call("b", era="stateless"))
        assert len(servers.started) == 2


async def test_sessions_of_a_server_that_turns_out_not_to_be_stateless_have_a_connection_each():
    servers = FakeServers(speaks=("handshake",))
    async with host(servers) as keeper, anyio.create_task_group() as tasks:
        source = keeper.source(server())
        for session in ("a", "b", "c"):
            tasks.start_soon(source.call, call(session, era="stateless"))
        await until(lambda: len(servers.open) == 3 and all(len(one.calls) == 1 for one in servers.open))


async def test_calls_wait_for_room_in_their_order():
    servers = FakeServers()
    bounds = Bounds(connections=1, least_share=1, room_wait=20)
    served: list[str] = []
    async with host(servers, bounds=bounds) as keeper, anyio.create_task_group() as tasks:
        source = keeper.source(server())
        await source.call(call("first", era="handshake"))

        async def ask(session: str) -> None:
            await source.call(call(session, era="handshake"))
            served.append(session)
            keeper.release("p", session)

        for session in ("second", "third", "fourth"):
            tasks.start_soon(ask, session)
            await settle()
        assert served == []
        keeper.release("p", "first")
        await until(lambda: len(served) == 3)
    assert served == ["second", "third", "fourth"]


async def test_a_session_that_has_long_been_idle_makes_room_for_a_call_that_waits():
    servers = FakeServers()
    bounds = Bounds(connections=2, least_share=2, room_wait=20, yields_after=0.2)
    async with host(servers, bounds=bounds) as keeper:
        source = keeper.source(server())
        for session in ("first", "second", "third"):
            await source.call(call(session, era="handshake"))
        await until(lambda: len(servers.open) == 2)
        assert servers.ended == [1]
        assert len(servers.started) == 3


async def test_a_session_that_was_just_used_makes_no_room():
    servers = FakeServers()
    bounds = Bounds(connections=1, least_share=1, room_wait=0.3, yields_after=60)
    async with host(servers, bounds=bounds) as keeper:
        source = keeper.source(server())
        await source.call(call("first", era="handshake"))
        with pytest.raises(Unavailable):
            await source.call(call("second", era="handshake"))


async def test_an_idle_session_of_a_server_that_knows_the_stateless_era_keeps_no_process():
    servers = FakeServers()
    bounds = Bounds(idle=900, idle_stateless=0.2)
    async with host(servers, bounds=bounds) as keeper:
        source = keeper.source(server())
        for session in ("a", "b", "c"):
            await source.call(call(session, era="handshake"))
        await anyio.sleep(0.5)
        assert len(servers.open) == 3, "nothing is known of it yet"
        await source.call(call("new", era="stateless"))
        await until(lambda: len(servers.open) == 1)


async def test_both_connections_of_a_session_end_with_it():
    servers = FakeServers()
    async with host(servers) as keeper:
        source = keeper.source(server())
        await source.tools()
        await source.call(call("s", era="handshake"))
        await source.call(call("s", era="stateless"))
        keeper.release("p", "s")
        await until(lambda: len(servers.open) <= 1)


@pytest.mark.parametrize(
    ("asked", "knows", "spoken"),
    [
        ("handshake", "dual", "2025-11-25"),
        ("stateless", "dual", "2026-07-28"),
        (None, "dual", "2026-07-28"),
        ("handshake", "modern", "2026-07-28"),
        ("stateless", "legacy", "2025-11-25"),
    ],
)
async def test_a_real_server_is_spoken_to_in_the_era_that_is_asked_for(
    tmp_path: Path, asked: Era | None, knows: str, spoken: str
):
    script = HERE / ("toy_server.py" if knows == "dual" else "scripted_server.py")
    arguments = ("-u", str(script), *((str(tmp_path / "log"),) if knows == "dual" else (knows, "{}")))
    entry = Server(name="toy", transport="stdio", command=sys.executable, arguments=arguments)
    async with open_upstream(entry, environment={}, era=asked, hesitation=3.0) as upstream:
        assert upstream.protocol_version == spoken
        assert (await upstream.tools()).tools
