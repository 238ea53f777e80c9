"""What a gateway learns, from one start to the next."""

import json
import os
from pathlib import Path

import anyio
import pytest

from approving import load
from ullage.app.build_gateway import Gateway, open_gateway
from ullage.app.open_store import forget_learnt
from ullage.config import Flags, Loaded
from ullage.gateway import StoredUses
from ullage.processes import user_name
from ullage.tool import Call, Caller, Reply
from upstreams import scripted, tool, write_toml

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:hybrid")]

READS = {"readOnlyHint": True}
TALK = (
    tool("notes", "Send a message to the team.", annotations=READS),
    tool("echo", "Send a message to the team of a project.", annotations=READS),
)
QUERY = "send a message to the team"


def settings(work: Path, text: str = '[gateway]\nmode = "search"\n[search]\nindex = "words"\n') -> Loaded:
    write_toml(work / "ullage.toml", text, talk=scripted(*TALK))
    return load(Flags(), os.environ, work)


async def ask(gateway: Gateway, name: str, **arguments: object) -> Reply:
    caller = Caller(principal=user_name(), session="one")
    return await gateway.profile().source.call(Call(tool=name, arguments=arguments, caller=caller))  # type: ignore[arg-type]


async def first(gateway: Gateway) -> str:
    reply = await ask(gateway, "find_tool", tool_description=QUERY)
    return str(json.loads(str(reply.content[0]["text"]))["tools"][0]["name"])


async def use_the_other(gateway: Gateway) -> None:
    assert await first(gateway) == "talk__notes"
    reply = await ask(gateway, "call_tool", tool_name="talk__echo", parameters={"text": "hello"})
    assert not reply.is_error


async def test_a_gateway_ranks_by_what_an_earlier_one_was_used_for_until_that_is_forgotten(work: Path):
    loaded = settings(work)
    async with open_gateway(loaded, environment=os.environ) as gateway:
        await use_the_other(gateway)
        assert await first(gateway) == "talk__echo"
    async with open_gateway(loaded, environment=os.environ) as gateway:
        assert await first(gateway) == "talk__echo"
    assert await anyio.to_thread.run_sync(forget_learnt, loaded.settings) == (1, 1)
    async with open_gateway(loaded, environment=os.environ) as gateway:
        assert await first(gateway) == "talk__notes"


async def test_with_learning_switched_off_nothing_is_kept(work: Path):
    loaded = settings(work, '[gateway]\nmode = "search"\n[search]\nindex = "words"\nlearn = false\n')
    async with open_gateway(loaded, environment=os.environ) as gateway:
        await use_the_other(gateway)
        assert await first(gateway) == "talk__notes"
        assert gateway.database is not None
        assert StoredUses(gateway.database).load(user_name(), 0.0) == ()


async def test_without_a_store_a_gateway_works_and_learns_nothing(work: Path):
    loaded = settings(work)
    (work / "broken.db").write_text("no database", encoding="utf-8")
    broken = load(Flags(store=f"sqlite:///{work}/broken.db"), os.environ, work)
    assert broken.settings.servers == loaded.settings.servers
    async with open_gateway(broken, environment=os.environ) as gateway:
        await use_the_other(gateway)
        assert await first(gateway) == "talk__notes"
