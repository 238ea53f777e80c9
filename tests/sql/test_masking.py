import contextlib
import sqlite3
from dataclasses import replace

import duckdb
import pytest

from ullage.errors import Refused
from ullage.sql import Column, Dialect, Index, Structure, Table
from ullage.sql.column_masking import MaskPlan, mask_plan

pytestmark = pytest.mark.requirement("S0:sql:read-only")


def table(name: str, *columns: str, schema: str | None = None) -> Table:
    return Table(name=name, schema=schema, columns=tuple(Column(name=column, type="text") for column in columns))


SHOP = Structure(
    name="shop",
    tables=(
        replace(
            table("users", "id", "name", "password", "tags"),
            indexes=(
                Index(name="by_password", columns=("name", "lower(password)")),
                Index(name="by_name", columns=("name",)),
            ),
        ),
        table("orders", "id", "user_id", "total"),
        table("logins", "id", "password"),
        table("notes", "id", "body"),
        table("people", "id", "secret", schema="hr"),
        table("twice", "id", schema="a"),
        table("twice", "id", schema="b"),
    ),
)
PATTERNS = ("users.password", "hr.people.secret")


def plan(sql: str, dialect: Dialect = "postgres", patterns: tuple[str, ...] = PATTERNS) -> MaskPlan:
    return mask_plan(sql, dialect, SHOP, patterns)


@pytest.mark.parametrize(
    ("sql", "positions"),
    [
        ("SELECT id, password FROM users", (1,)),
        ("SELECT * FROM users", (2,)),
        ("SELECT u.*, 1 FROM users u", (2,)),
        ("SELECT 1, u.* FROM users u WHERE u.id = 3", (3,)),
        ('SELECT "password" AS name FROM public.users', (0,)),
        ("SELECT PassWord FROM USERS", (0,)),
        ("SELECT (((password))) p FROM shop.public.users", (0,)),
        ("TABLE users", (2,)),
        ("SELECT o.id, u.* FROM orders o JOIN users u ON u.id = o.user_id ORDER BY o.total", (3,)),
        ("SELECT * FROM orders o, users u", (5,)),
        ("SELECT * FROM (orders o JOIN users u ON u.id = o.user_id) JOIN notes n ON n.id = o.id", (5,)),
        ("SELECT x.secret FROM (SELECT password AS secret, id FROM users) x", (0,)),
        ("SELECT * FROM (SELECT id, password FROM users ORDER BY id LIMIT 5) x(a, b)", (1,)),
        ("SELECT b FROM users AS u(a, x, b)", (0,)),
        ("WITH x AS (SELECT * FROM users) SELECT name, password FROM x", (1,)),
        ("WITH x(a, b) AS (SELECT id, password FROM users), y AS (SELECT b, a FROM x) SELECT * FROM y", (0,)),
        ("WITH users AS (SELECT id, password FROM users) SELECT * FROM users", (1,)),
        ("WITH x AS (SELECT 1 AS password) SELECT password FROM x, users u WHERE u.id = 1", (0,)),
        ("SELECT id, body FROM notes UNION ALL SELECT id, password FROM users ORDER BY 1", (1,)),
        ("(SELECT password, id FROM users LIMIT 1) UNION ALL (SELECT body, id FROM notes)", (0,)),
        ("SELECT id, (SELECT u.password FROM users u WHERE u.id = o.user_id) FROM orders o", (1,)),
        ("SELECT id, (SELECT password) AS p FROM users", (1,)),
        ("SELECT x.p FROM users u CROSS JOIN LATERAL (SELECT u.password AS p) x", (0,)),
        ("SELECT secret FROM hr.people", (0,)),
        ("SELECT password FROM users u JOIN orders o USING (id)", (0,)),
        ("SELECT u.* FROM users u JOIN orders o USING (id)", (2,)),
        ("SELECT password, ctid FROM users", (0,)),
        ("SELECT * FROM users NATURAL JOIN notes", (2,)),
        ("SELECT * FROM (SELECT 1 AS more, 2 AS id) x NATURAL JOIN users", (3,)),
        ("SELECT id, password FROM users ORDER BY ((1)) LIMIT (2)", (1,)),
        ("SELECT DISTINCT ON (id) id, password FROM users ORDER BY id", (1,)),
        (
            "WITH RECURSIVE x(n, p) AS (SELECT id, password FROM users UNION ALL SELECT n + 1, p FROM x) TABLE x",
            (1,),
        ),
        (
            "WITH RECURSIVE x AS (SELECT password FROM users) SELECT password FROM x",
            (0,),
        ),
        (
            "WITH RECURSIVE x(a, b) AS (SELECT id, password FROM users UNION ALL SELECT b, a FROM x) TABLE x",
            (0, 1),
        ),
        ("SELECT password FROM users FOR UPDATE", (0,)),
        ("SELECT u.password, t.value FROM users u, jsonb_array_elements(u.tags) AS t(value)", (0,)),
        ("SELECT u.password, g FROM users u, ROWS FROM (generate_series(1, 2)) AS g", (0,)),
        ("SELECT password, array_position(ARRAY[1], id) FROM users", (0,)),
        ("SELECT password, count(*) OVER () FROM users", (0,)),
        ("SELECT u.password, v.a FROM users u, (VALUES (1, 2)) AS v(a, b)", (0,)),
    ],
)
def test_a_masked_column_that_is_only_passed_on_is_hidden(sql: str, positions: tuple[int, ...]):
    assert plan(sql).positions == positions


