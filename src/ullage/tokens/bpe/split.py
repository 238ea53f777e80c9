"""Splits text into the pieces that byte-pair merging works on.

Byte-pair merging never crosses the boundary of a piece. The rules are those that splintr exports (`*_PATTERN`),
rewritten over kinds of characters; DeepSeek's three stages are combined into one pattern. Differential tests compare
them with the engine.

The split rules of all vocabularies distinguish letters, marks, numbers, white space and other characters. `kinds`
writes a text as kinds, one ASCII character for each character, so that a rule becomes a small pattern of the standard
`re` instead of a table of Unicode ranges; a kind is looked up on first use. The table (`data/unicode_kinds.txt`) has
the tokenizers' Unicode version, so that counts do not depend on Python's. OpenAI's tokenizers treat a character that
this version does not assign as a symbol; others may have a newer version.

    A upper or title case       a lower case             o other letter            x mark
    B the same, not ASCII       b the same, not ASCII    h Han, U+4E00 to U+9FA5   y mark of the kana block
    S D M T L V R E             s d m t l v r e          g Han elsewhere           1 number
      themselves: a contraction   f the long s           j kana                    H Han number
    ' / themselves                . other ASCII punctuation or symbol              k Han symbol
    a space, a line end           ~ other white space                              q symbol of the kana block
    c neither of all: control     - other punctuation or symbol                    z Han mark
                                                                                   ? not assigned

`Vocabulary` has the properties of each vocabulary; `engine` loads all of them, and `python_bpe` those of OpenAI.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate

__all__ = [
    "CL100K",
    "DEEPSEEK",
    "KIMI",
    "LETTER",
    "LLAMA3",
    "LOWER",
    "MARK",
    "NUMBER",
    "O200K",
    "OTHER",
    "QWEN",
    "SYMBOL",
    "TEKKEN",
    "UPPER",
    "VOCABULARIES",
    "WHITE",
    "Split",
    "Vocabulary",
    "kinds",
]

UPPER = "ABSDMTLVRE"
LOWER = "absdmtlvref"
OTHER = "oghj"
LETTER = UPPER + LOWER + OTHER
MARK = "xyz"
NUMBER = "1H"
WHITE = " ~\n"
SYMBOL = "'/.-cqk?"


_ASCII = (
    "ccccccccc~\n~~\ncccccccccccccccccc ......'......./1111111111.......AAADEAAAAAALMAAAARSTAVAAAA......aaadeaaaaaalm"
    "aaaarstavaaaa....c"
)
"""The kinds of the first 128 characters."""


class _Kinds(dict[int, str]):
    """Kind of each code point, filled on first use."""

    def __missing__(self, code: int) -> str:
        kinds, ends = _read_runs()
        kind = self[code] = kinds[bisect_right(ends, code)]
        return kind


@cache
def _read_runs() -> tuple[str, list[int]]:
    """Return the kind of each run of characters from the 129th on, and the code point after it."""
    table = f"{__file__.removesuffix('split.py')}data/unicode_kinds.txt"
    with open(table, encoding="ascii") as file:  # noqa: PTH123 - `pathlib` costs 4 ms, which every count would wait for
        kinds, lengths = file.read().splitlines()
    ends = accumulate((int(length, 36) for length in lengths.split(" ")), initial=len(_ASCII))
    return kinds, list(ends)[1:]


_KINDS = _Kinds(enumerate(_ASCII))


def kinds(text: str) -> str:
    return text.translate(_KINDS)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Split:
    """The split rule of a tokenizer. `pattern` matches consecutive pieces, without gaps, in a text written as kinds."""

    source: str
    """Source of the pattern. Words and numbers come first, then the group `symbols`, then the group `white`."""
    words: tuple[str, ...]
    """Sets of kinds. In a run of one set, the end of a piece does not depend on where in the run it began."""
    symbols: tuple[str, ...]
    """Sets of kinds as in `words`, for runs that are not words, from their third character on."""
    opening: str
    """Kinds that may come before a run of words in its piece."""
    word_tails: tuple[tuple[str, ...], ...]
    """Ways in which an unfinished word may fill the end of a text after its first character: the kinds, the last
    first."""
    symbol_tails: tuple[tuple[str, ...], ...]
    """Ways in which unfinished symbols may fill the end of a text."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source)


def _any(kinds: str) -> str:
    return f"[{re.escape(kinds)}]"


def _none(kinds: str) -> str:
    return f"[^{re.escape(kinds)}]"


_ALL_SYMBOLS = SYMBOL + MARK
_ASCII_LETTER = "ASDMTLVREasdmtlvre"
_ASCII_SYMBOL = "'/."
_KANA_AND_HAN = "hjqy"
_PREFIX = _none("\n" + LETTER + NUMBER) + "?"
_SHORT = "(?:'(?:[sSfdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE]))"
_WHITE = _any(WHITE)
_SPACES = rf"(?P<white>{_WHITE}*\n+|{_WHITE}+(?!{_none(WHITE)})|{_WHITE}+)"


def _symbols(line_ends: str) -> str:
    return rf"(?P<symbols> ?{_none(WHITE + LETTER + NUMBER)}+{line_ends})"


