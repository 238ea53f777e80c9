"""Mutation test of the requirement claims.

A test that claims a requirement (`@pytest.mark.requirement`) must fail when the code that implements the requirement is
broken. This script runs every claiming test once under coverage, generates mutants in the functions that the claims of
an id execute, and runs the claims of that id against each mutant. It prints a table by id and the share of mutants
killed, and fails below `FLOOR`.

The test modules are imported once. Each mutant runs in a forked process that replaces the `__code__` of the mutated
function in memory, so nothing is written to the work tree and names imported from a module see the mutant too. Code
that a test runs in another process is not mutated.

Usage: python scripts/claim_mutants.py [--minutes 30] [--seed N] [--only ID] [--per-id 30]
"""

import argparse
import ast
import functools
import gc
import importlib
import operator
import os
import pickle
import pkgutil
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import CodeType, EllipsisType, FunctionType, ModuleType
from typing import Literal

import coverage
import pytest

FLOOR = 0.95
PROCESSES = 2
LEAST_SECONDS, SLOWER = 10, 5  # limit of a test against a mutant: seconds, and times what it took unmutated
GRACE = 30  # seconds after the end of the run in which the last mutants are judged
POOL = 100  # mutants among which the sample of an id is chosen: those of its nearest lines
LEAST = 0.5  # how near a line must be to an id, as a share of the nearest line and of the line's nearest id
RECALL = 2  # how much more it weighs that claims execute a line than that no other test does
OTHERS = (
    20  # seconds of claims of other ids that try a survivor of the id's own, those that execute least beside it first
)
ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "ullage"

Constant = float | str | bytes | complex | EllipsisType | None
Outcome = Literal["killed", "elsewhere", "timeout", "survived", "invalid"]


# Mutants of a module


