import dataclasses
import time
from collections.abc import Mapping

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import hostile, texts

from ullage.tokens.bpe import BytePairEngine, SplintrTokenizer, mended
from ullage.tokens.characters import kinds
from ullage.tokens.steps import Steps, drain
from ullage.tokens.stitch import count_steps
from ullage.tokens.vocabulary import VOCABULARIES

MEGABYTE = hostile(1_000_000)
SMALL = hostile(60_000)
ORDINARY = (
    "The quick brown fox can't jump over 13 lazy dogs, said the keeper; nobody believed him.\n"
    '{"name": "search", "arguments": {"query": "weather in Malmö", "limit": 10}}\n'
    "    def count(self, text: str) -> int:\n        return len(self.encode(text))\n\n"
    "我们今天去公园散步，天气很好。 오늘은 날씨가 맑고 바람이 분다. Ontem choveu; amanhã não sei.\n"
)


def tokenizer_with(engine: BytePairEngine, name: str, reach: int) -> SplintrTokenizer:
    tokenizer = engine.tokenizer(name)
    assert isinstance(tokenizer, SplintrTokenizer)
    return dataclasses.replace(tokenizer, reach=reach)


def count_by_reference(encoding: tiktoken.Encoding, text: str) -> int:
    """Tiktoken panics on a million spaces; they are tokens of 128, so a multiple of that is a place to cut."""
    if text.strip(" "):
        return len(encoding.encode_ordinary(text))
    return sum(len(encoding.encode_ordinary(text[start : start + 128_000])) for start in range(0, len(text), 128_000))


def longest_step(steps: Steps[int]) -> tuple[int, float]:
    """The result, and the CPU seconds of the longest step."""
    longest = 0.0
    while True:
        begin = time.thread_time()
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value, longest
        longest = max(longest, time.thread_time() - begin)


@pytest.mark.parametrize("name", VOCABULARIES)
@settings(max_examples=60)
@given(text=texts, reach=st.sampled_from([4, 8, 16, 32, 64]))
def test_slices_sum_to_the_whole(engine: BytePairEngine, name: str, text: str, reach: int):
    text = mended(text)
    tokenizer = tokenizer_with(engine, name, reach)
    assert drain(count_steps(tokenizer, text)) == len(tokenizer.inner.encode_ordinary(text))


@given(text=texts)
def test_the_pieces_of_a_split_are_the_whole_text(text: str):
    for vocabulary in VOCABULARIES.values():
        if vocabulary.split is not None:
            spelt = kinds(text)
            assert "".join(match[0] for match in vocabulary.split.pattern.finditer(spelt)) == spelt


@pytest.mark.parametrize("name", VOCABULARIES)
def test_the_pieces_of_a_split_are_the_engines(engine: BytePairEngine, name: str):
    split = VOCABULARIES[name].split
    tokenizer = tokenizer_with(engine, name, 1)
    text = mended("".join(SMALL[kind][:200] for kind in SMALL) + ORDINARY)
    if split is not None:
        pieces = [text[match.start() : match.end()] for match in split.pattern.finditer(kinds(text))]
        assert sum(map(tokenizer.count, pieces)) == tokenizer.count(text)


@pytest.mark.parametrize("name", VOCABULARIES)
@pytest.mark.parametrize("kind", SMALL)
def test_a_giant_piece_in_slices_counts_as_it_does_at_once(engine: BytePairEngine, name: str, kind: str):
    tokenizer, text = tokenizer_with(engine, name, 2_048), mended(SMALL[kind])
    assert drain(count_steps(tokenizer, text)) == len(tokenizer.inner.encode_ordinary(text))


@pytest.mark.parametrize("name", ["o200k_base", "gemma4"])
def test_ten_ordinary_megabytes_are_never_long_without_a_yield(engine: BytePairEngine, name: str):
    text = ORDINARY * (10_000_000 // len(ORDINARY.encode()))
    engine.tokenizer(name)
    tokens, longest = longest_step(engine.steps(name, text))
    assert tokens == engine.count(name, text)
    assert longest < 0.02


@pytest.mark.parametrize("kind", MEGABYTE)
def test_a_hostile_megabyte_is_counted_rightly_and_soon(
    engine: BytePairEngine, reference: Mapping[str, tiktoken.Encoding], kind: str
):
    text = MEGABYTE[kind]
    engine.tokenizer("o200k_base")
    begin = time.thread_time()
    tokens, longest = longest_step(engine.steps("o200k_base", text))
    spent = time.thread_time() - begin
    assert tokens == count_by_reference(reference["o200k_base"], text) == engine.count("o200k_base", text)
    assert longest < 0.02
    assert spent < 1
