"""How is a text counted where splintr has no wheel?

Byte-pair merging in Python, over the ranks of OpenAI's vocabularies that the package carries (`data/README.md`). Exact
like splintr, at a few megabytes a second for ordinary text; a giant piece goes through a heap, at some seconds a
megabyte. A character newer than this Python's Unicode tables is taken for a symbol.
"""

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from importlib.resources import files

from .characters import kinds
from .split import Split
from .vocabulary import Vocabulary

__all__ = ["CARRIED", "PythonTokenizer", "load_python", "read_tokens"]

CARRIED = ("cl100k_base", "o200k_base", "o200k_harmony")
_REACH = 4_096
_SHORT = 128
"""Bytes up to which searching all pairs for the next merge beats keeping a heap."""
_REMEMBERED = 65_536
"""Pieces whose counts are kept; then all are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonTokenizer:
    """One vocabulary: its tokens in the order of their ranks."""

    tokens: tuple[bytes, ...]
    ranks: Mapping[bytes, int]
    split: Split
    reach: int = _REACH
    remembered: dict[str, int] = field(default_factory=dict[str, int])

    def count(self, text: str) -> int:
        text.encode()  # a lone surrogate must fail here as it does in splintr
        total, remembered = 0, self.remembered
        for match in self.split.pattern.finditer(kinds(text)):
            piece = text[match.start() : match.end()]
            known = remembered.get(piece)
            total += self._learn(piece) if known is None else known
        return total

    def encode(self, text: str, *, inside: bool = False) -> Sequence[int]:
        del inside  # nothing is put before a text
        pieces = self.split.pattern.finditer(kinds(text))
        return [token for match in pieces for token in self._merge(text[match.start() : match.end()].encode())]

    def width(self, token: int) -> int:
        return len(self.tokens[token])

    def bytes_of(self, text: str) -> bytes:
        return text.encode()

    def _learn(self, piece: str) -> int:
        count = len(self._merge(piece.encode()))
        if len(piece) <= _SHORT:
            if len(self.remembered) >= _REMEMBERED:
                self.remembered.clear()
            self.remembered[piece] = count
        return count

    def _merge(self, piece: bytes) -> list[int]:
        whole = self.ranks.get(piece)
        if whole is not None:
            return [whole]
        return merge_short(piece, self.ranks) if len(piece) <= _SHORT else merge_long(piece, self.ranks)


def load_python(vocabulary: Vocabulary) -> PythonTokenizer:
    assert vocabulary.split is not None, f"`{vocabulary.name}` is not carried"
    tokens = read_tokens(vocabulary.name)
    ranks = {token: rank for rank, token in enumerate(tokens)}
    return PythonTokenizer(tokens=tokens, ranks=ranks, split=vocabulary.split)


def read_tokens(name: str) -> tuple[bytes, ...]:
    """A carried vocabulary's tokens in the order of their ranks. Each is one byte of length and its bytes."""
    packed = gzip.decompress(files("ullage.tokens.bpe").joinpath("data", f"{name}.gz").read_bytes())
    tokens: list[bytes] = []
    start = 0
    while start < len(packed):
        end = start + 1 + packed[start]
        tokens.append(packed[start + 1 : end])
        start = end
    return tuple(tokens)


def merge_short(piece: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """The tokens of a piece, by looking for the best pair again after each merge."""
    parts = [piece[index : index + 1] for index in range(len(piece))]
    worst = len(ranks)
    while len(parts) > 1:
        rank, index = min((ranks.get(parts[at] + parts[at + 1], worst), at) for at in range(len(parts) - 1))
        if rank == worst:
            break
        parts[index : index + 2] = [parts[index] + parts[index + 1]]
    return [ranks[part] for part in parts]


def merge_long(piece: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """The same, with the pairs in a heap and the parts in a linked list."""
    size = len(piece)
    end = list(range(1, size + 1))
    """Where the part that begins at an index ends; 0 once it is merged into the one before it."""
    before = list(range(-1, size - 1))
    pairs = [(rank, at) for at in range(size - 1) if (rank := ranks.get(piece[at : at + 2])) is not None]
    heapify(pairs)

    def offer(at: int) -> None:
        middle = end[at]
        if middle < size and (rank := ranks.get(piece[at : end[middle]])) is not None:
            heappush(pairs, (rank, at))

    while pairs:
        rank, at = heappop(pairs)
        middle = end[at]
        if not middle or middle >= size or ranks.get(piece[at : end[middle]]) != rank:
            continue  # one of the two has been merged since
        end[at], end[middle] = end[middle], 0
        if end[at] < size:
            before[end[at]] = at
        offer(at)
        if before[at] >= 0:
            offer(before[at])
    return [ranks[piece[at:stop]] for at, stop in enumerate(end) if stop]