@dataclass(frozen=True, slots=True)
class Default:
    """New default value of a parameter or of a dataclass field."""

    owner: str  # qualified name of the function or the class
    name: str
    value: Constant


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one node in a function."""

    function: str  # qualified name of the outermost function, or of the dataclass
    lines: range  # lines of the statement that changes
    rule: str
    before: str
    after: str
    edit: "tuple[ast.AST, str, int | None, ast.AST] | Default"  # parent, field, index, new node

    def __str__(self) -> str:
        return f"{self.function}:{self.lines.start} {self.rule}: {self.before} -> {self.after}"


COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
BOUNDARIES = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
EMPTY: dict[str, str] = {"str": "''", "int": "0", "float": "0.0", "list": "[]", "tuple": "()", "dict": "{}"}
# Text that a program compares or looks up: a key, a code, a name. Anything with a space is wording.
KEY = re.compile(r"[A-Za-z_$][\w$./:-]+")
LARGE = 16  # from here on a number is a measure, and one more or less is no other behaviour: it is scaled
NAMED = 3  # from here on a number that has a name is set by how well something works, unless a document states it
NUMBER = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)[ _`]*(%|ms|µs|[kKMG]i?B|[kKM]\b|minutes?|hours?|days?)?")
SENTENCE_END = re.compile(r"(?<=[.;!?])\s+|\n\s*(?=[-*|#\n\"])")
WORD = re.compile(r"[A-Z][a-z]{3,}|[a-z]{4,}|[A-Z]{4,}")
STEM = 5  # letters by which `column`, `columns` and `COLUMNS` are one word
AMOUNTS = frozenset({"most", "least", "more", "less", "than", "over", "under", "longest", "ullage"})
UNITS: dict[str, Sequence[float]] = {
    "%": (0.01,),
    "ms": (1e-3,),
    "µs": (1e-6,),
    "k": (1e3, 2**10),
    "m": (1e6, 2**20),
    "g": (1e9, 2**30),
    "minute": (60, 60_000),
    "hour": (3600, 3_600_000),
    "day": (86_400, 86_400_000),
}
# Calls whose removal or arguments no test of behaviour can see.
UNSEEN_CALLS = re.compile(r"^(log|logger|logging|warnings|print|_log)$")
UNSEEN_METHODS = frozenset(
    {
        *("debug", "info", "warning", "exception", "warn"),  # logs
        *("cast", "TypeVar"),  # types
        *("sleep", "wait", "move_on_after", "fail_after", "perf_counter", "monotonic"),  # time
        *("flush", "fsync"),  # what only a crash of the machine would show
        "annotate_span",  # traces of the process itself
    }
)
# Arguments that change how long something takes, how it is spelt in memory or what a failure looks like.
UNSEEN_KEYWORDS = frozenset(
    {
        "encoding",
        "errors",
        "strict",
        "name",
        "daemon",
        "stacklevel",
        "timeout",
        "exist_ok",
        "parents",
        "flush",
        "maxsize",
        "metavar",
    }
)
UNSEEN_FUNCTIONS = frozenset({"__repr__", "__str__", "__hash__", "__dir__"})


def find_mutants(
    tree: ast.Module, names: Mapping[str, object] | None = None, stated: "Statements | None" = None
) -> list[Mutant]:
    """Every mutant of a module.

    Args:
        tree: the module; a mutant refers to its nodes.
        names: the module's globals. A name of an upper-case number or key is mutated where a function reads it.
        stated: the numbers that the contracts and the docs state. A measure that no sentence states together with a
            word of its own name or of its function is tuned by a benchmark: its floors hold it, and no claim does.
            Without this, every measure is mutated.
    """
    return list(_Finder(_Values(names or {}, stated)).in_body(tree, ""))


Statements = Mapping[float, Set[str]]
"""The stems of the words of all sentences that state a number, by the number."""


def stated_numbers(text: str) -> Statements:
    """Every number in a text, as it is written and in base units: `15 minutes` is 15, 900 and 900,000."""
    found: dict[float, set[str]] = defaultdict(set)
    for sentence in SENTENCE_END.split(text):
        stems = stems_of(sentence)
        for written, unit in NUMBER.findall(sentence):
            number = float(written.replace(",", ""))
            key = unit if unit in UNITS else unit.rstrip("s") if unit.rstrip("s") in UNITS else unit[:1].lower()
            for each in (number, *(round(number * scale, 9) for scale in UNITS.get(key, ()))):
                found[each] |= stems
    return dict(found)


def stems_of(text: str) -> frozenset[str]:
    """The first letters of every word of a text or of a name, without words that say how much."""
    words = (word.lower() for word in WORD.findall(text))
    return frozenset(word[:STEM] for word in words if word not in AMOUNTS)


@functools.cache
def documented_numbers() -> Statements:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "tests" / "requirements.py"]
    return stated_numbers("\n\n".join(page.read_text(encoding="utf-8") for page in pages))


@dataclass(frozen=True, slots=True)
class _Values:
    """Which constants are mutated, and into what."""

    names: Mapping[str, object]
    stated: Statements | None

    def read(self, node: ast.AST) -> object:
        """The value of a constant or of an upper-case name of one."""
        if isinstance(node, ast.Constant):
            return node.value
        return self.names.get(node.id) if isinstance(node, ast.Name) and node.id.isupper() else None

    def is_measure(self, node: ast.AST) -> bool:
        value = self.read(node)
        return isinstance(value, float) or (type(value) is int and abs(value) >= LARGE)

    def others(self, node: ast.AST, place: str) -> Iterator[tuple[str, ast.Constant]]:
        """Other values in place of a number, a truth value or a key, or of an upper-case name of one.

        Args:
            node: the constant or the name.
            place: the names of what it belongs to, which a sentence must mention to state its value.
        """
        value = self.read(node)
        is_tuned = False
        if self.stated is not None and isinstance(value, float | int):
            is_named = isinstance(node, ast.Name) and abs(value) >= NAMED
            said = self.stated.get(round(abs(value), 9), frozenset())
            is_tuned = (is_named or self.is_measure(node)) and stems_of(f"{ast.unparse(node)} {place}").isdisjoint(said)
        for other in () if is_tuned else _other_values(value):
            yield "constant", ast.Constant(other)


class _Finder:
    def __init__(self, values: _Values) -> None:
        self.values = values
        self.function = ""
        self.returns: ast.expr | None = None
        self.lines = range(0)

    def in_body(self, owner: ast.Module | ast.ClassDef, prefix: str) -> Iterator[Mutant]:
        for node in owner.body:
            if isinstance(node, ast.ClassDef):
                name = prefix + node.name
                if _is_dataclass(node):
                    yield from self.field_defaults(node, name)
                yield from self.in_body(node, f"{name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from self.in_function(node, prefix + node.name)

    def in_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Iterator[Mutant]:
        if node.name in UNSEEN_FUNCTIONS or "overload" in {ast.unparse(each) for each in node.decorator_list}:
            return
        self.function, self.returns = name, node.returns
        yield from self.parameter_defaults(node, name)
        yield from self.in_statements(node, "body", last=True)

    def parameter_defaults(self, node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Iterator[Mutant]:
        places = [*node.args.posonlyargs, *node.args.args]
        pairs = [*zip(places[len(places) - len(node.args.defaults) :], node.args.defaults, strict=True)]
        pairs += [(arg, value) for arg, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if value]
        for arg, value in pairs:
            if arg.arg not in UNSEEN_KEYWORDS:
                self.lines = _span(node.body[0])
                yield from self.defaults(name, arg.arg, value)

    def field_defaults(self, node: ast.ClassDef, name: str) -> Iterator[Mutant]:
        for each in node.body:
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.value:
                self.function, self.lines = name, _span(each)
                yield from self.defaults(name, each.target.id, each.value)

    def defaults(self, owner: str, name: str, value: ast.expr) -> Iterator[Mutant]:
        for rule, new in self.values.others(value, f"{owner} {name}"):
            edit = Default(owner, name, new.value)
            yield Mutant(self.function, self.lines, f"default {rule}", ast.unparse(value), ast.unparse(new), edit)

    def in_statements(self, parent: ast.AST, part: str, *, last: bool = False) -> Iterator[Mutant]:
        """Mutants of the statements in one block; `last` when the block ends the function."""
        block: list[ast.stmt] = getattr(parent, part)
        for at, node in enumerate(block):
            if _is_unseen(node):
                continue
            self.lines = _span(node)
            final = last and at == len(block) - 1
            if _is_removable(node, final=final, loop=parent):
                yield self.mutant("removed", node, ast.Pass(), (parent, part, at))
            if isinstance(node, ast.Return) and node.value:
                yield from self.returned(node)
            yield from self.in_children(node, final=final)

    def in_children(self, node: ast.stmt, *, final: bool) -> Iterator[Mutant]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            outer, self.returns = self.returns, node.returns
            yield from self.in_statements(node, "body", last=True)
            self.returns = outer
            return
        for part, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield from self.in_statements(node, part, last=final and isinstance(node, ast.If | ast.With | ast.Try))
            elif isinstance(value, list) and value and isinstance(value[0], ast.ExceptHandler | ast.match_case):
                for each in value:
                    yield from self.in_statements(each, "body", last=final)
            else:
                self.lines = _span(node)
                yield from self.in_expressions(node, part, value)

    def in_expressions(self, parent: ast.AST, part: str, value: object) -> Iterator[Mutant]:
        if part in ("annotation", "returns", "type_comment", "ctx"):
            return
        values = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for at, node in values:
            if isinstance(node, ast.AST) and not _is_unseen(node):
                for rule, new in self.changes(node, parent, part):
                    yield self.mutant(rule, node, new, (parent, part, at))
                for inner, each in ast.iter_fields(node):
                    yield from self.in_expressions(node, inner, each)

    def changes(self, node: ast.AST, parent: ast.AST, part: str) -> Iterator[tuple[str, ast.AST]]:
        if isinstance(node, ast.Compare):
            for at, operator in enumerate(node.ops):
                sides = [node.left, *node.comparators][at : at + 2]
                is_rounded = any(map(self.values.is_measure, sides))  # one more or less than a measure
                if not (isinstance(operator, BOUNDARIES) and (is_rounded or _is_tie(node, parent))):
                    ops = [*node.ops[:at], COMPARISONS[type(operator)](), *node.ops[at + 1 :]]
                    yield "comparison", ast.Compare(node.left, ops, node.comparators)
        elif isinstance(node, ast.BoolOp):
            yield "and/or", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _is_joined(node):
            yield "arithmetic", ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            yield "sign", node.operand
        elif isinstance(node, ast.Constant | ast.Name):
            yield from self.values.others(node, self.function)
        if isinstance(parent, ast.If | ast.IfExp) and part == "test" and not _is_swapped(node):
            yield "negated", ast.UnaryOp(ast.Not(), node) if isinstance(node, ast.expr) else node

    def returned(self, node: ast.Return) -> Iterator[Mutant]:
        """The return value replaced by the empty value of the annotated type."""
        if not node.value or isinstance(node.value, ast.Constant):
            return
        kind = ast.unparse(self.returns).split("[")[0] if self.returns else ""
        if kind == "bool":
            if not (_is_swapped(node.value) or isinstance(node.value, ast.UnaryOp)):
                yield self.mutant("returned", node.value, ast.UnaryOp(ast.Not(), node.value), (node, "value", None))
            return
        new = ast.parse(EMPTY.get(kind, "None"), mode="eval").body
        if ast.unparse(new) != ast.unparse(node.value):
            yield self.mutant("returned", node.value, new, (node, "value", None))

    def mutant(self, rule: str, node: ast.AST, new: ast.AST, place: tuple[ast.AST, str, int | None]) -> Mutant:
        new = ast.fix_missing_locations(ast.copy_location(new, node))
        return Mutant(self.function, self.lines, rule, _short(node), _short(new), (*place, new))


def _other_values(value: object) -> Sequence[float | str]:
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        if abs(value) >= LARGE:
            return (value * 2, value // 2)
        return (value + 1, value - 1) if value else (1,)
    if isinstance(value, float):
        return (value * 1.5, value * 0.5) if value else (1.0,)
    if isinstance(value, str) and KEY.fullmatch(value):
        return (value + "X",)
    return ()


def _is_unseen(node: ast.AST) -> bool:
    """Whether a node changes nothing that a test of behaviour could see."""
    if isinstance(
        node, ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal | ast.Pass
    ):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _is_unseen(node.value)
    if isinstance(node, ast.Await):
        return _is_unseen(node.value)
    if isinstance(node, ast.BinOp):  # a deadline
        return any(isinstance(each, ast.Call) and _is_unseen(each) for each in (node.left, node.right))
    if isinstance(node, ast.keyword):
        return node.arg in UNSEEN_KEYWORDS
    if isinstance(node, ast.If):
        return any(word in ast.unparse(node.test) for word in ("TYPE_CHECKING", "sys.platform", "os.name"))
    if isinstance(node, ast.Call):
        called = node.func
        if isinstance(called, ast.Attribute):
            return called.attr in UNSEEN_METHODS or bool(UNSEEN_CALLS.match(ast.unparse(called.value)))
        return isinstance(called, ast.Name) and bool(UNSEEN_CALLS.match(called.id) or called.id in UNSEEN_METHODS)
    return False


def _is_removable(node: ast.stmt, *, final: bool, loop: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Await)
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Attribute | ast.Subscript)
    if isinstance(node, ast.Return):
        return not final
    return isinstance(node, ast.AugAssign | ast.Raise | ast.Continue | ast.Delete)


def _is_tie(node: ast.Compare, parent: ast.AST) -> bool:
    """Whether a comparison chooses the greater or lesser of its operands, where equality makes no difference."""
    if isinstance(parent, ast.IfExp):
        chosen = {ast.unparse(parent.body), ast.unparse(parent.orelse)}
        return chosen == {ast.unparse(node.left), ast.unparse(node.comparators[0])}
    return False


def _is_joined(node: ast.BinOp) -> bool:
    """Whether an addition joins text or sequences, where any other operator fails at once."""
    joined = ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp
    return any(
        isinstance(x, joined) or (isinstance(x, ast.Constant) and isinstance(x.value, str))
        for x in (node.left, node.right)
    )


def _is_swapped(node: ast.AST) -> bool:
    """Whether swapping the comparison already negates the condition."""
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and not isinstance(node.ops[0], BOUNDARIES)
    return isinstance(node, ast.UnaryOp)


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any(ast.unparse(each).startswith(("dataclass", "dataclasses.dataclass")) for each in node.decorator_list)


def _span(node: ast.stmt) -> range:
    """The lines of a statement, or of the head of a compound statement."""
    body = getattr(node, "body", None)
    end = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno
    return range(node.lineno, max(node.lineno, end or node.lineno) + 1)


def excluded_lines(tree: ast.Module, source: str) -> frozenset[int]:
    """The lines of statements that `# pragma: no cover` excludes from coverage, with their bodies."""
    marked = {number for number, line in enumerate(source.splitlines(), 1) if "# pragma: no cover" in line}
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    return frozenset(
        line
        for node in statements
        if not marked.isdisjoint(_span(node))
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    )


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) < 70 else f"{text[:67]}..."


def compile_mutant(tree: ast.Module, mutant: Mutant, filename: str) -> CodeType:
    """The module's code with the mutant in it; the tree is left as it was."""
    assert not isinstance(mutant.edit, Default)
    parent, part, at, new = mutant.edit
    old = getattr(parent, part)
    if at is None:
        setattr(parent, part, new)
    else:
        setattr(parent, part, [*old[:at], new, *old[at + 1 :]])
    try:
        return compile(tree, filename, "exec", dont_inherit=True)
    finally:
        setattr(parent, part, old)


