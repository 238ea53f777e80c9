import base64
import json
import struct
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.results.bench_of_results import (
    ADA,
    METER,
    ONWARD,
    REFERENCES,
    Bench,
    SingleSource,
    as_json,
    handle,
    meta,
    records,
    said,
    text,
)
from store.databases import opened
from ullage.errors import SourceFailed
from ullage.gateway.merge.tool_view import Entry, Member, View
from ullage.gateway.reply_metadata import ACCOUNT, META
from ullage.gateway.results import BUDGET, Budgeted, ResultRules, ServerResults, Vault
from ullage.table import decode
from ullage.testing import FakeSource
from ullage.tokens import Meter
from ullage.tool import Call, Caller, Needs, Origin, Reply, Structured, Tool, text_block

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U:budget")]

TIGHT = ResultRules(budget=300)
CLAUDE = Caller(principal="ada", session="s", model="claude-opus-4-7")


def structured(value: Any, *texts: str) -> Reply:  # noqa: ANN401
    return Reply(content=said(*texts).content, structured=Structured(value))


async def test_a_small_reply_passes_as_it_is_and_uncounted():
    class Uncounted(Meter):
        def steps(self, *_: object, **__: object):  # pyright: ignore[reportIncompatibleMethodOverride]
            raise AssertionError("counted")

    reply = said("a few words")

    async def answer(_: Call) -> Reply:
        return reply

    source = SingleSource(FakeSource(offered=(Tool(name="toy", input_schema={}),), answer=answer))
    budgeted = Budgeted(
        inner=source,
        rules=ResultRules,
        vault=Vault(),
        meter=Uncounted(METER.models),
        reference=REFERENCES,
    )
    assert await budgeted.call(Call(tool="toy")) is reply


async def test_a_reply_that_needs_something_passes():
    needy = Reply(needs=Needs({"a": {}}), content=(text_block("word " * 900),))
    assert (await Bench(needy, TIGHT).call()).needs is not None


@pytest.mark.requirement("U:budget")
@pytest.mark.parametrize("caller", [ADA, CLAUDE])
@pytest.mark.parametrize("budget", [1, 5, 20, 60, 150, 301, 1_000])
async def test_no_reply_exceeds_its_budget_by_one_token(caller: Caller, budget: int):
    replies = (
        as_json(records(400)),
        as_json({"total": 400, "items": records(400), "next": None}, indent=2),
        said("\n".join(f"line {one} says little" for one in range(900))),
        said("one endless line " * 900),
        said("é" * 5_000),
        said("a" * 200, "b " * 900, json.dumps(records(90))),
        said('{"error_code": "X", "message": "' + "no " * 1_900 + '"}', is_error=True),
        structured({"items": records(300)}),
        as_json({f"key {one}": {"deep": [one, "word " * one]} for one in range(60)}),
    )
    for reply in replies:
        bench = Bench(reply, ResultRules(budget=budget), caller=caller)
        shown = await bench.call()
        assert bench.weight(shown) <= budget
        assert shown.structured is None
        assert shown.is_error is reply.is_error
        assert (await bench.vault.aside(lambda: bench.vault.open(handle(shown), "ada"))).units > 0  # noqa: B023


@pytest.mark.requirement("U:budget")
async def test_records_are_shown_whole_as_a_table_with_the_way_to_the_rest():
    bench = Bench(as_json(records(400)), TIGHT)
    reply = await bench.call()
    *lines, last = text(reply).splitlines()
    shown = json.loads(json.dumps(decode("\n".join(lines))))
    assert shown == records(400)[: len(shown)]
    assert len(shown) > 5
    assert last == (
        f'[{len(shown)} of 400 records shown: read_result(handle="{handle(reply)}", offset={len(shown)}) for more; '
        "grep, path, sql to search]"
    )
    assert meta(reply)["data"] == {"rowCount": len(shown), "columnCount": 4, "truncated": True}
    assert bench.weight(reply) > 270
    assert bench.ran == 1


async def test_without_encoding_records_stay_json():
    reply = await Bench(as_json(records(400), indent=2), ResultRules(budget=300, encode=False)).call()
    *lines, last = text(reply).splitlines()
    assert [json.loads(line) for line in lines] == records(400)[: len(lines)]
    assert f"{len(lines)} of 400 records" in last


