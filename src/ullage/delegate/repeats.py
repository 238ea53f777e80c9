"""Removal of events that a stream sends twice.

Some proxies deliver every event twice, or a whole answer a second time behind the first; put together as they come, its
text would be doubled. Events are compared as they were sent. A stream that really says the same piece twice in a row
passes: only one whose events come in pairs from its first event on is a doubled one.
"""

import re
from dataclasses import dataclass, field

__all__ = ["Numbers", "RawEvent", "RepeatFilter"]

RawEvent = tuple[str | None, str]
"""An event's name, where it has one, and its data."""
_CERTAIN = 2
"""Pairs from the beginning after which a stream is taken to be doubled."""


_NUMBER = re.compile(r'"sequence_number":\s*(\d+)')


@dataclass(slots=True)
class Numbers:
    """Recognises events that are sent again, after a connection was resumed, by the number that each of them has."""

    _seen: dict[str, RawEvent] = field(default_factory=dict[str, RawEvent])
    _are_unique: bool = True
    """Whether no two different events had one number; others say nothing."""

    def is_replay(self, identity: str, event: RawEvent) -> bool:
        """Whether this very event came before.

        Args:
            identity: the event's id, or an empty text.
            event: the next of the stream. On a wire whose events have sequence numbers, that is its number.
        """
        numbered = _NUMBER.search(event[1])
        number = numbered[1] if numbered else identity
        if not number or not self._are_unique:
            return False
        if number not in self._seen:
            self._seen[number] = event
            return False
        self._are_unique = self._seen[number] == event
        return self._are_unique


@dataclass(slots=True)
class RepeatFilter:
    """Passes on each event of one stream once."""

    is_over: bool = False
    """Whether the answer has begun anew, or its end marker has come: nothing after that belongs to it."""
    _first: RawEvent | None = None
    _pairs: int = 0
    _open: RawEvent | None = None
    """The event whose twin is to come."""
    _is_single: bool = False
    """Whether an event came without its twin, so that the stream is no doubled one."""
    _held: list[RawEvent] = field(default_factory=list[RawEvent])
    """What is not passed on before it is clear whether the stream is doubled."""

    def pass_on(self, event: RawEvent, *, is_whole: bool) -> list[RawEvent]:
        """The events to be read now, in order.

        Args:
            event: the next of the stream.
            is_whole: whether the answer was complete before it; its first event then begins a second copy.
        """
        if self._first is None:
            self._first = self._open = event
            return [event]
        if is_whole and event == self._first:
            self.is_over = True
            return []
        if self._is_single:
            return [event]
        if self._open is None and self._pairs < _CERTAIN and event == self._first:
            # The same three times and more: a piece that is repeated, not a stream that is doubled.
            self._is_single = True
            return [*self.held_back(), event]
        if self._open is None:
            self._open = event
            if self._pairs >= _CERTAIN:
                return [event]
            self._held.append(event)
            return []
        if event == self._open:
            return self._close_pair(event)
        self._is_single = self._pairs < _CERTAIN
        self._open = event
        return [*self.held_back(), event]

    def _close_pair(self, event: RawEvent) -> list[RawEvent]:
        self._pairs, self._open = self._pairs + 1, None
        if self._pairs == 1:
            # Of the first pair one was passed on; its twin waits until the next pair shows what it is.
            self._held.append(event)
            return []
        if self._pairs == _CERTAIN:
            self._held.clear()
            return [event]
        return []

    def held_back(self) -> list[RawEvent]:
        """What is still held back when the stream ends; nothing is held back after it."""
        held, self._held = self._held, []
        return held
