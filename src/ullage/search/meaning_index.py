"""Vector index of documents.

`Meaning` uses vectors of documents computed before, and computes the others. The weight of similarity relative to words
is in `ranking`.

`Matrix` stores a vector as bytes and the value of one step: a quarter of the memory, which changes a similarity by less
than three thousandths. Comparing several queries with a hundred thousand vectors takes half the time too, because
memory is the bottleneck: some vectors at a time are widened where they stay in the cache.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from .document import Document, Embedder, EmbedderFailed
from .name_match import places_before

__all__ = ["Matrix", "Meaning", "Nearness", "Vector"]

Places = NDArray[np.intp] | NDArray[np.int32]
Vector = NDArray[np.float32]

_STEPS = 127
_MOST = 9
"""Vectors that are compared at a time."""
_SMALL = 1 << 18
"""Multiplications up to which OpenBLAS computes a product in one thread: threads that wait for each other and for the
same memory use two to three times the CPU."""
_WIDE = 4
"""Blocks that are widened at a time: half a megabyte."""


class Matrix:
    """A matrix of quantised rows, all zeros until they are set."""

    def __init__(self, number: int, size: int) -> None:
        height = max(1, _SMALL // (size * _MOST))
        self._number = number
        self._blocks = np.zeros((-(-number // height), height, size), dtype=np.int8)
        """The blocks of rows; the last may end in unused rows."""
        self.steps = np.zeros(number, dtype=np.float32)

    @property
    def size(self) -> int:
        return self._blocks.shape[2]

    def put(self, places: Places, vectors: Vector) -> None:
        steps = np.abs(vectors).max(axis=1, initial=0) / np.float32(_STEPS)
        self.steps[places] = steps
        self.rows[places] = np.round(vectors / np.where(steps, steps, 1)[:, None])

    def take(self, places: Places, other: "Matrix", theirs: Places) -> None:
        """Copy rows of another matrix, whose vectors have the same size."""
        self.steps[places] = other.steps[theirs]
        self.rows[places] = other.rows[theirs]

    def nearness(self, vectors: Vector) -> Vector:
        """Return the similarity of each row to each of these vectors, a row a vector."""
        near = self._products(vectors).transpose(1, 0, 2).reshape(len(vectors), -1)
        return near[:, : self._number] * self.steps

    def nearness_together(self, vectors: Vector, of_others: float) -> Vector:
        """Return the similarity of each row to the first of these vectors combined with that to the nearest of the
        others, which has the share `of_others`. Cheaper than one by one for very many rows."""
        near = self._products(vectors)
        nearest = near[:, 0]
        if len(vectors) > 1:
            nearest = (1 - of_others) * nearest + of_others * near[:, 1:].max(axis=1)
        return nearest.ravel()[: self._number] * self.steps

    def _products(self, vectors: Vector) -> Vector:
        """Return the products by block, by vector, by row of the block, in quantisation steps."""
        blocks, height, size = self._blocks.shape
        found = np.empty((blocks, len(vectors), height), dtype=np.float32)
        room = np.empty((_WIDE, height, size), dtype=np.float32)
        for start in range(0, blocks, _WIDE):
            some = slice(start, start + _WIDE)
            wide = room[: len(self._blocks[some])]
            wide[...] = self._blocks[some]
            np.matmul(vectors, wide.transpose(0, 2, 1), out=found[some])
        return found

    @property
    def rows(self) -> NDArray[np.int8]:
        """The rows, in quantisation steps."""
        return self._blocks.reshape(-1, self.size)


Nearness = NDArray[np.float64]

_OF_CLAUSE = 0.5
"""Share of the nearest clause where there are several; the whole query has the rest."""
_MANY = 20_000
"""Documents above which the clauses of a query are not scored separately."""
_DECIMALS = 5
"""Decimals to which sums are rounded: machines add in different orders, so the last bits differ."""
_AT_ONCE = 1_000
"""Documents that are embedded at a time, to limit memory."""


class Meaning:
    """The vectors of documents, by position. Immutable."""

    def __init__(
        self,
        documents: Sequence[Document],
        embedder: Embedder,
        vectors: Mapping[str, Vector],
        before: "Meaning | None" = None,
    ) -> None:
        """Collect or compute the vectors.

        Args:
            documents: The documents, in order.
            embedder: Computes vectors that are not known.
            vectors: Known vectors by the documents' ids, of this embedder's edition.
            before: An earlier object, from which the vectors of unchanged documents are taken.
        """
        self.documents, self.edition, self.weight = documents, embedder.edition, embedder.weight
        self._embedder = embedder
        with _told(embedder):
            self.matrix = Matrix(len(documents), embedder.embed_query("").shape[1])
        same = before is not None and before.edition == self.edition
        self._absent = self._take(vectors, self._take_over(before if same else None))
        """Positions of documents whose vectors were not known."""
        self._fresh = self._make()

    @property
    def made(self) -> dict[str, Vector]:
        """The vectors computed here, by their documents' ids."""
        ids = (self.documents[place].id for place in self._absent)
        return dict(zip(ids, self._fresh.astype(np.float32), strict=True))

    def nearness(self, query: str) -> Nearness:
        """Return the similarity of each document: 1 for the same, about 0 or less for unrelated texts."""
        return self.nearness_by_clause(query)[0]

    def nearness_by_clause(self, query: str) -> tuple[Nearness, Vector]:
        """Return `nearness`, and a row for each clause where the query has several and there are not too many
        documents."""
        with _told(self._embedder):
            vectors = _sound(self._embedder.embed_query(query))
        if len(self.documents) > _MANY:  # Scoring clauses separately would cost more than all else.
            together = self.matrix.nearness_together(vectors, _OF_CLAUSE)
            return np.round(together.astype(np.float64), _DECIMALS), np.zeros((0, len(together)), dtype=np.float32)
        near = self.matrix.nearness(vectors)
        clauses = near[1:]
        whole: Vector = near[0]
        if len(clauses):
            whole = (1 - _OF_CLAUSE) * whole + _OF_CLAUSE * clauses.max(axis=0)
        return np.round(whole.astype(np.float64), _DECIMALS), clauses

    def _take_over(self, before: "Meaning | None") -> list[int]:
        """Copy rows from `before`, and return the positions of documents without one."""
        if before is None:
            return [*range(len(self.documents))]
        places = places_before(self.documents, before.documents)
        stayed = np.flatnonzero(places >= 0)
        self.matrix.take(stayed, before.matrix, places[stayed])
        return np.flatnonzero(places < 0).tolist()

    def _take(self, vectors: Mapping[str, Vector], places: Sequence[int]) -> list[int]:
        """Store the known vectors of documents at these positions, and return the positions of the others."""
        size, absent = (self.matrix.size,), list[int]()
        for some in _portions(places):
            found = [(place, vectors.get(self.documents[place].id)) for place in some]
            of_size = [(place, vector) for place, vector in found if vector is not None and vector.shape == size]
            known = [(place, vector) for place, vector in of_size if np.isfinite(vector.sum())]
            if known:
                self.matrix.put(np.array([place for place, _ in known]), np.stack([vector for _, vector in known]))
            absent += sorted({*some} - {place for place, _ in known})
        return absent

    def _make(self) -> NDArray[np.float16]:
        """Compute the missing vectors in half precision, as they are stored, so that a search gives the same now and
        after the next start."""
        made = np.zeros((len(self._absent), self.matrix.size), dtype=np.float16)
        for start in range(0, len(self._absent), _AT_ONCE):
            some = self._absent[start : start + _AT_ONCE]
            with _told(self._embedder):
                vectors = self._embedder.embed_documents([self.documents[place] for place in some])
            made[start : start + _AT_ONCE] = _sound(vectors)
            self.matrix.put(np.array(some), made[start : start + _AT_ONCE].astype(np.float32))
        return made


@contextmanager
def _told(embedder: Embedder) -> Generator[None]:
    """Convert an embedder's error to `EmbedderFailed`, with the embedder."""
    try:
        yield
    except Exception as error:
        raise EmbedderFailed(embedder, error) from error


def _sound(vectors: Vector) -> Vector:
    """Replace a vector that is not finite by zeros: it would make all scores invalid."""
    return np.where(np.isfinite(vectors).all(axis=1, keepdims=True), vectors, np.float32(0))


def _portions(places: Sequence[int]) -> Iterator[Sequence[int]]:
    return (places[start : start + _AT_ONCE] for start in range(0, len(places), _AT_ONCE))
