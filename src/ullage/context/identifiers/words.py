"""Which words of a text could be identifiers, and which of its values stand under a name?

A word is a run of what file names, addresses, symbols, flags and numbers are made of, without the punctuation around
it. Whether it is worth keeping is `ranking`'s matter.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

__all__ = ["LONGEST", "candidates", "named_values", "names", "phrases", "slices", "words"]

_SLICE = 65_536
"""Characters that are read at a time: a few milliseconds."""
LONGEST = 160
"""Characters of a candidate; what is longer is data and no name."""
_WORD = re.compile(
    r"""https?://[^\s"'<>`\\)\]}|]+|[A-Za-z]:\\[\w\\.-]+|[$€£¥]?\d{1,3}(?:,\d{3}){1,6}(?:\.\d+)?(?![\w,])|[\w.@/:#$€£¥%+~?*-]+"""
)
_BEFORE, _AFTER = ":?*%+", ".,:;!?*-/~$@"
_NOISE = re.compile(r"^(?:\.{3,}|~(?=\d)|-(?=\d{3}))")
"""An ellipsis, what says that a number is not exact, and the sign before a line of a difference."""
_PLACE = re.compile(r"(.*[/.].*?):(\d[\d:,-]*)$")
"""A place in a file, as searches print it: the file and the line count, not each pair of them."""
_DRIVE = re.compile(r"\b[A-Za-z]:\\\w")
_NAME = re.compile(r"(?<=[\w,] )[A-Z][^\W\d_]+")
"""A capital that does not begin a sentence."""
_CAPITAL = r"[A-Z][^\W\d_]*+(?:[-'’&][^\W\d_]++)*+"
_SMALL = r"(?:(?:of|the|and|for|in|on|at|to|a|de|la|le|du|da|van|von|der|den|del|di) ){0,2}"
_PROPER = re.compile(rf"(?<!\w){_CAPITAL}(?: {_SMALL}{_CAPITAL}){{0,5}}(?: \([^()\n]{{2,30}}\))?")
_QUOTED = re.compile(
    r"""(?<!\w)(?:'([^\W_][^'"“”\n]{1,60}[\w).!?])'|"([^\W_][^"“”\n]{1,60}[\w).!?])"|“([^“”\n]{2,60})”)(?!\w)"""
)
_MOST_PHRASE = 6
"""Words of a title or a name; more are a sentence."""
_JSON_VALUE = re.compile(r'"([A-Za-z_][\w.-]{0,40})"\s?:\s?(?:"([^"\n\\]{2,80})"|(-?\d[\d.]*))')
_LINE_VALUE = re.compile(
    r"""^[ \t]*(?:- )?([A-Za-z_][\w-]{1,30}(?: [\w-]{1,20})?): ([^\s'"{}\[\](),;<>][^\n'"{}\[\](),;<>]{1,58})$""",
    re.MULTILINE,
)
_MOST_WORDS = 4
"""Of a value that stands under a name; more are a sentence."""


def slices(text: str) -> Iterator[str]:
    """A text in pieces that are read quickly, parted at white space where there is some; escapes are resolved."""
    start = 0
    while start < len(text):
        end = start + _SLICE
        if end < len(text):
            end = max(text.rfind(" ", start, end), text.rfind("\n", start, end)) + 1 or end
        yield _plain(text[start:end])
        start = end


def words(text: str) -> Counter[str]:
    """The words as they stand, and how often each occurs."""
    return Counter(_WORD.findall(text))


@lru_cache(maxsize=32_768)
def candidates(word: str) -> tuple[str, ...]:
    """What of a word could be an identifier: mostly itself, without the punctuation at its ends. Only for words that
    are no longer than `LONGEST`, for the others would fill the cache."""
    bare = _NOISE.sub("", word.lstrip(_BEFORE).rstrip(_AFTER))
    place = None if "://" in bare else _PLACE.match(bare)
    found = (bare,) if place is None else place.groups()
    return tuple(one for one in found if len(one) > 1 and any(map(str.isalnum, one)))


def names(text: str) -> list[str]:
    """Words that are written with a capital though they begin no sentence."""
    return _NAME.findall(text)


def phrases(text: str) -> set[str]:
    """Titles and names of several words: between quotation marks, or written with capitals."""
    quoted = (one.strip() for found in _QUOTED.findall(text) for one in found)
    return {one for one in (*_PROPER.findall(text), *quoted) if 1 < len(one.split()) <= _MOST_PHRASE}


def named_values(text: str) -> list[tuple[str, str]]:
    """The short values that stand under a name, in JSON or on a line of their own; the text need not be whole."""
    found = [(name, text or number) for name, text, number in _JSON_VALUE.findall(text)] + _LINE_VALUE.findall(text)
    return [(name, value.strip()) for name, value in found if len(value.split()) <= _MOST_WORDS]


def _plain(text: str) -> str:
    """Without the escapes of JSON within JSON, for `\\nname` is no name; but a backslash may be a path's own."""
    if text.count("\\n") > text.count("\n") and not _DRIVE.search(text):
        text = text.replace("\\n", "\n").replace("\\t", "\t")
    return text.replace('\\"', '"').replace("\\/", "/") if "\\" in text else text
