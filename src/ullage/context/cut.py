"""Where does the tail begin, and what stays of the head?

The tail is the newest part of a history that is left as it is. Of the head before it stay word for word: what the
system says first and what it said last, what is pinned, what the user said last, and calls that are still open. All of
these in whole groups, so that what remains is a valid history again. What becomes of the rest, others decide.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain

from ullage.messages import Media, Message, Text, Thinking, ToolResult

from .entry import Entry
from .groups import groups, is_instruction, is_picture, leading, speaks
from .pairing import Pairing, pair

__all__ = ["Parting", "last_said", "tail_weights"]

_TAG = re.compile(r"<([A-Za-z][\w-]*)[^<>]*>")


class Parting:
    """A history, looked at once, that may be parted at several places."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._messages = [entry.message for entry in entries]
        pairing = pair(self._messages)
        self._groups = groups(self._messages, pairing)
        self._weights = tail_weights(entries)
        self._group_at = [group for group in self._groups for _ in group]
        self._bound = {place for one in _bound(entries, pairing) for place in self._group_at[one]}
        self._turn = max((place for place, one in enumerate(self._messages) if speaks(one)), default=-1)

    @property
    def places(self) -> list[int]:
        """At which a tail may begin."""
        return [group.start for group in self._groups]

    def cut(self, room: int) -> int:
        """The place at which the tail begins: as early as it weighs no more than `room`, and never behind the last
        group, however much that weighs."""
        places = self.places
        if not places:
            return 0
        first = bisect_left(places, True, key=lambda place: self._weights[place] <= room)
        return places[min(first, len(places) - 1)]

    def stays(self, cut: int) -> tuple[int, ...]:
        """The places before the cut of what must remain."""
        staying = sorted(place for place in self._bound if place < cut)
        return tuple(sorted({*staying, *self._thought(staying, cut)}))

    def _thought(self, staying: Sequence[int], cut: int) -> range:
        """The thinking under which a turn of calls was begun that still goes on.

        Anthropic, and others who want thinking back, take a turn that has not ended only if it begins with thinking;
        what remains of one and begins with calls alone is led by the latest step before it that has some.
        """
        nothing = range(0)
        if cut <= self._turn:
            return nothing
        left = chain((place for place in staying if place > self._turn), range(cut, len(self._messages)))
        first = next((place for place in left if self._messages[place].role == "assistant"), None)
        if first is None or _thinks(self._messages[first]):
            return nothing
        thoughts = (place for place in range(first - 1, self._turn, -1) if _thinks(self._messages[place]))
        latest = next(thoughts, None)
        return nothing if latest is None else self._group_at[latest]


def tail_weights(entries: Sequence[Entry]) -> list[int]:
    """By place: what weighs from there on to the end; one more than there are entries."""
    backwards = accumulate((entry.weight.tokens for entry in reversed(entries)), initial=0)
    return list(backwards)[::-1]


def _bound(entries: Sequence[Entry], pairing: Pairing) -> frozenset[int]:
    """The places of single messages that stay wherever a history is cut."""
    messages = [entry.message for entry in entries]
    pinned = (place for place, entry in enumerate(entries) if entry.pinned)
    spoken = range(leading(messages))
    latest = [place for place, one in enumerate(messages) if is_instruction(one)][-1:]
    return frozenset((*pinned, *spoken, *latest, *last_said(entries), *_open(messages, pairing)))


def _open(messages: Sequence[Message], pairing: Pairing) -> Iterator[int]:
    """Calls of the assistant's last turn that have no result yet; it may still come."""
    last = max((place for place, one in enumerate(messages) if one.role == "assistant"), default=-1)
    while last > 0 and messages[last - 1].role == "assistant":
        last -= 1
    yield from (call.place for call in pairing.unanswered if call.place >= last)


def last_said(entries: Sequence[Entry]) -> frozenset[int]:
    """The last words from the user's side, and the last that surely a person typed, where those are others.

    Programs speak in the user's turn too: they put reminders beside results, pictures behind them, and their own words
    into tags.
    """
    said = None
    for place in range(len(entries) - 1, -1, -1):
        entry = entries[place]
        if entry.kind != "message" or entry.message.role != "user" or not _has_words(entry.message):
            continue
        said = place if said is None else said
        if _is_typed(entry.message, entries[place - 1].message if place else None):
            return frozenset((said, place))
    return frozenset(() if said is None else (said,))


def _has_words(message: Message) -> bool:
    return any(isinstance(part, Media) or (isinstance(part, Text) and part.text.strip()) for part in message.parts)


def _is_typed(message: Message, before: Message | None) -> bool:
    if not speaks(message):
        return False
    if is_picture(message):
        return before is None or not _brings_results(before)
    return not all(_is_tagged(part.text.strip()) for part in message.parts if isinstance(part, Text))


def _brings_results(message: Message) -> bool:
    return message.role == "tool" or any(isinstance(part, ToolResult) for part in message.parts)


def _is_tagged(text: str) -> bool:
    """Whether a text is one element from its first letter to its last."""
    opening = _TAG.match(text)
    return not text or (opening is not None and text.endswith(f"</{opening[1]}>"))


def _thinks(message: Message) -> bool:
    return message.role == "assistant" and any(isinstance(part, Thinking) for part in message.parts)
