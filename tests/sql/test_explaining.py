import json

import pytest
from inline_snapshot import snapshot

from ullage.errors import Refused
from ullage.sql import Answer, Dialect
from ullage.sql.run_query import explain_statement, plan_text

pytestmark = pytest.mark.requirement("S0:sql:query")


def answer(columns: tuple[str, ...], *rows: tuple) -> Answer:
    return Answer(columns=columns, rows=rows, more=False)


def test_a_plan_is_asked_for_without_running_anything():
    said = {dialect: explain_statement(dialect, "SELECT 1") for dialect in ("sqlite", "duckdb", "postgres", "mysql")}
    assert said == snapshot(
        {
            "sqlite": "EXPLAIN QUERY PLAN\nSELECT 1",
            "duckdb": "EXPLAIN (FORMAT json)\nSELECT 1",
            "postgres": "EXPLAIN\nSELECT 1",
            "mysql": "EXPLAIN\nSELECT 1",
        }
    )


@pytest.mark.parametrize("dialect", ["tsql", "oracle"])
def test_a_database_that_would_write_its_plan_is_not_asked(dialect: Dialect):
    with pytest.raises(Refused):
        explain_statement(dialect, "SELECT 1")


def test_sqlites_plan_is_a_tree():
    rows = ((2, 0, 0, "MATERIALIZE x"), (5, 2, 0, "SCAN orders"), (9, 0, 0, "SEARCH c USING INDEX i (id=?)"))
    assert plan_text("sqlite", answer(("id", "parent", "notused", "detail"), *rows)) == snapshot("""\
MATERIALIZE x
  SCAN orders
SEARCH c USING INDEX i (id=?)\
""")


def test_duckdbs_plan_is_a_tree_of_operators():
    scan = {"name": "SEQ_SCAN ", "children": [], "extra_info": {"Table": "orders", "Filters": ["a", "b"], "Text": ""}}
    tree = [{"name": "PROJECTION", "children": [scan, "odd"], "extra_info": {"Projections": "x" * 300}}]
    text = plan_text("duckdb", answer(("explain_key", "explain_value"), ("physical_plan", json.dumps(tree))))
    assert text.splitlines()[1] == "  SEQ_SCAN Table=orders; Filters=a, b"
    assert text.splitlines()[0].endswith("…")
    single = plan_text("duckdb", answer(("k", "v"), ("physical_plan", '{"name": "RESULT"}')))
    assert single == "RESULT"
    assert plan_text("duckdb", answer(("k", "v"), ("physical_plan", "┌──┐"))) == "┌──┐"


def test_postgresqls_plan_is_its_lines():
    rows = (("Sort  (cost=1..2)",), ("  ->  Seq Scan on orders",))
    assert plan_text("postgres", answer(("QUERY PLAN",), *rows)) == "Sort  (cost=1..2)\n  ->  Seq Scan on orders"


def test_mysqls_plan_is_a_table_without_its_empty_columns():
    rows = ((1, "SIMPLE", "orders", None), (1, "SIMPLE", "items", None))
    assert plan_text("mysql", answer(("id", "select_type", "table", "extra"), *rows)) == snapshot("""\
id,select_type,table
1,SIMPLE,orders
1,SIMPLE,items\
""")
