"""Which documents share words with this query?

Holds documents, and makes them ready for queries when one is asked after a change; what was counted of those that
stayed is kept. Pure and deterministic; equal scores keep the order in which documents were added. How words are scored,
`postings` knows; what a term is, `words`; meaning beyond words, nobody here.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from .document import Document
from .hit import Hit, Named, Why
from .words import Wanted, wanted

if TYPE_CHECKING:
    from .names import Names
    from .postings import Postings

__all__ = ["LexicalIndex"]


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
        from .names import Names

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