async def test_what_surrounds_the_records_is_shown_above_them():
    whole = {"total": 400, "data": {"items": records(400)}, "next": "abc"}
    lines = text(await Bench(as_json(whole, indent=1), TIGHT).call()).splitlines()
    assert json.loads(lines[0]) == {"total": 400, "data": {"items": []}, "next": "abc"}
    assert lines[1:3] == ["data.items[400]:", "id,name,share,note"]
    long = text(await Bench(as_json({"about": "word " * 500, "items": records(400)}), TIGHT).call())
    assert long.startswith("[more beside these, by path: about]\nitems[400]:\n")


async def test_lines_are_shown_whole():
    lines = [f"line {one} says little" for one in range(900)]
    *shown, last = text(await Bench(said("\n".join(lines)), TIGHT).call()).splitlines()
    assert shown == lines[: len(shown)]
    assert f"[{len(shown)} of 900 lines shown" in last
    assert "; grep to search" in last


async def test_a_record_that_is_too_large_is_cut_between_its_values_and_says_how_to_read_it():
    giant = [{"id": 0, "name": "first", "body": "word " * 2_000}, *records(3)]
    reply = await Bench(as_json({"items": giant}), TIGHT).call()
    first, last = text(reply).splitlines()
    assert first == '{"id":0,"name":"first",…'
    assert 'record 0 of 4 is cut here: read_result(handle="r' in last
    assert 'path="items[0]" for all of it' in last
    assert (match := ONWARD.search(last)) is not None
    assert match[1] == "1"


async def test_json_tables_that_fit_are_written_shorter_and_nothing_is_held():
    value = records(20)
    reply = await Bench(structured({"result": value}, json.dumps(value))).call()
    assert decode(text(reply)) == value
    assert reply.structured is None
    assert meta(reply) == {"data": {"rowCount": 20, "columnCount": 4, "truncated": False}}
    off = await Bench(as_json(value), ResultRules(encode=False)).call()
    assert json.loads(text(off)) == value
    assert off.meta == {}


async def test_structured_content_that_says_more_than_the_text_is_not_lost():
    value = {"items": records(20)}
    kept = structured(value, json.dumps(records(20)))
    assert (await Bench(kept).call()).structured == kept.structured
    large = structured({"items": records(2_000)}, "20 found")
    bench = Bench(large, TIGHT)
    reply = await bench.call()
    assert reply.structured is None
    assert text(reply).startswith("20 found\nstructuredContent\n")
    assert "name 1999" in text(await bench.read(handle(reply), offset=2_000))
    assert bench.weight(reply) <= 300


async def test_structured_content_alone_becomes_text():
    reply = await Bench(structured(records(20))).call()
    assert decode(text(reply)) == records(20)
    assert reply.structured is None
    assert meta(reply)["data"]["rowCount"] == 20
    plain = Reply(structured=Structured({"answer": 42}))
    assert (await Bench(plain).call()).structured == plain.structured


async def test_blocks_that_are_an_object_each_are_records_together():
    blocks = [json.dumps(one, indent=2) for one in records(200)]
    small = await Bench(said(*blocks[:20])).call()
    assert decode(text(small)) == records(20)
    large = await Bench(said(*blocks), TIGHT).call()
    assert "of 200 records shown" in text(large)
    odd = await Bench(said(*(f"{{not {one}}}" for one in range(300))), TIGHT).call()
    assert text(odd).startswith("{not 0}\n{not 1}\n")
    assert "[53 of 300 lines shown: read_result" in text(odd)


async def test_tables_are_written_shorter_where_there_is_no_limit_and_in_resources_too():
    table = json.dumps(records(20))
    resource = {"type": "resource", "resource": {"uri": "a:b", "text": table}}
    reply = await Bench(Reply(content=(text_block("these:"), resource)), ResultRules(budget=0)).call()
    inner: Any = reply.content[1]["resource"]
    assert decode(inner["text"]) == records(20)
    assert inner["uri"] == "a:b"
    assert set(reply.meta) == {ACCOUNT}
    kept = Reply(content=(text_block(table),), meta={META: {"data": {"rowCount": 7}}})
    assert meta(await Bench(kept).call()) == {"data": {"rowCount": 7}}


async def test_large_structured_content_alone_is_cut_as_any_text():
    bench = Bench(structured({"items": records(9_000)}))
    reply = await bench.call()
    assert " of 9000 records shown" in text(reply)
    assert 9_900 < bench.weight(reply) <= 10_000


async def test_a_text_of_few_tokens_for_many_characters_fills_its_budget_too():
    bench = Bench(said((" " * 200 + "\n") * 5_000), TIGHT)
    assert bench.weight(await bench.call()) > 250


def _image(side: int) -> dict[str, str]:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", side, side)
    return {"type": "image", "data": base64.b64encode(head + b"\0" * 99).decode(), "mimeType": "image/png"}