def test_a_table_that_is_not_known_is_named_where_it_is_refused():
    with pytest.raises(Refused, match="orders_"):
        plan("SELECT id, name FROM orders_ UNION ALL SELECT id, password FROM users")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "SELECT * FROM orders",
        "SELECT password FROM logins WHERE password = 'x'",
        "SELECT id, name FROM users WHERE name LIKE 'A%' ORDER BY name",
        "SELECT count(*) FROM users",
        "SELECT name, count(*) FROM users GROUP BY name HAVING count(*) > 1 ORDER BY 2",
        "SELECT n FROM (SELECT count(*) n FROM users) x",
        "SELECT count FROM (SELECT count(*) FROM users) x",
        "SELECT id FROM orders o WHERE EXISTS (SELECT * FROM users u WHERE u.id = o.user_id)",
        "SELECT id FROM orders WHERE user_id IN (SELECT id FROM users)",
        "SELECT id FROM (SELECT * FROM users) x",
        "SELECT DISTINCT name FROM users UNION SELECT body FROM notes",
        "SELECT * FROM information_schema.tables",
        "SELECT relname FROM pg_catalog.pg_class",
        "SELECT * FROM generate_series(1, 3) g",
        "SELECT ROW(n.*) FROM notes n, users u",
        "SELECT n FROM notes n, users u",
        "SELECT id, xmin FROM users",
        "EXPLAIN SELECT password FROM users",
        "EXPLAIN (ANALYZE, FORMAT json) SELECT password FROM users",
        "EXPLAIN ANALYZE SELECT id FROM users WHERE name = 'x'",
        "SHOW server_version",
        "SELECT twice.id FROM a.twice",
        "VALUES (1, 2)",
        "WITH x AS (VALUES (1)) SELECT 1 FROM x, users",
        "EXPLAIN (SELECT id FROM users)",
        "EXPLAIN users",
        "SELECT (SELECT count(*) FROM users), * FROM orders JOIN notes USING (id)",
    ],
)
def test_other_columns_are_asked_as_ever(sql: str):
    assert plan(sql).positions == ()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT upper(password) FROM users",
        "SELECT password::text FROM users",
        "SELECT password || '' FROM users",
        "SELECT CASE WHEN password LIKE 'a%' THEN 1 END FROM users",
        "SELECT id FROM users WHERE password = 'x'",
        "SELECT id FROM users u WHERE u.password > 'a'",
        "SELECT id FROM users WHERE (SELECT password) = 'x'",
        "SELECT id FROM users ORDER BY password",
        "SELECT password FROM users ORDER BY 1",
        "SELECT id, password FROM users ORDER BY - -2",
        "SELECT id, password FROM users ORDER BY id, -(-(2)) DESC",
        "SELECT max(id), password FROM users GROUP BY (+2)",
        "SELECT id, password FROM users NATURAL JOIN logins",
        "SELECT id, password p FROM users ORDER BY p",
        "SELECT id, password AS name FROM users ORDER BY name",
        "SELECT DISTINCT password FROM users",
        "SELECT DISTINCT ON (password) id FROM users",
        "SELECT DISTINCT ON (2) id, password FROM users",
        "SELECT password, count(*) FROM users GROUP BY password",
        "SELECT password, count(*) FROM users GROUP BY 1",
        "SELECT count(*) FROM users GROUP BY ROLLUP (password)",
        "SELECT count(password) FROM users",
        "SELECT count(DISTINCT password) FROM users",
        "SELECT max(password) FROM users",
        "SELECT id FROM users GROUP BY id HAVING max(password) > 'a'",
        "SELECT count(*) FILTER (WHERE password = 'x') FROM users",
        "SELECT row_number() OVER (ORDER BY password) FROM users",
        "SELECT row_number() OVER w FROM users WINDOW w AS (PARTITION BY password)",
        "SELECT o.id FROM orders o JOIN users u ON u.password = 'x'",
        "SELECT o.id FROM logins o JOIN users u USING (password)",
        "SELECT o.id FROM logins o NATURAL JOIN users u",
        "WITH RECURSIVE x AS (TABLE users UNION ALL SELECT * FROM x) SEARCH DEPTH FIRST BY password SET o TABLE x",
        "WITH RECURSIVE x AS (TABLE users UNION ALL SELECT * FROM x) CYCLE password SET c USING p SELECT p FROM x",
        "WITH RECURSIVE x AS (TABLE users UNION ALL SELECT * FROM x) CYCLE other SET c USING p SELECT p FROM x",
        "SELECT u FROM users u",
        "SELECT users FROM users",
        "SELECT u FROM users u, jsonb_each(u.tags) j",
        "SELECT row_to_json(u) FROM users u",
        "SELECT to_jsonb(u.*) FROM users u",
        "SELECT (u.*)::text FROM users u",
        "SELECT u::text FROM users u",
        "SELECT ROW(u.*) FROM users u",
        "SELECT (u).password FROM users u",
        "SELECT (x).password FROM (SELECT u AS x FROM users u) y",
        "SELECT password(u) FROM users u",
        "SELECT u.upper FROM users u",
        "SELECT json_agg(x) FROM (SELECT * FROM users) x",
        "SELECT array(SELECT password FROM users)",
        "SELECT id FROM users WHERE id IN (SELECT id FROM users WHERE password = 'x')",
        "SELECT id FROM logins WHERE password IN (SELECT password FROM users)",
        "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM users WHERE password = 'x')",
        "SELECT upper((SELECT password FROM users LIMIT 1))",
        "SELECT password FROM users UNION SELECT 'guess'",
        "SELECT body FROM notes UNION SELECT password FROM users",
        "SELECT password FROM users INTERSECT SELECT 'guess'",
        "SELECT 'guess' EXCEPT SELECT password FROM users",
        "SELECT id, password FROM users UNION ALL SELECT 1",
        "SELECT body b FROM notes UNION ALL SELECT password FROM users ORDER BY b",
        "SELECT body b FROM notes UNION ALL SELECT password FROM users ORDER BY 1",
        "SELECT upper(s) FROM (SELECT password AS s FROM users) x",
        "WITH x AS (SELECT password AS s FROM users) SELECT id FROM notes, x WHERE x.s = body",
        "WITH RECURSIVE x(n, p) AS (SELECT id, password FROM users UNION SELECT n + 1, p FROM x) SELECT n FROM x",
        "WITH RECURSIVE x(n, p) AS (SELECT 1, '' UNION ALL SELECT length(p), password FROM x, users) TABLE x",
        "WITH RECURSIVE notes_ AS (SELECT * FROM logins2), logins2 AS (SELECT password FROM users) TABLE notes_",
        "WITH RECURSIVE a AS (SELECT body FROM notes), notes AS (SELECT password AS body FROM users) TABLE a",
        "SELECT (SELECT password FROM users LIMIT 1) = 'x'",
        'SELECT upper(x.password) FROM (SELECT 1 AS "PASSWORD", (SELECT password FROM users LIMIT 1)) x',
        "SELECT * FROM (VALUES ((SELECT password FROM users LIMIT 1))) v(a)",
        "SELECT x FROM users, unnest(ARRAY[password]) x",
        "SELECT * FROM users u, jsonb_each(u.tags) j",
        "SELECT * FROM users, query_to_xml('SELECT 1', true, true, '') x",
        "SELECT * FROM generate_series(1, (SELECT password FROM users LIMIT 1)::int) g",
        "SELECT * FROM unknown_table",
        "SELECT most_common_vals FROM pg_stats",
        "SELECT * FROM twice",
        "SELECT id FROM other.users",
        "SELECT id FROM elsewhere.public.users",
        "SELECT unknown_column FROM users",
        "SELECT z.id FROM users u",
        "SELECT z.* FROM users u",
        "SELECT users_.password.x FROM users users_",
        "SELECT password.x FROM users",
        "SELECT id FROM users LIMIT (SELECT length(password) FROM users LIMIT 1)",
        "SELECT password INTO x FROM users",
        "SELECT id FROM users TABLESAMPLE BERNOULLI (length(password))",
        "SELECT id FROM orders TABLESAMPLE BERNOULLI ((SELECT length(password) FROM users LIMIT 1))",
        "SELECT id FROM users u CROSS JOIN LATERAL (VALUES (1), (2) LIMIT length(u.password)) v",
        "SELECT * FROM (orders o JOIN users u ON u.id = o.user_id) AS j",
        "SELECT * FROM users u JOIN users u ON true",
        'SELECT u.password FROM notes "U", users u',
        'SELECT (SELECT upper(u.password) FROM logins "U") FROM users u',
        'SELECT (SELECT upper(password) FROM (SELECT 1 AS "PASSWORD") z) FROM users u',
        'WITH "USERS" AS (SELECT 1 AS password) SELECT password FROM users',
        'WITH x AS (SELECT password FROM users), "X" AS (SELECT 1 AS password) SELECT password FROM x',
        "WITH x AS (DELETE FROM users RETURNING password) SELECT * FROM x",
        "WITH RECURSIVE x AS (SELECT password FROM users) SEARCH DEPTH FIRST BY password SET o SELECT * FROM x",
        "SELECT id FROM users u(a, b, c, d, e)",
        "SELECT v.* FROM (SELECT u.*, j.* FROM users u, jsonb_each(u.tags) j) v(a, b)",
        "SELECT (SELECT id, password FROM users) FROM orders",
        "EXPLAIN SELECT id FROM users WHERE password = 'x'",
        "EXPLAIN (COSTS off) SELECT id FROM users ORDER BY password",
        "EXPLAIN FORMAT = 'json' SELECT id FROM users WHERE password = 'x'",
        "/* first */ EXPLAIN SELECT id FROM users WHERE password = 'x'",
        "DESC ANALYZE SELECT id FROM users WHERE password = 'x'",
        "EXPLAIN (SELECT id FROM users WHERE password = 'x')",
        "SELECT FROM WHERE",
        "DELETE FROM users",
        "COPY users TO STDOUT",
    ],
)
def test_any_other_use_of_a_masked_column_is_refused(sql: str):
    with pytest.raises(Refused) as refusal:
        plan(sql)
    assert refusal.value.suggestion