# The package, in memory


class Module:
    """One source file: its tree, its mutants and the functions made from it."""

    def __init__(self, module: ModuleType) -> None:
        self.name = module.__name__
        self.path = str(module.__file__)
        self.globals = vars(module)
        self.functions: list[FunctionType] = []

    @cached_property
    def source(self) -> str:
        return Path(self.path).read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source, self.path)

    @cached_property
    def mutants(self) -> dict[str, list[Mutant]]:
        """Mutants by the name of their function, without those of code that runs on another system only."""
        found: dict[str, list[Mutant]] = defaultdict(list)
        excluded = excluded_lines(self.tree, self.source)
        for mutant in find_mutants(self.tree, self.globals, documented_numbers()):
            if excluded.isdisjoint(mutant.lines):
                found[mutant.function].append(mutant)
        return found


def load_modules() -> dict[str, Module]:
    """Every module of the package by its path, with all of its functions."""
    found: dict[str, Module] = {}
    for each in pkgutil.walk_packages([str(SOURCE)], "ullage."):
        if each.name.endswith("__main__") or each.name.startswith("ullage.testing"):  # fakes that stand for other code
            continue
        try:
            module = importlib.import_module(each.name)
        except ImportError:  # an extra that is not installed
            continue
        found[str(module.__file__)] = Module(module)
    load_functions(found)
    return found


