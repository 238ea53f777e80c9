from decimal import Decimal

import pytest

from ullage.errors import QueryFailed
from ullage.sql import Limits
from ullage.sql.embedded import TableWorker
from ullage.sql.embedded.embedded_engine import batches, storable, unique_names
from ullage.table import Row

pytestmark = pytest.mark.requirement("U:budget", "U:join")


@pytest.fixture
async def worker():
    worker = TableWorker(limits=Limits(cell=100))
    yield worker
    await worker.close()


@pytest.mark.anyio
async def test_a_stored_result_can_be_queried_with_sql(worker: TableWorker):
    rows: list[Row] = [
        (1, "a", Decimal("1.50"), None),
        (2, "b", Decimal("2.25"), {"k": [1]}),
        (3, "c", Decimal(3), [2]),
    ]
    asked = "SELECT sum(price), max(\"Id\"), max(json_extract(more, '$.k[0]')) FROM result WHERE id < 3"
    answer = await worker.ask_table(["id", "name", "price", "more"], rows, asked, seconds=30, limit=10)
    assert answer.rows == ((3.75, 2, 1),)
    second = await worker.ask_table(["x"], [(5,)], "SELECT * FROM result", seconds=30, limit=10)
    assert (second.columns, second.rows) == (("x",), ((5,),))


@pytest.mark.anyio
async def test_hostile_and_like_names_are_made_columns(worker: TableWorker):
    columns = ['a"); DROP TABLE result; --', "id", "ID", "", "a\0b", "id_2"]
    answer = await worker.ask_table(columns, [(1, 2, 3, 4, 5, 6)], "SELECT * FROM result", seconds=30, limit=10)
    assert answer.columns == ('a"); DROP TABLE result; --', "id", "ID_2", "column_4", "ab", "id_2_2")
    assert answer.rows == ((1, 2, 3, 4, 5, 6),)


@pytest.mark.anyio
async def test_a_stored_result_cannot_be_changed_or_escaped(worker: TableWorker):
    for sql in ("DELETE FROM result", "ATTACH 'x.db' AS x", "CREATE TABLE more (a)", "SELECT 1; SELECT 2"):
        with pytest.raises(QueryFailed):
            await worker.ask_table(["a"], [(1,)], sql, seconds=30, limit=10)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("sql", "options"),
    [
        ("SELECT nme FROM result", ("result.name",)),
        ("SELECT o.nam FROM result r JOIN r12 o ON true", ("result.name",)),
        ("SELECT * FROM reslt", ("result",)),
        ("SELECT qqqqq FROM result", ("id", "name", "other")),
    ],
)
async def test_a_misspelt_name_gets_the_nearest_ones(worker: TableWorker, sql: str, options: tuple[str, ...]):
    with pytest.raises(QueryFailed) as failed:
        await worker.ask_table(["id", "name"], [(1, "a")], sql, seconds=30, limit=10, beside={"r12": (["other"], [])})
    assert failed.value.options == options
    assert "exists" in failed.value.suggestion


@pytest.mark.anyio
async def test_fifty_thousand_records_are_asked_at_once(worker: TableWorker):
    rows: list[Row] = [(number, f"name {number}", "half \ud800", True) for number in range(50_000)]
    asked = "SELECT n, b, c, sum(n) OVER () FROM result ORDER BY n"
    answer = await worker.ask_table(["n", "a", "b", "c"], rows, asked, seconds=30, limit=1)
    assert answer.rows == ((0, "half ?", 1, sum(range(50_000))),)
    assert answer.more


@pytest.mark.anyio
async def test_what_is_no_table_is_refused(worker: TableWorker):
    for columns in ([], [str(number) for number in range(2_001)]):
        with pytest.raises(QueryFailed, match="columns"):
            await worker.ask_table(columns, [], "SELECT 1", seconds=30, limit=1)


def test_values_become_ones_that_can_be_counted_with():
    assert storable(Decimal("1.5")) == 1.5
    assert storable(Decimal("1E+2")) == 100
    assert isinstance(storable(Decimal(10**30)), float)
    assert storable(2**70) == str(2**70)
    assert storable([1, "é"]) == '[1, "é"]'
    assert storable(None) is None


def test_rows_are_sent_in_batches():
    rows: list[Row] = [("x" * 6_000,)] * 7
    assert [len(batch) for batch in batches(rows)] == [3, 3, 1]
    assert list(batches([])) == []
    short: list[Row] = [(None,)] * 4_100
    full: list[list[Row]] = [[("x" * 7_992, 1)] * 5, [("x" * 7_993, 1)] * 5]
    assert [len(batch) for batch in batches(short)] == [2_001, 2_001, 98], "a value that is no text is 8 characters"
    assert [[len(batch) for batch in batches(rows)] for rows in full] == [[3, 2], [2, 2, 1]]


def test_names_are_unique_without_regard_to_case():
    assert unique_names(["a", "A", "a_2", " "]) == ("a", "A_2", "a_2_2", "column_4")
