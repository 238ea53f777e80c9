"""Which vector has a text, by looking up its words?

A table of weights: a row for each word or piece of a word. A query is the sum of its rows, each times how much it tells
in queries; a document the sum over its aspects of weight times the mean of their rows; both of length one. Sums are not
left to a library of linear algebra, whose last bits differ from one machine to the next. Reads no file; how the weights
came to be, `training/` tells.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .asked import asked
from .aspects import aspects
from .document import Document
from .pieces import Pieces

__all__ = ["StaticTable"]

_WAY = 1
"""Raised whenever the same weights would give a document another vector."""
_LONGEST = (16, 24, 64, 128, 48)
"""Rows that count of each aspect, as in training."""
_LONG_QUERY = 96
_LETTERS = 0.4
"""How long the vector of a query is that has no word that is known. Of 1,500 tools the nearest to letters without sense
has 0.3, and one in ten of such texts 0.42; to `docx`, `k8s` or `rss` it has 0.5 to 0.8: most of these stay above what
chance would bring, and most of those do not."""
_WEIGHT = 7.0
"""Anything from 5 to 10 does as well."""

_Numbers = NDArray[np.float32]
_Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticTable:
    """An `Embedder`."""

    digest: str
    """Of the weights."""
    pieces: Pieces
    rows: NDArray[np.int8]
    steps: _Numbers
    """What one of a row's numbers is worth."""
    telling: _Numbers
    """How much a row tells in a query."""
    weights: tuple[float, ...]
    """One an aspect."""
    feature_weights: tuple[float, ...] = ()
    """Of the fused score and of the features of `rerank`; none where candidates are not looked at again."""

    @property
    def edition(self) -> str:
        return f"table-{_WAY}-{self.digest}"

    @property
    def weight(self) -> float:
        return _WEIGHT

    def embed_documents(self, documents: Sequence[Document]) -> _Numbers:
        sums = np.zeros((len(documents), self.rows.shape[1]), dtype=np.float32)
        for place, document in enumerate(documents):
            rows, shares = self._of_document(document)
            self._sum(rows, np.array(shares, dtype=np.float32), sums[place])
        return _of_length_one(sums)

    def embed_query(self, query: str) -> _Numbers:
        texts = asked(query)
        sums = np.zeros((len(texts), self.rows.shape[1]), dtype=np.float32)
        for place, text in enumerate(texts):
            rows = self.pieces.rows(text, _LONG_QUERY)
            self._sum(rows, self.telling[rows], sums[place])
        lengths = [1.0 if self.pieces.makes_sense(text) else _LETTERS for text in texts]
        return _of_length_one(sums) * np.array(lengths, dtype=np.float32)[:, None]

    @property
    def words(self) -> "StaticTable":
        """Itself: a `WordVectors`."""
        return self

    def query_words(self, query: str) -> tuple[_Rows, _Numbers]:
        rows = _each_once(self.pieces.rows(query, _LONG_QUERY))
        return rows, self.telling[rows]

    def document_words(self, document: Document) -> tuple[_Rows, ...]:
        return tuple(
            _each_once(self.pieces.rows(text, longest))
            for text, longest in zip(aspects(document), _LONGEST, strict=True)
        )

    def nearness_of_words(self, asked: _Rows, rows: _Rows) -> tuple[_Numbers, _Numbers]:
        queried, wide = self.rows[asked].astype(np.float32), self.rows[rows].astype(np.float32)
        lengths, of_queried = (np.sqrt(np.einsum("ij,ij->i", each, each)) for each in (wide, queried))
        near = queried @ wide.T
        near /= np.maximum(of_queried, 1)[:, None]
        near /= np.maximum(lengths, 1)
        return near, lengths * self.steps[rows]

    def _of_document(self, document: Document) -> tuple[list[int], list[float]]:
        """Its rows, and the share that each has."""
        rows, shares = list[int](), list[float]()
        for text, longest, weight in zip(aspects(document), _LONGEST, self.weights, strict=True):
            found = self.pieces.rows(text, longest)
            rows += found
            shares += [weight / max(len(found), 1)] * len(found)
        return rows, shares

    def _sum(self, rows: list[int], shares: _Numbers, into: _Numbers) -> None:
        if rows:
            np.add.reduce(self.rows[rows] * (shares * self.steps[rows])[:, None], axis=0, out=into)


def _of_length_one(sums: _Numbers) -> _Numbers:
    """Except where nothing was known."""
    lengths = np.sqrt((sums * sums).sum(axis=1, keepdims=True))
    lengths[lengths == 0] = 1
    return sums / lengths


def _each_once(rows: list[int]) -> _Rows:
    return np.array(sorted({*rows}), dtype=np.intp)
