"""The tools of the systems before this one, called as their own clients call them.

Each call goes through the whole gateway: what a client parses must parse at every size, be complete or say that it is
not, and have the documented names and types.
"""

import json
import os
import sqlite3
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from app.loopback import Loopback, loopback
from approving import load
from delegate.policies import MODELS, POLICIES
from ullage import FindToolResponse, TokenMetrics, count, count_request, get_context_usage
from ullage.app.build_gateway import Gateway, open_gateway
from ullage.config import Flags
from ullage.gateway import META
from ullage.tool import Call, Caller, Reply
from upstreams import scripted, tool, users_file, write_toml

pytestmark = pytest.mark.anyio

ROWS = 3_000
TABLES = 150


@pytest.fixture
async def gateway(work: Path) -> AsyncGenerator[Gateway]:
    """A server with one tool, and a database of many rows, many tables and two triggers."""
    with sqlite3.connect(work / "shop.db") as connection:
        connection.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price NUMERIC(10,2))")
        values = ((number, f'Item "{number}", {{x}}', number / 4) for number in range(ROWS))
        connection.executemany("INSERT INTO items VALUES (?, ?, ?)", values)
        columns = ", ".join(f"column_number_{number} TEXT DEFAULT 'a rather long default'" for number in range(400))
        connection.execute(f"CREATE TABLE wide ({columns})")
        for number in range(TABLES):
            connection.execute(f"CREATE TABLE part_{number} (id INTEGER PRIMARY KEY, item INTEGER REFERENCES items)")
        for name in ("items", "wide"):
            connection.execute(f"CREATE TRIGGER touch_{name} AFTER DELETE ON {name} BEGIN SELECT 1; END")
    connection.close()
    write_toml(users_file(work.parent), files=scripted(tool("echo", "Reads a file and echoes it.")))
    settings = '[gateway]\nmode = "search"\n[sources.shop]\ndatabase = "shop.db"\nmax_rows = 2500\n'
    write_toml(work / "ullage.toml", settings)
    async with open_gateway(load(Flags(), os.environ, work), environment=os.environ) as opened:
        await opened.view(30)
        yield opened


async def call(gateway: Gateway, name: str, /, **arguments: Any) -> Reply:  # noqa: ANN401
    caller = Caller(principal="me", session="s", model=gateway.flagged(None).model)
    return await gateway.flagged(None).source.call(Call(tool=name, arguments=arguments, caller=caller))


def parsed(reply: Reply) -> dict[str, Any]:
    assert len(reply.content) == 1
    return json.loads(str(reply.content[0]["text"]))


def meta(reply: Reply) -> dict[str, Any]:
    return cast("dict[str, Any]", reply.meta[META])


SIZES = (0, 1, 2, 10, 100, 399, 400, 401, 1000, 2000, 2499, 2500, 2600)


@pytest.mark.requirement("S0:sql:query", "S0:meta:data", "U:budget")
@pytest.mark.parametrize("name", ["secureDatabaseQuery", "query"])
async def test_rows_as_json_parse_at_every_size_and_say_when_some_are_missing(gateway: Gateway, name: str):
    for size in SIZES:
        sql = f"SELECT id, name, price FROM items WHERE id < {size} ORDER BY id"
        arguments = {"queryDescription": sql} if name != "query" else {"sql": sql, "format": "json"}
        reply = await call(gateway, name, **arguments)
        answer, data = parsed(reply), meta(reply)["data"]
        shown = len(answer["data"])
        assert (answer["rowCount"], data["rowCount"]) == (shown, shown)
        assert data["truncated"] is answer.get("truncated", False) is (shown < size)
        assert [row["id"] for row in answer["data"]] == list(range(shown))
        assert answer["columnNames"] == ["id", "name", "price"]
        assert meta(reply)["tokens"]["estimated"] <= 10_000
        assert shown == size or "handle" in meta(reply) or shown == data["maxRowsLimit"]
        assert shown >= min(size, 200)


@pytest.mark.requirement("S0:sql:query", "S0:sql:limit")
@pytest.mark.parametrize("budget", [50, 60, 100, 300, 2_000])
async def test_json_within_a_budget_of_its_own_parses(gateway: Gateway, budget: int):
    reply = await call(gateway, "query", sql="SELECT * FROM items", format="json", max_tokens=budget)
    answer = parsed(reply)
    assert len(answer.get("data", [])) == answer["rowCount"] == meta(reply)["data"]["rowCount"]
    assert meta(reply)["data"]["truncated"] is True
    assert meta(reply)["tokens"]["estimated"] <= budget


