"""Exact counts with the vocabulary of the model.

The engine used by the meter: splintr's tokenizers, each loaded on first use, or the pure-Python fallback where splintr
has no wheel. Splintr is imported here and nowhere else. It keeps the interpreter's lock while it works, so a thread
would not relieve an event loop: long texts are counted in steps (`stepwise_count`), or in another process (`worker`),
whose program is `main`.
"""

import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from threading import Event, Lock, Thread
from typing import IO, TYPE_CHECKING, TypeVar

from ..count import Steps, drain
from .python_bpe import CARRIED, ShortTexts, load_python
from .split import VOCABULARIES, Split, Vocabulary

if TYPE_CHECKING:
    from splintr import AnyTokenizer

    from .stepwise_count import Tokenizer
    from .worker import CountWorker

__all__ = [
    "BytePairEngine",
    "SplintrTokenizer",
    "answer_questions",
    "default_engine",
    "load_splintr",
    "main",
    "repair_surrogates",
]

Counted = TypeVar("Counted", int, int | None)

_PIECES_REACH = 16_384
_WHOLE_REACH = 8_192
"""Bytes in one step: splintr processes 4 MB/s at worst (one giant piece), and 2 to 5 MB/s where it merges over the
whole text, so that a step of either takes a few milliseconds."""
_AT_ONCE = 4_096
"""The longest text, in characters, that is counted in one step."""
_LONG = 1_000_000
"""Characters above which a text is never counted in one call."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SplintrTokenizer:
    """A loaded vocabulary of splintr."""

    inner: "AnyTokenizer"
    split: Split | None
    reach: int
    leads: bool
    """Whether it puts a space before each text."""
    count: Callable[[str], int]

    def encode(self, text: str, *, inside: bool = False) -> Sequence[int]:
        if inside and self.leads:
            # The space and the line end are one token each: no token of these vocabularies contains a line end and
            # more.
            return self.inner.encode_ordinary("\n" + text)[2:]
        return self.inner.encode_ordinary(text)

    def width(self, token: int) -> int:
        spelling = self.inner.decode_token_bytes(token)
        return len(spelling if self.split else spelling.replace(_BLOCK, b" "))

    def bytes_of(self, text: str) -> bytes:
        return (text if self.split else text.replace(_BLOCK.decode(), " ")).encode()


_BLOCK = "▁".encode()
"""SentencePiece's spelling of a space; its vocabularies treat the two as equal."""


def load_splintr(vocabulary: Vocabulary) -> SplintrTokenizer:
    from splintr import Tokenizer as Splintr

    inner = Splintr.from_pretrained(vocabulary.name)
    # Encodes a first word that is not a token, which builds the tables now, in a call that lets other threads run.
    inner.encode_batch_flat(["xqzptlk"])
    # SentencePiece vocabularies have more special tokens than they list, and gain nothing from the faster call.
    literals = {special[:2] for special in inner.special_tokens()} if inner.family == "BPE" else {""}
    return SplintrTokenizer(
        inner=inner,
        split=vocabulary.split,
        reach=(_PIECES_REACH if vocabulary.split else _WHOLE_REACH) if vocabulary.sliced else sys.maxsize,
        leads=vocabulary.leads,
        count=_splintr_counter(inner, sorted(literals)),
    )


def _splintr_counter(inner: "AnyTokenizer", literals: Sequence[str]) -> Callable[[str], int]:
    """Return a counter that uses `encode_flat`, the faster call, which takes a special token written out in the text
    for the token itself. `literals` are the beginnings of such tokens: a text without any of them is safe. The empty
    literal is in every text."""
    # Searching for the rarer of the two characters is faster. The marks around every text are not counted.
    rarer = tuple(("|" if "|" in literal else literal[:1], literal) for literal in literals)
    flat, ordinary, marks = inner.encode_flat, inner.encode_ordinary, len(inner.encode_ordinary(""))

    def count(text: str) -> int:
        for rare, literal in rarer:
            if rare in text and literal in text:
                return len(ordinary(text)) - marks
        return len(flat(text)) // 4 - marks

    return count


