"""Does the parser lock, alone, refuse what it must and nothing else?

Every static case in its dialect; and of questions, the everyday ones and TPC-H and TPC-DS, as sqlglot's source
distribution carries them (fetched into `.bench/`, and said to be missing where it cannot be), written in each dialect
by sqlglot.
"""

import logging
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import sqlglot

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "sql"))

from fuzz.cases import Case
from fuzz.judging import verdict

FOLDER = Path(__file__).parent.parent / ".bench" / "sqlglot"
DIALECTS = ("postgres", "mysql", "sqlite", "duckdb", "tsql", "oracle")
SUITES = ("tpc-h", "tpc-ds")


@dataclass(slots=True)
class Tally:
    name: str
    due: int = 0
    """Verdicts that were the ones due."""
    misses: list[str] = field(default_factory=list[str])

    @property
    def total(self) -> int:
        return self.due + len(self.misses)

    def add(self, *, is_due: bool, told: str) -> None:
        self.due += is_due
        if not is_due:
            self.misses.append(told)


def judge_cases(cases: Sequence[Case]) -> list[tuple[str, Tally, Tally]]:
    """For each dialect: attacks refused, questions allowed."""
    return [(dialect, *_judged(dialect, [case for case in cases if case.dialect == dialect])) for dialect in DIALECTS]


def _judged(dialect: str, cases: Sequence[Case]) -> tuple[Tally, Tally]:
    attacks, questions = Tally("refused"), Tally("allowed")
    for case in cases:
        seen = verdict(case.sql, dialect)
        told = f"{case.id} {seen}: {case.sql!r}"
        if not case.attack:
            questions.add(is_due=seen == "allowed", told=told)
        elif case.layer == "static":
            attacks.add(is_due=seen.startswith("refused"), told=told)
    return attacks, questions


def judge_suites() -> dict[str, list[Tally]]:
    """For each suite, a tally a dialect; empty where sqlglot's sources cannot be had."""
    if not _fetched():
        print("sqlglot's source distribution cannot be fetched here: TPC-H and TPC-DS are left out", file=sys.stderr)
        return {}
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    return {suite: [_suite(suite, dialect) for dialect in DIALECTS] for suite in SUITES}


def _suite(suite: str, dialect: str) -> Tally:
    tally = Tally(dialect)
    for number, text in enumerate(_written(suite, dialect), 1):
        seen = verdict(text, dialect)
        tally.add(is_due=seen == "allowed", told=f"{suite} {number} in {dialect}: {seen}")
    return tally


def _written(suite: str, dialect: str) -> Iterator[str]:
    for path in sorted(FOLDER.rglob(f"{suite}.sql")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for tree in sqlglot.parse("\n".join(line for line in lines if not line.startswith("#"))):
            if tree is not None and tree.key != "semicolon":
                yield tree.sql(dialect, comments=False)


def _fetched() -> bool:
    if any(FOLDER.rglob("tpc-h.sql")):
        return True
    print("fetching sqlglot's sources for TPC-H and TPC-DS …", file=sys.stderr)
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "sqlglot", "--dest", FOLDER)
    subprocess.run([*map(str, pip), f"sqlglot=={version('sqlglot')}"], capture_output=True, check=False)
    for archive in FOLDER.glob("sqlglot-*.tar.gz"):
        with tarfile.open(archive) as opened:
            wanted = [each for each in opened if "/fixtures/optimizer/tpc-" in each.name and each.name.endswith(".sql")]
            opened.extractall(FOLDER, wanted, filter="data")
    return any(FOLDER.rglob("tpc-h.sql"))
