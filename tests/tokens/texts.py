"""Texts that try a tokenizer: strategies for properties, and the hostile megabyte."""

import base64
import random

from hypothesis import strategies as st

_ALPHABETS = (
    "abcdefgh", "ABCDEFGH", "aB", "0123456789", "½Ⅷ²〇1", " ", "  \n", "\n", "\r\n", " \t\u00a0\u2028\u3000\x85\n", "-",
    "-=*#_.,;:!?", "'", "/\n", "'stdmllvere", "中文字的是不了", "のカタカナひらがなー・", "한국어글자", "العربية",
    "กำลังภาษาไทย", "e\u0301\u0338o\u0308", "😀👩🎉", "👩\u200d👧", "❤\ufe0f", "\x00\x1c\x7f", "\ufffd", "éÉßñüØ",
    "ǅʰªº", "<|endoftext|>", "[INST]", "</s>", "▁ ", "⼀⺀々", "𠀀𠀁", "\u1100\u1161\u11a8", "\ud83d\ude00\udc00",
    "the and of to in is you that it",
)  # fmt: skip
_SNIPPETS = (
    "<|endoftext|>", "<|im_start|>", "<think>", "</s>", "[INST]", "<table>", "it's", "I'LL", "won't", "getHTTPResponse",
    "https://example.com/a?b=1&c=2", "3.14159", "1,000,000", "\n\n    return None;\n", "  ", "\r\n",
)  # fmt: skip


def _run(alphabet: str) -> st.SearchStrategy[str]:
    return st.text(alphabet=sorted(set(alphabet)), min_size=1, max_size=60)


_mixed = st.lists(st.sampled_from(_ALPHABETS), min_size=2, max_size=3).map("".join).flatmap(_run)
_parts = st.one_of(st.sampled_from(_SNIPPETS), st.sampled_from(_ALPHABETS).flatmap(_run), _mixed)
texts = st.lists(_parts, min_size=1, max_size=10).map("".join)
"""Runs and mixtures of everything that a split rule tells apart, surrogates among them."""


def hostile(size: int) -> dict[str, str]:
    """What an adversary, or a log file, may send: about `size` bytes of each."""
    chance = random.Random(7)
    return {
        "one letter": "a" * size,
        "spaces": " " * size,
        "dashes": "-" * size,
        "emoji": "😀" * (size // 4),
        "joined emoji": "👩\u200d👧" * (size // 11),
        "base64": base64.b64encode(chance.randbytes(size * 3 // 4)).decode(),
        "newlines": "\n" * size,
        "lone surrogates": "\ud800" * (size // 3),
        "split pairs": "\ud83d\ude00" * (size // 4),
        "NULs": "\0" * size,
        "special tokens": "<|endoftext|>" * (size // 13),
        "digits": "1234567890" * (size // 10),
        "CJK": "".join(chr(chance.randrange(0x4E00, 0x9FA5)) for _ in range(size // 3)),
        "two letters": "".join(chance.choice("ab") for _ in range(size)),
        "mixed case": "".join(chance.choice("aB") for _ in range(size)),
        "mixed white space": "".join(chance.choice(" \n\t") for _ in range(size)),
        "punctuation": "".join(chance.choice("!#$%&()*+,-.:;=?@[]^_`{|}~") for _ in range(size)),
    }
