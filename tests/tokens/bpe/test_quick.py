import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from texts import hostile, texts

from ullage.tokens.bpe.engine import BytePairEngine, SplintrTokenizer, default_engine, load_splintr, mended
from ullage.tokens.bpe.quick import has_quick, load_quick
from ullage.tokens.bpe.vocabulary import VOCABULARIES
from ullage.tokens.steps import drain

NAMES = ("o200k_base", "cl100k_base")


@pytest.fixture(scope="module")
def quick() -> Mapping[str, Callable[[str], int]]:
    return {name: load_quick(VOCABULARIES[name]) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
@given(text=texts)
def test_the_quicker_count_is_tiktokens_count(
    quick: Mapping[str, Callable[[str], int]], reference: Mapping[str, tiktoken.Encoding], name: str, text: str
):
    assert quick[name](mended(text)) == len(reference[name].encode_ordinary(mended(text)))


@pytest.mark.parametrize("kind", hostile(1))
@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_text_counts_the_same(
    engine: BytePairEngine, quick: Mapping[str, Callable[[str], int]], name: str, kind: str
):
    tokenizer, text = engine.tokenizer(name), mended(hostile(100_000)[kind])
    assert isinstance(tokenizer, SplintrTokenizer)
    assert quick[name](text) == len(tokenizer.inner.encode_ordinary(text))


@pytest.mark.parametrize("name", NAMES)
def test_every_character_counts_the_same(engine: BytePairEngine, quick: Mapping[str, Callable[[str], int]], name: str):
    """Between letters, where what kind of character it is decides how the text is split."""
    tokenizer = engine.tokenizer(name)
    assert isinstance(tokenizer, SplintrTokenizer)
    characters = [chr(code) for code in range(0x3_0000) if not 0xD800 <= code < 0xE000]
    for start in range(0, len(characters), 64):
        text = "".join(f"aB{character}c{character}{character}1 " for character in characters[start : start + 64])
        assert quick[name](text) == len(tokenizer.inner.encode_ordinary(text)), hex(ord(characters[start]))


def test_surrogates_and_long_texts_count_after_the_shift_as_before():
    engine = default_engine()
    before = engine.counter("cl100k_base")("a\ud83db")
    text = "The ferries left at nine. 会议改到下午。\n" * 1_000
    long = drain(engine.steps("cl100k_base", text))
    assert engine.shift("cl100k_base")
    assert engine.counter("cl100k_base")("a\ud83db") == before
    assert drain(engine.steps("cl100k_base", text)) == long


def test_a_vocabulary_that_is_not_carried_has_no_quicker_way(engine: BytePairEngine):
    assert not engine.shift("llama3")


def test_the_ranks_are_written_where_they_are_gone_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert load_quick(VOCABULARIES["cl100k_base"])("Hello, world!") == 4
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written_splintr_goes_on_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    tokenizer = load_splintr(VOCABULARIES["cl100k_base"])
    assert tokenizer.gears
    assert not tokenizer.gears.shift()
    assert tokenizer.count("Hello, world!") == 4


def test_without_fastokens_there_is_no_quicker_way(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "fastokens", None)
    assert not has_quick(VOCABULARIES["o200k_base"])
    assert load_splintr(VOCABULARIES["cl100k_base"]).gears is None


def test_who_counts_a_little_never_loads_fastokens():
    script = "import sys; from ullage import count; count('hello'); print('fastokens' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


_COUNTING_FOR_LONG = """
import threading
from ullage.tokens.bpe.engine import load_splintr
from ullage.tokens.bpe.vocabulary import VOCABULARIES
tokenizer = load_splintr(VOCABULARIES["cl100k_base"])
text = "The ferries to Gotland left at nine. " * 100_000
while threading.active_count() == 1:
    before = tokenizer.count(text)
"""


def test_a_process_that_counts_for_long_comes_to_count_the_quicker_way():
    script = f"{_COUNTING_FOR_LONG}print(tokenizer.gears.shift(), tokenizer.count(text) == before)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert (run.stdout, run.stderr) == ("True True\n", "")


def test_a_process_may_end_while_the_quicker_way_is_made():
    run = subprocess.run([sys.executable, "-c", _COUNTING_FOR_LONG], capture_output=True, check=True, timeout=120)
    assert (run.stdout, run.stderr) == (b"", b"")
