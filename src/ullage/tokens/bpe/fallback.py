"""Byte-pair encoding in Python, over ranks that are mapped into memory.

It counts short texts until splintr is loaded (`short_texts`), and all texts where splintr has no wheel. Exact like
splintr, at a megabyte a second for new text and several for ordinary text; a giant piece goes through a heap, at some
seconds a megabyte.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .characters import kinds
from .ranks import RankTable
from .split import Split
from .vocabulary import Vocabulary

__all__ = ["CARRIED", "PythonTokenizer", "load_python", "read_tokens"]

CARRIED = ("cl100k_base", "o200k_base", "o200k_harmony")
_DATA = __file__.removesuffix("fallback.py") + "data"
_REACH = 4_096
_SHORT = 128
"""Bytes up to which searching all pairs for the next merge beats keeping a heap."""
_REMEMBERED = 65_536
"""Pieces whose counts are kept; then all are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PythonTokenizer:
    """One vocabulary."""

    ranks: RankTable
    split: Split
    reach: int = _REACH
    remembered: dict[str, int] = field(default_factory=dict[str, int])

    def count(self, text: str) -> int:
        text.encode()  # a lone surrogate must fail here as it does in splintr
        return self._count(text, kinds(text))

    def count_surely(self, text: str) -> int | None:
        """The same, and None where splintr counts otherwise: to it, a long s after an apostrophe is no contraction."""
        text.encode()
        seen = kinds(text)
        return None if "'f" in seen else self._count(text, seen)

    def _count(self, text: str, seen: str) -> int:
        total, remembered = 0, self.remembered
        for match in self.split.pattern.finditer(seen):
            piece = text[match.start() : match.end()]
            known = remembered.get(piece)
            total += self._learn(piece) if known is None else known
        return total

    def encode(self, text: str, *, inside: bool = False) -> Sequence[int]:
        del inside  # nothing is put before a text
        pieces = self.split.pattern.finditer(kinds(text))
        return [token for match in pieces for token in self._merge(text[match.start() : match.end()].encode())]

    def width(self, token: int) -> int:
        return self.ranks.width(token)

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
    return PythonTokenizer(ranks=_table(vocabulary.name), split=vocabulary.split)


def read_tokens(name: str) -> tuple[bytes, ...]:
    """A carried vocabulary's tokens in the order of their ranks."""
    return tuple(_table(name))


def _table(name: str) -> RankTable:
    return RankTable(f"{_DATA}/{name}.ranks")


def merge_short(piece: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """The tokens of a piece. The rank of each pair is kept, and those beside a merge are looked up again."""
    get, never = ranks.get, 1 << 32
    ends = list(range(len(piece) + 1))
    pairs = [get(piece[at : at + 2], never) for at in range(len(piece) - 1)]
    while pairs:
        best = min(pairs)
        if best == never:
            break
        at = pairs.index(best)
        del ends[at + 1], pairs[at]
        if at < len(pairs):
            pairs[at] = get(piece[ends[at] : ends[at + 2]], never)
        if at:
            pairs[at - 1] = get(piece[ends[at - 1] : ends[at + 1]], never)
    return [ranks[piece[start:end]] for start, end in pairwise(ends)]


def merge_long(piece: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """The same, with the pairs in a heap and the parts in a linked list."""
    from heapq import heapify, heappop, heappush

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
