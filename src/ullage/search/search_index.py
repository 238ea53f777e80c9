"""The search index: words and meaning together.

`HybridIndex` finds by words what is called by its name, and by meaning what is described in other words. Documents
named in the query rank before all others. Without an embedder it uses words alone. Its documents do not change: for a
changed set, make another index and pass it this one as `before`. Deterministic; equal scores keep the order of
documents.

`LexicalIndex` finds by words alone. Its documents can change: it is rebuilt for the first query after a change, and
keeps what was counted of unchanged documents. Pure and deterministic; equal scores keep the order in which documents
were added. Words are scored in `postings`, and terms are defined in `text_terms`.
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
