"""What comes back from a server, and what when it does not answer?"""

import json
import resource
import time
from collections.abc import Generator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import anyio
import pytest
from pymysql.constants import CLIENT
from sqlalchemy import URL

from sql.network.servers import NAME, PORTS, RUNNING, Stage, nothing_runs, run
from sql.network.silence import between
from ullage.errors import DeadlinePassed, QueryFailed, SourceFailed
from ullage.sql import Engine, Limits, Question
from ullage.sql.network.database_pool import Address
from ullage.sql.network.mysql import DriverConnection, MySQLSession, connect_options
from ullage.sql.network.postgresql import PostgreSQLSession
from ullage.table import Cell

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S0:sql:engines")]

SLEEP = {"postgresql": "SELECT pg_sleep(30)", "mysql": "SELECT SLEEP(30)"}
ENDLESS = {
    "postgresql": "SELECT generate_series(1, 10000000000)",
    "mysql": "SELECT seq FROM seq_1_to_10000000000 LIMIT 9999999999",
}
CROSS_JOIN = {
    "postgresql": "SELECT count(*) FROM generate_series(1, 9000) a, generate_series(1, 9000) b, orders c",
    "mysql": "SELECT count(*) FROM seq_1_to_9000 a, seq_1_to_9000 b, seq_1_to_9000 c WHERE a.seq + b.seq < c.seq",
}
MINE = {"postgresql": "SELECT pg_backend_pid()", "mysql": "SELECT CONNECTION_ID()"}
END = {"postgresql": "SELECT pg_terminate_backend({})", "mysql": "KILL CONNECTION {}"}


def question(sql: str, *, rows: int = 10, seconds: float = 30) -> Question:
    return Question(sql=sql, rows=rows, seconds=seconds)


@contextmanager
def in_time() -> Generator[None]:
    """Long before the server would have done what it was asked, or our limit was reached."""
    started = time.monotonic()
    yield
    assert time.monotonic() - started < 10


async def scalar(engine: Engine, sql: str) -> Cell:
    return (await engine.ask(question(sql))).rows[0][0]


@pytest.mark.requirement("S0:sql:limit")
@pytest.mark.parametrize(("asked", "more"), [(2, True), (3, False), (4, False), (0, True)])
async def test_more_is_said_exactly_when_there_were_more_rows(engine: Engine, asked: int, *, more: bool) -> None:
    answer = await engine.ask(question("SELECT id FROM customers ORDER BY id", rows=asked))
    assert answer.rows == tuple((number,) for number in range(1, min(asked, 3) + 1))
    assert answer.more is more
    assert await scalar(engine, "SELECT 1") == 1


async def test_no_rows_still_have_columns(engine: Engine) -> None:
    answer = await engine.ask(question("SELECT id, name FROM customers WHERE id > 9"))
    assert (answer.columns, answer.rows, answer.more) == (("id", "name"), (), False)


async def test_no_question_goes_beyond_the_limits_of_the_database(stage: Stage) -> None:
    engine = stage.engine(rows=2, cell=5, bytes=100)
    answer = await engine.ask(question("SELECT email FROM customers ORDER BY id", rows=100))
    assert answer.rows == (("ada@e",), (None,))
    assert (answer.more, answer.cut_cells) == (True, 1)
    await engine.close()
    engine = stage.engine(seconds=0.2)
    with in_time(), pytest.raises(DeadlinePassed):
        await engine.ask(question(SLEEP[stage.kind]))
    await engine.close()


async def test_rows_end_before_the_bytes_do(stage: Stage) -> None:
    engine = stage.engine(bytes=30)
    answer = await engine.ask(question("SELECT 'xxxxxxxxxx' AS x FROM customers, orders"))
    assert (len(answer.rows), answer.more) == (3, True)
    await engine.close()


