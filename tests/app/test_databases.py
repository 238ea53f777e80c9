"""Databases behind the gateway, and what becomes of results."""

import json
import logging
import os
import re
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from approving import load
from ullage.app.build_gateway import LISTED, Gateway, OwnTools, open_gateway
from ullage.app.build_sources import HeldTables, LateDatabase, look_at
from ullage.app.count_text import meter
from ullage.config import Flags
from ullage.errors import DeadlinePassed, SourceFailed, UnknownTool
from ullage.gateway import META, definition_text
from ullage.testing import FakeSource
from ullage.tool import Call, Caller, Origin, Read, Reply, Tool
from upstreams import scripted, tool, users_file, write_toml

pytestmark = pytest.mark.anyio

SEARCH = '[gateway]\nmode = "search"\n'
GIVE = tool("give", "Gives whatever result it is given.", inputSchema={"type": "object"})


@pytest.fixture
def shops(work: Path) -> Path:
    """Two SQLite files, `near.db` and `far.db`, each with a table that says which it is."""
    for name in ("near", "far"):
        with sqlite3.connect(work / f"{name}.db") as connection:
            connection.execute("CREATE TABLE place (name TEXT, secret TEXT)")
            connection.execute("INSERT INTO place VALUES (?, 'hunter2')", (name,))
        connection.close()
    return work


def sources(*names: str, **more: str) -> str:
    return "".join(f'[sources.{name}]\ndatabase = "{name}.db"\n{more.get(name, "")}\n' for name in names)


@asynccontextmanager
async def opened(work: Path, **flags) -> AsyncGenerator[Gateway]:
    async with open_gateway(load(Flags(**flags), os.environ, work), environment=os.environ) as gateway:
        await gateway.view(30)
        yield gateway


async def names(gateway: Gateway) -> list[str]:
    return [one.name for one in (await gateway.flagged(None).source.tools()).tools]


async def ask(gateway: Gateway, name: str, /, principal: str = "me", **arguments: Any) -> Reply:  # noqa: ANN401
    caller = Caller(principal=principal, session="s", model=gateway.flagged(None).model)
    return await gateway.flagged(None).source.call(Call(tool=name, arguments=arguments, caller=caller))


def text(reply: Reply) -> str:
    return str(reply.content[-1]["text"])


def noted(reply: Reply) -> dict[str, Any]:
    return cast("dict[str, Any]", reply.meta[META])


@pytest.mark.requirement("U:own", "S0:sql:schema")
async def test_the_default_databases_tools_have_no_prefix_and_two_of_them_are_listed(shops: Path):
    write_toml(shops / "ullage.toml", SEARCH + sources("near", "far", far="default = true"))
    async with opened(shops) as gateway:
        assert await names(gateway) == [
            *("find_tool", "call_tool", "call_tool_write"),
            *("count-tokens", "read_result", "query", "schema"),
        ]
        for tool_name, place in (("query", "far"), ("near__query", "near"), ("far__query", "far")):
            reply = await ask(gateway, tool_name, sql="SELECT name FROM place")
            assert place in text(reply)
            assert noted(reply)["data"] == {
                "rowCount": 1,
                "columnCount": 1,
                "truncated": False,
                "maxRowsLimit": 1000,
            }
        through = await ask(gateway, "call_tool", tool_name="table", parameters={"name": "place"})
        assert "secret" in text(through)
        found = await ask(gateway, "find_tool", tool_description="ask the near database in SQL")
        assert '"enum":["far","near"]' in text(found)
        for place in ("near", "far"):
            reply = await ask(gateway, "query", sql="SELECT name FROM place", database=place)
            assert place in text(reply)
            assert reply.origin == Origin(place, "query")
        wrong = json.loads(text(await ask(gateway, "query", sql="SELECT 1", database="nowhere")))
        assert (wrong["error_code"], wrong["available_options"]) == ("INVALID_ARGUMENTS", ["far", "near"])


