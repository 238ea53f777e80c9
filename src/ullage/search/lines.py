"""In which of these lines does a text stand?

All lines are one array of bytes, and a text is looked for in all of them at once: its first letters as one number, then
letter by letter where these were found. What is found often takes hardly longer than what is found never.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Lines"]

_END = b"\n"
_Places = NDArray[np.int64]


class Lines:
    """Lines of bytes that have no line end in them."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._text = np.frombuffer(_END.join((*lines, b"")), dtype=np.uint8)
        sizes = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)) + len(_END)
        self._starts = np.cumsum(sizes) - sizes

    def find(self, text: bytes) -> tuple[_Places, _Places]:
        """The line of each place where the text stands, and where in the line. The text is of two bytes at least."""
        size = 4 if len(text) >= 4 else 2
        at = self._beginning_with(text[:size])
        for distance in range(size, len(text)):
            if not len(at):
                break
            # Never beyond the end: the last line's end is no letter of the text, and whoever has reached it is gone.
            at = at[self._text[at + distance] == text[distance]]
        lines = np.searchsorted(self._starts, at, side="right") - 1
        return lines, at - self._starts[lines]

    def _beginning_with(self, letters: bytes) -> _Places:
        """Where these two or four letters stand: as numbers of so many bytes, beginning at any byte."""
        size = len(letters)
        number = np.frombuffer(letters, dtype=f"u{size}")[0]
        found = list[_Places]()
        for first in range(size):
            rest = self._text[first:]
            numbers = rest[: len(rest) // size * size].view(f"u{size}")
            found.append(np.flatnonzero(numbers == number) * size + first)
        return np.sort(np.concatenate(found))
