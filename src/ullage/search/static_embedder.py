"""Static embeddings: a table of vectors for words and pieces.

A table of weights: a row for each word or piece of a word. A query is the sum of its rows, each times how much it
tells in queries; a document the sum over its aspects of weight times the mean of their rows; both of length one.
Sums are not left to a library of linear algebra, whose last bits differ from one machine to the next. Reads no
file; how the weights came to be, `training/` tells.

Words are parted where names join them, in lower case and without accents; a word that has no row of its own becomes the
longest pieces that have one, from its beginning (WordPiece). Scripts without spaces become the longest words that have
rows. What has no row is left out. Knows no vectors. Whatever changes here makes other weights necessary: the table was
trained on these pieces.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .document import Document
from .text_terms import apart, asked, aspects

__all__ = ["Pieces", "StaticTable", "fold"]

_RUN = re.compile(r"[^\W_]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^A-Za-z0-9]+")
_LONG_WORD = 40
"""Letters of a word that count."""
_LONG_ENTRY = 24
"""Letters of the longest row."""
_TELLING = 4
"""Letters from which a piece of a word says something: those of `zzzz` or `xqzptlk` say nothing."""
_REMEMBERED = 32_768
"""Words whose rows are kept; then all are forgotten."""


def fold(text: str) -> str:
    """One spelling for what differs in width or accent only. Unlike that of `words`, without Japanese voicing too."""
    if text.isascii():
        return text
    bare = (letter for letter in apart(text, "NFKD") if not unicodedata.category(letter).startswith("M"))
    return unicodedata.normalize("NFC", "".join(bare))


class Pieces:
    """Parts texts by one vocabulary. A row that goes on inside a word is written with `##` before it."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._vocabulary = vocabulary
        self._rows = {piece: row for row, piece in enumerate(vocabulary)}
        self._known: dict[str, tuple[int, ...]] = {}

    def rows(self, text: str, most: int | None = None) -> list[int]:
        """The rows of a text in its order, repeated as often as they occur, and no more than so many."""
        found = list[int]()
        for run in _RUN.findall(fold(text)):
            known = self._known.get(run)
            found += self._learn(run[:_LONG_WORD]) if known is None else known
            if most is not None and len(found) >= most:
                return found[:most]
        return found

    def makes_sense(self, text: str) -> bool:
        """Whether a word of it is known, or a piece of some length; letters alone bring a text near to anything."""
        return any(map(self._is_known, _RUN.findall(fold(text))))

    def _is_known(self, run: str) -> bool:
        words = [run.lower(), *(part.lower() for part in _PART.findall(run))]
        if any(len(word) > 1 and word in self._rows for word in words):
            return True
        return any(map(self._tells, self._learn(run[:_LONG_WORD])))

    def _tells(self, row: int) -> bool:
        piece = self._vocabulary[row]
        return len(piece.removeprefix("##")) >= _TELLING or not piece.isascii()

    def _learn(self, run: str) -> tuple[int, ...]:
        whole = self._rows.get(run.lower())
        rows = (whole,) if whole is not None else tuple(self._of_parts(run))
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[run] = rows
        return rows

    def _of_parts(self, run: str) -> Iterator[int]:
        for part in _PART.findall(run):
            yield from self._longest_first(part.lower())

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
