"""What was refused without need is allowed, and what is near to it is not."""

import pytest

from ullage.errors import Refused
from ullage.sql import Dialect, Stability
from ullage.sql.guard import judge

pytestmark = pytest.mark.requirement("S0:sql:read-only")

FUNCTIONS: dict[str, Stability] = {
    "upper": "made",
    "pg_catalog.upper": "immutable",
    "substring": "made",
    "pg_catalog.substring": "immutable",
    "lower": "immutable",
    "pg_terminate_backend": "made",
    "pg_catalog.pg_terminate_backend": "volatile",
    "own": "made",
}
SEARCH: dict[str, Stability] = {"from:docs": "immutable", "from:load_extension": "immutable", "from:upper": "immutable"}


@pytest.mark.parametrize(
    ("sql", "dialect"),
    [
        (r"SELECT U&'d\0061t\+000061'", "postgres"),
        (r"SELECT u&'d!0061t!+000061' UESCAPE '!', 1", "postgres"),
        (r"SELECT * FROM t WHERE name = U&'\0441\043B' AND a = U&''", "postgres"),
        ("SELECT /*+ SeqScan(t) Set(enable_nestloop off) Set(random_page_cost 1.1) */ * FROM t", "postgres"),
        ("SELECT /*+ MAX_EXECUTION_TIME(1000) */ * FROM t", "mysql"),
        ("SELECT /*+ SET_VAR(optimizer_switch='mrr=on,mrr_cost_based=off') */ 1", "mysql"),
        ("SELECT /*+ BKA(t) NO_INDEX_MERGE(t i) */ * FROM t", "mysql"),
        ("SELECT /*! STRAIGHT_JOIN */ a.id FROM a JOIN b ON a.id = b.id", "mysql"),
        ("SELECT /*!40001 SQL_NO_CACHE */ * FROM t", "mysql"),
        ("SELECT * FROM t /*! USE INDEX (i, j) */ WHERE a = 1", "mysql"),
        ("SELECT /*+ set(anything) */ 1", "sqlite"),
        ("SHOW ALL", "postgres"),
        ("PRAGMA index_info(sqlite_autoindex_t_1)", "sqlite"),
        ("PRAGMA index_xinfo('sqlite_autoindex_odd name_2')", "sqlite"),
        ("SELECT * FROM t INDEXED BY sqlite_autoindex_t_1 WHERE a = 1", "sqlite"),
        ("SELECT * FROM t AS x INDEXED BY sqlite_autoindex_t_1, u NOT INDEXED", "sqlite"),
        ("SELECT * FROM t LIMIT 10 % 3", "sqlite"),
        ("SELECT * FROM t LIMIT 10 % 3 OFFSET 7 % 2", "postgres"),
        ("SELECT * FROM (SELECT a FROM t LIMIT 7 % (2 + 3)) x WHERE a % 2 = 0", "duckdb"),
        ("SELECT * FROM t LIMIT 10%", "duckdb"),
        ("SELECT * FROM t LIMIT 7 & 3 OFFSET 1 << 2", "postgres"),
        ("SELECT * FROM t LIMIT 10 % -3", "sqlite"),
        ("SELECT * FROM t FETCH FIRST (10 % 3) ROWS ONLY", "postgres"),
        ("SELECT calls FROM public.pg_stat_statements", "postgres"),
        ("SELECT id, user FROM information_schema.processlist", "mysql"),
        ("SELECT count(*), 2*id FROM information_schema.processlist GROUP BY id", "mysql"),
        ("SELECT pid, query FROM pg_stat_activity", "postgres"),
    ],
)
def test_what_only_reads_is_allowed(sql: str, dialect: Dialect):
    assert judge(sql, dialect).sql == sql


