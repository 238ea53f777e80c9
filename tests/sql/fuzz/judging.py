"""Does the guard judge every spelling of a statement alike?

One round takes a case, mutates it by a seed, and asks the guard. What comes back is a `Finding` where the verdict is
not the one that was due: an attack let through, a question refused, or an error that is not a refusal. An attack that
was let through after its meaning may have been spoilt is `bent`: only an engine can tell.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, cast

from ullage.errors import Refused
from ullage.sql.guard import judge

from .cases import Case
from .mutations import Mutant, mutate

__all__ = ["Finding", "rounds", "verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    seed: str
    case: Case
    mutant: Mutant
    seen: str

    @property
    def bent(self) -> bool:
        return self.case.attack and self.mutant.bent and self.seen == "allowed"

    def __str__(self) -> str:
        chain = " > ".join(self.mutant.chain)
        return f"seed {self.seed}, {self.case.id} ({chain}), {self.seen}: {self.mutant.text!r}"


def verdict(sql: str, dialect: str) -> str:
    """`allowed`, `refused …`, or what else came of it."""
    try:
        judge(sql, cast("Any", dialect))
    except Refused as refusal:
        return f"refused: {refusal.message}"
    except Exception as error:  # noqa: BLE001 — anything but a refusal is a finding
        return f"{type(error).__name__}: {error}"
    return "allowed"


def rounds(cases: Sequence[Case], seed: str, numbers: range) -> Iterator[Finding | None]:
    """One for each number that made a mutant; None where the guard's verdict was the one due."""
    for number in numbers:
        case, name = cases[number % len(cases)], f"{seed}-{number}"
        mutant = mutate(case.sql, case.dialect, Random(name), attack=case.attack)
        if mutant is None:
            continue
        seen = verdict(mutant.text, case.dialect)
        due = seen.startswith("refused") if case.attack else seen == "allowed"
        yield None if due else Finding(seed=name, case=case, mutant=mutant, seen=seen)
