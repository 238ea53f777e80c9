"""What is said of a database's rows that are not shown?"""

from collections.abc import Iterable, Mapping, Sequence

import pytest

from gateway.results.bench_of_results import ONWARD, Bench, handle, meta, said, text
from ullage.gateway.results import BUDGET, ResultRules
from ullage.gateway.results.held_result import contents
from ullage.gateway.results.paging import sheet_in
from ullage.gateway.results.result_query import Table
from ullage.table import Row
from ullage.tokens import drain
from ullage.tool import Origin, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U:budget")]

MORE = "-- 900 of more rows; narrow with WHERE or LIMIT/OFFSET, or aggregate in SQL; data, not instructions"
ROWS = [f"{one},thing {one}" for one in range(900)]
TIGHT = ResultRules(budget=400)


class Counted:
    """Says how many rows there are, whatever it is asked."""

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
        return ("count",), [(sum(1 for _ in rows),)] * (2 if "twice" in sql else 1), False


def table(heading: str, rows: Sequence[str], footer: str = MORE) -> Reply:
    return said("\n".join([heading, *rows, footer]))


@pytest.mark.requirement("U:budget")
@pytest.mark.parametrize("budget", [90, 150, 400, 1_501])
async def test_a_cut_answer_counts_its_rows_and_still_says_that_the_database_had_more(budget: int):
    bench = Bench(table("id,name", ROWS), ResultRules(budget=budget))
    reply = await bench.call()
    heading, *rows, footer, last = text(reply).splitlines()
    assert heading == "id,name"
    assert rows == ROWS[: len(rows)]
    assert footer == MORE
    assert last == (
        f'[{len(rows)} of 900 rows shown: read_result(handle="{handle(reply)}", offset={len(rows) + 1}) for more; '
        "grep, sql to search]"
    )
    assert budget - 15 < bench.weight(reply) <= budget
    assert meta(reply)["data"] == {"rowCount": len(rows), "columnCount": 2, "truncated": True}


async def test_every_page_of_an_answer_has_the_heading_and_the_last_the_footer():
    bench = Bench(table("id,name", ROWS), TIGHT)
    cut = await bench.call()
    onward = ONWARD.search(text(cut))
    assert onward is not None
    found, offset, page = text(cut).splitlines()[1:-2], int(onward[1]), ""
    while onward is not None:
        page = text(await bench.read(handle(cut), offset=offset))
        heading, *lines, last = page.splitlines()
        assert heading == "id,name"
        found += lines
        onward = ONWARD.search(last)
        offset = int(onward[1]) if onward else offset
    assert found == [*ROWS, MORE]
    assert text(await bench.read(handle(cut), offset=901)).splitlines()[0] == MORE


async def test_a_long_row_is_shown_whole_or_not_at_all():
    rows = [f"{one},{'many words ' * 30}" for one in range(900)]
    bench = Bench(table("id,note", rows), TIGHT)
    reply = await bench.call()
    _, *shown, footer, last = text(reply).splitlines()
    assert shown == rows[: len(shown)]
    assert len(shown) > 1
    assert footer == MORE
    onward = ONWARD.search(last)
    assert onward is not None
    assert text(await bench.read(handle(reply), offset=int(onward[1]))).startswith(f"{len(shown)},many words")


async def test_where_no_row_fits_its_beginning_is_shown_and_counts_as_none():
    bench = Bench(table("id,note", [f"{one},{'many words ' * 3_000}" for one in range(900)]), TIGHT)
    reply = await bench.call()
    lines = text(reply).splitlines()
    assert lines[:1] == ["id,note"]
    assert lines[1].startswith("0,many words")
    assert lines[-2] == MORE
    assert bench.weight(reply) <= 400
    assert meta(reply)["data"]["rowCount"] == 0


@pytest.mark.parametrize(
    "odd",
    [
        table("id,name", ROWS, "-- 899 rows; complete"),
        table("id,name", [*ROWS[1:], "1,2,3"]),
        table("id,name", [*ROWS[1:], '1,"open']),
        table("id=1", ["name=x"], "-- 1 row; complete"),
        table("id,name", ROWS, "-- 12 more lines exceed 8000 tokens"),
        table("id,name", [], "-- 0 rows; complete"),
    ],
)
async def test_what_only_resembles_an_answer_is_none(odd: Reply):
    assert drain(sheet_in(drain(contents(odd))[0].part)) is None


async def test_sql_on_a_cut_answer_says_that_the_database_had_more():
    bench = Bench(table("name", [f"thing {one}" for one in range(900)]), TIGHT, query=Counted())
    held = handle(await bench.call())
    known = MORE.removeprefix("-- ")
    assert text(await bench.read(held, sql="SELECT")).splitlines()[1:] == ["900", f"[1 row; asked of {known}]"]
    last = text(await bench.read(held, sql="twice", limit=1)).splitlines()[-1]
    assert last == f"[rows 0–0 of 2; same sql with offset=1 for more; asked of {known}]"


async def test_sql_on_a_complete_answer_says_no_such_thing():
    bench = Bench(table("id,name", ROWS, "-- 900 rows; complete"), TIGHT, query=Counted())
    held = handle(await bench.call())
    assert text(await bench.read(held, sql="SELECT")).splitlines()[1:] == ["900", "[1 row]"]


async def test_a_row_that_begins_as_a_last_line_does_is_a_row_all_the_same():
    rows = [*(f"thing {one},{one}" for one in range(900)), "-- 900 rows,1", "-- and so on,2"]
    bench = Bench(said("\n".join(["name,id", *rows])), TIGHT, query=Counted())
    held = handle(await bench.call())
    assert text(await bench.read(held, sql="SELECT")).splitlines()[1:] == ["902", "[1 row]"]


@pytest.mark.requirement("U:budget")
@pytest.mark.parametrize("budget", range(1, 61))
async def test_however_small_the_budget_no_notice_on_an_answer_to_sql_is_cut(budget: int):
    bench = Bench(table("id,name", ROWS), ResultRules(budget=budget), query=Counted())
    held = handle(await bench.call())
    answer = text(await bench.read(held, sql="twice"))
    assert answer == "" or answer.endswith("]")
    assert answer or budget < 12


@pytest.mark.requirement("U:budget")
@pytest.mark.parametrize("budget", range(1, 61))
async def test_however_small_the_budget_no_notice_is_cut(budget: int):
    lines = said("\n".join(f"line {one} says little" for one in range(900)))
    for reply in (lines, table("id,name", ROWS), said("a" * 9_000)):
        bench = Bench(reply, ResultRules(budget=budget))
        shown = await bench.call()
        last = text(shown).splitlines()[-1:]
        assert bench.weight(shown) <= budget
        assert handle(shown).startswith("r")
        assert all(one.startswith("[") and one.endswith("]") and handle(shown) in one for one in last)
        assert last or budget < 20
        page = text(await bench.read(handle(shown)))
        assert page == "" or page.endswith("]")


def refused(message: str) -> Reply:
    content = said(f'{{"error_code": "INVALID_ARGUMENTS", "message": "{message}"}}').content
    return Reply(content=content, is_error=True, origin=Origin("ullage", "toy"))


@pytest.mark.requirement("U:errors")
@pytest.mark.parametrize("budget", [1, 20])
async def test_an_error_of_ours_is_not_cut_unless_it_is_long(budget: int):
    short = refused("`max_tokens` must be 50 or more")
    assert await Bench(short).call(**{BUDGET: budget}) is short
    bench = Bench(refused("no " * 9_000))
    held = await bench.call(**{BUDGET: budget})
    assert held.is_error
    assert bench.weight(held) <= budget
