import io
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ullage.sql import Limits
from ullage.sql.embedded import EmbeddedEngine
from ullage.sql.embedded.embedded_engine import frame_message
from ullage.sql.embedded.worker.worker_loop import serve

Replies = list[dict[str, Any]]

_TABLES = """
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR, email VARCHAR, country VARCHAR, update_date DATE,
        is_deleted BOOLEAN);
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id), total DECIMAL(10, 2),
        status VARCHAR, order_date DATE);
    CREATE TABLE keywords ("update" INTEGER, "delete" INTEGER, "grant" INTEGER);
    INSERT INTO keywords VALUES (1, 2, 3);
"""
_ROWS = """
    INSERT INTO customers SELECT n, 'Name ' || n, n || '@example.org', 'PT', '2026-01-01', false
        FROM numbers WHERE n <= 40;
    INSERT INTO orders SELECT n, n % 40 + 1, n * 1.5, 'open', '2026-01-02' FROM numbers;
"""
_NUMBERS = """
    CREATE TEMP VIEW numbers AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 100)
        SELECT n FROM r;
"""


def make_sqlite(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(_TABLES + _NUMBERS + _ROWS)


def make_duckdb(path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.execute(_TABLES + "CREATE SEQUENCE seq1;" + _NUMBERS + _ROWS)


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "shop.db"
    path.parent.mkdir()
    make_sqlite(path)
    return path


@pytest.fixture
def duckdb_file(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "shop.duckdb"
    path.parent.mkdir()
    make_duckdb(path)
    return path


@pytest.fixture
async def sqlite(sqlite_file: Path):
    engine = EmbeddedEngine(sqlite_file, dialect="sqlite", limits=Limits(seconds=60))
    yield engine
    await engine.close()


@pytest.fixture
async def duck(duckdb_file: Path):
    engine = EmbeddedEngine(duckdb_file, dialect="duckdb", limits=Limits(seconds=60))
    yield engine
    await engine.close()


@pytest.fixture(params=["sqlite", "duckdb"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path):
    """Each of the two."""
    path = tmp_path / f"shop.{request.param}"
    make_sqlite(path) if request.param == "sqlite" else make_duckdb(path)
    engine = EmbeddedEngine(path, dialect=request.param, limits=Limits(seconds=60))
    yield engine
    await engine.close()


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Replies]:
    """A whole conversation with a worker inside this process, where nothing confines it."""

    def spoken(hello: dict[str, Any], *messages: dict[str, Any]) -> Replies:
        defaults = {"memory": 1 << 30, "idle": 5.0, "packages": None}
        frames = [
            frame_message({**defaults, **hello}),
            *(frame_message({**_QUESTION, **message}) for message in messages),
        ]
        sink = io.BytesIO()
        monkeypatch.setattr(sys, "path", list(sys.path))
        serve(io.BytesIO(b"".join(frames)), sink, confine=_free, when_alone=lambda: None)
        return list(_read(sink.getvalue()))

    return spoken


_QUESTION = {"rows": 100, "cell": 1_000, "bytes": 1_000_000, "seconds": 5.0}


def _free(*, memory: int, file_bytes: int) -> None:
    """Limits are for a process of one's own."""


def _read(data: bytes) -> Iterator[dict[str, Any]]:
    while data:
        length = int.from_bytes(data[:4], "big")
        yield json.loads(data[4 : 4 + length])
        data = data[4 + length :]