@pytest.mark.parametrize(
    ("dialect", "sql", "positions"),
    [
        ("duckdb", "FROM users", (2,)),
        ("duckdb", "SELECT * EXCLUDE (password) FROM users", ()),
        ("duckdb", "SELECT table_name FROM duckdb_tables", ()),
        ("sqlite", "SELECT l.name FROM pragma_table_list l, pragma_table_info(l.name) i", ()),
        ("mysql", "SELECT id, user, state FROM information_schema.processlist", ()),
        ("mysql", "SELECT id, info, info_binary FROM information_schema.processlist", (1, 2)),
        ("duckdb", "SELECT 0x10 + 0b11 FROM users", ()),
        ("duckdb", "SELECT * EXCLUDE (id) FROM users", (1,)),
        ("duckdb", "SELECT u.* EXCLUDE (id), 1 FROM users u", (1,)),
        ("duckdb", "SELECT list_transform([id], x -> x + 1), password FROM users", (1,)),
        ("duckdb", "SELECT password p, p AS q FROM users", (0, 1)),
        ("duckdb", "SELECT users.* FROM users SEMI JOIN orders ON users.id = orders.user_id", (2,)),
        ("duckdb", "SELECT * FROM users SEMI JOIN orders USING (id)", (2,)),
        ("duckdb", "SELECT COLUMNS('pass.*') FROM users", (0,)),
        ("duckdb", "SELECT COLUMNS('(name|word)$') FROM users", (1,)),
        ("duckdb", "SELECT COLUMNS('name') FROM users", ()),
        ("duckdb", "SELECT COLUMNS(['password', 'ID']) FROM users", (1,)),
        ("duckdb", "SELECT COLUMNS(* EXCLUDE (id)) FROM users", (1,)),
        ("duckdb", "SELECT count(COLUMNS(* EXCLUDE (password))) FROM users", ()),
        ("duckdb", "SELECT x FROM (SELECT COLUMNS('pass') AS x FROM users)", (0,)),
        ("duckdb", "PIVOT users ON name USING count(*) GROUP BY id", ()),
        ("duckdb", "PIVOT users ON name USING count(*) AS n GROUP BY id ORDER BY id, a_n LIMIT 3", ()),
        ("duckdb", "PIVOT (SELECT id, name FROM users) ON name USING count(*)", ()),
        ("duckdb", "SELECT * FROM orders PIVOT (sum(total) FOR user_id IN (1, 2) GROUP BY id) AS p", ()),
        ("duckdb", "UNPIVOT orders ON COLUMNS(* EXCLUDE (id)) INTO NAME k VALUE v", ()),
        ("duckdb", "UNPIVOT (SELECT id, name FROM users) ON id, name INTO NAME k VALUE v", ()),
        ("duckdb", "SUMMARIZE orders", ()),
        ("duckdb", "SUMMARIZE SELECT id FROM users", ()),
        ("duckdb", "WITH p AS (PIVOT orders ON total USING count(*)) SELECT u.password FROM p, users u", (0,)),
        ("duckdb", "SELECT u.password FROM (PIVOT orders ON total USING count(*)) p JOIN users u USING (id)", (0,)),
        ("duckdb", "SELECT * FROM users JOIN orders USING (id)", (2,)),
        ("duckdb", "SELECT * FROM orders JOIN users USING (id)", (4,)),
        ("sqlite", "SELECT * FROM orders o JOIN notes USING (id) JOIN users USING (id)", (5,)),
        ("postgres", "SELECT * FROM users u JOIN orders o USING (id)", (2,)),
        ("postgres", "SELECT * FROM users u JOIN logins l USING (id, name)", (2,)),
        ("postgres", "SELECT * FROM users u JOIN logins l USING (name)", (2,)),
        ("postgres", "SELECT * FROM (SELECT * FROM orders JOIN users USING (id)) x", (4,)),
        ("mysql", "SELECT * FROM users u JOIN logins l USING (name, id)", (2,)),
        ("mysql", "SELECT u.password, s.seq FROM users u, seq_1_to_5 s", (0,)),
        (
            "postgres",
            "WITH RECURSIVE x AS (TABLE users UNION ALL SELECT * FROM x) SEARCH DEPTH FIRST BY id SET o TABLE x",
            (2,),
        ),
        ("mysql", "SELECT `password` FROM `users`", (0,)),
        ("mysql", "SELECT total FROM orders PARTITION (p0)", ()),
        ("sqlite", 'SELECT "password", [id] FROM "users"', (0,)),
        ("sqlite", "SELECT u.password FROM users u, json_each(u.tags)", (0,)),
        ("tsql", "SELECT TOP 5 [password] FROM [dbo].[users]", (0,)),
        ("tsql", "SELECT p = password FROM users", (0,)),
        ("tsql", "SELECT y.p FROM users CROSS APPLY (SELECT users.password AS p) y", (0,)),
        ("oracle", "SELECT password, rownum FROM users", (0,)),
        ("sqlite", "PRAGMA table_info(users)", ()),
        ("mysql", "DESCRIBE users", ()),
    ],
)
def test_every_dialect_is_read_in_its_own_way(dialect: Dialect, sql: str, positions: tuple[int, ...]):
    assert plan(sql, dialect).positions == positions


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("duckdb", "SELECT id, password FROM users ORDER BY 2 COLLATE NOCASE"),
        ("sqlite", "SELECT id, password FROM users ORDER BY 2 COLLATE NOCASE DESC"),
        ("sqlite", "SELECT max(id), password FROM users GROUP BY 2 COLLATE NOCASE"),
        ("sqlite", "SELECT id, password FROM users ORDER BY likely(2)"),
        ("sqlite", "SELECT id, password FROM users ORDER BY unlikely(likelihood(2, 0.5))"),
        ("sqlite", "SELECT id, password FROM users ORDER BY 0x2"),
        ("duckdb", "SELECT id, password FROM users ORDER BY 0x2"),
        ("duckdb", "SELECT COLUMNS('[p]ass') FROM users"),
        ("duckdb", "SELECT COLUMNS('(a*)*') FROM users"),
        ("duckdb", "SELECT COLUMNS('" + ".*" * 25 + "x') FROM users"),
        ("duckdb", "SELECT COLUMNS('(') FROM users"),
        ("duckdb", "SELECT COLUMNS('pass') FROM users, orders"),
        ("duckdb", "SELECT COLUMNS(lambda c: c LIKE 'pass%') FROM users"),
        ("duckdb", "SELECT max(COLUMNS('pass')) FROM users"),
        ("duckdb", "SELECT coalesce(*COLUMNS('pass')) FROM users"),
        ("duckdb", "SELECT id FROM users WHERE COLUMNS('pass') LIKE 'a%'"),
        ("duckdb", "SELECT #2 FROM users"),
        ("duckdb", "SELECT 1 FROM users ORDER BY #2"),
        ("duckdb", "SELECT COLUMNS(*)::text FROM users"),
        ("duckdb", "SELECT struct_pack(*) FROM users"),
        ("duckdb", "SELECT * LIKE 'pass%' FROM users"),
        ("duckdb", "SELECT * REPLACE (upper(password) AS name) FROM users"),
        ("duckdb", "SELECT * RENAME (password AS p) FROM users ORDER BY p"),
        ("duckdb", "SELECT password p, p || 'x' FROM users"),
        ("duckdb", "SELECT password FROM users ORDER BY ALL"),
        ("duckdb", "SELECT password, count(*) FROM users GROUP BY ALL"),
        ("duckdb", "SELECT id FROM users QUALIFY row_number() OVER (ORDER BY password) = 1"),
        ("duckdb", "SELECT unnest(u) FROM users u"),
        ("duckdb", "SELECT * AS name FROM users"),
        ("duckdb", "SELECT u.* AS name FROM users u"),
        ("duckdb", "SELECT u.password.x FROM users u"),
        ("duckdb", "SELECT list_transform([1], x -> password) FROM users"),
        ("duckdb", "SELECT [password FOR x IN [1]] FROM users"),
        ("duckdb", "SELECT id, password FROM users UNION ALL BY NAME SELECT 1 AS password, 2 AS id"),
        ("duckdb", "SELECT * FROM users PIVOT (count(*) FOR password IN ('a'))"),
        ("duckdb", "PIVOT users ON password"),
        ("duckdb", "UNPIVOT users ON password"),
        ("duckdb", "UNPIVOT users ON id INTO NAME k VALUE v"),
        ("duckdb", "PIVOT users ON name USING count(*)"),
        ("duckdb", "PIVOT users ON name USING first(password) GROUP BY id"),
        ("duckdb", "PIVOT users ON name USING count(*) GROUP BY password"),
        ("duckdb", "PIVOT users ON name USING count(*) GROUP BY id ORDER BY (SELECT max(password) FROM users)"),
        ("duckdb", "PIVOT users ON name USING count(*) GROUP BY ALL"),
        ("duckdb", "PIVOT users ON name USING count(*) GROUP BY 3"),
        ("duckdb", "PIVOT orders ON total USING first((SELECT max(password) FROM users)) GROUP BY id"),
        ("duckdb", "PIVOT orders ON total IN (SELECT password FROM users) USING count(*)"),
        ("duckdb", "WITH orders AS (SELECT password AS id FROM users) PIVOT orders ON id USING count(*)"),
        ("duckdb", "FROM users u, LATERAL (PIVOT (SELECT u.password AS p, id FROM orders) ON id USING first(p))"),
        ("duckdb", "SELECT u.password, p.* FROM users u, (PIVOT orders ON total USING count(*)) p"),
        ("duckdb", "SUMMARIZE SELECT password FROM users"),
        ("duckdb", "SUMMARIZE users"),
        ("duckdb", "SELECT * FROM query_table('users')"),
        ("duckdb", "SELECT * FROM query('SELECT password FROM users')"),
        ("duckdb", "SELECT * FROM 'users.parquet'"),
        ("mysql", "WITH USERS AS (SELECT 1 AS password) SELECT password FROM users"),
        ("mysql", "SELECT @x := password FROM users"),
        ("mysql", "SELECT id FROM orders FOR SYSTEM_TIME AS OF (SELECT password FROM users LIMIT 1)"),
        ("mysql", "SELECT id FROM users WHERE MATCH (password) AGAINST ('x')"),
        ("mysql", "SELECT password FROM users PROCEDURE ANALYSE()"),
        ("mysql", "SELECT id FROM users PARTITION (p0)"),
        (
            "sqlite",
            "WITH t(n, p) AS (SELECT id, password FROM users UNION ALL SELECT length(p), p FROM t) SELECT n FROM t",
        ),
        ("sqlite", "SELECT rowid FROM (SELECT name FROM users)"),
        ("tsql", "SELECT password FROM users FOR JSON AUTO"),
        ("oracle", "SELECT id FROM users START WITH password = 'x' CONNECT BY PRIOR id = name"),
        ("postgres", "SELECT 1" + " + (1" * 3_000 + ")" * 3_000 + " FROM users"),
    ],
)
def test_what_each_dialect_adds_gives_nothing_away(dialect: Dialect, sql: str):
    with pytest.raises(Refused):
        plan(sql, dialect)


