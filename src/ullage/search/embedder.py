"""What must something offer that turns texts into vectors?

The seam between search by meaning and whatever knows meanings: the table that ships with the package, or an encoder.
Vectors of documents outlive a process; those of another edition say nothing about this one's queries.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ullage.errors import Unavailable

from .document import Document

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.intp]
    Vectors = NDArray[np.float32]
    """One a row, each of length one; shorter where little of a text is known, and of zeros where nothing is."""

__all__ = ["Embedder", "EmbedderFailed", "WordVectors", "words_of"]


class EmbedderFailed(Unavailable):
    """An embedder raised what it should not. Whoever searches can do without it."""

    def __init__(self, embedder: "Embedder", error: Exception) -> None:
        super().__init__(f"an embedder failed: {str(error) or type(error).__name__}")
        self.embedder = embedder


class Embedder(Protocol):
    """Says the same of the same text, on every machine and in every thread."""

    @property
    def edition(self) -> str:
        """Names the weights and the way they are used: changes whenever a vector would."""
        ...

    @property
    def weight(self) -> float:
        """What nearness weighs beside words: the best score by words at which both have half of a fused score."""
        ...

    def embed_documents(self, documents: Sequence[Document]) -> "Vectors":
        """A row for each document, in their order."""
        ...

    def embed_query(self, query: str) -> "Vectors":
        """The first row is the whole query; where it has several sentences, a row for each of them follows."""
        ...


class WordVectors(Protocol):
    """Vectors of single words, known by the numbers of their rows."""

    @property
    def feature_weights(self) -> tuple[float, ...]:
        """What the fused score weighs in `rerank`, then each of its `FEATURES` in their order."""
        ...

    def query_words(self, query: str) -> "tuple[Rows, Vectors]":
        """The rows of a query, each once and in order, and how much each tells in a query."""
        ...

    def document_words(self, document: Document) -> "tuple[Rows, ...]":
        """The rows of each aspect of a document, each once and in order."""
        ...

    def nearness_of_words(self, asked: "Rows", rows: "Rows") -> "tuple[Vectors, Vectors]":
        """How near each row is to each that was asked for, a row each of these; and how long the vector of each is."""
        ...


def words_of(embedder: Embedder) -> WordVectors | None:
    """The vectors of single words behind an embedder; None for one that knows whole texts only."""
    words: WordVectors | None = getattr(embedder, "words", None)
    return words if words is not None and words.feature_weights else None
