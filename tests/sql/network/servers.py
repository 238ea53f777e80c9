"""Real servers, with a shop on each that nobody else uses and the role that Ullage's own SQL makes."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import psycopg
import pymysql
from psycopg import sql as quoting
from sqlalchemy import URL

from ullage.sql import DatabaseSettings, Engine, Limits
from ullage.sql.network import network_engine

POSTGRESQL = os.environ.get("ULLAGE_TEST_POSTGRESQL", "postgresql://postgres@127.0.0.1:5432/test")
MYSQL = os.environ.get("ULLAGE_TEST_MYSQL", "mysql://root@127.0.0.1:3306/test")
NAME = f"ullage_net_{os.getpid()}"
PORTS = {"postgresql": 5432, "mysql": 3306}
PASSWORD = "p@ss/wörd"

SHOP = """
CREATE TABLE customers (id int PRIMARY KEY, name varchar(40) NOT NULL, email varchar(80) DEFAULT 'none');
CREATE TABLE orders (id int PRIMARY KEY, customer_id int, total decimal(10,2), note varchar(200),
  CONSTRAINT positive CHECK (total >= 0),
  CONSTRAINT bought_by FOREIGN KEY (customer_id) REFERENCES customers (id) ON DELETE CASCADE);
CREATE INDEX by_note ON orders (note, total);
CREATE VIEW large AS SELECT id, total FROM orders WHERE total > 50;
INSERT INTO customers VALUES (1, 'Ada', 'ada@example.org'), (2, 'Bo', NULL), (3, 'Cy', 'cy@example.org');
INSERT INTO orders VALUES (1, 1, 10.50, 'x'), (2, 1, 99.00, ';'), (3, 2, 5.25, NULL)
"""
POSTGRESQL_ONLY = """
CREATE SEQUENCE customers_id_seq;
CREATE SEQUENCE seq1;
CREATE TABLE keywords ("update" text, "delete" text);
CREATE INDEX brin_idx ON orders USING brin (total);
CREATE SCHEMA other;
CREATE TABLE other."odd "" name" (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, parent int REFERENCES customers,
  twice int GENERATED ALWAYS AS (parent * 2) STORED, number serial, tags text[], EXCLUDE USING btree (number WITH =));
COMMENT ON TABLE customers IS 'who buys';
COMMENT ON COLUMN customers.email IS 'may be none';
CREATE FUNCTION f_write() RETURNS int LANGUAGE sql AS 'DELETE FROM orders RETURNING 1';
CREATE FUNCTION f_definer() RETURNS int STABLE LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN 1; END';
CREATE FUNCTION f_op(int, int) RETURNS int LANGUAGE sql AS 'SELECT nextval(''seq1'')::int';
CREATE OPERATOR ~~~ (LEFTARG = int, RIGHTARG = int, FUNCTION = f_op);
CREATE PROCEDURE p_write(IN a int DEFAULT 1) LANGUAGE sql AS 'DELETE FROM orders';
CREATE FUNCTION f_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER watch BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION f_trigger();
CREATE TRIGGER instead INSTEAD OF DELETE ON large FOR EACH ROW EXECUTE FUNCTION f_trigger();
CREATE SCHEMA "Odd ""S";
CREATE TABLE "Odd ""S"."T" (id int);
DO $$ DECLARE one text; BEGIN
  FOR one IN SELECT name FROM pg_available_extensions WHERE name IN ('dblink', 'citext') LOOP
    EXECUTE format('CREATE EXTENSION %I', one);
  END LOOP;
END $$;
GRANT INSERT ON keywords TO PUBLIC;
GRANT CREATE ON SCHEMA other TO PUBLIC;
GRANT USAGE ON SEQUENCE seq1 TO PUBLIC;
ANALYZE customers
"""
MYSQL_ONLY = """
CREATE TABLE keywords (`a``;b` text, number int AUTO_INCREMENT PRIMARY KEY COMMENT 'counts', twice int AS (number * 2));
CREATE SEQUENCE seq1;
CREATE TRIGGER watch BEFORE INSERT ON orders FOR EACH ROW SET NEW.note = 'x';
CREATE PROCEDURE p_write(IN a int, OUT b int) DELETE FROM orders;
CREATE FUNCTION f_one(a int) RETURNS int DETERMINISTIC RETURN a
"""


@dataclass(frozen=True, kw_only=True)
class Stage:
    owner: URL
    """Somebody who may do everything."""
    reader: URL
    """The role that our own SQL made."""

    @property
    def kind(self) -> str:
        return self.owner.get_backend_name()

    def engine(self, url: URL | None = None, **limits: float) -> Engine:
        held = Limits(**{"seconds": 30.0, **limits})  # pyright: ignore[reportArgumentType]
        whole = (url or self.reader).render_as_string(hide_password=False)
        return network_engine(DatabaseSettings(name="shop", url=whole, limits=held))

    def renew(self) -> None:
        """Makes the reader again what it was."""
        password = quoting.Literal(PASSWORD).as_string()
        if self.kind == "postgresql":
            run(
                self.owner,
                f"ALTER ROLE {self.reader.username} PASSWORD {password}",
                f"ALTER ROLE {self.reader.username} SET default_transaction_read_only = on",
            )
        else:
            run(self.owner, f"SET PASSWORD FOR '{self.reader.username}'@'%' = PASSWORD({password})")

    @contextmanager
    def looking(self, url: URL | None = None) -> Generator[Callable[[str], list[Any]]]:
        """What another connection says to a statement, the owner's unless a URL is given."""
        connection: Any = connected(url or self.owner)
        with connection, connection.cursor() as cursor:

            def look(statement: str) -> list[Any]:
                cursor.execute(statement)
                return list(cursor.fetchall()) if cursor.description else []

            yield look


def connected(url: URL) -> "psycopg.Connection | pymysql.Connection":
    if url.get_backend_name() == "postgresql":
        return psycopg.connect(url.render_as_string(hide_password=False), autocommit=True, connect_timeout=3)
    return pymysql.connect(
        host=url.host,
        port=url.port or 3306,
        user=url.username,
        password=str(url.password or "").encode(),
        database=url.database,
        autocommit=True,
        connect_timeout=3,
        ssl_disabled=True,
    )


def run(url: URL, *statements: str) -> None:
    connection: Any = connected(url)
    with connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def role_sql(url: URL) -> str:
    async def ask() -> str:
        whole = url.render_as_string(hide_password=False)
        engine = network_engine(DatabaseSettings(name="shop", url=whole, limits=Limits(concurrency=8)))
        sql = (await engine.probe()).setup_sql
        await engine.close()
        return sql

    said = anyio.run(ask).replace("ullage_reader", f"{NAME}_reader")
    return said.replace("<password>", quoting.Literal(PASSWORD).as_string())


RUNNING = {
    "postgresql": f"SELECT query FROM pg_stat_activity WHERE usename LIKE '{NAME}%' AND state <> 'idle'",
    "mysql": "SELECT info FROM information_schema.processlist "
    f"WHERE user LIKE '{NAME}%' AND command NOT IN ('Sleep', 'Killed')",
}


async def nothing_runs(look: Callable[[str], list[Any]], kind: str) -> None:
    """A server needs a moment to tidy up after a statement that it was told to end."""
    with anyio.fail_after(10):
        while look(RUNNING[kind]):
            await anyio.sleep(0.01)