async def test_values_come_back_as_postgresql_means_them(postgresql: Stage) -> None:
    engine = postgresql.engine()
    answer = await engine.ask(
        question(
            "SELECT true, 7, 7::bigint, 1.10, 0.5::float8, 'NaN'::float8, 'NaN'::numeric, NULL, 'é', "
            "date '2024-02-29', 'infinity'::timestamp, interval '1 month 2 days', '\\xff00'::bytea, int4range(1, 3), "
            "'{\"a\": [1, 2.5]}'::jsonb, '{\"a\": 1, \"a\": 2}'::json, '1e400'::json, 'null'::jsonb, "
            "'{1,NULL}'::int[], '{{a,\"b,\\\"c\"}}'::text[], '[0:1]={1,2}'::int[], '{}'::int[], '{1.10}'::numeric[], "
            "'10.0.0.1'::inet, 'ffffffff-0000-0000-0000-000000000000'::uuid, row(1, 'x'), '{\"x\\\\ud800\"}'::text[]"
        )
    )
    assert answer.rows[0] == (
        *(True, 7, 7, Decimal("1.10"), 0.5, "NaN", "NaN", None, "é"),
        *("2024-02-29", "infinity", "1 mon 2 days", "\\xff00", "[1,3)"),
        *({"a": [1, 2.5]}, '{"a": 1, "a": 2}', "1e400", "null"),
        *([1, None], [["a", 'b,"c']], "[0:1]={1,2}", [], [Decimal("1.10")]),
        *("10.0.0.1", "ffffffff-0000-0000-0000-000000000000", "(1,x)", ["x\\ud800"]),
    )
    await engine.close()


async def test_values_come_back_as_mysql_means_them(mysql: Stage) -> None:
    engine = mysql.engine()
    answer = await engine.ask(
        question(
            "SELECT 7, -7, 1.10, 5e-1, NULL, 'é', DATE '2024-02-29', TIME '-01:02:03', x'00ff', b'101', "
            "CAST('x' AS BINARY), YEAR('2024-02-29'), POINT(1, 1) IS NOT NULL, CONVERT('é' USING latin1)"
        )
    )
    assert answer.rows[0] == (
        *(7, -7, Decimal("1.10"), 0.5, None, "é", "2024-02-29", "-01:02:03", "0x00ff", "0x05"),
        *("0x78", 2024, 1, "é"),
    )
    await engine.close()


async def test_a_value_of_a_hundred_megabytes_is_cut_and_its_connection_not_kept(postgresql: Stage) -> None:
    engine = postgresql.engine(cell=10)
    before = await scalar(engine, "SELECT pg_backend_pid()")
    answer = await engine.ask(question("SELECT repeat('é', 50000000), 1"))
    assert (answer.rows, answer.cut_cells) == ((("é" * 10, 1),), 1)
    assert await scalar(engine, "SELECT pg_backend_pid()") != before
    await engine.close()


