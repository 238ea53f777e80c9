"""How is a text counted exactly, with the vocabulary of the model?

The engine beneath the meter: splintr's tokenizers, each loaded when first asked for, or the pure-Python fallback where
splintr has no wheel. Who counts for long comes to count the quicker way (`gears`). Splintr is imported here and nowhere
else. It holds the interpreter's lock while it works, so a thread would not help an event loop: long texts are counted
in steps (`stitch`).
"""

import re
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from threading import Lock, Thread
from time import sleep
from typing import TYPE_CHECKING

from ..steps import Steps, drain
from .fallback import CARRIED, load_python
from .gears import PATIENCE, Counter, Gears
from .quick import SHORT, has_quick, is_short, load_quick
from .short_texts import ShortTexts
from .split import Split
from .stitch import Tokenizer, count_steps
from .vocabulary import VOCABULARIES, Vocabulary

if TYPE_CHECKING:
    from splintr import AnyTokenizer

__all__ = ["BytePairEngine", "SplintrTokenizer", "default_engine", "load_splintr", "mended"]

_PIECES_REACH = 16_384
_WHOLE_REACH = 8_192
"""Bytes in one step: splintr does 4 MB/s at the worst (one giant piece), and 2 to 5 MB/s where it merges over the
whole text, so that a step of either takes a few milliseconds."""
_LONG = 1_000_000
"""Characters above which no text is handed over in one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplintrTokenizer:
    """One of splintr's vocabularies, loaded."""

    inner: "AnyTokenizer"
    split: Split | None
    reach: int
    leads: bool
    """Whether it puts a space before every text."""
    count: Counter
    gears: Gears | None
    """What `count` goes through, where there is a quicker way than splintr's."""

    def encode(self, text: str, *, inside: bool = False) -> Sequence[int]:
        if inside and self.leads:
            # The space and the line end are a token each: no token of these vocabularies holds a line end and more.
            return self.inner.encode_ordinary("\n" + text)[2:]
        return self.inner.encode_ordinary(text)

    def width(self, token: int) -> int:
        spelling = self.inner.decode_token_bytes(token)
        return len(spelling if self.split else spelling.replace(_BLOCK, b" "))

    def bytes_of(self, text: str) -> bytes:
        return (text if self.split else text.replace(_BLOCK.decode(), " ")).encode()


_LET_THROUGH = 0.01
_GLANCE = 0.001
"""Seconds between two looks at whether a vocabulary is loaded."""
_BLOCK = "▁".encode()
"""How SentencePiece spells a space; to its vocabularies the two are one."""


def _reach(vocabulary: Vocabulary) -> int:
    if not vocabulary.sliced:
        return sys.maxsize
    return _PIECES_REACH if vocabulary.split else _WHOLE_REACH


def load_splintr(vocabulary: Vocabulary, patience: float = PATIENCE) -> SplintrTokenizer:
    from splintr import Tokenizer as Splintr

    inner = Splintr.from_pretrained(vocabulary.name)
    # Tables are built at the first word that is no token: now, and by the call that lets other threads run meanwhile.
    inner.encode_batch_flat(["xqzptlk"])
    # SentencePiece vocabularies have more such tokens than they name, and gain nothing by the quicker call.
    literals = {special[:2] for special in inner.special_tokens()} if inner.family == "BPE" else {""}
    count = _splintr_counter(inner, sorted(literals))
    gears = Gears(count, partial(load_quick, vocabulary, count), patience=patience) if has_quick(vocabulary) else None
    return SplintrTokenizer(
        inner=inner,
        split=vocabulary.split,
        reach=_reach(vocabulary),
        leads=vocabulary.leads,
        count=gears.count if gears else count,
        gears=gears,
    )


def _splintr_counter(inner: "AnyTokenizer", literals: Sequence[str]) -> Counter:
    """Counts by `encode_flat`, which is the quicker call but takes a special token written out in the text for the
    token itself. `literals` are how such tokens begin: a text with none of them cannot hold one. The empty one is in
    every text."""
    # The rarer of the two characters is found sooner. The marks that are set around every text are no part of it.
    rarer = tuple(("|" if "|" in literal else literal[:1], literal) for literal in literals)
    flat, ordinary, marks = inner.encode_flat, inner.encode_ordinary, len(inner.encode_ordinary(""))

    def count(text: str) -> int:
        for rare, literal in rarer:
            if rare in text and literal in text:
                return len(ordinary(text)) - marks
        return len(flat(text)) // 4 - marks

    return count