@pytest.mark.requirement("U:own", "S0:sql:schema")
async def test_several_databases_share_one_set_of_tools(work: Path):
    for number in range(4):
        with sqlite3.connect(work / f"store{number}.db") as connection:
            connection.execute(f"CREATE TABLE only_{number} (id INTEGER)")
        connection.close()
    write_toml(work / "ullage.toml", sources(*(f"store{number}" for number in range(4))))
    async with opened(work) as gateway:
        listed = [one for one in (await gateway.flagged(None).source.tools()).tools if one.name not in LISTED]
        assert [one.name for one in listed] == ["query", "schema", "table", "explain"]
        tokens = sum(meter().count(definition_text(one), "gpt-4o").tokens for one in listed)
        assert tokens <= 320
        for number in range(4):
            shown = text(await ask(gateway, "schema", database=f"store{number}"))
            assert f"only_{number}" in shown
            assert "only_" not in shown.replace(f"only_{number}", "")
            by_old_name = text(await ask(gateway, "getSchemaStructure", databaseName=f"store{number}"))
            assert f"only_{number}" in by_old_name
        assert "only_0" in text(await ask(gateway, "schema"))
        assert "only_0" in text(await ask(gateway, "getSchemaStructure", databaseName="anything"))
        assert "only_3" in text(await ask(gateway, "store3__schema"))


@pytest.mark.requirement("S0:sql:query", "S0:sql:schema")
async def test_the_names_of_the_system_before_answer_in_its_json_and_are_not_shown(shops: Path):
    write_toml(shops / "ullage.toml", sources("near"))
    async with opened(shops) as gateway:
        shown = await names(gateway)
        assert shown == ["count-tokens", "read_result", "query", "schema", "table", "explain"]
        many = "SELECT name, secret FROM place, (SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4)"
        answered = json.loads(text(await ask(gateway, "secureDatabaseQuery", queryDescription=many)))
        assert (answered["rowCount"], answered["columnNames"]) == (4, ["name", "secret"])
        for other, arguments in (
            ("getSchemaStructure", {}),
            ("getTableDetails", {"tableName": "place"}),
            ("listTriggers", {"tableName": "place"}),
        ):
            assert json.loads(text(await ask(gateway, other, **arguments)))


@pytest.mark.requirement("U:access")
async def test_the_users_rules_for_our_own_tools_hold_for_a_databases_too(shops: Path):
    rules = '[own]\npinned = ["table"]\nhidden = ["schema"]\ndeny = ["explain"]\n'
    write_toml(shops / "ullage.toml", SEARCH + rules + sources("near"))
    async with opened(shops) as gateway:
        assert (await names(gateway))[3:] == ["count-tokens", "read_result", "query", "table"]
        assert "place" in text(await ask(gateway, "schema"))
        assert json.loads(text(await ask(gateway, "explain", sql="SELECT 1")))["error_code"] == "DENIED"


@pytest.mark.requirement("U:own")
async def test_a_servers_tool_of_the_same_name_gives_way_and_both_can_be_called(shops: Path):
    server = scripted(tool("query"), tool("echo"), prefix="")
    write_toml(users_file(shops.parent), other={**server, "pinned": ["query"]})
    write_toml(shops / "ullage.toml", SEARCH + sources("near"))
    async with opened(shops) as gateway:
        listed = await names(gateway)
        assert listed.count("query") == 1
        assert len([name for name in listed if name.startswith("query_")]) == 1
        assert "near" in text(await ask(gateway, "query", sql="SELECT name FROM place"))
        assert text(await ask(gateway, "echo", text="still here")) == "still here"


