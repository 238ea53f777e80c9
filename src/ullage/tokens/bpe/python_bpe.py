"""Byte-pair encoding in Python, over ranks that are mapped into memory.

It counts short texts until splintr is loaded (`ShortTexts`), and all texts where splintr has no wheel. It is as exact
as splintr, at a megabyte a second for new text and several for ordinary text; a giant piece is merged with a heap, at
some seconds a megabyte.

`RankTable` looks up the ranks of a vocabulary's tokens in a memory-mapped file. Nothing is read ahead: opening a table
takes microseconds, and the pages in use are shared by all processes. `scripts/build_vocabularies.py` writes the files.

A file is a header (`_HEADER`: magic, number of slots, number of bytes of all tokens), the slots, and the tokens in the
order of their ranks, each as one byte of length and its bytes. The slots are a hash table with open addressing, a power
of two of 32-bit words in little-endian order. The lower bits of a token's CRC-32 give the first slot to examine; a word
has the 11 upper bits of it and the position of the token's first byte among the tokens, and 0 is an empty slot.

`ShortTexts` counts before the engine is loaded. Splintr takes 0.1 to 0.4 s and some 40 MB to load a vocabulary, and
keeps the interpreter's lock meanwhile. A process that counts a few definitions and replies finishes sooner without it:
short texts are counted in Python, or with a form of the same vocabulary that loads quickly (`Vocabulary.quick`), until
one is long or there were many. A process with a worker (`worker`) passes long texts to it instead, and never loads the
engine itself unless the worker fails.
"""

import sys
from array import array
from binascii import b2a_base64, crc32
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from struct import Struct
from threading import Thread
from typing import TYPE_CHECKING

from ullage.process_memory import add_mapped_file

from .split import Split, Vocabulary, kinds

if TYPE_CHECKING:
    from pathlib import Path

    from .worker import CountWorker

__all__ = [
    "CARRIED",
    "LONG",
    "MANY",
    "PythonTokenizer",
    "RankTable",
    "ShortTexts",
    "format_published",
    "load_python",
    "pack_table",
    "read_tokens",
]

_HEADER = Struct("<8sII")
_MAGIC = b"ULRANKS1"
_PLACE_BITS = 21
_PLACE = (1 << _PLACE_BITS) - 1
_SPARSENESS = 2
"""Least number of slots for each token."""


class RankTable(Mapping[bytes, int]):
    """Ranks by token. A rank here is the token's position in the file: in the order of ranks, with gaps."""

    __slots__ = ("_base", "_map", "_mask", "_size", "_slots")

    def __init__(self, path: "Path | str") -> None:
        with open(path, "rb") as file:  # noqa: PTH123 - `pathlib` costs 4 ms, which every count would wait for
            self._map = mmap(file.fileno(), 0, access=ACCESS_READ)
        add_mapped_file(self._map)
        header: tuple[bytes, int, int] = _HEADER.unpack_from(self._map)
        magic, slots, self._size = header
        if magic != _MAGIC:
            raise ValueError(f"`{path}` holds no ranks")
        words = memoryview(self._map)[_HEADER.size : _HEADER.size + 4 * slots]
        self._slots: Sequence[int] = words.cast("I")
        if sys.byteorder != "little":
            self._slots = array("I", bytes(words))
            self._slots.byteswap()
        self._mask = slots - 1
        self._base = _HEADER.size + 4 * slots

    def get(self, token: bytes, default: int | None = None) -> int | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        code = crc32(token)
        at, tag, slots, mask = code & self._mask, code >> _PLACE_BITS, self._slots, self._mask
        while word := slots[at]:
            if word >> _PLACE_BITS == tag:
                place = self._base + (word & _PLACE)
                held = self._map
                if held[place - 1] == len(token) and held[place : place + len(token)] == token:
                    return word & _PLACE
            at = (at + 1) & mask
        return default

    def __getitem__(self, token: bytes) -> int:
        found = self.get(token)
        if found is None:
            raise KeyError(token)
        return found

    def __iter__(self) -> Iterator[bytes]:
        """Yield the tokens in the order of their ranks."""
        held, place, end = self._map, self._base, self._base + self._size
        while place < end:
            after = place + 1 + held[place]
            yield held[place + 1 : after]
            place = after

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def width(self, rank: int) -> int:
        """Return the number of bytes of the token with this rank."""
        return self._map[self._base + rank - 1]


def format_published(tokens: Iterable[bytes]) -> bytes:
    """Return the tokens in the format that OpenAI publishes and tiktoken reads: each in base64, with its rank, on a
    line."""
    return b"".join(b"%s %d\n" % (b2a_base64(token, newline=False), rank) for rank, token in enumerate(tokens))