def load_functions(modules: Mapping[str, Module]) -> None:
    """Finds the functions of some modules, under whatever names they are held."""
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename in modules:
            modules[each.__code__.co_filename].functions.append(each)


def apply_mutant(module: Module, mutant: Mutant) -> bool:
    """Puts a mutant into the functions of this process; False where nothing changes."""
    if isinstance(mutant.edit, Default):
        return _apply_default(module, mutant.edit)
    codes = {
        (code.co_qualname, code.co_firstlineno): code
        for code in _codes(compile_mutant(module.tree, mutant, module.path))
    }
    changed = False
    for function in module.functions:
        old = function.__code__
        new = codes.get((old.co_qualname, old.co_firstlineno))
        if new is not None and new != old and new.co_freevars == old.co_freevars:
            function.__code__ = new
            changed = True
    return changed


def _apply_default(module: Module, edit: Default) -> bool:
    owner: object = sys.modules[module.name]
    for part in edit.owner.split("."):
        owner = getattr(owner, part, None)
    if isinstance(owner, type):
        if edit.name in owner.__dict__ and not hasattr(owner.__dict__[edit.name], "__set__"):
            setattr(owner, edit.name, edit.value)
        functions = [owner.__init__]
    else:
        functions = [each for each in module.functions if each.__code__.co_qualname == edit.owner]
    changed = [_set_default(each, edit) for each in functions if isinstance(each, FunctionType)]
    return any(changed)