@pytest.mark.parametrize(
    ("dialect", "hint"),
    [
        ("sqlite", "INDEXED BY by_{}"),
        ("mysql", "FORCE INDEX (by_{})"),
        ("mysql", "USE INDEX FOR ORDER BY (`BY_{}`)"),
    ],
)
def test_rows_may_not_be_put_in_the_order_of_an_index_on_masked_values(dialect: Dialect, hint: str):
    with pytest.raises(Refused, match=r"(?i)by_password"):
        plan(f"SELECT id FROM users {hint.format('password')}", dialect)
    assert plan(f"SELECT password FROM users {hint.format('name')}", dialect).positions == (0,)


@pytest.mark.parametrize(
    ("pattern", "table_name", "is_masked"),
    [
        ("users.password", "users", True),
        ("USERS.Password", "users", True),
        ("*.password", "logins", True),
        ("*.pass*", "logins", True),
        ("password", "logins", True),
        ("public.users.password", "users", True),
        ("*.users.password", "users", True),
        ("users.name", "users", False),
        ("orders.password", "users", False),
    ],
)
def test_patterns_name_columns(pattern: str, table_name: str, is_masked: bool):  # noqa: FBT001
    assert bool(plan(f"SELECT password FROM {table_name}", patterns=(pattern,)).positions) is is_masked


