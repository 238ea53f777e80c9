"""Where the tail of a history begins, and which messages of the head before it stay.

The tail is the newest part of a history that is left as it is. Of the head before it stay word for word: the leading
and the latest system message, what is pinned, the user's first request and last words (unless the summary carries
them), and calls that are still open. All of these in whole groups, so that what remains is a valid history again. What
becomes of the rest, others decide.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, chain

from ullage.messages import Message, Thinking

from .entry import Entry
from .groups import groups, is_instruction, leading, speaks
from .pairing import Pairing
from .requests import Requests, read_history

__all__ = ["Parting", "tail_weights"]


class Parting:
    """A history, looked at once, that may be parted at several places."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.reading = read_history(entries)
        self._messages = self.reading.messages
        self._groups = groups(self._messages, self.reading.pairing, self.reading.text_results)
        self._weights = tail_weights(entries)
        self._group_at = [group for group in self._groups for _ in group]
        self._bound = _bound(entries, self.reading.pairing)
        self._turn = max((place for place, one in enumerate(self._messages) if speaks(one)), default=-1)

    @property
    def requests(self) -> Requests:
        return self.reading.requests

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

    def stays(self, cut: int, carried: Collection[int] = ()) -> tuple[int, ...]:
        """The places before the cut of what must remain; `carried` are requests whose words the summary has."""
        bound = self._bound.union({*self.requests.first, *self.requests.last}.difference(carried))
        staying = sorted({place for one in bound for place in self._group_at[one] if place < cut})
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
    return frozenset((*pinned, *spoken, *latest, *_open(messages, pairing)))


def _open(messages: Sequence[Message], pairing: Pairing) -> Iterator[int]:
    """Calls of the assistant's last turn that have no result yet; it may still come."""
    last = max((place for place, one in enumerate(messages) if one.role == "assistant"), default=-1)
    while last > 0 and messages[last - 1].role == "assistant":
        last -= 1
    yield from (call.place for call in pairing.unanswered if call.place >= last)


def _thinks(message: Message) -> bool:
    return message.role == "assistant" and any(isinstance(part, Thinking) for part in message.parts)
