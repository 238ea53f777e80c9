"""Which terms is a text made of, and what does each weigh in a query?

Names are split where their writers joined them (case, digits, underscores, dots, hyphens) and kept whole as well, so
that `GitHub` is found by `github` and `getUserById` by `user`. Scripts that put no spaces between words become pairs of
letters. Accents and widths are folded. A word's rarity is the index's affair.

Weights were tried without a list of weak words, by rarity alone and by whether a word occurs in names: both rank worse,
since a catalogue is too small to show that `would` is common and `invoice` is not.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from .apart import apart
from .stem import stem
from .vocabulary import KIN, WEAK

__all__ = ["Wanted", "of_run", "parts", "runs", "terms", "wanted"]

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PART_OF_ANY_ALPHABET = re.compile(r"\d+|\D+")
_SPACELESS = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+)"
)
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese, Korean (which has spaces, but glues its particles to words)."""
_VOICED = "\u3099\u309a"
"""The marks that tell `ga` from `ka` in Japanese: letters there, not accents."""
_FOREIGN = re.compile("[^\x00-\x7f]+")
_SHORT_STRETCH = 8
"""Letters outside ASCII that are remembered with what becomes of them."""
_LONG_WORD = 64
"""Letters of a word that count; what is longer is no word."""
_LONG_QUERY = 10_000
_MOST_TERMS = 200
"""Different terms of a query that are looked up."""
_WEAK = 0.2
_KIN = 0.4


@dataclass(frozen=True, slots=True)
class Wanted:
    """A term of a query."""

    weight: float
    asked: bool = True
    """False for a kin word of one that was asked."""


def terms(text: str) -> list[str]:
    """The terms of a text in its order, repeated as often as they occur."""
    return [term for run in runs(text) for term in of_run(run)]


def runs(text: str) -> list[str]:
    """The letters and digits of a text that stand together, in its order, for whoever counts many texts and knows most
    of them already."""
    return (text if text.isascii() else _fold(text)).translate(_PARTED).split()


def parts(name: str) -> list[str]:
    """The words of a name as written, in lower case: `getUserById` is `get`, `user`, `by`, `id`."""
    return [part.casefold() for run in runs(name) for part in _split(run)]


def wanted(query: str) -> dict[str, Wanted]:
    """The terms of a query, and kin words of them. To repeat a word adds less each time."""
    counts = Counter(terms(query[:_LONG_QUERY])).most_common(_MOST_TERMS)
    asked = {term: Wanted(count**0.5 * (_WEAK if term in _WEAK_TERMS else 1.0)) for term, count in counts}
    kin: dict[str, Wanted] = {}
    for term, want in asked.items():
        for other in _KIN_TERMS.get(term, ()):
            known = kin.get(other)
            if other not in asked and (known is None or known.weight < want.weight * _KIN):
                kin[other] = Wanted(want.weight * _KIN, asked=False)
    return asked | kin


def _fold(text: str) -> str:
    """One spelling for what differs in width or accent only. A stretch at a time, since most of a text is ASCII and
    stays, and most of the rest comes again: dashes, quotes, accents."""
    return _FOREIGN.sub(_folded, text)


def _folded(found: re.Match[str]) -> str:
    stretch = found[0]
    return _fold_known(stretch) if len(stretch) <= _SHORT_STRETCH else _fold_foreign(stretch)


def _fold_foreign(stretch: str) -> str:
    bare = apart(stretch, "NFKD").translate(_WITHOUT_MARKS)
    return unicodedata.normalize("NFC", bare)


_fold_known = lru_cache(maxsize=8_192)(_fold_foreign)


class _Table(dict[int, str | None]):
    """What becomes of each letter, found out when it is first asked for."""

    def __init__(self, become: Callable[[str], str | None]) -> None:
        self._become = become

    def __missing__(self, code: int) -> str | None:
        found = self[code] = self._become(chr(code))
        return found


_WITHOUT_MARKS = _Table(
    lambda letter: None if letter not in _VOICED and unicodedata.category(letter).startswith("M") else letter
)
_PARTED = _Table(lambda letter: letter if letter.isalnum() else " ")
"""Whatever is no letter and no digit parts words, the underscore too."""


def _split(run: str) -> list[str]:
    """Case joins words in names, and names are ASCII; elsewhere only digits part them."""
    return (_PART if run.isascii() else _PART_OF_ANY_ALPHABET).findall(run)


def of_run(run: str) -> tuple[str, ...]:
    """The terms of letters and digits that stand together."""
    run = run[:_LONG_WORD]
    if not run.isascii() and _SPACELESS.search(run):
        return tuple(term for piece in _SPACELESS.split(run) if piece for term in _of_script(piece))
    return _of_word(run)


@lru_cache(maxsize=65_536)
def _of_word(run: str) -> tuple[str, ...]:
    """Remembered, since words come again; what has no spaces between words hardly does, and its pairs take much
    memory."""
    split = _split(run)
    if len(split) == 1:
        return (stem(run.casefold()),)
    return (*(stem(part.casefold()) for part in split), stem(run.casefold()))


def _of_script(piece: str) -> tuple[str, ...]:
    if not _SPACELESS.match(piece):
        return _of_word(piece)
    return tuple(piece[at : at + 2] for at in range(len(piece) - 1)) or (piece,)


def _kin_terms() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for family in KIN:
        members = [stem(word) for word in family]
        for member in members:
            found.setdefault(member, {}).update(dict.fromkeys(other for other in members if other != member))
    return {term: tuple(others) for term, others in found.items()}


_WEAK_TERMS = frozenset(term for word in WEAK for term in terms(word))
_KIN_TERMS = _kin_terms()