@pytest.mark.requirement("S0:sql:query")
async def test_a_long_statement_does_not_push_the_reply_out_of_json(gateway: Gateway):
    sql = f"SELECT id FROM items WHERE name <> '{'long words ' * 8_000}'"
    reply = await call(gateway, "secureDatabaseQuery", queryDescription=sql)
    assert parsed(reply)["truncated"] is meta(reply)["data"]["truncated"] is True
    assert meta(reply)["tokens"]["estimated"] <= 10_000


@pytest.mark.requirement("S0:meta", "S0:meta:performance", "S0:meta:tokens")
async def test_the_figures_on_a_reply_have_the_documented_types(gateway: Gateway):
    found = meta(await call(gateway, "secureDatabaseQuery", queryDescription="SELECT 1 AS one", maxRows=5))
    assert type(found["tokens"]["estimated"]) is int
    assert type(found["tokens"]["approximationMethod"]) is str
    assert type(found["performance"]["executionTimeMs"]) is int
    assert type(found["performance"]["cachedResult"]) is bool
    assert found["data"] == {"rowCount": 1, "columnCount": 1, "truncated": False, "maxRowsLimit": 2500}


CALLS: list[tuple[str, dict[str, Any], bool]] = [
    ("count-tokens", {"text": "Hello, world!"}, False),
    ("count_tokens", {"text": "Hello, world!", "model": "no-such-model"}, True),
    ("find_tool", {"tool_description": "read a file"}, False),
    ("find_tool", {}, True),
    ("call_tool_write", {"server_name": "files", "tool_name": "echo", "parameters": {"text": "hello"}}, False),
    ("call_tool", {"server_name": "files", "tool_name": "no_such_tool", "parameters": {}}, True),
    ("files__echo", {"text": "hello " * 30_000}, False),
    ("query", {"sql": "SELECT 1 AS one"}, False),
    ("query", {"sql": "DELETE FROM items"}, True),
    ("schema", {"pattern": "items"}, False),
    ("secureDatabaseQuery", {"queryDescription": "SELECT nothing FROM nowhere"}, True),
    ("read_result", {"handle": "no-such-handle"}, True),
]


@pytest.mark.requirement("S0:meta", "S0:meta:tokens", "S0:meta:performance", "S0:meta:error", "U:one-meter")
async def test_every_result_carries_what_the_one_meter_counts_and_how_long_it_took(gateway: Gateway):
    for name, arguments, fails in CALLS:
        reply = await call(gateway, name, **arguments)
        found = meta(reply)
        assert reply.is_error is fails, (name, reply.content)
        assert found["tokens"]["estimated"] == count(str(reply.content[0]["text"]), "gpt-4o").tokens, name
        assert found["tokens"]["approximationMethod"] == "o200k_base"
        assert set(found["performance"]) == {"executionTimeMs", "cachedResult"}


@pytest.mark.requirement("U:one-meter")
async def test_every_token_number_is_the_one_meters(gateway: Gateway):
    said = "Prices went up, and nobody knew why. " * 9
    tokens = count(said, "gpt-4o").tokens
    assert parsed(await call(gateway, "count-tokens", text=said, model="gpt-4o"))["token_count"] == tokens
    reply = await call(gateway, "find_tool", tool_description="read a file")
    shown = [json.dumps(one, separators=(",", ":"), ensure_ascii=False) for one in parsed(reply)["tools"]]
    shown += [json.dumps(line, ensure_ascii=False) for line in parsed(reply)["more"]]
    returned = sum(count(one, "gpt-4o").tokens for one in shown)
    assert parsed(reply)["token_metrics"]["returned_tokens"] == returned
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": said}]}
    assert get_context_usage(body["messages"], model="gpt-4o").used == count_request(body).total.tokens
    assert count_request(body).total.tokens == tokens + 7


@pytest.mark.requirement("S0:sql:schema")
async def test_the_schema_of_many_tables_stays_json(gateway: Gateway):
    reply = await call(gateway, "getSchemaStructure", databaseName="shop")
    answer = parsed(reply)
    assert set(answer) - {"truncated"} == {"databaseName", "databaseType", "tables"}
    assert answer.get("truncated", False) is (len(answer["tables"]) < TABLES + 2)
    assert {type(column["nullable"]) for table in answer["tables"] for column in table["columns"]} == {bool}
    assert set(answer["tables"][0]) == {"tableName", "tableType", "columns"}
    names = {"columnName", "dataType", "columnSize", "nullable", "isPrimaryKey"}
    assert set(answer["tables"][0]["columns"][0]) == names


