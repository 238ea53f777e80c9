r"""Counts long texts slice by slice.

`next_stop` finds where a slice that began at the start of a piece may end. There are three kinds of positions, each
with its proof; the proofs cover all the rules of `split`. A rule matches pieces from left to right, each as far as
its first matching alternative goes; it looks ahead only after white space (`\s+(?!\S)`, and cl100k's `\s+$`).

1. A *seam* (`_SEAM`): two adjacent characters that are never in one piece, the first of which is not white space. A
   piece ends between them whatever the context, the left slice is not affected by what was cut off (nothing there looks
   ahead), and the right slice begins at the start of a piece. The one seam after white space is after a line end and
   before what is neither white nor `/`: the piece there is all white space up to this line end, with or without what
   follows.
2. The end of a piece found by matching from the slice's beginning, in text that is all seen (`_find_settled_positions`:
no match that
   begins before that position can reach the end of what was looked at). The slice alone gives the same pieces if its
   last match does not look ahead, or ends in a line end, or is all the white space there is at the slice's end.
3. Inside a giant piece (`open`). The next slice must then begin a little earlier and be stitched on: see `count_steps`.
   That needs three things: the slice is one piece; the true piece goes at least as far; and a match begun later in the
   run ends where the true piece ends. They hold in a run of one of `Split.words` (each set is on one side of the case
   rule, so its greedy parts take the same turn wherever they begin), of `Split.symbols` (two symbols in a row are never
   the one character before a word, nor a contraction), of white space without line ends, and in any white space up to a
   line end (`\s*[\r\n]+` takes all up to the last line end, from wherever it begins).

Where none is found within reach there is no stop, and the caller must extend the reach. That happens only for a run of
many thousand characters that mixes what a rule keeps in one piece (upper case with caseless letters, symbols with
combining marks, white space with line ends far apart; for DeepSeek, one word after a punctuation mark), or a character
that Unicode 16 does not assign (some vocabularies have a newer version), or a long s after an apostrophe: a contraction
to OpenAI's tokenizer, none to splintr.

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
itself a token is looked up and not merged, but an open slice is longer than any token."""

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..count import Steps
from .split import LETTER, WHITE, Split, kinds

__all__ = ["Stop", "Tokenizer", "count_steps", "find_seams", "next_stop"]


class Stop(NamedTuple):
    end: int
    open: bool
    """Whether the piece continues after `end`."""


_NEAR = 32
"""Characters at the end of a slice that are searched for a seam first; nearly every text has one there."""
_CLEAR = "".join(sorted(set(LETTER)))
_SEAM = re.compile(
    rf"[{_CLEAR}](?=[ ~\n1./\-c])"  # a letter, then neither letter, mark nor apostrophe
    r"|1(?=[^1Hk?])"  # a number is never followed by anything else in its piece,
    rf"|[{_CLEAR}xc./'\-](?=1)"  # nor preceded
    r"|[xc./'\-](?=[ ~])"  # a symbol, then white space that is no line end
    r"|\n(?=[^ ~\n/?])"
)
"""No kind on which the rules differ (`q`, `k`, `H`) and none that is not assigned (`?`) takes part."""
_HALF_OF_PAIR = re.compile("[\ud800-\udfff]")


def next_stop(text: str, start: int, reach: int, split: Split) -> Stop | None:
    """Return where the slice from `start` may end, at most `reach` characters on; None if there is no such position."""
    limit = start + reach
    if limit >= len(text):
        return Stop(len(text), open=False)
    seam = _last_seam(text, max(start, limit - _NEAR), limit) or _last_seam(text, start, limit)
    if seam is not None:
        return Stop(seam, open=False)
    seen = kinds(text[start : limit + 2])
    if "?" in seen or "'f" in seen:
        return None
    piece = _last_piece(seen, split)
    if piece:
        return Stop(start + piece, open=False)
    inside = _inside(seen, split)
    return Stop(start + inside, open=True) if inside else None


def find_seams(text: str) -> tuple[int, int] | None:
    """Return the first and the last seam of a text; None if it has none, or a part of a surrogate pair, which another
    text may complete."""
    if _HALF_OF_PAIR.search(text) is not None:
        return None
    seen = kinds(text)
    first = _SEAM.search(seen)
    if first is None:
        return None
    for start in (max(first.start(), len(seen) - _NEAR), first.start()):
        last = [seam.end() for seam in _SEAM.finditer(seen, start)]
        if last:
            break
    return first.end(), last[-1]


def _last_seam(text: str, start: int, end: int) -> int | None:
    seams = [seam.end() for seam in _SEAM.finditer(kinds(text[start : end + 1]))]
    return start + seams[-1] if seams else None


def _last_piece(seen: str, split: Split) -> int:
    """Return the end of the last piece that is certain and may end a slice; 0 if there is none."""
    if not seen.strip("1"):
        return len(seen) // 3 * 3
    words, symbols, white = _find_settled_positions(seen, split)
    settled = {None: words, "symbols": min(words, symbols), "white": min(words, symbols, white)}
    last = 0
    for match in split.pattern.finditer(seen):
        if match.start() >= settled[match.lastgroup]:
            break
        if match.lastgroup != "white" or (
            match[0][-1] == "\n" or match.start() == 0 or seen[match.start() - 1] not in WHITE
        ):
            last = match.end()
    return last


