import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import UUID

import anyio
import pytest

from store.databases import in_processes, opened
from ullage.gateway.catalog.catalog import Catalogue, Stored, StoredTool
from ullage.gateway.catalog.index_storage import StoredForms, StoredVectors
from ullage.gateway.tool_source import definition_hash, definition_text
from ullage.options import Server
from ullage.store import MIGRATIONS, Database
from ullage.tool import Introduction, Tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:catalog")]

SHOP = Server(name="shop", transport="stdio", command="shop")
OTHER = replace(SHOP, arguments=("--other",))
INTRODUCTION = Introduction(name="Shop", version="1", instructions="Buy.\0\ud800")
START = datetime(2026, 11, 1, 12, 0, 0, 123456, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


def _tool(name: str, description: str = "Does it") -> Tool:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    return Tool(name=name, description=description, input_schema=schema, extra={"_meta": {"x": [1, None]}})


def _named(stored: Stored) -> dict[str, StoredTool]:
    return {one.tool.name: one for one in stored.tools}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def catalogue(database: Database, clock: Clock) -> Catalogue:
    return Catalogue(database, len, clock=clock)


@pytest.mark.requirement("S1:catalog")
async def test_a_tool_is_stored_with_all_that_is_known_of_it(catalogue: Catalogue, database: Database):
    written = await catalogue.replace(SHOP, [_tool("buy"), _tool("sell")], INTRODUCTION)
    assert written.changed
    read = await Catalogue(database, len).listing(SHOP)
    assert read is not None
    assert read == replace(written, changed=False)
    assert read.listing.tools == (_tool("buy"), _tool("sell"))
    assert read.introduction == INTRODUCTION
    first = read.tools[0]
    assert first.id.version == read.server_id.version == 4
    assert (first.server_id, first.created, first.updated) == (read.server_id, START, START)
    assert first.token_count == len(definition_text(_tool("buy")))
    assert first.definition_hash == definition_hash(_tool("buy"))


async def test_a_server_that_was_never_listed_is_unknown(catalogue: Catalogue):
    assert await catalogue.listing(SHOP) is None
    await catalogue.replace(SHOP, [])
    stored = await catalogue.listing(SHOP)
    assert stored is not None
    assert stored.tools == ()


@pytest.mark.requirement("S1:catalog", "S1:live")
async def test_a_changed_configuration_is_another_server(catalogue: Catalogue):
    await catalogue.replace(SHOP, [_tool("buy")])
    assert await catalogue.listing(OTHER) is None
    await catalogue.replace(OTHER, [_tool("rent")])
    assert [tool.name for tool in await _listed(catalogue, SHOP)] == ["buy"], "two projects do not fight over a name"
    assert [tool.name for tool in await _listed(catalogue, OTHER)] == ["rent"]


async def _listed(catalogue: Catalogue, server: Server) -> tuple[Tool, ...]:
    stored = await catalogue.listing(server)
    return () if stored is None else stored.listing.tools


@pytest.mark.requirement("S1:catalog")
async def test_a_changed_definition_changes_weight_and_embedding_and_nothing_else(
    catalogue: Catalogue, database: Database, clock: Clock
):
    before = _named(await catalogue.replace(SHOP, [_tool("buy"), _tool("sell"), _tool("lend")]))
    StoredVectors(database).save({("shop", before[name].definition_hash): name.encode() for name in ("buy", "sell")})
    clock.now += timedelta(hours=1)
    new = [_tool("give"), _tool("sell", "Does it better, and for longer"), _tool("buy")]
    stored = await catalogue.replace(SHOP, new)
    assert stored.changed
    assert await catalogue.listing(SHOP) == replace(stored, changed=False)
    after = _named(stored)
    assert list(after) == ["give", "sell", "buy"]
    assert after["buy"] == replace(before["buy"], embedding=b"buy")
    assert after["sell"].id == before["sell"].id
    assert after["sell"].embedding is None
    assert after["sell"].token_count == len(definition_text(new[1]))
    assert (after["sell"].created, after["sell"].updated) == (START, clock.now)
    assert (after["give"].created, after["give"].updated) == (clock.now, clock.now)


async def test_the_same_tools_in_any_order_change_nothing(catalogue: Catalogue, clock: Clock):
    first = await catalogue.replace(SHOP, [_tool("buy"), _tool("sell")], INTRODUCTION)
    clock.now += timedelta(days=3)
    again = await catalogue.replace(SHOP, [_tool("sell"), _tool("buy")], INTRODUCTION)
    assert again == replace(first, changed=False)


@pytest.mark.requirement("S1:catalog")
async def test_an_embedding_is_never_shown():
    tool = StoredTool(
        id=UUID(int=1),
        server_id=UUID(int=2),
        tool=_tool("buy"),
        definition_hash="",
        embedding=b"secret",
        created=START,
        updated=START,
    )
    assert "secret" not in repr(tool) + json.dumps(tool.shown())
    assert tool.shown()["token_count"] == 0
    assert tool.shown()["created"] == "2026-11-01T12:00:00.123456+00:00"
    with pytest.raises(ValueError, match="-1 tokens"):
        replace(tool, token_count=-1)


@pytest.mark.requirement("S1:catalog")
async def test_removing_a_server_removes_its_tools(catalogue: Catalogue, database: Database):
    others = (OTHER, replace(SHOP, name="bank"))
    for server in (SHOP, *others):
        await catalogue.replace(server, [_tool("buy")])
    await catalogue.forget(SHOP)
    assert await catalogue.listing(SHOP) is None
    assert [await catalogue.listing(other) is not None for other in others] == [True, True]
    count = "SELECT count(*) FROM ullage_tools"
    assert database.read(lambda connection: connection.scalar(count)) == 2
    assert (await catalogue.replace(SHOP, [_tool("buy")])).changed, "it comes back as one that was never there"


async def test_a_server_not_listed_for_half_a_year_is_forgotten_when_another_comes(database: Database):
    days = [START]
    catalogue = Catalogue(database, len, clock=lambda: days[0])
    await catalogue.replace(SHOP, [_tool("buy")])
    days[0] += timedelta(days=179)
    await catalogue.replace(replace(SHOP, name="bank"), [_tool("buy")])
    assert await catalogue.listing(SHOP) is not None
    days[0] += timedelta(days=2)
    await catalogue.replace(replace(SHOP, name="mail"), [_tool("buy")])
    assert await catalogue.listing(SHOP) is None
    assert await catalogue.listing(replace(SHOP, name="bank")) is not None


async def test_a_change_that_fails_halfway_changes_nothing(catalogue: Catalogue, database: Database):
    stored = await catalogue.replace(SHOP, [_tool("buy")])
    other = await catalogue.replace(OTHER, [_tool("buy")])
    clash = Catalogue(database, len, new_id=lambda: other.tools[0].id)
    await clash.replace(SHOP, [_tool("sell"), _tool("lend")])
    assert clash.problem is not None
    assert await catalogue.listing(SHOP) == replace(stored, changed=False)


async def test_names_that_no_column_holds_and_names_listed_twice_are_kept(catalogue: Catalogue):
    odd = [_tool("a\0\ud800"), _tool("twice", "one"), _tool("twice", "two")]
    first = await catalogue.replace(SHOP, odd)
    stored = await catalogue.listing(SHOP)
    assert stored is not None
    assert list(stored.listing.tools) == odd
    again = await catalogue.replace(SHOP, [*odd[:2], _tool("twice", "three")])
    assert [one.id for one in again.tools] == [one.id for one in first.tools]


async def test_only_so_many_configurations_of_a_name_are_kept(catalogue: Catalogue, clock: Clock):
    servers = [replace(SHOP, environment={"TOKEN": str(n)}) for n in range(12)]
    for server in servers:
        clock.now += timedelta(minutes=1)
        await catalogue.replace(server, [_tool("buy")])
    known = [await catalogue.listing(server) is not None for server in servers]
    assert known == [False] * 4 + [True] * 8


async def _replace_often(place: str, name: str) -> str:
    with opened(place, patience=30) as database:
        catalogue = Catalogue(database, len)
        for n in range(8):
            await catalogue.replace(SHOP, [_tool(f"tool{i}", f"{name} {n}") for i in range(20)])
        return catalogue.problem or "no problem"


def _process(place: str, name: str) -> str:
    return anyio.run(partial(_replace_often, place, name))


async def test_many_processes_replace_one_list_and_the_last_one_stands_whole(place: str, catalogue: Catalogue):
    assert in_processes(_process, [(place, name) for name in "abcdef"]) == ["no problem"] * 6
    stored = await catalogue.listing(SHOP)
    assert stored is not None
    assert [one.tool.name for one in stored.tools] == [f"tool{i}" for i in range(20)]
    assert len({one.tool.description for one in stored.tools}) == 1
    assert {one.token_count for one in stored.tools if one.tool.name == "tool1"} == {
        len(definition_text(stored.tools[1].tool))
    }


async def test_thousands_of_tools_are_kept_in_their_order(tmp_path: Path):
    properties = {
        f"parameter_{n}": {"type": "string", "description": "What it is for, at some length"} for n in range(8)
    }
    big = {"type": "object", "properties": properties}
    tools = [Tool(name=f"tool_{n}", description=f"The {n}th", input_schema=big) for n in range(5000)]
    with opened(str(tmp_path / "x.db")) as database:
        await Catalogue(database, len).replace(SHOP, tools)
        stored = await Catalogue(database, len).listing(SHOP)
    assert stored is not None
    assert [one.tool.name for one in stored.tools] == [tool.name for tool in tools]


def _only_in_memory(place: str) -> Database:
    with opened(place, migrations=[*MIGRATIONS, lambda _: None]):
        pass
    return Database.open(place)


def _broken(place: str) -> Database:
    database = Database.open(place)
    database.write(lambda connection: connection.execute("DROP TABLE ullage_tools"))
    database.write(lambda connection: connection.execute("DROP TABLE ullage_servers"))
    return database


@pytest.mark.parametrize("spoil", [_only_in_memory, _broken])
async def test_where_the_database_fails_the_catalogue_goes_on_in_memory_and_says_so_once(
    place: str, spoil: Callable[[str], Database], caplog: pytest.LogCaptureFixture
):
    database = spoil(place)
    catalogue = Catalogue(database, len)
    with caplog.at_level(logging.WARNING):
        await _check_memory(catalogue, caplog)
    assert catalogue.problem
    database.close()


async def _check_memory(catalogue: Catalogue, caplog: pytest.LogCaptureFixture) -> None:
    first = await catalogue.replace(SHOP, [_tool("buy")], INTRODUCTION)
    assert first.changed
    again = await catalogue.replace(SHOP, [_tool("buy"), _tool("sell")], INTRODUCTION)
    assert again.changed
    assert again.tools[0] == first.tools[0]
    assert not (await catalogue.replace(SHOP, [_tool("buy"), _tool("sell")], INTRODUCTION)).changed
    await catalogue.forget(OTHER)
    assert len(caplog.records) == 1


async def test_without_a_database_all_is_kept_in_memory():
    catalogue = Catalogue(None, len)
    stored = await catalogue.replace(SHOP, [_tool("buy")])
    assert await catalogue.listing(SHOP) == stored
    await catalogue.forget(SHOP)
    assert await catalogue.listing(SHOP) is None


@pytest.mark.parametrize(
    "damage",
    ["UPDATE ullage_tools SET definition = 'no JSON'", "UPDATE ullage_servers SET introduction = '{\"b\": 1}'"],
)
async def test_a_row_that_cannot_be_read_is_as_good_as_none(catalogue: Catalogue, database: Database, damage: str):
    await catalogue.replace(SHOP, [_tool("buy")], INTRODUCTION)
    database.write(lambda connection: connection.execute(damage))
    other = Catalogue(database, len)
    assert await other.listing(SHOP) is None
    assert "cannot be read" in str(other.problem)
    assert (await other.replace(SHOP, [_tool("buy")])).changed


def _hashes(count: int) -> Iterable[str]:
    return [f"{n:064x}" for n in range(count)]


async def test_forms_wait_for_the_next_start_and_are_let_go_in_the_end(database: Database, clock: Clock):
    forms = StoredForms(database, edition="1", clock=clock)
    kept = {one: {"line": f"line {one} \ud800"} for one in _hashes(1200)}
    forms.save({one: {"line": "an earlier one"} for one in kept})
    forms.save(kept)
    forms.save({})
    assert forms.load([*kept, "unknown"]) == kept
    assert StoredForms(database, edition="2").load(kept) == {}
    clock.now += timedelta(days=100)
    forms.save({"new": {}})
    assert forms.load([*kept, "new"]) == {"new": {}}


async def test_forms_without_a_working_database_are_an_empty_cache(place: str):
    broken = _broken(place)
    broken.write(lambda connection: connection.execute("DROP TABLE ullage_forms"))
    for database in (None, broken):
        forms = StoredForms(database, edition="1")
        forms.save({"a": {}})
        assert forms.load(["a"]) == {}
    broken.close()


async def test_what_a_server_can_do_is_kept_and_rows_of_other_versions_are_read(
    catalogue: Catalogue, database: Database
):
    able = replace(INTRODUCTION, capabilities={"tools": {}, "resources": {"subscribe": True}})
    await catalogue.replace(SHOP, [_tool("buy")], able)
    read = await Catalogue(database, len).listing(SHOP)
    assert read is not None
    assert read.introduction == able
    for written, expected in (
        ({"name": "Shop"}, Introduction(name="Shop")),
        ({"name": "Shop", "capabilities": {}, "of a later version": 1}, Introduction(name="Shop", capabilities={})),
    ):
        update, said = "UPDATE ullage_servers SET introduction = :said", {"said": json.dumps(written)}
        database.write(lambda connection, update=update, said=said: connection.execute(update, said))
        read = await Catalogue(database, len).listing(SHOP)
        assert read is not None
        assert read.introduction == expected
