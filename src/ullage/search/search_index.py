"""The search index: words and meaning together.

Words find what is called by its name, meaning what is asked for in other words: each sees where the other is blind.
Names come before all scores. Without an embedder it is words alone. The documents do not change: for others, make
another index and hand it this one. Deterministic; equal scores keep the order of documents.

Holds documents, and makes them ready for queries when one is asked after a change; what was counted of those that
stayed is kept. Pure and deterministic; equal scores keep the order in which documents were added. How words are scored,
`postings` knows; what a term is, `words`; meaning beyond words, nobody here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from .document import Document, Embedder, Hit, Named, Why, words_of
from .text_terms import Wanted, asked, wanted
from .usage_memory import MOST_BONUS

if TYPE_CHECKING:
    from .meaning_index import Vector
    from .name_match import Names
    from .postings import Postings
    from .ranking import Candidates, Fused, Scores

__all__ = ["HybridIndex", "LexicalIndex"]

_NOTHING: Mapping[str, float] = {}
_NAMED: tuple[Named, ...] = tuple(Named)
"""By what they are as numbers; to ask the enumeration itself takes longer than all else about a hit."""


class HybridIndex:
    """Finds documents by words and meaning. Safe to use from several threads."""

    def __init__(
        self,
        documents: Iterable[Document],
        embedder: Embedder | None = None,
        *,
        vectors: "Mapping[str, Vector] | None" = None,
        before: "HybridIndex | None" = None,
    ) -> None:
        """May take long. `vectors` are those known already, by their documents' ids and of the embedder's edition; the
        rest is made now. What `before` has of documents that stayed as they were is taken over."""
        # Not at the top, here and below: numpy takes a tenth of a second, and not everyone who imports this searches.
        from .meaning_index import Meaning
        from .name_match import Names
        from .postings import Postings
        from .ranking import Reranker

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
        """The vectors that were made now, by their documents' ids: kept, they spare the next start the work."""
        return {} if self.meaning is None else self.meaning.made

    def holds(self, term: str) -> bool:
        """Whether any document has this term, as `terms` gives it."""
        return self.postings.holds(term)

    def search(self, query: str, limit: int = 10, *, learnt: Mapping[str, float] = _NOTHING) -> tuple[Hit, ...]:
        """The nearest documents, best first: those the query names, then those it is near to; fewer than `limit` where
        no more are near. `learnt` is what having been of use adds to a score, by id, bounded by
        `MOST_BONUS`."""
        if not self._places:
            return ()
        from .ranking import ranked

        wants = wanted(query)
        fused, named = self._fused(query, wants, learnt), self.names.named(query)
        places = ranked(fused.scores, named, limit)
        # Read in one go: one number of an array at a time costs more than all else about a hit.
        scores, names = (values[places].tolist() for values in (fused.scores, named))
        documents = self.postings.documents
        return tuple(
            Hit(
                document=documents[place],
                score=score,
                named=_NAMED[int(name)],
                explain=partial(_explained, self.postings, place, wants, fused),
            )
            for place, score, name in zip(places, scores, names, strict=True)
        )

    def scores(self, query: str) -> dict[str, float]:
        """How near each document is that was found, by id, in the order of documents; 1 for one that is best by both
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
        return closer_look(fused, seen.places, self.reranker.gains(seen), self.reranker.of_fused)

    def candidates(self, query: str) -> "Candidates":
        """What is looked at again for a query, by an index that knows meaning."""
        from .ranking import fuse

        if self.meaning is None:
            raise TypeError("an index of words alone looks at nothing again")
        nearness, clauses = self.meaning.nearness_by_clause(query)
        fused = fuse(self.postings.totals(wanted(query)), nearness, self._use(_NOTHING), self.meaning.weight)
        return self._candidates(query, fused, clauses)

    def _candidates(self, query: str, fused: "Fused", clauses: "Vector") -> "Candidates":
        """The best by words and meaning, and scores of the query's clauses, by meaning a row each."""
        import numpy as np

        from .ranking import CANDIDATES, Candidates, best

        scores, texts = fused.words + fused.meaning, asked(query)[1:]
        places = best(scores, CANDIDATES, above=0).tolist()
        if len(texts) != len(clauses):  # An embedder may see other clauses, or none be scored.
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
    """With its reasons on the scale of the fused score."""
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
    """Holds documents and finds those that share words with a query. An `Index`."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        self._documents = {document.id: document for document in documents}
        """By id; one that replaces another takes its place in the order."""
        self._order: tuple[Document, ...] | None = None
        """None after a change."""
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
        """Takes a document in; one with the same id is replaced and keeps its place."""
        self._documents[document.id] = document
        self._order = None

    def remove(self, document_id: str) -> None:
        """Lets a document go; one that is not there is no error."""
        if self._documents.pop(document_id, None) is not None:
            self._order = None

    def ready(self) -> None:
        """Does beforehand what scoring would do first after a change."""
        if self._documents:
            self._ready_postings()

    def search(self, query: str, limit: int = 10) -> tuple[Hit, ...]:
        """The nearest documents, best first: those the query names, then those it is near to."""
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
        """How near each document is that shares a term with the query, by id, in the order of documents."""
        if not self._documents:
            return {}
        postings = self._ready_postings()
        totals = postings.totals(wanted(query)).tolist()
        return {document.id: total for document, total in zip(postings.documents, totals, strict=True) if total}

    def _ready_postings(self) -> "Postings":
        # Not at the top, here and above: numpy takes a tenth of a second, and not everyone who imports this searches.
        from .postings import Postings

        order = self._ordered()
        if self._postings is None or self._postings.documents is not order:
            self._postings = Postings(order, self._postings)
        return self._postings

    def _ready_names(self) -> "Names":
        from .name_match import Names

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