def _set_default(function: FunctionType, edit: Default) -> bool:
    if edit.name in (function.__kwdefaults__ or {}):
        function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), edit.name: edit.value}
        return True
    places = function.__code__.co_varnames[: function.__code__.co_argcount]
    defaults: list[object] = list(function.__defaults__ or ())
    if edit.name not in places or places.index(edit.name) < len(places) - len(defaults):
        return False
    defaults[places.index(edit.name) - len(places)] = edit.value
    function.__defaults__ = tuple(defaults)
    return True


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


# Forked runs of tests

INVALID, ELSEWHERE = 3, 4  # exit codes of a forked process


@dataclass(frozen=True, slots=True)
class Traced:
    """What one test did without a mutant."""

    passed: bool
    seconds: float
    lines: dict[str, frozenset[int]]  # by path


class Forks:
    """At most `PROCESSES` forked children at once, each with a time limit and a folder of its own."""

    def __init__(self) -> None:
        self.running: dict[int, tuple[float, Path, Callable[[Outcome, Path], None]]] = {}

    def start(self, work: Callable[[Path], int], limit: float, done: Callable[[Outcome, Path], None]) -> None:
        while len(self.running) >= PROCESSES:
            self.wait_one()
        folder = Path(tempfile.mkdtemp(prefix="claims-"))
        child = os.fork()
        if not child:
            _run_child(work, folder)
        self.running[child] = (time.monotonic() + limit, folder, done)

    def finish(self) -> None:
        while self.running:
            self.wait_one()

    def wait_one(self) -> None:
        while True:
            for child, (deadline, folder, done) in list(self.running.items()):
                ended, status = os.waitpid(child, os.WNOHANG)
                late = not ended and time.monotonic() > deadline
                if ended or late:
                    _kill_group(child)
                    if late:
                        os.waitpid(child, 0)
                    outcomes: dict[int, Outcome] = {
                        0: "survived",
                        INVALID: "invalid",
                        ELSEWHERE: "elsewhere",
                        -signal.SIGALRM: "timeout",
                    }
                    done("timeout" if late else outcomes.get(os.waitstatus_to_exitcode(status), "killed"), folder)
                    shutil.rmtree(folder, ignore_errors=True)
                    del self.running[child]
                    return
            time.sleep(0.01)


def _run_child(work: Callable[[Path], int], folder: Path) -> None:
    code = 1
    try:
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(quiet, descriptor)
        os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        code = work(folder)
    finally:
        os._exit(code)


def _kill_group(child: int) -> None:
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:
        os.kill(child, signal.SIGKILL)


class Reports:
    """Plugin that notes whether the test that runs now failed."""

    def __init__(self) -> None:
        self.failed = False
        self.skipped = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed
        self.skipped |= report.skipped


