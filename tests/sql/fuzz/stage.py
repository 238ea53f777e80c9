"""On which databases do the cases of the SQL locks play?

One small shop for each engine, with everything in it that a case may reach for: sequences, functions that write,
procedures, an operator, a large object, indexes to be tended. A server's database and roles bear the process's number
and are dropped at the end; the embedded ones lie in a folder of their own. A server that does not answer is None.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import psycopg
import pymysql

POSTGRESQL = os.environ.get("POSTGRESQL") or "postgresql://postgres@127.0.0.1:5432/postgres"
MARIADB = os.environ.get("MARIADB") or "mysql://root@127.0.0.1:3306/mysql"
"""Where servers are looked for, as somebody who may make databases and roles there."""
ENGINES = ("postgres", "mysql", "sqlite", "duckdb")
LOOT = Path("/tmp/sqlsec")
"""The folder that cases write to; made before, looked at after, and removed."""

SHOP = """
CREATE TABLE customers (id integer PRIMARY KEY, name varchar(80), country varchar(40), email varchar(80),
  created_at timestamp, update_date date, insert_ts timestamp, delete_flag integer, drop_count integer,
  is_deleted boolean);
CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer, total decimal(10,2), status varchar(20),
  order_date date, note varchar(200));
CREATE TABLE products (id integer PRIMARY KEY, name varchar(80), category varchar(40), price decimal(10,2),
  stock integer);
CREATE TABLE order_items (order_id integer, product_id integer, quantity integer, price decimal(10,2));
CREATE TABLE employees (id integer PRIMARY KEY, name varchar(80), manager_id integer, department varchar(40),
  salary integer, hired date);
CREATE TABLE events (id integer PRIMARY KEY, user_id integer, kind varchar(20), happened timestamp,
  payload varchar(200));
INSERT INTO customers VALUES
  (1, 'Ada', 'UK', 'ada@example.org', '2024-01-01 10:00:00', '2024-02-01', '2024-01-01 10:00:00', 0, 0, false),
  (2, 'Bo', 'SE', 'bo@example.org', '2024-01-02 10:00:00', '2024-02-02', '2024-01-02 10:00:00', 1, 2, true),
  (3, 'Cy', 'US', NULL, '2024-03-02 10:00:00', NULL, '2024-03-02 10:00:00', 0, 1, false);
INSERT INTO orders VALUES (1, 1, 10.50, 'paid', '2024-03-01', 'x'), (2, 1, 99.00, 'open', '2024-03-05', ';'),
  (3, 2, 5.25, 'deleted', '2024-04-01', NULL), (4, 3, 700.00, 'paid', '2024-05-11', '50%');
INSERT INTO products VALUES (1, 'Pen', 'office', 1.50, 100), (2, 'Desk', 'furniture', 199.00, 3);
INSERT INTO order_items VALUES (1, 1, 7, 1.50), (2, 1, 66, 1.50), (4, 2, 3, 199.00);
INSERT INTO employees VALUES (1, 'Eve', NULL, 'board', 900, '2020-01-01'), (2, 'Flo', 1, 'sales', 500, '2021-05-05');
INSERT INTO events VALUES (1, 1, 'login', '2024-03-01 08:00:00', '{"ip": "10.0.0.1", "tags": ["a", "b"]}'),
  (2, 1, 'buy', '2024-03-01 08:30:00', '{"ip": "10.0.0.1", "amount": 3}');
