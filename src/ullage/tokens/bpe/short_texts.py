"""Counting before the engine is loaded.

Splintr takes 0.1 to 0.3 s and some 40 MB to load a vocabulary, and holds the interpreter's lock meanwhile. A process
that counts a few definitions and replies is done sooner without it: short texts are counted in Python, over ranks that
are mapped and not loaded, until one is long or until there were many. A process with a worker (`worker`) asks that for
long texts instead, and never loads the engine itself unless the worker fails.
"""

from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from .fallback import PythonTokenizer

if TYPE_CHECKING:
    from .worker import CountWorker

__all__ = ["LONG", "MANY", "ShortTexts"]

LONG = 16_384
"""Characters of a text for which the engine is loaded."""
MANY = 500_000
"""Characters of all texts after which a thread loads it: counting them took as long as loading takes."""
_WORTH_ASKING = 4_096
"""Characters of a text that a worker which has loaded the vocabulary counts sooner, its way there and back included."""


class ShortTexts:
    """Counts short texts without the engine, and everything with it once it is loaded."""

    __slots__ = ("_load", "_loaded", "_loading", "_name", "_seen", "_tokenizer", "_worker")

    def __init__(
        self,
        tokenizer: PythonTokenizer,
        load: Callable[[], Callable[[str], int]],
        *,
        name: str = "",
        worker: "Callable[[], CountWorker | None]" = lambda: None,
    ) -> None:
        """`load` gives the engine's counter; it may take long. `worker` is what a text is given to instead, by the name
        of the vocabulary."""
        self._tokenizer = tokenizer
        self._load = load
        self._name = name
        self._worker = worker
        self._loaded: Callable[[str], int] | None = None
        self._loading: Thread | None = None
        self._seen = 0

    def count(self, text: str) -> int:
        if self._loaded is not None:
            return self._loaded(text)
        counted = self.try_count(text)
        if counted is not None:
            return counted
        worker = self._worker()
        counted = None if worker is None else worker.count(self._name, text)
        if counted is not None:
            return counted
        self._loaded = self._load()
        return self._loaded(text)

    def try_count(self, text: str) -> int | None:
        """Tokens of a text that is counted in Python, for which nothing is waited; None where another must count it:
        the engine is loaded, the text is long, a worker counts it sooner, or splintr counts it otherwise."""
        if self._loaded is not None or len(text) > LONG:
            return None
        worker = self._worker() if len(text) > _WORTH_ASKING else None
        if worker is not None and worker.is_ready(self._name):
            return None
        counted = self._tokenizer.count_surely(text)
        if counted is not None:
            self._note(len(text))
        return counted

    def _note(self, characters: int) -> None:
        self._seen += characters
        if self._seen <= MANY:
            return
        worker = self._worker()
        if worker is not None:
            self._seen = 0
            worker.prepare(self._name)
        elif self._loading is None:
            self._loading = Thread(target=self._load_aside, daemon=True)
            self._loading.start()

    def _load_aside(self) -> None:
        with suppress(Exception):  # the next long text meets it again, and raises it
            self._loaded = self._load()
