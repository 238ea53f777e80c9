"""The kind of a word (a path, a date, a code, a name), recognised by its form alone, independent of the speaker.

The order of the tests matters: a path may contain digits, dots and dashes.
"""

import re
from enum import Enum, auto
from functools import lru_cache

__all__ = ["Kind", "kind_of"]


class Kind(Enum):
    """Kind of a word, by its form."""

    LINK = auto()
    """A web address or a host name."""
    MAIL = auto()
    PATH = auto()
    FILE = auto()
    DATE = auto()
    NUMBER = auto()
    """A number, with a sign, a currency or a unit if any."""
    HASH = auto()
    CODED = auto()
    """Letters with digits, or names with values: `ZFA04Y`, `user_4421`, `app=web,version=blue`."""
    DOTTED = auto()
    """A name within a name: `session.state`, `node:fs`."""
    JOINED = auto()
    """Words joined by case or underscores: `readFile`, `flight_number`."""
    CAPITALS = auto()
    FLAG = auto()
    DASHED = auto()
    """Words joined by dashes or slashes: `follow-up`, `read/write`."""
    PHRASE = auto()
    """More than one word."""
    NAME = auto()
    """A capitalised word."""
    WORD = auto()


_NUMBER = re.compile(r"[#$€£¥+-]?\d[\d.,:+-]*(?:%|[a-zA-Z]{1,2})?$")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?|\d\d?[./]\d\d?[./]\d{2,4}$")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+$")
_HOST = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:com|org|net|io|dev|ai|app|co|edu|gov|info|cloud|local|internal|uk|de|fr|eu|us"
    r"|cn|jp|in|br|ch|nl|ru)(?::\d+)?$"
)
_PATH = re.compile(r"[A-Za-z]:\\|(?:~|\.{1,2})/\w|[~@]?\.{0,2}/[^/]*[/.]|.*/.*/|.*/[^/]*\.\w{1,5}$|@[\w-]+/")
_FILE = re.compile(
    r"[\w@+-][\w@.+-]*\.(?:[chrdm]|[ch]pp|cc|cs|css|csv|py[iwc]?|ipynb|[cm]?[jt]sx?|d\.ts|json[lc5]?|ya?ml|toml|ini|cfg|conf|env"
    r"|lock|mdx?|rst|txt|log|html?|xml|svg|scss|less|vue|svelte|rs|go|rb|php|java|kt|kts|swift|scala|lua|pl|sh|bash|zsh|ps1|bat"
    r"|sql|db|sqlite3?|parquet|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|webp|ico|mp[34]|wav|zip|gz|tgz|tar|whl|exe|dll|so|bin|proto"
    r"|tf|gradle|patch|diff|pem|key|crt|tex|bib|ics|eml)$",
    re.IGNORECASE,
)
_SHORTENED = re.compile(r"[a-zA-Z](?:\.[a-zA-Z])+$")
"""Abbreviations such as `e.g` and `p.m`."""
_HASH = re.compile(r"(?=.*\d)(?:[0-9a-f]{7,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$", re.IGNORECASE)
_CASED = re.compile(r"[a-z][A-Z]|[A-Z]{2,}[a-z]")


@lru_cache(maxsize=32_768)
def kind_of(word: str) -> Kind:
    if " " in word:
        return Kind.PHRASE
    if "://" in word:
        return Kind.LINK
    if "/" in word or "\\" in word:
        return Kind.DATE if _DATE.match(word) else Kind.PATH if _PATH.match(word) else Kind.DASHED
    if "=" in word and "," in word:
        return Kind.CODED
    return _of_digits(word) or _of_one_segment(word)


def _of_digits(word: str) -> Kind | None:
    if not any(map(str.isdigit, word)):
        return None
    if _DATE.match(word):
        return Kind.DATE
    if _NUMBER.match(word):
        return Kind.NUMBER
    return Kind.HASH if _HASH.match(word) else None


def _of_one_segment(word: str) -> Kind:
    if "@" in word and _MAIL.match(word):
        return Kind.MAIL
    if "." in word and _FILE.match(word):
        return Kind.FILE
    if "." in word and _HOST.match(word):
        return Kind.LINK
    if word.startswith("-"):
        return Kind.FLAG
    if "." in word or ":" in word:
        return Kind.WORD if _SHORTENED.match(word) else Kind.DOTTED
    return Kind.CODED if any(map(str.isdigit, word)) else _of_letters(word)


def _of_letters(word: str) -> Kind:
    if "_" in word or _CASED.search(word):
        return Kind.JOINED
    if "-" in word:
        return Kind.DASHED
    if word.isupper():
        return Kind.CAPITALS
    return Kind.NAME if word[:1].isupper() else Kind.WORD
