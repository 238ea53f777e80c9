"""Corners of single rules that no corpus row stands in."""

import pytest

from ullage.errors import Refused
from ullage.sql import Dialect
from ullage.sql.guard import judge

pytestmark = pytest.mark.requirement("S0:sql:read-only")

ALLOWED: list[tuple[Dialect, str]] = [
    ("postgres", "SELECT * FROM ROWS FROM (generate_series(1, 2), unnest(ARRAY[1, 2])) AS t(a, b)"),
    ("postgres", "SELECT repeat('x', n * 2) FROM t"),
    ("postgres", "SELECT * FROM t WHERE a = (1) AND (update) > 0 AND coalesce(delete, 1) = 1"),
    ("postgres", "EXPLAIN (SELECT 1)"),
    ("postgres", "EXPLAIN (FORMAT JSON, ANALYZE off) (SELECT 1)"),
    ("postgres", "SELECT repeat('x', n), lpad('x', -1), repeat('x', 0), rpad('x', 1 / 0) FROM t"),
    ("postgres", "SELECT format('%s', 'x'), array_fill(0, ARRAY[10, 10]), generate_series(1, 1000000000)"),
    ("postgres", "SELECT lpad('x', CAST('10' AS int) - 1, 'y'), rpad('x', 'many')"),
    ("postgres", "SELECT current_setting('search_path'), current_setting('app.user', true)"),
    ("postgres", "SHOW app.tenant"),
    ("mysql", "SELECT LAST_INSERT_ID()"),
    ("mysql", "SELECT COUNT(*) FROM t PARTITION (p0)"),
    ("mysql", "SHOW ERRORS LIMIT 3"),
    ("mysql", "SELECT CHARSET('a'), @x, @@version"),
    ("duckdb", "SELECT * FROM range(10000000000)"),
    ("duckdb", "SELECT * FROM pivoted PIVOT (sum(x) FOR share IN (1, 2))"),
    ("duckdb", "SELECT range(n), format('{:10}', 1), list_resize([1], n), list_resize([1]) FROM t"),
    ("duckdb", "SELECT * FROM t, LATERAL unnest(t.x) u(y)"),
    ("sqlite", "SELECT printf('%5d', 1), zeroblob(10), printf()"),
    ("sqlite", "SELECT * FROM pragma_user_version"),
    ("sqlite", "PRAGMA integrity_check(10)"),
    ("tsql", "SELECT * FROM a INNER MERGE JOIN b ON a.id = b.id"),
    ("tsql", "SELECT * FROM a WITH (INDEX(i)) WHERE x = 1"),
    ("tsql", "SELECT x.value('.', 'int'), @@ROWCOUNT FROM docs"),
    ("oracle", "SELECT a.x.getclobval() FROM a"),
    ("oracle", "SELECT * FROM a, XMLTABLE('/r/i/text()' PASSING a.x COLUMNS b VARCHAR2(9) PATH '.')"),
]