async def test_bytes_of_no_encoding_are_shown_as_far_as_they_can_be(postgresql: Stage) -> None:
    url = postgresql.owner.set(database=f"{NAME}_ascii")
    run(postgresql.owner, f"CREATE DATABASE {NAME}_ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    try:
        engine = postgresql.engine(url)
        assert await scalar(engine, "SELECT E'a\\xff\\xc3\\xa9'") == "a\ufffdé"
        with pytest.raises(QueryFailed):
            await engine.ask(question("SELECT nope_é"))
        await engine.close()
    finally:
        run(postgresql.owner, f"DROP DATABASE {NAME}_ascii WITH (FORCE)")


async def test_an_error_has_its_code_and_its_place(stage: Stage, engine: Engine) -> None:
    with pytest.raises(QueryFailed) as refused:
        await engine.ask(question("SELECT nam FROM customers"))
    said = {
        "postgresql": '42703: column "nam" does not exist (at character 8)',
        "mysql": "1054: Unknown column 'nam' in 'SELECT'",
    }
    assert refused.value.message == said[stage.kind]
    if stage.kind == "postgresql":
        assert "customers.name" in refused.value.suggestion


async def test_an_error_does_not_quote_what_is_stored(stage: Stage, engine: Engine) -> None:
    leak = {
        "postgresql": "SELECT CAST(email AS int) FROM customers",
        "mysql": "SELECT count(*), CONCAT((SELECT email FROM customers WHERE id = 1), FLOOR(RAND(0) * 2)) x "
        "FROM information_schema.columns GROUP BY x",
    }
    with pytest.raises(QueryFailed) as refused:
        await engine.ask(question(leak[stage.kind]))
    assert "ada" not in json.dumps(refused.value.wire())
    assert "…" in refused.value.message
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("sql", ["SELECT 1\ud800", "SELECT 1; SELECT 2", "SELEC"])
async def test_what_cannot_be_run_is_refused(engine: Engine, sql: str) -> None:
    with pytest.raises(QueryFailed):
        await engine.ask(question(sql))
    assert await scalar(engine, "SELECT 1") == 1


async def test_nothing_after_a_zero_is_forgotten(stage: Stage, engine: Engine) -> None:
    with pytest.raises(QueryFailed):
        await engine.ask(question("SELECT 1 \0 FROM nowhere"))


@pytest.mark.parametrize("what", [SLEEP, CROSS_JOIN])
async def test_a_deadline_ends_the_question_at_the_server_too(
    stage: Stage, engine: Engine, what: dict[str, str]
) -> None:
    with stage.looking() as look:
        with in_time(), pytest.raises(DeadlinePassed, match=r"0\.3 seconds"):
            await engine.ask(question(what[stage.kind], seconds=0.3))
        await nothing_runs(look, stage.kind)
    assert await scalar(engine, "SELECT 1") == 1


async def test_endless_rows_take_no_memory_and_stop_at_the_server(stage: Stage, engine: Engine) -> None:
    await engine.ask(question(ENDLESS[stage.kind]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with stage.looking() as look:
        for _ in range(3):
            answer = await engine.ask(question(ENDLESS[stage.kind], rows=1000))
            assert (len(answer.rows), answer.more) == (1000, True)
        await nothing_runs(look, stage.kind)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


async def test_who_stops_waiting_frees_the_server(stage: Stage, engine: Engine) -> None:
    with stage.looking() as look:
        with in_time(), anyio.move_on_after(0.2):
            await engine.ask(question(SLEEP[stage.kind]))
        await nothing_runs(look, stage.kind)
    assert await scalar(engine, "SELECT 1") == 1


async def test_a_killed_connection_fails_its_question_and_no_other(stage: Stage, engine: Engine) -> None:
    number = await scalar(engine, MINE[stage.kind])
    with stage.looking() as look:
        async with anyio.create_task_group() as group:

            async def ask() -> None:
                with pytest.raises(SourceFailed, match="lost"):
                    await engine.ask(question(SLEEP[stage.kind]))

            group.start_soon(ask)
            with anyio.fail_after(20):
                while "sleep" not in str(look(RUNNING[stage.kind])).lower():
                    await anyio.sleep(0.01)
            look(END[stage.kind].format(number))
    assert await scalar(engine, MINE[stage.kind]) != number


async def test_connections_that_were_dropped_meanwhile_are_not_noticed(stage: Stage) -> None:
    engine = stage.engine(concurrency=3)
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(engine.ask, question(SLEEP[stage.kind].replace("30", "0.1")))
    with stage.looking() as look:
        for (number,) in look(
            {
                "postgresql": f"SELECT pid FROM pg_stat_activity WHERE usename = '{NAME}_reader'",
                "mysql": f"SELECT id FROM information_schema.processlist WHERE user = '{NAME}_reader'",
            }[stage.kind]
        ):
            look(END[stage.kind].format(number))
    assert await scalar(engine, "SELECT 1") == 1
    await engine.close()


async def test_waiting_for_a_connection_is_within_the_deadline(stage: Stage) -> None:
    engine = stage.engine(concurrency=1)
    async with anyio.create_task_group() as group:
        group.start_soon(engine.ask, question(SLEEP[stage.kind]))
        await anyio.sleep(0.1)
        with in_time(), pytest.raises(DeadlinePassed):
            await engine.ask(question("SELECT 1", seconds=0.2))
        group.cancel_scope.cancel()
    assert await scalar(engine, "SELECT 1") == 1
    await engine.close()


async def test_connections_are_used_again(engine: Engine, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ullage.sql.network.database_pool._GRACE", 20.0)
    first = await scalar(engine, MINE[stage.kind])
    with pytest.raises(QueryFailed):
        await engine.ask(question("SELECT nope"))
    assert await scalar(engine, MINE[stage.kind]) == first
    await engine.ask(question("SELECT id FROM customers", rows=1))
    assert await scalar(engine, MINE[stage.kind]) == first


async def test_a_wrong_password_is_said_without_it(stage: Stage) -> None:
    url = stage.reader.set(username=f"{NAME}_nobody", password="hunter2")
    engine = stage.engine(url)
    with pytest.raises(SourceFailed) as failed:
        await engine.ask(question("SELECT 1"))
    said = json.dumps(failed.value.wire())
    assert "hunter2" not in said
    assert NAME in failed.value.message
    assert "Check" in failed.value.suggestion
    assert failed.value.__cause__ is None


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
async def test_a_closed_port_is_reported_with_host_and_port(stage: Stage, scheme: str) -> None:
    engine = stage.engine(stage.owner.set(drivername=scheme, host="127.0.0.1", port=1, password="hunter2"))
    with pytest.raises(SourceFailed, match=r"127\.0\.0\.1:1") as failed:
        await engine.ask(question("SELECT 1"))
    assert "hunter2" not in json.dumps(failed.value.wire())
    assert "server runs" in failed.value.suggestion


async def test_a_closed_engine_answers_nothing(stage: Stage) -> None:
    engine = stage.engine()
    assert await scalar(engine, "SELECT 1") == 1
    await engine.close()
    with pytest.raises(SourceFailed, match="closed"):
        await engine.ask(question("SELECT 1"))


async def test_a_copy_has_no_answer(postgresql: Stage) -> None:
    engine = postgresql.engine(concurrency=1)
    with pytest.raises(QueryFailed, match="COPY"):
        await engine.ask(question("COPY (SELECT generate_series(1, 100000)) TO STDOUT"))
    assert await scalar(engine, "SELECT 1") == 1
    await engine.close()


async def test_a_database_that_was_not_chosen_does_not_stay_chosen(mysql: Stage) -> None:
    engine = mysql.engine(mysql.reader.set(database=""), concurrency=1)
    await engine.ask(question(f"USE {NAME}"))
    assert await scalar(engine, "SELECT DATABASE()") is None
    number = await scalar(engine, MINE["mysql"])
    assert await scalar(engine, MINE["mysql"]) == number
    await engine.close()


def address(url: URL) -> Address:
    return Address.of(url.render_as_string(hide_password=False))


def test_a_server_gets_no_file_of_this_machine(mysql: Stage) -> None:
    options: dict[str, Any] = connect_options(mysql.owner)
    # As if the server had been told that it may ask for one.
    session = MySQLSession(DriverConnection(**options, client_flag=CLIENT.LOCAL_FILES), address(mysql.owner))
    with pytest.raises(QueryFailed, match="LOCAL"):
        session.ask(question("LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE keywords"), Limits())
    assert not session.clean()
    session.close()


def test_a_session_that_is_gone_cannot_be_cleaned(stage: Stage) -> None:
    opening = {"postgresql": PostgreSQLSession.open, "mysql": MySQLSession.open}
    session = opening[stage.kind](address(stage.reader), 5)
    session.begin(5, 10)
    ((number,),) = session.ask(question(MINE[stage.kind]), Limits()).rows
    with stage.looking() as look:
        look(END[stage.kind].format(number))
    assert not session.clean()
    session.close()


def test_a_lost_server_is_not_asked_to_stop(stage: Stage) -> None:
    opening = {"postgresql": PostgreSQLSession.open, "mysql": MySQLSession.open}
    with between(stage.reader.host or "127.0.0.1", stage.reader.port or PORTS[stage.kind]) as silent:
        session = opening[stage.kind](address(stage.reader.set(port=silent.port)), 5)
    session.interrupt()
    session.close()


async def test_a_lock_of_another_session_is_said(stage: Stage, engine: Engine) -> None:
    lock = {
        "postgresql": ("BEGIN", "LOCK TABLE orders IN ACCESS EXCLUSIVE MODE"),
        "mysql": ("LOCK TABLES orders WRITE",),
    }
    with stage.looking() as look:
        for statement in lock[stage.kind]:
            look(statement)
        with pytest.raises((QueryFailed, DeadlinePassed)) as failed:
            await engine.ask(question("SELECT * FROM orders", seconds=3))
        if stage.kind == "postgresql":
            assert "another session" in failed.value.suggestion
        look("ROLLBACK" if stage.kind == "postgresql" else "UNLOCK TABLES")
    assert await scalar(engine, "SELECT count(*) FROM orders") == 3