@dataclass(frozen=True, slots=True)
class BytePairEngine:
    """Counts with whatever vocabularies its loader knows. Safe between threads; a vocabulary is loaded once."""

    load: Callable[[Vocabulary], Tokenizer]
    vocabularies: Mapping[str, Vocabulary]
    loaded: dict[str, Tokenizer] = field(default_factory=dict[str, Tokenizer])
    begins_short: bool = False
    """Whether short texts are counted without loading what is carried (`short_texts`)."""
    _counters: dict[str, Callable[[str], int]] = field(default_factory=dict[str, Callable[[str], int]])
    _short: dict[str, ShortTexts] = field(default_factory=dict[str, ShortTexts])
    _lock: Lock = field(default_factory=Lock)

    def available(self, vocabulary: str) -> bool:
        return vocabulary in self.vocabularies

    def counter(self, vocabulary: str) -> Callable[[str], int]:
        found = self._counters.get(vocabulary)
        if found is None:
            short = self._short_texts(vocabulary)
            found = self._counters[vocabulary] = _mending(
                self._load_counter(vocabulary) if short is None else short.count
            )
        return found

    def _load_counter(self, vocabulary: str) -> Callable[[str], int]:
        tokenizer, composed = self.tokenizer(vocabulary), self.vocabularies[vocabulary].composed
        return _composing(tokenizer) if composed else _at_once(tokenizer)

    def _short_texts(self, vocabulary: str) -> ShortTexts | None:
        facts = self.vocabularies[vocabulary]
        found = self._short.get(facts.name)
        if found is None and self.begins_short and facts.name in CARRIED and facts.name not in self.loaded:
            with self._lock:
                made = ShortTexts(load_python(facts), partial(self._load_counter, vocabulary))
                found = self._short.setdefault(facts.name, made)
        return found

    def steps(self, vocabulary: str, text: str) -> Steps[int]:
        short = self._short_texts(vocabulary)
        if short is not None and short.takes(text):
            # The longest takes some 10 ms.
            return self.counter(vocabulary)(text)
        tokenizer = yield from self._loaded_aside(vocabulary)
        if self.vocabularies[vocabulary].composed:
            text = yield from _changed(_composed, text, _STARTER)
        try:
            return (yield from count_steps(tokenizer, text))
        except UnicodeEncodeError:
            text = yield from _changed(mended, text, _NOT_IN_A_PAIR)
            return (yield from self.steps(vocabulary, text))

    def _loaded_aside(self, vocabulary: str) -> Steps[Tokenizer]:
        """The vocabulary, loaded by a thread while others have their turn: splintr lets them for most of the time."""
        if self.vocabularies[vocabulary].name not in self.loaded:
            loading = Thread(target=self._try_to_load, args=(vocabulary,), daemon=True)
            loading.start()
            while loading.is_alive():
                loading.join(_GLANCE)
                yield
        return self.tokenizer(vocabulary)

    def _try_to_load(self, vocabulary: str) -> None:
        # Splintr holds everybody up for some 40 ms: what is being answered just now is let through before that.
        sleep(_LET_THROUGH)
        with suppress(Exception):  # whoever counts meets it again, and raises it
            self.tokenizer(vocabulary)

    def tokenizer(self, vocabulary: str) -> Tokenizer:
        """The vocabulary, loaded. Call it ahead of time to spare the first count the load (0.1 to 0.5 s)."""
        facts = self.vocabularies[vocabulary]
        found = self.loaded.get(facts.name)
        if found is not None:
            return found
        with self._lock:
            if facts.name not in self.loaded:
                self.loaded[facts.name] = self.load(facts)
            return self.loaded[facts.name]

    def shift(self, vocabulary: str) -> bool:
        """Makes the quickest way of counting ready now, for one who knows that there is much to count. False if the
        usual one is all there is."""
        tokenizer = self.tokenizer(vocabulary)
        return isinstance(tokenizer, SplintrTokenizer) and tokenizer.gears is not None and tokenizer.gears.shift()


def default_engine(patience: float = PATIENCE) -> BytePairEngine:
    """Splintr with all vocabularies, loaded when texts are long or many; without splintr, Python with those the package
    carries. After `patience` seconds of counting the quicker way is made ready; 0 for one who has much to count."""
    if find_spec("splintr") is not None:
        return BytePairEngine(partial(load_splintr, patience=patience), VOCABULARIES, begins_short=patience > 0)
    return BytePairEngine(load_python, {name: VOCABULARIES[name] for name in CARRIED})


def mended(text: str) -> str:
    """The text with surrogates joined where two make a character, and else replaced by U+FFFD, as tiktoken does."""
    return _LONE.sub("\ufffd", text).encode("utf-16", "surrogatepass").decode("utf-16")


_LONE = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")
_NOT_IN_A_PAIR = re.compile("(?<![\ud800-\udbff])|(?![\udc00-\udfff])")
_STARTER = re.compile("[\x00-\x7f\u4e00-\u9fff\uac00-\ud7a3]")
"""Characters that never compose with what stands before them."""


def _at_once(tokenizer: Tokenizer) -> Callable[[str], int]:
    """In one call, except for a long text: there, and earlier where merging goes over the whole text, slices are faster
    or as fast, need no memory for all tokens at once, and let a Ctrl-C in. Once the quicker way counts, whatever is too
    long for it goes in slices, which are short enough."""
    gears = tokenizer.gears if isinstance(tokenizer, SplintrTokenizer) else None
    most = tokenizer.reach if tokenizer.split is None else _LONG

    def goes_whole(text: str) -> bool:
        return len(text) <= most and (gears is None or not gears.shifted or is_short(text))

    def count(text: str) -> int:
        # Most texts are short: they are spared the question.
        if len(text) <= SHORT or goes_whole(text):
            return tokenizer.count(text)
        return drain(count_steps(tokenizer, text))

    return count


def _mending(plain: Callable[[str], int]) -> Callable[[str], int]:
    def count(text: str) -> int:
        try:
            return plain(text)
        except UnicodeEncodeError:
            return plain(mended(text))

    return count


def _composing(tokenizer: Tokenizer) -> Callable[[str], int]:
    count = _at_once(tokenizer)
    return lambda text: count(_composed(text))


def _composed(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _changed(change: Callable[[str], str], text: str, between: re.Pattern[str]) -> Steps[str]:
    """The text with a change made in steps, which is the same as at once if cut where `between` matches."""
    parts: list[str] = []
    start = 0
    while start < len(text):
        cut = between.search(text, start + _PIECES_REACH)
        end = cut.start() if cut else len(text)
        parts.append(change(text[start:end]))
        start = end
        yield
    return "".join(parts)
