"""What real servers answer with, and what must not happen to it."""

import json
import re
from typing import Any

import pytest

from gateway.results.bench_of_results import Bench, as_json, handle, meta, records, said, text
from gateway.results.test_reader import Sqlite
from ullage.errors import InvalidArguments
from ullage.gateway.results import BUDGET, ResultRules, ServerResults
from ullage.gateway.results.paging import LineTooLong, lines_of_parts, rejoined
from ullage.table import Continued
from ullage.tool import Reply, Structured, text_block

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U:budget")]

TIGHT = ResultRules(budget=300)
IMAGE = {"type": "image", "mimeType": "image/png", "data": "AAAA" * 100}


async def held(reply: Reply, rules: ResultRules = TIGHT) -> tuple[Bench, str]:
    bench = Bench(reply, rules, query=Sqlite())
    return bench, handle(await bench.call())


@pytest.mark.requirement("U:budget")
async def test_structured_content_beside_a_short_text_is_held_to_the_budget_too():
    rows: Any = [{"id": one, "v": "abc"} for one in range(300)]
    cut = await Bench(Reply(content=(text_block("ok"),), structured=Structured({"rows": rows})), TIGHT).call()
    assert cut.structured is None
    assert text(cut).startswith("ok\n")
    few = Reply(content=(text_block("ok"),), structured=Structured({"rows": rows[:2]}))
    assert (await Bench(few, TIGHT).call()).structured == few.structured


@pytest.mark.requirement("U:budget")
async def test_a_long_line_is_shown_without_breaks_of_ours_in_it():
    lines = [f"{one} " + f"word{one} " * 60 + "end" for one in range(80)]
    bench, name = await held(said("\n".join(lines)))
    first = text(await bench.call()).splitlines()
    assert first[0] == lines[0]
    pages = [page.rsplit("\n", 1)[0] async for page in bench.pages(name, max_tokens=2_000)]
    assert "".join(pages).replace("\n", "") == "".join(lines)
    assert sum(page.count("\n") for page in pages) <= len(lines)


@pytest.mark.requirement("U:budget")
async def test_what_lies_across_the_parts_of_a_long_line_is_found():
    lines = [f"ERROR request=r{one} " + "at module.function " * 40 + f"cause=c{one}" for one in range(300)]
    bench, name = await held(said("\n".join(lines)))
    found = text(await bench.read(name, grep=r"ERROR request=r77 .*cause=c77$", max_tokens=2_000))
    assert "ERROR request=r77 " in found
    assert "cause=c77" in found
    assert "ERROR request=r78" not in found
    assert text(await bench.read(name, grep=r"cause=c77$")).startswith(f"{77 * 4 + 3}: ")
    whole = "".join(f"{one:05}" for one in range(80_000))
    giant, name = await held(said(whole))
    for needle in ("0004700048", "0009500096", "4770047701", "6000060001", "7999879999"):
        assert re.search(r"\[[12] lines? found; no more\]", text(await giant.read(name, grep=needle)))


@pytest.mark.requirement("U:budget")
@pytest.mark.parametrize("pattern", ["café 77", "Zürich.*/77", '"name":"caf. 77"', r"caf.u00e9 77\b"])
async def test_json_is_found_as_it_is_shown_and_as_it_was_written(pattern: str):
    rows = [{"name": f"café {one}", "city": "Zürich", "link": f"a/{one}"} for one in range(500)]
    written = json.dumps(rows, indent=1).replace("/", "\\/")
    bench, name = await held(said(written))
    found = await bench.read(name, grep=pattern)
    assert text(found).splitlines()[1].startswith("77,café 77,")
    assert meta(found)["data"]["rowCount"] == 1


@pytest.mark.requirement("U:bounded")
def test_a_line_of_many_parts_that_is_too_long_for_a_row_is_not_joined():
    parts = [(number, Continued("x" * 1_000) if number else "x") for number in range(5_000)]
    with pytest.raises(LineTooLong):
        list(rejoined(parts))
    assert len(next(rejoined(parts[:3_000]))[1]) == 2_999_001


def test_where_there_are_no_parts_there_are_no_lines():
    assert [*rejoined(()), *lines_of_parts(())] == []


async def test_lines_that_are_no_json_keep_their_spaces_when_they_are_searched():
    bench, name = await held(said("Error: disk full\n" * 900))
    assert text(await bench.read(name, grep="diskfull")) == "[0 lines found; no more]"


@pytest.mark.requirement("U:budget")
async def test_rows_of_long_lines_can_be_asked_in_sql():
    rows = "\n".join(f"{one},{'word ' * 80}end" for one in range(200))
    bench, name = await held(said(f"id,body\n{rows}"))
    assert text(await bench.read(name, sql="SELECT count(*) AS n FROM result")) == "n\n200\n[1 row]"
    objects = "\n".join(json.dumps({"id": one, "body": "word " * 80}) for one in range(200))
    bench, name = await held(said(objects))
    assert text(await bench.read(name, sql="SELECT max(id) AS m FROM result")) == "m\n199\n[1 row]"


async def test_a_row_of_sql_that_does_not_fit_is_said_to_be_so():
    bench, name = await held(as_json(records(400)))
    answer = text(await bench.read(name, sql="SELECT group_concat(note) AS notes FROM result"))
    assert answer.splitlines()[-1].startswith("[row 0 of 1 does not fit: use substr()")