@pytest.mark.parametrize(
    ("sql", "dialect"),
    [
        (r"SELECT current_setting(U&'data\005fdirectory')", "postgres"),
        (r"SELECT U&'a\'; DROP TABLE t; --'", "postgres"),
        ('SELECT U&"pg_sl\\0065ep"(10)', "postgres"),
        (r"SELECT format(U&'%\0039\0039\0039\0039\0039\0039\0039\0039s', 'x')", "postgres"),
        (r"SELECT format(E'%\x39\x39\x39\x39\x39\x39\x39\x39s', 'x')", "postgres"),
        (r"SELECT U&'x' UESCAPE '!' INTO OUTFILE 'x'", "postgres"),
        ("SELECT U&'a' UESCAPE pg_sleep(9)", "postgres"),
        ("SELECT /*+ Set(statement_timeout 0) */ 1", "postgres"),
        ("SELECT /*+ Set(enable_nestloop off) Set(role postgres) */ 1", "postgres"),
        ("SELECT /*+ MAX_EXECUTION_TIME(0) */ 1", "mysql"),
        ("SELECT /*+ MAX_EXECUTION_TIME(99999999) */ 1", "mysql"),
        ("SELECT /*+ SET_VAR(max_join_size=99) */ 1", "mysql"),
        ("SELECT /*+ SET_VAR(optimizer_switch='x') SET_VAR(sql_mode='') */ 1", "mysql"),
        ("SELECT /*+ RESOURCE_GROUP(big) */ 1", "mysql"),
        ("SELECT users.ssn FROM t /*! STRAIGHT_JOIN */ users", "mysql"),
        ("SELECT 1 FROM `select` /*! STRAIGHT_JOIN */ users", "mysql"),
        ("SELECT /*! SQL_NO_CACHE 1 INTO OUTFILE '/tmp/x' */ 1", "mysql"),
        ("SELECT /*! SQL_NO_CACHE SLEEP(9), */ 1", "mysql"),
        ("SELECT * FROM t /*! USE INDEX (i) JOIN mysql.user */", "mysql"),
        ("SELECT * FROM t /*!50000INTO OUTFILE '/tmp/x'*/", "mysql"),
        ("SHOW data_directory", "postgres"),
        ("SHOW ALL; DROP TABLE t", "postgres"),
        ("SELECT * FROM pg_show_all_settings()", "postgres"),
        ("PRAGMA table_info(sqlite_dbpage)", "sqlite"),
        ("PRAGMA index_info(sqlite_dbpage)", "sqlite"),
        ("PRAGMA index_info(sqlite_autoindex_t_1); DROP TABLE t", "sqlite"),
        ("SELECT * FROM sqlite_autoindex_t_1", "sqlite"),
        ("SELECT * FROM t, sqlite_dbpage INDEXED BY sqlite_autoindex_t_1", "sqlite"),
        ("SELECT * FROM t INDEXED BY sqlite_dbpage", "sqlite"),
        ("SELECT * FROM t LIMIT 10 % load_extension('x')", "sqlite"),
        ("SELECT * FROM t LIMIT 10 % (SELECT pg_sleep(9))", "postgres"),
        ("SELECT * FROM t LIMIT 10 % 3; DROP TABLE t", "duckdb"),
        ("SELECT * FROM pg_stat_get_activity(NULL)", "postgres"),
        ("SELECT pg_stat_get_backend_activity(1)", "postgres"),
        ("SELECT * FROM information_schema.processlist", "mysql"),
        ("SELECT p.* FROM information_schema.processlist p", "mysql"),
        ("SELECT `info` FROM `information_schema`.`processlist`", "mysql"),
        ("SELECT id FROM t UNION SELECT info FROM information_schema . processlist", "mysql"),
        ("TABLE information_schema.processlist", "mysql"),
        ("SELECT sql_text FROM performance_schema.events_statements_history", "mysql"),
        ("SELECT * FROM sys.dm_exec_sql_text(1)", "tsql"),
        ("SELECT sql_text FROM v$sqlarea", "oracle"),
        ("SELECT test.pg_catalog.pg_settings.setting FROM test.pg_catalog.pg_settings", "postgres"),
    ],
)
def test_what_is_near_to_it_is_refused(sql: str, dialect: Dialect):
    with pytest.raises(Refused):
        judge(sql, dialect)


@pytest.mark.parametrize(
    ("sql", "runs"),
    [
        ("SELECT upper(a) FROM t", "SELECT pg_catalog.upper(a) FROM t"),
        ("SELECT Upper (a), lower(b) FROM t", "SELECT pg_catalog.Upper (a), lower(b) FROM t"),
        ("SELECT pg_catalog.upper(a)", ""),
        ("SELECT x FROM upper('a') AS x", "SELECT x FROM pg_catalog.upper('a') AS x"),
        ("SELECT substring(a FROM 2), substring(a, 2)", "SELECT substring(a FROM 2), pg_catalog.substring(a, 2)"),
        ("EXPLAIN SELECT upper(a)", "EXPLAIN SELECT pg_catalog.upper(a)"),
        ("SELECT lower(a), 'upper(x)' /* upper(x) */", ""),
    ],
)
def test_a_built_in_function_is_recognised_beside_a_user_defined_one_of_its_name(sql: str, runs: str):
    assert judge(sql, "postgres", functions=FUNCTIONS).runs == runs


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT own(1)",
        "SELECT made.upper(1)",
        "SELECT (a).upper FROM t",
        "SELECT pg_terminate_backend(1)",
        'SELECT "own"(1)',
    ],
)
def test_user_defined_functions_are_still_refused(sql: str):
    with pytest.raises(Refused):
        judge(sql, "postgres", functions=FUNCTIONS)


