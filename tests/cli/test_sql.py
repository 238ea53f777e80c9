import io
import json
import os
from pathlib import Path

import psycopg
import pytest
from inline_snapshot import snapshot

from approving import main
from ullage.sql.sample_shop import make_sample

pytestmark = pytest.mark.requirement("S0:sql:query")

TOP = "SELECT name, stock, discontinued_on FROM products ORDER BY id LIMIT 2"


@pytest.mark.requirement("S0:sql:query")
def test_a_question_is_answered_with_an_aligned_table(work: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["sql", "sample", TOP]) == 0
    captured = capsys.readouterr()
    assert captured.out == snapshot("""\
name         stock  discontinued_on
Alder Spade    218  NULL
Alder Rake      10  NULL
""")
    assert captured.err == "2 rows\n"


def test_rows_as_json(work: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["sql", "shop", "SELECT id, name FROM categories ORDER BY id", "--json", "--max-rows", "2"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {
        "rowCount": 2,
        "truncated": True,
        "columnNames": ["id", "name"],
        "data": [{"id": 1, "name": "Garden"}, {"id": 2, "name": "Kitchen"}],
    }
    assert captured.err == "2 rows; there are more: narrow with WHERE or LIMIT, or aggregate\n"


def test_rows_as_csv_for_other_programs(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1 AS one, 'a,b\nc' AS two, NULL AS three, 1.5 AS four"))
    assert main(["sql", "sample", "-", "--csv"]) == 0
    assert capsys.readouterr().out == 'one,two,three,four\n1,"a,b\nc",,1.5\n'


def test_what_a_terminal_would_obey_is_not_printed(work: Path, capsys: pytest.CaptureFixture[str]):
    sql = "SELECT char(27) || '[2Jx' AS a, 'two' || char(10) || 'lines' AS b, hex(zeroblob(60)) AS c"
    assert main(["sql", "sample", sql]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "[2Jx" in out
    assert "two\\nlines" in out
    assert out.rstrip().endswith("0…")


@pytest.mark.requirement("S0:sql:read-only")
@pytest.mark.parametrize("sql", ["DELETE FROM reviews", "SELECT 1; DELETE FROM reviews", "PRAGMA writable_schema = 1"])
def test_the_same_locks_apply_to_a_person(work: Path, capsys: pytest.CaptureFixture[str], sql: str):
    assert main(["sql", "sample", sql, "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err)["error_code"] == "SQL_REFUSED"


def test_the_error_for_a_misspelt_table_has_the_nearest_name(work: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["sql", "sample", "SELECT * FROM product"]) == 2
    assert "options: products" in capsys.readouterr().err


@pytest.mark.requirement("S0:sql:schema")
def test_a_name_alone_lists_the_tables(work: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["sql", "sample"]) == 0
    captured = capsys.readouterr()
    assert captured.out == snapshot("""\
table         kind     rows  columns
categories    table     ~12  id, name, parent_id
customers     table    ~300  id, name, email, city, country, joined_on
order_items   table  ~2,335  order_id, line, product_id, quantity, unit_price
order_totals  view           order_id, customer_id, ordered_at, status, total
orders        table  ~1,000  id, customer_id, ordered_at, status, coupon
products      table    ~135  id, sku, name, category_id, price, stock, discontinued_on
reviews       table    ~500  id, product_id, customer_id, stars, title, written_on
""")
    assert captured.err == "7 tables\n"
    assert main(["sql", "sample", "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)
    assert tables[2]["primary_key"] == ["order_id", "line"]
    assert tables[2]["columns"][0] == {"name": "order_id", "type": "INTEGER", "nullable": False}


def _configure(work: Path) -> None:
    make_sample(work / "till.db")
    (work / "ullage.toml").write_text(
        '[sources.till]\ndatabase = "till.db"\nmax_rows = 3\ndescription = "The till"\n'
        '[sources.books]\ndatabase = "postgresql://me:geheim@localhost:1/books"\ndefault = true\n',
        encoding="utf-8",
    )


def test_no_name_lists_the_databases_without_their_secrets(work: Path, capsys: pytest.CaptureFixture[str]):
    _configure(work)
    assert main(["sql"]) == 0
    captured = capsys.readouterr()
    assert captured.out == snapshot("""\
till   SQLite               The till
books  PostgreSQL  default
""")
    assert main(["sql", "--json"]) == 0
    captured = capsys.readouterr()
    listed = json.loads(captured.out)
    assert [(one["name"], one["dialect"], one["default"]) for one in listed] == [
        ("till", "sqlite", False),
        ("books", "postgres", True),
    ]
    assert "geheim" not in captured.out + captured.err


@pytest.mark.requirement("S0:sql:limit")
def test_the_settings_limit_holds_whatever_is_asked_for(work: Path, capsys: pytest.CaptureFixture[str]):
    _configure(work)
    assert main(["sql", "till", "SELECT id FROM orders", "--max-rows", "50"]) == 0
    assert capsys.readouterr().err.startswith("3 rows; there are more")


def test_what_is_no_database_does_not_hide_the_others(work: Path, capsys: pytest.CaptureFixture[str]):
    (work / "ullage.toml").write_text(
        '[sources.letters]\ndatabase = "letters.txt"\n[sources.shop]\ndatabase = "sample"\n', encoding="utf-8"
    )
    assert main(["sql"]) == 0
    assert capsys.readouterr().out == snapshot("""\
letters  unknown      default
shop     sample shop
""")
    assert main(["sql", "letters"]) == 2
    assert "neither a URL nor a file" in capsys.readouterr().err


def test_without_databases_there_is_a_word_on_how_to_get_one(work: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["sql"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "ullage sql sample" in captured.err
    assert main(["sql", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.requirement("U:errors")
def test_an_unknown_database_is_refused(work: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["sql", "nosuch", "SELECT 1"]) == 2
    assert "no database is called `nosuch`" in capsys.readouterr().err
    _configure(work)
    assert main(["sql", "nosuch", "SELECT 1"]) == 2
    assert "options: till, books" in capsys.readouterr().err


def test_a_database_that_cannot_be_reached_is_said_without_its_password(work: Path, capsys: pytest.CaptureFixture[str]):
    _configure(work)
    assert main(["sql", "books", "SELECT 1"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert "geheim" not in captured.err


def test_fewer_than_one_row_returns_none(work: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["sql", "sample", "SELECT 1", "--max-rows", "0"]) == 2
    assert "--max-rows 1 or more" in capsys.readouterr().err


def test_a_file_has_no_role_to_make(work: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["sql", "sample", "--role-sql"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "has no roles" in captured.err


def test_the_sql_for_a_role_that_can_only_read_is_printed(work: Path, capsys: pytest.CaptureFixture[str]):
    url = os.environ.get("ULLAGE_TEST_POSTGRESQL", "postgresql://postgres@127.0.0.1:5432/test")
    try:
        psycopg.connect(url, connect_timeout=3).close()
    except psycopg.OperationalError:
        pytest.skip("no PostgreSQL server answers at ULLAGE_TEST_POSTGRESQL")
    (work / "ullage.toml").write_text(f'[sources.books]\ndatabase = "{url}"\n', encoding="utf-8")
    assert main(["sql", "books", "--role-sql"]) == 0
    captured = capsys.readouterr()
    assert "CREATE ROLE" in captured.out
    assert "GRANT SELECT" in captured.out
    assert "is a superuser" in captured.err
