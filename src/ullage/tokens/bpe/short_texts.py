"""Counting before the engine is loaded.

Splintr takes 0.1 to 0.3 s and some 40 MB to load a vocabulary, and holds the interpreter's lock meanwhile. A process
that counts a few definitions and replies is done sooner without it: short texts are counted in Python, over ranks that
are mapped and not loaded, until one is long or until there were many.
"""

from collections.abc import Callable
from contextlib import suppress
from threading import Thread

from .fallback import PythonTokenizer

__all__ = ["LONG", "MANY", "ShortTexts"]

LONG = 16_384
"""Characters of a text for which the engine is loaded."""
MANY = 500_000
"""Characters of all texts after which a thread loads it: counting them took as long as loading takes."""


class ShortTexts:
    """Counts short texts without the engine, and everything with it once it is loaded."""

    __slots__ = ("_load", "_loaded", "_loading", "_seen", "_tokenizer")

    def __init__(self, tokenizer: PythonTokenizer, load: Callable[[], Callable[[str], int]]) -> None:
        """`load` gives the engine's counter; it may take long."""
        self._tokenizer = tokenizer
        self._load = load
        self._loaded: Callable[[str], int] | None = None
        self._loading: Thread | None = None
        self._seen = 0

    def count(self, text: str) -> int:
        if self._loaded is not None:
            return self._loaded(text)
        if self.takes(text):
            counted = self._tokenizer.count_surely(text)
            if counted is not None:
                self._seen += len(text)
                if self._seen > MANY and self._loading is None:
                    self._loading = Thread(target=self._load_aside, daemon=True)
                    self._loading.start()
                return counted
        self._loaded = self._load()
        return self._loaded(text)

    def takes(self, text: str) -> bool:
        """Whether the text is counted here, if every character of it is known."""
        return self._loaded is None and len(text) <= LONG

    def _load_aside(self) -> None:
        with suppress(Exception):  # the next long text meets it again, and raises it
            self._loaded = self._load()
