"""No spelling of an attack passes the guard with an effect, and no spelling of a question is refused."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from fuzz.cases import ADVERSARY, CASES, EVERYDAY, MORE, Case, read_cases
from fuzz.effects import Unguarded
from fuzz.judging import Finding, rounds, verdict
from fuzz.mutations import BENDING, HARMING, KEEPING, mutate
from fuzz.scanning import scan

SEED = "2026"
ATTACKS, QUESTIONS = 5_000, 2_500
DIALECTS = ("postgres", "mysql", "sqlite", "duckdb", "tsql", "oracle")


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [case for case in read_cases(CASES, MORE, EVERYDAY, ADVERSARY) if case.layer == "static"]


@pytest.fixture
def unguarded(tmp_path: Path) -> Iterator[Unguarded]:
    engines = Unguarded(tmp_path)
    yield engines
    engines.close()


def findings(cases: list[Case], number: int) -> list[Finding]:
    """Of as many mutants as asked for; some rounds make none."""
    made = list(islice(rounds(cases, SEED, range(2 * number)), number))
    assert len(made) == number
    return [found for found in made if found is not None]


def test_no_mutant_of_an_attack_is_allowed_that_an_engine_would_run_with_an_effect(
    cases: list[Case], unguarded: Unguarded
) -> None:
    attacks = [case for case in cases if case.attack]
    found = findings(attacks, ATTACKS)
    plain = [str(each) for each in found if not each.bent]
    assert plain + list(harmful([each for each in found if each.bent], unguarded)) == []


def harmful(bent: list[Finding], unguarded: Unguarded) -> Iterator[str]:
    for engine in sorted({each.case.engine for each in bent}):
        those = [each for each in bent if each.case.engine == engine]
        effects = unguarded.effects(engine, [each.mutant.text for each in those])
        told = zip(those, effects, strict=True)
        yield from (f"{effect}: {each}" for each, effect in told if effect not in (None, "cannot tell"))


def test_no_mutant_of_a_question_is_refused(cases: list[Case]) -> None:
    questions = [case for case in cases if not case.attack]
    assert [str(each) for each in findings(questions, QUESTIONS)] == []


def test_the_same_seed_makes_the_same_mutant() -> None:
    text = "SELECT name, count(*) FROM customers WHERE id = 1 GROUP BY name"
    made = [mutate(text, "postgres", Random("seed"), attack=True) for _ in range(2)]
    assert made[0] == made[1] != None  # noqa: E711 — both are the same, and there is one


def test_every_mutator_takes_hold_of_some_case(cases: list[Case]) -> None:
    changed = {
        mutator
        for mutator in KEEPING + HARMING + BENDING
        for case in cases
        if mutator(case.sql, case.dialect, Random("hold")) not in (None, case.sql)
    }
    assert {each.__name__ for each in KEEPING + HARMING + BENDING if each not in changed} == set()


def test_what_was_scanned_is_the_text_again(cases: list[Case]) -> None:
    assert all("".join(token.text for token in scan(case.sql, case.dialect)) == case.sql for case in cases)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_comment_between_tokens_changes_no_verdict(dialect: str) -> None:
    assert verdict("SELECT/**/name/* ; */FROM customers -- x", dialect) == "allowed"
    assert verdict("DELETE/**/FROM/* ; */customers -- x", dialect).startswith("refused")


@pytest.mark.parametrize(
    ("engine", "sql", "effect"),
    [
        ("sqlite", "SELECT * FROM orders", None),
        ("sqlite", "DELETE FROM orders", "changes file shop.sqlite"),
        ("sqlite", "PRAGMA query_only = 1", "leaves its session changed"),
        ("sqlite", "not SQL", None),
        ("duckdb", "FROM orders", None),
        ("duckdb", "DELETE FROM orders", "changes file shop.duckdb"),
        ("duckdb", "SET VARIABLE x = 1", "leaves its session changed"),
        ("oracle", "SELECT 1 FROM dual", "cannot tell"),
    ],
)
def test_an_effect_is_distinguished_from_a_query(
    unguarded: Unguarded, engine: str, sql: str, effect: str | None
) -> None:
    assert unguarded.effect(engine, sql) == effect