def test_a_schema_other_than_the_default_one_is_named_or_any():
    assert plan("SELECT secret FROM hr.people", patterns=("people.secret",)).positions == (0,)
    assert plan("SELECT secret FROM hr.people", patterns=("it.people.secret",)).positions == ()
    assert plan("SELECT secret FROM hr.people", patterns=("*.secret",)).positions == (0,)


def test_without_patterns_nothing_is_even_read():
    assert plan("SELECT FROM nonsense", patterns=()) == MaskPlan()


def test_a_refusal_names_the_column_and_what_to_do():
    with pytest.raises(Refused) as refusal:
        plan("SELECT id FROM users WHERE password = 'hunter2'")
    assert refusal.value.message == "`users.password` is masked and may not be used in `password = 'hunter2'`"
    assert "select it as it is" in refusal.value.suggestion
    with pytest.raises(Refused, match="`u`, which means the whole row"):
        plan("SELECT row_to_json(u) FROM users u")
    with pytest.raises(Refused, match=r"`CREATE .*…` might show them"):
        plan("SELECT password INTO x FROM users WHERE name = 'a name that is quite long, longer than it should be'")


def test_values_are_hidden_in_every_row():
    rows = ((1, "Ada", "hunter2", None), (2, "Grace", None, "x"))
    masked = plan("SELECT * FROM users").apply(("ID", "name", "password", "tags"), rows)
    assert masked == ((1, "Ada", "***", None), (2, "Grace", "***", "x"))
    assert plan("SELECT 1").apply(("a",), [(1,)]) == ((1,),)


