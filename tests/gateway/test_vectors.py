from collections.abc import Iterable
from dataclasses import replace

import pytest

from store.databases import opened
from ullage.gateway.catalog.catalog import Catalogue, Stored
from ullage.gateway.catalog.index_storage import StoredVectors
from ullage.options import Server
from ullage.store import Database
from ullage.tool import Tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:catalog")]

SHOP = Server(name="shop", transport="stdio", command="shop")
OTHER = replace(SHOP, arguments=("--other",))
BANK = replace(SHOP, name="bank")


def _tool(name: str, description: str = "Does it") -> Tool:
    return Tool(name=name, description=description, input_schema={"type": "object"})


def _keys(stored: Stored, server: str = "shop") -> list[tuple[str, str]]:
    return [(server, one.definition_hash) for one in stored.tools]


@pytest.fixture
def catalogue(database: Database) -> Catalogue:
    return Catalogue(database, len)


@pytest.mark.requirement("S1:catalog")
async def test_vectors_wait_for_the_next_start_by_server_and_definition(catalogue: Catalogue, database: Database):
    many = [_tool(f"buy_{number}") for number in range(1200)]
    keys = _keys(await catalogue.replace(SHOP, many))
    await catalogue.replace(BANK, many)
    kept = {key: str(number).encode() for number, key in enumerate(keys)}
    StoredVectors(database).save(kept)
    later = StoredVectors(database)
    assert later.load([*keys, ("shop", "unknown")]) == kept
    assert later.load([("bank", hash_) for _, hash_ in keys]) == {}, "a server's own words are in a vector too"
    later.save({keys[0]: b"anew"})
    assert later.load(keys[:1]) == {keys[0]: b"anew"}


@pytest.mark.requirement("S1:catalog")
async def test_a_vector_of_an_earlier_definition_is_not_kept(catalogue: Catalogue, database: Database):
    vectors = StoredVectors(database)
    before = _keys(await catalogue.replace(SHOP, [_tool("buy")]))
    after = _keys(await catalogue.replace(SHOP, [_tool("buy", "Changed meanwhile")]))
    vectors.save({before[0]: b"late"})
    vectors.save({})
    assert vectors.load([*before, *after]) == {}
    stored = await catalogue.listing(SHOP)
    assert stored is not None
    assert stored.tools[0].embedding is None


@pytest.mark.requirement("S1:catalog")
async def test_a_changed_definition_loses_its_vector_at_once_and_the_others_keep_theirs(
    catalogue: Catalogue, database: Database
):
    vectors = StoredVectors(database)
    buy, sell = _keys(await catalogue.replace(SHOP, [_tool("buy"), _tool("sell")]))
    vectors.save({buy: b"buy", sell: b"sell"})
    await catalogue.replace(SHOP, [_tool("sell"), _tool("buy", "Changed")])
    assert vectors.load([buy, sell]) == {sell: b"sell"}


async def test_two_configurations_of_one_name_share_their_vectors(catalogue: Catalogue, database: Database):
    for server in (SHOP, OTHER):
        keys = _keys(await catalogue.replace(server, [_tool("buy")]))
    StoredVectors(database).save({keys[0]: b"one"})
    for server in (SHOP, OTHER):
        stored = await catalogue.listing(server)
        assert stored is not None
        assert stored.tools[0].embedding == b"one"


async def test_a_name_that_no_column_holds_is_found_again(catalogue: Catalogue, database: Database):
    odd = "sh\0op \ud800"
    keys = _keys(await catalogue.replace(replace(SHOP, name=odd), [_tool("buy")]), odd)
    StoredVectors(database).save({keys[0]: b"one"})
    assert StoredVectors(database).load(keys) == {keys[0]: b"one"}


def _broken(place: str) -> Iterable[Database | None]:
    with opened(place) as database:
        database.write(lambda connection: connection.execute("DROP TABLE ullage_tools"))
        yield database
    yield None


async def test_without_a_working_database_nothing_is_kept_and_nobody_harmed(place: str):
    for database in _broken(place):
        vectors = StoredVectors(database)
        vectors.save({("shop", "a"): b""})
        assert vectors.load([("shop", "a")]) == {}
