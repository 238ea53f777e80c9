"""Every row of the corpora, each in the language of its engine.

`cases` was gathered and tried on the engines before the guard was written; `everyday` are questions that must pass;
`more` are attacks that were thought of afterwards, with what the engine itself said of each.
"""

from functools import cache
from typing import cast

import pytest
from fuzz.cases import CASES, EVERYDAY, MORE, Case, read_cases

from ullage.errors import Refused
from ullage.sql import Dialect
from ullage.sql.guard import judge

pytestmark = pytest.mark.requirement("S0:sql:read-only")

ROWS = list(read_cases(CASES, EVERYDAY, MORE))
ENGINES = sorted({row.engine for row in ROWS})


@cache
def _refusal(row: Case) -> Refused | None:
    try:
        judge(row.sql, cast("Dialect", row.dialect))
    except Refused as refused:
        return refused
    return None


def _is_allowed(row: Case) -> bool:
    return _refusal(row) is None


@pytest.mark.requirement("S0:sql:read-only")
@pytest.mark.parametrize("engine", ENGINES)
def test_every_attack_that_a_text_can_show_is_refused(engine: str):
    attacks = [row for row in ROWS if row.engine == engine and row.attack and row.layer == "static"]
    assert attacks
    assert [row.id for row in attacks if _is_allowed(row)] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_no_question_is_refused(engine: str):
    questions = [row for row in ROWS if row.engine == engine and not row.attack]
    assert questions
    assert [row.id for row in questions if not _is_allowed(row)] == []


def test_what_only_the_role_can_hold_is_refused_as_well():
    held = [row for row in ROWS if row.layer == "role"]
    assert held
    assert [row.id for row in held if _is_allowed(row)] == []


def test_every_refusal_names_the_construct_and_what_to_do():
    refusals = [refusal for row in ROWS if (refusal := _refusal(row)) is not None]
    assert refusals
    assert [one.message for one in refusals if "`" not in one.message or not one.suggestion] == []


def test_the_corpora_are_as_large_as_was_promised():
    assert len(list(read_cases(EVERYDAY))) >= 250
    assert len(list(read_cases(MORE))) >= 150
    assert len({row.id for row in ROWS}) == len(ROWS)