def _uncased_split(numbers: str, spaces: str = _SPACES) -> Split:
    pattern = rf"{_SHORT}|{_PREFIX}{_any(LETTER)}+|{_any(NUMBER)}{numbers}|{_symbols(chr(10) + '*')}|{spaces}"
    return Split(
        source=pattern,
        words=(LETTER,),
        symbols=(_ALL_SYMBOLS,),
        opening=" ~" + _ALL_SYMBOLS,
        word_tails=((LETTER,),),
        symbol_tails=(("\n", _ALL_SYMBOLS),),
    )


def _cased_split(*, numbers: str, short: str, line_ends: str, han: str = "") -> Split:
    """Return a rule in which upper case followed by lower case makes a word; letters without case count as both. `han`,
    if given, is separate."""
    both = "".join(kind for kind in OTHER + MARK if kind not in han)
    symbols = "".join(kind for kind in SYMBOL if kind not in han)
    upper, lower = UPPER + both, LOWER + both
    alone = f"{_any(han)}+|" if han else ""
    word = f"{_PREFIX}{_any(upper)}*{_any(lower)}+{short}|{_PREFIX}{_any(upper)}+{_any(lower)}*{short}"
    return Split(
        source=rf"{alone}{word}|{_any(NUMBER)}{numbers}|{_symbols(_any(line_ends) + '*')}|{_SPACES}",
        words=(UPPER, LOWER, both, han) if han else (UPPER, LOWER, both),
        symbols=(symbols,),
        opening=" ~" + symbols + UPPER,
        word_tails=((lower, upper), (han,)) if han else ((lower, upper),),
        symbol_tails=((line_ends, _ALL_SYMBOLS),),
    )


def _deepseek() -> Split:
    """Return DeepSeek's rule. Numbers are separated first, then runs of Han and kana; the third rule applies to the
    rest."""
    apart = NUMBER + _KANA_AND_HAN
    letters = "".join(kind for kind in LETTER + MARK if kind not in _KANA_AND_HAN)
    symbols = "'/.-k"
    pattern = (
        rf"{_any(NUMBER)}{{1,3}}|{_any(_KANA_AND_HAN)}+|{_any(_ASCII_SYMBOL)}{_any(_ASCII_LETTER)}+"
        rf"|{_none(LETTER + symbols + apart + chr(10))}?{_any(letters)}+"
        rf"|(?P<symbols> ?{_any(symbols)}+\n*|[c?]+(?!{_any(letters)}))"
        rf"|(?P<white>{_WHITE}*\n+|{_WHITE}+(?!{_none(WHITE + apart)})|{_WHITE}+)"
    )
    return Split(
        source=pattern,
        words=(_KANA_AND_HAN, letters),
        symbols=(symbols, "c"),
        opening=" ",
        word_tails=((letters,), (_KANA_AND_HAN,)),
        symbol_tails=(("\n", symbols), ("c?",)),
    )


_TO_THE_END = rf"(?P<white>{_WHITE}+\Z|{_WHITE}*\n|{_WHITE}+(?!{_none(WHITE)})|{_WHITE})"

CL100K = _uncased_split("{1,3}", _TO_THE_END)
LLAMA3 = _uncased_split("{1,3}")
QWEN = _uncased_split("")
O200K = _cased_split(numbers="{1,3}", short=_SHORT + "?", line_ends="\n/")
TEKKEN = _cased_split(numbers="", short="", line_ends="\n/")
KIMI = _cased_split(numbers="{1,3}", short=_SHORT + "?", line_ends="\n", han="ghHkz")
DEEPSEEK = _deepseek()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vocabulary:
    """The properties of one vocabulary."""

    name: str
    split: Split | None = None
    """The split into pieces before merging; None where merging covers the whole text (SentencePiece)."""
    leads: bool = False
    """Whether a space is put before each text (SentencePiece's dummy prefix)."""
    composed: bool = False
    """Whether the text is first normalised to Unicode's composed form (NFC)."""
    sliced: bool = True
    """Whether a long text may be counted in slices; else it is counted at once."""
    light: bool = False
    """Whether it loads so fast (15 ms) that a worker process is not needed."""
    quick: str = ""
    """Splintr's name for the same vocabulary in a form that loads faster and counts more slowly; empty if none."""


_ALL = (
    Vocabulary(name="cl100k_base", split=CL100K),
    Vocabulary(name="o200k_base", split=O200K),
    Vocabulary(name="llama2", leads=True),
    Vocabulary(name="llama3", split=LLAMA3),
    Vocabulary(name="deepseek_v3", split=DEEPSEEK),
    Vocabulary(name="qwen3", split=QWEN, composed=True),
    Vocabulary(name="glm4", split=LLAMA3),
    Vocabulary(name="kimi_k2", split=KIMI),
    Vocabulary(name="phi4", split=LLAMA3),
    Vocabulary(name="mistral_v1", leads=True),
    Vocabulary(name="mistral_v2", leads=True),
    Vocabulary(name="mistral_v3", split=TEKKEN),
    Vocabulary(name="modernbert", sliced=False, light=True),
    Vocabulary(name="gemma2"),
    # The two have the same tokens and merges: Gemma 3 in SentencePiece's form, which loads in a fifth of the time.
    Vocabulary(name="gemma4", quick="gemma3"),
)
_BY_NAME = {vocabulary.name: vocabulary for vocabulary in _ALL}
VOCABULARIES: Mapping[str, Vocabulary] = {**_BY_NAME, "o200k_harmony": _BY_NAME["o200k_base"]}
"""Vocabularies by name. Harmony differs from o200k only in its special tokens, which are counted as plain text here."""
