"""Clients that run programs: results as their source sent them, with structured content and `outputSchema`."""

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from approving import load
from ullage.app.build_gateway import Gateway, open_gateway
from ullage.config import Flags, Loaded
from ullage.tool import Call, Caller, Json, Reply
from upstreams import scripted, tool, users_file, write_toml

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U:whole")]

SCHEMA = {"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "object"}}}}
GIVE = tool("give", "Give rows.", annotations={"readOnlyHint": True}, outputSchema=SCHEMA)
SEARCH = '[gateway]\nmode = "search"\n[search]\nindex = "words"\n'
CODE = """
[clients.code]
whole = true
[clients.some]
whole = ["shop__other*"]
[clients.direct]
mode = "direct"
whole = true
"""
DATABASE = '[sources.notes]\ndatabase = "sample"\n'
ROWS: list[Json] = [{"id": row, "name": f"name {row}", "note": "some words "} for row in range(2_000)]


def settings(work: Path, text: str = "") -> Loaded:
    write_toml(users_file(work.parent), f"{SEARCH}{text}{CODE}{DATABASE}", shop=scripted(GIVE))
    return load(Flags(), os.environ, work)


async def ask(gateway: Gateway, client: str | None, name: str, *, meta: Any = None, **arguments: Any) -> Reply:  # noqa: ANN401
    caller = Caller(principal="ada", session="s", client=client)
    call = Call(tool=name, arguments=arguments, caller=caller, meta=meta or {})
    return await gateway.profile(client).source.call(call)


async def give(gateway: Gateway, client: str | None, rows: Json = ROWS, **more: Any) -> Reply:  # noqa: ANN401
    value: Json = {"rows": rows}
    result = {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}
    return await ask(gateway, client, "call_tool", tool_name="shop__give", parameters={"result": result}, **more)


def is_whole(reply: Reply, rows: Json = ROWS) -> bool:
    value: Json = {"rows": rows}
    assert reply.structured is None or reply.structured.value == value
    return reply.structured is not None and json.loads(str(reply.content[0]["text"])) == value


async def test_a_client_with_whole_gets_results_as_they_are(work: Path):
    async with open_gateway(settings(work), environment=os.environ) as gateway:
        for rows in (ROWS, ROWS[:100]):
            assert is_whole(await give(gateway, "code", rows), rows)
            assert not is_whole(await give(gateway, None, rows), rows)
            assert not is_whole(await give(gateway, "some", rows), rows)


async def test_one_request_can_ask_for_the_whole(work: Path):
    async with open_gateway(settings(work), environment=os.environ) as gateway:
        assert is_whole(await give(gateway, None, meta={"dev.ullage/budget": 0}))
        assert is_whole(await give(gateway, None, ROWS[:3], meta={"dev.ullage/budget": 0}), ROWS[:3])
        cut = await give(gateway, "code", meta={"dev.ullage/budget": 300})
        assert cut.structured is None
        assert cut.meta["dev.ullage/meta"]["tokens"]["estimated"] <= 300  # type: ignore[index,call-overload,operator]


async def test_a_whole_result_is_metered_and_recorded(work: Path):
    loaded = settings(work)
    async with open_gateway(loaded, environment=os.environ) as gateway:
        reply = await give(gateway, "code")
        tokens = reply.meta["dev.ullage/meta"]["tokens"]["estimated"]  # type: ignore[index,call-overload]
        assert isinstance(tokens, int)
        assert tokens > 10_000
        assert gateway.database is not None
        with anyio.fail_after(10):
            while tokens not in recorded(gateway):
                await anyio.sleep(0.1)


def recorded(gateway: Gateway) -> list[int]:
    assert gateway.database is not None
    query = "SELECT tokens FROM ullage_entries"
    return [row[0] for row in gateway.database.read(lambda connection: connection.execute(query).all())]


async def test_the_users_ceiling_holds_for_programs_and_everyone_else(work: Path):
    loaded = settings(work, "[results]\nceiling = 2000\n")
    async with open_gateway(loaded, environment=os.environ) as gateway:
        assert is_whole(await give(gateway, "code", ROWS[:3]), ROWS[:3])
        for client, meta in (("code", None), (None, {"dev.ullage/budget": 0})):
            refused = await give(gateway, client, meta=meta)
            assert refused.is_error
            assert refused.structured is None
            error = json.loads(str(refused.content[0]["text"]))
            assert error["error_code"] == "OVER_BUDGET"
            handle = error["available_options"][0]
            page = await ask(gateway, client, "read_result", handle=handle, sql="SELECT count(*) AS n FROM result")
            assert "2000" in str(page.content[0]["text"])
        for most in (None, 100_000):
            cut = await give(gateway, None, meta={} if most is None else {"dev.ullage/budget": most})
            assert cut.meta["dev.ullage/meta"]["tokens"]["estimated"] <= 2_000  # type: ignore[index,call-overload,operator]


async def test_tools_that_are_listed_directly_keep_their_output_schema(work: Path):
    async with open_gateway(settings(work), environment=os.environ) as gateway:
        await gateway.profile("direct").source.tools()
        with anyio.fail_after(20):
            while not (listed := await schemas(gateway, "direct")).get("shop__give"):
                await anyio.sleep(0.05)
        assert listed["shop__give"] == SCHEMA
        assert listed.get("find_tool") is None
        assert (await schemas(gateway, "code"))["find_tool"]["required"] == ["tools", "more", "token_metrics"]
        assert (await schemas(gateway, "some"))["find_tool"] is None
        reply = await ask(gateway, "code", "find_tool", tool_description="give rows")
        assert reply.structured is not None


async def schemas(gateway: Gateway, client: str) -> dict[str, Any]:
    return {tool.name: tool.output_schema for tool in (await gateway.profile(client).source.tools()).tools}


async def test_a_database_answers_a_program_in_json(work: Path):
    async with open_gateway(settings(work), environment=os.environ) as gateway:
        sql = "SELECT id, name FROM products ORDER BY id LIMIT 2"
        whole = await ask(gateway, "code", "query", sql=sql)
        assert whole.structured is not None
        assert json.loads(str(whole.content[0]["text"])) == whole.structured.value
        assert str((await ask(gateway, None, "query", sql=sql)).content[0]["text"]).startswith("id,name")
        assert str((await ask(gateway, "code", "query", sql=sql, format="csv")).content[0]["text"]).startswith(
            "id,name"
        )
        count = await ask(gateway, "code", "count-tokens", text="Hello, world!")
        assert count.structured is not None
        assert count.structured.value["token_count"] == 4  # type: ignore[index,call-overload]


async def test_a_projects_file_has_no_say_on_the_ceiling(work: Path):
    write_toml(work / "ullage.toml", "[results]\nceiling = 5\n")
    assert load(Flags(), os.environ, work).settings.results.ceiling == 0