def pack_table(tokens: Iterable[bytes]) -> bytes:
    """Return the contents of a file for these tokens, given in the order of their ranks."""
    places: dict[bytes, int] = {}
    packed = bytearray()
    for token in tokens:
        packed += bytes((len(token),)) + token
        places[token] = len(packed) - len(token)
    if len(packed) > _PLACE:
        raise ValueError(f"{len(packed)} bytes of tokens are too many for {_PLACE_BITS} bits")
    size = 1 << (_SPARSENESS * len(places) - 1).bit_length()
    slots = array("I", bytes(4 * size))
    for token, place in places.items():
        code = crc32(token)
        at = code & (size - 1)
        while slots[at]:
            at = (at + 1) & (size - 1)
        slots[at] = code >> _PLACE_BITS << _PLACE_BITS | place
    if sys.byteorder != "little":
        slots.byteswap()
    return _HEADER.pack(_MAGIC, size, len(packed)) + slots.tobytes() + packed


CARRIED = ("cl100k_base", "o200k_base", "o200k_harmony")
_DATA = __file__.removesuffix("python_bpe.py") + "data"
_REACH = 4_096
_SHORT = 128
"""Bytes up to which searching all pairs for the next merge is faster than a heap."""
_REMEMBERED = 65_536
"""Pieces whose counts are cached; when full, the cache is cleared."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PythonTokenizer:
    """A vocabulary for counting in Python."""

    ranks: RankTable
    split: Split
    reach: int = _REACH
    remembered: dict[str, int] = field(default_factory=dict[str, int])

    def count(self, text: str) -> int:
        text.encode()  # a lone surrogate must fail here as it does in splintr
        return self._count(text, kinds(text))

    def count_surely(self, text: str) -> int | None:
        """Return the count, or None where splintr counts differently: it does not treat a long s after an apostrophe as
        a contraction."""
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
    """Return the tokens of a vocabulary that ships with the package, in the order of their ranks."""
    return tuple(_table(name))


def _table(name: str) -> RankTable:
    return RankTable(f"{_DATA}/{name}.ranks")


def merge_short(piece: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """Return the tokens of a piece. The rank of each pair is stored, and those beside a merge are looked up again."""
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
    """Return the tokens of a piece, with the pairs in a heap and the parts in a linked list."""
    from heapq import heapify, heappop, heappush

    size = len(piece)
    end = list(range(1, size + 1))
    """End of the part that begins at an index; 0 once it is merged into the one before it."""
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


LONG = 16_384
"""Characters of a text from which the engine is loaded."""
MANY = 500_000
"""Characters of all texts after which a thread loads the engine: counting them took as long as loading takes."""
_WORTH_ASKING = 4_096
"""Characters of a text above which a worker with a loaded vocabulary is faster, including the transfer."""


class ShortTexts:
    """Counts short texts in a way that starts quickly, and all texts with the engine once it is loaded."""

    __slots__ = ("_load", "_loaded", "_loading", "_name", "_quick", "_seen", "_worker")

    def __init__(
        self,
        quick: Callable[[str], int | None],
        load: Callable[[], Callable[[str], int]],
        *,
        name: str = "",
        worker: "Callable[[], CountWorker | None]" = lambda: None,
    ) -> None:
        """Create a counter.

        Args:
            quick: Counts short texts. Returns None for a text that the engine has to count.
            load: Returns the engine's counter; can take long.
            name: The vocabulary's name, for the worker.
            worker: Returns a worker that counts long texts in place of the engine, or None.
        """
        self._quick: Callable[[str], int | None] = quick
        self._load = load
        self._name = name
        self._worker = worker
        self._loaded: Callable[[str], int] | None = None
        self._loading: Thread | None = None
        self._seen = 0

    def count(self, text: str) -> int:
        if self._loaded is not None:
            return self._loaded(text)
        counted = self.try_count(text)
        if counted is not None:
            return counted
        worker = self._worker()
        counted = None if worker is None else worker.count(self._name, text)
        if counted is not None:
            return counted
        return self._load_engine()(text)

    def try_count(self, text: str) -> int | None:
        """Return the tokens of a text if it can be counted without waiting. None where another must count it: the
        engine is loaded, the text is long, a worker is faster, or splintr counts it differently."""
        if self._loaded is not None or len(text) > LONG:
            return None
        worker = self._worker() if len(text) > _WORTH_ASKING else None
        if worker is not None and worker.is_ready(self._name):
            return None
        counted = self._quick(text)
        if counted is not None:
            self._note(len(text))
        return counted

    def _note(self, characters: int) -> None:
        self._seen += characters
        if self._seen <= MANY:
            return
        worker = self._worker()
        if worker is not None:
            self._seen = 0
            worker.prepare(self._name)
        elif self._loading is None:
            self._loading = Thread(target=self._load_aside, daemon=True)
            self._loading.start()

    def _load_aside(self) -> None:
        with suppress(Exception):  # the next long text meets it again, and raises it
            self._load_engine()

    def _load_engine(self) -> Callable[[str], int]:
        self._loaded = loaded = self._load()
        self._quick = lambda _text: None  # releases the memory of the quick way
        return loaded
