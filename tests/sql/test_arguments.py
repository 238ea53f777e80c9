from typing import Any

import pytest

from ullage.errors import InvalidArguments
from ullage.sql import tools_of
from ullage.sql.sql_tools import read_original_query, read_query, read_schema, read_sql, read_table

pytestmark = pytest.mark.requirement("S0:sql:limit")

TOOLS = {tool.name: tool for tool in tools_of("sqlite", None)}


def query(limit: int = 1_000, budget: int | None = None, **arguments: Any):  # noqa: ANN401
    return read_query(TOOLS["query"], arguments, limit=limit, budget=budget)


def original(**arguments: Any):  # noqa: ANN401
    return read_original_query(TOOLS["secureDatabaseQuery"], arguments, limit=1_000, budget=7)


@pytest.mark.requirement("S0:sql:limit")
def test_rows_are_the_limits_unless_fewer_are_asked_for():
    assert (query(sql="x").rows, query(sql="x").clamped) == (1_000, False)
    assert query(sql="x", max_rows=10).rows == 10
    assert query(sql="x", max_rows="10").rows == 10
    assert query(sql="x", max_rows=10.0).rows == 10
    assert query(sql="x", max_rows=None).rows == 1_000
    more = query(sql="x", max_rows=5_000)
    assert (more.rows, more.clamped) == (1_000, True)


def test_the_smaller_of_two_budgets_holds():
    assert query(sql="x").budget is None
    assert query(sql="x", max_tokens=300).budget == 300
    assert query(sql="x", max_tokens=300, budget=200).budget == 200
    assert query(sql="x", budget=200).budget == 200


def test_formats():
    assert [query(sql="x", format=format_).format for format_ in (None, "JSON", "csv")] == ["csv", "json", "csv"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "`sql` must be a string"),
        ({"sql": "  "}, "`sql` must be a string"),
        ({"sql": 1}, "`sql` must be a string"),
        ({"sql": "x", "max_rows": 0}, "`max_rows` must be a whole number of 1 or more"),
        ({"sql": "x", "max_rows": True}, "`max_rows` must be a whole number"),
        ({"sql": "x", "max_rows": "many"}, "`max_rows` must be a whole number"),
        ({"sql": "x", "max_rows": 1.5}, "`max_rows` must be a whole number"),
        ({"sql": "x", "max_tokens": 49}, "`max_tokens` must be a whole number of 50 or more"),
        ({"sql": "x", "format": "xml"}, "`format` must be one of csv, json"),
        ({"sql": "x", "format": 1}, "`format` must be one of csv, json"),
        ({"sql": "x", "maxrows": 1}, "query has no argument `maxrows`"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_in_words(arguments: dict, said: str):
    with pytest.raises(InvalidArguments, match=said) as caught:
        query(**arguments)
    assert caught.value.suggestion


def test_the_error_for_a_misspelt_argument_has_the_right_spelling():
    with pytest.raises(InvalidArguments) as caught:
        query(sql="x", max_row=1)
    assert caught.value.suggestion == "did you mean `max_rows`?"
    assert caught.value.options == ("sql", "max_rows", "max_tokens", "format")
    with pytest.raises(InvalidArguments) as caught:
        query(sql="x", zzz=1)
    assert caught.value.suggestion == "query takes sql, max_rows, max_tokens, format"


def test_the_original_takes_its_own_arguments():
    assert original(queryDescription="SELECT 1").rows == 1_000
    assert original(queryDescription="SELECT 1", maxRows="5").rows == 5
    assert original(queryDescription="SELECT 1", maxRows=-1).rows == 1_000
    wanted = original(queryDescription="SELECT 1", maxRows=2_000)
    assert (wanted.rows, wanted.clamped, wanted.format, wanted.budget) == (1_000, True, "original", 7)


def test_schema_takes_a_pattern_and_a_detail():
    asked = read_schema(TOOLS["schema"], {"pattern": "ord*", "detail": "full"})
    assert (asked.pattern, asked.detail) == ("ord*", "full")
    assert read_schema(TOOLS["schema"], {}).detail is None
    with pytest.raises(InvalidArguments, match="`pattern` must be a string"):
        read_schema(TOOLS["schema"], {"pattern": ["x"]})
    with pytest.raises(InvalidArguments, match="`detail` must be one of names, lines, full"):
        read_schema(TOOLS["schema"], {"detail": "all"})


def test_table_takes_a_name_and_a_number_of_samples():
    def read(**arguments: Any):  # noqa: ANN401
        return read_table(TOOLS["table"], arguments)

    assert (read(name="t").name, read(name="t").sample) == ("t", 0)
    assert [read(name="t", sample=value).sample for value in (True, False, 4, 99)] == [3, 0, 4, 20]
    assert read_table(TOOLS["listTriggers"], {"tableName": "t"}).name == "t"
    with pytest.raises(InvalidArguments, match="`sample`"):
        read(name="t", sample=-1)


def test_explain_takes_sql():
    assert read_sql(TOOLS["explain"], {"sql": "SELECT 1"}) == "SELECT 1"
