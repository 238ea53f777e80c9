"""How much of a history is shown to a summariser at a time?

All of it at once, where its window allows. Where it does not, long pieces lose their middles, results first and the old
before the new; and where even that is too much, the history is shown in several passes, one after the other.
"""

from collections.abc import Callable, Iterator, Sequence

from .clipping import clipped, fitted
from .sharing import shared
from .transcript import Piece

__all__ = ["passes"]

_FAIR, _LEAST = 150, 40
"""Tokens of a piece that make another pass worth its price, and without which it says nothing."""
_MOST = 8
"""Passes; then more is left out instead."""
_FULL = 0.9
"""The share of several passes that is filled, for no piece is torn between two."""
_WIDE = 8
"""Characters of a token, where a text is too long to be counted whole."""


def passes(pieces: Sequence[Piece], *, room: int, count: Callable[[str], int], mark: str) -> list[str]:
    """What is shown in each pass, in at most `room` tokens; every piece stands behind a line with the mark."""
    frames = [count(_framed(piece, "", mark)) + 1 for piece in pieces]
    sizes = [
        min(room, frame + count(clipped(piece.text, room * _WIDE))) for piece, frame in zip(pieces, frames, strict=True)
    ]
    number, least = _number(sizes, room)
    within = room if number == 1 else int(_FULL * number * room)
    given = shared(sizes, [piece.worth for piece in pieces], [least] * len(pieces), within)
    blocks = [
        _framed(piece, fitted(piece.text, tokens - frame, count), mark)
        for piece, tokens, frame in zip(pieces, given, frames, strict=True)
        if tokens > frame
    ]
    return ["\n".join(batch) for batch in _packed(blocks, room, count)]


def _number(sizes: Sequence[int], room: int) -> tuple[int, int]:
    """How many passes, and what each piece is shown at least."""
    if sum(min(size, _FAIR) for size in sizes) <= room:
        return 1, _FAIR
    wanted = -(-sum(min(size, _FAIR) for size in sizes) // max(1, int(_FULL * room)))
    return (wanted, _FAIR) if wanted <= _MOST else (_MOST, _LEAST)


def _framed(piece: Piece, text: str, mark: str) -> str:
    return f"[{mark} {piece.who}]\n{text}"


def _packed(blocks: Sequence[str], room: int, count: Callable[[str], int]) -> Iterator[list[str]]:
    batch, used = list[str](), 0
    for block in blocks:
        size = count(block) + 1
        if batch and used + size > room:
            yield batch
            batch, used = [], 0
        batch.append(block)
        used += size
    if batch:
        yield batch