def _find_settled_positions(seen: str, split: Split) -> tuple[int, int, int]:
    """Return the positions before which a word, symbols or white space can begin without reaching the end of `seen`.

    A word is at most one character and what `word_tails` allow, with three more for a contraction; symbols come after a
    space. A rule tries words first, then symbols, then white space, so that later positions depend on earlier ones.
    """
    words = [_strip(seen[: len(seen) - cut], tail) for tail in split.word_tails for cut in range(4)]
    symbols = [_strip(seen, tail) for tail in split.symbol_tails]
    return min(words) - 1, min(symbols) - 1, len(seen.rstrip(WHITE))


def _strip(seen: str, tail: tuple[str, ...]) -> int:
    for kinds_of_run in tail:
        seen = seen.rstrip(kinds_of_run)
    return len(seen)


def _inside(seen: str, split: Split) -> int:
    """Return where a slice may end inside the giant piece that begins `seen`; 0 if nowhere. Two characters are kept in
    reserve."""
    end = len(seen) - 2
    if not seen.strip(WHITE):
        return end if "\n" not in seen else seen.rindex("\n", 0) + 1
    first, body = seen[0], seen[1:]
    words = any(first in run + split.opening and not body.strip(run) for run in split.words)
    is_run = words or any(first in run + " " and not body.strip(run) for run in split.symbols)
    piece = split.pattern.match(seen[:end]) if is_run else None
    return end if piece is not None and piece.end() == end else 0


class Tokenizer(Protocol):
    """A loaded vocabulary."""

    @property
    def split(self) -> Split | None:
        """The split of a text into pieces; None if merging covers the whole text."""
        ...

    @property
    def reach(self) -> int:
        """The most bytes to encode in one step."""
        ...

    def count(self, text: str, /) -> int: ...

    def encode(self, text: str, *, inside: bool = False) -> Sequence[int]:
        """Return the tokens; with `inside`, of part of a longer text, without the prefix that the vocabulary puts
        before each text."""
        ...

    def width(self, token: int) -> int:
        """Return the number of bytes of the text that a token covers."""
        ...

    def bytes_of(self, text: str) -> bytes:
        """Return the text in the bytes that its tokens have, without the prefix."""
        ...


class _State(NamedTuple):
    """The progress of a count."""

    start: int
    total: int
    """Tokens of everything before `start`."""
    overlap: tuple[int, ...] = ()
    """Widths of the tokens of the previous slice from `start` on."""
    previous: "_State | None" = None
    """The state before that slice, to return to with a longer one if the overlap is too short."""
    reach: int = 0
    """The maximum length of that slice."""


_OVERLAP = 16
"""Tokens that two slices share, or half of a slice if that is less. One is enough if it is the same in both."""


def count_steps(tokenizer: Tokenizer, text: str) -> Steps[int]:
    """Return the number of tokens of `text`, with a yield after every slice."""
    usual = tokenizer.reach if text.isascii() else max(1, tokenizer.reach // 4)  # a character is up to four bytes
    state, reach = _State(0, 0), usual
    while state.start < len(text) or state.overlap:
        stop = Stop(min(state.start + reach, len(text)), open=state.start + reach < len(text))
        if tokenizer.split is not None:
            stop = next_stop(text, state.start, reach, tokenizer.split)
        after = stop and _advance(tokenizer, text, state, stop, reach)
        if after:
            state, reach = after, usual
        elif stop and state.previous:
            state, reach = state.previous, state.reach * 2
        else:
            reach *= 2
        yield
    return state.total


def _advance(tokenizer: Tokenizer, text: str, state: _State, stop: Stop, reach: int) -> _State | None:
    """Return the state after one slice; None if the slice cannot be joined to its neighbours."""
    part = text[state.start : stop.end]
    if not state.overlap and not stop.open:
        return _State(stop.end, state.total + tokenizer.count(part))
    tokens = tokenizer.encode(part, inside=state.start > 0)
    shared = _find_shared_token(tokenizer, tokens, state.overlap) if state.overlap else (0, 0)
    if shared is None:
        return None
    before, skipped = shared
    if not stop.open:
        return _State(stop.end, state.total + before + len(tokens) - skipped)
    return _overlapping(tokenizer, part, tokens, skipped, _State(state.start, state.total + before, (), state, reach))


def _find_shared_token(tokenizer: Tokenizer, tokens: Sequence[int], overlap: tuple[int, ...]) -> tuple[int, int] | None:
    """Return the first token that both slices have at the same position, counted from the beginning of each,
    inclusive."""
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
    """Return the state that begins at one of the last tokens of an open slice, at the start of a character."""
    data = tokenizer.bytes_of(part)
    widths, size, best = list[int](), 0, (0, 0)
    enough = min(_OVERLAP, (len(tokens) - skipped) // 2)
    for token in reversed(tokens[skipped:]):
        widths.append(tokenizer.width(token))
        size += widths[-1]
        may_begin_a_slice = size < len(data) and data[-size] & 0xC0 != 0x80 and len(data[-size:].decode()) > 1
        if may_begin_a_slice:
            best = len(widths), size
            if len(widths) >= enough:
                break
    count, size = best
    if not count:
        return None
    start = before.start + len(part) - len(data[-size:].decode())
    counted = len(tokens) - skipped - count
    return before._replace(start=start, total=before.total + counted, overlap=tuple(reversed(widths[:count])))