@pytest.mark.requirement("U:budget")
async def test_an_image_that_is_too_large_has_a_line_in_its_place_and_can_be_had():
    bench = Bench(Reply(content=(text_block("look:"), _image(2_000), text_block("done"))), TIGHT)
    reply = await bench.call()
    first, line, last = (str(block["text"]) for block in reply.content)
    assert (first, last) == ("look:", "done")
    assert line.startswith("[image/png of ")
    assert f'read_result(handle="{handle(reply)}", offset=1, max_tokens=' in line
    wanted = int(line.split("max_tokens=")[1].split(")")[0])
    small = await bench.read(handle(reply), offset=1)
    assert bench.weight(small) <= 300
    assert "offset=2 for more" in text(small)
    whole = await bench.read(handle(reply), offset=1, max_tokens=wanted + 20)
    assert whole.content[0] == _image(2_000)
    fits = await Bench(Reply(content=(_image(2_000),))).call()
    assert fits.content == (_image(2_000),)


async def test_blocks_are_let_through_in_their_order_while_there_is_room():
    film = {"type": "film", "data": "A" * 10_000, "mimeType": "video/mp4", "title": "word " * 900}
    resource = {"type": "resource", "resource": {"uri": "a:b", "text": "line\n" * 900, "mimeType": "text/plain"}}
    bench = Bench(Reply(content=(text_block("first"), resource, text_block("last"))), TIGHT)
    reply = await bench.call()
    assert text(reply).startswith("first\na:b\nline\nline\n")
    assert "of 902 lines shown" in text(reply)
    pages = [page async for page in bench.pages(handle(reply))]
    assert pages[0].startswith("first\n")
    assert pages[1].startswith("a:b\nline")
    assert pages[-1].splitlines()[-2:] == ["last", "[lines 901–901 of 902; no more]"]
    crowded = await Bench(Reply(content=(film,) * 30), ResultRules(budget=200)).call()
    assert text(crowded).splitlines()[-1].startswith("[")
    assert "of 30 blocks shown" in text(crowded)


@pytest.mark.requirement("U:budget")
async def test_budgets_are_by_call_then_tool_then_server_then_for_all():
    reply = said("\n".join(f"line {one} says little" for one in range(3_000)))
    rules = ResultRules(budget=900, servers={"shop": ServerResults(budget=700, budgets={"other": 100, "to*": 500})})

    async def weight(rules: ResultRules, **meta: int) -> int:
        bench = Bench(reply, rules)
        return bench.weight(await bench.call(**meta))

    assert 450 < await weight(rules) <= 500
    assert 250 < await weight(rules, **{BUDGET: 300}) <= 300
    assert 1_400 < await weight(rules, **{BUDGET: 1_500}) <= 1_500
    assert 650 < await weight(ResultRules(servers={"shop": ServerResults(budget=700)})) <= 700
    assert await weight(ResultRules(budget=0)) > 10_000
    assert await weight(rules, **{BUDGET: 0}) > 10_000
    assert 450 < await weight(rules, **{BUDGET: -1}) <= 500
    whole = ResultRules(budget=500, servers={"shop": ServerResults(whole=("toy",))})
    assert await weight(whole) > 10_000
    assert await weight(whole, **{BUDGET: 300}) <= 300


async def test_our_own_tools_budget_is_among_their_arguments_and_pages_are_not_held_again():
    own = Reply(content=(text_block("word\n" * 3_000),), origin=Origin("ullage", "query"))

    async def shown(origin: str, **arguments: int) -> int:
        async def answer(_: Call) -> Reply:
            return Reply(content=own.content, origin=Origin("ullage", origin))

        source = SingleSource(FakeSource(offered=(Tool(name="toy", input_schema={}),), answer=answer))
        budgeted = Budgeted(
            inner=source,
            rules=lambda: TIGHT,
            vault=Vault(),
            meter=METER,
            reference=REFERENCES,
        )
        return len(text(await budgeted.call(Call(tool="toy", arguments=arguments))))

    assert await shown("query") < 2_000 < await shown("query", max_tokens=900) < len("word\n" * 3_000)
    assert await shown("read_result") == len("word\n" * 3_000)


async def test_rows_that_a_source_counted_are_counted_again_where_it_is_cut():
    inner: Any = {"data": {"rowCount": 900, "columnCount": 2, "truncated": False, "maxRowsLimit": 1_000}}
    reply = Reply(content=(text_block("a,b\n" + "1,some words\n" * 900),), meta={META: inner, "x": 1})
    shown = await Bench(reply, TIGHT).call()
    rows = text(shown).count("1,some words")
    assert meta(shown)["data"] == {**inner["data"], "rowCount": rows, "truncated": True}
    assert shown.meta["x"] == 1


