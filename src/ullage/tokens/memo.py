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

__all__ = ["Memo"]

Value = TypeVar("Value")
_Text = str | tuple[int, int]
_Generation = dict[str, dict[_Text, Value]]

_ENTRY = 300
"""Bytes that an entry costs beside its text: its place in the dictionary, a small value."""
_SHARE = 64
"""A text above this part of the capacity is held by its length and hash alone, so that a few long ones do not drive out
the rest. Python's hash is keyed and of 64 bits: to take one text for another is a chance of one in 10^19 a pair."""


class Memo(Generic[Value]):
    """Values for texts, by vocabulary (or any other name), in at most `capacity` bytes. None is no value."""

    __slots__ = ("_half", "_lock", "_long", "_old", "_size", "_young")

    def __init__(self, capacity: int = 32 * 1024 * 1024) -> None:
        self._half = capacity // 2
        self._long = capacity // _SHARE
        self._lock = Lock()
        self._young: _Generation[Value] = {}
        self._old: _Generation[Value] = {}
        self._size = 0

    def get(self, name: str, text: str) -> Value | None:
        young = self._young.get(name)
        if young is not None:
            found = young.get(text)
            if found is not None:
                return found
        return self._get_late(name, text)

    def put(self, name: str, text: str, value: Value) -> None:
        self._keep(name, self._key(text), value)

    def _get_late(self, name: str, text: str) -> Value | None:
        """From the old generation, or by a long text's hash."""
        key = self._key(text)
        found = self._young.get(name, {}).get(key)
        if found is None:
            found = self._old.get(name, {}).get(key)
            if found is not None:
                self._keep(name, key, found)
        return found

    def _key(self, text: str) -> _Text:
        return text if len(text) <= self._long else (len(text), hash(text))

    def _keep(self, name: str, key: _Text, value: Value) -> None:
        with self._lock:
            if key in self._young.get(name, {}):
                return
            self._size += _ENTRY + getsizeof(key)
            if self._size > self._half:
                self._old, self._young = self._young, {}
                self._size = _ENTRY + getsizeof(key)
            self._young.setdefault(name, {})[key] = value
