import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gateway.results.bench_of_results import (
    ADA,
    BOB,
    METER,
    REFERENCES,
    Bench,
    as_json,
    handle,
    meta,
    records,
    said,
    text,
)
from ullage.errors import InvalidArguments, UnknownHandle, UnknownTool
from ullage.gateway.find.tool_forms import find_tools
from ullage.gateway.results import BUDGET, READ, ResultReader, ResultRules, Vault
from ullage.gateway.results.result_query import Table
from ullage.gateway.tool_source import definition_text
from ullage.table import Row, decode
from ullage.testing import check_source
from ullage.tool import Call, Caller, Json, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U:budget")]

TIGHT = ResultRules(budget=300)
CLAUDE = Caller(principal="ada", session="s", model="claude-opus-4-7")
SHOP = {"total": 400, "data": {"items": records(400)}, "next": None}


async def held(value: object = SHOP, rules: ResultRules = TIGHT, **more: Any) -> tuple[Bench, str]:  # noqa: ANN401
    bench = Bench(said(value) if isinstance(value, str) else as_json(value), rules, **more)
    return bench, handle(await bench.call())


@pytest.mark.requirement("U:budget")
@pytest.mark.parametrize("caller", [ADA, CLAUDE])
@pytest.mark.parametrize("encode", [True, False])
async def test_every_record_is_reached_by_doing_what_the_last_lines_say(caller: Caller, encode: bool):  # noqa: FBT001
    bench, name = await held(rules=ResultRules(budget=300, encode=encode), caller=caller)
    seen = list[Json]()
    async for page in bench.pages(name):
        assert bench.weight(Reply.text(page)) <= 300
        lines = [line for line in page.splitlines()[:-1] if not line.startswith(('{"total"', "data.items["))]
        found: Any = decode("\n".join(lines)) if encode else [json.loads(line) for line in lines]
        seen += found
    assert json.loads(json.dumps(seen, default=float)) == records(400)
    assert bench.ran == 1


@pytest.mark.requirement("U:budget")
@pytest.mark.parametrize("value", [{f"k{one}": ["text", one] for one in range(500)}, "word " * 3_000 + "\nend\n\nlast"])
async def test_every_line_is_reached_by_doing_what_the_last_lines_say(value: object):
    bench, name = await held(value)
    whole = "".join([line for page in [page async for page in bench.pages(name)] for line in page.splitlines()[:-1]])
    assert whole == (value if isinstance(value, str) else json.dumps(value)).replace("\n", "")


@pytest.mark.requirement("U:budget")
async def test_a_result_is_there_for_nobody_else():
    bench, name = await held()
    for stranger in (name, "r0", f'"{name}x"'):
        with pytest.raises(UnknownHandle):
            await bench.read(stranger, BOB)
    assert text(await bench.read(f" `{name}`")).startswith('{"total":400')


async def test_a_page_has_its_own_budget_where_one_is_given():
    bench, name = await held()
    assert 250 < bench.weight(await bench.read(name)) <= 300
    assert 500 < bench.weight(await bench.read(name, max_tokens=600)) <= 600
    reader = ResultReader(vault=bench.vault, rules=lambda: TIGHT, meter=METER, reference=REFERENCES)
    call = Call(tool="read_result", arguments={"handle": name}, caller=ADA, meta={BUDGET: 100})
    assert bench.weight(await reader.call(call)) <= 100
    bench.rules = ResultRules(budget=0)
    assert text(await bench.read(name)).endswith("[all 400 records]")


async def test_a_page_may_begin_anywhere_and_be_short():
    bench, name = await held()
    reply = await bench.read(name, offset=17, limit=2)
    assert text(reply).splitlines() == [
        "id,name,share,note",
        '17,name 17,2.125,"some words some words "',
        '18,name 18,2.25,""',
        "[records 17–18 of 400; offset=19 for more]",
    ]
    assert meta(reply) == {"handle": name, "data": {"rowCount": 2, "columnCount": 4, "truncated": True}}
    assert text(await bench.read(name, offset="398")).endswith("[records 398–399 of 400; no more]")
    assert text(await bench.read(name, offset=400.0)) == "[no lines from 400 on of 400; no more]"


@pytest.mark.requirement("U:budget")
@pytest.mark.parametrize("caller", [ADA, CLAUDE])
async def test_what_matches_is_shown_with_its_number(caller: Caller):
    bench, name = await held(caller=caller)
    found = [page async for page in bench.pages(name, grep=r'"name \d*7"')]
    numbers = [line.split(",")[0] for page in found for line in page.splitlines()[1:-1]]
    assert numbers == [str(one) for one in range(400) if one % 10 == 7]
    assert found[-1].endswith("found; no more]")
    lines, held_lines = await held("\n".join(f"line {one} says little" for one in range(900)))
    assert text(await lines.read(held_lines, grep="(?i)LINE 87[34] ")).splitlines() == [
        "873: line 873 says little",
        "874: line 874 says little",
        "[2 lines found; no more]",
    ]


