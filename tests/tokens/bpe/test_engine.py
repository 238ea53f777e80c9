import sys
import threading
from collections.abc import Mapping
from dataclasses import replace

import pytest
import tiktoken
from hypothesis import given
from texts import texts

from ullage.tokens.bpe.engine import BytePairEngine, SplintrTokenizer, default_engine, load_splintr, repair_surrogates
from ullage.tokens.bpe.python_bpe import CARRIED
from ullage.tokens.bpe.split import VOCABULARIES, Vocabulary
from ullage.tokens.bpe.stepwise_count import Tokenizer

Reference = Mapping[str, tiktoken.Encoding]


def plain_count(tokenizer: SplintrTokenizer, text: str) -> int:
    return len(tokenizer.inner.encode_ordinary(text)) - len(tokenizer.inner.encode_ordinary(""))


@pytest.mark.requirement("S3:models")
@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
@given(text=texts)
def test_a_count_is_tiktokens_count(engine: BytePairEngine, reference: Reference, name: str, text: str):
    assert engine.counter(name)(text) == len(reference[name].encode_ordinary(text))


@pytest.mark.requirement("S3:models")
@pytest.mark.parametrize("name", VOCABULARIES)
def test_a_special_token_written_out_is_plain_text(engine: BytePairEngine, name: str):
    tokenizer = engine.tokenizer(name)
    assert isinstance(tokenizer, SplintrTokenizer)
    for literal in tokenizer.inner.special_tokens():
        assert engine.counter(name)(f"a {literal} b") == plain_count(tokenizer, f"a {literal} b")


@pytest.mark.requirement("S3:light")
@given(text=texts)
def test_the_quicker_call_is_made_only_where_it_agrees(engine: BytePairEngine, text: str):
    text = repair_surrogates(text)
    for name in VOCABULARIES:
        tokenizer = engine.tokenizer(name)
        assert isinstance(tokenizer, SplintrTokenizer)
        assert tokenizer.count(text) == plain_count(tokenizer, text)


@pytest.mark.requirement("S3:empty")
@pytest.mark.parametrize("name", VOCABULARIES)
def test_the_empty_text_has_no_tokens(engine: BytePairEngine, name: str):
    assert engine.counter(name)("") == 0


@pytest.mark.requirement("S3:models")
@given(text=texts)
def test_surrogates_are_mended_as_tiktoken_mends_them(text: str):
    assert repair_surrogates(text) == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@pytest.mark.requirement("S3:models")
def test_a_pair_of_surrogates_counts_as_its_character(engine: BytePairEngine):
    assert engine.counter("o200k_base")("a\ud83d\ude00b") == engine.counter("o200k_base")("a😀b")
    assert engine.counter("o200k_base")("a\ud83db") == engine.counter("o200k_base")("a\ufffdb")


@pytest.mark.requirement("S3:models")
def test_qwen_counts_the_composed_form(engine: BytePairEngine):
    assert engine.counter("qwen3")("Ame\u0301lie") == engine.counter("qwen3")("Am\u00e9lie")
    assert engine.counter("llama3")("Ame\u0301lie") != engine.counter("llama3")("Am\u00e9lie")


@pytest.mark.requirement("S3:models")
def test_harmony_shares_the_ranks_of_o200k(engine: BytePairEngine):
    assert engine.tokenizer("o200k_harmony") is engine.tokenizer("o200k_base")


@pytest.mark.requirement("S3:light")
def test_a_vocabulary_is_loaded_once_however_many_threads_ask():
    loads: list[str] = []

    def load(vocabulary: Vocabulary) -> Tokenizer:
        loads.append(vocabulary.name)
        return load_splintr(vocabulary)

    engine = BytePairEngine(load, VOCABULARIES)
    threads = [threading.Thread(target=engine.counter, args=("cl100k_base",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loads == ["cl100k_base"]


@pytest.mark.requirement("S3:nonblocking")
def test_a_text_of_millions_is_not_handed_over_in_one_call():
    """All its tokens at once would take a gigabyte, and nothing could be stopped meanwhile."""
    longest = 0

    def load(vocabulary: Vocabulary) -> Tokenizer:
        loaded = load_splintr(vocabulary)

        def count(text: str) -> int:
            nonlocal longest
            longest = max(longest, len(text))
            return loaded.count(text)

        return replace(loaded, count=count)

    engine, line = BytePairEngine(load, VOCABULARIES), "The ferries left at nine.\n"
    each = engine.counter("cl100k_base")(line)
    assert engine.counter("cl100k_base")(line * 100_000) == each * 100_000
    assert longest < 100_000


@pytest.mark.requirement("S3:light")
def test_nothing_is_loaded_before_it_is_asked_for():
    assert default_engine().loaded == {}


def test_a_name_nobody_knows_is_not_available(engine: BytePairEngine):
    assert engine.available("kimi_k2")
    assert not engine.available("claude")


@pytest.mark.requirement("S3:light")
def test_without_splintr_the_vocabularies_the_package_carries_remain(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "splintr", None)
    engine = default_engine()
    assert [name for name in VOCABULARIES if engine.available(name)] == sorted(CARRIED)
    assert engine.counter("o200k_base")("Hello, world!") == 4


@pytest.mark.requirement("S3:nonblocking")
def test_no_token_of_a_leading_vocabulary_joins_a_line_end_to_more(engine: BytePairEngine):
    """The encoding inside a text rests on it."""
    for name in ("llama2", "mistral_v1", "mistral_v2"):
        tokenizer = engine.tokenizer(name)
        assert isinstance(tokenizer, SplintrTokenizer)
        size = tokenizer.inner.vocab_size - len(tokenizer.inner.special_tokens())
        spellings = [tokenizer.inner.decode_token_bytes(token) for token in range(size)]
        assert [spelling for spelling in spellings if b"\n" in spelling] == [b"\n"]
        assert tokenizer.encode("hello", inside=True) == tokenizer.inner.encode_ordinary("\nhello")[2:]