@dataclass(slots=True, eq=False, repr=False)
class BytePairEngine:
    """Counts with the vocabularies that its loader knows. Safe between threads; a vocabulary is loaded once."""

    load: "Callable[[Vocabulary], Tokenizer]"
    vocabularies: Mapping[str, Vocabulary]
    loaded: "dict[str, Tokenizer]" = field(default_factory=dict[str, "Tokenizer"])
    begins_short: bool = False
    """Whether short texts are counted without loading their vocabulary, where there is a quicker way (`ShortTexts`)."""
    worker: "CountWorker | None" = None
    """A worker that counts in place of a vocabulary that would have to be loaded; for a process that serves others. Can
    be set and unset at any time."""
    _counters: dict[str, Callable[[str], int]] = field(default_factory=dict[str, Callable[[str], int]])
    _short: dict[str, ShortTexts] = field(default_factory=dict[str, ShortTexts])
    _lock: Lock = field(default_factory=Lock)

    def available(self, vocabulary: str) -> bool:
        return vocabulary in self.vocabularies

    def adds_up(self, vocabulary: str) -> bool:
        facts = self.vocabularies.get(vocabulary)
        # Normalising could compose a character with one beyond the seam.
        return facts is not None and facts.split is not None and not facts.composed

    def counter(self, vocabulary: str) -> Callable[[str], int]:
        found = self._counters.get(vocabulary)
        if found is None:
            short = self._short_texts(vocabulary)
            if short is not None:
                found = self._counters[vocabulary] = _mending(short.count)
            elif self._worker_for(vocabulary) is not None:
                return partial(self._count_elsewhere, vocabulary)
            else:
                found = self._counters[vocabulary] = _mending(self._load_counter(vocabulary))
        return found

    def _load_counter(self, vocabulary: str) -> Callable[[str], int]:
        count = _at_once(self.tokenizer(vocabulary))
        return (lambda text: count(_normalize(text))) if self.vocabularies[vocabulary].composed else count

    def _short_texts(self, vocabulary: str) -> ShortTexts | None:
        facts = self.vocabularies[vocabulary]
        found = self._short.get(facts.name)
        if found is not None or not self.begins_short or facts.name in self.loaded:
            return found
        is_carried = facts.name in CARRIED
        # A process with a worker loads no vocabulary of splintr itself, not even a quick one.
        if not is_carried and (not facts.quick or self.worker is not None):
            return None
        with self._lock:
            found = self._short.get(facts.name)
            if found is None:
                quick = replace(facts, name=facts.quick)
                found = self._short[facts.name] = ShortTexts(
                    load_python(facts).count_surely if is_carried else self.load(quick).count,
                    partial(self._load_counter, vocabulary),
                    name=facts.name,
                    worker=partial(self._worker_for, vocabulary),
                )
        return found

    def _worker_for(self, vocabulary: str) -> "CountWorker | None":
        """Return the worker if it should count: vocabularies that are loaded here, or load at once, are used here."""
        facts = self.vocabularies[vocabulary]
        return None if facts.light or facts.name in self.loaded else self.worker

    def _count_elsewhere(self, vocabulary: str, text: str) -> int:
        worker = self._worker_for(vocabulary)
        counted = None if worker is None else worker.count(self.vocabularies[vocabulary].name, text)
        if counted is None:
            self.tokenizer(vocabulary)
            return self.counter(vocabulary)(text)
        return counted

    def steps(self, vocabulary: str, text: str) -> Steps[int]:
        short = self._short_texts(vocabulary)
        # The longest takes some 10 ms.
        counted = None if short is None else _mending(short.try_count)(text)
        if counted is not None:
            return counted
        if len(text) <= _AT_ONCE and self.vocabularies[vocabulary].name in self.loaded:
            return self.counter(vocabulary)(text)
        worker = self._worker_for(vocabulary)
        if worker is not None:
            counted = yield from worker.steps(self.vocabularies[vocabulary].name, text)
            if counted is not None:
                return counted
        tokenizer = yield from self._loaded_aside(vocabulary)
        if self.vocabularies[vocabulary].composed:
            text = yield from _change_in_steps(_normalize, text, _STARTER)
        try:
            return (yield from _count_steps(tokenizer, text))
        except UnicodeEncodeError:
            text = yield from _change_in_steps(repair_surrogates, text, _NOT_IN_A_PAIR)
            return (yield from self.steps(vocabulary, text))

    def _loaded_aside(self, vocabulary: str) -> "Steps[Tokenizer]":
        """Load a vocabulary in a thread, with yields meanwhile: splintr releases the lock for most of the time."""
        if self.vocabularies[vocabulary].name not in self.loaded:
            done = Event()
            Thread(target=self._try_to_load, args=(vocabulary, done), daemon=True).start()
            while not done.is_set():
                yield done
        return self.tokenizer(vocabulary)

    def _try_to_load(self, vocabulary: str, done: Event) -> None:
        try:
            with suppress(Exception):  # the count that follows meets the error again, and raises it
                self.tokenizer(vocabulary)
        finally:
            done.set()

    def tokenizer(self, vocabulary: str) -> "Tokenizer":
        """Return the loaded vocabulary. Call it ahead of time to save the first count the load (0.1 to 0.5 s)."""
        facts = self.vocabularies[vocabulary]
        found = self.loaded.get(facts.name)
        if found is not None:
            return found
        with self._lock:
            if facts.name not in self.loaded:
                self.loaded[facts.name] = self.load(facts)
            return self.loaded[facts.name]