async def test_a_pattern_that_would_never_end_does_and_what_is_none_is_plain_text():
    bench, name = await held("a" * 200 + "!\n" + "f(x) = (y\n" * 900)
    assert text(await bench.read(name, grep="(a+)+$")) == "[0 lines found; no more]"
    plain = text(await bench.read(name, grep="= (y", limit=1))
    assert plain == "1: f(x) = (y\n[1 line found (grep taken as plain text); offset=2 for more]"
    odd, name = await held("caf\u00e9 \ud800x\n" * 900)
    assert text(await odd.read(name, grep="caf. .x", limit=1)).startswith("0: caf\u00e9")
    with pytest.raises(InvalidArguments):
        await odd.read(name, grep="x" * 1_001)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("data.items[3].name", "name 3"),
        ("$.data.items[-1].id", "399"),
        ("next", "null"),
        ("data.items[0]", '{"id":0,"name":"name 0","share":0.0,"note":""}'),
        ("data.items[1:3].id", "1\n2\n[all 2 records]"),
        ("data.items[900:].id", "[]"),
        ("$..items[399].id", "[399]"),
    ],
)
async def test_a_path_picks(path: str, answer: str):
    bench, name = await held()
    assert text(await bench.read(name, path=path)) == answer


async def test_empty_brackets_mean_every_element_as_in_jq():
    bench, name = await held()
    assert text(await bench.read(name, path="data.items[].id")) == text(await bench.read(name, path="data.items[*].id"))


@pytest.mark.requirement("U:budget")
async def test_what_a_path_picks_is_paged_and_searched_as_any_result():
    bench, name = await held()
    assert text(await bench.read(name, path="data.items", offset=398)).startswith("id,name,share,note\n398,")
    seen = [line for page in [page async for page in bench.pages(name, path="..name")] for line in page.splitlines()]
    assert [line for line in seen if line[0] == '"'] == [f'"name {one}"' for one in range(400)]
    assert text(await bench.read(name, path="data", offset=0)).startswith('{"items":[]}\nitems[400]:\nid,')
    assert text(await bench.read(name, path="data.items[*].name", grep="name 39")).splitlines()[0] == '39: "name 39"'


async def test_a_giant_value_is_read_by_its_path_to_the_end():
    bench, name = await held([{"id": 0, "body": "word " * 900, "exact": 1.10}, *records(9)])
    first = text(await bench.read(name))
    assert 'path="[0]" for all of it' in first
    body = "".join(
        line for page in [page async for page in bench.pages(name, path="[0].body")] for line in page.splitlines()[:-1]
    )
    assert body == "word " * 900
    whole = "".join(
        line for page in [page async for page in bench.pages(name, path="[0]")] for line in page.splitlines()[:-1]
    )
    assert json.loads(whole)["body"] == body
    deep, name = await held({"a": {"list": [{"id": 1, "text": "word " * 900}, {"id": 2}]}})
    assert 'path="a.list[0]"' in text(await deep.read(name))
    assert 'path="a.list[0]"' in text(await deep.read(name, path="a"))


@pytest.mark.parametrize("path", ["data.none", "data.items[900]", "data.items[-900]", "data.items[0].none"])
async def test_what_is_not_there_is_said_with_what_is(path: str):
    bench, name = await held()
    with pytest.raises(InvalidArguments) as caught:
        await bench.read(name, path=path)
    assert caught.value.options == ("id", "name", "share", "note")
    other, name = await held({f"k{one}": one for one in range(900)})
    with pytest.raises(InvalidArguments):
        await other.read(name, path=path)
    lists, name = await held([[one, one] for one in range(900)])
    with pytest.raises(InvalidArguments):
        await lists.read(name, path=path)


@pytest.mark.parametrize("value", ["word " * 900, "{" + "no json, " * 400 + "}"])
async def test_a_path_through_what_is_no_json_is_refused(value: str):
    bench, name = await held(value)
    with pytest.raises(InvalidArguments, match="not JSON"):
        await bench.read(name, path="a")


class Sqlite:
    """Asks SQL of a table in memory."""

    most = 1_000

    async def tables(self, sql: str) -> frozenset[str]:
        return frozenset()

    async def ask(
        self,
        columns: Sequence[str],
        rows: Iterable[Row],
        sql: str,
        seconds: float,
        *,
        beside: Mapping[str, Table] | None = None,
    ) -> tuple[Sequence[str], Sequence[Row], bool]:
        assert seconds > 0
        connection = sqlite3.connect(":memory:")
        connection.execute(f"CREATE TABLE result ({', '.join(json.dumps(column) for column in columns)})")
        marks = ", ".join("?" for _ in columns)
        plain = (
            tuple(cell if isinstance(cell, str | int | None) else float(str(cell)) for cell in row) for row in rows
        )
        connection.executemany(f"INSERT INTO result VALUES ({marks})", plain)
        cursor = connection.execute(sql)
        found = cursor.fetchmany(self.most + 1)
        names = [column[0] for column in cursor.description]
        connection.close()
        return names, found[: self.most], len(found) > self.most


