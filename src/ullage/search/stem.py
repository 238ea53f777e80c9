"""Which words are one word in different dress?

`translate`, `translation` and `translator` meet in one stem. Latin letters go by Porter's rules (M. F. Porter, "An
algorithm for suffix stripping", Program 14, 1980), which are made for English and do little harm elsewhere: both sides
of a comparison are cut alike. Words in other alphabets keep their first letters, which carry most of the
meaning in most languages.
"""

import re
from functools import lru_cache

__all__ = ["stem"]

_SHORT = 3
"""Words of fewer letters stay as they are."""
_LONG = 40
"""Words of more letters stay as they are, too: none is so long, and the rules take ever longer for it."""
_BEGINNING = 6
"""Letters kept of a word in another alphabet."""

_CONSONANT = "(?:[^aeiouy]|(?<=[aeiou])y|^y)"
_VOWEL = "(?:[aeiou]|(?<![aeiou])(?<!^)y)"
_HAS_VOWEL = re.compile(_VOWEL)
_ONCE = re.compile(f"{_VOWEL}+{_CONSONANT}")
_TWICE = re.compile(f"{_VOWEL}+{_CONSONANT}+{_VOWEL}+{_CONSONANT}")
_SHORT_END = re.compile(f"{_CONSONANT}{_VOWEL}(?:[^aeiouywx])$")
_DOUBLED = re.compile(r"([^aeiouylsz])\1$")


class _Endings(dict[str, str]):
    """Each ending and what takes its place, of rules such as `ational:ate`."""

    def __init__(self, rules: str) -> None:
        super().__init__((old, new) for old, _, new in (rule.partition(":") for rule in rules.split()))
        self.sizes = {last: self._sizes_of(last) for last in {ending[-1] for ending in self}}
        """Of the endings with that last letter: the longest that fits is the one that counts. Most words have none."""

    def _sizes_of(self, last: str) -> tuple[int, ...]:
        return tuple(sorted({len(ending) for ending in self if ending.endswith(last)}, reverse=True))


_PLURALS = _Endings("sses:ss ies:i ss:ss s:")
_LONG_ENDINGS = _Endings(
    "ational:ate tional:tion enci:ence anci:ance izer:ize abli:able alli:al entli:ent eli:e ousli:ous ization:ize "
    "ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous aliti:al iviti:ive biliti:ble"
)
_MIDDLE_ENDINGS = _Endings("icate:ic ative: alize:al iciti:ic ical:ic ful: ness:")
_LAST_ENDINGS = _Endings(
    "al: ance: ence: er: ic: able: ible: ant: ement: ment: ent: ion: ou: ism: ate: iti: ous: ive: ize:"
)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """The stem of a lower-case word."""
    if not word.isalpha():
        return word
    if not word.isascii():
        return word[:_BEGINNING]
    return _porter(word) if _SHORT <= len(word) <= _LONG else word


def _porter(word: str) -> str:
    word = _swap(word, _PLURALS, None)
    word = _without_ed_or_ing(word)
    if word.endswith("y") and _HAS_VOWEL.search(word, 0, len(word) - 1):
        word = word[:-1] + "i"
    word = _swap(word, _LONG_ENDINGS, _ONCE)
    word = _swap(word, _MIDDLE_ENDINGS, _ONCE)
    if not word.endswith("ion") or word.endswith(("sion", "tion")):
        word = _swap(word, _LAST_ENDINGS, _TWICE)
    return _without_last_letter(word)


def _swap(word: str, endings: _Endings, needed: re.Pattern[str] | None) -> str:
    """The word with its ending exchanged, if enough of a word remains before it."""
    for size in endings.sizes.get(word[-1:], ()):
        new = endings.get(word[-size:])
        if new is not None:
            rest = word[:-size]
            return rest + new if needed is None or needed.search(rest) else word
    return word


def _without_ed_or_ing(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _ONCE.search(word[:-3]) else word
    for ending in ("ed", "ing"):
        rest = word.removesuffix(ending)
        if rest != word and _HAS_VOWEL.search(rest):
            return _mended(rest)
    return word


def _mended(word: str) -> str:
    """What stood before `ed` or `ing`: `creat` was `create`, `stopp` was `stop`, `fil` was `file`."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if _DOUBLED.search(word):
        return word[:-1]
    once = _ONCE.search(word) and not _TWICE.search(word)
    return word + "e" if once and _SHORT_END.search(word) else word


def _without_last_letter(word: str) -> str:
    rest = word[:-1]
    if word.endswith("e") and _ONCE.search(rest) and (_TWICE.search(rest) or not _SHORT_END.search(rest)):
        return rest
    return rest if word.endswith("ll") and _TWICE.search(word) else word
