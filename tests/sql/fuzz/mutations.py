"""In how many ways can the same statement be written?

A mutator takes a statement and gives another, or None where it has nothing to take hold of. `KEEPING` ones leave the
meaning as it is, of a question as of an attack. `HARMING` ones wrap or re-spell an attack so that it does its harm
all the same where the engine takes it at all. `BENDING` ones may spoil the meaning: what they give may be allowed,
provided that no engine then does anything with it. Chance comes in with the caller's `Random`, so a seed tells all.
"""

from dataclasses import dataclass
from random import Random

from .bending import BENDING
from .harming import HARMING
from .keeping import KEEPING
from .scanning import Mutator

__all__ = ["BENDING", "HARMING", "KEEPING", "Mutant", "mutate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    text: str
    chain: tuple[str, ...]
    """The names of the mutators, first to last."""
    bent: bool
    """Whether one of them may have spoilt the meaning."""


def mutate(text: str, dialect: str, random: Random, *, attack: bool) -> Mutant | None:
    """One to four mutators after another; None where none of those drawn took hold."""
    pool = KEEPING + HARMING + BENDING if attack else KEEPING
    chain = list[Mutator]()
    for mutator in random.choices(pool, k=random.randint(1, 4)):
        changed = mutator(text, dialect, random)
        if changed is not None and changed != text:
            text = changed
            chain.append(mutator)
    if not chain:
        return None
    return Mutant(text=text, chain=tuple(each.__name__ for each in chain), bent=any(each in BENDING for each in chain))
