import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import hostile, texts

from ullage.tokens.bpe.engine import BytePairEngine, default_engine, load_splintr
from ullage.tokens.bpe.python_bpe import LONG, MANY, RankTable, load_python, pack_table, read_tokens
from ullage.tokens.bpe.split import VOCABULARIES, Vocabulary
from ullage.tokens.bpe.stepwise_count import Tokenizer
from ullage.tokens.bpe.worker import CountWorker
from ullage.tokens.count import Steps, drain

NAMES = ("o200k_base", "cl100k_base", "o200k_harmony")
SMALL = hostile(3_000)
WORDS = (
    "def count(text: str) -> int:\n    return len(text)  # naïve, 数字 和 カタカナ, Ёлка 🦊👩\u200d👧\n"
    "They can't <|endoftext|> 12,345 times.\r\n\n"
)


@pytest.fixture(scope="module")
def short() -> BytePairEngine:
    return default_engine()


@pytest.mark.requirement("S3:light")
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=300)
@given(text=texts)
def test_a_short_text_is_counted_as_the_engine_counts_it(engine: BytePairEngine, name: str, text: str):
    assert default_engine().counter(name)(text) == engine.counter(name)(text)


@pytest.mark.requirement("S3:light")
@settings(max_examples=300)
@given(text=texts)
def test_a_short_text_for_gemini_is_counted_as_the_engine_counts_it(
    engine: BytePairEngine, short: BytePairEngine, text: str
):
    assert short.counter("gemma4")(text) == engine.counter("gemma4")(text)
    assert "gemma4" not in short.loaded


@pytest.mark.requirement("S3:light")
@pytest.mark.parametrize("name", [*NAMES, "gemma4"])
@pytest.mark.parametrize("kind", SMALL)
def test_hostile_text_is_counted_as_the_engine_counts_it(
    engine: BytePairEngine, short: BytePairEngine, name: str, kind: str
):
    expected = engine.counter(name)(SMALL[kind])
    assert short.counter(name)(SMALL[kind]) == drain(short.steps(name, SMALL[kind])) == expected


@pytest.mark.requirement("S3:light")
@pytest.mark.parametrize("name", NAMES)
def test_source_files_are_counted_as_the_engine_counts_them(engine: BytePairEngine, name: str):
    here = Path(__file__).parent
    for path in [*here.glob("*.py"), *here.parent.glob("*.py")]:
        text = path.read_text(encoding="utf-8")[:LONG]
        assert default_engine().counter(name)(text) == engine.counter(name)(text), path


@pytest.mark.requirement("S3:light")
def test_a_long_s_after_an_apostrophe_goes_to_the_engine():
    engine = default_engine()
    assert engine.counter("o200k_base")("it'ſ") > 0
    assert list(engine.loaded) == ["o200k_base"]


@pytest.mark.requirement("S3:light")
def test_nothing_is_loaded_for_short_texts():
    code = (
        "import sys; from ullage import count; print(count('Hello, world!', 'gpt-4').tokens, "
        "count('Hello, world!', 'gpt-4o').tokens, 'splintr' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["4", "4", "False"]


@pytest.mark.requirement("S3:light")
def test_a_process_with_a_worker_loads_no_vocabulary_for_gemini_itself():
    loaded = list[str]()

    def load(vocabulary: Vocabulary) -> Tokenizer:
        loaded.append(vocabulary.name)
        return load_splintr(vocabulary)

    worker = CountWorker()
    counting = BytePairEngine(load, VOCABULARIES, begins_short=True, worker=worker)
    try:
        assert counting.counter("gemma4")("Hello, world!") == 4
    finally:
        worker.close()
    assert loaded == []


@pytest.mark.requirement("S3:nonblocking", "S3:light")
@pytest.mark.parametrize("name", ["o200k_base", "gemma4"])
@pytest.mark.parametrize("much", [[WORDS * (LONG // len(WORDS) + 1)], [WORDS * 100] * (MANY // len(WORDS * 100) + 2)])
def test_the_engine_is_loaded_for_one_long_text_and_for_many_short_ones(
    engine: BytePairEngine, much: list[str], name: str
):
    counting = default_engine()
    counter = counting.counter(name)
    assert [counter(text) for text in much] == [engine.counter(name)(text) for text in much]
    end = time.monotonic() + 30
    while not counting.loaded and time.monotonic() < end:  # by a thread, for many short ones
        time.sleep(0.01)
    assert list(counting.loaded) == [name]
    assert counter("Hello") == 1


@pytest.mark.requirement("S3:nonblocking", "S3:light")
def test_others_have_their_turn_while_the_engine_is_loaded_for_a_long_text(engine: BytePairEngine):
    text = WORDS * (LONG // len(WORDS) + 1)
    counting, turns = default_engine(), 0

    def turn() -> Steps[int]:
        nonlocal turns
        steps = counting.steps("o200k_base", text)
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                return stop.value
            turns += not counting.loaded
            yield

    assert drain(turn()) == engine.counter("o200k_base")(text)
    assert turns > 3


@pytest.mark.requirement("S3:nonblocking", "S3:light")
def test_one_who_has_much_to_count_begins_with_the_engine():
    engine = default_engine(begins_short=False)
    engine.counter("cl100k_base")("Hello")
    assert list(engine.loaded) == ["cl100k_base"]


@pytest.mark.requirement("S3:light")
@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_every_token_is_found_with_its_rank_in_order(name: str):
    table, tokens = load_python(VOCABULARIES[name]).ranks, read_tokens(name)
    ranks = [table[token] for token in tokens]
    assert ranks == sorted(ranks)
    assert [table.width(rank) for rank in ranks] == [len(token) for token in tokens]
    assert len(table) == len(tokens)


@pytest.mark.requirement("S3:light")
@given(tokens=st.lists(st.binary(min_size=1, max_size=4), unique=True, min_size=1), other=st.binary(max_size=4))
def test_a_table_holds_its_tokens_and_no_others(
    tmp_path_factory: pytest.TempPathFactory, tokens: list[bytes], other: bytes
):
    path = tmp_path_factory.mktemp("ranks") / "small.ranks"
    path.write_bytes(pack_table(tokens))
    table = RankTable(path)
    assert list(table) == tokens
    assert (other in table) == (other in tokens)
    assert table.get(other, -1) == (table[other] if other in tokens else -1)


@pytest.mark.requirement("S3:light")
def test_another_file_is_refused(tmp_path: Path):
    path = tmp_path / "other"
    path.write_bytes(b"something else than a table")
    with pytest.raises(ValueError, match="holds no ranks"):
        RankTable(path)
