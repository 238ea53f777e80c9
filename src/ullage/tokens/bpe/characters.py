"""Characters as the split rules of tokenizers see them.

The split rules of all vocabularies speak of letters, marks, numbers, white space and the rest. `kinds` spells a text in
kinds, one ASCII character for each character, so that a rule becomes a small pattern of the standard `re` instead of a
table of Unicode ranges; a kind is looked up when first met. The table (`unicode_kinds`) is of the tokenizers' Unicode
version, so that counts do not depend on the version that this Python has. What that version does not assign is a symbol
to OpenAI's tokenizers; others may have a newer version. How a text is split: `split`.

    A upper or title case       a lower case             o other letter            x mark
    B the same, not ASCII       b the same, not ASCII    h Han, U+4E00 to U+9FA5   y mark of the kana block
    S D M T L V R E             s d m t l v r e          g Han elsewhere           1 number
      themselves: a contraction   f the long s           j kana                    H Han number
    ' / themselves                . other ASCII punctuation or symbol              k Han symbol
    a space, a line end           ~ other white space                              q symbol of the kana block
    c neither of all: control     - other punctuation or symbol                    z Han mark
                                                                                   ? not assigned
"""

from bisect import bisect_right
from functools import cache
from itertools import accumulate

from .unicode_kinds import ASCII, RUN_KINDS, RUN_LENGTHS

__all__ = ["LETTER", "LOWER", "MARK", "NUMBER", "OTHER", "SYMBOL", "UPPER", "WHITE", "kinds"]

UPPER = "ABSDMTLVRE"
LOWER = "absdmtlvref"
OTHER = "oghj"
LETTER = UPPER + LOWER + OTHER
MARK = "xyz"
NUMBER = "1H"
WHITE = " ~\n"
SYMBOL = "'/.-cqk?"


class _Kinds(dict[int, str]):
    """Code point to kind, filled as characters are met."""

    def __missing__(self, code: int) -> str:
        kind = self[code] = RUN_KINDS[bisect_right(_run_ends(), code)]
        return kind


@cache
def _run_ends() -> list[int]:
    """The code point after each run, in order."""
    return list(accumulate((int(length, 36) for length in RUN_LENGTHS.split(" ")), initial=len(ASCII)))[1:]


_KINDS = _Kinds(enumerate(ASCII))


def kinds(text: str) -> str:
    return text.translate(_KINDS)
