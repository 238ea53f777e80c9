"""What is this character to a tokenizer's split rule?

The split rules of all vocabularies speak of letters, marks, numbers, white space and the rest. `kinds` spells a text in
kinds, one ASCII character for each character, so that a rule becomes a small pattern of the standard `re` instead of a
table of Unicode ranges; a kind is looked up when first met. It does not split: see `split`.

    A upper or title case       a lower case             o other letter            x mark
    B the same, not ASCII       b the same, not ASCII    h Han, U+4E00 to U+9FA5   y mark of the kana block
    S D M T L V R E             s d m t l v r e          g Han elsewhere           1 number
      themselves: a contraction   f the long s           j kana                    H Han number
    ' / themselves                . other ASCII punctuation or symbol              k Han symbol
    a space, a line end           ~ other white space                              q symbol of the kana block
    c neither of all: control     - other punctuation or symbol                    z Han mark
                                                                                   ? unknown to this Python
"""

import unicodedata

__all__ = ["LETTER", "LOWER", "MARK", "NUMBER", "OTHER", "SYMBOL", "UPPER", "WHITE", "kinds"]

UPPER = "ABSDMTLVRE"
LOWER = "absdmtlvref"
OTHER = "oghj"
LETTER = UPPER + LOWER + OTHER
MARK = "xyz"
NUMBER = "1H"
WHITE = " ~\n"
SYMBOL = "'/.-cqk?"

_CONTRACTION = "SDMTLVREsdmtlvre"
_LONG_S = "ſ"
_WHITE_SPACE = "\t\v\f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_HAN = (
    (0x2E80, 0x2E99), (0x2E9B, 0x2EF3), (0x2F00, 0x2FD5), (0x3005, 0x3005), (0x3007, 0x3007), (0x3021, 0x3029),
    (0x3038, 0x303B), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFA6D), (0xFA70, 0xFAD9), (0x16FE2, 0x16FE3),
    (0x16FF0, 0x16FF1), (0x20000, 0x2A6DF), (0x2A700, 0x2EBE0), (0x2F800, 0x2FA1D), (0x30000, 0x3134A),
)  # fmt: skip
"""Unicode's Script=Han, as of Unicode 14; what came later is of kind `?` or `o` and is never relied on."""


class _Kinds(dict[int, str]):
    """Code point to kind, filled as characters are met."""

    def __missing__(self, code: int) -> str:
        kind = self[code] = _kind(code)
        return kind


def _kind(code: int) -> str:
    character = chr(code)
    if character in "\r\n":
        return "\n"
    if character in _WHITE_SPACE:
        return "~"
    category = unicodedata.category(character)
    if code < 128:
        return _ascii_kind(character, category)
    if 0x3040 <= code <= 0x30FF:
        return _kana_kind(category)
    if any(first <= code <= last for first, last in _HAN):
        return _han_kind(code, category)
    return _other_kind(character, category)


def _ascii_kind(character: str, category: str) -> str:
    if character in _CONTRACTION or character in " '/":
        return character
    return {"Lu": "A", "Ll": "a", "Nd": "1", "Cc": "c"}.get(category, ".")


def _kana_kind(category: str) -> str:
    return "?" if category == "Cn" else {"L": "j", "M": "y"}.get(category[0], "q")


def _han_kind(code: int, category: str) -> str:
    if 0x4E00 <= code <= 0x9FA5:
        return "h"
    return "?" if category == "Cn" else {"L": "g", "N": "H", "M": "z"}.get(category[0], "k")


def _other_kind(character: str, category: str) -> str:
    if character == _LONG_S:
        return "f"
    by_category = {"Lu": "B", "Lt": "B", "Ll": "b", "Lm": "o", "Lo": "o", "Cn": "?"}
    by_class = {"M": "x", "N": "1", "P": "-", "S": "-"}
    return by_category.get(category) or by_class.get(category[0], "c")


_KINDS = _Kinds()


def kinds(text: str) -> str:
    return text.translate(_KINDS)
