"""A server is told which client it works for, and of that client's folders."""

import pytest
from fake_servers import FakeServers, call, host, server

from ullage.tool import Call, Caller, ClientDeclaration

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:call")]
ACME = ClientDeclaration(info={"name": "acme", "version": "9"}, capabilities={"sampling": {}})
OTHER = ClientDeclaration(info={"name": "other", "version": "1"})


def called(session: str, client: ClientDeclaration) -> Call:
    asked = Caller(principal="p", session=session)
    return Call(tool="echo", caller=asked, era="handshake", client_info=client.info, capabilities=client.capabilities)


async def test_a_connection_of_a_session_declares_the_sessions_client():
    servers = FakeServers(speaks=("handshake",))
    async with host(servers) as keeper:
        source = keeper.source(server())
        await source.call(called("a", ACME))
        await source.call(called("b", OTHER))
        await source.call(called("a", ACME))
        assert servers.clients == [ACME, OTHER]


async def test_what_is_opened_for_a_listing_is_taken_over_by_the_client_that_listed():
    servers = FakeServers(speaks=("handshake",))
    async with host(servers) as keeper:
        keeper.client_era, keeper.client = "handshake", ACME
        source = keeper.source(server())
        await source.tools()
        await source.call(called("b", OTHER))
        await source.call(called("a", ACME))
        assert servers.clients == [ACME, OTHER]
        assert [len(one.calls) for one in servers.open] == [1, 1]


async def test_a_shared_server_is_told_of_no_client_in_particular():
    servers = FakeServers(speaks=("handshake",))
    async with host(servers) as keeper:
        keeper.client = ACME
        source = keeper.source(server(shared=True))
        await source.tools()
        await source.call(called("a", ACME))
        await source.call(call("b", era="handshake"))
        assert servers.clients == [None]


async def test_other_folders_of_a_client_are_told_on_its_own_connections_alone():
    servers = FakeServers(speaks=("handshake",))
    async with host(servers) as keeper:
        source = keeper.source(server())
        await source.call(called("a", ACME))
        await source.call(called("b", OTHER))
        keeper.tell_roots_changed("p", "a", ACME)
        assert [one.roots_changes for one in servers.open] == [1, 0]