@pytest.mark.requirement("U:budget")
async def test_where_nothing_can_be_kept_nothing_is_cut(caplog: pytest.LogCaptureFixture):
    reply = said("word " * 3_000)
    assert text(await Bench(reply, TIGHT, vault=Vault(size=10)).call()) == "word " * 3_000
    assert "passed on whole" in caplog.text


async def test_a_database_that_fails_costs_nothing_but_the_next_start(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
):
    with opened(str(tmp_path / "ullage.db")) as database:
        database.problem = "the disk is full"
        bench = Bench(said("word\n" * 3_000), TIGHT, vault=Vault(database))
        reply = await bench.call()
        assert "in memory alone" in caplog.text
        assert text(await bench.read(handle(reply), offset=2_990)).startswith("word\n")


@given(st.text(alphabet=st.characters(), min_size=100, max_size=600), st.integers(1, 90))
def test_any_text_is_held_to_any_budget(words: str, budget: int):
    async def run() -> None:
        bench = Bench(said(words), ResultRules(budget=budget))
        shown = await bench.call()
        assert bench.weight(shown) <= budget

    anyio.run(run)


async def test_a_large_reply_lets_others_in():
    turns = 0

    async def live() -> None:
        nonlocal turns
        while True:
            await anyio.sleep(0.001)
            turns += 1

    bench = Bench(as_json(records(20_000)), TIGHT)
    async with anyio.create_task_group() as group:
        group.start_soon(live)
        await bench.call()
        group.cancel_scope.cancel()
    assert turns > 5


def _entry(name: str, server: str = "shop") -> Entry:
    async def answer(_: Call) -> Reply:
        raise SourceFailed("never")

    tool = Tool(name=name, input_schema={}, output_schema={"type": "object"})
    member = Member(name=server, source=FakeSource(offered=(tool,), answer=answer), prefix="")
    return Entry(listed=name, tool=tool, member=member, original=name)


async def test_an_output_schema_is_promised_only_where_results_pass_whole():
    seen = View(entries=(_entry("a"), _entry("b")), revision="1")
    rules = ResultRules(servers={"shop": ServerResults(whole=("b",))})
    source = SingleSource(FakeSource(), seen)
    budgeted = Budgeted(
        inner=source,
        rules=lambda: rules,
        vault=Vault(),
        meter=METER,
        reference=REFERENCES,
    )
    view = await budgeted.view()
    assert [entry.tool.output_schema for entry in view.entries] == [None, {"type": "object"}]
    assert await budgeted.view() is view
    assert view.revision != "1"
    before = await budgeted.tools()
    rules = ResultRules(budget=0, encode=False)
    assert (await budgeted.view()) is seen
    assert (await budgeted.tools()).revision != before.revision
    assert "resources" in budgeted.features


@pytest.mark.parametrize(
    "reply",
    [
        said("a line of text, with a few words\n" * 5_000),
        said(" " * 100_000),
        said("😀" * 60_000),
        said("x" * 30_000, "y" * 30_000),
        said("failed: " + "at some line of a file " * 5_000, is_error=True),
        as_json(records(3_000, words=9)),
        structured({"text": "word " * 20_000}),
    ],
    ids=["lines", "blanks", "pairs", "blocks", "error", "table", "structured"],
)
@pytest.mark.parametrize("rules", [ResultRules(), ResultRules(budget=0), ResultRules(budget=0, encode=False)])
async def test_gemini_cli_is_shown_less_than_it_truncates(reply: Reply, rules: ResultRules):
    bench = Bench(reply, rules, caller=Caller(principal="ada", session="s", client="gemini-cli"))
    first = await bench.call()
    shown = [text(first), text(await bench.read(handle(first), max_tokens=10**6))]
    assert all(1_000 < utf16_length(one) < 40_000 for one in shown)


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


async def test_ledger_hears_what_a_result_weighed_before_it_was_cut_and_what_was_read_back():
    bench = Bench(Reply.text("\n".join(f"line {number} of many" for number in range(3000))), ResultRules(budget=300))
    reply = await bench.call()
    account: Any = reply.meta[ACCOUNT]
    whole = METER.count("\n".join(f"line {number} of many" for number in range(3000)), "gpt-4o").tokens
    assert account == {"baseline": whole, "method": "exact"}
