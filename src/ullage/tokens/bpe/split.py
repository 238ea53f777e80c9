r"""Where does a vocabulary's rule split a text into pieces?

Byte-pair merging never crosses a piece. The rules are those that splintr exports (`*_PATTERN`), rewritten over the
kinds of `characters`; DeepSeek's three stages are folded into one pattern. Differential tests hold them to the engine.
"""

import re
from dataclasses import dataclass
from functools import cached_property

from .characters import LETTER, LOWER, MARK, NUMBER, OTHER, SYMBOL, UPPER, WHITE

__all__ = ["CL100K", "DEEPSEEK", "KIMI", "LLAMA3", "O200K", "QWEN", "TEKKEN", "Split"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Split:
    """One rule. `pattern` matches the pieces one after the other, leaving nothing out, in a text spelt in kinds."""

    source: str
    """Of the pattern. Words and numbers come first, then the group `symbols`, then the group `white`."""
    words: tuple[str, ...]
    """Sets of kinds: in a run of one set, where the piece ends does not depend on where in the run it began."""
    symbols: tuple[str, ...]
    """The same for runs that are no words, from their third character on."""
    opening: str
    """Kinds that may stand before a run of words in its piece."""
    word_tails: tuple[tuple[str, ...], ...]
    """Ways in which an unfinished word may fill the end of a text after its first character: the kinds, last first."""
    symbol_tails: tuple[tuple[str, ...], ...]
    """The same for symbols."""

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


def _uncased(numbers: str, spaces: str = _SPACES) -> Split:
    pattern = rf"{_SHORT}|{_PREFIX}{_any(LETTER)}+|{_any(NUMBER)}{numbers}|{_symbols(chr(10) + '*')}|{spaces}"
    return Split(
        source=pattern,
        words=(LETTER,),
        symbols=(_ALL_SYMBOLS,),
        opening=" ~" + _ALL_SYMBOLS,
        word_tails=((LETTER,),),
        symbol_tails=(("\n", _ALL_SYMBOLS),),
    )


def _cased(*, numbers: str, short: str, line_ends: str, han: str = "") -> Split:
    """Upper case then lower case make a word; what has no case counts as both. `han`, if given, stands apart."""
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
    """Numbers are cut out first, then runs of Han and kana; the third rule sees what is left between them."""
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

CL100K = _uncased("{1,3}", _TO_THE_END)
LLAMA3 = _uncased("{1,3}")
QWEN = _uncased("")
O200K = _cased(numbers="{1,3}", short=_SHORT + "?", line_ends="\n/")
TEKKEN = _cased(numbers="", short="", line_ends="\n/")
KIMI = _cased(numbers="{1,3}", short=_SHORT + "?", line_ends="\n", han="ghHkz")
DEEPSEEK = _deepseek()
