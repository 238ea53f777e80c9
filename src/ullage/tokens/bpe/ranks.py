"""Ranks of a vocabulary's tokens, looked up in a file that is mapped into memory.

Nothing is read ahead: opening a table takes microseconds, and the pages that are touched are shared by all processes.
`scripts/build_vocabularies.py` writes the files.

A file is a header (`_HEADER`: magic, number of slots, number of bytes of all tokens), the slots, and the tokens in the
order of their ranks, each as one byte of length and its bytes. The slots are a hash table with open addressing, a power
of two of 32-bit words in little-endian order. The lower bits of a token's CRC-32 say where to look first; a word holds
the 11 upper bits of it and the place of the token's first byte among the tokens, and 0 is an empty slot.
"""

import sys
from array import array
from binascii import b2a_base64, crc32
from collections.abc import Iterable, Iterator, Mapping, Sequence
from mmap import ACCESS_READ, mmap
from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["RankTable", "format_published", "pack_table"]

_HEADER = Struct("<8sII")
_MAGIC = b"ULRANKS1"
_PLACE_BITS = 21
_PLACE = (1 << _PLACE_BITS) - 1
_SPARSENESS = 2
"""Slots for each token, at least."""


class RankTable(Mapping[bytes, int]):
    """Token to rank. A rank here is the token's place in the file: ordered as ranks are, and with gaps."""

    __slots__ = ("_base", "_map", "_mask", "_size", "_slots")

    def __init__(self, path: "Path | str") -> None:
        with open(path, "rb") as file:  # noqa: PTH123 - `pathlib` costs 4 ms, which every count would wait for
            self._map = mmap(file.fileno(), 0, access=ACCESS_READ)
        header: tuple[bytes, int, int] = _HEADER.unpack_from(self._map)
        magic, slots, self._size = header
        if magic != _MAGIC:
            raise ValueError(f"`{path}` holds no ranks")
        words = memoryview(self._map)[_HEADER.size : _HEADER.size + 4 * slots]
        self._slots: Sequence[int] = words.cast("I") if sys.byteorder == "little" else _swapped(words)
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
        """The tokens in the order of their ranks."""
        held, place, end = self._map, self._base, self._base + self._size
        while place < end:
            after = place + 1 + held[place]
            yield held[place + 1 : after]
            place = after

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def width(self, rank: int) -> int:
        """Bytes of the token of that rank."""
        return self._map[self._base + rank - 1]


def _swapped(words: memoryview) -> "array[int]":
    slots = array("I", bytes(words))
    slots.byteswap()
    return slots


def format_published(tokens: Iterable[bytes]) -> bytes:
    """The tokens as OpenAI publishes them and tiktoken reads them: each in base64, with its rank, on a line."""
    return b"".join(b"%s %d\n" % (b2a_base64(token, newline=False), rank) for rank, token in enumerate(tokens))


def pack_table(tokens: Iterable[bytes]) -> bytes:
    """The contents of a file for these tokens, which come in the order of their ranks."""
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