REFUSED: list[tuple[Dialect, str, str]] = [
    ("postgres", "EXPLAIN (NONSENSE) SELECT 1", "is not an option"),
    ("postgres", "EXPLAIN (ANALYZE", "is not an option"),
    ("postgres", "EXPLAIN", "does not begin a query"),
    ("postgres", "SHOW", "no name of a table"),
    ("postgres", "SHOW 'x'", "no name of a table"),
    ("postgres", "SHOW a b", "one word too many"),
    ("postgres", "SELECT current_setting(E'data\\x5fdirectory')", "not written out"),
    ("postgres", "SELECT current_setting($$data_directory$$)", "describes the host"),
    ("postgres", "SELECT 1 FROM (SELECT 1) t(pg_sleep) WHERE pg_sleep(1) IS NULL", "pg_sleep()"),
    ("postgres", "SELECT * FROM a b(9)", "b()"),
    ("postgres", "SELECT ('t').pg_prewarm", "may do more than read"),
    ("postgres", "WITH x AS (CHECKPOINT) SELECT 1", "CTE"),
    ("postgres", "SELECT repeat('x', 2 ^ 5000)", "at once"),
    ("postgres", "SELECT repeat('x', (-2) ^ 1001.5)", "at once"),
    ("postgres", "SELECT array_fill(0, ARRAY[10000, 10000])", "at once"),
    ("postgres", "SELECT pg_catalog.repeat(repeat('x', 10000), 10000)", "at once"),
    ("postgres", "SELECT repeat(repeat('x', n), 10000000) FROM t", "at once"),
    ("postgres", "SELECT repeat(replace('aaaa', 'a', 'bbbbbbbbbb'), 200000)", "at once"),
    ("postgres", "SELECT 1 OPERATOR(pg_catalog", "user-defined operator"),
    ("mysql", "SHOW TABLES LIKE", "one word too many"),
    ("mysql", "SELECT GROUP_CONCAT(a LIMIT SLEEP(5)) FROM t", "cannot be read"),
    ("mysql", "SELECT GROUP_CONCAT(a LIMIT (SELECT LOAD_FILE('x'))) FROM t", "load_file()"),
    ("mysql", "SELECT id FROM t LIMIT ROWS EXAMINED SLEEP(5)", "cannot be read"),
    ("mysql", "SELECT id FROM t LIMIT 5 ROWS EXAMINED 100 INTO OUTFILE 'x'", "INTO"),
    ("mysql", "SHOW TABLES LIKE x", "one word too many"),
    ("mysql", "SHOW COUNT(*) TABLESX", "may be shown"),
    ("mysql", "DESCRIBE t a b", "one word too many"),
    ("mysql", "DESCRIBE t.", "no name of a table"),
    ("mysql", "EXPLAIN mysql.user", "secrets"),
    ("mysql", "SELECT @a:=-1", "sets a variable"),
    ("duckdb", "SHOW TABLES FROM a b", "one word too many"),
    ("duckdb", "PRAGMA table_info(a, b)", "one name"),
    ("duckdb", "PRAGMA table_info(=)", "one name"),
    ("duckdb", "SELECT * FROM upper('x')", "only read in FROM"),
    ("duckdb", "SELECT * FROM t, LATERAL histogram('x', y)", "only read in FROM"),
    ("duckdb", "SELECT * FROM t, LATERAL list_value(1)", "only read in FROM"),
    ("duckdb", "SELECT * FROM a JOIN 'x' USING (id)", "read as a file"),
    ("duckdb", "SELECT hex(repeat('x', 600000)), repeat(hex(repeat('x', 600)), 1000)", "at once"),
    ("sqlite", "PRAGMA", "only tell"),
    ("sqlite", "PRAGMA table_info = ", "one name"),
    ("tsql", "SELECT 1 FETCH NEXT FROM c", "cursor"),
    ("tsql", "SELECT * FROM t WITH (UPDLOCK)", "hint"),
    ("tsql", "SELECT INDEX FROM t", "begins a statement"),
    ("oracle", "SELECT dbms_output. FROM dual", "package"),
    ("oracle", "SELECT dbms_output.", "package"),
    ("oracle", "SELECT * FROM XMLTABLE('fn:doc(\"http://x/\")/a')", "fetches"),
]


@pytest.mark.parametrize(("dialect", "sql"), ALLOWED)
def test_a_harmless_neighbour_of_what_is_refused_is_allowed(dialect: Dialect, sql: str):
    assert judge(sql, dialect)


@pytest.mark.parametrize(("dialect", "sql", "reason"), REFUSED)
def test_a_harmful_neighbour_of_what_is_allowed_is_refused(dialect: Dialect, sql: str, reason: str):
    with pytest.raises(Refused) as caught:
        judge(sql, dialect)
    assert reason in caught.value.message


def test_a_misspelt_pragma_comes_with_the_nearest():
    with pytest.raises(Refused) as caught:
        judge("PRAGMA table_inf(people)", "sqlite")
    assert caught.value.options[0] == "table_info"