@pytest.mark.requirement("S0:sql:read-only")
async def test_a_masked_column_and_a_write_are_refused_or_hidden_through_the_gateway_as_well(shops: Path):
    write_toml(shops / "ullage.toml", sources("near", near='masked = ["*.secret"]'))
    async with opened(shops) as gateway:
        assert "hunter2" not in text(await ask(gateway, "query", sql="SELECT * FROM place"))
        refused = await ask(gateway, "query", sql="DELETE FROM place")
        assert json.loads(text(refused))["error_code"] == "SQL_REFUSED"
        assert noted(refused)["tokens"]["estimated"] > 0


async def test_a_database_answers_resources_too(shops: Path):
    write_toml(shops / "ullage.toml", sources("near"))
    async with opened(shops) as gateway:
        uris = [str(one["uri"]) for one in await gateway.merge.resources()]
        assert [uri for uri in uris if "near" in uri] == uris
        assert [str(one["name"]) for one in await gateway.merge.templates()] == ["near table"]
        read = await gateway.merge.read(Read(uri=uris[0]))
        assert "place" in str(read.contents[0]["text"])


@pytest.mark.requirement("S1:live")
async def test_what_stays_in_the_settings_is_not_disturbed_and_what_leaves_is_closed(shops: Path):
    file = write_toml(shops / "ullage.toml", sources("near", "far"))
    async with opened(shops) as gateway:
        near, far = gateway.databases["near"], gateway.databases["far"]
        await ask(gateway, "near__query", sql="SELECT 1")
        await ask(gateway, "far__query", sql="SELECT 1")
        write_toml(file, sources("far", far="default = true") + sources("near", near="max_rows = 5"))
        await gateway.adopt(load(Flags(), os.environ, shops))
        assert gateway.databases["far"] is far
        assert gateway.databases["near"] is not near
        assert "far" in text(await ask(gateway, "query", sql="SELECT name FROM place"))
        assert noted(await ask(gateway, "near__query", sql="SELECT 1"))["data"]["maxRowsLimit"] == 5
        write_toml(file)
        await gateway.adopt(load(Flags(), os.environ, shops))
        with anyio.fail_after(20):
            while near._source is not None or far._source is not None:
                await anyio.sleep(0.01)
        with pytest.raises(UnknownTool):
            await ask(gateway, "query", sql="SELECT 1")


@pytest.mark.requirement("S0:sql:engines")
async def test_a_database_that_cannot_be_asked_is_named_once_and_harms_nobody(
    shops: Path, caplog: pytest.LogCaptureFixture
):
    write_toml(shops / "ullage.toml", sources("near", "gone"))
    caplog.set_level(logging.WARNING)
    async with opened(shops) as gateway:
        gateway.warm_up()
        with anyio.fail_after(20):
            while not caplog.messages:
                await anyio.sleep(0.05)
        assert "near" in text(await ask(gateway, "query", sql="SELECT name FROM place"))
        failed = await ask(gateway, "gone__query", sql="SELECT 1")
        assert failed.is_error
        write_toml(shops / "ullage.toml", sources("near", "gone", "lost"))
        await gateway.adopt(load(Flags(), os.environ, shops))
        with anyio.fail_after(20):
            while len(caplog.messages) < 2:
                await anyio.sleep(0.05)
    assert [re.findall(r"`(\w+)`", message)[0] for message in caplog.messages] == ["gone", "lost"]


async def test_what_should_be_known_of_a_role_is_said_on_the_log(caplog: pytest.LogCaptureFixture):
    class Writable:
        settings = cast("Any", type("Settings", (), {"name": "near"}))

        async def warnings(self) -> tuple[str, ...]:
            return ("database `near`: its role can write",)

    class Unreachable(Writable):
        async def warnings(self) -> tuple[str, ...]:
            raise SourceFailed("nobody answers", suggestion="start it")

    for one in (Writable(), Unreachable()):
        await look_at(cast("LateDatabase", one))
    assert caplog.messages == [
        "database `near`: its role can write",
        "database `near` cannot be asked: nobody answers (start it)",
    ]


