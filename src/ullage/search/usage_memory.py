"""Remembers which documents were used after which queries.

A query is kept as its telling terms only, and of these only those that a catalogue has too: what is the user's own
(names, numbers, secrets) is in no tool's definition. A tool gains by how alike the query is to those after which it was
called, by how often and how lately that was, and loses by how many different needs it was called for: what is called
after everything says nothing. Where uses are kept, and whose they are, is not known here.

The bounds were chosen by `bench/search_uses.py`: with more, what was never used is found less well.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ullage.options import MOST_USES

from .document import Hit
from .text_terms import WEAK, parts, terms, wanted

__all__ = ["MOST_BONUS", "MOST_USES", "Need", "Use", "Used", "Uses", "need_of", "restrained"]

MOST_BONUS = 0.25
"""Of the best score that a tool can have: enough to come before near rivals, and before nothing that is far ahead."""
_MOST_TOOLS = 3
"""That a query gives a bonus to."""
_MOST_TERMS = 24
"""Of a query; what is longer is a task and no need."""
_ALIKE = 0.6
"""Likeness below which two queries have nothing to do with each other: `create an issue` and `create a branch` have
0.5."""
_ENOUGH = 0.5
"""Evidence that brings half of the bonus; one call after the very same query is 1."""
_HALF_LIFE = 30 * 86_400.0
"""Seconds in which a use comes to count half."""
_NEEDS = 3.0
"""Different needs that a tool may serve before its bonus becomes less."""
_KIN = 0.4
_WEAK_TERMS = frozenset(term for word in WEAK for term in terms(word))

Used = tuple[str, str]
"""A server's name and its tool's own."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a query asks for, in words that the catalogue has."""

    terms: frozenset[str] = frozenset()
    kin: frozenset[str] = frozenset()
    """Verbs that say nearly the same as one of the terms."""

    def __bool__(self) -> bool:
        return bool(self.terms)


def need_of(query: str, holds: Callable[[str], bool]) -> Need:
    """The need behind a query; an empty one where the query is only a name. `holds` says whether the catalogue has a
    term."""
    if query.isascii() and len(query.split()) == 1 and len(parts(query)) > 1:
        return Need()
    known = {
        term: want
        for term, want in wanted(query).items()
        if (term not in _WEAK_TERMS and not term.isdecimal()) and holds(term)
    }
    asked = [term for term, want in known.items() if want.asked][:_MOST_TERMS]
    kin = (term for term, want in known.items() if asked and not want.asked)
    return Need(frozenset(asked), frozenset(kin))


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A tool that was called after a query."""

    terms: frozenset[str]
    tool: Used
    count: int = 1
    last: float
    """Seconds since 1970."""

    def strength(self, now: float) -> float:
        return math.log2(1 + self.count) * 0.5 ** (max(0.0, now - self.last) / _HALF_LIFE)


@dataclass(slots=True)
class _Evidence:
    """For one tool, from the uses that are like a query."""

    sum: float = 0.0
    nearest: float = 0.0

    def add(self, likeness: float, strength: float) -> None:
        self.sum += likeness * strength
        self.nearest = max(self.nearest, likeness)

    @property
    def worth(self) -> float:
        """From 0 to 1: much evidence does not make up for little likeness."""
        return min(self.sum / (self.sum + _ENOUGH), self.nearest)


def restrained(hits: Sequence[Hit], learnt: Mapping[str, float]) -> tuple[Hit, ...]:
    """Hits that were ranked with bonuses, by document: what would come first without them comes second at the worst, so
    that no reply lacks it."""
    order = sorted(hits, key=lambda hit: (-hit.named, learnt.get(hit.document.id, 0.0) - hit.score))
    if not order or order[0] in hits[:2]:
        return tuple(hits)
    rest = [hit for hit in hits if hit is not order[0]]
    return (*rest[:1], order[0], *rest[1:])


_Id = tuple[frozenset[str], Used]


class Uses:
    """The uses of one principal, within bounds."""

    def __init__(self, uses: Iterable[Use] = (), *, most: int = MOST_USES) -> None:
        self._most = most
        self._kept: dict[_Id, Use] = {}
        """The longest unused first."""
        self._of_term: defaultdict[str, dict[_Id, None]] = defaultdict(dict)
        self._of_tool: defaultdict[Used, dict[_Id, None]] = defaultdict(dict)
        for use in sorted(uses, key=lambda use: use.last):
            self._put(use)

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, need: Need, tool: Used, now: float) -> None:
        """The tool was called after a query for that need; an empty need teaches nothing."""
        if need:
            before = self._kept.get((need.terms, tool))
            self._put(Use(terms=need.terms, tool=tool, count=1 + (before.count if before else 0), last=now))

    def bonuses(self, need: Need, now: float) -> dict[Used, float]:
        """What a few tools gain, best first, each above 0 and none more than `MOST_BONUS`."""
        if not need:
            return {}
        worth = {
            tool: evidence.worth * self._specificity(tool, now) for tool, evidence in self._evidence(need, now).items()
        }
        best = sorted((tool for tool in worth if worth[tool] > 0), key=lambda tool: (-worth[tool], tool))
        return {tool: MOST_BONUS * worth[tool] for tool in best[:_MOST_TOOLS]}

    def _evidence(self, need: Need, now: float) -> dict[Used, _Evidence]:
        found: defaultdict[Used, _Evidence] = defaultdict(_Evidence)
        for one, shared in self._shared(need).items():
            # The cosine of the two, each term counting one.
            likeness = shared / math.sqrt(len(need.terms) * len(one[0]))
            if likeness > _ALIKE:
                use = self._kept[one]
                found[use.tool].add(min(1.0, (likeness - _ALIKE) / (1 - _ALIKE)), use.strength(now))
        return found

    def _shared(self, need: Need) -> Mapping[_Id, float]:
        """How many terms each use has in common with the need."""
        shared: defaultdict[_Id, float] = defaultdict(float)
        for wanted_terms, weight in ((need.terms, 1.0), (need.kin, _KIN)):
            for term in wanted_terms:
                for one in self._of_term.get(term, ()):
                    shared[one] += weight
        return shared

    def _specificity(self, tool: Used, now: float) -> float:
        """From 1 for a tool of few needs towards 0 for one that is called after everything. How many needs there are is
        told by how far the sum of its uses, as vectors, falls short of the sum of their lengths."""
        lengths, total = 0.0, defaultdict[str, float](float)
        for one in self._of_tool[tool]:
            strength = self._kept[one].strength(now)
            lengths += strength
            for term in one[0]:
                total[term] += strength / math.sqrt(len(one[0]))
        length = math.hypot(*total.values())
        return min(1.0, _NEEDS * (length / lengths) ** 2) if lengths else 0.0

    def _put(self, use: Use) -> None:
        one = use.terms, use.tool
        self._kept.pop(one, None)
        self._kept[one] = use
        self._of_tool[use.tool][one] = None
        for term in use.terms:
            self._of_term[term][one] = None
        if len(self._kept) > self._most:
            self._drop(next(iter(self._kept)))

    def _drop(self, one: _Id) -> None:
        del self._kept[one]
        self._of_tool[one[1]].pop(one)
        if not self._of_tool[one[1]]:
            del self._of_tool[one[1]]
        for term in one[0]:
            self._of_term[term].pop(one)
            if not self._of_term[term]:
                del self._of_term[term]
