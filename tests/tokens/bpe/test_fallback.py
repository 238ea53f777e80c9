import dataclasses
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import hostile, texts

from ullage import count
from ullage.tokens.bpe.engine import BytePairEngine, default_engine, repair_surrogates
from ullage.tokens.bpe.python_bpe import CARRIED, LONG, PythonTokenizer, load_python, merge_long, merge_short
from ullage.tokens.bpe.split import VOCABULARIES
from ullage.tokens.bpe.stepwise_count import count_steps
from ullage.tokens.count import drain

SMALL = hostile(20_000)


@pytest.fixture(scope="session")
def carried() -> dict[str, PythonTokenizer]:
    return {name: load_python(VOCABULARIES[name]) for name in CARRIED}


@pytest.fixture(scope="session")
def python(carried: dict[str, PythonTokenizer]) -> BytePairEngine:
    return BytePairEngine(lambda vocabulary: carried[vocabulary.name], {name: VOCABULARIES[name] for name in CARRIED})


@pytest.mark.requirement("S3:light")
@pytest.mark.parametrize("name", CARRIED)
@given(text=texts)
def test_python_counts_what_splintr_counts(engine: BytePairEngine, python: BytePairEngine, name: str, text: str):
    assert python.counter(name)(text) == engine.counter(name)(text)


@pytest.mark.requirement("S3:light")
@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
@pytest.mark.parametrize("kind", SMALL)
def test_python_counts_hostile_text_as_splintr_does(
    engine: BytePairEngine, python: BytePairEngine, name: str, kind: str
):
    assert (
        python.counter(name)(SMALL[kind]) == engine.counter(name)(SMALL[kind]) == drain(python.steps(name, SMALL[kind]))
    )


@pytest.mark.requirement("S3:light")
@settings(max_examples=50)
@given(text=texts, reach=st.sampled_from([16, 64, 256]))
def test_slices_of_the_fallback_sum_to_the_whole(carried: dict[str, PythonTokenizer], text: str, reach: int):
    text = repair_surrogates(text)
    tokenizer = dataclasses.replace(carried["o200k_base"], reach=reach)
    assert drain(count_steps(tokenizer, text)) == len(tokenizer.encode(text)) == tokenizer.count(text)


@pytest.mark.requirement("S3:light")
@given(piece=st.binary(min_size=2, max_size=300) | st.text("ab ", min_size=2, max_size=300).map(str.encode))
def test_the_heap_merges_as_the_search_does(carried: dict[str, PythonTokenizer], piece: bytes):
    ranks = carried["o200k_base"].ranks
    assert merge_long(piece, ranks) == merge_short(piece, ranks)


@pytest.mark.requirement("S3:light")
@pytest.mark.parametrize(
    "codes",
    [
        # Hardly anything is assigned beyond the third plane.
        pytest.param(range(0, 0x33000, 7), id="assigned"),
        pytest.param(range(0x33000, 0x110000, 499), id="mostly unassigned"),
        pytest.param(range(0x110000), id="all", marks=pytest.mark.heavy),
    ],
)
def test_every_letter_mark_number_and_symbol_is_split_as_splintr_splits_it(
    engine: BytePairEngine, python: BytePairEngine, codes: range
):
    for character in (chr(code) for code in codes if not 0xD800 <= code < 0xE000):
        text = (
            f"ab{character}{character}cd {character}X{character}y 1{character}2 {character}\n{character}'s{character}"
        )
        assert python.counter("o200k_base")(text) == engine.counter("o200k_base")(text), hex(ord(character))


@pytest.mark.requirement("S3:light")
def test_one_piece_of_a_hundred_kilobytes_is_counted(python: BytePairEngine):
    assert python.counter("o200k_base")("a" * 100_000) == 12_500


@pytest.mark.requirement("S3:light")
def test_the_memory_of_pieces_is_bounded(carried: dict[str, PythonTokenizer]):
    tokenizer = dataclasses.replace(carried["cl100k_base"], remembered={})
    tokenizer.count(" ".join(f"a{number}b" for number in range(1000)))
    full = dict.fromkeys(map(str, range(65_536)), 1)
    tokenizer.remembered.update(full)
    tokenizer.count("unheard-of")
    assert len(tokenizer.remembered) < 10


@pytest.mark.requirement("S3:light")
def test_without_splintr_the_package_counts_the_same_and_says_what_it_can_only_estimate():
    script = """
import sys
sys.modules["splintr"] = None
from ullage import count
assert count("Hello, world!").tokens == 4
print(*(count("naïve 数字 🦊 can't 12345", m).tokens for m in ("gpt-4", "gpt-4o", "gpt-oss-120b")))
print(*(count("some text", m).method.value for m in ("gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro")))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    text, models = "naïve 数字 🦊 can't 12345", ("gpt-4", "gpt-4o", "gpt-oss-120b")
    assert run.stdout.splitlines() == [
        " ".join(str(count(text, model).tokens) for model in models),
        "exact estimated estimated",
    ]


@pytest.mark.requirement("S3:light")
def test_only_the_vocabulary_that_is_asked_for_is_loaded():
    engine = default_engine()
    engine.counter("cl100k_base")("Hello " * LONG)
    assert list(engine.loaded) == ["cl100k_base"]
