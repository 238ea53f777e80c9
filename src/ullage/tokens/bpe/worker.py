"""Worker process that counts long texts for a gateway.

Splintr keeps the interpreter's lock while it loads a vocabulary: 20 to 150 ms for most, 400 ms for Gemma's. In a
gateway every call of every server would wait for that. So a gateway counts long texts in a separate process, which also
keeps the 40 MB of a vocabulary out of the gateway. The process is started for the first long text and ended after
`IDLE` seconds without requests. It reads requests from a pipe and ends when the pipe is closed, hence also when the
gateway is killed. If it fails in any way, the answer is None and the text is counted in the gateway.

The process's program, and the format of requests and answers, are in `engine`.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, Queue
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from ..count import Steps

if TYPE_CHECKING:
    from subprocess import Popen

__all__ = ["CountWorker", "worker_command"]

IDLE = 180.0
"""Seconds without a request after which the process is ended."""
_PATIENCE = 120.0
"""Seconds after which a process that does not answer is killed. A gigabyte is counted in less."""
_MOST_FAILURES = 3
"""Failures after which no other process is started."""
_PART = 1 << 20
"""Characters that are encoded at once, in a millisecond or two."""
_LEAVING = 1.0
"""Seconds in which a process must end after it is told to."""
_PASSED_ON = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Environment variables that an interpreter may need to start. The others may contain secrets and are not passed on."""
_PROGRAM = "import sys; sys.path[:0] = sys.argv[1:]; from ullage.tokens.bpe.engine import main; main()"


def worker_command() -> list[str] | None:
    """Return the command that starts a worker; None where no interpreter or no splintr is available."""
    spec = find_spec("splintr")
    if not sys.executable or getattr(sys, "frozen", False) or spec is None or spec.origin is None:
        return None
    folders = dict.fromkeys(str(path) for path in (Path(__file__).parents[3], Path(spec.origin).parents[1]))
    # Without `site`, a start takes 10 ms instead of 30.
    return [sys.executable, "-I", "-S", "-c", _PROGRAM, *folders]


@dataclass(slots=True)
class _Question:
    vocabulary: str
    text: str
    answered: Event = field(default_factory=Event)
    count: int | None = None


class CountWorker:
    """Counts in another process, one request at a time. Safe between threads."""

    def __init__(self, command: Callable[[], Sequence[str] | None] = worker_command, *, idle: float = IDLE) -> None:
        self._command = command
        self._idle = idle
        self._lock = Lock()
        self._questions: Queue[_Question | None] = Queue()
        self._thread: Thread | None = None
        self._process: Popen[bytes] | None = None
        self._loaded: set[str] = set()
        self._failures = 0
        self._owner = os.getpid()

    def is_ready(self, vocabulary: str) -> bool:
        """Return whether a process is running that has loaded the vocabulary."""
        return vocabulary in self._loaded and self._owner == os.getpid()

    @property
    def process_id(self) -> int | None:
        """The process's id; None where none runs."""
        process = self._process
        return None if process is None else process.pid

    def prepare(self, vocabulary: str) -> None:
        """Load the vocabulary in the process, without waiting for it."""
        self._ask(vocabulary, "")

    def count(self, vocabulary: str, text: str) -> int | None:
        """Return the tokens of the text; None where the process failed. Blocks the calling thread."""
        question = self._ask(vocabulary, text)
        if not question.answered.wait(_PATIENCE):
            self._kill()
            question.answered.wait()
        return question.count

    def steps(self, vocabulary: str, text: str) -> Steps[int | None]:
        """Count as `count` does, for an event loop: the steps themselves never block."""
        question, end = self._ask(vocabulary, text), time.monotonic() + _PATIENCE
        while not question.answered.is_set():
            yield question.answered
            if time.monotonic() > end:
                self._kill()
        return question.count

    def close(self) -> None:
        """End the process; a request in progress is answered with None."""
        if self._owner != os.getpid():
            return
        with self._lock:
            thread = self._thread
            if thread is not None:
                self._questions.put(None)
        if thread is not None:
            self._kill()
            thread.join(_LEAVING)

    def _ask(self, vocabulary: str, text: str) -> _Question:
        question = _Question(vocabulary, text)
        if self._owner == os.getpid():  # a forked process has neither the thread nor a pipe of its own
            with self._lock:
                if self._failures < _MOST_FAILURES and self._has_thread():
                    self._questions.put(question)
                    return question
        question.answered.set()
        return question

    def _has_thread(self) -> bool:
        if self._thread is None:
            thread = Thread(target=self._serve, name="ullage-count-worker", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no thread is to be had, or the interpreter is ending
                return False
            self._thread = thread
        return True

    def _kill(self) -> None:
        process = self._process
        if process is not None:
            process.kill()

    def _serve(self) -> None:
        """Send the requests to a process, as long as there are any. Runs in the thread."""
        while True:
            try:
                question = self._questions.get(timeout=self._idle)
            except Empty:
                question = None
            if question is None:
                self._end_process()
                with self._lock:
                    if self._questions.empty():
                        self._thread = None
                        return
                continue
            try:
                question.count = self._exchange(question)
            except Exception:  # noqa: BLE001 - whatever is wrong with the process, this one can count
                self._failures += 1
                self._end_process()
            question.answered.set()

    def _exchange(self, question: _Question) -> int | None:
        process = self._process or self._start()
        sink, source = process.stdin, process.stdout
        assert sink is not None
        assert source is not None
        sink.write(question.vocabulary.encode() + b"\n")
        for start in range(0, len(question.text), _PART):
            part = question.text[start : start + _PART].encode("utf-8", "surrogatepass")
            sink.write(len(part).to_bytes(4, "little"))
            sink.write(part)
        sink.write(bytes(4))
        sink.flush()
        answer = source.read(8)
        if len(answer) < 8:
            raise OSError("the worker process has ended")
        count = int.from_bytes(answer, "little", signed=True)
        if count < 0:
            return None
        self._loaded.add(question.vocabulary)
        return count

    def _start(self) -> "Popen[bytes]":
        import subprocess

        command = self._command()
        if command is None:
            raise OSError("there is nothing to start")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        return self._process

    def _end_process(self) -> None:
        process, self._process = self._process, None
        self._loaded.clear()
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):  # what was not yet written has no reader
                if pipe is not None:
                    pipe.close()
        from subprocess import TimeoutExpired

        try:
            process.wait(_LEAVING)
        except TimeoutExpired:
            process.kill()
            process.wait()
