"""Statements of an adversary who knew what the guard is for: most written before it could be tried, some by trying it.

Those for the four engines at hand were run there unguarded. Many ran; others need what that server lacks (a replication
slot, an extension, a file, MySQL 8), and those for SQL Server and Oracle have never been run."""

from collections import Counter

import pytest
from fuzz.cases import ADVERSARY, Case, read_cases
from fuzz.judging import verdict

pytestmark = pytest.mark.requirement("S0:sql:read-only")

ENGINES = ("postgres", "mysql", "sqlite", "duckdb", "mssql", "oracle")
ROWS = list(read_cases(ADVERSARY))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_attack_is_refused(engine: str) -> None:
    attacks = [case for case in ROWS if case.engine == engine and case.attack and case.layer == "static"]
    assert attacks
    assert [_told(case) for case in attacks if not verdict(case.sql, case.dialect).startswith("refused")] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_every_everyday_question_is_allowed(engine: str) -> None:
    questions = [case for case in ROWS if case.engine == engine and not case.attack]
    assert questions
    assert [_told(case) for case in questions if verdict(case.sql, case.dialect) != "allowed"] == []


def test_no_case_is_written_twice() -> None:
    written = Counter((case.engine, case.sql) for case in ROWS)
    assert [case for case, times in written.items() if times > 1] == []


def _told(case: Case) -> str:
    return f"{case.id}: {case.sql!r} {verdict(case.sql, case.dialect)}"
