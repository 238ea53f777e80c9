"""Writes the table of what each character is to the split rules: `src/ullage/tokens/bpe/data/unicode_kinds.txt`.

Its first line has the kind of each run of characters from the 129th on, its second their lengths in base 36. The kinds
of the first 128 are in `ullage.tokens.bpe.split`.

The classes are Unicode's general categories, White_Space and Script=Han, as the `regex` package has them. They must be
of the Unicode version that tiktoken and splintr's vocabularies have, whatever Python's own is: every code point is
compared with tiktoken, class by class, and nothing is written where one differs. tiktoken 0.14 and splintr 0.22 have
Unicode 16, as has regex 2024.11.6:

    python -m venv /tmp/kinds && /tmp/kinds/bin/pip install regex==2024.11.6 tiktoken==0.14.0
    /tmp/kinds/bin/python scripts/build_kinds.py

`tests/tokens/bpe/test_characters.py` holds the written table to the installed engine.
"""

from itertools import groupby
from pathlib import Path

import regex
import tiktoken

TARGET = Path(__file__).parent.parent / "src" / "ullage" / "tokens" / "bpe" / "data" / "unicode_kinds.txt"
CLASSES = ("Lu", "Lt", "Ll", "Lm", "Lo", "M", "N", "P", "S", "Cn", "Han")
CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
_BLOCK = 40_000
_CONTRACTION = "SDMTLVREsdmtlvre"
_LONG_S = 0x17F


def members(pattern: str) -> set[int]:
    """The characters of a class, by `regex`."""
    return {ord(found) for found in regex.findall(pattern, "".join(map(chr, CODES)))}


def members_by_tiktoken(pattern: str) -> set[int]:
    """The characters that tiktoken finds for a pattern: what a pattern leaves out has no tokens."""
    ranks = {bytes((byte,)): byte for byte in range(256)}
    encoding = tiktoken.Encoding("bytes", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    found = set[int]()
    for start in range(0, len(CODES), _BLOCK):
        block = "".join(map(chr, CODES[start : start + _BLOCK]))
        found.update(map(ord, bytes(encoding.encode_ordinary(block)).decode()))
    return found


def kind_of(code: int, classes: dict[str, set[int]]) -> str:
    """One character, as `ullage.tokens.bpe.split` says."""
    character = chr(code)
    name = next((name for name in CLASSES[:-1] if code in classes[name]), "")
    if code in classes["white space"]:
        return "\n" if character in "\r\n" else " " if character == " " else "~"
    if code < 128:
        if character in _CONTRACTION or character in "'/":
            return character
        return {"Lu": "A", "Ll": "a", "N": "1", "": "c"}.get(name, ".")
    if name == "Cn":
        return "?"
    if 0x3040 <= code <= 0x30FF:
        return {"L": "j", "M": "y"}.get(name[:1], "q")
    if code in classes["Han"]:
        return "h" if 0x4E00 <= code <= 0x9FA5 else {"L": "g", "N": "H", "M": "z"}.get(name[:1], "k")
    if code == _LONG_S:
        return "f"
    simple = {"Lu": "B", "Lt": "B", "Ll": "b", "Lm": "o", "Lo": "o", "M": "x", "N": "1", "P": "-", "S": "-"}
    return simple.get(name, "c")


def base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return (base36(number // 36) if number >= 36 else "") + digits[number % 36]


def main() -> None:
    patterns = {name: rf"\p{{{name}}}" for name in CLASSES} | {"white space": r"\s"}
    classes = {name: members(pattern) for name, pattern in patterns.items()}
    for name, pattern in patterns.items():
        differing = classes[name] ^ members_by_tiktoken(pattern)
        if differing:
            raise SystemExit(f"{len(differing)} characters of {name} differ: install the `regex` of tiktoken's Unicode")
    kinds = [kind_of(code, classes) for code in range(0x110000)]
    runs = [(kind, len(list(run))) for kind, run in groupby(kinds[128:])]
    lengths = " ".join(base36(length) for _, length in runs)
    TARGET.write_text("".join(kind for kind, _ in runs) + f"\n{lengths}\n", encoding="utf-8")
    print(f"{TARGET.name}: {len(runs):,} runs, {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