def default_engine(*, begins_short: bool = True) -> BytePairEngine:
    """Return the default engine: splintr with all vocabularies, loaded when texts are long or many; without splintr,
    Python with the vocabularies that ship with the package.

    Args:
        begins_short: Whether short texts are counted before splintr is loaded. Pass False in a process that will count
            much: the first text then loads splintr.
    """
    if find_spec("splintr") is not None:
        return BytePairEngine(load_splintr, VOCABULARIES, begins_short=begins_short)
    return BytePairEngine(load_python, {name: VOCABULARIES[name] for name in CARRIED})


def repair_surrogates(text: str) -> str:
    """Return the text with surrogate pairs joined and unpaired ones replaced by U+FFFD, as tiktoken does."""
    return re.sub(_LONE, "\ufffd", text).encode("utf-16", "surrogatepass").decode("utf-16")


# Patterns, compiled when first used: that takes a few milliseconds.
_LONE = "[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]"
_NOT_IN_A_PAIR = "(?<![\ud800-\udbff])|(?![\udc00-\udfff])"
_STARTER = "[\x00-\x7f\u4e00-\u9fff\uac00-\ud7a3]"
"""Characters that never compose with the character before them."""


def _at_once(tokenizer: "Tokenizer") -> Callable[[str], int]:
    """Return a counter that counts in one call, except for long texts. For these, and for shorter ones where merging
    covers the whole text, slices are as fast or faster, need no memory for all tokens at once, and allow a Ctrl-C."""
    most, plain = tokenizer.reach if tokenizer.split is None else _LONG, tokenizer.count
    return lambda text: plain(text) if len(text) <= most else drain(_count_steps(tokenizer, text))


def _count_steps(tokenizer: "Tokenizer", text: str) -> Steps[int]:
    # Imported here because short texts do not need it.
    from .stepwise_count import count_steps

    return count_steps(tokenizer, text)


def _mending(plain: Callable[[str], Counted]) -> Callable[[str], Counted]:
    def count(text: str) -> Counted:
        try:
            return plain(text)
        except UnicodeEncodeError:
            return plain(repair_surrogates(text))

    return count


def _normalize(text: str) -> str:
    if text.isascii():
        return text
    from unicodedata import normalize

    return normalize("NFC", text)


def _change_in_steps(change: Callable[[str], str], text: str, between: str) -> Steps[str]:
    """Apply a change in steps; the result is the same as at once if the text is cut where `between` matches."""
    parts, pattern = list[str](), re.compile(between)
    start = 0
    while start < len(text):
        cut = pattern.search(text, start + _PIECES_REACH)
        end = cut.start() if cut else len(text)
        parts.append(change(text[start:end]))
        start = end
        yield
    return "".join(parts)


def answer_questions(source: IO[bytes], sink: IO[bytes], count: Callable[[str, str], int]) -> None:
    """Answer every request of the worker's parent until there are no more.

    A request is the vocabulary's name and a line end, then the text in UTF-8 (unpaired surrogates included) in parts,
    each after its length in four bytes, then a length of zero. An answer is the count in eight bytes, or -1 for a
    failure.

    Args:
        source: The pipe with the requests.
        sink: The pipe for the answers.
        count: Takes the name of a vocabulary and a text.
    """
    while line := source.readline():
        parts = list[bytes]()
        while size := int.from_bytes(source.read(4), "little"):
            parts.append(source.read(size))
        try:
            counted = count(line[:-1].decode(), b"".join(parts).decode("utf-8", "surrogatepass"))
        except Exception:  # noqa: BLE001 - the text is then counted by the process that asked, which meets the error
            counted = -1
        sink.write(counted.to_bytes(8, "little", signed=True))
        sink.flush()


def main() -> None:  # pragma: no cover - in a process of its own
    """Answer requests from standard input. Anything else that is printed is discarded, so that it cannot mix with the
    answers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is meant for the gateway, whose end ends this process too
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    engine = default_engine(begins_short=False)
    answer_questions(source, sink, lambda vocabulary, text: engine.counter(vocabulary)(text))