class Claims:
    """Plugin that replaces pytest's own loop by the mutation test."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.reports = Reports()
        self.forks = Forks()
        self.traced: dict[str, Traced] = {}
        self.share: float | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        session.config.pluginmanager.register(self.reports)
        self.start = time.monotonic()
        self.items = {item.nodeid: item for item in session.items if ids_of(item)}
        modules = load_modules()
        gc.collect()
        gc.freeze()
        self.trace()
        say(f"{len(self.items)} claiming tests traced in {time.monotonic() - self.start:.0f} s")
        self.judge(modules)
        return True

    def run(self, items: Sequence[pytest.Item], meter: "coverage.Coverage | None" = None) -> Iterator[pytest.Item]:
        """Runs tests in this process one by one; `reports` tells how the one that was yielded ended."""
        for item, following in zip(items, [*items[1:], None], strict=True):
            self.reports.failed = self.reports.skipped = False
            if meter is not None:
                meter.switch_context(item.nodeid)
            elif item.nodeid in self.traced:
                # The signal ends the process: a mutant that never ends costs one test's limit, not that of all.
                signal.setitimer(signal.ITIMER_REAL, LEAST_SECONDS + SLOWER * self.traced[item.nodeid].seconds)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            yield item

    def trace(self) -> None:
        """Runs each file's claiming tests once, unmutated, and notes the lines each test executes."""
        files: dict[Path, list[pytest.Item]] = defaultdict(list)
        for item in self.items.values():
            files[item.path].append(item)
        for items in files.values():
            self.forks.start(partial(self.trace_file, items), 600, self.read_trace)
        self.forks.finish()
        for name in sorted(set(self.items) - {name for name, each in self.traced.items() if each.passed}):
            say(f"left out, does not pass or is skipped here: {name}")

    def trace_file(self, items: Sequence[pytest.Item], folder: Path) -> int:
        meter = coverage.Coverage(data_file=None, config_file=False, include=[f"{SOURCE}/*"], messages=False)
        times: dict[str, tuple[bool, float]] = {}
        since = time.monotonic()
        meter.start()
        for item in self.run(items, meter):
            times[item.nodeid] = (not self.reports.failed and not self.reports.skipped, time.monotonic() - since)
            since = time.monotonic()
        meter.stop()
        data = meter.get_data()
        lines: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for path in data.measured_files():
            for line, contexts in data.contexts_by_lineno(path).items():
                for name in contexts:
                    lines[name][path].add(line)
        found = {
            name: Traced(passed, seconds, {path: frozenset(each) for path, each in lines[name].items()})
            for name, (passed, seconds) in times.items()
        }
        (folder / "traced").write_bytes(pickle.dumps(found))
        return 0

    def read_trace(self, _outcome: Outcome, folder: Path) -> None:
        if (folder / "traced").exists():
            self.traced.update(pickle.loads((folder / "traced").read_bytes()))

    def judge(self, modules: dict[str, Module]) -> None:
        """Runs the sample of every id, one mutant of each id in turn, until all are done or time is over."""
        ids = sorted({name for item in self.items.values() for name in ids_of(item)})
        chosen = [name for name in ids if not self.options.only or name in self.options.only]
        passing = {name: each for name, each in self.traced.items() if each.passed}
        claims = {name: {test for test in passing if name in ids_of(self.items[test])} for name in ids}

        def seconds(test: str) -> float:
            return passing[test].seconds

        if not self.passes_unmutated(sorted({min(tests, key=seconds) for tests in claims.values() if tests})):
            say("the claims fail in a forked process without a mutant: nothing can be judged")
            return
        index = ExecutionIndex(modules, passing, claims)
        samples = {name: index.sample(name, self.options) for name in chosen}
        results: dict[str, Counter[Outcome]] = {name: Counter() for name in chosen}
        survivors: list[str] = []
        end = self.start + self.options.minutes * 60
        for turn in range(self.options.per_id):
            for name in chosen:
                if turn >= len(samples[name]) or time.monotonic() > end:
                    continue
                module, mutant = samples[name][turn]
                tests, others = index.judges(module, mutant, name)
                shown = f"{name}  {module.name} {mutant}"
                limit = LEAST_SECONDS + SLOWER * sum(passing[test].seconds for test in (*tests, *others))
                left = end + GRACE - time.monotonic()

                def done(
                    outcome: Outcome, folder: Path, name: str = name, shown: str = shown, *, is_cut: bool = limit > left
                ) -> None:
                    results[name][judged(outcome, is_cut=is_cut)] += 1
                    if outcome == "survived":
                        survivors.append(shown)

                self.forks.start(
                    partial(self.judge_one, module, mutant, tests, others),
                    min(limit, left),
                    done,
                )
        self.forks.finish()
        self.report(results, survivors)

    def passes_unmutated(self, tests: Sequence[str]) -> bool:
        """Whether tests pass in a forked process as they did when they were traced: else every mutant seems killed."""
        outcomes = list[Outcome]()
        self.forks.start(
            lambda _: int(any(self.reports.failed for _ in self.run([self.items[test] for test in tests]))),
            LEAST_SECONDS + SLOWER * sum(self.traced[test].seconds for test in tests),
            lambda outcome, _: outcomes.append(outcome),
        )
        self.forks.finish()
        return outcomes == ["survived"]

    def judge_one(
        self, module: Module, mutant: Mutant, tests: Sequence[str], others: Sequence[str], _folder: Path
    ) -> int:
        if not apply_mutant(module, mutant):
            return INVALID
        for code, names in ((1, tests), (ELSEWHERE, others)):
            if any(self.reports.failed for _ in self.run([self.items[test] for test in names])):
                return code
        return 0

    def report(self, results: Mapping[str, Counter[Outcome]], survivors: Sequence[str]) -> None:
        for each in sorted(survivors):
            say(f"survived: {each}")
        say(f"{'id':24}{'killed':>8}{'elsewhere':>11}{'timeout':>9}{'survived':>10}{'share':>9}{'own':>9}")
        for name, counts in results.items():
            share, own = shares(counts)
            figures = f"{counts['killed']:8}{counts['elsewhere']:11}{counts['timeout']:9}{counts['survived']:10}"
            say(f"{name:24}{figures}" + (f"{share:9.1%}{own:9.1%}" if _judged_count(counts) else f"{'-':>9}{'-':>9}"))
        whole = sum(results.values(), Counter[Outcome]())
        total = _judged_count(whole)
        self.share, own = shares(whole)
        say(
            f"killed {total - whole['survived']} of {total} mutants ({self.share:.1%}; {own:.1%} by claims of the id "
            f"itself; {whole['timeout']} by timeout) of {len(results)} ids in "
            f"{time.monotonic() - self.start:.0f} s, seed {self.options.seed}"
        )


