"""What the engines themselves say of their functions, held against the guard's lists."""

import sqlite3

import duckdb
import pytest

from ullage.errors import Refused
from ullage.sql import Dialect, Stability
from ullage.sql.guard import judge
from ullage.sql.guard.allowed_functions import CATALOGUES

pytestmark = pytest.mark.requirement("S0:sql:read-only")

POSTGRES = "host=127.0.0.1 port=5432 user=postgres dbname=test connect_timeout=2"


def is_allowed(sql: str, dialect: Dialect, functions: dict[str, Stability] | None = None) -> bool:
    try:
        judge(sql, dialect, functions=functions or {})
    except Refused:
        return False
    return True


@pytest.fixture(scope="module")
def volatility() -> dict[str, Stability]:
    """Of PostgreSQL's own functions, the least stable of each name."""
    import psycopg

    try:
        connection = psycopg.connect(POSTGRES)
    except psycopg.OperationalError:
        pytest.skip("no PostgreSQL answers at 127.0.0.1:5432")
    with connection:
        rows = connection.execute(
            "SELECT lower(proname), min(CASE provolatile WHEN 'v' THEN 1 WHEN 's' THEN 2 ELSE 3 END) FROM pg_proc"
            " WHERE pronamespace = 'pg_catalog'::regnamespace GROUP BY 1"
        ).fetchall()
    words: dict[int, Stability] = {1: "volatile", 2: "stable", 3: "immutable"}
    return {name: words[level] for name, level in rows}


def test_every_volatile_function_of_postgresql_is_refused_but_for_the_safe_ones(volatility: dict[str, Stability]):
    volatile = {name for name, stability in volatility.items() if stability == "volatile"}
    safe = CATALOGUES["postgres"].certain
    for functions in ({}, volatility):
        allowed = {name for name in volatile if is_allowed(f'SELECT "{name}"(1)', "postgres", functions)}
        assert allowed - safe == set()


def test_no_function_on_the_list_for_postgresql_is_volatile(volatility: dict[str, Stability]):
    assert {name for name in CATALOGUES["postgres"].names if volatility.get(name) == "volatile"} == set()


def test_nearly_every_function_of_postgresql_that_only_reads_is_allowed_where_its_catalogue_is_known(
    volatility: dict[str, Stability],
):
    steady = [name for name, stability in volatility.items() if stability != "volatile"]
    refused = [name for name in steady if not CATALOGUES["postgres"].knows(name, volatility)]
    assert len(refused) < 0.02 * len(steady)


def test_no_function_of_duckdb_that_writes_waits_or_reads_files_is_allowed():
    rows = duckdb.connect().execute("SELECT DISTINCT function_name, function_type, stability FROM duckdb_functions()")
    found = rows.fetchall()
    scalar = {name for name, kind, stability in found if kind == "scalar" and stability == "VOLATILE"}
    harmless = {"random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "error", "current_query"}
    harmless |= {"current_connection_id", "current_query_id", "current_transaction_id"}
    assert {name for name in scalar if is_allowed(f"SELECT {name}(1)", "duckdb")} <= harmless
    tables = {name for name, kind, _ in found if kind in ("table", "table_macro")}
    allowed = {name for name in tables if is_allowed(f"SELECT * FROM {name}('x')", "duckdb")}
    harmful = {"read_csv", "read_text", "read_blob", "read_parquet", "parquet_metadata", "sniff_csv", "glob"}
    harmful |= {"query", "query_table", "json_execute_serialized_sql", "checkpoint", "force_checkpoint"}
    harmful |= {"enable_logging", "truncate_duckdb_logs", "duckdb_logs", "duckdb_secrets", "which_secret"}
    assert harmful <= tables
    assert allowed & harmful == set()
    assert allowed <= (CATALOGUES["duckdb"].tables or set())


def test_no_function_of_sqlite_that_loads_logs_or_reorganises_is_allowed():
    rows = sqlite3.connect(":memory:").execute("SELECT DISTINCT name FROM pragma_function_list")
    names = {name for (name,) in rows if name.isidentifier()}
    refused = {name for name in names if not CATALOGUES["sqlite"].knows(name, {})}
    assert refused == names & {"load_extension", "fts3_tokenizer", "fts5", "optimize", "sqlite_log"}
    assert "sqlite_log" in refused


def test_every_function_of_mariadb_that_waits_locks_or_reads_files_is_refused():
    import pymysql

    try:
        connection = pymysql.connect(host="127.0.0.1", port=3306, user="root", connect_timeout=2)
    except pymysql.err.OperationalError:
        pytest.skip("no MariaDB answers at 127.0.0.1:3306")
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT lower(`function`) FROM information_schema.sql_functions")
        names = {name for (name,) in cursor.fetchall()}
    refused = {name for name in names if not CATALOGUES["mysql"].knows(name, {})}
    harmful = {"sleep", "benchmark", "load_file", "get_lock", "release_lock", "release_all_locks", "master_pos_wait"}
    assert harmful <= refused
    assert len(refused) < 0.15 * len(names)
