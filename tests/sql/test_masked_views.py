"""Masked values do not show through views, generated columns, virtual tables or samples of a database file."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from sql.planted import PLAIN, SECRET, TABLES, Planting, opened, said
from ullage.errors import Refused, UllageError, UnknownName
from ullage.sql import Column, Dialect, Structure, Table
from ullage.sql.column_masking import mask_plan

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S0:sql:read-only")]

Made = Callable[[Path, Sequence[str]], str]


def make_sqlite(folder: Path, statements: Sequence[str]) -> str:
    with closing(sqlite3.connect(folder / "planted.db")) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return str(folder / "planted.db")


def make_duckdb(folder: Path, statements: Sequence[str]) -> str:
    with duckdb.connect(str(folder / "planted.duckdb")) as connection:
        for statement in statements:
            connection.execute(statement)
    return str(folder / "planted.duckdb")


@pytest.mark.parametrize("make", [make_sqlite, make_duckdb])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.heavy) for seed in range(2, 6))])
async def test_no_planted_secret_shows_through_random_views(tmp_path: Path, make: Made, seed: int):
    planting = Planting(seed)
    url = make(tmp_path, [*TABLES, *planting.views(25)])
    shown = 0
    async with opened(url, "people.secret") as source:
        for sql in planting.questions(40):
            answer = (await said(source, "query", sql=sql)).lower()
            assert SECRET not in answer, sql
            shown += PLAIN in answer
        for name in planting.columns:
            assert SECRET not in (await said(source, "table", name=name, sample=3)).lower()
    assert shown > 10


@pytest.mark.parametrize("make", [make_sqlite, make_duckdb])
async def test_views_show_what_is_not_masked_and_hide_what_is_computed(tmp_path: Path, make: Made):
    views = [
        "CREATE VIEW whole AS SELECT * FROM people",
        "CREATE VIEW computed AS SELECT id, upper(secret) AS loud, name FROM people",
        "CREATE VIEW again AS SELECT loud AS quiet, name FROM computed WHERE loud IS NOT NULL",
        "CREATE VIEW filtered AS SELECT id, name FROM people WHERE secret IS NOT NULL ORDER BY secret",
        "CREATE VIEW counted AS SELECT count(*) AS n, max(secret) AS top FROM people",
    ]
    async with opened(make(tmp_path, [*TABLES, *views]), "people.secret") as source:
        assert f"1,{PLAIN}1,***" in await said(source, "query", sql="SELECT * FROM whole ORDER BY id")
        assert f"1,***,{PLAIN}1" in await said(source, "query", sql="SELECT * FROM computed ORDER BY id")
        assert f"***,{PLAIN}1" in await said(source, "query", sql="SELECT * FROM again ORDER BY name")
        assert f"1,{PLAIN}1" in await said(source, "query", sql="SELECT * FROM filtered")
        assert "n=2\ntop=***" in await said(source, "query", sql="SELECT * FROM counted")
        refused = await said(source, "query", sql="SELECT name FROM again WHERE quiet LIKE 'z%'")
        assert "people.secret" in refused


async def test_generated_columns_of_sqlite_are_masked_by_what_they_are_computed_from(tmp_path: Path):
    made = [
        """CREATE TABLE t (id INTEGER, secret TEXT, "low er" TEXT AS (lower(secret)) STORED, twice INTEGER AS (id * 2),
             deep TEXT GENERATED ALWAYS AS (substr("low er", 1, 40)) VIRTUAL)""",
        f"INSERT INTO t (id, secret) VALUES (21, '{SECRET}')",
    ]
    async with opened(make_sqlite(tmp_path, made), "t.secret") as source:
        answer = await said(source, "query", sql="SELECT * FROM t")
        assert answer.startswith("id=21\nsecret=***\nlow er=***\ntwice=42\ndeep=***")


async def test_generated_columns_of_duckdb_are_masked_by_what_they_are_computed_from(tmp_path: Path):
    made = [
        "CREATE TABLE t (id INTEGER, secret TEXT, low TEXT AS (lower(secret)), twice INTEGER AS (id * 2))",
        f"INSERT INTO t VALUES (21, '{SECRET}')",
    ]
    async with opened(make_duckdb(tmp_path, made), "t.secret") as source:
        answer = await said(source, "query", sql="SELECT * FROM t")
        assert answer.startswith("id=21\nsecret=***\nlow=***\ntwice=42")


async def test_a_full_text_index_over_a_masked_table_is_masked(tmp_path: Path):
    made = [
        *TABLES,
        "CREATE VIRTUAL TABLE words USING fts5(secret, content='people', content_rowid='id')",
        "INSERT INTO words(words) VALUES ('rebuild')",
        "CREATE VIRTUAL TABLE terms USING fts5vocab('words', 'row')",
        "CREATE VIRTUAL TABLE apart USING fts5(body)",
        f"INSERT INTO apart VALUES ('{PLAIN}')",
    ]
    async with opened(make_sqlite(tmp_path, made), "people.secret") as source:
        for table in ("words", "terms", "words_idx", "words_data"):
            assert SECRET not in await said(source, "query", sql=f"SELECT * FROM {table}")
        assert PLAIN in await said(source, "query", sql="SELECT * FROM apart WHERE apart MATCH 'open*'")


async def test_what_duckdb_can_do_beyond_views_shows_nothing_either(tmp_path: Path):
    made = [
        *TABLES,
        "CREATE MACRO peek() AS (SELECT max(secret) FROM people)",
        "CREATE MACRO every() AS TABLE SELECT * FROM people",
        "CREATE VIEW by_macro AS SELECT peek() AS p",
        "CREATE VIEW by_table_macro AS FROM every()",
        "CREATE VIEW broken AS SELECT CAST(secret AS INTEGER) AS n FROM people",
    ]
    async with opened(make_duckdb(tmp_path, made), "people.secret") as source:
        for sql in (
            "SELECT * FROM by_macro",
            "SELECT * FROM by_table_macro",
            "SELECT * FROM broken",
            "PRAGMA storage_info('people')",
            "SELECT * FROM pragma_storage_info('people')",
            "SUMMARIZE people",
            "SELECT * FROM people USING SAMPLE 2",
            "FROM people",
            "EXPLAIN ANALYZE SELECT * FROM people",
        ):
            assert SECRET not in await said(source, "query", sql=sql), sql


async def test_pivots_and_chosen_columns_of_duckdb_show_only_what_is_not_masked(tmp_path: Path):
    made = [
        *TABLES,
        "CREATE VIEW pivoted AS FROM people PIVOT (first(secret) FOR id IN ('1', '2') GROUP BY name)",
        "CREATE VIEW unpivoted AS FROM people UNPIVOT (v FOR k IN (name, secret))",
        "CREATE VIEW chosen AS SELECT COLUMNS('name|secret') FROM people",
    ]
    async with opened(make_duckdb(tmp_path, made), "people.secret") as source:
        for sql in (
            "FROM pivoted",
            "FROM unpivoted",
            "FROM people PIVOT (first(secret) FOR id IN ('1', '2') GROUP BY name)",
            "PIVOT people ON id USING first(secret) GROUP BY name",
            "PIVOT people ON secret USING count(*) GROUP BY id",
            "PIVOT people ON id USING count(*)",
            "UNPIVOT people ON name, secret INTO NAME k VALUE v",
            "WITH notes AS (SELECT secret AS body, id FROM people) PIVOT notes ON body USING count(*) GROUP BY id",
            "FROM people p, LATERAL (PIVOT (SELECT p.secret AS s, id FROM notes) ON id USING first(s))",
            "SELECT max(COLUMNS('secret')) FROM people",
        ):
            answer = await said(source, "query", sql=sql)
            assert SECRET not in answer, sql
            assert "1 row" not in answer or "***" in answer, sql
        for sql, shown in (
            ("FROM chosen ORDER BY name", f"{PLAIN}1,***"),
            ("SELECT COLUMNS('name|secret') FROM people ORDER BY name", f"{PLAIN}1,***"),
            ("SELECT COLUMNS(['SECRET', 'id']) FROM people ORDER BY id", "1,***"),
            ("PIVOT people ON id USING first(name) GROUP BY id ORDER BY id", f"1,{PLAIN}1"),
            ("PIVOT notes ON id USING first(body)", f"{PLAIN}3"),
            ("SELECT p.secret, q.* EXCLUDE (id) FROM people p, (SELECT id FROM notes) q WHERE p.id = q.id", "***"),
            ("SUMMARIZE notes", f"{PLAIN}3"),
        ):
            answer = await said(source, "query", sql=sql)
            assert shown in answer, sql
            assert SECRET not in answer, sql


@pytest.mark.parametrize("make", [make_sqlite, make_duckdb])
async def test_a_misspelt_name_gets_its_nearest_with_masking_on(tmp_path: Path, make: Made):
    async with opened(make(tmp_path, TABLES), "people.secret") as source:
        assert "('people',)" in await said(source, "query", sql="SELECT id FROM poeple")
        assert "'name'" in await said(source, "query", sql="SELECT nmae FROM people")


async def test_the_number_of_a_row_is_masked_where_it_is_a_masked_key(tmp_path: Path):
    made = [
        "CREATE TABLE plain (id TEXT, secret TEXT)",
        f"INSERT INTO plain VALUES ('a', '{SECRET}')",
        "CREATE TABLE keyed (code INTEGER PRIMARY KEY, name TEXT)",
        "INSERT INTO keyed VALUES (4242, 'x')",
    ]
    async with opened(make_sqlite(tmp_path, made), "plain.secret", "keyed.code") as source:
        assert (await said(source, "query", sql="SELECT rowid, * FROM plain")).startswith("rowid=1\nid=a\nsecret=***")
        for sql in ("SELECT rowid, name FROM keyed", "SELECT k._rowid_ + 0 FROM keyed k", "SELECT oid AS a FROM keyed"):
            assert "4242" not in await said(source, "query", sql=sql)
        assert "***,x" in (await said(source, "query", sql="SELECT rowid, name FROM keyed UNION ALL SELECT 1, 'y'"))


async def test_what_is_made_later_is_read_then(tmp_path: Path):
    url = make_sqlite(tmp_path, TABLES)
    async with opened(url, "people.secret") as source:
        assert "***" in await said(source, "query", sql="SELECT secret FROM people")
        make_sqlite(tmp_path, ["CREATE VIEW late AS SELECT id, json_array(secret) AS hidden FROM people"])
        assert "1,***" in await said(source, "query", sql="SELECT * FROM late")


def columns(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name=name, type="text") for name in names)


FAMILY = Structure(
    name="shop",
    default_schema="app",
    catalogue=(
        Table(name="parent", schema="app", columns=columns("id", "secret")),
        Table(name="child", schema="other", columns=columns("id", "secret", "more"), parents=("app.parent",)),
        Table(name="grandchild", schema="app", columns=columns("id", "secret"), parents=("other.child",)),
        Table(name="stranger", schema="app", columns=columns("id", "secret")),
        Table(name="hidden_view", schema="app", kind="view", columns=columns("a", "b")),
        Table(name="circle", schema="app", kind="view", columns=columns("a"), definition="SELECT a FROM app.circle"),
        Table(name="odd", schema="app", kind="view", columns=columns("a", "b"), definition="SELECT id FROM app.parent"),
    ),
    tables=(Table(name="parent", columns=columns("id", "secret")),),
)


@pytest.mark.parametrize("pattern", ["parent.secret", "child.secret", "app.grandchild.secret", "other.child.secret"])
@pytest.mark.parametrize("table", ["parent", "app.parent", "other.child", "grandchild"])
def test_inheritance_passes_masks_on_in_both_directions(pattern: str, table: str):
    found = mask_plan(f"SELECT * FROM {table}", "postgres", FAMILY, (pattern,))
    assert found.positions == (1,)
    assert mask_plan("SELECT * FROM stranger", "postgres", FAMILY, (pattern,)).positions == ()


@pytest.mark.parametrize("view", ["hidden_view", "circle", "odd"])
def test_a_view_that_is_not_understood_is_masked_whole(view: str):
    found = mask_plan(f"SELECT * FROM {view}", "postgres", FAMILY, ("parent.secret",))
    assert len(found.positions) == len(found.columns) > 0


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("SELECT * REPLACE (upper(name) AS name) FROM people", "OPENVALUE1,***"),
        ("SELECT * REPLACE (secret AS name) FROM people", "1,***,***"),
        ("SELECT * REPLACE ('none' AS secret) FROM people", f"1,{PLAIN}1,none"),
        ("SELECT * RENAME (secret AS name2, name AS secret) FROM people", f"id,secret,name2\n1,{PLAIN}1,***"),
        ("SELECT d.* FROM (SELECT * RENAME (secret AS plain) FROM people) d", f"1,{PLAIN}1,***"),
        ("SELECT * FROM people SEMI JOIN notes ON people.id = notes.id", f"1,{PLAIN}1,***"),
        (
            "SELECT * FROM people ANTI JOIN notes ON people.id = notes.id AND people.id > '1'",
            f"name={PLAIN}1\nsecret=***",
        ),
        ("SELECT count(*) > 5 AS many FROM duckdb_functions()", "many=true"),
        ("SELECT * FROM repeat('a', 2)", "a\na"),
    ],
)
async def test_stars_that_replace_or_rename_columns_are_answered(tmp_path: Path, sql: str, answer: str):
    async with opened(make_duckdb(tmp_path, TABLES), "people.secret") as source:
        said_ = await said(source, "query", sql=sql)
        assert answer in said_
        assert SECRET not in said_


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * REPLACE (upper(secret) AS name) FROM people",
        "SELECT * REPLACE (secret AS name) FROM people ORDER BY name",
        "SELECT * RENAME (secret AS other) FROM people ORDER BY other",
        "SELECT * REPLACE ('none' AS secret) FROM people p JOIN people q USING (id)",
        "SELECT upper(d.other) FROM (SELECT * RENAME (secret AS other) FROM people) d",
        "SELECT id FROM people SEMI JOIN notes ON people.secret = notes.body",
        "SELECT * FROM people SEMI JOIN people AS p ON people.id = p.id WHERE p.secret > ''",
    ],
)
async def test_stars_that_replace_or_rename_columns_reveal_no_masked_ones(tmp_path: Path, sql: str):
    async with opened(make_duckdb(tmp_path, TABLES), "people.secret") as source:
        assert "masked" in await said(source, "query", sql=sql)


async def test_hidden_columns_of_full_text_tables_are_answered_where_nothing_in_them_is_masked(tmp_path: Path):
    made = [
        *TABLES,
        "CREATE VIRTUAL TABLE plain USING fts5(body)",
        f"INSERT INTO plain VALUES ('{PLAIN}')",
        "CREATE VIRTUAL TABLE words USING fts5(secret, content='people', content_rowid='id')",
        "INSERT INTO words(words) VALUES ('rebuild')",
        "CREATE INDEX by_name ON people(name)",
    ]
    async with opened(make_sqlite(tmp_path, made), "people.secret") as source:
        assert PLAIN in await said(source, "query", sql="SELECT body FROM plain('open*') ORDER BY rank")
        assert "rank=-" in await said(source, "query", sql="SELECT plain.rank FROM plain WHERE plain MATCH 'open*'")
        assert "***\n***" in await said(source, "query", sql="SELECT rank FROM words")
        assert "masked" in await said(source, "query", sql="SELECT id FROM people, words WHERE rank < 0")
        assert "name=name" in await said(source, "query", sql="SELECT name FROM pragma_index_info('by_name')")


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("mysql", "SELECT 1 FROM dual"),
        ("mysql", "ANALYZE SELECT id FROM people"),
        ("postgres", "SELECT * FROM ROWS FROM (generate_series(1, 2), unnest(ARRAY['a', 'b'])) AS t(a, b)"),
        ("postgres", """SELECT * FROM jsonb_to_record('{"a": 1}') AS x(a int)"""),
        ("postgres", "SELECT x.a FROM xmltable('/r' PASSING '<r/>' COLUMNS a int PATH '.') AS x"),
    ],
)
def test_statements_that_read_no_masked_column_are_understood(dialect: Dialect, sql: str):
    people = Structure(tables=(Table(name="people", columns=columns("id", "secret")),))
    assert mask_plan(sql, dialect, people, ["people.secret"]).positions == ()


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("mysql", "SELECT 1 FROM `dual`"),
        ("mysql", "ANALYZE SELECT id FROM people WHERE secret = 'x'"),
        ("postgres", "SELECT * FROM ROWS FROM (unnest((SELECT array_agg(secret) FROM people))) AS t(a)"),
        ("postgres", "SELECT x.* FROM people p, jsonb_to_record(to_jsonb(p)) AS x(secret text)"),
        ("postgres", "SELECT x.a FROM people p, xmltable('/r' PASSING p.secret COLUMNS a int PATH '.') AS x"),
    ],
)
def test_the_same_statements_over_a_masked_column_are_refused(dialect: Dialect, sql: str):
    people = Structure(tables=(Table(name="people", columns=columns("id", "secret")),))
    with pytest.raises(UllageError, match="masked"):
        mask_plan(sql, dialect, people, ["people.secret"])


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT '{SECRET}1' IN hidden",
        f"SELECT '{SECRET}1' IN 'hidden'",
        f"SELECT '{SECRET}1' NOT IN main.hidden",
        f"SELECT id FROM notes WHERE '{SECRET}1' IN hidden",
        f"WITH w AS (SELECT secret FROM people) SELECT '{SECRET}1' IN w",
        f"SELECT '{SECRET}1' IN (hidden)",
        f"SELECT '{SECRET}' IN words('z*')",
    ],
)
async def test_no_table_after_in_reveals_whether_it_contains_a_value(tmp_path: Path, sql: str):
    made = [*TABLES, "CREATE VIEW hidden AS SELECT secret FROM people", "CREATE VIRTUAL TABLE words USING fts5(secret)"]
    async with opened(make_sqlite(tmp_path, made), "*.secret") as source:
        assert "complete" not in await said(source, "query", sql=sql)


async def test_tables_after_in_are_answered_where_nothing_in_them_is_masked(tmp_path: Path):
    made = [*TABLES, "CREATE VIEW plain AS SELECT body FROM notes"]
    async with opened(make_sqlite(tmp_path, made), "people.secret") as source:
        for sql in (
            f"SELECT '{PLAIN}3' IN plain",
            "WITH w AS (SELECT 1) SELECT 1 IN w",
        ):
            assert "=1" in await said(source, "query", sql=sql)


async def test_a_counter_of_a_masked_key_is_masked(tmp_path: Path):
    made = [
        *TABLES,
        "CREATE TABLE counted (code INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT)",
        "INSERT INTO counted VALUES (918273, 'x')",
    ]
    url = make_sqlite(tmp_path, made)
    async with opened(url, "counted.code") as source:
        for sql in (
            "SELECT seq FROM sqlite_sequence",
            "SELECT * FROM sqlite_sequence",
            "SELECT seq + 0 FROM sqlite_sequence",
        ):
            assert "918273" not in await said(source, "query", sql=sql)
        assert "name=counted" in await said(source, "query", sql="SELECT name FROM sqlite_sequence")
    async with opened(url, "people.secret") as source:
        assert "seq=918273" in await said(source, "query", sql="SELECT * FROM sqlite_sequence")


async def test_no_plan_shows_what_the_conditions_of_a_view_compare_with(tmp_path: Path):
    made = [
        *TABLES,
        "CREATE VIEW compared AS SELECT id, body FROM notes WHERE body < (SELECT max(secret) FROM people)",
    ]
    async with opened(make_duckdb(tmp_path, made), "people.secret") as source:
        for sql in ("EXPLAIN ANALYZE SELECT * FROM compared", "EXPLAIN SELECT * FROM compared"):
            assert SECRET not in await said(source, "query", sql=sql)
        assert "compared" in await said(source, "query", sql="EXPLAIN ANALYZE SELECT id FROM compared")
        assert "explain_value" in await said(source, "query", sql="EXPLAIN ANALYZE SELECT id FROM people")
        assert "Seq Scan" in (await said(source, "explain", sql="SELECT * FROM compared")).replace(
            "SEQ_SCAN", "Seq Scan"
        )


async def test_no_error_in_a_view_shows_the_value_that_caused_it(tmp_path: Path):
    made = [
        "CREATE TABLE t (id INTEGER, secret TEXT, num INTEGER)",
        f"INSERT INTO t VALUES (1, '{SECRET}', 918273645)",
        "CREATE VIEW parsed AS SELECT id FROM t WHERE strptime(secret, '%Y') IS NOT NULL",
        "CREATE VIEW multiplied AS SELECT id FROM t WHERE num * num > 0",
        "CREATE VIEW raised AS SELECT id FROM t WHERE error(secret) IS NULL",
        "CREATE VIEW read AS SELECT id FROM t WHERE json_extract(secret, '$.a') IS NULL",
        "CREATE VIEW converted AS SELECT id FROM t WHERE secret::INTEGER > 0",
    ]
    async with opened(make_duckdb(tmp_path, made), "t.secret", "t.num") as source:
        for view in ("parsed", "multiplied", "raised", "read", "converted"):
            told = await said(source, "query", sql=f"SELECT * FROM {view} LIMIT 77")
            assert "Exception" in told, view
            assert SECRET not in told, view
            assert "918273645" not in told, view


PLANNED = Structure(
    default_schema="public",
    catalogue=(Table(name="people", schema="public", columns=columns("id", "secret")),),
    tables=(Table(name="people", columns=(*columns("id"), Column(name="secret", type="int", generated=True))),),
)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT s.most_common_vals FROM pg_stats s, (WITH pg_stats AS (SELECT 1) SELECT * FROM pg_stats) q",
        "WITH pg_stats AS (SELECT * FROM pg_stats) SELECT * FROM pg_stats",
        'WITH "PG_STATS" AS (SELECT 1 AS a) SELECT * FROM pg_stats',
        "WITH a AS (SELECT * FROM pg_stats), pg_stats AS (SELECT 1 AS x) SELECT * FROM a",
        "SELECT 1 FROM pg_stats WHERE EXISTS (WITH pg_stats AS (SELECT 1) SELECT * FROM pg_stats)",
        "SELECT attmissingval::text FROM pg_attribute",
        "SELECT * FROM pg_catalog.pg_attribute",
        "SELECT to_jsonb(a) FROM pg_attribute a",
        "SELECT max(last_value) FROM pg_sequences",
        "SELECT pg_sequence_last_value('people_secret_seq'::regclass)",
        "SELECT auto_increment + 1 FROM information_schema.tables",
        "SELECT pid FROM pg_stat_activity WHERE query LIKE '%x%'",
        "SELECT * FROM pg_stat_activity",
        "SELECT a::text FROM pg_stat_activity a",
    ],
)
def test_no_name_of_a_with_query_opens_a_table_of_the_server(sql: str):
    with pytest.raises((Refused, UnknownName)):
        mask_plan(sql, "postgres", PLANNED, ("people.secret",))


@pytest.mark.parametrize(
    "sql",
    [
        "WITH pg_stats AS (SELECT 1 AS a) SELECT * FROM pg_stats",
        "WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b",
        "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 3) SELECT * FROM a",
        "SELECT (WITH a AS (SELECT 1 AS x) SELECT max(x) FROM (SELECT * FROM a) q)",
        "SELECT attname FROM pg_attribute",
        "SELECT sequencename FROM pg_sequences",
        "SELECT table_name FROM information_schema.tables",
        "SELECT pid, state, wait_event FROM pg_stat_activity",
        "SELECT locktype, mode FROM pg_locks",
        "SELECT datname, xact_commit FROM pg_stat_database",
        "SELECT name FROM pg_available_extensions",
        "SELECT grantee FROM information_schema.table_privileges",
    ],
)
def test_with_queries_of_any_name_are_answered(sql: str):
    assert mask_plan(sql, "postgres", PLANNED, ("people.secret",)).positions == ()


def test_columns_that_a_star_leaves_out_are_counted_as_such():
    hidden = replace(columns("secret")[0], hidden=True)
    table = Table(name="people", columns=(*columns("id"), hidden, *columns("name")))
    people = Structure(tables=(table,))

    def positions(sql: str, pattern: str = "people.name") -> tuple[int, ...]:
        return mask_plan(sql, "mysql", people, (pattern,)).positions

    assert positions("SELECT * FROM people") == (1,)
    assert positions("SELECT p.*, secret FROM people p", "people.secret") == (2,)
    assert positions("SELECT * FROM people a JOIN people b USING (id)") == (1, 2)
    assert positions("SELECT x.* FROM (SELECT secret, id FROM people) x", "people.secret") == (0,)


def test_a_counter_in_a_description_is_masked():
    plan = mask_plan("SHOW TABLE STATUS", "mysql", PLANNED, ("people.secret",))
    rows = [("people", 7, "CREATE TABLE x ENGINE=InnoDB AUTO_INCREMENT=918 CHARSET=x"), ("notes", None, None)]
    assert plan.apply(("Name", "Auto_increment", "Create Table"), rows) == (
        ("people", "***", "CREATE TABLE x ENGINE=InnoDB AUTO_INCREMENT=*** CHARSET=x"),
        ("notes", None, None),
    )
    assert mask_plan("SHOW TABLE STATUS", "mysql", PLANNED, ("people.id",)).apply(("a",), [(1,)]) == ((1,),)


def test_a_condition_on_a_counter_is_refused_where_it_is_masked():
    sql = "SHOW TABLE STATUS WHERE `Auto_increment` > 5"
    with pytest.raises(Refused, match="auto_increment"):
        mask_plan(sql, "mysql", PLANNED, ("people.secret",))
    assert mask_plan(sql, "mysql", PLANNED, ("people.id",)).positions == ()
    assert mask_plan("SHOW TABLE STATUS WHERE Name = 'people'", "mysql", PLANNED, ("people.secret",)).hides_counters


@pytest.mark.parametrize(
    ("dialect", "sql", "is_refused"),
    [
        ("mysql", "EXPLAIN FORMAT=JSON SELECT * FROM compared", True),
        ("mysql", "explain format = tree select * from compared", True),
        ("mysql", "ANALYZE FORMAT=JSON SELECT * FROM people p JOIN compared c USING (id)", True),
        ("mysql", "EXPLAIN ANALYZE SELECT * FROM compared", True),
        ("mysql", "EXPLAIN SELECT * FROM compared", False),
        ("mysql", "EXPLAIN FORMAT=TRADITIONAL SELECT * FROM compared", False),
        ("mysql", "EXPLAIN FORMAT=JSON SELECT * FROM people", False),
        ("duckdb", "EXPLAIN ANALYZE SELECT * FROM compared", True),
        ("duckdb", "EXPLAIN SELECT * FROM compared", False),
        ("postgres", "EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM compared", False),
    ],
)
def test_a_plan_of_a_view_with_values_is_refused(dialect: Dialect, sql: str, *, is_refused: bool):
    view = Table(
        name="compared",
        kind="view",
        columns=columns("id"),
        definition="SELECT id FROM people WHERE secret > 'a'",
    )
    structure = Structure(tables=(Table(name="people", columns=columns("id", "secret")), view))
    if is_refused:
        with pytest.raises(Refused, match="compared"):
            mask_plan(sql, dialect, structure, ("people.secret",))
    else:
        assert mask_plan(sql, dialect, structure, ("people.secret",)).positions == ()


async def test_a_search_for_a_masked_value_does_not_show_it_as_the_name_of_a_column(tmp_path: Path):
    made = [
        "CREATE VIRTUAL TABLE docs USING fts5(body)",
        "INSERT INTO docs VALUES ('open')",
        "CREATE VIEW searched AS SELECT p.id FROM people p, docs WHERE docs MATCH p.secret || ':open'",
    ]
    async with opened(make_sqlite(tmp_path, [*TABLES, *made]), "people.secret") as source:
        answer = await said(source, "query", sql="SELECT * FROM searched")
        assert "no such column" in answer
        assert SECRET not in answer
        assert "'searched.id'" in await said(source, "query", sql="SELECT ids FROM searched")


async def test_a_misspelt_column_is_named_under_masks(tmp_path: Path):
    async with opened(make_duckdb(tmp_path, TABLES), "people.secret") as source:
        answer = await said(source, "query", sql="SELECT n.boddy FROM notes n")
        assert 'Table "n" does not have a column named "boddy"' in answer
        assert "'notes.body'" in answer