@pytest.mark.requirement("S0:sql:schema")
async def test_the_details_of_a_wide_table_stay_json(gateway: Gateway):
    reply = await call(gateway, "getTableDetails", tableName="wide")
    answer = parsed(reply)
    assert set(answer) - {"truncated"} == {
        *("tableName", "tableType", "columns", "indexes", "foreignKeys", "constraints"),
    }
    assert answer.get("truncated", False) is (len(answer["columns"]) < 400)
    assert len(answer["columns"]) > 50
    assert set(answer["columns"][0]) == {
        *("columnName", "dataType", "columnSize", "decimalDigits", "nullable", "defaultValue", "isPrimaryKey"),
        "isAutoIncrement",
    }


@pytest.mark.requirement("S0:sql:schema")
async def test_triggers_are_listed_with_and_without_a_table(gateway: Gateway):
    one = parsed(await call(gateway, "listTriggers", tableName="items"))
    assert one["tableName"] == "items"
    assert [set(found) for found in one["triggers"]] == [{"triggerName", "event", "timing", "statement"}]
    for arguments in ({}, {"tableName": None}, {"tableName": ""}):
        every = parsed(await call(gateway, "listTriggers", **arguments))
        assert [(found["tableName"], found["triggerName"]) for found in every["triggers"]] == [
            ("items", "touch_items"),
            ("wide", "touch_wide"),
        ]


@pytest.mark.requirement("S1:find", "S1:metrics")
async def test_a_search_reads_as_the_originals_types(gateway: Gateway):
    reply = await call(gateway, "find_tool", tool_description="read a file", tool_keywords="file read")
    found = FindToolResponse.read(str(reply.content[0]["text"]))
    assert isinstance(found.token_metrics, TokenMetrics)
    assert found.to_json() == parsed(reply)
    assert found.tools[0]["name"] == "files__echo"
    with pytest.raises(ValueError, match="find_tool"):
        FindToolResponse.read('{"tools": []}')


@pytest.mark.requirement("S1:find", "S1:metrics")
async def test_a_reply_of_a_search_is_written_as_it_was_read(gateway: Gateway):
    reply = await call(gateway, "find_tool", tool_description="read a file", tool_keywords="file read")
    found = FindToolResponse.read(str(reply.content[0]["text"]))
    for change in ({"hint": "ask again"}, {"missing": ("mail",)}, {"more": ("files__other",), "hint": "two more"}):
        changed = replace(found, **change)
        written = changed.to_json()
        assert FindToolResponse.read(json.dumps(written)) == changed
        for key, value in change.items():
            assert written[key] == (list(value) if isinstance(value, tuple) else value)
    bare = replace(found, hint=None, missing=(), more=()).to_json()
    assert set(bare) == {"tools", "more", "token_metrics"}


@pytest.mark.requirement("S1:call")
async def test_a_found_tool_is_called_by_server_name_and_parameters(gateway: Gateway):
    arguments = {"server_name": "files", "tool_name": "echo", "parameters": {"text": "hello"}}
    for door in ("call_tool_write", "call_tool"):
        reply = await call(gateway, door, **arguments)
        if not reply.is_error:
            break
    assert str(reply.content[0]["text"]) == "hello"


@pytest.mark.requirement("S3:count", "S3:unsupported")
@pytest.mark.parametrize("name", ["count-tokens", "count_tokens"])
async def test_tokens_are_counted_by_either_name(gateway: Gateway, name: str):
    counted = parsed(await call(gateway, name, text="Hello, world!", model="gpt-4"))
    assert (counted["token_count"], counted["model"]) == (4, "gpt-4")
    refused = parsed(await call(gateway, name, text="x", model="no-such-model"))
    assert set(refused) == {"error_code", "message", "suggestion", "available_options"}
    assert refused["available_options"][:4] == ["gpt-4", "gpt-3.5-turbo", "gpt-4o", "claude"]


@pytest.mark.requirement("S3:count")
@pytest.mark.parametrize(
    ("arguments", "message", "suggestion"),
    [
        ({}, "there is no `text` to count", '"text"'),
        ({"model": "gpt-4"}, "there is no `text` to count", '"text"'),
        ({"txt": "x"}, "no argument `txt`", "did you mean `text`?"),
        ({"text": "x", "zzzzzz": 1}, "no argument `zzzzzz`", "it takes `text`"),
        ({"text": 5}, "`text` must be a string", '"text"'),
        ({"text": None}, "`text` must be a string", '"text"'),
        ({"text": "x", "model": 5}, "`model` must be a string", "name a model"),
    ],
)
async def test_a_count_of_anything_but_a_text_is_refused_with_what_it_takes(
    gateway: Gateway, arguments: dict[str, Any], message: str, suggestion: str
):
    refused = parsed(await call(gateway, "count-tokens", **arguments))
    assert message in refused["message"]
    assert suggestion in refused["suggestion"]
    assert refused["available_options"] == ["text", "model"]


