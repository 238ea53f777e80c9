"""Masked values do not show through what a server derives from them, nor to the role that Ullage's own SQL makes."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import psycopg
import pymysql
import pytest
from psycopg import sql as quoting
from sqlalchemy import URL

from sql.network.servers import NAME, PASSWORD, Stage, connected, run
from sql.planted import PLAIN, SECRET, TABLES, Planting, said
from sql.planted import opened as planted_source
from ullage.sql import QueryRunner, SqlSource
from ullage.tool import ANONYMOUS, Asked

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S0:sql:read-only")]

ROLE = f"{NAME}_masked"
POSTGRESQL = f"""
CREATE TABLE keyed (id int PRIMARY KEY, secret text);
INSERT INTO keyed VALUES (7, '{SECRET}'), (8, '{SECRET}');
CREATE TABLE numbered (id int, num serial);
INSERT INTO numbered VALUES (1, 918273645); SELECT setval('numbered_num_seq', 918273645);
CREATE MATERIALIZED VIEW stored AS SELECT id, left(secret, 40) AS part, name FROM people;
CREATE TABLE kin (more text) INHERITS (people);
INSERT INTO kin VALUES ('3', '{PLAIN}5', '{SECRET}3', '{PLAIN}6');
CREATE TABLE made (id int, secret text, low text GENERATED ALWAYS AS (lower(secret)) STORED,
  twice int GENERATED ALWAYS AS (id * 2) STORED);
