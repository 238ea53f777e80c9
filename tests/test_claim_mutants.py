"""The mutants by which `make test-claims` judges claims."""

import ast
import importlib
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from claim_mutants import (
    OTHERS,
    ExecutionIndex,
    Module,
    Mutant,
    Outcome,
    Statements,
    Traced,
    apply_mutant,
    compile_mutant,
    excluded_lines,
    f_measure,
    find_mutants,
    judged,
    load_functions,
    shares,
    stated_numbers,
    stems_of,
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


def test_shares_are_of_all_kills_and_of_those_by_claims_of_the_id():
    counts = Counter[Outcome]({"killed": 6, "elsewhere": 2, "timeout": 1, "survived": 1, "invalid": 5})
    assert shares(counts) == (0.9, 0.7)
    assert shares(Counter[Outcome]({"invalid": 3})) == (0, 0)


def test_numbers_are_read_as_they_are_written_and_in_base_units():
    assert set(stated_numbers("waits 15 minutes, or 10 ms; at 65 % of 200,000, or of `128k`")) == {
        *(15, 900, 900_000),
        *(10, 0.01),
        *(65, 0.65),
        200_000,
        *(128, 128_000, 131_072),
    }
    assert set(stated_numbers("half of v2.5 and gpt-4o")) == {4}


def test_a_number_is_stated_beside_the_words_of_its_sentence():
    stated = stated_numbers("At most 40 coins. A purse opens.\n- Pay by 40 cards\n- or at 65 %")
    assert stated[40] == {"coins", "cards"}
    assert stated[65] == set()
    assert stems_of("_MOST_COLUMNS of readColumn") == {"colum", "read"}


def test_a_measure_is_mutated_only_where_a_document_states_it():
    source = "RATE = 0.65\ndef spend(coins):\n    if coins > 40:\n        return coins * RATE\n    return coins < 3\n"
    tree, names = ast.parse(source), {"RATE": 0.65}

    def rules(stated: Statements | None) -> list[tuple[str, str, str]]:
        return [
            (each.rule, each.before, each.after)
            for each in find_mutants(tree, names, stated)
            if each.rule in ("constant", "comparison")
        ]

    small = [
        ("comparison", "coins < 3", "coins <= 3"),
        ("constant", "3", "4"),
        ("constant", "3", "2"),
    ]
    rate = [("constant", "RATE", "0.9750000000000001"), ("constant", "RATE", "0.325")]
    assert rules({}) == small
    assert rules({0.65: {"price"}, 40: {"price"}}) == small, "of something else"
    assert rules({0.65: {"spend"}}) == [*rate, *small]
    assert rules({0.65: {"rate"}}) == [*rate, *small]
    assert rules(None) == [("constant", "40", "80"), ("constant", "40", "20"), *rate, *small]


def test_a_number_with_a_name_is_mutated_only_where_a_document_states_it():
    tree = ast.parse("def spend(coins):\n    return min(coins, FEW) if coins > ONE else 5\n")

    def constants(stated: Statements) -> list[tuple[str, str]]:
        found = find_mutants(tree, {"FEW": 3, "ONE": 1}, stated)
        return [(each.before, each.after) for each in found if each.rule == "constant"]

    plain = [("ONE", "2"), ("ONE", "0"), ("5", "6"), ("5", "4")]
    assert sorted(constants({})) == sorted(plain)
    assert sorted(constants({3: {"spend"}})) == sorted([*plain, ("FEW", "4"), ("FEW", "2")])


def test_lines_excluded_from_coverage_are_not_mutated():
    source = "def find(x):\n    if x > 1:  # pragma: no cover\n        y = x + 2\n        return y\n    return x\n"
    assert excluded_lines(ast.parse(source), source) == {2, 3, 4}
    lines = "def find(x):\n    return [\n        x,  # pragma: no cover\n    ]\n"
    assert excluded_lines(ast.parse(lines), lines) == {2, 3, 4}


def test_a_line_is_nearest_to_the_id_of_which_most_claims_execute_it():
    assert f_measure(10, 10, 10) == 1
    assert f_measure(10, 60, 10) > f_measure(4, 4, 10), "every claim and many other tests, before a few claims alone"
    assert f_measure(10, 20, 10) > f_measure(10, 200, 10)


def test_claims_of_the_id_judge_a_mutant_and_then_the_most_specific_of_other_ids(purse: ModuleType):
    module, mutants = loaded(purse)
    (at,) = {mutant.lines.start for mutant in mutants if mutant.before == "LIMIT"}
    paying = frozenset({mutant.lines.start for mutant in mutants if mutant.function == "Purse.pay"})
    traced = {
        "test_full": Traced(True, 0.2, {module.path: frozenset({at})}),
        "test_all": Traced(True, 0.1, {module.path: frozenset({at, at - 1, *paying})}),
        "test_pay": Traced(True, 0.1, {module.path: paying}),
        "test_wide": Traced(True, 0.1, {module.path: frozenset(range(1, 40))}),
        "test_dict": Traced(True, 0.3, {module.path: frozenset({at, at - 1})}),
    }
    claims = {"X:full": {"test_full", "test_all"}, "X:pay": {"test_pay"}, "X:dict": {"test_dict", "test_wide"}}
    index = ExecutionIndex({module.path: module}, traced, claims)
    limit = next(mutant for mutant in mutants if mutant.before == "LIMIT")
    assert index.judges(module, limit, "X:full") == (["test_all", "test_full"], ["test_dict", "test_wide"])
    assert index.judges(module, limit, "X:pay") == ([], ["test_full", "test_dict", "test_all", "test_wide"])
    more = {**traced, "test_dict": replace(traced["test_dict"], seconds=OTHERS - 0.5)}
    more["test_full[2]"] = replace(traced["test_full"], seconds=0.3)
    index = ExecutionIndex({module.path: module}, more, claims)
    assert index.judges(module, limit, "X:pay") == ([], ["test_full", "test_dict", "test_all", "test_wide"]), "20 s"
    near = index.near_mutant(module.path, next(mutant for mutant in mutants if mutant.function == "Purse.pay"))
    assert max(near, key=lambda name: near[name]) == "X:pay"
