"""Which rows of the table is a text made of?

Words are parted where names join them, in lower case and without accents; a word that has no row of its own becomes the
longest pieces that have one, from its beginning (WordPiece). Scripts without spaces become the longest words that have
rows. What has no row is left out. Pure Python, no vectors.
"""

import re
import unicodedata
from collections.abc import Sequence

__all__ = ["Pieces", "fold"]

_RUN = re.compile(r"[^\W_]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^A-Za-z0-9]+")
_LONG_WORD = 40
"""Letters of a word that count."""
_LONG_ENTRY = 24
"""Letters of the longest row."""


def fold(text: str) -> str:
    """One spelling for what differs in width or accent only."""
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFKD", text)
    bare = "".join(letter for letter in apart if not unicodedata.category(letter).startswith("M"))
    return unicodedata.normalize("NFC", bare)


class Pieces:
    """Parts texts by one vocabulary. A row that goes on inside a word is written with `##` before it."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._rows = {piece: row for row, piece in enumerate(vocabulary)}
        self._known: dict[str, tuple[int, ...]] = {}

    def rows(self, text: str) -> list[int]:
        """The rows of a text in its order, repeated as often as they occur."""
        return [row for run in _RUN.findall(fold(text)) for row in self._of_run(run[:_LONG_WORD])]

    def _of_run(self, run: str) -> tuple[int, ...]:
        known = self._known.get(run)
        if known is None:
            whole = self._rows.get(run.lower())
            known = (whole,) if whole is not None else tuple(self._of_parts(_PART.findall(run)))
            self._known[run] = known
        return known

    def _of_parts(self, found: Sequence[str]) -> list[int]:
        return [row for part in found for row in self._longest_first(part.lower())]

    def _longest_first(self, word: str) -> list[int]:
        rows, start = list[int](), 0
        joint = "##" if word.isascii() else ""
        while start < len(word):
            for end in range(min(len(word), start + _LONG_ENTRY), start, -1):
                row = self._rows.get((joint if start else "") + word[start:end])
                if row is not None:
                    rows.append(row)
                    break
            else:
                end = start + 1
            start = end
        return rows
