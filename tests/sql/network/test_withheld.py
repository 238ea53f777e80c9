"""What a server shows of its host and of other sessions is withheld, and what somebody made is not called."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from sql.network.servers import Stage, connected, run
from ullage.errors import UllageError
from ullage.options import DatabaseSettings
from ullage.sql import SqlSource, open_engine
from ullage.tool import Call

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S0:sql:read-only")]


async def said(stage: Stage, *statements: str) -> list[str]:
    url = stage.owner.render_as_string(hide_password=False)
    settings = DatabaseSettings(name="shop", url=url)
    source = SqlSource(settings=settings, engine=open_engine(settings, sample=Path()), weigh=lambda _: len)
    answers: list[str] = []
    for sql in statements:
        try:
            reply = await source.call(Call(tool="query", arguments={"sql": sql}))
            answers.append(str(reply.content[0]["text"]))
        except UllageError as error:
            answers.append(f"{error.message} {error.options}")
    await source.close()
    return answers


async def test_settings_are_shown_by_one_rule(postgresql: Stage):
    shown, read, hashed, alone = await said(
        postgresql,
        "SHOW ALL",
        "SELECT name, setting FROM pg_catalog.pg_settings ORDER BY name",
        "SELECT md5(setting) FROM pg_settings WHERE name = 'data_directory'",
        "SHOW work_mem",
    )
    for answer in (shown, read):
        assert "data_directory,***" in answer
        assert "\nmax_connections," in answer
        assert "/var/" not in answer
    assert alone.removeprefix("work_mem=").partition("\n")[0] in shown
    assert "md5=8a7ab20ec0ab3262ce329c7dcb399a4e" in hashed, "the hash of three stars"


async def test_tables_of_settings_are_shown_by_the_rule_of_show_variables(mysql: Stage):
    shown, *read = await said(
        mysql,
        "SHOW VARIABLES LIKE 'datadir'",
        "SELECT * FROM information_schema.global_variables WHERE variable_name IN ('DATADIR', 'SQL_MODE')",
        "SELECT s.variable_value FROM information_schema.session_variables s WHERE s.variable_name = 'datadir'",
        "SELECT count(*) AS n FROM information_schema.global_variables WHERE variable_value LIKE '/var/%'",
    )
    assert "Value=***" in shown
    assert "DATADIR,***" in read[0]
    assert "\nSQL_MODE," in read[0]
    assert "VARIABLE_VALUE=***" in read[1]
    assert "/var/" not in "".join(read)


VIEWS = {
    "postgresql": ("SELECT pid AS id, query AS t FROM pg_stat_activity", "SELECT pid AS id FROM pg_stat_activity"),
    "mysql": (
        "SELECT id, info AS t FROM information_schema.processlist",
        "SELECT id FROM information_schema.processlist",
    ),
}


async def test_views_show_what_other_sessions_run_only_when_allowed(stage: Stage):
    texts, plain = VIEWS[stage.kind]
    made = (f"CREATE VIEW busy AS {texts}", "CREATE VIEW busier AS SELECT t FROM busy", f"CREATE VIEW idle AS {plain}")
    run(stage.owner, *made)
    try:
        first, second, third = await said(
            stage, "SELECT * FROM busy", "SELECT * FROM busier", "SELECT count(*) AS n FROM idle"
        )
    finally:
        run(stage.owner, *(f"DROP VIEW {name}" for name in ("busier", "busy", "idle")))
    assert "other sessions" in first
    assert "other sessions" in second
    assert third.startswith("n=")


async def test_what_other_sessions_run_is_withheld(stage: Stage):
    marker = "zqmarker"
    sleep = "pg_sleep(3)" if stage.kind == "postgresql" else "sleep(3)"
    tables = {
        "postgresql": ("SELECT * FROM pg_stat_activity", "SELECT query || '' FROM pg_catalog.pg_stat_activity"),
        "mysql": ("SHOW FULL PROCESSLIST", "SELECT info FROM information_schema.processlist"),
    }
    answers: list[str] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, _run, stage, f"SELECT '{marker}', {sleep}")
        await anyio.sleep(0.5)
        answers += await said(stage, *tables[stage.kind])
    assert all(marker not in answer for answer in answers)
    assert "***" in answers[0]


def _run(stage: Stage, sql: str) -> None:
    connection: Any = connected(stage.owner)
    with connection, connection.cursor() as cursor:
        cursor.execute(sql)


async def test_a_user_defined_overload_neither_hides_a_function_nor_is_called(postgresql: Stage):
    made = "CREATE FUNCTION upper(int) RETURNS text LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN ''reached''; END'"
    run(postgresql.owner, made)
    try:
        right, own, wrong, qualified = await said(
            postgresql,
            "SELECT upper('abc')",
            "SELECT pg_catalog.upper('abc')",
            "SELECT upper(1)",
            "SELECT public.upper(1)",
        )
    finally:
        run(postgresql.owner, "DROP FUNCTION upper(int)")
    assert right.startswith("upper=ABC")
    assert own.startswith("upper=ABC")
    assert "reached" not in wrong + qualified


async def test_an_error_about_grouping_names_the_column(postgresql: Stage):
    (answer,) = await said(postgresql, "SELECT note, sum(total) FROM orders GROUP BY id + 1")
    assert '"orders.note" must appear in the GROUP BY' in answer
