"""Every row of the corpora, each in the language of its engine.

`cases` was gathered and tried on the engines before the guard was written; `everyday` are questions that must pass;
`more` are attacks that were thought of afterwards, with what the engine itself said of each.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from ullage.errors import Refused
from ullage.sql import Dialect
from ullage.sql.guard import judge

HERE = Path(__file__).parent
DIALECTS: dict[str, Dialect] = {
    "postgres": "postgres",
    "mysql": "mysql",
    "sqlite": "sqlite",
    "duckdb": "duckdb",
    "mssql": "tsql",
    "oracle": "oracle",
}


def _rows(name: str) -> list[dict[str, Any]]:
    text = (HERE / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


ROWS = [row for name in ("cases", "everyday", "more") for row in _rows(name)]
ENGINES = sorted({row["engine"] for row in ROWS})


def _refusal(row: dict[str, Any]) -> Refused | None:
    try:
        judge(row["sql"], DIALECTS[row["engine"]])
    except Refused as refused:
        return refused
    return None


def _is_allowed(row: dict[str, Any]) -> bool:
    return _refusal(row) is None


@pytest.mark.requirement("S0:sql:read-only")
@pytest.mark.parametrize("engine", ENGINES)
def test_every_attack_that_a_text_can_show_is_refused(engine: str):
    attacks = [row for row in ROWS if row["engine"] == engine and (row["expect"], row["layer"]) == ("reject", "static")]
    assert attacks
    assert [row["id"] for row in attacks if _is_allowed(row)] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_no_question_is_refused(engine: str):
    questions = [row for row in ROWS if row["engine"] == engine and row["expect"] == "allow"]
    assert questions
    assert [row["id"] for row in questions if not _is_allowed(row)] == []


def test_what_only_the_role_can_hold_is_refused_as_well():
    held = [row for row in ROWS if row["layer"] == "role"]
    assert held
    assert [row["id"] for row in held if _is_allowed(row)] == []


def test_every_refusal_names_the_construct_and_what_to_do():
    refusals = [refusal for row in ROWS if (refusal := _refusal(row)) is not None]
    assert [one.message for one in refusals if "`" not in one.message or not one.suggestion] == []


def test_the_corpora_are_as_large_as_was_promised():
    assert len(_rows("everyday")) >= 250
    assert len(_rows("more")) >= 150
    assert len({row["id"] for row in ROWS}) == len(ROWS)