def shares(counts: Counter[Outcome]) -> tuple[float, float]:
    """Shares of the judged mutants that any claims kill, and that claims of the id itself kill."""
    total = max(1, _judged_count(counts))
    killed = total - counts["survived"] if _judged_count(counts) else 0
    return killed / total, (killed - counts["elsewhere"]) / total


class ExecutionIndex:
    """Which claiming tests execute which functions. A set of test functions is the bits of a number here."""

    def __init__(
        self, modules: dict[str, Module], traced: Mapping[str, Traced], claims: Mapping[str, set[str]]
    ) -> None:
        self.modules = modules
        self.traced = traced
        self.claims = claims
        bits = {name: 1 << at for at, name in enumerate(sorted({_test_function(test) for test in traced}))}
        self.bits = {name: _union(bits[_test_function(test)] for test in tests) for name, tests in claims.items()}
        self.lines: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))  # by path and line
        for test, each in traced.items():
            bit = bits[_test_function(test)]
            for path, lines in each.lines.items():
                found = self.lines[path]
                for line in lines:
                    found[line] |= bit
        self.places = {place: lines for path in self.lines if path in modules for place, lines in self.spans(path)}
        self.line_counts = {test: sum(map(len, each.lines.values())) for test, each in traced.items()}
        self.by_tests: dict[int, dict[str, float]] = {}
        self.nearness = {place: each for place, lines in self.places.items() if (each := self.near(place[0], lines))}

    def spans(self, path: str) -> Iterator[tuple[tuple[str, str], list[int]]]:
        """Path and name of every function with its lines, and of every dataclass with those of its methods."""
        module = self.modules[path]
        functions = {name: [*range(first, last + 1)] for name, first, last in _functions(module.tree)}
        for owner in module.mutants.keys() - functions:
            methods = [lines for name, lines in functions.items() if name.startswith(f"{owner}.")]
            yield (path, owner), [line for lines in methods for line in lines]
        for name, lines in functions.items():
            yield (path, name), lines

    def near(self, path: str, lines: Sequence[int]) -> dict[str, float]:
        """How nearly the tests that execute a function are the claims of an id, by id.

        Dice's coefficient, 0 to 1, of the function or of that line of it where it is greatest: a rule that everything
        passes through belongs to the claims that break it. A test with many parameters is one test.
        """
        found = self.lines[path]
        groups = {found[line] for line in lines if line in found}
        groups.add(_union(groups))
        nearest: dict[str, float] = {}
        for name, claims in self.bits.items():
            for tests in groups:
                if shared := (tests & claims).bit_count():
                    dice = f_measure(shared, tests.bit_count(), claims.bit_count())
                    nearest[name] = max(dice, nearest.get(name, 0.0))
        return nearest

    def near_mutant(self, path: str, mutant: Mutant) -> Mapping[str, float]:
        """Nearness by id of the lines that change, or of the function where no claim executes them."""
        tests = self.line_tests(path, mutant)
        if not tests:
            return self.nearness.get((path, mutant.function), {})
        if tests not in self.by_tests:
            self.by_tests[tests] = {
                name: f_measure(shared, tests.bit_count(), claims.bit_count())
                for name, claims in self.bits.items()
                if (shared := (tests & claims).bit_count())
            }
        return self.by_tests[tests]

    def sample(self, name: str, options: argparse.Namespace) -> list[tuple[Module, Mutant]]:
        """Mutants of the lines that are nearest to an id, in random order.

        A line belongs to the id it is nearest to. An id that owns too few lines is tried on lines that it executes and
        that are nearer to others.
        """
        own = list[tuple[float, int, Module, Mutant]]()
        shared = list[tuple[float, int, Module, Mutant]]()
        for (path, function), near_place in self.nearness.items():
            if name not in near_place:
                continue
            for mutant in self.modules[path].mutants.get(function, ()):
                near = self.near_mutant(path, mutant)
                is_own = name in near and near[name] == max(near.values())
                if is_own or (self.is_executed(path, mutant) and near.get(name, 0.0) >= LEAST * max(near.values())):
                    kind = own if is_own else shared
                    kind.append((-near[name], len(kind), self.modules[path], mutant))
        pool = list[tuple[Module, Mutant]]()
        for kind in (own, shared):
            kind.sort(key=lambda each: each[:2])
            wanted = (POOL if kind is own else options.per_id) - len(pool)
            pool += [each[2:] for each in kind[: max(0, wanted)] if each[0] <= LEAST * kind[0][0]]
        random.Random(f"{options.seed} {name}").shuffle(pool)
        return pool[: options.per_id]

    def is_executed(self, path: str, mutant: Mutant) -> bool:
        return self.line_tests(path, mutant) != 0

    def line_tests(self, path: str, mutant: Mutant) -> int:
        return _union(self.lines[path].get(line, 0) for line in mutant.lines)

    def judges(self, module: Module, mutant: Mutant, name: str) -> tuple[list[str], list[str]]:
        """The claims of the id that execute the mutated lines, and those of other ids that try a survivor.

        Where no claim executes the lines, these are claims that execute the function. Whether a line that an id passes
        through is right is for the tests of that line to prove: the claims of other ids come in the order of how
        specific they are, each test function once before any other parameters of it, for `OTHERS` seconds in all.
        """
        is_executed = self.is_executed(module.path, mutant)
        lines = mutant.lines if is_executed else self.places.get((module.path, mutant.function), [])
        found = {
            test for test, each in self.traced.items() if not each.lines.get(module.path, frozenset()).isdisjoint(lines)
        }
        own = sorted(found & self.claims[name], key=lambda test: self.traced[test].seconds)
        by_function: dict[str, list[str]] = defaultdict(list)
        for test in sorted(found - self.claims[name], key=lambda test: self.traced[test].seconds):
            by_function[_test_function(test)].append(test)
        ranks = [(at, self.line_counts[test], test) for tests in by_function.values() for at, test in enumerate(tests)]
        others, seconds = list[str](), 0.0
        for _, _, test in sorted(ranks):
            if (seconds := seconds + self.traced[test].seconds) > OTHERS:
                break
            others.append(test)
        return own, others


