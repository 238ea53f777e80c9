"""Which pieces does an encoder of BERT's kind read of a text?

As its tokenizer cuts (uncased): control characters go, ideographs and punctuation stand alone, lower case, no accents;
then the longest pieces from a word's beginning, and one unknown piece for a word that has none. Any vocabulary of that
kind will do. Numbers only; what an encoder makes of them is not known here.
"""

import re
import unicodedata
from collections.abc import Sequence

from .apart import apart

__all__ = ["WordPiece"]

_BEGIN, _END, _UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
_LONG_WORD = 100
"""Letters beyond which a word is unknown."""
_REMEMBERED = 32_768
"""Words whose pieces are kept; then all are forgotten."""
_ASCII = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
_CONTROL = dict.fromkeys(code for code in (*range(32), 127) if chr(code) not in "\t\n\r")
_IDEOGRAPHS = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f]"
)


class WordPiece:
    """Cuts texts by one vocabulary, in which a piece that goes on inside a word has `##` before it."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(vocabulary)}
        self._begin, self._end, self._unknown = (self._numbers[piece] for piece in (_BEGIN, _END, _UNKNOWN))
        self._known: dict[str, tuple[int, ...]] = {}

    def numbers(self, text: str, most: int) -> list[int]:
        """At most so many, between the marks of beginning and end, which count."""
        found = list[int]()
        for word in _words(text):
            known = self._known.get(word)
            found += self._learn(word) if known is None else known
            if len(found) > most - 2:
                break
        return [self._begin, *found[: most - 2], self._end]

    def _learn(self, word: str) -> tuple[int, ...]:
        if len(word) > _LONG_WORD:
            return (self._unknown,)
        pieces = self._cut(word)
        numbers = (self._unknown,) if pieces is None else pieces
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[word] = numbers
        return numbers

    def _cut(self, word: str) -> tuple[int, ...] | None:
        """None where some part of it is no piece."""
        numbers, start = list[int](), 0
        while start < len(word):
            for end in range(len(word), start, -1):
                number = self._numbers.get(("##" if start else "") + word[start:end])
                if number is not None:
                    numbers.append(number)
                    start = end
                    break
            else:
                return None
        return tuple(numbers)


def _words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII.findall(text.translate(_CONTROL).lower())
    letters = apart(_IDEOGRAPHS.sub(r" \g<0> ", "".join(map(_clean, text))), "NFD")
    bare = "".join(letter for letter in letters if unicodedata.category(letter) != "Mn")
    # Letter by letter: a sigma at the end of a word is no other letter here.
    return "".join(_alone(letter) for letter in bare.replace("Σ", "σ").lower()).split()


def _clean(letter: str) -> str:
    if letter in "\t\n\r":
        return " "
    return "" if letter == "\ufffd" or unicodedata.category(letter) in {"Cc", "Cf", "Co"} else letter


def _alone(letter: str) -> str:
    if letter.isascii():
        return letter if letter.isalnum() or letter.isspace() else f" {letter} "
    return f" {letter} " if unicodedata.category(letter).startswith("P") else letter
