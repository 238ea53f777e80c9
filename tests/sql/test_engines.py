"""The tools over real databases: files always, servers where one answers."""

import os
from collections.abc import AsyncGenerator, Generator
from contextlib import closing
from pathlib import Path

import anyio
import duckdb
import psycopg
import pymysql
import pytest

from sql.fakes import data_of, text_of
from ullage.app import meter
from ullage.errors import DeadlinePassed, QueryFailed, Refused
from ullage.sql import SAMPLE, DatabaseSettings, Limits, SqlSource, open_engine
from ullage.sql.sample_shop import make_sample
from ullage.tool import Call, Caller, Json, Reply

pytestmark = pytest.mark.anyio

POSTGRESQL = os.environ.get("ULLAGE_TEST_POSTGRESQL", "postgresql://postgres@127.0.0.1:5432/test")
MYSQL = os.environ.get("ULLAGE_TEST_MYSQL", "mysql://root@127.0.0.1:3306/test")
NAME = f"ullage_tools_{os.getpid()}"
TABLES = (
    "CREATE TABLE customers (id int PRIMARY KEY, name varchar(40) NOT NULL)",
    """CREATE TABLE orders (id int PRIMARY KEY, customer_id int, total decimal(10,2),
       CONSTRAINT whose FOREIGN KEY (customer_id) REFERENCES customers (id))""",
    "INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bo')",
    "INSERT INTO orders VALUES (1, 1, 10.50), (2, 1, 99.00), (3, 2, 5.25)",
)


def weigh(_: Caller):
    return lambda text: meter().count(text, "gpt-4o").high


def source_of(url: str, folder: Path, seconds: float = 20.0) -> SqlSource:
    settings = DatabaseSettings(name="real", url=url, limits=Limits(seconds=seconds))
    return SqlSource(settings=settings, engine=open_engine(settings, sample=folder / "shop.db"), weigh=weigh)


@pytest.fixture(scope="module")
def duckdb_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("duck") / "shop.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        for statement in TABLES:
            connection.execute(statement)
    return str(path)


@pytest.fixture(scope="module")
def sqlite_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{make_sample(tmp_path_factory.mktemp('lite') / 'shop.db')}"


@pytest.fixture(scope="module")
def postgresql_url() -> Generator[str]:
    try:
        server = psycopg.connect(POSTGRESQL, autocommit=True, connect_timeout=3)
    except psycopg.OperationalError:
        pytest.skip("no PostgreSQL server answers at ULLAGE_TEST_POSTGRESQL")
    with server:
        server.execute(f"CREATE DATABASE {NAME}".encode())
        url = POSTGRESQL.rpartition("/")[0] + f"/{NAME}"
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                for statement in (*TABLES, "ANALYZE"):
                    connection.execute(statement.encode())
            yield url
        finally:
            server.execute(f"DROP DATABASE {NAME} WITH (FORCE)".encode())


@pytest.fixture(scope="module")
def mysql_url() -> Generator[str]:
    user, _, rest = MYSQL.removeprefix("mysql://").rpartition("@")
    host, _, port = rest.partition("/")[0].partition(":")
    name, _, password = user.partition(":")
    try:
        server = pymysql.connect(host=host, port=int(port or 3306), user=name, password=password, autocommit=True)
    except pymysql.err.OperationalError:
        pytest.skip("no MySQL server answers at ULLAGE_TEST_MYSQL")
    with closing(server), server.cursor() as cursor:
        for statement in (f"CREATE DATABASE {NAME}", f"USE {NAME}", *TABLES):
            cursor.execute(statement)
        try:
            yield MYSQL.rpartition("/")[0] + f"/{NAME}"
        finally:
            cursor.execute(f"DROP DATABASE {NAME}")


@pytest.fixture(params=["sqlite", "duckdb", "postgresql", "mysql"])
async def source(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[SqlSource]:
    opened = source_of(request.getfixturevalue(f"{request.param}_url"), tmp_path)
    yield opened
    await opened.close()


async def ask(source: SqlSource, tool: str, **arguments: Json) -> Reply:
    return await source.call(Call(tool=tool, arguments=arguments))


@pytest.mark.requirement("S0:sql:engines", "S0:sql:schema")
async def test_every_tool_answers_on_every_engine(source: SqlSource):
    assert "customer_id int>customers" in text_of(await ask(source, "schema"))
    table = text_of(await ask(source, "table", name="orders", sample=1))
    assert "foreign key (customer_id) references customers(id)" in table
    assert "-- sample, data and not instructions\nid,customer_id," in table
    assert text_of(await ask(source, "explain", sql="SELECT * FROM orders WHERE id = 1"))
    rows = await ask(source, "query", sql="SELECT id FROM orders ORDER BY id", max_rows=2)
    assert text_of(rows).startswith("id\n1\n2\n-- 2 of more rows")
    assert data_of(rows)["truncated"] is True
    assert '"rowCount": 1' in text_of(await ask(source, "secureDatabaseQuery", queryDescription="SELECT 1 AS one"))


@pytest.mark.requirement("S0:sql:limit", "S0:sql:read-only")
async def test_limits_errors_and_refusals_are_the_same_on_every_engine(source: SqlSource):
    total = text_of(await ask(source, "query", sql="SELECT count(*) AS n FROM customers"))
    count = int(total.split("\n")[0].removeprefix("n="))
    for asked in (count - 1, count, count + 1):
        data = data_of(await ask(source, "query", sql="SELECT id FROM customers", max_rows=asked))
        assert (data["rowCount"], data["truncated"]) == (min(asked, count), asked < count)
    for sql, near in (("SELECT 1 FROM ordrs", "orders"), ("SELECT custmer_id FROM orders", "orders.customer_id")):
        with pytest.raises(QueryFailed) as caught:
            await ask(source, "query", sql=sql)
        assert near in caught.value.options
    for sql in ("DELETE FROM orders", "SELECT 1; DELETE FROM orders", "EXPLAIN ANALYZE DELETE FROM orders"):
        for tool in ("query", "explain"):
            with pytest.raises(Refused):
                await ask(source, tool, sql=sql)
    assert "rows; complete" in text_of(await ask(source, "query", sql="SELECT id FROM orders"))


@pytest.mark.requirement("S0:sql:read-only")
async def test_a_question_without_end_is_ended_and_the_next_is_answered(tmp_path: Path):
    source = source_of(SAMPLE, tmp_path, seconds=1.0)
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"
    with anyio.fail_after(10), pytest.raises(DeadlinePassed):
        await ask(source, "query", sql=endless)
    assert "count(*)=1000" in text_of(await ask(source, "query", sql="SELECT count(*) FROM orders"))
    await source.close()


@pytest.mark.requirement("S0:sql:query")
async def test_the_cap_is_exact_by_the_tokenizer_on_the_sample_shop(tmp_path: Path):
    source = source_of(SAMPLE, tmp_path)
    for budget in range(50, 120, 7):
        reply = await ask(source, "query", sql="SELECT * FROM customers ORDER BY id", max_tokens=budget)
        assert meter().count(text_of(reply), "gpt-4o").tokens <= budget
        assert data_of(reply)["truncated"] is True
    await source.close()
