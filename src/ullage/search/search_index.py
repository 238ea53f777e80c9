"""The search index: words, meaning, and what was used before.

`HybridIndex` finds by words what is called by its name, and by meaning what is described in other words. Documents
named in the query rank before all others. Without an embedder it uses words alone. Its documents do not change: for a
changed set, make another index and pass it this one as `before`. Deterministic; equal scores keep the order of
documents.

`LexicalIndex` finds by words alone. Its documents can change: it is rebuilt for the first query after a change, and
keeps what was counted of unchanged documents. Pure and deterministic; equal scores keep the order in which documents
were added. Words are scored in `postings`, and terms are defined in `stemming_and_synonyms`.

`Uses` learns which tools were called after which queries. Of a query only its significant terms are stored, and of
these only those that occur in the catalogue: the user's own names, numbers and secrets are in no tool's definition. A
tool gains by how similar the query is to those after which it was called, and by how often and how recently that was;
it loses by how many different needs it was called for, because a tool that is called after everything shows nothing.
Storing uses, and separating users, is the caller's task.

The limits were chosen by `bench/search_uses.py`: with higher ones, tools that were never used are found less well.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from ullage.options import MOST_USES

from .document import Document, Embedder, Hit, Named, Why, words_of
from .stemming_and_synonyms import WEAK, Wanted, asked, parts, terms, wanted

if TYPE_CHECKING:
    from .postings import Names, Postings
    from .ranking import Candidates, Fused, Scores, Vector

__all__ = ["MOST_BONUS", "HybridIndex", "LexicalIndex", "Need", "Use", "Used", "Uses", "need_of", "restrained"]

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
        # The number of terms that each use has in common with the need.
        in_common: defaultdict[_Id, float] = defaultdict(float)
        for wanted_terms, weight in ((need.terms, 1.0), (need.kin, _KIN)):
            for term in wanted_terms:
                for one in self._of_term.get(term, ()):
                    in_common[one] += weight
        for one, shared in in_common.items():
            # The cosine of the two term sets, each term with weight one.
            likeness = shared / math.sqrt(len(need.terms) * len(one[0]))
            if likeness > _ALIKE:
                use = self._kept[one]
                found[use.tool].add(min(1.0, (likeness - _ALIKE) / (1 - _ALIKE)), use.strength(now))
        return found

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
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            self._of_tool[oldest[1]].pop(oldest)
            if not self._of_tool[oldest[1]]:
                del self._of_tool[oldest[1]]
            for term in oldest[0]:
                self._of_term[term].pop(oldest)
                if not self._of_term[term]:
                    del self._of_term[term]


_NOTHING: Mapping[str, float] = {}
_NAMED: tuple[Named, ...] = tuple(Named)
"""The members of `Named` by their numeric value; a look-up in the enumeration would cost more than everything else
about a hit."""


class HybridIndex:
    """Finds documents by words and meaning. Safe to use from several threads.

    index = HybridIndex(documents, load_table())
    index.search("file a bug", limit=5)
    """

    def __init__(
        self,
        documents: Iterable[Document],
        embedder: Embedder | None = None,
        *,
        vectors: "Mapping[str, Vector] | None" = None,
        before: "HybridIndex | None" = None,
    ) -> None:
        """Build the index, which can take long.

        Args:
            documents: The documents, in the order in which equal scores are returned.
            embedder: Makes vectors of meaning; None to search by words alone.
            vectors: Known vectors by the documents' ids, of the embedder's edition; the others are computed now.
            before: An earlier index, from which everything about unchanged documents is taken.
        """
        # Imported here and below because numpy takes a tenth of a second, and not every import leads to a search.
        from .postings import Names, Postings
        from .ranking import Meaning, Reranker

        old = (None, None, None) if before is None else (before.postings, before.names, before.meaning)
        held = tuple({document.id: document for document in documents}.values())
        self.postings = Postings(held, old[0])
        self.names = Names(held, old[1])
        self.meaning = None if embedder is None else Meaning(held, embedder, vectors or {}, old[2])
        words = None if embedder is None else words_of(embedder)
        self.reranker = None if words is None or embedder is None else Reranker(held, words, embedder.weight)
        self._places = {document.id: place for place, document in enumerate(held)}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, document_id: object) -> bool:
        return document_id in self._places

    @property
    def made(self) -> "Mapping[str, Vector]":
        """The vectors computed for this index, by their documents' ids. Store them, to save the work at the next
        start."""
        return {} if self.meaning is None else self.meaning.made

    def holds(self, term: str) -> bool:
        """Return whether any document has this term, as `terms` gives it."""
        return self.postings.holds(term)

    def search(self, query: str, limit: int = 10, *, learnt: Mapping[str, float] = _NOTHING) -> tuple[Hit, ...]:
        """Return the best documents: those that the query names first, then similar ones.

        Args:
            query: Any text; a tool's name in any spelling finds the tool.
            limit: The most hits; there are fewer where no more documents are similar.
            learnt: The gain in score from previous use, by id, at most `MOST_BONUS`.
        """
        if not self._places:
            return ()
        from .ranking import ranked

        wants = wanted(query)
        fused, named = self._fused(query, wants, learnt), self.names.named(query)
        places = ranked(fused.scores, named, limit)
        # Read at once: single elements of an array would cost more than everything else about a hit.
        scores: list[float] = fused.scores[places].tolist()
        names: list[int] = named[places].tolist()
        documents = self.postings.documents
        return tuple(
            Hit(documents[place], score, _NAMED[name], partial(_explained, self.postings, place, wants, fused))
            for place, score, name in zip(places, scores, names, strict=True)
        )

    def scores(self, query: str) -> dict[str, float]:
        """Return the score of each document found, by id, in the order of documents; 1 for one that is best by both
        words and meaning."""
        if not self._places:
            return {}
        scores = self._fused(query, wanted(query), _NOTHING).scores.tolist()
        return {id_: score for id_, score in zip(self._places, scores, strict=True) if score}

    def _fused(self, query: str, wants: Mapping[str, Wanted], learnt: Mapping[str, float]) -> "Fused":
        from .ranking import closer_look, fuse

        totals, use = self.postings.totals(wants), self._use(learnt)
        if self.meaning is None:
            return fuse(totals, None, use)
        nearness, clauses = self.meaning.nearness_by_clause(query)
        fused = fuse(totals, nearness, use, self.meaning.weight)
        if self.reranker is None:
            return fused
        seen = self._candidates(query, fused, clauses)
        of_fused, gains = self.reranker.gains(seen)
        return closer_look(fused, seen.places, gains, of_fused)

    def candidates(self, query: str) -> "Candidates":
        """Return the candidates to be reranked for a query. The index must have an embedder."""
        from .ranking import fuse

        if self.meaning is None:
            raise TypeError("an index of words alone looks at nothing again")
        nearness, clauses = self.meaning.nearness_by_clause(query)
        fused = fuse(self.postings.totals(wanted(query)), nearness, self._use(_NOTHING), self.meaning.weight)
        return self._candidates(query, fused, clauses)

    def _candidates(self, query: str, fused: "Fused", clauses: "Vector") -> "Candidates":
        """Return the best candidates by words and meaning, with the scores of the query's clauses, by meaning a row
        each."""
        import numpy as np

        from .ranking import CANDIDATES, Candidates, best

        scores, texts = fused.words + fused.meaning, asked(query)[1:]
        places = best(scores, CANDIDATES, above=0).tolist()
        if len(texts) != len(clauses):  # The embedder may split differently, or not score clauses.
            texts = []
        totals = np.zeros((len(texts), len(scores)))
        for row, text in enumerate(texts):
            totals[row] = self.postings.totals(wanted(text))
        return Candidates(
            query=query,
            places=places,
            fused=scores[places],
            words=fused.words[places],
            clauses=texts,
            clause_totals=totals,
            clause_nearness=clauses[: len(texts)],
        )

    def _use(self, learnt: Mapping[str, float]) -> "Scores":
        import numpy as np

        use = np.zeros(len(self._places))
        for id_, gain in learnt.items():
            if id_ in self._places:
                use[self._places[id_]] = min(max(0.0, gain), MOST_BONUS)
        return use


def _explained(postings: "Postings", place: int, wants: Mapping[str, Wanted], fused: "Fused") -> Why:
    """Explain a score, with its reasons on the scale of the fused score."""
    reasons = postings.reasons(place, wants)
    return Why(
        words=float(fused.words[place]),
        meaning=float(fused.meaning[place]),
        closer=float(fused.closer[place]),
        use=float(fused.use[place]),
        nearness=None if fused.nearness is None else float(fused.nearness[place]),
        share=fused.share,
        reasons=tuple(replace(reason, score=fused.worth * reason.score) for reason in reasons),
    )


class LexicalIndex:
    """An `Index` of documents that finds those that share words with a query."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        self._documents = {document.id: document for document in documents}
        """Documents by id; a replacement takes the position of the replaced one."""
        self._order: tuple[Document, ...] | None = None
        """The documents in order; None after a change."""
        self._postings: Postings | None = None
        self._names: Names | None = None
        if self._documents:
            self._ready_postings()
            self._ready_names()

    def __len__(self) -> int:
        return len(self._documents)

    def __contains__(self, document_id: object) -> bool:
        return document_id in self._documents

    def add(self, document: Document) -> None:
        """Add a document; one with the same id is replaced and keeps its position."""
        self._documents[document.id] = document
        self._order = None

    def remove(self, document_id: str) -> None:
        """Remove a document; an unknown id is not an error."""
        if self._documents.pop(document_id, None) is not None:
            self._order = None

    def ready(self) -> None:
        """Do the work that the first query after a change would otherwise do."""
        if self._documents:
            self._ready_postings()

    def search(self, query: str, limit: int = 10) -> tuple[Hit, ...]:
        """Return the best documents: those that the query names first, then those that share words with it."""
        if not self._documents:
            return ()
        from .ranking import ranked

        wants, postings = wanted(query), self._ready_postings()
        totals, named = postings.totals(wants), self._ready_names().named(query)
        return tuple(
            Hit(
                document=postings.documents[place],
                score=float(totals[place]),
                named=Named(named[place]),
                explain=partial(_why, postings, place, float(totals[place]), wants),
            )
            for place in ranked(totals, named, limit)
        )

    def scores(self, query: str) -> dict[str, float]:
        """Return the score of each document that shares a term with the query, by id, in the order of documents."""
        if not self._documents:
            return {}
        postings = self._ready_postings()
        totals = postings.totals(wanted(query)).tolist()
        return {document.id: total for document, total in zip(postings.documents, totals, strict=True) if total}

    def _ready_postings(self) -> "Postings":
        # Imported here and above because numpy takes a tenth of a second, and not every import leads to a search.
        from .postings import Postings

        order = self._ordered()
        if self._postings is None or self._postings.documents is not order:
            self._postings = Postings(order, self._postings)
        return self._postings

    def _ready_names(self) -> "Names":
        from .postings import Names

        order = self._ordered()
        if self._names is None or self._names.documents is not order:
            self._names = Names(order, self._names)
        return self._names

    def _ordered(self) -> tuple[Document, ...]:
        if self._order is None:
            self._order = tuple(self._documents.values())
        return self._order


def _why(postings: "Postings", place: int, score: float, wants: Mapping[str, Wanted]) -> Why:
    return Why(words=score, reasons=postings.reasons(place, wants))
