"""What must an index offer that documents can be put into and taken out of?

The seam for whoever searches other things than tools: passages of a session, passages of files. An index of any kind
holds documents and says how near each is to a query. None is implemented here.
"""

from collections.abc import Mapping
from typing import Protocol

from .document import Document

__all__ = ["Index"]


class Index(Protocol):
    """Holds documents by id. The same documents, added in the same order, give the same scores on every machine."""

    def add(self, document: Document) -> None:
        """Takes a document in; one with the same id is replaced and keeps its place."""
        ...

    def remove(self, document_id: str) -> None:
        """Lets a document go; one that is not there is no error."""
        ...

    def scores(self, query: str) -> Mapping[str, float]:
        """How near each document is, by id, all above 0 and on one scale within this query.

        A document left out is one that the index has nothing to say for. An empty query has no scores.
        """
        ...
