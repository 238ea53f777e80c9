"""What did this text count to, the last time?

Agents count the same messages again and again, and a look-up is hundreds of times cheaper than the best tokenizer.
Bounded by the bytes of the texts it holds; safe between threads. It knows nothing of tokens: a value for a text.

Two generations stand for an order of use: what is asked for moves into the young one, and when that is full the old
one goes. A hit in the young generation is one dictionary look-up without a lock, and what was used within the last half
of the capacity is always there.
"""

from sys import getsizeof
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["Memo", "Section"]

Value = TypeVar("Value")
_Text = str | tuple[int, int]

_ENTRY = 300
"""Bytes that an entry costs beside its text: its place in the dictionary, a small value."""
_SHARE = 64
"""A text above this part of the capacity is held by its length and hash alone, so that a few long ones do not drive out
the rest. Python's hash is keyed and of 64 bits: to take one text for another is a chance of one in 10^19 a pair."""


class Memo(Generic[Value]):
    """Values for texts, by vocabulary (or any other name), in at most `capacity` bytes. None is no value."""

    __slots__ = ("_half", "_lock", "_sections", "_size", "longest")

    def __init__(self, capacity: int = 32 * 1024 * 1024) -> None:
        self._half = capacity // 2
        self._lock = Lock()
        self._size = 0
        self._sections: dict[str, Section[Value]] = {}
        self.longest = capacity // _SHARE
        """Characters of a text that is held itself."""

    def section(self, name: str) -> "Section[Value]":
        """The part of one vocabulary; keep it, to spare each look-up the name."""
        found = self._sections.get(name)
        return self._sections.setdefault(name, Section(self)) if found is None else found

    def get(self, name: str, text: str) -> Value | None:
        return self.section(name).get(text)

    def put(self, name: str, text: str, value: Value) -> None:
        self.section(name).put(text, value)

    def keep(self, section: "Section[Value]", key: _Text, value: Value) -> None:
        """Into the young generation; when that is full, it becomes the old one."""
        with self._lock:
            size = self._size + _ENTRY + getsizeof(key)
            if size > self._half:
                for each in self._sections.values():
                    each.age()
                size = _ENTRY + getsizeof(key)
            self._size = size
            section.young[key] = value


class Section(Generic[Value]):
    """The texts of one vocabulary."""

    __slots__ = ("_longest", "_memo", "old", "young")

    def __init__(self, memo: Memo[Value]) -> None:
        self._memo = memo
        self._longest = memo.longest
        self.young: dict[_Text, Value] = {}
        self.old: dict[_Text, Value] = {}

    def get(self, text: str) -> Value | None:
        found = self.young.get(text)
        if found is None and (self.old or len(text) > self._longest):
            return self._get_late(text)
        return found

    def put(self, text: str, value: Value) -> None:
        self._memo.keep(self, text if len(text) <= self._longest else self._key(text), value)

    def age(self) -> None:
        self.old, self.young = self.young, {}

    def _get_late(self, text: str) -> Value | None:
        """From the old generation, or by a long text's hash."""
        key = self._key(text)
        found = self.young.get(key)
        if found is None:
            found = self.old.get(key)
            if found is not None:
                self._memo.keep(self, key, found)
        return found

    def _key(self, text: str) -> _Text:
        return text if len(text) <= self._longest else (len(text), hash(text))
