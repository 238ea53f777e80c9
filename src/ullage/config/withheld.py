"""What do the files of a user hold back of a server, wherever it stands?

Each file's part is one value; here those that speak of one server are found, by every name it goes by, and joined.
Which file's server is used, and who may lift what is held back, is decided in `layer`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from ullage.options import Rules

from .naming import folded
from .narrowing import narrower
from .permissions import Permissions, rules_for

__all__ = ["Withheld", "names_of", "rules_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """What one file holds back."""

    rules: Mapping[str, Rules] = field(default_factory=dict[str, Rules])
    """By the name a server has here, those among them that are left out or lost."""
    called: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """The name a server has here to those the file has for it, folded."""
    off: frozenset[str] = frozenset()
    """Servers switched off, folded; they may stand elsewhere."""
    on: frozenset[str] = frozenset()
    """Servers of which it says outright that they are not switched off."""
    permissions: Permissions | None = None
    """What it holds back of servers that stand elsewhere."""


def names_of(server: str, parts: Iterable[Withheld]) -> frozenset[str]:
    """Every name it goes by, folded."""
    called = (part.called.get(server, frozenset[str]()) for part in parts)
    return frozenset((folded(server),)).union(*called)


def rules_of(server: str, names: frozenset[str], parts: Sequence[Withheld], *, home: Withheld) -> Rules:
    """What these parts hold back of a server, joined; in the one it stands in, only what is said of it alone."""
    said = (rules for part in parts for rules in _rules(server, frozenset() if part is home else names, part))
    permitted = (rules_for(names, part.permissions) for part in parts if part.permissions is not None)
    return reduce(narrower, (*said, *permitted), Rules())


def _rules(server: str, names: frozenset[str], part: Withheld) -> Iterator[Rules]:
    for name, rules in part.rules.items():
        if name == server or not names.isdisjoint(part.called.get(name, ())):
            yield rules
