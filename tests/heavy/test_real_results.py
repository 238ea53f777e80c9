"""What `ullage serve` learns of real servers' replies, joins and passes on whole, over HTTP with a token a user."""

import json
import re
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from heavy.real_client import Front, connected, fronted, listening, text_of
from heavy.real_world import World, entries, make_world
from upstreams import scripted, tool

pytestmark = [pytest.mark.heavy, pytest.mark.anyio]

SETTINGS = """
[gateway]
mode = "search"
[sources.shop]
database = "sample"
[sources.far]
database = "postgresql://postgres@127.0.0.1:5432/test"
[clients.code]
whole = true
"""
GIVE = tool("give", "Give what is asked.", annotations={"readOnlyHint": True}, inputSchema={"type": "object"})
SECRETS = (
    "xoxb-1234-5678-AbCdEf", "glpat-Q7w2e3R4t5", "Basic dXNlcjpwYXNz", "-----BEGIN PRIVATE KEY-----", "p4ssw0rd!",
    "correct horse battery staple", "blue-river-stone-house", "open.sesame.door", "0b9f8c1d2e3f4a5b", "T0k3n",
    "4111 1111 1111 1111", "GB33BUKB20201555555555", "078-05-1120", "11/09/2001", "1973-Q3", "fe80::1", "10.0.0.7",
    "/home/jane/.ssh/id_rsa", "C:\\Users\\Jane", "src/app/main.py", "index.html", "mail.service.cloud", "@janedoe",
    "x.y@corp.example", "李小龙", "Владимир", "محمد", "कमला", "김민수", "Þóra", "grace_hopper", "O'Brien", "PROJ-123",
)  # fmt: skip


