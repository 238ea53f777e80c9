"""Groups of servers: a client sees the servers of its groups and no others."""

import os
from pathlib import Path

import pytest

from approving import load
from ullage.app.build_gateway import open_gateway
from ullage.config import Flags
from ullage.errors import ProtocolError, UnknownTool
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


@pytest.mark.requirement("U:groups")
async def test_a_client_that_is_put_into_a_group_later_sees_its_servers_only_from_then_on(tmp_path: Path):
    servers = {name: scripted(tool(f"{name}_tool", "Says it.")) for name in ("one", "two")}
    file, caller = tmp_path / "ullage.toml", Caller(principal="me", session="s", client="codex", model=None)
    write_toml(file, "[clients.codex]\n", **servers)
    loaded = load(Flags(config=file), os.environ, tmp_path)
    async with open_gateway(loaded, environment=os.environ) as gateway:
        source = gateway.flagged("codex").source
        call = Call(tool="two__two_tool", arguments={}, caller=caller)
        # The scripted server lists the tool and has none to run, so that this error says that it was reached.
        with pytest.raises(ProtocolError, match="two_tool"):
            await source.call(call)
        write_toml(file, '[groups.work]\nservers = ["one"]\n[clients.codex]\ngroups = ["work"]\n', **servers)
        await gateway.adopt(load(Flags(config=file), os.environ, tmp_path))
        with pytest.raises(UnknownTool):
            await source.call(call)
        assert "two__two_tool" not in {one.name for one in (await source.tools()).tools}
        write_toml(file, "[clients.codex]\n", **servers)
        await gateway.adopt(load(Flags(config=file), os.environ, tmp_path))
        with pytest.raises(ProtocolError, match="two_tool"):
            await source.call(call)
