"""Vector index of documents.

Vectors of documents that were made before are taken as they are; the rest is made now. What a vector says, the
embedder knows; what nearness is worth beside words, `fusion`.

A vector is kept as bytes and what one step of them is worth: a quarter of the memory, which moves a nearness by less
than three thousandths. Compared with several, a hundred thousand take half the time, too, because what takes time is
memory: some at a time are made wide where they stay in the cache. Knows rows by place, not what they are of.
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
"""Vectors that are compared with at a time."""
_SMALL = 1 << 18
"""Multiplications up to which OpenBLAS does a product in one thread: threads that wait for each other and for the same
memory burn two to three times the CPU."""
_WIDE = 4
"""Blocks that are made wide at a time: half a megabyte."""


class Matrix:
    """Rows of zeros, until they are put."""

    def __init__(self, number: int, size: int) -> None:
        height = max(1, _SMALL // (size * _MOST))
        self._number = number
        self._blocks = np.zeros((-(-number // height), height, size), dtype=np.int8)
        """The last may end in rows that are nobody's."""
        self.steps = np.zeros(number, dtype=np.float32)

    @property
    def size(self) -> int:
        return self._blocks.shape[2]

    def put(self, places: Places, vectors: Vector) -> None:
        steps = np.abs(vectors).max(axis=1, initial=0) / np.float32(_STEPS)
        self.steps[places] = steps
        self.rows[places] = np.round(vectors / np.where(steps, steps, 1)[:, None])

    def take(self, places: Places, other: "Matrix", theirs: Places) -> None:
        """Puts rows of another matrix, whose vectors have the same size."""
        self.steps[places] = other.steps[theirs]
        self.rows[places] = other.rows[theirs]

    def nearness(self, vectors: Vector) -> Vector:
        """How near each row is to each of these vectors: a row a vector."""
        near = self._products(vectors).transpose(1, 0, 2).reshape(len(vectors), -1)
        return near[:, : self._number] * self.steps

    def nearness_together(self, vectors: Vector, of_others: float) -> Vector:
        """How near each row is to the first of these vectors and, where there are others, to the nearest of them, which
        counts so much of the whole. Cheaper than one by one where rows are very many."""
        near = self._products(vectors)
        nearest = near[:, 0]
        if len(vectors) > 1:
            nearest = (1 - of_others) * nearest + of_others * near[:, 1:].max(axis=1)
        return nearest.ravel()[: self._number] * self.steps

    def _products(self, vectors: Vector) -> Vector:
        """By block, by vector, by row of the block, in steps."""
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
        """In steps."""
        return self._blocks.reshape(-1, self.size)


Nearness = NDArray[np.float64]

_OF_CLAUSE = 0.5
"""What the nearest clause counts where there are several; the whole query counts the rest."""
_MANY = 20_000
"""Documents beyond which the clauses of a query are not scored apart."""
_DECIMALS = 5
"""Machines add in different orders, so that the last bits of sums differ; less than this is no difference."""
_AT_ONCE = 1_000
"""Documents that are embedded at a time, so that it takes little memory."""


class Meaning:
    """The vectors of documents, by place. Never changes once made."""

    def __init__(
        self,
        documents: Sequence[Document],
        embedder: Embedder,
        vectors: Mapping[str, Vector],
        before: "Meaning | None" = None,
    ) -> None:
        """`vectors` by the documents' ids, of this embedder's edition. Those of documents that stayed as they were are
        taken over from before."""
        self.documents, self.edition, self.weight = documents, embedder.edition, embedder.weight
        self._embedder = embedder
        with _told(embedder):
            self.matrix = Matrix(len(documents), embedder.embed_query("").shape[1])
        same = before is not None and before.edition == self.edition
        self._absent = self._take(vectors, self._take_over(before if same else None))
        """The places of documents whose vectors were not known."""
        self._fresh = self._make()

    @property
    def made(self) -> dict[str, Vector]:
        """The vectors that were not known before, by their documents' ids."""
        ids = (self.documents[place].id for place in self._absent)
        return dict(zip(ids, self._fresh.astype(np.float32), strict=True))

    def nearness(self, query: str) -> Nearness:
        """Of each document: 1 for the same, about 0 for what has nothing to do with the query, or less."""
        return self.nearness_by_clause(query)[0]

    def nearness_by_clause(self, query: str) -> tuple[Nearness, Vector]:
        """The same, and beside it a row for each clause where the query has several and documents are not very many."""
        with _told(self._embedder):
            vectors = _sound(self._embedder.embed_query(query))
        if len(self.documents) > _MANY:  # To score clauses apart would cost more than all the rest.
            together = self.matrix.nearness_together(vectors, _OF_CLAUSE)
            return np.round(together.astype(np.float64), _DECIMALS), np.zeros((0, len(together)), dtype=np.float32)
        near = self.matrix.nearness(vectors)
        clauses = near[1:]
        whole: Vector = near[0]
        if len(clauses):
            whole = (1 - _OF_CLAUSE) * whole + _OF_CLAUSE * clauses.max(axis=0)
        return np.round(whole.astype(np.float64), _DECIMALS), clauses

    def _take_over(self, before: "Meaning | None") -> list[int]:
        """Takes rows over, and says which documents had none."""
        if before is None:
            return [*range(len(self.documents))]
        places = places_before(self.documents, before.documents)
        stayed = np.flatnonzero(places >= 0)
        self.matrix.take(stayed, before.matrix, places[stayed])
        return np.flatnonzero(places < 0).tolist()

    def _take(self, vectors: Mapping[str, Vector], places: Sequence[int]) -> list[int]:
        """Puts the vectors of documents at these places that are known, and says which are not."""
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
        """In half precision, as they are kept: a search finds the same now and after the next start."""
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
    """Says whose error it is."""
    try:
        yield
    except Exception as error:
        raise EmbedderFailed(embedder, error) from error


def _sound(vectors: Vector) -> Vector:
    """With zeros for one that has no length: one such number would make nothing of the scores of all."""
    return np.where(np.isfinite(vectors).all(axis=1, keepdims=True), vectors, np.float32(0))


def _portions(places: Sequence[int]) -> Iterator[Sequence[int]]:
    return (places[start : start + _AT_ONCE] for start in range(0, len(places), _AT_ONCE))
