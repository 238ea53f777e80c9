import dataclasses
from collections.abc import Mapping, Sequence

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import hostile, texts

from ullage.tokens.bpe.engine import BytePairEngine, SplintrTokenizer, repair_surrogates
from ullage.tokens.bpe.split import VOCABULARIES, kinds
from ullage.tokens.bpe.stepwise_count import count_steps
from ullage.tokens.count import drain

SLICED = [name for name, vocabulary in VOCABULARIES.items() if vocabulary.sliced]
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


MOST_AT_ONCE = 20_000
"""Bytes between two pauses: 10 ms at the 2 MB/s of the slowest texts, half of what is allowed."""


@dataclasses.dataclass
class Watched:
    """A tokenizer that notes how much it was given between two pauses."""

    inner: SplintrTokenizer
    given: int = 0
    most: int = 0

    def __post_init__(self) -> None:
        self.split, self.reach, self.leads = self.inner.split, self.inner.reach, self.inner.leads
        self.width, self.bytes_of = self.inner.width, self.inner.bytes_of

    def note(self, text: str) -> None:
        self.given += len(text.encode())
        self.most = max(self.most, self.given)

    def count(self, text: str) -> int:
        self.note(text)
        return self.inner.count(text)

    def encode(self, text: str, *, inside: bool = False) -> Sequence[int]:
        self.note(text)
        return self.inner.encode(text, inside=inside)

    def run(self, text: str) -> int:
        steps = count_steps(self, text)
        while True:
            self.given = 0
            try:
                next(steps)
            except StopIteration as stop:
                return stop.value


@pytest.mark.requirement("S3:nonblocking")
@pytest.mark.parametrize("name", SLICED)
@settings(max_examples=60)
@given(text=texts, reach=st.sampled_from([16, 32, 64, 128]))
def test_slices_sum_to_the_whole(engine: BytePairEngine, name: str, text: str, reach: int):
    text = repair_surrogates(text)
    tokenizer = tokenizer_with(engine, name, reach)
    assert drain(count_steps(tokenizer, text)) == len(tokenizer.inner.encode_ordinary(text))


@pytest.mark.requirement("S3:nonblocking")
@given(text=texts)
def test_the_pieces_of_a_split_are_the_whole_text(text: str):
    for vocabulary in VOCABULARIES.values():
        if vocabulary.split is not None:
            spelt = kinds(text)
            assert "".join(match[0] for match in vocabulary.split.pattern.finditer(spelt)) == spelt


@pytest.mark.requirement("S3:nonblocking")
@pytest.mark.parametrize("name", SLICED)
def test_the_pieces_of_a_split_are_the_engines(engine: BytePairEngine, name: str):
    split = VOCABULARIES[name].split
    tokenizer = tokenizer_with(engine, name, 1)
    text = repair_surrogates("".join(SMALL[kind][:200] for kind in SMALL) + ORDINARY)
    if split is not None:
        pieces = [text[match.start() : match.end()] for match in split.pattern.finditer(kinds(text))]
        assert sum(map(tokenizer.count, pieces)) == tokenizer.count(text)


@pytest.mark.requirement("S3:nonblocking")
@pytest.mark.parametrize("name", SLICED)
@pytest.mark.parametrize("kind", SMALL)
def test_a_giant_piece_in_slices_counts_as_it_does_at_once(engine: BytePairEngine, name: str, kind: str):
    tokenizer, text = tokenizer_with(engine, name, 2_048), repair_surrogates(SMALL[kind])
    assert drain(count_steps(tokenizer, text)) == len(tokenizer.inner.encode_ordinary(text))


@pytest.mark.requirement("S3:nonblocking")
def test_a_vocabulary_that_is_not_sliced_is_counted_at_once(engine: BytePairEngine):
    engine.tokenizer("modernbert")
    assert list(engine.steps("modernbert", ORDINARY * 1_000)) == [None]


@pytest.mark.parametrize("name", ["o200k_base", "gemma4"])
@pytest.mark.requirement("S3:nonblocking")
def test_of_ten_ordinary_megabytes_no_more_than_a_few_kilobytes_are_counted_between_two_pauses(
    engine: BytePairEngine, name: str
):
    text = ORDINARY * (10_000_000 // len(ORDINARY.encode()))
    watched = Watched(tokenizer_with(engine, name, engine.tokenizer(name).reach))
    assert watched.run(text) == engine.counter(name)(text)
    assert watched.most <= watched.reach + 8, "a character or two may be looked at beyond the reach"
    assert watched.reach <= MOST_AT_ONCE


@pytest.mark.parametrize("kind", MEGABYTE)
@pytest.mark.requirement("S3:nonblocking")
def test_a_hostile_megabyte_is_counted_rightly_and_in_small_parts(
    engine: BytePairEngine, reference: Mapping[str, tiktoken.Encoding], kind: str
):
    text = MEGABYTE[kind]
    assert engine.counter("o200k_base")(text) == count_by_reference(reference["o200k_base"], text)
    watched = Watched(tokenizer_with(engine, "o200k_base", engine.tokenizer("o200k_base").reach))
    assert watched.run(repair_surrogates(text)) == engine.counter("o200k_base")(text)
    assert watched.most <= watched.reach + 8, "a character or two may be looked at beyond the reach"
    assert watched.reach <= MOST_AT_ONCE