async def test_a_source_called_as_we_are_keeps_its_name(shops: Path):
    (shops / "near.db").rename(shops / "ullage.db")
    write_toml(shops / "ullage.toml", sources("ullage"))
    async with opened(shops) as gateway:
        assert gateway.own_name == "ullage (own)"
        assert "near" in text(await ask(gateway, "query", sql="SELECT name FROM place"))
        assert json.loads(text(await ask(gateway, "count-tokens", text="hi")))["token_count"] == 1


async def test_the_sample_shop_is_made_when_it_is_first_asked(work: Path):
    async with opened(work, sample=True) as gateway:
        file = Path(gateway.settings.sample)
        assert "query" in await names(gateway)
        assert not file.exists()
        rows = "SELECT count(*) AS n FROM orders"
        first, again = await anyio_gather(gateway, rows)
        assert first == again
        assert file.exists()


async def anyio_gather(gateway: Gateway, sql: str) -> list[str]:
    """The same asked twice at the same time, before anything is open."""
    found: list[str] = []

    async def one() -> None:
        found.append(text(await ask(gateway, "query", sql=sql)))

    async with anyio.create_task_group() as group:
        group.start_soon(one)
        group.start_soon(one)
    return found


@pytest.mark.requirement("U:budget")
async def test_a_large_result_is_cut_and_the_rest_can_be_read_and_asked_in_sql_by_who_got_it(work: Path):
    write_toml(work / "ullage.toml", "[results]\nbudget = 500\n", notes=scripted(GIVE))
    rows = [{"id": number, "name": f"item {number}"} for number in range(2_000)]
    content = [{"type": "text", "text": json.dumps(rows)}]
    async with opened(work) as gateway:
        cut = await ask(gateway, "notes__give", result={"content": content})
        assert noted(cut)["tokens"]["estimated"] <= 500
        assert noted(cut)["data"]["truncated"] is True
        handle = re.search(r'handle="(\w+)"', text(cut))
        assert handle is not None
        page = await ask(gateway, "read_result", handle=handle[1], offset=1_999)
        assert "item 1999" in text(page)
        assert noted(page)["tokens"]["estimated"] <= 500
        asked = await ask(gateway, "read_result", handle=handle[1], sql="SELECT sum(id) AS total FROM result")
        assert "1999000" in text(asked)
        refused = await ask(gateway, "read_result", handle=handle[1], sql="DROP TABLE result")
        assert json.loads(text(refused))["error_code"] == "SQL_REFUSED"
        stranger = await ask(gateway, "read_result", principal="someone", handle=handle[1])
        assert json.loads(text(stranger))["error_code"] == "UNKNOWN_HANDLE"
    async with opened(work) as gateway:
        again = await ask(gateway, "read_result", handle=handle[1], offset=1_999)
        assert "item 1999" in text(again)


@pytest.mark.requirement("U:budget", "U:join")
async def test_a_databases_answer_over_the_tokens_of_its_call_is_held_and_can_be_joined(work: Path):
    write_toml(work / "ullage.toml", notes=scripted(GIVE))
    rows = [{"product_id": number, "stars": number % 5} for number in range(1, 301)]
    content = [{"type": "text", "text": json.dumps(rows)}]
    async with opened(work, sample=True) as gateway:
        few = await ask(gateway, "query", sql="SELECT id, name, price FROM products", max_tokens=100)
        assert noted(few)["tokens"]["estimated"] <= 100
        assert noted(few)["data"]["truncated"] is True
        parameters = {"result": {"content": content}}
        other = await ask(gateway, "call_tool_write", tool_name="notes__give", parameters=parameters, max_tokens=60)
        products, stars = noted(few)["handle"], noted(other)["handle"]
        sql = f"SELECT count(*) AS n FROM result p JOIN {stars} s ON s.product_id = p.id WHERE s.stars = 0"
        joined = text(await ask(gateway, "read_result", handle=products, sql=sql))
        every = text(
            await ask(gateway, "query", sql="SELECT count(*) AS n FROM products WHERE id % 5 = 0 AND id <= 300")
        )
        number = re.search(r"n=(\d+)", every)
        assert number is not None
        assert joined == f"n\n{number[1]}\n[1 row]"


