"""What search by meaning has of the catalogue and of the settings, around real servers."""

import json
import os
from pathlib import Path

import anyio
import pytest

from approving import load
from ullage.app.build_gateway import Gateway, open_gateway
from ullage.config import Flags
from ullage.store import Database
from ullage.tool import Call
from upstreams import scripted, tool, write_toml

pytestmark = pytest.mark.anyio

TOOLS = (
    tool("get_forecast", "Weather forecast for a city, for up to ten days."),
    tool("resize_image", "Scale an image to other dimensions."),
)
RAIN = "will it rain tomorrow"
"""Shares no word with the tool that is meant."""


def settings(work: Path, index: str = "static") -> None:
    said = f'[gateway]\nmode = "search"\n[search]\nindex = "{index}"\n[own]\nhidden = ["*"]'
    write_toml(work / "ullage.toml", said, all=scripted(*TOOLS))


async def first(gateway: Gateway, query: str) -> str | None:
    reply = await gateway.find().call(Call(tool="find_tool", arguments={"tool_description": query}))
    said = json.loads(str(reply.content[0]["text"]))
    return next((one["name"] for one in said["tools"]), None)


async def asked(work: Path, query: str) -> str | None:
    async with open_gateway(load(Flags(), os.environ, work), environment=os.environ) as gateway:
        return await first(gateway, query)


def embeddings(work: Path) -> dict[str, bytes]:
    database = Database.open(load(Flags(), os.environ, work).settings.store)
    query = "SELECT name, embedding FROM ullage_tools"
    try:
        return dict(database.read(lambda connection: connection.execute(query).all()))
    finally:
        database.close()


def exchange(work: Path, vectors: dict[str, bytes]) -> None:
    database = Database.open(load(Flags(), os.environ, work).settings.store)
    update = "UPDATE ullage_tools SET embedding = :vector WHERE name = :name"
    rows = [{"name": name, "vector": vector} for name, vector in vectors.items()]
    try:
        database.write(lambda connection: connection.execute(update, rows))
    finally:
        database.close()


@pytest.mark.requirement("S1:hybrid", "S1:catalog")
async def test_what_tools_mean_is_found_in_the_catalogue_at_the_next_start(work: Path):
    settings(work)
    assert await asked(work, RAIN) == "all__get_forecast"
    kept = embeddings(work)
    assert set(kept) == {"get_forecast", "resize_image"}
    assert None not in kept.values()
    exchange(work, {"get_forecast": kept["resize_image"], "resize_image": kept["get_forecast"]})
    assert await asked(work, RAIN) == "all__resize_image", "what lies there is taken and not made again"
    exchange(work, dict.fromkeys(kept, b"of another edition"))
    assert await asked(work, RAIN) == "all__get_forecast", "unless it is of no use"
    assert embeddings(work) == kept


@pytest.mark.requirement("S1:hybrid", "S1:live")
async def test_a_changed_index_is_taken_over_while_a_gateway_runs(work: Path):
    settings(work, "words")
    async with open_gateway(load(Flags(), os.environ, work), environment=os.environ) as gateway:
        assert await first(gateway, RAIN) is None
        settings(work, "static")
        await gateway.adopt(load(Flags(), os.environ, work))
        assert await first(gateway, RAIN) == "all__get_forecast"
        settings(work, "words")
        await gateway.adopt(load(Flags(), os.environ, work))
        assert await first(gateway, RAIN) is None


@pytest.mark.requirement("S1:hybrid")
async def test_all_clients_search_at_once_with_what_was_loaded_once(work: Path):
    settings(work)
    async with open_gateway(load(Flags(), os.environ, work), environment=os.environ) as gateway:
        found = list[str | None]()

        async def one(client: str) -> None:
            call = Call(tool="find_tool", arguments={"tool_description": RAIN})
            said = json.loads(str((await gateway.find(client).call(call)).content[0]["text"]))
            found.append(said["tools"][0]["name"])

        async with anyio.create_task_group() as tasks:
            for client in "abcd":
                tasks.start_soon(one, client)
        assert found == ["all__get_forecast"] * 4
