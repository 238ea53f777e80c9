"""What comes out of the guard, and how a refusal is worded."""

import pytest

from ullage.errors import Refused
from ullage.sql import Dialect, Stability
from ullage.sql.guard import judge

pytestmark = pytest.mark.requirement("S0:sql:read-only")

DEEP = 20_000


def refused(sql: str, dialect: Dialect = "postgres", **given: object) -> Refused:
    with pytest.raises(Refused) as caught:
        judge(sql, dialect, **given)  # pyright: ignore[reportArgumentType]
    return caught.value


def test_the_text_is_run_as_written_without_its_surroundings():
    statement = judge(" -- first\n/* a */ SELECT\t1 /* in the middle */ + 1 ; ; -- last\n", "postgres")
    assert statement.sql == "SELECT\t1 /* in the middle */ + 1"
    assert statement.kind == "select"


@pytest.mark.parametrize(
    ("sql", "dialect", "kind"),
    [
        ("TABLE t", "postgres", "select"),
        ("EXPLAIN SELECT 1", "postgres", "explain"),
        ("SHOW timezone", "postgres", "show"),
        ("SHOW TIME ZONE", "postgres", "show"),
        ("DESCRIBE t", "mysql", "describe"),
        ("EXPLAIN t", "mysql", "explain"),
        ("SHOW CREATE TABLE IF NOT EXISTS t", "mysql", "show"),
        ("SHOW ALL TABLES", "duckdb", "show"),
        ("SHOW", "duckdb", "show"),
        ("SUMMARIZE t", "duckdb", "describe"),
        ("PRAGMA table_info = t", "sqlite", "pragma"),
    ],
)
def test_a_statement_says_of_what_kind_it_is(sql: str, dialect: Dialect, kind: str):
    assert judge(sql, dialect).kind == kind


@pytest.mark.parametrize(
    ("sql", "dialect", "tables"),
    [
        (
            "WITH x AS (SELECT * FROM B) SELECT * FROM x JOIN s.A USING (id), generate_series(1, 2) g",
            "postgres",
            "b s.a",
        ),
        ("EXPLAIN SELECT * FROM a", "postgres", "a"),
        ("DESCRIBE `Db`.`T` id", "mysql", "db.t"),
        ("PRAGMA table_info('T')", "sqlite", "t"),
        ("SUMMARIZE main.t", "duckdb", "main.t"),
        ("SELECT 1", "tsql", ""),
    ],
)
def test_a_statement_names_the_tables_that_it_reads(sql: str, dialect: Dialect, tables: str):
    assert judge(sql, dialect).tables == tuple(tables.split())


def test_a_refusal_names_the_construct_and_says_what_to_write_instead():
    error = refused("SELECT * FROM a; DROP TABLE a")
    assert error.message.startswith("`;` ")
    assert error.suggestion == "Send each statement in a call of its own."
    assert error.code == "SQL_REFUSED"


def test_a_refusal_offers_what_a_statement_may_begin_with():
    assert refused("DROP TABLE a", "sqlite").options == ("explain", "pragma", "select", "values", "with")


def test_a_refusal_never_repeats_a_whole_text():
    error = refused(f"SELECT * FROM '{'secret ' * 100}'", "duckdb")
    assert len(error.message) < 200


def test_a_refusal_shows_no_invisible_character():
    error = refused("SELECT pg\u2060_sleep(1)")
    assert error.message.startswith("`\\u2060`")


@pytest.mark.parametrize("sql", ["", "  \n", ";", " ; ; ", "-- nothing", "/* nothing */"])
def test_an_empty_text_is_not_a_statement(sql: str):
    assert refused(sql).message == "the statement is empty"


def test_a_very_long_statement_is_refused_before_it_is_read():
    assert "100001 characters" in refused("x" * 100_001).message


def test_a_statement_of_very_many_words_is_refused():
    assert "words" in refused("SELECT " + "+".join(["1"] * DEEP)).message


@pytest.mark.parametrize("open_and_close", [("(", ")"), ("upper(", ")"), ("(SELECT ", ")"), ("NOT ", "")])
def test_a_very_deep_statement_is_refused_and_not_crashed_upon(open_and_close: tuple[str, str]):
    opening, closing = open_and_close
    assert refused("SELECT " + opening * 5_000 + "1" + closing * 5_000)


def test_what_is_deep_only_for_the_weighing_of_constants_is_refused_too():
    assert "nested too deeply" in refused("SELECT format('%s', " + " || ".join(["'a'"] * 5_000) + ")").message


VOLATILE: dict[str, Stability] = {"f_write": "volatile", "lower": "volatile", "f_read": "stable", "ts_stat": "stable"}


def test_a_function_that_the_engine_calls_stable_is_allowed():
    assert judge("SELECT f_read(1)", "postgres", functions=VOLATILE)
    assert refused("SELECT f_read(1)")


def test_a_function_that_the_engine_calls_volatile_is_refused():
    assert refused("SELECT f_write(1)", functions=VOLATILE)


def test_a_built_in_name_is_refused_where_the_engine_has_a_volatile_function_of_that_name():
    assert judge("SELECT lower('A')", "postgres")
    assert refused("SELECT lower('A')", functions=VOLATILE)


def test_a_safe_volatile_function_is_allowed_whatever_the_engine_says():
    assert judge("SELECT random()", "postgres", functions={"random": "volatile"})


def test_a_dangerous_function_is_refused_whatever_the_engine_says():
    assert refused("SELECT * FROM ts_stat('SELECT 1')", functions=VOLATILE)


@pytest.mark.parametrize("allowed", ["F_Write", "public.f_write"])
def test_a_function_of_the_users_making_is_allowed_by_name(allowed: str):
    assert judge("SELECT public.f_write(1)", "postgres", allowed=frozenset({allowed}))


def test_a_function_that_is_allowed_with_its_schema_is_not_allowed_without():
    assert refused("SELECT f_write(1)", allowed=frozenset({"public.f_write"}))


def test_a_table_function_of_the_users_making_is_allowed_by_name():
    assert judge("SELECT * FROM latest(3)", "duckdb", allowed=frozenset({"latest"}))


def test_a_type_of_the_users_making_is_allowed_by_name():
    assert judge("SELECT 'a'::public.mood", "postgres", allowed=frozenset({"public.mood"}))
    assert refused("SELECT 'a'::public.mood")
    assert judge("SELECT 'a'::pg_catalog.text", "postgres")


def test_a_package_of_the_users_making_is_allowed_by_name():
    assert judge("SELECT utl_own.f FROM dual", "oracle", allowed=frozenset({"utl_own.f"}))


def test_a_value_is_no_function_but_what_is_called_of_one_may_be():
    assert refused("SELECT (1.5).f_write", functions=VOLATILE)
    assert judge("SELECT (x).f_write, t.f_write FROM t", "postgres", functions=VOLATILE, allowed=frozenset({"f_write"}))
    assert judge("SELECT (x).random FROM t", "postgres", functions={"random": "volatile"})