def test_a_full_text_table_may_be_called_in_from():
    for sql in ("SELECT * FROM docs('words') AS d", "SELECT 1 FROM main.\"Docs\"('words') JOIN t ON true"):
        assert judge(sql, "sqlite", functions=SEARCH)
    assert judge("SELECT upper(a) FROM t", "sqlite", functions=SEARCH).runs == ""
    for sql in (
        "SELECT load_extension('x')",
        "SELECT * FROM load_extension('x')",
        "SELECT * FROM other.docs('x')",
        "SELECT * FROM other('x')",
    ):
        with pytest.raises(Refused):
            judge(sql, "sqlite", functions=SEARCH)


@pytest.mark.parametrize(
    ("sql", "dialect", "near"),
    [
        ("SELECT uper(a) FROM t", "sqlite", "upper"),
        ("SELECT date_trnc('day', a) FROM t", "postgres", "date_trunc"),
        ("SELECT grop_concat(a) FROM t", "mysql", "group_concat"),
        ("SELECT list_agregate(a, 'sum') FROM t", "duckdb", "list_aggregate"),
    ],
)
def test_a_misspelt_function_gets_its_nearest_name(sql: str, dialect: Dialect, near: str):
    with pytest.raises(Refused) as caught:
        judge(sql, dialect)
    assert near in caught.value.options


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT setting FROM pg_settings",
        "SELECT setting FROM pg_catalog.pg_settings",
        'SELECT s.* FROM pg_catalog . "pg_settings" s',
        "WITH x AS (SELECT 1) SELECT * FROM x, pg_settings",
        "WITH RECURSIVE x AS (SELECT 1) SELECT * FROM x, pg_catalog.pg_settings",
        "(SELECT setting FROM pg_settings) UNION ALL SELECT '1'",
        "TABLE pg_settings",
        "SELECT (SELECT max(query) FROM pg_stat_activity)",
    ],
)
def test_settings_and_sessions_are_read_from_a_query_in_front(sql: str):
    runs = judge(sql, "postgres").runs
    table = "pg_stat_activity" if "pg_stat_activity" in sql else "pg_settings"
    assert runs.startswith("WITH ")
    assert runs.count(f"{table} AS (SELECT") == 1
    behind = runs.rpartition(") AS r)")[2]
    assert "pg_catalog" not in behind


def test_a_table_that_the_user_names_is_shown_as_it_is():
    assert judge("SELECT query FROM pg_stat_activity", "postgres", allowed=frozenset({"pg_stat_activity"})).runs == ""


def test_a_function_of_the_users_own_is_among_the_nearest():
    with pytest.raises(Refused) as refused:
        judge("SELECT vat_rat(1)", "postgres", allowed=frozenset({"vat_rate"}))
    assert refused.value.options[0] == "vat_rate"


SHOWN: dict[str, Stability] = {"shows:busy": "made", "shows:app.busy": "made"}


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM busy", 'TABLE "busy"', "SELECT 1 FROM db.app.Busy", "EXPLAIN TABLE busy"]
)
def test_a_view_that_shows_what_others_run_is_refused_unless_it_is_allowed(sql: str):
    with pytest.raises(Refused, match="other sessions"):
        judge(sql, "postgres", functions=SHOWN)
    assert judge(sql, "postgres", functions=SHOWN, allowed=frozenset({"busy"}))
    assert judge("SELECT * FROM other.busy", "postgres", functions=SHOWN)


def test_tables_that_show_too_much_are_replaced_in_a_plan_too():
    runs = judge("EXPLAIN (ANALYZE) SELECT 1 FROM pg_stat_activity WHERE query LIKE 'a%'", "postgres").runs
    assert runs.startswith("EXPLAIN (ANALYZE) WITH pg_stat_activity AS (")


@pytest.mark.parametrize(
    ("sql", "behind"),
    [
        ("SELECT variable_value FROM information_schema.global_variables", " FROM global_variables"),
        (
            "WITH a AS (SELECT 1) SELECT * FROM `performance_schema`.`SESSION_VARIABLES` v",
            " FROM `SESSION_VARIABLES` v",
        ),
        ("ANALYZE SELECT * FROM information_schema.system_variables", " FROM system_variables"),
    ],
)
def test_tables_of_settings_are_replaced_in_mysql(sql: str, behind: str):
    runs = judge(sql, "mysql").runs
    assert runs.endswith(behind)
    assert "_variables AS (SELECT" in runs
    assert judge("SELECT * FROM app.global_variables", "mysql").runs == ""
    with pytest.raises(Refused):
        judge("SHOW TABLES WHERE (SELECT 1 FROM information_schema.global_variables LIMIT 1) = 1", "mysql")
