"""The table of kinds, held to tiktoken class by class, and to the engine by texts of characters new to Python."""

import dataclasses
import random
import unicodedata

import pytest
import tiktoken

from ullage.tokens.bpe.engine import BytePairEngine, SplintrTokenizer
from ullage.tokens.bpe.python_bpe import load_python
from ullage.tokens.bpe.split import LETTER, LOWER, MARK, NUMBER, OTHER, UPPER, VOCABULARIES, WHITE, kinds
from ullage.tokens.bpe.stepwise_count import count_steps
from ullage.tokens.count import drain

pytestmark = pytest.mark.requirement("S3:light")

CODES = [*range(0xD800), *range(0xE000, 0x35000), *range(0xE0000, 0xE0200), 0x10FFFF]
TEXT = "".join(map(chr, CODES))
NEWER = [chr(code) for code in CODES if unicodedata.category(chr(code)) == "Cn" and kinds(chr(code)) != "?"]
"""Characters that the table knows and this Python does not; the newest few thousand where it knows them all."""


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"\p{L}", LETTER),
        (r"[\p{Lu}\p{Lt}]", UPPER),
        (r"\p{Ll}", LOWER),
        (r"[\p{Lm}\p{Lo}]", OTHER),
        (r"\p{M}", MARK),
        (r"\p{N}", NUMBER),
        (r"\s", WHITE),
        (r"[\p{P}\p{S}]", "'/.-qk"),
        (r"\p{Cn}", "?"),
    ],
)
def test_each_character_is_of_the_class_that_tiktoken_puts_it_in(pattern: str, expected: str):
    ranks = {bytes((byte,)): byte for byte in range(256)}
    encoding = tiktoken.Encoding("bytes", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    found = "".join(
        bytes(encoding.encode_ordinary(TEXT[start : start + 40_000])).decode() for start in range(0, len(TEXT), 40_000)
    )
    ours = {character for character, kind in zip(TEXT, kinds(TEXT), strict=True) if kind in expected}
    assert ours == set(found)


@pytest.mark.parametrize(
    ("character", "kind"), [("\u9fa5", "h"), ("\u9fa6", "g"), ("\U000323af", "g"), ("\u3007", "H")]
)
def test_han_is_told_apart(character: str, kind: str):
    assert kinds(character) == kind


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_texts_of_the_newest_characters_count_as_the_engine_counts_them(engine: BytePairEngine, name: str):
    chance = random.Random(17)
    tokenizer, count = load_python(VOCABULARIES[name]), engine.counter(name)
    newest = NEWER or [chr(code) for code in CODES[-5_000:]]
    for _ in range(3_000):
        text = "".join(
            chance.choice(newest) if chance.random() < 0.5 else chance.choice("aBz 1'\n./-é中カ") for _ in range(12)
        )
        assert tokenizer.count(text) == count(text), ascii(text)


@pytest.mark.parametrize("name", [name for name, facts in VOCABULARIES.items() if facts.split])
def test_slices_sum_to_the_whole_where_a_vocabulary_knows_newer_characters_than_the_table(
    engine: BytePairEngine, name: str
):
    chance, tokenizer = random.Random(18), engine.tokenizer(name)
    assert isinstance(tokenizer, SplintrTokenizer)
    unassigned = [chr(code) for code in range(0x2B730, 0x35000) if kinds(chr(code)) == "?"]
    small = dataclasses.replace(tokenizer, reach=24)
    for _ in range(300):
        text = "".join(
            chance.choice(unassigned) if chance.random() < 0.3 else chance.choice("ab 1/中") for _ in range(60)
        )
        assert drain(count_steps(small, text)) == tokenizer.count(text), ascii(text)
