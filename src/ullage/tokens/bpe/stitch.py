"""How is a text counted in bounded steps, to the same number as at once?

`count_steps` counts slice after slice and yields between them. Slices that end where a piece ends just add up. Slices
inside one giant piece, and all slices of a vocabulary that merges over the whole text, overlap and are stitched.

**Why a stitch is right.** Byte-pair encoding merges, again and again, the adjacent pair of lowest rank, the leftmost of
equals. (a) If the encoding of a text has a boundary at some place, no merge ever crossed it, so the encoding is that of
the left part followed by that of the right. (b) Let t and u be neighbours in some encoding. Then tu encodes to t, u, by
(a) twice. Conversely, if x's encoding ends in t, y's begins with u, and tu encodes to t, u, then xy encodes to x's
tokens and y's. For suppose that merging xy crosses between them, and take the first time. Until then the steps inside t
and u were, each time, the best in all of xy, hence the best in tu: merging tu goes through the same steps and crosses
as well, which it does not. (c) So a sequence of tokens in which each two neighbours are neighbours in some encoding is
the encoding of its text. If two overlapping slices share a token at the same place, the first's tokens up to it and the
second's tokens after it are such a sequence. The ranks may be any; scores (SentencePiece) do as well. A piece that is
itself a token is looked up and not merged, but an open slice is longer than any token.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..steps import Steps
from .slices import Stop, next_stop
from .split import Split

__all__ = ["Tokenizer", "count_steps"]


class Tokenizer(Protocol):
    """One vocabulary, loaded."""

    @property
    def split(self) -> Split | None:
        """How it splits a text into pieces; None if it merges over the whole text."""
        ...

    @property
    def reach(self) -> int:
        """How many bytes it may be given in one step."""
        ...

    def count(self, text: str, /) -> int: ...

    def encode(self, text: str, *, inside: bool = False) -> Sequence[int]:
        """The tokens; `inside` a longer text, without what the vocabulary puts before every text."""
        ...

    def width(self, token: int) -> int:
        """How many bytes of the text a token stands for."""
        ...

    def bytes_of(self, text: str) -> bytes:
        """The text as its tokens spell it, without what is put before it."""
        ...


class _State(NamedTuple):
    """How far a count has come."""

    start: int
    total: int
    """Tokens of all that lies before `start`."""
    overlap: tuple[int, ...] = ()
    """Widths of the tokens that the slice before this one has from `start` on."""
    previous: "_State | None" = None
    """Where that slice began: to go back to, with a longer one, when the overlap turns out too short."""
    reach: int = 0
    """The length that slice was allowed."""


_OVERLAP = 16
"""Tokens that two slices share, or half of a slice if that is less. One is enough if it is the same in both."""


def count_steps(tokenizer: Tokenizer, text: str) -> Steps[int]:
    """The number of tokens of `text`, with a yield after every slice."""
    usual = tokenizer.reach if text.isascii() else max(1, tokenizer.reach // 4)  # a character is up to four bytes
    state, reach = _State(0, 0), usual
    while state.start < len(text) or state.overlap:
        stop = _next_stop(tokenizer, text, state.start, reach)
        after = stop and _advance(tokenizer, text, state, stop, reach)
        if after:
            state, reach = after, usual
        elif stop and state.previous:
            state, reach = state.previous, state.reach * 2
        else:
            reach *= 2
        yield
    return state.total


def _next_stop(tokenizer: Tokenizer, text: str, start: int, reach: int) -> Stop | None:
    if tokenizer.split is not None:
        return next_stop(text, start, reach, tokenizer.split)
    return Stop(min(start + reach, len(text)), open=start + reach < len(text))


def _advance(tokenizer: Tokenizer, text: str, state: _State, stop: Stop, reach: int) -> _State | None:
    """The state after one slice; None if the slice cannot be stitched to what lies before or after it."""
    part = text[state.start : stop.end]
    if not state.overlap and not stop.open:
        return _State(stop.end, state.total + tokenizer.count(part))
    tokens = tokenizer.encode(part, inside=state.start > 0)
    shared = _shared(tokenizer, tokens, state.overlap) if state.overlap else (0, 0)
    if shared is None:
        return None
    before, skipped = shared
    if not stop.open:
        return _State(stop.end, state.total + before + len(tokens) - skipped)
    return _overlapping(tokenizer, part, tokens, skipped, _State(state.start, state.total + before, (), state, reach))


def _shared(tokenizer: Tokenizer, tokens: Sequence[int], overlap: tuple[int, ...]) -> tuple[int, int] | None:
    """The first token that both slices have at the same place, counted from either's beginning, itself included."""
    mine, theirs, end, other_end = 0, 0, 0, 0
    while mine < len(tokens) and theirs < len(overlap):
        width, other = tokenizer.width(tokens[mine]), overlap[theirs]
        if end == other_end and width == other:
            return theirs + 1, mine + 1
        if end + width <= other_end + other:
            mine, end = mine + 1, end + width
        else:
            theirs, other_end = theirs + 1, other_end + other
    return None


def _overlapping(tokenizer: Tokenizer, part: str, tokens: Sequence[int], skipped: int, before: _State) -> _State | None:
    """The state that begins at one of the last tokens of an open slice, where a character begins."""
    data = tokenizer.bytes_of(part)
    widths, size, best = list[int](), 0, (0, 0)
    enough = min(_OVERLAP, (len(tokens) - skipped) // 2)
    for token in reversed(tokens[skipped:]):
        widths.append(tokenizer.width(token))
        size += widths[-1]
        if _may_begin_a_slice(data, size):
            best = len(widths), size
            if len(widths) >= enough:
                break
    count, size = best
    if not count:
        return None
    start = before.start + len(part) - len(data[-size:].decode())
    counted = len(tokens) - skipped - count
    return before._replace(start=start, total=before.total + counted, overlap=tuple(reversed(widths[:count])))


def _may_begin_a_slice(data: bytes, size: int) -> bool:
    """Whether a character begins `size` bytes before the end, with one before it and one after it, as `slices` asks."""
    return size < len(data) and data[-size] & 0xC0 != 0x80 and len(data[-size:].decode()) > 1