@pytest.mark.requirement("S2:usage", "S2:options")
def test_context_usage_has_the_originals_keys_and_types():
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    usage = get_context_usage(messages, model="openai/gpt-4o", system="Be brief.", compactThreshold=0.65)
    found = cast("dict[str, Any]", json.loads(json.dumps(usage.to_json())))
    types = {
        **dict.fromkeys(("contextWindow", "systemPrompt", "toolDefinitions", "messages", "used", "free"), int),
        "model": str,
        "willCompact": bool,
    }
    assert {key: type(found[key]) for key in types} == types
    assert found["used"] == found["systemPrompt"] + found["toolDefinitions"] + found["messages"]
    assert found["free"] == found["contextWindow"] - found["used"]
    assert found["contextWindow"] == 128_000
    assert 0 <= found["usagePercent"] <= 100
    assert found["compactThreshold"] == 65
    assert found["willCompact"] is False


@pytest.fixture
def provider(work: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """A provider on loopback, with the original's two files."""
    (work / "conf").mkdir(exist_ok=True)
    (work / "conf" / "models.json").write_text(json.dumps(MODELS), encoding="utf-8")
    (work / "conf" / "policies.json").write_text(json.dumps(POLICIES), encoding="utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("GOOGLE_API_KEY", "g-test")
    with loopback() as served:
        file = users_file(work.parent)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(served.providers(), encoding="utf-8")
        yield served


@pytest.mark.requirement("S4:schema", "S4:reply", "S4:usage", "S4:cost")
@pytest.mark.usefixtures("provider")
@pytest.mark.parametrize("name", ["delegate.run", "delegate_run"])
async def test_a_delegated_call_has_the_originals_reply(work: Path, name: str):
    async with open_gateway(load(Flags(), os.environ, work), environment=os.environ) as opened:
        await opened.view(30)
        arguments = {"prompt": "Say hello.", "metadata": {"language": "en", "domain": "default"}}
        reply = await call(opened, name, **arguments, caps={"maxOutputTokens": 64})
        odd = parsed(await call(opened, name, prompt="x", unknown=1))
    said = cast("dict[str, Any]", reply.meta["dev.ullage/delegate"])
    assert set(said["decision"]) >= {"provider", "model", "alias"}
    assert set(said["parameters"]) >= {"max_output_tokens", "temperature"}
    assert {type(said["usage"][key]) for key in ("input_tokens", "output_tokens", "total_tokens")} == {int}
    assert set(said["cost"]) >= {"currency", "input", "output", "total"}
    assert type(said["meta"]["fallback_used"]) is bool
    assert {*said["meta"]["attempts"][0]} >= {"alias", "provider", "model", "success"}
    assert all(type(line) is str for line in said["rationale"])
    assert set(odd) == {"error_code", "message", "suggestion", "available_options"}


PATCH = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
TESTS = "## Commands\n```\npytest -q\n```\n## Files\n### test_a.py\n```python\ndef test_a():\n    assert 1 == 1\n```\n"


@pytest.mark.requirement("S4:more")
async def test_the_other_tools_that_delegate_reply_as_the_originals_do(work: Path, provider: Loopback):
    async with open_gateway(load(Flags(), os.environ, work), environment=os.environ) as opened:
        await opened.view(30)
        for name in ("delegate.diff", "delegate_diff"):
            provider.text = f"Here it is:\n```diff\n{PATCH}```"
            answer = str(
                (await call(opened, name, prompt="Write 2.", files={"a.txt": "one\ntwo\n"})).content[0]["text"]
            )
            assert answer.startswith("diff --git ")
            assert "@@ -1,2 +1,2 @@" in answer
        for name in ("delegate.tests", "delegate_tests"):
            provider.text = TESTS
            reply = await call(opened, name, files={"a.py": "one = 1\n"}, framework="pytest")
            assert str(reply.content[0]["text"]).startswith("## Commands\n```\npytest -q\n```\n## Files\n")
        for name in ("delegate.consensus", "delegate_consensus"):
            provider.text = "Hello there"
            models = ["chat-default", "chat-premium"]
            reply = await call(opened, name, prompt="Say hello.", models=models)
            assert reply.is_error is False
            assert str(reply.content[0]["text"]).count("Hello there") >= 1
            assert type(cast("dict[str, Any]", reply.meta["dev.ullage/delegate"])["agreement"]) in (int, float)
        refused = parsed(await call(opened, "delegate.diff", prompt="x"))
        assert set(refused) == {"error_code", "message", "suggestion", "available_options"}
