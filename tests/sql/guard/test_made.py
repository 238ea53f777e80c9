"""What users made in a database, under names that PostgreSQL or MySQL has of its own."""

import logging

import pytest

from ullage.errors import Refused
from ullage.sql import Dialect, Stability
from ullage.sql.guard import judge

pytestmark = pytest.mark.requirement("S0:sql:read-only")

MADE: dict[str, Stability] = {
    **dict.fromkeys(("lower", "random", "year", "string", "numeric", "range", "any_value", "->", ".full_name"), "made"),
    **dict.fromkeys(("pg_read_file", "lo_get", "http_get"), "volatile"),
    **dict.fromkeys(("upper", "::status", "::shop.status"), "immutable"),
}


def _judged(sql: str, dialect: Dialect = "postgres", *allowed: str) -> str | None:
    try:
        judge(sql, dialect, functions=MADE, allowed=frozenset(allowed))
    except Refused as refused:
        return refused.message
    return None


@pytest.mark.requirement("S0:sql:read-only")
@pytest.mark.parametrize(
    "call",
    [
        "lower(name)",
        "random('x')",
        "year(day)",
        "string('x')",
        'string ("x")',
        '"string"(x)',
        "range(1, 2)",
        "numeric(1)",
    ],
)
def test_a_call_that_may_resolve_to_a_user_defined_function_is_refused(call: str):
    assert "user-defined" in (_judged(f"SELECT {call} FROM t") or "")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT upper(name), x::numeric(10, 2), CAST(x AS numeric(10, 2)) FROM t",
        "SELECT sum(x) OVER (ORDER BY y RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
        "SELECT year, lower, t.random, t.string FROM t",
    ],
)
def test_the_same_word_that_is_no_call_is_not(sql: str):
    assert _judged(sql) is None


def test_what_the_settings_name_may_be_called():
    assert _judged("SELECT lower(name), year(day), a -> b FROM t", "postgres", "lower", "year", "->") is None


def test_mysql_takes_a_stored_function_for_one_that_it_has_not_itself():
    assert "user-defined" in (_judged("SELECT any_value(x) FROM t", "mysql") or "")


def test_a_user_defined_operator_for_ordinary_values_is_refused():
    assert "user-defined" in (_judged("SELECT a -> b FROM t") or "")


@pytest.mark.parametrize("name", ["full_name", "pg_read_file", "lo_get", "http_get"])
def test_a_row_is_not_asked_for_a_function_as_for_a_column(name: str):
    assert f".{name}" in (_judged(f"SELECT t.{name} FROM t") or "")


@pytest.mark.parametrize("name", ["lower", "lo_price", "http_status", "file_name", "nextval", "dblink_name"])
def test_a_column_may_be_called_as_no_function_of_this_database_is(name: str):
    assert _judged(f"SELECT t.{name} FROM t") is None


def test_a_value_is_asked_for_no_function_that_somebody_made():
    assert _judged("SELECT (t.a).year FROM t") is not None


def test_a_cast_to_an_enumeration_runs_nothing():
    assert _judged("SELECT 'paid'::status, NULL::shop.status, ARRAY['new']::status[] FROM t") is None
    assert "user-defined" in (_judged("SELECT 'x'::other.status") or "")


def test_a_statement_that_the_parser_does_not_know_is_not_logged(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING), pytest.raises(Refused):
        judge("WITH x AS (COPY t TO 's3cret') SELECT 1", "duckdb")
    assert caplog.text == ""
