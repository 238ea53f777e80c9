"""What holds for a database of which only the URL is known? Here a SQLite file, which SQLAlchemy opens like any."""

import time
from collections.abc import AsyncGenerator
from datetime import date, timedelta
from datetime import time as clock
from decimal import Decimal
from pathlib import Path

import anyio
import pytest
from sqlalchemy import create_engine, text

from sql.network.servers import Stage, run
from ullage.errors import BadConfiguration, DeadlinePassed, QueryFailed, SourceFailed
from ullage.sql import DatabaseSettings, Engine, ForeignKey, Index, Limits, Question
from ullage.sql.network import network_engine
from ullage.sql.network.any_database import OtherSession, _definition, _read_if_supported, cell
from ullage.sql.network.database_pool import Address
from ullage.table import Cell

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S0:sql:engines")]

SHOP = (
    "CREATE TABLE customers (id integer PRIMARY KEY, name text NOT NULL, twice integer AS (id * 2) STORED)",
    """CREATE TABLE orders (id integer PRIMARY KEY, note text DEFAULT 'x' CHECK (note <> ''),
      buyer integer, FOREIGN KEY (buyer) REFERENCES customers (id) ON DELETE CASCADE)""",
    "CREATE INDEX by_note ON orders (note)",
    "CREATE VIEW notes AS SELECT note FROM orders",
    "INSERT INTO customers VALUES (1, 'Ada'), (2, '50%'), (3, 'é')",
)
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT {} FROM c"


def settings(url: str, **limits: float) -> DatabaseSettings:
    held = Limits(**limits)  # pyright: ignore[reportArgumentType]
    return DatabaseSettings(name="shop", url=url, limits=held)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[Engine]:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    made = create_engine(url)
    with made.begin() as connection:
        for statement in SHOP:
            connection.execute(text(statement))
    made.dispose()
    opened = network_engine(settings(url, cell=10, seconds=20))
    yield opened
    await opened.close()


def question(sql: str, *, rows: int = 10, seconds: float = 20) -> Question:
    return Question(sql=sql, rows=rows, seconds=seconds)


async def test_rows_come_back_as_they_are(engine: Engine) -> None:
    answer = await engine.ask(question("SELECT id, name FROM customers WHERE name LIKE '%' ORDER BY id", rows=2))
    assert (answer.columns, answer.rows, answer.more) == (("id", "name"), ((1, "Ada"), (2, "50%")), True)
    assert (await engine.ask(question("PRAGMA query_only = ON"))).columns == ()


async def test_nothing_is_written(engine: Engine) -> None:
    with pytest.raises(QueryFailed, match="readonly"):
        await engine.ask(question("DELETE FROM customers"))
    assert (await engine.ask(question("SELECT count(*) FROM customers"))).rows == ((3,),)


async def test_endless_rows_are_cut_and_endless_work_is_ended(engine: Engine) -> None:
    assert (await engine.ask(question(ENDLESS.format("x"), rows=1))).more
    threads = anyio.to_thread.current_default_thread_limiter().borrowed_tokens
    started = time.monotonic()
    with pytest.raises(DeadlinePassed):
        await engine.ask(question(ENDLESS.format("count(*)"), seconds=0.2))
    assert time.monotonic() - started < 10
    assert anyio.to_thread.current_default_thread_limiter().borrowed_tokens == threads
    assert (await engine.ask(question("SELECT 1"))).rows == ((1,),)


async def test_an_error_is_said_without_what_is_stored(engine: Engine) -> None:
    with pytest.raises(QueryFailed, match="no such column: nope"):
        await engine.ask(question("SELECT nope FROM customers"))
    with pytest.raises(QueryFailed):
        await engine.ask(question("SELECT 1; SELECT 2"))


async def test_the_structure_is_what_sqlalchemy_knows(engine: Engine) -> None:
    structure = await engine.structure()
    customers, notes, orders = structure.tables
    assert [one.name for one in structure.tables] == ["customers", "notes", "orders"]
    assert orders.primary_key == ("id",)
    assert orders.foreign_keys == (ForeignKey(columns=("buyer",), table="customers", to=("id",), on_delete="CASCADE"),)
    assert Index(name="by_note", columns=("note",)) in orders.indexes
    assert orders.checks == ("CHECK (note <> '')",)
    assert (notes.kind, "SELECT note" in (notes.definition or "")) == ("view", True)
    assert [column.generated for column in customers.columns] == [False, False, True]


async def test_information_that_a_dialect_lacks_is_left_out() -> None:
    class Ignorant:
        def get_view_definition(self, name: str) -> str:
            raise NotImplementedError(name)

    def ignorant() -> dict[tuple[str | None, str], str]:
        raise NotImplementedError

    assert _read_if_supported(ignorant) == {}
    assert _definition(Ignorant(), "x") is None  # pyright: ignore[reportArgumentType]


async def test_rights_are_not_known(engine: Engine) -> None:
    probe = await engine.probe()
    assert "not looked up" in probe.can_write[0]
    assert await engine.functions() == {}
    assert engine.dialect == "postgres"


async def test_a_place_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    engine = network_engine(settings(f"sqlite:///{tmp_path / 'nowhere' / 'shop.db'}"))
    with pytest.raises(SourceFailed, match="unable to open"):
        await engine.ask(question("SELECT 1"))


def test_a_server_that_breaks_off_is_said(postgresql: Stage) -> None:
    address = Address.of(postgresql.owner.render_as_string(hide_password=False))
    session = OtherSession.open(create_engine(postgresql.owner.set(drivername="postgresql+psycopg")), address)
    session.begin(5, 10)
    number = session._connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
    run(postgresql.owner, f"SELECT pg_terminate_backend({number})")
    with pytest.raises(SourceFailed, match="lost"):
        session.structure()
    session.close()


def test_a_driver_that_can_end_nothing_is_left_alone(mysql: Stage) -> None:
    address = Address.of(mysql.owner.render_as_string(hide_password=False))
    session = OtherSession.open(create_engine(mysql.owner.set(drivername="mysql+pymysql")), address)
    session.interrupt()
    assert session.ask(question("SELECT 1"), Limits()).rows == ((1,),)
    session.close()


@pytest.mark.parametrize(
    ("url", "said"), [("nonsense://h/d", "no kind of database"), ("mssql+pymssql://h/d", "`pymssql`, which is not")]
)
def test_a_database_without_a_driver_is_said(url: str, said: str) -> None:
    with pytest.raises(BadConfiguration, match=said):
        network_engine(settings(url))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (1.5, 1.5),
        (float("inf"), "inf"),
        (Decimal("1.10"), Decimal("1.10")),
        (Decimal("NaN"), "NaN"),
        (b"\x00\xff", "0x00ff"),
        (date(2024, 2, 29), "2024-02-29"),
        (clock(1, 2, 3), "01:02:03"),
        (timedelta(days=1), "1 day, 0:00:00"),
    ],
)
def test_values_of_any_driver_become_cells(value: object, shown: Cell) -> None:
    assert cell(value, 100) == shown
