"""How is what was found shown, within a budget?

As many passages as fit, best first, each under a line that says where it comes from; passages that go on from one
another are shown as one. Of a first passage that is too long by itself, as much of its beginning as fits.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .passages import Passage

__all__ = ["Recalled", "nothing", "recalled"]

_LONG_CALL = 120
"""Characters of a call that are shown."""
_STEP = 100
"""Characters by which a line is shown that is too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    text: str
    """For the model, never over the budget."""
    passages: tuple[Passage, ...]
    """That are shown."""
    found: int
    """In all."""


def nothing(room: int, count: Callable[[str], int]) -> Recalled:
    """Where nothing was let go."""
    text = "-- nothing was let go yet: the whole conversation is still before you"
    return Recalled(text=_within(text, room, count), passages=(), found=0)


def recalled(found: Sequence[Passage], *, skip: int, limit: int, room: int, count: Callable[[str], int]) -> Recalled:
    """`found` best first; the first `skip` of them were shown before."""
    left = found[skip : skip + limit]

    def shown(number: int) -> str:
        return _text(left[:number], _footer(skip + number, len(found), skip))

    number = bisect_right(range(1, len(left) + 1), room, key=lambda number: count(shown(number)))
    if number or not left:
        return Recalled(text=_within(shown(number), room, count), passages=tuple(left[:number]), found=len(found))
    cut = _cut(left[0], room, count, _footer(skip + 1, len(found), skip))
    text = (
        _text([cut], _footer(skip + 1, len(found), skip)) if cut.text else f"-- {room} tokens are too few to show any"
    )
    return Recalled(text=_within(text, room, count), passages=(cut,) if cut.text else (), found=len(found))


def _cut(passage: Passage, room: int, count: Callable[[str], int], footer: str) -> Passage:
    """As many of its first lines as fit, or of its first line as many characters."""
    lines, (line, *_) = range(1, passage.text.count("\n") + 1), passage.text.split("\n")
    heads = [*(line[:end] for end in range(_STEP, len(line), _STEP)), *(_first(passage.text, end) for end in lines)]
    number = bisect_right(heads, room, key=lambda head: count(_text([replace(passage, text=head)], footer)))
    head = heads[number - 1] if number else ""
    return replace(passage, text=head, last=passage.last if passage.piece else passage.first + head.count("\n"))


def _first(text: str, lines: int) -> str:
    return "\n".join(text.split("\n", lines)[:lines])


def _within(text: str, room: int, count: Callable[[str], int]) -> str:
    """Where not even the last line fits, as many of its words as do."""
    words = text.split(" ")
    fitting = bisect_right(range(1, len(words)), room, key=lambda number: count(" ".join(words[:number])))
    return text if count(text) <= room else " ".join(words[:fitting])


def _footer(shown: int, found: int, skip: int) -> str:
    if not found:
        return "-- nothing that was let go has these words"
    if skip >= found:
        return f"-- there are only {found} passages"
    return f"-- {shown} of {found} passages" + (f"; skip={shown} shows more" if shown < found else "")


def _text(passages: Sequence[Passage], footer: str) -> str:
    return "\n".join([*(f"{_place(one)}\n{one.text}\n" for one in _joined(passages)), footer])


def _joined(passages: Sequence[Passage]) -> list[Passage]:
    joined: list[Passage] = []
    for passage in passages:
        if joined and _goes_on(joined[-1], passage):
            before = joined.pop()
            passage = replace(before, text=f"{before.text}\n{passage.text}", last=passage.last)  # noqa: PLW2901
        joined.append(passage)
    return joined


def _goes_on(before: Passage, passage: Passage) -> bool:
    same = (before.message, before.part) == (passage.message, passage.part)
    return same and not before.piece and not passage.piece and before.last + 1 == passage.first


def _place(passage: Passage) -> str:
    who = passage.about or passage.speaker
    short = who if len(who) <= _LONG_CALL else f"{who[: _LONG_CALL - 1]}…"
    lines = f"line {passage.first}" if passage.first == passage.last else f"lines {passage.first}–{passage.last}"
    piece = f", piece {passage.piece}" if passage.piece else ""
    return f"[message {passage.message} · {short} · {lines} of {passage.of}{piece}]"
