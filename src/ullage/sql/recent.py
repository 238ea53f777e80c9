"""What was asked a moment ago, and what was the answer?

A few answers, for some seconds, within a bound of entries and of size; the one not asked for longest goes first. What
makes two questions the same is for whoever asks.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["Recent"]

Value = TypeVar("Value")

_ENTRIES = 100
_SIZE = 8_000_000


class Recent(Generic[Value]):
    """Answers by question. With no seconds it keeps nothing."""

    def __init__(
        self, seconds: float, *, clock: Callable[[], float], entries: int = _ENTRIES, size: int = _SIZE
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._entries = entries
        self._size = size
        self._used = 0
        self._kept: OrderedDict[Hashable, tuple[float, int, Value]] = OrderedDict()

    def get(self, key: Hashable) -> Value | None:
        found = self._kept.get(key)
        if found is None:
            return None
        ends, _, value = found
        if self._clock() >= ends:
            self.forget(key)
            return None
        self._kept.move_to_end(key)
        return value

    def put(self, key: Hashable, value: Value, size: int) -> None:
        """`size` is a rough one, in bytes; what is larger than all the room is not kept."""
        self.forget(key)
        if self._seconds <= 0 or size > self._size:
            return
        while self._kept and (self._used + size > self._size or len(self._kept) >= self._entries):
            self.forget(next(iter(self._kept)))
        self._kept[key] = (self._clock() + self._seconds, size, value)
        self._used += size

    def forget(self, key: Hashable) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._used -= found[1]
