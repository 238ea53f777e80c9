"""With no guard before it: what does an engine let a hostile statement do?"""

import hashlib
import json
from pathlib import Path

import pytest

from ullage.errors import QueryFailed, UllageError
from ullage.sql import Answer, Question
from ullage.sql.embedded import EmbeddedEngine
from ullage.sql.guard.allowed_functions import ASKING, READING

pytestmark = pytest.mark.requirement("S0:sql:read-only")

CASES = [json.loads(line) for line in (Path(__file__).parent / "cases.jsonl").read_text(encoding="utf-8").splitlines()]

RUN_ALL_THE_SAME = {
    "duckdb-068": "lists secrets, of which a database opened for one question has none",
    "duckdb-070": "sleeps until the deadline ends it",
    "duckdb-071": "writes to a log in memory, which ends with the question",
}
"""Attacks that the engine does not refuse, and why they change nothing."""

ENDLESS = {"duckdb-070"}
"""Attacks that take all the time they are given."""

SETTINGS = {
    "sqlite": "SELECT * FROM pragma_query_only, pragma_foreign_keys, pragma_user_version, pragma_application_id, "
    "pragma_journal_mode, pragma_schema_version, pragma_encoding, pragma_database_list",
    "duckdb": "SELECT name, value FROM duckdb_settings() ORDER BY name",
}


def cases(engine: str, expect: str, layer: str = "static") -> list[dict[str, str]]:
    return [case for case in CASES if (case["engine"], case["expect"], case["layer"]) == (engine, expect, layer)]


def everything(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


async def asked(engine: EmbeddedEngine, sql: str, seconds: float = 30) -> Answer | UllageError:
    try:
        return await engine.ask(Question(sql=sql, rows=1_000, seconds=seconds))
    except UllageError as error:
        return error


async def run_attacks(engine: EmbeddedEngine, folder: Path) -> dict[str, str]:
    """Those that were not refused."""
    ran: dict[str, str] = {}
    for case in cases(engine.dialect, "reject"):
        seconds = 0.5 if case["id"] in ENDLESS else 30
        outcome = await asked(engine, case["sql"].replace("{folder}", str(folder)), seconds)
        if not isinstance(outcome, QueryFailed):
            ran[case["id"]] = repr(outcome)
    return ran


@pytest.mark.anyio
@pytest.mark.requirement("S0:sql:read-only")
async def test_no_attack_changes_a_row_a_file_or_a_setting(engine: EmbeddedEngine, tmp_path: Path):
    settings = await asked(engine, SETTINGS[engine.dialect])
    assert isinstance(settings, Answer)
    before = everything(tmp_path)
    ran = await run_attacks(engine, tmp_path)
    assert ran.keys() == {known for known in RUN_ALL_THE_SAME if known.startswith(engine.dialect)}, ran
    assert everything(tmp_path) == before
    assert await asked(engine, SETTINGS[engine.dialect]) == settings


@pytest.mark.anyio
@pytest.mark.requirement("S0:sql:engines")
async def test_every_harmless_statement_runs_under_all_locks(engine: EmbeddedEngine):
    harmless = [*cases(engine.dialect, "allow"), *cases(engine.dialect, "allow", "limits")]
    outcomes = {case["id"]: await asked(engine, case["sql"]) for case in harmless}
    assert harmless
    assert {known: outcome for known, outcome in outcomes.items() if not isinstance(outcome, Answer)} == {}


@pytest.mark.anyio
@pytest.mark.requirement("S0:sql:read-only")
async def test_no_statement_outlives_its_deadline(engine: EmbeddedEngine):
    for case in cases(engine.dialect, "reject", "limits"):
        assert isinstance(await asked(engine, case["sql"], 0.5), UllageError), case
    assert isinstance(await asked(engine, "SELECT 1"), Answer)


@pytest.mark.anyio
async def test_duckdb_refuses_what_would_stay_in_a_session(duck: EmbeddedEngine):
    for sql in (
        "CREATE TEMP TABLE kept AS SELECT 1",
        "EXPLAIN ANALYZE CREATE TEMP TABLE kept AS SELECT 1",
        "EXPLAIN (ANALYZE) CREATE TEMP TABLE kept AS SELECT 1",
        "EXPLAIN",
        "EXPLAIN EXPLAIN SELECT 1",
        "PREPARE kept AS SELECT 1",
        "SET VARIABLE kept = 1",
        "CHECKPOINT",
        "PRAGMA/**/enable_profiling",
        "/* */ PRAGMA enable_verification",
        "CREATE TEMP TABLE kept AS PIVOT orders ON status USING sum(total)",
        "SELECT 1; SELECT 2",
        "-- nothing",
    ):
        assert isinstance(await asked(duck, sql), QueryFailed), sql


@pytest.mark.anyio
async def test_duckdb_runs_what_only_reads_however_it_is_written(duck: EmbeddedEngine):
    for sql in (
        "EXPLAIN (FORMAT json) SELECT 1",
        "/* a */ EXPLAIN -- b\n ANALYZE SELECT 1",
        "EXPLAIN (SELECT 1)",
        "WITH p AS (PIVOT orders ON status USING sum(total)) SELECT * FROM p",
        "PRAGMA table_info('orders')",
        "SELECT 1;;",
    ):
        assert isinstance(await asked(duck, sql), Answer), sql


@pytest.mark.anyio
async def test_sqlite_shows_its_settings_and_they_cannot_be_changed(sqlite: EmbeddedEngine):
    for name in sorted(READING - ASKING):
        assert isinstance(await asked(sqlite, f"PRAGMA {name}"), Answer), name
        assert not isinstance(await asked(sqlite, f"PRAGMA {name}=1"), Answer), name


@pytest.mark.anyio
async def test_sqlite_refuses_or_ignores_what_is_not_reading(sqlite: EmbeddedEngine):
    for sql in (
        "PRAGMA hard_heap_limit=1",
        "SELECT * FROM pragma_hard_heap_limit",
        "SELECT * FROM pragma_journal_mode('DELETE')",
        "PRAGMA foreign_keys(0)",
        "SELECT sqlite_log(1, 'x')",
        "SELECT optimize(customers) FROM customers",
        "SELECT * FROM dbstat",
        "BEGIN",
        "EXPLAIN DELETE FROM customers",
        "SELECT ?",
        "",
    ):
        outcome = await asked(sqlite, sql)
        assert isinstance(outcome, QueryFailed) or outcome.rows == (), sql  # pyright: ignore[reportAttributeAccessIssue]