@pytest.mark.requirement("U:budget")
async def test_sql_is_asked_of_a_table():
    bench, name = await held(query=Sqlite())
    reply = await bench.read(name, sql="SELECT count(*) AS n, sum(share) AS s FROM result WHERE id % 2 = 0")
    assert text(reply) == "n,s\n200,4975.0\n[1 row]"
    assert meta(reply)["data"] == {"rowCount": 1, "columnCount": 2, "truncated": False}
    everything = "SELECT id, note FROM result"
    first = await bench.read(name, sql=everything)
    assert bench.weight(first) <= 300
    assert "same sql with offset=" in text(first)
    assert meta(first)["data"]["truncated"]
    last = text(await bench.read(name, sql=everything, offset=398)).splitlines()
    assert last == ["id,note", '398,"some words some words "', '399,""', "[2 rows]"]
    assert "[rows 5–6 of 400; same sql with offset=7" in text(await bench.read(name, sql=everything, offset=5, limit=2))
    bench.query.most = 10  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
    assert "there are more: use LIMIT" in text(await bench.read(name, sql="SELECT id FROM result"))


async def test_sql_sees_nested_values_as_json_and_names_apart():
    rows = [{"ID": one, "id": str(one), "in": {"a": one}} for one in range(200)]
    bench, name = await held({"x": {"rows": rows}, "y": [[1, 2], [3, 4]]}, query=Sqlite())
    assert text(await bench.read(name, sql='SELECT ID, id_2, "in" FROM result WHERE ID = 7')).startswith(
        'ID,id_2,in\n7,7,{"a":7}'
    )
    assert text(await bench.read(name, path="y", sql="SELECT * FROM result")).startswith("value\n[1,2]\n[3,4]\n")
    lines, name = await held("\n".join(json.dumps(row) for row in rows), query=Sqlite())
    assert text(await lines.read(name, sql="SELECT max(ID) AS m FROM result")).startswith("m\n199\n")


async def test_sql_is_asked_of_a_table_as_we_write_it():
    lines = [f'{one},"name, {one}",,{one}.50' for one in range(400)]
    answer = "\n".join(["id,name,gone,price", *lines, "-- 400 rows; complete"])
    bench, name = await held(answer, query=Sqlite())
    reply = await bench.read(name, sql="SELECT name, price FROM result WHERE gone IS NULL AND id = 7")
    assert text(reply).startswith('name,price\n"name, 7",7.5')
    for odd in (answer.replace("\n7,", "\n7,8,9,"), answer.replace("\n7,", '\n"7,'), "word\n" * 900):
        bench, name = await held(odd, query=Sqlite())
        with pytest.raises(InvalidArguments, match="no table"):
            await bench.read(name, sql="SELECT 1")


async def test_sql_is_refused_where_there_is_no_table_or_nobody_to_run_it():
    bench, name = await held("word " * 900, query=Sqlite())
    with pytest.raises(InvalidArguments, match="no table"):
        await bench.read(name, sql="SELECT 1")
    wide, name = await held([{f"k{one}": one, f"j{one}": 1} for one in range(600)], query=Sqlite())
    with pytest.raises(InvalidArguments, match="no table"):
        await wide.read(name, sql="SELECT 1")
    bare, name = await held()
    with pytest.raises(InvalidArguments, match="SQL cannot be asked"):
        await bare.read(name, sql="SELECT 1")


@pytest.mark.requirement("U:errors")
@pytest.mark.parametrize(
    "arguments",
    [
        {"handle": 7},
        {"handle": " "},
        {"offset": -1},
        {"offset": "x"},
        {"limit": True},
        {"limit": 1.5},
        {"grep": 5},
        {"max_tokens": 5},
        {"sql": "SELECT 1", "grep": "x"},
        {"colour": "red"},
        {"path": "a["},
    ],
)
async def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, Json]):
    bench, name = await held()
    with pytest.raises(InvalidArguments) as caught:
        await bench.read(**{"handle": name, **arguments})  # pyright: ignore[reportArgumentType]
    assert caught.value.suggestion
    assert caught.value.options


async def test_what_is_empty_is_not_asked_for():
    bench, name = await held()
    assert text(await bench.read(name, grep="", path=None, sql="", limit=0)) == text(await bench.read(name))


async def test_a_budget_too_small_for_a_line_says_so():
    bench, name = await held(rules=ResultRules(budget=25))
    assert "does not fit" in text(await bench.read(name, offset=5)) or "is cut" in text(
        await bench.read(name, offset=5)
    )
    assert bench.weight(await bench.read(name, offset=5)) <= 25


@pytest.mark.requirement("S1:surface")
async def test_it_is_a_source_of_one_short_tool():
    reader = ResultReader(vault=Vault(), rules=ResultRules, meter=METER, reference=REFERENCES)
    assert (await reader.tools()).tools == (READ,)
    with pytest.raises(UnknownTool):
        await reader.call(Call(tool="other"))
    bench, name = await held()
    reader = replace(reader, vault=bench.vault)
    await check_source(reader, Call(tool="read_result", arguments={"handle": name}, caller=ADA))
    shown = [definition_text(tool) for tool in (*find_tools(join_calls=False), READ)]
    assert sum(METER.count(one, "gpt-4o").tokens for one in shown) <= 400
