from collections.abc import AsyncGenerator, Generator
from contextlib import suppress

import psycopg
import pymysql
import pytest
from sqlalchemy import make_url

from sql.network.servers import (
    MYSQL,
    MYSQL_ONLY,
    NAME,
    PASSWORD,
    POSTGRESQL,
    POSTGRESQL_ONLY,
    SHOP,
    Stage,
    role_sql,
    run,
)
from ullage.sql import Engine


@pytest.fixture(scope="session")
def postgresql() -> Generator[Stage]:
    server = make_url(POSTGRESQL)
    try:
        run(server, f"CREATE DATABASE {NAME}")
    except psycopg.OperationalError:
        pytest.skip("no PostgreSQL server answers at ULLAGE_TEST_POSTGRESQL")
    owner = server.set(database=NAME)
    try:
        run(owner, SHOP, POSTGRESQL_ONLY, f"GRANT CREATE ON DATABASE {NAME} TO PUBLIC")
        run(owner, role_sql(owner))
        yield Stage(owner=owner, reader=owner.set(username=f"{NAME}_reader", password=PASSWORD))
    finally:
        with suppress(psycopg.Error):
            run(owner, f"DROP OWNED BY {NAME}_reader")
        run(server, f"DROP DATABASE {NAME} WITH (FORCE)", f"DROP ROLE IF EXISTS {NAME}_reader")


@pytest.fixture(scope="session")
def mysql() -> Generator[Stage]:
    server = make_url(MYSQL)
    try:
        run(server, f"CREATE DATABASE {NAME}")
    except pymysql.err.OperationalError:
        pytest.skip("no MySQL server answers at ULLAGE_TEST_MYSQL")
    owner = server.set(database=NAME)
    try:
        run(owner, *(SHOP + ";\n" + MYSQL_ONLY).split(";\n"))
        run(owner, *role_sql(owner).strip().split(";\n"))
        yield Stage(owner=owner, reader=owner.set(username=f"{NAME}_reader", password=PASSWORD))
    finally:
        run(server, f"DROP DATABASE {NAME}", f"DROP USER IF EXISTS '{NAME}_reader'@'%'")


@pytest.fixture(params=["postgresql", "mysql"])
def stage(request: pytest.FixtureRequest) -> Stage:
    return request.getfixturevalue(request.param)


@pytest.fixture
async def engine(stage: Stage) -> AsyncGenerator[Engine]:
    opened = stage.engine(concurrency=1)
    yield opened
    await opened.close()
