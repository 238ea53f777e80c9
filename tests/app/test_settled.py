"""What a client is told before it asks for the list agrees with the list."""

import os
from pathlib import Path

import pytest

from approving import load
from ullage.app.build_gateway import Gateway, open_gateway
from ullage.config import Flags
from upstreams import scripted, tool, write_json

pytestmark = pytest.mark.anyio


async def told_and_listed(gateway: Gateway) -> tuple[str, list[str]]:
    """In a client's order: first the introduction, then the list."""
    await gateway.settle(None)
    profile = gateway.flagged(None)
    return profile.identity.current_instructions() or "", [one.name for one in (await profile.source.tools()).tools]


@pytest.mark.requirement("S1:surface")
async def test_the_first_start_that_knows_the_tools_shows_them_and_says_so(work: Path):
    flags = Flags(include=(write_json(work / "mcp.json", mail=scripted(tool("send"))),))
    async with open_gateway(load(flags, os.environ, work), environment=os.environ) as gateway:
        told, listed = await told_and_listed(gateway)
        assert "found with find_tool" in told
        assert "find_tool" in listed
        await gateway.view(30)
    async with open_gateway(load(flags, os.environ, work), environment=os.environ) as gateway:
        told, listed = await told_and_listed(gateway)
    assert told.startswith("Tools of these servers:\n- mail (1 tool)")
    assert "mail__send" in listed
    assert "find_tool" not in listed


@pytest.mark.requirement("S1:surface")
async def test_servers_that_come_up_after_a_client_was_told_of_them_change_nothing_of_what_it_was_told(work: Path):
    flags = Flags(include=(write_json(work / "mcp.json", mail=scripted(tool("send"))),))
    async with open_gateway(load(flags, os.environ, work), environment=os.environ) as gateway:
        await gateway.settle(None)
        profile = gateway.flagged(None)
        assert "found with find_tool" in (profile.identity.current_instructions() or "")
        assert not (await gateway.view(30)).missing
        assert "find_tool" in [one.name for one in (await profile.source.tools()).tools]
