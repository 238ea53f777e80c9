"""Databases to try things on, and processes to try them with."""

import multiprocessing
import os
import uuid
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from ullage.store import MIGRATIONS, Database, Migration

ENGINES = ("sqlite", "postgresql")
POSTGRESQL = os.environ.get("ULLAGE_TEST_POSTGRESQL", "postgresql://postgres@127.0.0.1:5432/test")


@contextmanager
def fresh_place(engine: str, folder: Path) -> Generator[str]:
    """Where a database can be made that nobody else uses: a path, or a URL."""
    if engine == "sqlite":
        yield str(folder / "ullage.db")
        return
    schema = f"ullage_{uuid.uuid4().hex}"
    try:
        _postgresql(f"CREATE SCHEMA {schema}")
    except OperationalError:
        pytest.skip("no PostgreSQL server answers at ULLAGE_TEST_POSTGRESQL")
    try:
        url = make_url(POSTGRESQL).update_query_dict({"options": f"-csearch_path={schema}"})
        yield url.render_as_string(hide_password=False)
    finally:
        _postgresql(f"DROP SCHEMA {schema} CASCADE")


def _postgresql(statement: str) -> None:
    engine = create_engine(
        make_url(POSTGRESQL).set(drivername="postgresql+psycopg"), connect_args={"connect_timeout": 3}
    )
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


@contextmanager
def opened(place: str, *, patience: float = 10.0, migrations: Sequence[Migration] = MIGRATIONS) -> Generator[Database]:
    database = Database.open(place, patience=patience, migrations=migrations)
    try:
        yield database
    finally:
        database.close()


def in_processes(work: Callable[..., object], arguments: Sequence[tuple[object, ...]]) -> list[object]:
    """What each of some processes made of its arguments, all of them beginning at the same moment."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["ullage.gateway.catalog", "ullage.ledger"])
    barrier, answers = context.Barrier(len(arguments)), context.Queue()
    processes = [context.Process(target=_at_once, args=(barrier, answers, work, each)) for each in arguments]
    for process in processes:
        process.start()
    results = [answers.get(timeout=90) for _ in processes]
    for process in processes:
        process.join()
        process.close()
    return results


def _at_once(
    barrier: Barrier, answers: "Queue[object]", work: Callable[..., object], arguments: tuple[object, ...]
) -> None:
    try:
        barrier.wait(60)
        answers.put(work(*arguments))
    except BaseException as error:
        answers.put(f"{type(error).__name__}: {error}")
        raise


def open_and_count(place: str) -> int:
    """How many tables of ours a database has that is opened now."""
    with opened(place, patience=30.0) as database:
        query = "SELECT count(*) FROM ullage_entries"
        return database.read(lambda connection: connection.scalar(query) or 0) + len(MIGRATIONS)
