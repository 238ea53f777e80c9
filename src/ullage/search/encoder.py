"""Which vector has a text, by an encoder?

For those who want the better index and pay for it (`ullage[encoder]`): a small neural network of BERT's kind, run by
whatever can run it. Texts go through it one at a time: its eight-bit arithmetic takes its scale from all that it gets
at once, so that a text would mean something else in other company; and batches, filled up to their longest, save
nothing. Reads no file and knows no library that runs networks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .asked import asked
from .aspects import aspects
from .document import Document
from .wordpiece import WordPiece

__all__ = ["Encoder", "Network"]

_WAY = 1
"""Raised whenever the same network would give another vector."""
_LONGEST = 128
"""Pieces of a text that are read."""
_NUMBERS = 384
_WEIGHT = 12.0
"""Anything from 10 to 20 does as well: it is right more often than the table."""

_Numbers = NDArray[np.float32]


class Network(Protocol):
    """A session of onnxruntime, as far as it is used."""

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, NDArray[np.int64]], /
    ) -> Sequence[_Numbers]:
        """The first output has a row a text, each of length one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """An `Embedder`."""

    digest: str
    """Of the network's file."""
    pieces: WordPiece
    network: Network

    @property
    def edition(self) -> str:
        return f"encoder-{_WAY}-{self.digest}"

    @property
    def weight(self) -> float:
        return _WEIGHT

    def embed_documents(self, documents: Sequence[Document]) -> _Numbers:
        return self._embed(" ".join(filter(None, aspects(document))) for document in documents)

    def embed_query(self, query: str) -> _Numbers:
        return self._embed(asked(query))

    def _embed(self, texts: Iterable[str]) -> _Numbers:
        found = [self._one(self.pieces.numbers(text, _LONGEST)) for text in texts]
        return np.stack(found) if found else np.zeros((0, _NUMBERS), dtype=np.float32)

    def _one(self, numbers: Sequence[int]) -> _Numbers:
        """Of zeros where a text has nothing between its marks."""
        if len(numbers) <= 2:
            return np.zeros(_NUMBERS, dtype=np.float32)
        read = np.array([numbers], dtype=np.int64)
        return self.network.run(None, {"input_ids": read, "attention_mask": np.ones_like(read)})[0][0]