@pytest.mark.parametrize("columns", [("id", "name", "password"), ("id", "password", "name", "tags")])
def test_an_answer_with_other_columns_than_expected_is_not_shown(columns: tuple[str, ...]):
    with pytest.raises(Refused, match="other columns"):
        plan("SELECT * FROM users").apply(columns, [])


def test_columns_that_cannot_be_counted_are_not_shown():
    with pytest.raises(Refused, match="cannot be counted"):
        plan("SELECT u.password, j.* FROM users u, jsonb_each(u.tags) j")


def keyed(key: Column) -> Structure:
    users = replace(SHOP.tables[0], columns=(key, *SHOP.tables[0].columns[1:]), primary_key=(key.name,))
    return Structure(name="shop", tables=(users, SHOP.tables[1]))


CERTAIN = keyed(Column(name="id", type="int", nullable=False))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, name, password, count(*) FROM users GROUP BY id, name, password",
        "SELECT u.password, sum(o.total) FROM users u JOIN orders o ON o.user_id = u.id GROUP BY u.password, u.id",
    ],
)
def test_a_masked_column_is_allowed_in_a_group_by_with_its_tables_key(sql: str):
    assert mask_plan(sql, "postgres", CERTAIN, PATTERNS).positions
    assert mask_plan(sql, "sqlite", keyed(Column(name="id", type="INTEGER")), PATTERNS).positions
    unknown = keyed(Column(name="id", type="text"))
    kin = Table(name="kin", schema="a", columns=unknown.tables[0].columns, parents=("None.users",))
    for structure in (unknown, replace(CERTAIN, tables=(*CERTAIN.tables, kin))):
        with pytest.raises(Refused, match="GROUP BY"):
            mask_plan(sql, "postgres", structure, PATTERNS)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT password, name, count(*) FROM users GROUP BY password, name",
        "SELECT user_id AS id, count(*) FROM orders o JOIN users u ON true GROUP BY id, password",
        "SELECT o.id, count(*) FROM orders o, users u GROUP BY o.id, u.password",
        "SELECT count(*) FROM users GROUP BY ROLLUP (id, password)",
        "SELECT count(*) FROM users GROUP BY GROUPING SETS ((id), (password))",
        "SELECT id FROM users GROUP BY id, upper(password)",
        "SELECT id FROM users GROUP BY id, password HAVING password > 'a'",
        "SELECT id, password FROM users GROUP BY id, password ORDER BY password",
        "SELECT count(*) FROM (SELECT id, password FROM users) x GROUP BY x.id, x.password",
        "SELECT count(*) FROM users AS u(a, id, password) GROUP BY id, password",
    ],
)
def test_a_key_allows_nothing_else_in_a_group_by(sql: str):
    with pytest.raises(Refused):
        mask_plan(sql, "postgres", CERTAIN, PATTERNS)