@pytest.mark.requirement("S0:meta:data")
@pytest.mark.parametrize(
    ("heading", "row"),
    [
        ("id,name,mail", "{0},n{0},m{0}"),
        ("id,name", "{0},n{0}"),
        ("id,body,mail", "{0}," + "word " * 80 + ",m{0}"),
        ("| id | name |\n|---|---|", "| {0} | n{0} |"),
    ],
)
async def test_a_cut_table_of_lines_says_how_many_rows_are_shown(heading: str, row: str):
    cut = await Bench(said("\n".join([heading, *(row.format(one) for one in range(20_000))])), TIGHT).call()
    whole = [line for line in text(cut).splitlines() if re.match(r"(\| )?\d+.*(\d|\|)$", line)]
    assert len(whole) > 1
    columns = heading.splitlines()[0].strip("| ").replace("|", ",").count(",") + 1
    assert meta(cut)["data"] == {"rowCount": len(whole), "columnCount": columns, "truncated": True}


@pytest.mark.requirement("S0:meta:data")
async def test_rows_that_are_written_as_json_are_counted_too():
    cut = await Bench(as_json(records(400)), ResultRules(budget=300, encode=False)).call()
    assert meta(cut)["data"] == {"rowCount": len(text(cut).splitlines()) - 1, "columnCount": 4, "truncated": True}


@pytest.mark.requirement("U:budget")
async def test_a_key_that_comes_twice_is_shown_twice():
    twice = "[" + ",".join(f'{{"id":{one},"v":"a{one}","v":"b{one}"}}' for one in range(400)) + "]"
    bench, name = await held(said(twice))
    assert text(await bench.call()).startswith('{"id":0,"v":"a0","v":"b0"}\n')
    assert '"v":"a200","v":"b200"' in text(await bench.read(name, offset=200))


@pytest.mark.requirement("U:budget")
async def test_what_stands_beside_the_records_is_named_and_can_be_read():
    whole = {"items": records(300), "log": "NEEDLE " + "long text. " * 900, "odd key": [1, 2], "none": []}
    bench, name = await held(as_json(whole))
    heading = text(await bench.call()).splitlines()[0]
    assert heading == '[more beside these, by path: log, "odd key"]'
    assert "NEEDLE" in text(await bench.read(name, path="log", grep="NEEDLE"))
    with pytest.raises(InvalidArguments) as caught:
        await bench.read(name, path="lag")
    assert caught.value.options == ("items", "log", "odd key", "none")
    vast = text(await Bench(as_json({"items": records(9_000), "log": "word " * 50_000}), TIGHT).call())
    assert vast.startswith("[more beside these, by path]\nitems[9000]:\n")
    many: Any = {**{f"key number {one}": "word " * 9 for one in range(90)}, "items": records(400)}
    tight = await Bench(as_json(many), ResultRules(budget=120)).call()
    assert text(tight).startswith('[more beside these, by path: "key number 0"')


@pytest.mark.requirement("U:budget")
async def test_the_tokens_that_a_block_is_said_to_need_are_enough():
    bench, name = await held(Reply(content=(IMAGE, text_block("hello world\n" * 900))))
    needed = re.search(r"max_tokens=(\d+)", text(await bench.call()))
    assert needed is not None
    assert (await bench.read(name, offset=0, max_tokens=int(needed[1]))).content[0] == IMAGE
    short = await bench.read(name, offset=0, max_tokens=int(needed[1]) - 1)
    assert f"max_tokens={needed[1]}" in text(short)


@pytest.mark.requirement("U:budget")
async def test_a_record_of_megabytes_is_begun_and_those_behind_it_are_reached():
    vast = {"id": 1, "text": "two words, " * 3_000, "more": "x y " * 200_000}
    cut = text(await Bench(as_json([vast, {"id": 2}], indent=1), TIGHT).call())
    assert cut.startswith('{"id":1,…')
    assert 'path="[0]" for all of it]' in cut
    bench, name = await held(as_json([{"id": 0}, vast, {"id": 2}]))
    pages = [page async for page in bench.pages(name)]
    assert [page.splitlines()[0][:8] for page in pages] == ["id", '{"id":1,', "id"]
    behind = Reply(content=(text_block("a few words"), text_block(json.dumps([vast, {"id": 2}]))))
    last = text(await Bench(behind, TIGHT).call()).splitlines()
    assert last[0] == "a few words"
    assert last[1].startswith("[1 of 3 records shown: ")
    assert len(last) == 2


async def test_only_json_is_said_to_have_paths():
    lines = text(await Bench(said("one line\n" * 900), TIGHT).call())
    assert lines.endswith(" for more; grep to search]")
    members = text(await Bench(as_json({f"k{one}": one for one in range(900)}), TIGHT).call())
    assert members.endswith(" for more; grep, path to search]")


async def test_no_limit_for_one_call_is_none_for_a_tool_that_is_never_cut_either():
    rules = ResultRules(budget=300, servers={"shop": ServerResults(whole=("toy",))})
    reply = as_json(records(400))
    assert (await Bench(reply, rules).call(**{BUDGET: 0})).content == reply.content
