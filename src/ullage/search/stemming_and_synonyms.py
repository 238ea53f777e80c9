"""Splits text into terms: words, stems and names.

`terms`: names are split where their parts are joined (case, digits, underscores, dots, hyphens) and kept whole as well,
so that `GitHub` is found by `github` and `getUserById` by `user`. Scripts without spaces between words become pairs of
letters. Accents and widths are folded. The rarity of a word is computed by the index.

`WEAK` and `KIN`: words that only connect a request are weak, and count little. Verbs that tool makers use
interchangeably are related: a query for one looks for the others too. Only English verbs are listed: nouns were tried,
and gained nothing on most test sets. Weighting was tried without a list of weak words, by rarity alone and by whether a
word occurs in names: both rank worse, because a catalogue is too small to show that `would` is common and `invoice` is
not.

`stem`: `translate`, `translation` and `translator` have one stem. Latin letters follow Porter's rules (M. F. Porter,
"An algorithm for suffix stripping", Program 14, 1980), which are made for English and do little harm elsewhere, because
both sides of a comparison are cut alike. Words in other alphabets keep their first letters, which carry most of the
meaning in most languages.

`apart` decomposes letters as Unicode does, but some at a time: Unicode sorts consecutive marks, in a time that grows
with the square of their number, and a tool's description can contain twenty thousand. With that many, marks may come
out in another order; callers remove marks or accept them in any order.

`asked` returns the texts of a query: the whole of it, then its clauses. A request for two things, in two sentences or
in two clauses of one, needs the tools of both, and the mean of the two is similar to neither.

`aspects` returns five texts of a document, in the order in which weights were trained: the server's name without words
that every server has, the tool's name, the first sentence of its description, the rest of it, and the names of
parameters. Any change here requires new weights.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from .document import Document

__all__ = [
    "ASPECTS",
    "KIN",
    "WEAK",
    "Wanted",
    "apart",
    "asked",
    "aspects",
    "of_run",
    "parts",
    "runs",
    "sentences",
    "stem",
    "terms",
    "wanted",
]

_AT_ONCE = 256


def apart(text: str, form: Literal["NFD", "NFKD"]) -> str:
    """The text, decomposed."""
    if len(text) <= _AT_ONCE:
        return unicodedata.normalize(form, text)
    return "".join(
        unicodedata.normalize(form, text[start : start + _AT_ONCE]) for start in range(0, len(text), _AT_ONCE)
    )


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
        self.sizes = {
            last: tuple(sorted({len(ending) for ending in self if ending.endswith(last)}, reverse=True))
            for last in {ending[-1] for ending in self}
        }
        """Of the endings with that last letter: the longest that fits is the one that counts. Most words have none."""


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
    """Return the stem of a lower-case word."""
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
    rest = word[:-1]
    if word.endswith("e") and _ONCE.search(rest) and (_TWICE.search(rest) or not _SHORT_END.search(rest)):
        return rest
    return rest if word.endswith("ll") and _TWICE.search(word) else word


def _swap(word: str, endings: _Endings, needed: re.Pattern[str] | None) -> str:
    """Return the word with its ending replaced, if enough of the word remains before it."""
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
            # The word before `ed` or `ing` was removed: `creat` was `create`, `stopp` was `stop`, `fil` was `file`.
            if rest.endswith(("at", "bl", "iz")):
                return rest + "e"
            if _DOUBLED.search(rest):
                return rest[:-1]
            once = _ONCE.search(rest) and not _TWICE.search(rest)
            return rest + "e" if once and _SHORT_END.search(rest) else rest
    return word


_ENGLISH = """
a an the of to in on at for from by with and or not is are was were be been being am do does did can could would should
will shall may might must have has had having i me my we us our you your he she it its they them their this that these
those there here what which who whom whose when where why how if then than so as but also too very just any some all no
yes please let want need like s t m re ve ll d about into out up over more most other such only own same
"""
_ASKING = """
help provide give tell know information detail details using use used currently additionally able looking interested
planning wondering going thank thanks hello hi ok sure etc via based specific various including
"""
_SPANISH = "el la los las un una unos unas de del y o en con por para que es mi tu su me te se lo al como quiero"
_PORTUGUESE = "um uma do da dos das e em no na por para que meu minha seu sua eu como quero"
_FRENCH = (
    "le la les un une des du de et ou en avec pour par que qui est mon ma mes je tu il elle nous vous ce cette dans"
)
_GERMAN = "der das den dem des ein eine einen einem einer und oder in im mit von zu zum zur ist sind ich mein meine wie"
_ITALIAN = "il lo gli un una di del della dei e ed con che mio mia come voglio"
_RUSSIAN = "и в на с по для что это как мне я из от к о у не"

WEAK: frozenset[str] = frozenset(
    " ".join((_ENGLISH, _ASKING, _SPANISH, _PORTUGUESE, _FRENCH, _GERMAN, _ITALIAN, _RUSSIAN)).split()
)

KIN: tuple[tuple[str, ...], ...] = (
    ("get", "retrieve", "fetch", "obtain", "read", "view", "show", "display"),
    ("create", "add", "make", "new", "insert", "generate", "write"),
    ("delete", "remove", "clear", "erase", "drop"),
    ("list", "all", "every", "enumerate"),
    ("search", "find", "lookup", "query", "locate", "look"),
    ("update", "edit", "modify", "change", "set"),
    ("send", "post", "publish", "share"),
    ("calculate", "compute", "determine"),
    ("check", "verify", "validate", "test"),
    ("convert", "transform", "translate"),
    ("start", "launch", "run", "execute", "begin", "open"),
    ("stop", "end", "cancel", "kill", "terminate", "close"),
    ("save", "store", "write"),
    ("download", "fetch", "export"),
    ("move", "rename"),
    ("copy", "duplicate", "clone"),
)

_ASKED_LONG = 10_000
"""Characters of a query that are read."""
_END = re.compile(
    r"(?<=[.!?;])\s+|\n+|,\s+|\s+(?:and|then|also|plus|afterwards|additionally|as well as|after that)(?=\s)",
    re.IGNORECASE,
)
"""The end of a clause: a sentence's end, a line's, a comma, or a word that joins two requests."""
_MOST = 8
_LEAST_WORDS = 3
"""Least words of a clause that is searched for separately."""


def asked(query: str) -> list[str]:
    """Return the whole query, then its clauses where there are several."""
    whole = query[:_ASKED_LONG]
    clauses = [part.strip() for part in _END.split(whole)]
    found = [clause for clause in clauses if len(clause.split()) >= _LEAST_WORDS][:_MOST]
    return [whole, *found] if len(found) > 1 else [whole]


_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PART_OF_ANY_ALPHABET = re.compile(r"\d+|\D+")
_SPACELESS = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+)"
)
"""Scripts without spaces: Thai, Lao, Burmese, Khmer, Japanese, Chinese, and Korean (which has spaces, but attaches its
particles to words)."""
_VOICED = "\u3099\u309a"
"""Marks that distinguish `ga` from `ka` in Japanese: part of the letter, not accents."""
_FOREIGN = re.compile("[^\x00-\x7f]+")
_SHORT_STRETCH = 8
"""The longest stretch outside ASCII, in letters, whose folded form is cached."""
_LONG_WORD = 64
"""Letters of a word that count; a longer sequence is not a word."""
_LONG_QUERY = 10_000
_MOST_TERMS = 200
"""Most distinct terms of a query that are looked up."""
_WEAK = 0.2
_KIN = 0.4


@dataclass(frozen=True, slots=True)
class Wanted:
    """A term of a query."""

    weight: float
    asked: bool = True
    """False for a term related to one of the query."""


def terms(text: str) -> list[str]:
    """Return the terms of a text in order, repeated as often as they occur."""
    return [term for run in runs(text) for term in of_run(run)]


def runs(text: str) -> list[str]:
    """Return the runs of letters and digits of a text, in order, for callers that cache the terms of a run."""
    # Differences in width and accent are removed in stretches, because most of a text is ASCII and unchanged, and most
    # of the rest repeats: dashes, quotes, accents.
    return (text if text.isascii() else _FOREIGN.sub(_folded, text)).translate(_PARTED).split()


def parts(name: str) -> list[str]:
    """Return the words of a name in lower case: `getUserById` has `get`, `user`, `by`, `id`."""
    return [part.casefold() for run in runs(name) for part in _split(run)]


def wanted(query: str) -> dict[str, Wanted]:
    """Return the terms of a query, and related words. Each repetition of a word adds less."""
    counts = Counter(terms(query[:_LONG_QUERY])).most_common(_MOST_TERMS)
    asked = {term: Wanted(count**0.5 * (_WEAK if term in _WEAK_TERMS else 1.0)) for term, count in counts}
    kin: dict[str, Wanted] = {}
    for term, want in asked.items():
        for other in _KIN_TERMS.get(term, ()):
            known = kin.get(other)
            if other not in asked and (known is None or known.weight < want.weight * _KIN):
                kin[other] = Wanted(want.weight * _KIN, asked=False)
    return asked | kin


def _folded(found: re.Match[str]) -> str:
    stretch = found[0]
    return _fold_known(stretch) if len(stretch) <= _SHORT_STRETCH else _fold_foreign(stretch)


def _fold_foreign(stretch: str) -> str:
    bare = apart(stretch, "NFKD").translate(_WITHOUT_MARKS)
    return unicodedata.normalize("NFC", bare)


_fold_known = lru_cache(maxsize=8_192)(_fold_foreign)


class _Table(dict[int, str | None]):
    """The replacement of each letter, computed on first use."""

    def __init__(self, become: Callable[[str], str | None]) -> None:
        self._become = become

    def __missing__(self, code: int) -> str | None:
        found = self[code] = self._become(chr(code))
        return found


_WITHOUT_MARKS = _Table(
    lambda letter: None if letter not in _VOICED and unicodedata.category(letter).startswith("M") else letter
)
_PARTED = _Table(lambda letter: letter if letter.isalnum() else " ")
"""Replaces everything but letters and digits with a space, the underscore too."""


def _split(run: str) -> list[str]:
    """Split a run by case and digits in ASCII, where names are joined by case; elsewhere by digits only."""
    return (_PART if run.isascii() else _PART_OF_ANY_ALPHABET).findall(run)


def of_run(run: str) -> tuple[str, ...]:
    """Return the terms of a run of letters and digits."""
    run = run[:_LONG_WORD]
    if not run.isascii() and _SPACELESS.search(run):
        found: list[str] = []
        for piece in filter(None, _SPACELESS.split(run)):
            if _SPACELESS.match(piece):
                found += [piece[at : at + 2] for at in range(len(piece) - 1)] or [piece]
            else:
                found += _of_word(piece)
        return tuple(found)
    return _of_word(run)


@lru_cache(maxsize=65_536)
def _of_word(run: str) -> tuple[str, ...]:
    """Return the terms of a word, cached because words repeat. Text without spaces rarely repeats, and its pairs take
    much memory."""
    split = _split(run)
    if len(split) == 1:
        return (stem(run.casefold()),)
    return (*(stem(part.casefold()) for part in split), stem(run.casefold()))


def _kin_terms() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for family in KIN:
        members = [stem(word) for word in family]
        for member in members:
            found.setdefault(member, {}).update(dict.fromkeys(other for other in members if other != member))
    return {term: tuple(others) for term, others in found.items()}


_WEAK_TERMS = frozenset(term for word in WEAK for term in terms(word))
_KIN_TERMS = _kin_terms()

ASPECTS = ("server", "name", "head", "rest", "parameters")
_LONG_NAME = 500
_LONG_DESCRIPTION = 20_000
"""Characters of a description that are read, so that no server can make a vector expensive."""
_LONG_HEAD = 240
_LONG_REST = 1_200
_MOST_PARAMETERS = 20
_SAYS_NOTHING = frozenset({"mcp", "server", "smithery", "api"})
_SENTENCE = re.compile(r"(?<=[.!?。])\s+|\n\s*\n|\n\s*[-*•]\s+|。")


def aspects(document: Document) -> tuple[str, ...]:
    """Return the text of each aspect, in the order of `ASPECTS`."""
    # The first sentence, and the rest.
    description = document.description[:_LONG_DESCRIPTION]
    first, *others = sentences(description) or [""]
    head, rest = first[:_LONG_HEAD], " ".join((first[_LONG_HEAD:], *others)).strip()
    # Registries write `@owner/name`.
    server = document.server.split("/", 1)[-1] if document.server.startswith("@") else document.server
    return (
        " ".join(word for word in _words(server) if word not in _SAYS_NOTHING),
        " ".join(_words(document.name)),
        head,
        rest[:_LONG_REST],
        " ".join(" ".join(_words(name)) for name in document.parameter_names[:_MOST_PARAMETERS]),
    )


def sentences(text: str) -> list[str]:
    """Return the sentences and list items of a text, each on one line."""
    return [" ".join(sentence.split()) for sentence in _SENTENCE.split(text.strip()) if sentence and sentence.strip()]


def _words(name: str) -> list[str]:
    return parts(name[:_LONG_NAME])