@pytest.mark.requirement("U:own")
async def test_read_result_is_not_listed_where_nothing_is_ever_cut(work: Path):
    write_toml(work / "ullage.toml", SEARCH + "[results]\nbudget = 0\nencode = false\n", notes=scripted(GIVE))
    async with opened(work) as gateway:
        assert "read_result" not in await names(gateway)
        unknown = await ask(gateway, "read_result", handle="r1")
        assert json.loads(text(unknown))["error_code"] == "UNKNOWN_HANDLE"
        write_toml(
            work / "ullage.toml",
            SEARCH + "[results]\nbudget = 0\nencode = false\n",
            notes={**scripted(GIVE), "budget": 50},
        )
        await gateway.adopt(load(Flags(), os.environ, work))
        assert "read_result" in await names(gateway)


@pytest.mark.requirement("S0:meta:performance")
async def test_a_tool_with_a_time_to_live_is_answered_from_memory(work: Path):
    text_of = "[servers.notes.cache]\necho = 60\n"
    file = write_toml(work / "ullage.toml", notes=scripted(tool("echo"), tool("give")))
    file.write_text(file.read_text(encoding="utf-8") + text_of, encoding="utf-8")
    async with opened(work) as gateway:
        said = [noted(await ask(gateway, "notes__echo", text="a"))["performance"]["cachedResult"] for _ in range(2)]
        assert said == [False, True]
        await ask(gateway, "notes__give", result={"content": []})
        assert not noted(await ask(gateway, "notes__echo", text="a"))["performance"]["cachedResult"]
        settings = gateway.settings
        moved = replace(settings, servers=(replace(settings.servers[0], environment={"MOVED": "1"}),))
        await gateway.adopt(replace(gateway.loaded, settings=moved))
        assert not noted(await ask(gateway, "notes__echo", text="a"))["performance"]["cachedResult"]


@pytest.mark.requirement("S0:meta:tokens")
async def test_a_plain_rule_may_be_named_in_a_models_place(shops: Path):
    write_toml(shops / "ullage.toml", '[gateway]\nmodel = "character_count_div_4"\nwindow = 9000\n' + sources("near"))
    async with opened(shops) as gateway:
        reply = await ask(gateway, "query", sql="SELECT name FROM place")
        tokens = noted(reply)["tokens"]
        assert tokens["approximationMethod"] == "character_count_div_4"
        assert tokens["estimated"] == -(-len(text(reply)) // 4)


@pytest.mark.requirement("U:own")
async def test_our_own_tools_are_one_source_and_know_their_names():
    def source(name: str) -> FakeSource:
        return FakeSource(offered=(Tool(name=name, input_schema={}, aliases=(f"{name}_too",)),))

    first, second = source("a"), source("b")
    own = OwnTools((first, second))
    assert [one.name for one in (await own.tools()).tools] == ["a", "b"]
    await own.call(Call(tool="b_too"))
    assert (len(first.calls), len(second.calls)) == (0, 1)
    with pytest.raises(UnknownTool):
        await own.call(Call(tool="c"))


@pytest.mark.requirement("U:bounded")
async def test_sql_on_a_held_result_ends_at_its_deadline():
    tables = HeldTables()
    with pytest.raises(DeadlinePassed):
        await tables.ask(["a"], [(1,)], "SELECT a FROM result", 0.0)
    columns, rows, more = await tables.ask(["a"], [(1,), (2,)], "SELECT sum(a) AS n FROM result", 20.0)
    assert (list(columns), [list(row) for row in rows], more) == (["n"], [[3]], False)
    await tables.close()
