"""Groups of servers: a client sees the servers of its groups and no others."""

import os
from pathlib import Path

import pytest

from approving import load
from ullage.app.build_gateway import open_gateway
from ullage.config import Flags
from ullage.errors import UnknownTool
from ullage.tool import Call, Caller
from upstreams import scripted, tool, write_toml

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("U:groups")
async def test_a_client_sees_the_servers_of_its_groups_only(tmp_path: Path):
    text = """
[groups.work]
servers = ["one"]
[groups.none]
servers = []
[clients.codex]
groups = ["work"]
[clients.empty]
groups = ["none", "unknown"]
[clients.all]
"""
    servers = {name: scripted(tool(f"{name}_tool", "Says it.")) for name in ("one", "two")}
    write_toml(tmp_path / "ullage.toml", text, **servers)
    loaded = load(Flags(config=tmp_path / "ullage.toml"), os.environ, tmp_path)
    async with open_gateway(loaded, environment=os.environ) as gateway:
        await gateway.view(20)

        async def listed(client: str | None) -> set[str]:
            tools = (await gateway.flagged(client).source.tools()).tools
            return {one.name for one in tools if one.name.endswith("_tool") and "__" in one.name}

        assert await listed(None) == {"one__one_tool", "two__two_tool"}
        assert await listed("all") == {"one__one_tool", "two__two_tool"}
        assert await listed("codex") == {"one__one_tool"}
        assert await listed("empty") == set()
        caller = Caller(principal="me", session="s", client="codex", model=None)
        with pytest.raises(UnknownTool):
            await gateway.flagged("codex").source.call(Call(tool="two__two_tool", arguments={}, caller=caller))
