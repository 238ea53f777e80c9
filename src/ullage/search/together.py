"""Which vector has a text, by two that know different things?

The encoder understands English better, the table knows words of other languages. A vector of both is one behind the
other, each weighed, so that nearness is the weighed sum of both. Of a text that is not in Latin letters the encoder
knows nothing, and the table speaks alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .asked import asked
from .document import Document
from .embedder import Embedder, WordVectors, words_of

__all__ = ["Together"]

_SHARE = 0.65
"""The encoder's. With more of it, other languages are lost; with less, English is."""
_BOTH = _SHARE**0.5, (1 - _SHARE) ** 0.5
_TABLE = 0.0, (1 - _SHARE) ** -0.5
_LATIN = "\u0250"
"""The first letter behind the Latin ones."""

_Numbers = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """An `Embedder`."""

    encoder: Embedder
    table: Embedder

    @property
    def edition(self) -> str:
        return f"together-{_SHARE}-{self.encoder.edition}-{self.table.edition}"

    @property
    def weight(self) -> float:
        return self.encoder.weight

    @property
    def words(self) -> WordVectors | None:
        """The table's: the encoder knows whole texts only."""
        return words_of(self.table)

    def embed_documents(self, documents: Sequence[Document]) -> _Numbers:
        of_encoder, of_table = _BOTH
        return _joined(
            of_encoder * self.encoder.embed_documents(documents), of_table * self.table.embed_documents(documents)
        )

    def embed_query(self, query: str) -> _Numbers:
        # A row that only the table fills counts whole beside documents in which the table has a part.
        weights = [_BOTH if _is_latin(text) else _TABLE for text in asked(query)]
        of_encoder, of_table = np.array(weights, dtype=np.float32).T[:, :, None]
        by_table = self.table.embed_query(query)
        # What the table hardly believes to have a meaning, the encoder, which sees letters too, is not believed either.
        believed = np.sqrt((by_table * by_table).sum(axis=1, keepdims=True))
        believed[believed == 0] = 1
        return _joined(of_encoder * believed * self.encoder.embed_query(query), of_table * by_table)


def _joined(first: _Numbers, second: _Numbers) -> _Numbers:
    return np.hstack((first, second)).astype(np.float32)


def _is_latin(text: str) -> bool:
    letters = [letter for letter in text if letter.isalpha()]
    return 2 * sum(letter < _LATIN for letter in letters) >= len(letters)
