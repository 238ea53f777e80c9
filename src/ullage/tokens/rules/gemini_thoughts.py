"""What do the thoughts behind a signature weigh to Gemini?

The request carries thoughts sealed: an opaque signature whose length is all that can be seen. Both rules were fitted to
what recorded requests weighed beyond everything else in them. A made-up signature, as clients send in place of one they
lost, weighs nothing.
"""

from collections.abc import Iterator

from ..count import ZERO, Count, Method
from .gemini_media import decoded

__all__ = ["no_thoughts", "sealed_thoughts", "streamed_thoughts", "vertex_thoughts"]

_BAND = 0.25


def no_thoughts(signature: str) -> Count:
    """Models that do not think."""
    del signature
    return ZERO


def streamed_thoughts(signature: str) -> Count:
    """Gemini 2.5: thoughts weigh something only where they were streamed, which shows in a short first chunk.

    About 34 bytes of each chunk are its seal, and 4.1 bytes of the rest a token (7 recorded signatures). Of bytes that
    are no signature it cannot be told.
    """
    data = decoded(signature)
    chunks = list(_chunks(data))
    if not chunks:
        return Count(tokens=0, method=Method.ESTIMATED, low=0, high=200)
    if len(chunks) == 1 or chunks[0] >= 64:
        return ZERO
    return Count.within(max(0, sum(chunks) - 34 * len(chunks)) / 4.1, _BAND, Method.ESTIMATED)


def sealed_thoughts(signature: str) -> Count:
    """Gemini 3 and later: 0.277 tokens a byte after the first 79.

    Over 45 recorded requests the error is 4 % in the middle and 34 % at most.
    """
    data = decoded(signature)
    if not data:
        return Count(tokens=0, method=Method.ESTIMATED, low=0, high=2000)
    if data[:1] != b"\x12":
        return ZERO
    return Count.within(max(8.0, _BYTE * (len(data) - _SEAL)), _BAND, Method.ESTIMATED)


def vertex_thoughts(signature: str) -> Count:
    """Vertex: nothing on most recorded requests, and at most what AI Studio counts for a signature of that length."""
    data = decoded(signature)
    high = max(0, round(_BYTE * (len(data) - _SEAL))) if data else 600
    return Count(tokens=0, method=Method.ESTIMATED, low=0, high=high)


_BYTE = 0.277
_SEAL = 79


def _chunks(data: bytes) -> Iterator[int]:
    """The lengths of the fields of a message whose only field is number 1, repeated; nothing of any other bytes."""
    position = 0
    while position < len(data) - 1 and data[position] == 0x0A:
        size = shift = 0
        for byte in data[position + 1 : position + 6]:
            position += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        yield size
        position += 1 + size