"""

KEYWORDS = {
    **dict.fromkeys(ENGINES, 'CREATE TABLE keywords ("update" text, "delete" text, "grant" text, "execute" text);'),
    "mysql": "CREATE TABLE keywords (`update` text, `delete` text, `grant` text, `a``;b` text);",
}

SNARES = {
    "postgres": (
        "CREATE SEQUENCE customers_id_seq OWNED BY customers.id",
        "ALTER TABLE customers ALTER id SET DEFAULT nextval('customers_id_seq')",
        "SELECT setval('customers_id_seq', 100)",
        "CREATE SEQUENCE seq1",
        "CREATE INDEX brin_idx ON orders USING brin (order_date)",
        "CREATE INDEX gin_idx ON orders USING gin (to_tsvector('simple', note))",
        "CREATE VIEW paid AS SELECT * FROM orders WHERE status = 'paid'",
        "CREATE FUNCTION f_write() RETURNS int LANGUAGE sql AS 'DELETE FROM orders RETURNING 1'",
        "CREATE FUNCTION f_definer() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'DELETE FROM orders RETURNING 1'",
        "CREATE FUNCTION f_pretend() RETURNS text STABLE SECURITY DEFINER RETURN pg_read_file('PG_VERSION')",
        "CREATE PROCEDURE p_write() LANGUAGE sql AS 'DELETE FROM orders'",
        "CREATE FUNCTION f_op(int, int) RETURNS int LANGUAGE sql AS 'SELECT nextval(''seq1'')::int'",
        "CREATE OPERATOR ~~~ (LEFTARG = int, RIGHTARG = int, FUNCTION = f_op)",
        "CREATE FUNCTION f_checks(int) RETURNS boolean LANGUAGE sql AS 'SELECT nextval(''seq1'') > 0'",
        "CREATE DOMAIN d_evil AS int CHECK (f_checks(VALUE))",
        "SELECT lo_from_bytea(1, 'loot')",
    ),
    "mysql": (
        "CREATE SEQUENCE seq1",
        "CREATE PROCEDURE p_write() DELETE FROM orders",
        "CREATE FUNCTION f_write() RETURNS int DETERMINISTIC MODIFIES SQL DATA BEGIN DELETE FROM orders; RETURN 1; END",
        "CREATE FUNCTION f_definer() RETURNS int SQL SECURITY DEFINER BEGIN DELETE FROM orders; RETURN 1; END",
        "CREATE VIEW paid AS SELECT * FROM orders WHERE status = 'paid'",
    ),
    "sqlite": ("CREATE VIEW paid AS SELECT * FROM orders WHERE status = 'paid'",),
    "duckdb": (
        "CREATE SEQUENCE seq1",
        "CREATE VIEW paid AS SELECT * FROM orders WHERE status = 'paid'",
        "CREATE MACRO next_one() AS nextval('seq1')",
    ),
}
EXTENSIONS = ("dblink", "tablefunc", "adminpack", "lo", "pgstattuple", "pgrowlocks", "xml2", "file_fdw", "pg_prewarm")
"""Made where the server has them: each brings functions that cases call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One engine's database, and a second door to it that nothing guards."""

    engine: str
    url: str
    """As the owner opens it; a role that can only read gets its own."""
    folder: Path | None = None
    """Of the embedded ones: what lies in it is theirs."""


def statements(engine: str) -> list[str]:
    shop = [each.strip() for each in (SHOP + KEYWORDS[engine]).split(";\n") if each.strip()]
    return [each.rstrip(";") for each in shop] + list(SNARES[engine])


def named(url: str, database: str) -> str:
    parts = urlsplit(url)
    return parts._replace(path=f"/{database}").geturl()


def connect_mysql(url: str, **options: Any) -> "pymysql.Connection[Any]":  # noqa: ANN401 — what pymysql takes
    parts = urlsplit(url)
    return pymysql.connect(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 3306,
        user=parts.username or "root",
        password=parts.password or "",
        database=parts.path.lstrip("/") or None,
        autocommit=True,
        **options,
    )


def connect_postgres(url: str) -> "psycopg.Connection[tuple[Any, ...]]":
    return psycopg.connect(url, autocommit=True, connect_timeout=5)


@contextmanager
def staged(engine: str, folder: Path) -> Iterator[Stage | None]:
    """The engine's shop while it lasts; None where no server answers."""
    with _STAGES[engine](folder) as stage:
        yield stage


@contextmanager
def _postgres(folder: Path) -> Iterator[Stage | None]:
    name = f"ullage_stage_{os.getpid()}_{folder.name}".lower()
    try:
        owner = connect_postgres(POSTGRESQL)
    except psycopg.Error:
        yield None
        return
    with owner:
        owner.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            _fill_postgres(named(POSTGRESQL, name))
            yield Stage(engine="postgres", url=named(POSTGRESQL, name))
        finally:
            owner.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def _fill_postgres(url: str) -> None:
    with connect_postgres(url) as connection:
        for each in statements("postgres"):
            connection.execute(each.encode())
        for extension in EXTENSIONS:
            with suppress(psycopg.Error):
                connection.execute(f'CREATE EXTENSION "{extension}"'.encode())


@contextmanager
def _mysql(folder: Path) -> Iterator[Stage | None]:
    name = f"ullage_stage_{os.getpid()}_{folder.name}".lower()
    try:
        owner = connect_mysql(MARIADB)
    except pymysql.Error:
        yield None
        return
    with owner, owner.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE `{name}`")
        try:
            cursor.execute(f"USE `{name}`")
            for each in statements("mysql"):
                cursor.execute(each)
            yield Stage(engine="mysql", url=named(MARIADB, name))
        finally:
            cursor.execute(f"DROP DATABASE `{name}`")


@contextmanager
def _sqlite(folder: Path) -> Iterator[Stage | None]:
    place = folder / "sqlite"
    place.mkdir(parents=True)
    with sqlite3.connect(place / "shop.sqlite") as connection:
        for each in statements("sqlite"):
            connection.execute(each)
    connection.close()
    yield Stage(engine="sqlite", url=f"sqlite:///{place / 'shop.sqlite'}", folder=place)


@contextmanager
def _duckdb(folder: Path) -> Iterator[Stage | None]:
    place = folder / "duckdb"
    place.mkdir(parents=True)
    with duckdb.connect(str(place / "shop.duckdb")) as connection:
        for each in statements("duckdb"):
            connection.execute(each)
    yield Stage(engine="duckdb", url=f"duckdb:///{place / 'shop.duckdb'}", folder=place)


_STAGES = {"postgres": _postgres, "mysql": _mysql, "sqlite": _sqlite, "duckdb": _duckdb}
