import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from threading import Event

import pytest
from hypothesis import given, settings
from texts import hostile, texts

from ullage.models import shipped
from ullage.tokens import Meter
from ullage.tokens.bpe import worker as worker_module
from ullage.tokens.bpe.engine import BytePairEngine, answer_questions, default_engine
from ullage.tokens.bpe.python_bpe import LONG, MANY
from ullage.tokens.bpe.worker import CountWorker, worker_command
from ullage.tokens.count import Steps, drain

pytestmark = pytest.mark.requirement("S3:nonblocking")

WORDS = (
    "They can't count 12,345 of them: naïve, 数字 和 カタカナ, Ёлка 🦊.\r\n\n    return len(text)  # <|endoftext|>\n"
)
LONG_TEXT = WORDS * (LONG // len(WORDS) + 1)
WORTH_ASKING = 4_096
"""Characters above which a worker that has the vocabulary is asked."""


@pytest.fixture(scope="module")
def worker() -> Iterator[CountWorker]:
    made = CountWorker()
    yield made
    made.close()


@pytest.fixture
def served(worker: CountWorker) -> BytePairEngine:
    """An engine as a gateway has it."""
    made = default_engine()
    made.worker = worker
    return made


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def eventually(holds: object) -> bool:
    assert callable(holds)
    end = time.monotonic() + 30
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(holds())


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base", "o200k_harmony", "qwen3", "mistral_v1", "modernbert"])
@settings(max_examples=50)
@given(text=texts)
def test_the_worker_counts_as_the_engine_does(worker: CountWorker, engine: BytePairEngine, name: str, text: str):
    assert worker.count(name, text) == engine.counter(name)(text)


@pytest.mark.parametrize("kind", hostile(40_000))
def test_hostile_text_is_counted_as_the_engine_counts_it(served: BytePairEngine, engine: BytePairEngine, kind: str):
    text = hostile(40_000)[kind]
    expected = engine.counter("o200k_base")(text)
    assert served.counter("o200k_base")(text) == drain(served.steps("o200k_base", text)) == expected


@pytest.mark.requirement("S3:nonblocking")
def test_a_text_of_several_parts_is_put_together(
    served: BytePairEngine, engine: BytePairEngine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(worker_module, "_PART", 7)
    text = LONG_TEXT + "\ud83d\ude00 \udfff"
    assert served.counter("cl100k_base")(text) == engine.counter("cl100k_base")(text)


@pytest.mark.parametrize("name", ["o200k_base", "qwen3"])
def test_nothing_is_loaded_in_a_process_that_has_a_worker(served: BytePairEngine, engine: BytePairEngine, name: str):
    many = [WORDS * 20] * (MANY // len(WORDS * 20) + 2)
    for text in ("Hello", LONG_TEXT, *many, "it'ſ"):
        expected = engine.counter(name)(text)
        assert served.counter(name)(text) == drain(served.steps(name, text)) == expected
    assert served.loaded == {}


def test_splintr_is_not_imported_beside_a_worker_and_nothing_is_printed():
    script = (
        "import sys\nfrom ullage.tokens import CountWorker, default_engine, drain\n"
        "engine = default_engine()\nengine.worker = CountWorker()\n"
        f"print(drain(engine.steps('o200k_base', 'hello ' * {LONG})), 'splintr' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [str(LONG + 1), "False"]
    assert run.stderr == ""


@pytest.mark.requirement("S3:nonblocking")
def test_a_worker_that_has_the_vocabulary_is_asked_for_all_but_short_texts(worker: CountWorker):
    made = default_engine()
    made.worker = worker
    counter = made.counter("o200k_base")
    counter(LONG_TEXT)
    asked = list[str]()
    count = worker.count

    def note(vocabulary: str, text: str) -> int | None:
        asked.append(text)
        return count(vocabulary, text)

    worker.count = note  # pyright: ignore[reportAttributeAccessIssue]
    try:
        short, longer = LONG_TEXT[:WORTH_ASKING], LONG_TEXT[: WORTH_ASKING + 1]
        assert counter(short) <= counter(longer)
    finally:
        worker.count = count  # pyright: ignore[reportAttributeAccessIssue]
    assert asked == [longer]


class BusyWorker(CountWorker):
    """Has every vocabulary and answers no question until it is released; to wait for it in `count` is an error."""

    def __init__(self) -> None:
        super().__init__(lambda: None)
        self.released = Event()
        self.asked = list[str]()

    def is_ready(self, vocabulary: str) -> bool:
        del vocabulary
        return True

    def count(self, vocabulary: str, text: str) -> int | None:
        raise AssertionError(f"an event loop would wait for {len(text)} characters of {vocabulary}")

    def steps(self, vocabulary: str, text: str) -> Steps[int | None]:
        self.asked.append(text)
        while not self.released.is_set():
            yield self.released
        return LOADED.counter(vocabulary)(text)


LOADED = default_engine(begins_short=False)


@pytest.mark.requirement("S3:nonblocking")
@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-2.1", "gpt-4", "gpt-4o"])
@pytest.mark.parametrize(
    "text",
    [
        "The invoices of March were rounded half up.\n" * 300,
        "油彩画の展覧会は三月に始まります。" * 600,
        "it'ſ splintr who counts this",
        "lone \ud83d surrogate, it'ſ",
    ],
    ids=["long", "foreign", "short", "surrogate"],
)
def test_no_step_of_a_count_waits_for_a_busy_worker(model: str, text: str):
    made, worker = default_engine(), BusyWorker()
    made.worker = worker
    steps = Meter(shipped(), engine=made).steps(text, model)
    while (awaited := next(steps)) is not worker.released:
        if awaited is not None:  # another vocabulary is loaded meanwhile, by a thread
            awaited.wait(1.0)
    worker.released.set()
    assert drain(steps) == Meter(shipped(), engine=LOADED).count(text, model)
    assert worker.asked


def test_many_short_texts_have_the_worker_load_the_vocabulary():
    made = default_engine()
    made.worker = CountWorker()
    counter = made.counter("o200k_base")
    for _ in range(MANY // len(LONG_TEXT[:4_000]) + 1):
        counter(LONG_TEXT[:4_000])
    assert eventually(lambda: made.worker is not None and made.worker.is_ready("o200k_base"))
    made.worker.close()
    assert made.loaded == {}


@pytest.mark.requirement("S3:nonblocking")
@pytest.mark.parametrize(
    "command",
    [
        ["/no/such/program"],
        [sys.executable, "-c", "pass"],
        [sys.executable, "-c", "import sys; sys.stdin.buffer.read(5); print('x')"],
        None,
    ],
)
def test_a_text_is_counted_here_where_the_worker_fails(engine: BytePairEngine, command: list[str] | None):
    made, starts = default_engine(), list[int]()

    def start() -> list[str] | None:
        starts.append(1)
        return command

    made.worker = CountWorker(start)
    expected = engine.counter("o200k_base")(LONG_TEXT)
    assert drain(made.steps("o200k_base", LONG_TEXT)) == expected
    assert made.counter("o200k_base")(LONG_TEXT) == expected
    assert list(made.loaded) == ["o200k_base"]
    assert [made.worker.count("cl100k_base", "hello") for _ in range(9)] == [None] * 9
    assert len(starts) == 3
    made.worker.close()


@pytest.mark.requirement("S3:nonblocking")
def test_a_question_that_the_worker_cannot_answer_is_counted_here(engine: BytePairEngine, worker: CountWorker):
    assert worker.count("no_such_vocabulary", "hello") is None
    assert worker.count("o200k_base", "hello") == 1


@pytest.mark.requirement("S3:nonblocking")
def test_a_worker_that_does_not_answer_is_killed(monkeypatch: pytest.MonkeyPatch, engine: BytePairEngine):
    monkeypatch.setattr(worker_module, "_PATIENCE", 0.2)
    made = CountWorker(lambda: [sys.executable, "-c", "import time; time.sleep(600)"])
    assert made.count("o200k_base", "hello") is None
    assert drain(made.steps("o200k_base", "hello")) is None
    assert made.process_id is None


@pytest.mark.requirement("S3:nonblocking")
def test_a_killed_worker_is_started_again(engine: BytePairEngine):
    made = CountWorker()
    assert made.count("cl100k_base", "hello") == 1
    first = made.process_id
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert made.count("cl100k_base", "hello") is None
    assert made.count("cl100k_base", "hello") == 1
    assert made.process_id not in (None, first)
    made.close()


@pytest.mark.requirement("S3:nonblocking")
def test_an_idle_worker_ends_and_comes_back():
    made = CountWorker(idle=0.05)
    assert made.count("cl100k_base", "hello") == 1
    assert eventually(lambda: made.process_id is None)
    assert not made.is_ready("cl100k_base")
    assert made.count("cl100k_base", "hello there") == 2
    made.close()
    assert made.process_id is None


@pytest.mark.requirement("S3:nonblocking")
@pytest.mark.skipif(sys.platform == "win32", reason="nothing is killed so there")
def test_the_worker_ends_when_its_parent_is_killed():
    script = (
        "import time\nfrom ullage.tokens import CountWorker\nworker = CountWorker()\n"
        "worker.count('cl100k_base', 'hello')\nprint(worker.process_id, flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_alive(child)
        parent.kill()
    assert eventually(lambda: not is_alive(child))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_counts_by_itself():
    script = (
        "import os\nfrom ullage.tokens import CountWorker\nworker = CountWorker()\n"
        "print(worker.count('cl100k_base', 'hello'), flush=True)\nchild = os.fork()\n"
        "if not child:\n    print(worker.count('cl100k_base', 'hello'), flush=True)\n    worker.close()\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\nprint(worker.count('cl100k_base', 'hello'))\nworker.close()\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.split() == ["1", "None", "1"]


@pytest.mark.requirement("S3:nonblocking")
def test_questions_are_answered_in_order_and_failures_said():
    def count(vocabulary: str, text: str) -> int:
        if vocabulary == "none":
            raise KeyError(vocabulary)
        return len(text)

    source = io.BytesIO(b"a\n\x02\0\0\0xy\x03\0\0\0\xed\xa0\x80\0\0\0\0none\n\0\0\0\0a\n\0\0\0\0")
    sink = io.BytesIO()
    answer_questions(source, sink, count)
    answers = sink.getvalue()
    assert [int.from_bytes(answers[at : at + 8], "little", signed=True) for at in range(0, 24, 8)] == [3, -1, 0]
    assert len(answers) == 24


def test_no_worker_is_started_by_a_program_that_is_no_interpreter(monkeypatch: pytest.MonkeyPatch):
    assert worker_command() is not None
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert worker_command() is None
