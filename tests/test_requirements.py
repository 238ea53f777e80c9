import ast
from collections.abc import Iterator
from pathlib import Path

from requirements import NOT_YET_BUILT, REQUIREMENTS

HERE = Path(__file__).parent


def _claims() -> Iterator[str]:
    for path in HERE.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement":
                yield from (str(word.value) for word in node.args if isinstance(word, ast.Constant))


def test_every_contract_is_claimed_by_a_test_or_listed_as_not_yet_built():
    assert set(REQUIREMENTS) - set(_claims()) - NOT_YET_BUILT == set()


def test_every_claim_names_a_contract_that_exists():
    assert set(_claims()) - set(REQUIREMENTS) == set()


def test_no_contract_is_both_claimed_and_listed_as_not_yet_built():
    assert set(_claims()) & NOT_YET_BUILT == set()