LEAKS = (
    "SELECT * FROM users u",
    "SELECT u.*, u.password AS again FROM users u",
    "SELECT * FROM users a, users b",
    "SELECT x.* FROM (SELECT id, password FROM users) x",
    "SELECT * FROM users JOIN orders ON orders.user_id = users.id",
    "SELECT * FROM users LEFT JOIN orders USING (id)",
    "SELECT * FROM orders RIGHT JOIN users USING (id)",
    "SELECT * FROM users a JOIN users b USING (name, id)",
    "SELECT * FROM users a JOIN (SELECT user_id, user_id AS id FROM orders) b USING (id)",
    "SELECT * FROM (SELECT * FROM users JOIN orders ON orders.user_id = users.id) x",
    "WITH users2 AS (SELECT name, password FROM users) SELECT password, name FROM users2",
    "SELECT name, id FROM users UNION ALL SELECT password, id FROM users",
    "SELECT (SELECT password FROM users LIMIT 1), id FROM orders",
    "SELECT u.password, o.* FROM orders o LEFT JOIN users u ON u.id = o.user_id",
    "SELECT (password), (SELECT password) FROM users",
    "SELECT * FROM users NATURAL JOIN orders",
    "SELECT * FROM (SELECT user_id AS id, total FROM orders) NATURAL LEFT JOIN users",
    "SELECT x.* FROM (SELECT (password), (SELECT password) FROM users) x",
    (
        "WITH RECURSIVE x(a, b, n) AS (SELECT name, password, 1 FROM users UNION ALL SELECT b, a, 2 FROM x WHERE n < 2)"
        " SELECT a FROM x"
    ),
)


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
@pytest.mark.parametrize("sql", LEAKS)
def test_no_masked_value_comes_out_of_a_real_database(dialect: Dialect, sql: str):
    connection = sqlite3.connect(":memory:") if dialect == "sqlite" else duckdb.connect()
    with contextlib.closing(connection):
        connection.execute("CREATE TABLE users (id int, name text, password text, tags text)")
        connection.execute("CREATE TABLE orders (id int, user_id int, total int)")
        connection.execute("INSERT INTO users VALUES (1, 'Ada', 'hunter2', '[]')")
        connection.execute("INSERT INTO orders VALUES (7, 1, 100), (1, 1, 5)")
        answer = connection.execute(sql)
        columns = [str(column[0]) for column in answer.description or ()]
        rows = plan(sql, dialect).apply(columns, [tuple(row) for row in answer.fetchall()])
    assert "***" in str(rows)
    assert "hunter2" not in str(rows)
