import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import fastokens  # pyright: ignore[reportMissingTypeStubs]
import pytest
import tiktoken
from hypothesis import given
from texts import hostile, texts

from ullage.tokens.bpe import quick as quick_room
from ullage.tokens.bpe.engine import BytePairEngine, SplintrTokenizer, default_engine, load_splintr, mended
from ullage.tokens.bpe.quick import has_quick, load_quick
from ullage.tokens.bpe.vocabulary import VOCABULARIES
from ullage.tokens.steps import drain

NAMES = ("o200k_base", "cl100k_base")


def refuse(text: str) -> int:
    pytest.fail(f"{len(text)} characters are too long")


@pytest.fixture(scope="module")
def quick() -> Mapping[str, Callable[[str], int]]:
    return {name: load_quick(VOCABULARIES[name], refuse) for name in NAMES}


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
    tokenizer, text = engine.tokenizer(name), mended(hostile(8_000)[kind])
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
    assert load_quick(VOCABULARIES["cl100k_base"], refuse)("Hello, world!") == 4
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written_splintr_goes_on_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    tokenizer = load_splintr(VOCABULARIES["cl100k_base"])
    assert tokenizer.gears
    assert not tokenizer.gears.shift()
    assert tokenizer.count("Hello, world!") == 4


def test_fastokens_is_given_short_texts_only():
    """From 32 KB on it works without the interpreter's lock, or on threads of its own."""
    counted = load_quick(VOCABULARIES["cl100k_base"], lambda _: -1)
    assert [counted(text) for text in ("a" * 32_001, "会" * 8_001, "x" * 9_000 + "é")] == [-1, -1, -1]
    assert min(counted(text) for text in ("word " * 6_400, "会" * 8_000)) > 0


def test_what_fastokens_builds_at_the_first_text_is_built_before_anyone_waits_for_it(monkeypatch: pytest.MonkeyPatch):
    """By a text long enough for it to let go of the interpreter's lock, and too short for threads."""
    given: list[int] = []

    class Noting:
        @staticmethod
        def from_tiktoken(*_path: str, **_encoding: str) -> "Noting":
            return Noting()

        def encode_ordinary(self, text: str) -> str:
            given.append(len(text))
            return text

    monkeypatch.setattr(fastokens, "Tokenizer", Noting)
    load_quick(VOCABULARIES["cl100k_base"], refuse)("short")
    assert 32_768 < given[0] < 65_536
    assert given[1:] == [5]


def test_where_little_memory_is_left_splintr_goes_on_counting(monkeypatch: pytest.MonkeyPatch):
    asked: list[int] = []

    def full(size: int) -> bool:
        asked.append(size)
        return False

    monkeypatch.setattr(quick_room, "has_room", full)
    engine = default_engine()
    assert not engine.shift("cl100k_base")
    assert engine.counter("cl100k_base")("Hello, world!") == 4
    assert min(asked) > 500_000_000


@pytest.mark.parametrize("name", NAMES)
def test_a_long_text_counts_at_once_as_tiktoken_counts_it(reference: Mapping[str, tiktoken.Encoding], name: str):
    engine = default_engine()
    assert engine.shift(name)
    text = "The ferries left at nine.\n\n \t会议改到下午。 it's 1,234 //\n/\n" * 5_000
    assert engine.counter(name)(text) == len(reference[name].encode_ordinary(text))


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


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)


_ENGINE = """
import os, sys, threading, time
from ullage.tokens.bpe import quick
from ullage.tokens.bpe.engine import default_engine
engine = default_engine()
count = engine.counter("cl100k_base")
"""


def test_a_process_may_end_while_a_daemon_counts():
    script = f"""{_ENGINE}
engine.shift("cl100k_base")
text = "".join(f"zq{{i}} wörd{{i}} " for i in range(20_000))
def work():
    while True:
        count(text)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""
    ended = run(script)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.skipif(sys.platform != "linux", reason="no such list of threads")
def test_fastokens_starts_no_threads():
    script = f"""{_ENGINE}
engine.shift("cl100k_base")
count("The ferries left at nine. " * 20_000)
print(len(os.listdir("/proc/self/task")))
"""
    assert run(script).stdout == "1\n"


@pytest.mark.skipif(sys.platform != "linux", reason="no such limit")
def test_where_memory_is_limited_splintr_goes_on_counting():
    script = f"""{_ENGINE}
import resource
engine.tokenizer("o200k_base")
most = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + 100_000_000
resource.setrlimit(resource.RLIMIT_AS, (most, most))
print(engine.shift("o200k_base"), count("Hello, world!"))
"""
    ended = run(script)
    assert (ended.returncode, ended.stdout) == (0, "False 4\n")


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_child_that_ends_meanwhile_takes_nothing_away():
    script = f"""{_ENGINE}
forked, written, as_published = threading.Event(), threading.Event(), quick.as_published
def slowly(tokens):
    written.set()
    forked.wait(60)
    return as_published(tokens)
quick.as_published = slowly
made = []
making = threading.Thread(target=lambda: made.append(engine.shift("cl100k_base")))
making.start()
written.wait(60)
child = os.fork()
if not child:
    sys.exit()
os.waitpid(child, 0)
forked.set()
making.join()
print(made)
"""
    ended = run(script)
    assert (ended.returncode, ended.stdout) == (0, "[True]\n")
