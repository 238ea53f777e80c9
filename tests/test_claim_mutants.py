"""The mutants by which `make test-claims` judges claims."""

import ast
import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest
from claim_mutants import (
    Module,
    Mutant,
    apply_mutant,
    compile_mutant,
    find_mutants,
    judged,
    load_functions,
)

SOURCE = '''
"""Module."""
from dataclasses import dataclass
import logging

LIMIT = 100


@dataclass
class Purse:
    """What is left."""

    coins: int = 3

    def pay(self, price: int, *, tip: int = 1) -> bool:
        """Docstring."""
        if price + tip > self.coins:
            logging.warning("not enough for %s", price)
            return False
        self.coins -= price + tip
        return True


def describe(purse: Purse) -> dict:
    if not purse.coins:
        raise ValueError("the purse is empty")
    return {"coins": purse.coins, "full": purse.coins >= LIMIT}


def outer(factor: int):
    def inner(number: int) -> int:
        return number * factor

    return inner
'''


@pytest.fixture
def purse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (tmp_path / "purse_to_mutate.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "purse_to_mutate", raising=False)
    return importlib.import_module("purse_to_mutate")


def loaded(module: ModuleType) -> tuple[Module, list[Mutant]]:
    made = Module(module)
    load_functions({made.path: made})
    return made, [mutant for mutants in made.mutants.values() for mutant in mutants]


def test_mutants_of_every_rule_are_found_and_none_in_wording_or_logs(purse: ModuleType):
    found = {f"{mutant.rule}: {mutant.before} -> {mutant.after}" for mutant in loaded(purse)[1]}
    assert found >= {
        "default constant: 3 -> 4",
        "default constant: 1 -> 2",
        "comparison: price + tip > self.coins -> price + tip >= self.coins",
        "negated: price + tip > self.coins -> not price + tip > self.coins",
        "arithmetic: price + tip -> price - tip",
        "constant: False -> True",
        "constant: LIMIT -> 200",
        "constant: 'coins' -> 'coinsX'",
        "removed: self.coins -= price + tip -> pass",
        "removed: raise ValueError('the purse is empty') -> pass",
        "sign: not purse.coins -> purse.coins",
        "arithmetic: number * factor -> number / factor",
        "returned: number * factor -> 0",
    }
    assert not [each for each in found if "logging" in each or "not enough" in each or "Docstring" in each]


def test_a_mutant_is_seen_through_every_name_of_its_function(purse: ModuleType):
    module, mutants = loaded(purse)
    describe, double = purse.describe, purse.outer(2)
    assert describe(purse.Purse(100)) == {"coins": 100, "full": True}
    (limit,) = (mutant for mutant in mutants if mutant.after == "200")
    assert apply_mutant(module, limit)
    assert describe(purse.Purse(100)) == {"coins": 100, "full": False}
    (times,) = (mutant for mutant in mutants if mutant.after == "number / factor")
    assert apply_mutant(module, times)
    assert (double(3), purse.outer(2)(3)) == (6, 1.5), "made before and after"


def test_defaults_of_fields_and_parameters_are_mutated(purse: ModuleType):
    module, mutants = loaded(purse)
    defaults = {(mutant.before, mutant.after): mutant for mutant in mutants if mutant.rule.startswith("default")}
    assert purse.Purse().pay(2)
    assert apply_mutant(module, defaults["1", "2"])
    assert not purse.Purse().pay(2)
    assert apply_mutant(module, defaults["3", "4"])
    assert purse.Purse().pay(2)


def test_compiling_a_mutant_leaves_the_tree_as_it_was():
    tree = ast.parse(SOURCE)
    before = ast.dump(tree)
    for mutant in find_mutants(tree):
        if isinstance(mutant.edit, tuple):
            compile_mutant(tree, mutant, "purse.py")
    assert ast.dump(tree) == before


def test_a_mutant_that_the_end_of_the_run_cuts_short_is_not_counted_as_killed():
    assert judged("timeout", is_cut=True) == "invalid"
    assert judged("timeout", is_cut=False) == "timeout"
    assert judged("survived", is_cut=True) == "survived"
    assert judged("killed", is_cut=True) == "killed"