class Served:
    """A gateway in front of real servers, a toy that gives what it is told, the sample shop and PostgreSQL."""

    def __init__(self, world: World, url: str) -> None:
        self.world = world
        self.url = url

    @asynccontextmanager
    async def user(self, name: str, client: str = "") -> AsyncGenerator[Front]:
        headers = {"Authorization": f"Bearer the-long-token-of-{name}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(f"{self.url}{client and '/'}{client}", http_client=http)
            async with connected(transport, "auto") as front:
                yield front

    def shapes(self) -> list[tuple[str, ...]]:
        """All that is stored; the tables are made when there is something to store."""
        with sqlite3.connect(self.world.folder / "store.db") as database:
            if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'ullage_shapes'").fetchall():
                return []
            return [tuple(map(str, row)) for row in database.execute("SELECT * FROM ullage_shapes")]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = make_world(tmp_path_factory.mktemp("world"))
    of_all = entries(world)
    world.rewrite(
        toy=scripted(GIVE), **{name: of_all[name] for name in ("everything", "files", "git", "memory", "time")}
    )
    (world.folder / "user.toml").write_text(SETTINGS, encoding="utf-8")
    tokens = world.folder / "tokens"
    tokens.write_text("ada:the-long-token-of-ada\nbob:the-long-token-of-bob\n", encoding="utf-8")
    tokens.chmod(0o600)
    return world


@pytest.fixture
async def served(world: World) -> AsyncGenerator[Served]:
    folder = world.folder
    (folder / "store.db").unlink(missing_ok=True)
    flags = (
        "--tokens",
        f"{folder}/tokens",
        "--config",
        f"{folder}/user.toml",
        "--store",
        f"sqlite:///{folder}/store.db",
    )
    async with listening(world, *flags) as url:
        yield Served(world, url)


async def give(front: Front, value: object, **more: object) -> CallToolResult:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    if isinstance(value, dict):
        result["structuredContent"] = value
    asked = {"tool_name": "toy__give", "parameters": {"result": result}, **more}
    return await front.client.call_tool("call_tool", asked)


async def returns(front: Front, name: str) -> str:
    """What a search for a tool shows of its replies."""
    return (await front.find(name, max_tokens=2_000))["tools"][0].get("returns", "")


async def shown(front: Front, name: str, said: str) -> None:
    """Wait until a search shows this."""
    with anyio.fail_after(30):
        while await returns(front, name) != said:
            await anyio.sleep(0.05)


def handle_of(result: CallToolResult) -> str:
    assert result.meta is not None
    return str(result.meta["dev.ullage/meta"]["handle"])


async def sql(front: Front, handle: str, statement: str) -> str:
    return text_of(await front.client.call_tool("read_result", {"handle": handle, "sql": statement}))


@pytest.mark.requirement("U:shapes")
async def test_what_is_shown_of_a_real_tool_is_what_it_returns(served: Served):
    files, repository = str(served.world.files), str(served.world.repository)
    ship = {"name": "Sloop", "entityType": "ship", "observations": ["one mast"]}
    calls: dict[str, tuple[dict[str, object], str]] = {
        "files__list_directory": ({"path": files}, "→ {content}"),
        "git__git_log": ({"repo_path": repository}, "→ text"),
        "everything__get-structured-content": ({"location": "Chicago"}, "→ {temperature, conditions, humidity}"),
        "everything__get-tiny-image": ({}, "→ media|text"),
        "everything__get-env": ({}, "→ {…}"),
        "memory__create_entities": ({"entities": [ship]}, "→ {entities[{name, entityType, observations[string]}]}"),
        "memory__open_nodes": (
            {"names": ["Sloop"]},
            "→ {entities[{name, entityType, observations[string]}], relations[{from, to, relationType}]}",
        ),
        "time__get_current_time": ({"timezone": "UTC"}, "→ {timezone, datetime, day_of_week, is_dst}"),
    }
    async with served.user("ada") as front:
        for name, (arguments, _) in calls.items():
            call = front.write if name == "memory__create_entities" else front.read
            result = await call(name, **arguments)
            assert not result.is_error, text_of(result)
        for name, (_, said) in calls.items():
            await shown(front, name, said)
        for source in ("query", "far__query"):
            result = await front.read(source, sql="SELECT 1 AS one, 'two' AS name")
            assert "one=1" in text_of(result)
            assert await returns(front, source) == "", "what it returns depends on the statement"
    async with served.user("bob") as front:
        assert await returns(front, "git__git_log") == "", "learnt of another user's replies"
        assert await returns(front, "memory__open_nodes") == calls["memory__open_nodes"][1], "declared for everyone"
    stored = json.dumps(served.shapes(), ensure_ascii=False)
    assert not any(word in stored for word in ("Sloop", "one mast", "PATH", "mainsail", "log.txt", "two"))


@pytest.mark.requirement("U:shapes")
async def test_no_secret_of_a_reply_is_stored_or_shown(served: Served):
    async with served.user("ada") as front:
        for secret in SECRETS:
            await give(front, {"id": 1, "name": secret, "state": "open", secret: {"id": secret}})
            await give(front, [{secret: 1, "id": secret}, {"id": 2, "title": secret}])
            await give(front, {"data": {secret: secret}})
        await anyio.sleep(0.5)
        said = json.dumps(await front.find("toy__give", max_tokens=2_000), ensure_ascii=False)
    stored = json.dumps(served.shapes(), ensure_ascii=False)
    assert "toy" in stored
    for secret in SECRETS:
        assert json.dumps(secret, ensure_ascii=False)[1:-1] not in said + stored


@pytest.mark.requirement("U:join", "U:shapes")
async def test_two_users_at_once_see_no_handle_shape_or_table_of_each_other(served: Served):
    keys = {"ada": ("number", "title"), "bob": ("color", "price")}
    handles = dict[str, str]()

    async def work(name: str) -> None:
        (one, two), (other, _) = keys[name], keys["bob" if name == "ada" else "ada"]
        async with served.user(name) as front:
            for round_ in range(12):
                rows = [{one: row, two: f"{name} {row}"} for row in range(80)]
                held = await give(front, {"rows": rows}, max_tokens=100)
                handles[name] = handle_of(held)
                assert other not in await returns(front, "toy__give")
                joined = await sql(
                    front, handles[name], f'SELECT count(*) AS n FROM result JOIN "{handles[name]}.rows" USING ({one})'
                )
                assert joined.startswith("n\n80\n"), joined
                for stranger in [held_by for user, held_by in dict(handles).items() if user != name]:
                    for reply in (
                        await sql(front, stranger, "SELECT * FROM result"),
                        await sql(front, stranger, "schema"),
                        await sql(front, handles[name], f"SELECT * FROM {stranger}"),
                        await sql(front, handles[name], f'SELECT * FROM "{stranger}.rows"'),
                    ):
                        assert json.loads(reply)["error_code"] == "UNKNOWN_HANDLE", round_
            await shown(front, "toy__give", f"→ {{rows[{{{one}, {two}}}]}}")

    async with anyio.create_task_group() as tasks:
        for name in keys:
            tasks.start_soon(work, name)


@pytest.mark.requirement("U:join")
async def test_a_log_issues_and_two_databases_are_joined(served: Served):
    async with served.user("ada") as front:
        log = "\n".join(
            json.dumps({"product": row, "level": "error" if row % 4 == 0 else "info"}) for row in range(1, 101)
        )
        issues = {"data": {"Issues": [{"number": row, "product": row} for row in range(1, 101)]}}
        of_log = handle_of(await give(front, log, max_tokens=60))
        of_issues = handle_of(await give(front, issues, max_tokens=60))
        query = {"sql": "SELECT id, name, price FROM products", "max_tokens": 60}
        products = handle_of(await front.client.call_tool("query", query))
        series = {"sql": "SELECT g AS product, 'row ' || g AS note FROM generate_series(1, 500) g", "max_tokens": 60}
        far = handle_of(await front.read("far__query", **series))
        joined = await sql(
            front, products,
            f'SELECT count(*) AS n FROM result p JOIN {of_log} l ON l.product = p.id JOIN "{of_issues}.data.Issues" i '
            f"ON i.product = p.id JOIN {far} f ON f.product = p.id WHERE l.level = 'error'",
        )  # fmt: skip
        columns = await sql(front, far, "schema")
    assert joined == "n\n25\n[1 row]"
    assert columns.splitlines()[:3] == ["column,type,rows", "product,integer,500", "note,text,500"]


@pytest.mark.requirement("U:whole")
async def test_a_client_that_runs_programs_gets_real_results_whole(served: Served):
    rows = {"rows": [{"id": row, "note": f"number {row} of many, with some words"} for row in range(2_000)]}
    async with served.user("ada", "code") as code, served.user("ada") as plain:
        listed = {one.name: one.output_schema for one in (await code.client.list_tools()).tools}
        assert listed["find_tool"] is not None
        whole = await give(code, rows)
        assert whole.structured_content == rows
        assert json.loads(text_of(whole)) == rows
        assert whole.meta is not None
        assert whole.meta["dev.ullage/meta"]["tokens"]["estimated"] > 30_000
        cut = await give(plain, rows)
        assert cut.structured_content is None
        assert re.search(r"read_result\(handle=", text_of(cut))
        graph = await code.read("memory__read_graph")
        assert graph.structured_content is not None
        answer = await code.client.call_tool("query", {"sql": "SELECT id, name FROM products ORDER BY id LIMIT 1"})
        assert answer.structured_content is not None
        assert answer.structured_content["rowCount"] == 1


HOSTILE = {
    "many": {f"ключ鍵{number}": number for number in range(10_000)},
    "deep": json.loads('{"data":' * 200 + "1" + "}" * 200),
    "list": json.loads("[" * 200 + "]" * 200),
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_reply_teaches_nothing_and_keeps_its_budget(value: object, served: Served):
    async with served.user("ada") as front:
        result = await give(front, value)
        assert result.meta is not None
        assert result.meta["dev.ullage/meta"]["tokens"]["estimated"] <= 10_000
        await anyio.sleep(0.3)
        assert await returns(front, "toy__give") in ("", "→ {…}", "→ {data{data{data{data{data{…}}}}}}")
    assert len(json.dumps(served.shapes())) < 2_000


async def test_over_standard_input_and_output_shapes_outlive_the_process(world: World, tmp_path: Path):
    flags = ("--config", f"{world.folder}/user.toml", "--store", f"sqlite:///{tmp_path}/store.db")
    async with fronted(world, "auto", flags=flags) as front:
        await give(front, {"items": [{"sku": "a", "price": 1.5}] * 3})
        await shown(front, "toy__give", "→ {items[{sku, price}]}")
    async with fronted(world, "legacy", flags=flags) as front:
        assert await returns(front, "toy__give") == "→ {items[{sku, price}]}"