def _judged_count(counts: Counter[Outcome]) -> int:
    return counts.total() - counts["invalid"]


def f_measure(shared: int, tests: int, claims: int) -> float:
    """How nearly the tests that execute a line are the claims of an id, 0 to 1, by the share of claims most of all."""
    return (1 + RECALL**2) * shared / (RECALL**2 * claims + tests)


def _union(sets: Iterable[int]) -> int:
    return functools.reduce(operator.or_, sets, 0)


def _functions(tree: ast.Module) -> Iterator[tuple[str, int, int]]:
    """Qualified name, first and last line of the body of every outermost function."""

    def walk(owner: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, int, int]]:
        for node in owner.body:
            if isinstance(node, ast.ClassDef):
                yield from walk(node, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + node.name, node.body[0].lineno, node.end_lineno or node.body[-1].lineno

    return walk(tree, "")


def _test_function(name: str) -> str:
    """The id of a test without its parameters."""
    return name.partition("[")[0]


def judged(outcome: Outcome, *, is_cut: bool) -> Outcome:
    """A mutant whose time was cut short by the end of the run is neither killed nor alive."""
    return "invalid" if is_cut and outcome == "timeout" else outcome


def ids_of(item: pytest.Item) -> set[str]:
    return {str(name) for mark in item.iter_markers("requirement") for name in mark.args}


def say(text: str) -> None:
    print(text, flush=True)


def claiming_files() -> list[str]:
    return sorted(
        str(path)
        for path in (ROOT / "tests").rglob("test_*.py")
        if "heavy" not in path.parts and "mark.requirement(" in path.read_text(encoding="utf-8")
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the claims of every requirement against mutants of its code.")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    parser.add_argument("--only", action="append", help="id of a requirement; may be repeated")
    parser.add_argument("--per-id", type=int, default=30, help="mutants of each id at most")
    options = parser.parse_args()
    say(f"seed {options.seed}")
    os.environ["HYPOTHESIS_PROFILE"] = "claims"
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    claims = Claims(options)
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))  # as `python -m pytest` does: processes that a test starts import its module by name
    arguments = ["-q", "-s", "-n0", "-p", "no:cacheprovider", "--no-header", "--no-summary", *claiming_files()]
    pytest.main(arguments, plugins=[claims])
    return 0 if claims.share is not None and claims.share >= FLOOR else 1


if __name__ == "__main__":
    sys.exit(main())
