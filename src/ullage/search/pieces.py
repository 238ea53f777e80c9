"""Which rows of the table is a text made of?

Words are parted where names join them, in lower case and without accents; a word that has no row of its own becomes the
longest pieces that have one, from its beginning (WordPiece). Scripts without spaces become the longest words that have
rows. What has no row is left out. Knows no vectors. Whatever changes here makes other weights necessary: the table was
trained on these pieces.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from .apart import apart

__all__ = ["Pieces", "fold"]

_RUN = re.compile(r"[^\W_]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^A-Za-z0-9]+")
_LONG_WORD = 40
"""Letters of a word that count."""
_LONG_ENTRY = 24
"""Letters of the longest row."""
_TELLING = 4
"""Letters from which a piece of a word says something: those of `zzzz` or `xqzptlk` say nothing."""
_REMEMBERED = 32_768
"""Words whose rows are kept; then all are forgotten."""


def fold(text: str) -> str:
    """One spelling for what differs in width or accent only. Unlike that of `words`, without Japanese voicing too."""
    if text.isascii():
        return text
    bare = (letter for letter in apart(text, "NFKD") if not unicodedata.category(letter).startswith("M"))
    return unicodedata.normalize("NFC", "".join(bare))


class Pieces:
    """Parts texts by one vocabulary. A row that goes on inside a word is written with `##` before it."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._vocabulary = vocabulary
        self._rows = {piece: row for row, piece in enumerate(vocabulary)}
        self._known: dict[str, tuple[int, ...]] = {}

    def rows(self, text: str, most: int | None = None) -> list[int]:
        """The rows of a text in its order, repeated as often as they occur, and no more than so many."""
        found = list[int]()
        for run in _RUN.findall(fold(text)):
            known = self._known.get(run)
            found += self._learn(run[:_LONG_WORD]) if known is None else known
            if most is not None and len(found) >= most:
                return found[:most]
        return found

    def makes_sense(self, text: str) -> bool:
        """Whether a word of it is known, or a piece of some length; letters alone bring a text near to anything."""
        return any(map(self._is_known, _RUN.findall(fold(text))))

    def _is_known(self, run: str) -> bool:
        words = [run.lower(), *(part.lower() for part in _PART.findall(run))]
        if any(len(word) > 1 and word in self._rows for word in words):
            return True
        return any(map(self._tells, self._learn(run[:_LONG_WORD])))

    def _tells(self, row: int) -> bool:
        piece = self._vocabulary[row]
        return len(piece.removeprefix("##")) >= _TELLING or not piece.isascii()

    def _learn(self, run: str) -> tuple[int, ...]:
        whole = self._rows.get(run.lower())
        rows = (whole,) if whole is not None else tuple(self._of_parts(run))
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[run] = rows
        return rows

    def _of_parts(self, run: str) -> Iterator[int]:
        for part in _PART.findall(run):
            yield from self._longest_first(part.lower())

    def _longest_first(self, word: str) -> Iterator[int]:
        start = 0
        joint = "##" if word.isascii() else ""
        while start < len(word):
            for end in range(min(len(word), start + _LONG_ENTRY), start, -1):
                row = self._rows.get((joint if start else "") + word[start:end])
                if row is not None:
                    yield row
                    break
            else:
                end = start + 1
            start = end