INSERT INTO made VALUES (21, '{SECRET}');
CREATE TABLE parted (id int, secret text) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10);
INSERT INTO parted VALUES (1, '{SECRET}');
CREATE FUNCTION raises(text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
  BEGIN RAISE EXCEPTION USING ERRCODE = 'undefined_column', MESSAGE = 'found ' || $1, HINT = $1; END $$;
CREATE VIEW raising AS SELECT id FROM people WHERE raises(secret) > 0;
CREATE FUNCTION raises_like_a_name(text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
  BEGIN RAISE EXCEPTION 'relation "%" does not exist', $1; END $$;
CREATE VIEW raising_like_a_name AS SELECT id FROM people WHERE raises_like_a_name(secret) > 0;
CREATE VIEW taken_for_a_table AS SELECT id FROM people WHERE secret::regclass IS NOT NULL;
CREATE VIEW taken_for_a_type AS SELECT id FROM people WHERE secret::regtype IS NOT NULL;
CREATE VIEW taken_for_an_operator AS SELECT id FROM people WHERE secret::regoper IS NOT NULL;
CREATE VIEW taken_for_another_database AS SELECT id FROM people WHERE (secret || '.a.b')::regclass IS NOT NULL;
CREATE VIEW taken_for_a_setting AS SELECT id FROM people WHERE current_setting(secret) IS NULL;
CREATE VIEW taken_for_a_sequence AS SELECT id FROM people WHERE has_sequence_privilege(secret, 'usage');
CREATE VIEW dated AS SELECT id FROM numbered WHERE make_date(num, 1, 1) IS NOT NULL;
CREATE VIEW lettered AS SELECT id FROM numbered WHERE chr(num) = 'a';
ANALYZE;
CREATE FUNCTION peek() RETURNS text LANGUAGE sql STABLE AS 'SELECT max(secret) FROM people';
CREATE VIEW by_function AS SELECT peek() AS p;
CREATE VIEW by_text AS SELECT query_to_xml('SELECT * FROM people', true, false, '') AS x;
CREATE VIEW by_row AS SELECT row_to_json(p) AS j, p AS r FROM people p;
CREATE VIEW by_join AS SELECT n.body, x.part FROM notes n, people p, unnest(string_to_array(p.secret, '_')) AS x(part);
CREATE VIEW beside AS SELECT n.id, n.body FROM notes n JOIN people USING (id);
CREATE SCHEMA apart; CREATE TABLE apart.people (id text, secret text);
INSERT INTO apart.people VALUES ('1', '{SECRET}');
CREATE VIEW elsewhere AS SELECT secret AS s, id FROM apart.people;
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing;
CREATE FOREIGN TABLE away (id text, hidden text OPTIONS (column_name 'secret')) SERVER nowhere
  OPTIONS (schema_name 'public', table_name 'people')"""
MYSQL = f"""
CREATE TABLE keyed (id int PRIMARY KEY, secret varchar(60));
INSERT INTO keyed VALUES (7, '{SECRET}'), (8, '{SECRET}');
CREATE TABLE made (id int, secret varchar(60), low varchar(60) AS (lower(secret)) STORED, twice int AS (id * 2));
INSERT INTO made (id, secret) VALUES (21, '{SECRET}');
CREATE TABLE numbered (id int, num int PRIMARY KEY AUTO_INCREMENT);
INSERT INTO numbered VALUES (1, 918273645);
CREATE VIEW compared AS SELECT n.id FROM notes n JOIN keyed k ON n.body < k.secret WHERE k.id = 7;
CREATE FUNCTION raises(x text) RETURNS int DETERMINISTIC
  BEGIN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = x; RETURN 1; END;
CREATE FUNCTION raises_own(x text) RETURNS int DETERMINISTIC
  BEGIN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 30001, MESSAGE_TEXT = x; RETURN 1; END;
CREATE VIEW raising AS SELECT id FROM people WHERE raises(secret) > 0;
CREATE VIEW raising_own AS SELECT id FROM people WHERE raises_own(secret) > 0;
CREATE TABLE unseen (id int, secret varchar(60) INVISIBLE, name varchar(60));
INSERT INTO unseen (id, secret, name) VALUES (1, '{SECRET}', '{PLAIN}8');
CREATE TABLE kept (id int, secret varchar(60)) WITH SYSTEM VERSIONING;
INSERT INTO kept VALUES (1, '{SECRET}');
CREATE FUNCTION peek() RETURNS text READS SQL DATA RETURN (SELECT max(secret) FROM people);
CREATE VIEW by_function AS SELECT peek() AS p;
CREATE VIEW beside AS SELECT n.id, n.body FROM notes n JOIN people USING (id);
CREATE TABLE one (id int, secret varchar(60)) ENGINE=MyISAM;
CREATE TABLE two (id int, body varchar(60)) ENGINE=MyISAM;
INSERT INTO one VALUES (7, '{SECRET}');
CREATE TABLE both_ (id int, other varchar(60)) ENGINE=MRG_MyISAM UNION=(two, one)"""
DERIVED = {
    "postgresql": (
        *("stored", "kin", "made", "parted", "parted_1", "by_function", "by_text", "by_row", "by_join", "elsewhere"),
    ),
    "mysql": ("made", "by_function", "both_"),
}
MASKED = (
    *("numbered.num", "unseen.secret", "kept.secret", "keyed.secret", "people.secret"),
    *("one.secret", "made.secret", "parted_1.secret", "apart.people.secret"),
)


@pytest.fixture(params=["postgresql", "mysql"])
def planted(request: pytest.FixtureRequest) -> Iterator[tuple[Stage, URL]]:
    """A database of its own with planted secrets, by the URL of its owner."""
    stage: Stage = request.getfixturevalue(request.param)
    name, owner = f"{NAME}_planted", stage.owner
    run(owner, f"CREATE DATABASE {name}")
    here = owner.set(database=name)
    try:
        run(here, *TABLES, *(POSTGRESQL if request.param == "postgresql" else MYSQL).strip().split(";\n"))
        yield stage, here
    finally:
        drop = f"DROP DATABASE {name}" + (" WITH (FORCE)" if request.param == "postgresql" else "")
        run(owner, drop, f"DROP {'ROLE' if request.param == 'postgresql' else 'USER'} IF EXISTS {_role(request.param)}")


def _role(kind: str) -> str:
    return ROLE if kind == "postgresql" else f"'{ROLE}'@'%'"


def opened(url: URL) -> AbstractAsyncContextManager[SqlSource]:
    return planted_source(url.render_as_string(hide_password=False), *MASKED)


async def test_no_planted_secret_shows_through_what_a_server_derives(planted: tuple[Stage, URL]):
    stage, url = planted
    planting = Planting(7)
    await anyio.to_thread.run_sync(run, url, *planting.views(25))
    async with opened(url) as source:
        shown = 0
        for sql in (*planting.questions(40), *(f"SELECT * FROM {name}" for name in DERIVED[stage.kind])):
            answer = (await said(source, "query", sql=sql)).lower()
            assert SECRET not in answer, sql
            shown += PLAIN in answer
        assert shown > 10
        for name in DERIVED[stage.kind]:
            assert SECRET not in (await said(source, "table", name=name, sample=3)).lower()
        assert f"1,{PLAIN}3" in await said(source, "query", sql="SELECT * FROM beside ORDER BY id")
        assert "twice=42" in await said(source, "query", sql="SELECT * FROM made")
        assert "'people'" in await said(source, "query", sql="SELECT * FROM poeple")
        if stage.kind == "mysql":
            assert "id=7\nother=***" in await said(source, "query", sql="SELECT * FROM both_")
            assert "`secret`" in await said(source, "query", sql="SHOW CREATE TABLE people")


JOINED = (
    "SELECT * FROM people JOIN notes USING (id)",
    "SELECT * FROM notes LEFT JOIN people USING (id)",
    "SELECT * FROM people a JOIN people b USING (name, id)",
    "SELECT * FROM notes JOIN people USING (id) JOIN notes n USING (id)",
    "WITH x AS (SELECT * FROM notes JOIN people USING (id)) SELECT * FROM x",
)
FOLLOWED = (
    "WITH RECURSIVE x AS (TABLE people UNION ALL SELECT * FROM x WHERE false) {} SELECT * FROM x",
    ("SEARCH DEPTH FIRST BY id SET o", "CYCLE id SET c USING p", "CYCLE name SET c TO 1 DEFAULT 0 USING p"),
)


async def test_star_over_joined_and_followed_tables_hides_masked_columns(planted: tuple[Stage, URL]):
    stage, url = planted
    recursive, clauses = FOLLOWED
    async with opened(url) as source:
        for sql in (*JOINED, *(recursive.format(one) for one in clauses if stage.kind == "postgresql")):
            answer = await said(source, "query", sql=sql)
            assert f"{PLAIN}1" in answer, sql
            assert "***" in answer
            assert SECRET not in answer
        keyed = "SELECT k.id, k.secret, count(*) FROM keyed k JOIN keyed o USING (id) GROUP BY k.id, k.secret"
        assert "7,***,1" in (await said(source, "query", sql=keyed)).replace("\n", ",")


async def test_the_role_of_our_own_sql_may_not_read_masked_columns(planted: tuple[Stage, URL]):
    stage, url = planted
    async with opened(url) as source:
        asked = Asked(caller=ANONYMOUS)
        _, sql = await QueryRunner.of(source.settings, source.engine).role_sql(asked)
    if stage.kind == "postgresql":
        assert 'GRANT SELECT ("id") ON "public"."away"' in sql
    sql = sql.replace("ullage_reader", ROLE).replace("<password>", quoting.Literal(PASSWORD).as_string())
    parts = [sql] if stage.kind == "postgresql" else [one for one in sql.strip().split(";\n") if one.strip()]
    await anyio.to_thread.run_sync(run, url, *parts)
    reader = url.set(username=ROLE, password=PASSWORD)
    with pytest.raises((psycopg.Error, pymysql.err.Error)):
        await anyio.to_thread.run_sync(_rows, reader, "SELECT secret FROM people")
    for name in DERIVED[stage.kind]:
        try:
            rows = await anyio.to_thread.run_sync(_rows, reader, f"SELECT * FROM {name}")
        except (psycopg.Error, pymysql.err.Error):
            continue
        assert SECRET not in str(rows).lower(), name
    assert PLAIN in str(await anyio.to_thread.run_sync(_rows, reader, "SELECT id, name FROM people"))
    async with opened(reader) as source:
        assert PLAIN in await said(source, "table", name="people", sample=2)


def _rows(url: URL, sql: str) -> list[tuple[object, ...]]:
    connection: Any = connected(url)
    with connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


ATTACKS = {
    "postgresql": (
        "SELECT s.most_common_vals FROM pg_stats s, (WITH pg_stats AS (SELECT 1 AS a) SELECT * FROM pg_stats) q",
        "WITH pg_stats AS (SELECT * FROM pg_stats) SELECT most_common_vals::text FROM pg_stats",
        "SELECT * FROM raising",
        "SELECT * FROM raising_like_a_name",
        "SELECT * FROM taken_for_a_table",
        "SELECT * FROM taken_for_a_type",
        "SELECT * FROM taken_for_an_operator",
        "SELECT * FROM taken_for_another_database",
        "SELECT * FROM taken_for_a_setting",
        "SELECT * FROM taken_for_a_sequence",
        "SELECT * FROM dated",
        "SELECT * FROM lettered",
        "SELECT last_value FROM pg_sequences",
        "SELECT pg_sequence_last_value('numbered_num_seq'::regclass)",
    ),
    "mysql": (
        "EXPLAIN FORMAT=JSON SELECT * FROM compared",
        "ANALYZE FORMAT=JSON SELECT * FROM compared",
        "SELECT * FROM raising",
        "SELECT * FROM raising_own",
        "SELECT auto_increment FROM information_schema.tables WHERE table_name = 'numbered'",
        "SHOW TABLE STATUS LIKE 'numbered'",
        "SHOW CREATE TABLE numbered",
    ),
}
ANSWERED = {
    "postgresql": (("SELECT sequencename FROM pg_sequences", "numbered_num_seq"),),
    "mysql": (
        ("SELECT * FROM unseen", f"name={PLAIN}8"),
        ("SELECT u.*, secret FROM unseen u", "secret=***"),
        ("SELECT *, row_start IS NULL AS b FROM kept FOR SYSTEM_TIME ALL", "secret=***"),
        ("EXPLAIN SELECT * FROM compared", "PRIMARY"),
        ("SHOW CREATE TABLE numbered", "AUTO_INCREMENT=***"),
    ),
}


async def test_no_catalogue_plan_or_error_shows_a_masked_value(planted: tuple[Stage, URL]):
    stage, url = planted
    async with opened(url) as source:
        for sql in ATTACKS[stage.kind]:
            told = (await said(source, "query", sql=sql)).lower()
            assert SECRET not in told, sql
            assert "918273645" not in told, sql
            assert "918273646" not in told, sql
        for sql, shown in ANSWERED[stage.kind]:
            told = await said(source, "query", sql=sql)
            assert shown in told, sql
            assert SECRET not in told, sql
