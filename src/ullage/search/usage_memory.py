"""Learns which tools were called after which queries.

Of a query only its significant terms are stored, and of these only those that occur in the catalogue: the user's own
names, numbers and secrets are in no tool's definition. A tool gains by how similar the query is to those after which it
was called, and by how often and how recently that was; it loses by how many different needs it was called for, because
a tool that is called after everything shows nothing. Storing uses, and separating users, is the caller's task.

The limits were chosen by `bench/search_uses.py`: with higher ones, tools that were never used are found less well.
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
"""Largest gain, as a share of the best score that a tool can have: enough to rank before close rivals, and not before
one that is far ahead."""
_MOST_TOOLS = 3
"""The most tools that gain from a query."""
_MOST_TERMS = 24
"""Most terms of a query that are used; a longer text is a task rather than a need."""
_ALIKE = 0.6
"""Similarity below which two queries count as unrelated: `create an issue` and `create a branch` have 0.5."""
_ENOUGH = 0.5
"""Evidence that gives half of the bonus; one call after exactly the same query is 1."""
_HALF_LIFE = 30 * 86_400.0
"""Seconds after which a use counts half."""
_NEEDS = 3.0
"""Different needs that a tool may serve before its bonus decreases."""
_KIN = 0.4
_WEAK_TERMS = frozenset(term for word in WEAK for term in terms(word))

Used = tuple[str, str]
"""A server's name and the tool's own name."""


@dataclass(frozen=True, slots=True)
class Need:
    """The content of a query, in terms of the catalogue."""

    terms: frozenset[str] = frozenset()
    kin: frozenset[str] = frozenset()
    """Verbs of almost the same meaning as one of the terms."""

    def __bool__(self) -> bool:
        return bool(self.terms)


def need_of(query: str, holds: Callable[[str], bool]) -> Need:
    """Return the need of a query; an empty one where the query is only a name. `holds` returns whether the catalogue
    has a term."""
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
    """Evidence for one tool, from the uses after similar queries."""

    sum: float = 0.0
    nearest: float = 0.0

    def add(self, likeness: float, strength: float) -> None:
        self.sum += likeness * strength
        self.nearest = max(self.nearest, likeness)

    @property
    def worth(self) -> float:
        """The bonus as a share from 0 to 1: much evidence does not make up for little similarity."""
        return min(self.sum / (self.sum + _ENOUGH), self.nearest)


def restrained(hits: Sequence[Hit], learnt: Mapping[str, float]) -> tuple[Hit, ...]:
    """Limit the effect of bonuses on ranked hits: the document that would be first without them is at least second, so
    that every reply has it."""
    order = sorted(hits, key=lambda hit: (-hit.named, learnt.get(hit.document.id, 0.0) - hit.score))
    if not order or order[0] in hits[:2]:
        return tuple(hits)
    rest = [hit for hit in hits if hit is not order[0]]
    return (*rest[:1], order[0], *rest[1:])


_Id = tuple[frozenset[str], Used]


class Uses:
    """The uses of one principal, in limited number."""

    def __init__(self, uses: Iterable[Use] = (), *, most: int = MOST_USES) -> None:
        self._most = most
        self._kept: dict[_Id, Use] = {}
        """Uses by id, the least recently used first."""
        self._of_term: defaultdict[str, dict[_Id, None]] = defaultdict(dict)
        self._of_tool: defaultdict[Used, dict[_Id, None]] = defaultdict(dict)
        for use in sorted(uses, key=lambda use: use.last):
            self._put(use)

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, need: Need, tool: Used, now: float) -> None:
        """Record that a tool was called after a query with this need; an empty need is ignored."""
        if need:
            before = self._kept.get((need.terms, tool))
            self._put(Use(terms=need.terms, tool=tool, count=1 + (before.count if before else 0), last=now))

    def bonuses(self, need: Need, now: float) -> dict[Used, float]:
        """Return the gains of a few tools, best first, each above 0 and at most `MOST_BONUS`."""
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
            # The cosine of the two term sets, each term with weight one.
            likeness = shared / math.sqrt(len(need.terms) * len(one[0]))
            if likeness > _ALIKE:
                use = self._kept[one]
                found[use.tool].add(min(1.0, (likeness - _ALIKE) / (1 - _ALIKE)), use.strength(now))
        return found

    def _shared(self, need: Need) -> Mapping[_Id, float]:
        """Return the number of terms that each use has in common with the need."""
        shared: defaultdict[_Id, float] = defaultdict(float)
        for wanted_terms, weight in ((need.terms, 1.0), (need.kin, _KIN)):
            for term in wanted_terms:
                for one in self._of_term.get(term, ()):
                    shared[one] += weight
        return shared

    def _specificity(self, tool: Used, now: float) -> float:
        """Return 1 for a tool of few needs, falling towards 0 for one that is called after everything. The number of
        needs is estimated by how far the sum of its uses, as vectors, falls short of the sum of their lengths."""
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
