"""Static embeddings: a table of vectors for words and pieces of words.

`StaticTable` is the embedder. A query's vector is the sum of its rows, each weighted by how significant it is in
queries; a document's is the sum over its aspects of weight times the mean of their rows; both are of length one. Sums
are not computed by a linear algebra library, whose last bits differ between machines. It reads no file; the weights are
made in `training/`.

`Pieces` splits words where names join them, in lower case and without accents; a word without a row is split into the
longest pieces that have one, from its beginning (WordPiece). Scripts without spaces are split into the longest words
that have rows. Anything without a row is left out. Any change here requires new weights, because the table was trained
on these pieces.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .document import Document
from .stemming_and_synonyms import apart, asked, aspects

__all__ = ["Pieces", "StaticTable", "fold"]

_RUN = re.compile(r"[^\W_]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^A-Za-z0-9]+")
_LONG_WORD = 40
"""Letters of a word that count."""
_LONG_ENTRY = 24
"""Letters of the longest entry in the table."""
_TELLING = 4
"""Least letters of a piece of a word that carries meaning: those of `zzzz` or `xqzptlk` carry none."""
_REMEMBERED = 32_768
"""Words whose rows are cached; when full, the cache is cleared."""


def fold(text: str) -> str:
    """Remove differences in width and accent. Unlike the folding of `stemming_and_synonyms`, it also removes Japanese
    voicing marks."""
    if text.isascii():
        return text
    bare = (letter for letter in apart(text, "NFKD") if not unicodedata.category(letter).startswith("M"))
    return unicodedata.normalize("NFC", "".join(bare))


class Pieces:
    """Splits texts by one vocabulary. A row that continues a word begins with `##`."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._vocabulary = vocabulary
        self._rows = {piece: row for row, piece in enumerate(vocabulary)}
        self._known: dict[str, tuple[int, ...]] = {}

    def rows(self, text: str, most: int | None = None) -> list[int]:
        """Return the rows of a text in order, repeated as often as they occur, and at most `most`."""
        found = list[int]()
        for run in _RUN.findall(fold(text)):
            known = self._known.get(run)
            found += self._learn(run[:_LONG_WORD]) if known is None else known
            if most is not None and len(found) >= most:
                return found[:most]
        return found

    def makes_sense(self, text: str) -> bool:
        """Return whether a word of the text is known, or a piece of some length; single letters make a text similar to
        anything."""
        for run in _RUN.findall(fold(text)):
            words = [run.lower(), *(part.lower() for part in _PART.findall(run))]
            if any(len(word) > 1 and word in self._rows for word in words):
                return True
            pieces = (self._vocabulary[row] for row in self._learn(run[:_LONG_WORD]))
            if any(len(piece.removeprefix("##")) >= _TELLING or not piece.isascii() for piece in pieces):
                return True
        return False

    def _learn(self, run: str) -> tuple[int, ...]:
        whole = self._rows.get(run.lower())
        words = () if whole is not None else _PART.findall(run)
        rows = (
            (whole,) if whole is not None else tuple(row for word in words for row in self._longest_first(word.lower()))
        )
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[run] = rows
        return rows

    def _longest_first(self, word: str) -> Iterator[int]:
        start = 0
        joint = "##" if word.isascii() else ""
        while start < len(word):
            for end in range(min(len(word), start + _LONG_ENTRY), start, -1):
                row = self._rows.get((joint if start else "") + word[start:end])
                if row is not None:
                    yield row
                    break
            else:
                end = start + 1
            start = end


_WAY = 1
"""Version of the method; increase it whenever the same weights would give a document another vector."""
_LONGEST = (16, 24, 64, 128, 48)
"""Rows of each aspect that count, as in training."""
_LONG_QUERY = 96
_LETTERS = 0.4
"""Length of the vector of a query without any known word. Of 1,500 tools the nearest to letters without sense has 0.3,
and 0.42 for one in ten of such texts; for `docx`, `k8s` or `rss` it has 0.5 to 0.8. With this length most of the latter
stay above what chance would bring, and most of the former do not."""
_WEIGHT = 7.0
"""Weight of similarity; anything from 5 to 10 works as well."""

_Numbers = NDArray[np.float32]
_Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticTable:
    """An `Embedder` and `WordVectors` by a table. See the module's description."""

    digest: str
    """Digest of the weights."""
    pieces: Pieces
    rows: NDArray[np.int8]
    steps: _Numbers
    """Value of one step of a row's numbers."""
    telling: _Numbers
    """Significance of each row in a query."""
    weights: tuple[float, ...]
    """Weights, one for each aspect."""
    feature_weights: tuple[float, ...] = ()
    """Weights of the fused score and of the features of `Reranker`; empty where candidates are not reranked."""

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
        """The table itself, as `WordVectors`."""
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
        """Return a document's rows, and the share of each."""
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
    """Scale each row to length one; rows of zeros stay."""
    lengths = np.sqrt((sums * sums).sum(axis=1, keepdims=True))
    lengths[lengths == 0] = 1
    return sums / lengths


def _each_once(rows: list[int]) -> _Rows:
    return np.array(sorted({*rows}), dtype=np.intp)
