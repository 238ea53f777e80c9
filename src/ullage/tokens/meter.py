"""The meter: the single source of token numbers in Ullage.

`Meter` chooses the tokenizer for a model and caches its counts. Tokenizers (`bpe`, `estimate`), request framing
(`rules`) and the model table (`ullage.models`) are defined elsewhere.

`Memo` is the cache. Agents count the same messages repeatedly, and a look-up is hundreds of times cheaper than the
fastest tokenizer. It maps texts to values of any type, is bounded by the bytes of the texts it keeps, and is safe
between threads. It approximates least-recently-used order with two generations: an entry that is read moves into the
young generation, and when that is full the old generation is discarded. A hit in the young generation is one dictionary
look-up without a lock, and everything used within the last half of the capacity is always cached.

An `Anchor` is the input that a provider reported for a request. A longer request with the same beginning starts from
that number, so that only the added messages are counted. Each report also corrects the counts for that model
(`Corrections`). Nothing is stored beyond the process.
"""

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from sys import getsizeof
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from ullage.errors import InvalidArguments
from ullage.models import DEFAULT_MODEL, Match, ModelTable

from .bpe import default_engine
from .count import (
    PLAIN_RULES,
    ZERO,
    Count,
    Engine,
    Method,
    Steps,
    by_characters,
    drain,
    plain_match,
    total,
    unheard,
    unheard_match,
)

if TYPE_CHECKING:
    from ullage.messages import Request

    from .count import Reach, Rule, Weight
    from .estimate import Calibration

__all__ = ["Anchor", "Corrections", "Memo", "Meter", "Section"]

_LEAST_TOKENS = 50
"""Requests with fewer tokens are not used for corrections: they tell more about framing than about text."""
_LEARNING = 0.2
"""The weight of one report against all earlier ones."""
_FURTHEST = math.log(2)
"""A report that differs by more than a factor of two is a matching mistake and is ignored."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """The input tokens that a provider reported for a request."""

    request: "Request"
    tokens: int
    model: str
    """The id of the model's card."""

    def holds_for(self, request: "Request", model: str) -> bool:
        """Return whether `request` is the anchored request with messages appended, for the same model."""
        mine, theirs = self.request, request
        return (
            model == self.model
            and theirs.messages[: len(mine.messages)] == mine.messages
            and (theirs.system, theirs.tools) == (mine.system, mine.tools)
            and (theirs.tool_choice, theirs.output_schema) == (mine.tool_choice, mine.output_schema)
        )

    def weigh(self, weight: "Weight") -> Count:
        """Return the weight of a request for which `holds_for` is true, given that request's own `weight`."""
        tail = total(weight.messages[len(self.request.messages) :])
        known = Count(tokens=self.tokens, method=Method.ANCHORED, low=self.tokens, high=self.tokens)
        return replace(known + tail, method=Method.ANCHORED)


class Corrections:
    """Correction factors by model, learned from the counts that providers report. Safe between threads."""

    def __init__(self) -> None:
        self._logs: dict[str, float] = {}
        self._lock = threading.Lock()

    def learn(self, model: str, ours: Count, reported: int) -> None:
        """Record one report. `ours` is the count before any correction."""
        off = _off(ours, reported)
        if off is None:
            return
        with self._lock:
            before = self._logs.get(model)
            self._logs[model] = off if before is None else before + _LEARNING * (off - before)

    def refine(self, model: str, ours: Count, reported: int) -> None:
        """Record one report. `ours` is the count after the corrections now in force."""
        off = _off(ours, reported)
        if off is not None:
            with self._lock:
                self._logs[model] = self._logs.get(model, 0.0) + _LEARNING * off

    def factor(self, model: str) -> float:
        return math.exp(self._logs.get(model, 0.0))

    def apply(self, model: str, count: Count) -> Count:
        """Return the corrected count. Exact counts are unchanged."""
        factor = self.factor(model)
        if count.method is Method.EXACT or factor == 1.0:
            return count
        tokens = round(count.tokens * factor)
        return replace(
            count,
            tokens=tokens,
            low=min(tokens, math.floor(count.low * factor)),
            high=max(tokens, math.ceil(count.high * factor)),
        )


def _off(ours: Count, reported: int) -> float | None:
    """Return the logarithm of the error, or None where the report is not usable: an exact count differs for reasons
    other than the tokenizer."""
    if ours.method is Method.EXACT or min(ours.tokens, reported) < _LEAST_TOKENS:
        return None
    off = math.log(reported / ours.tokens)
    return off if abs(off) <= _FURTHEST else None


Value = TypeVar("Value")
_Text = str | tuple[int, int]

_ENTRY = 300
"""Bytes of overhead an entry has in addition to its text: the dictionary slot and a small value."""
_SHARE = 64
"""A text longer than the capacity divided by this is keyed by its length and hash alone, so that a few long texts do
not evict the rest. Python's hash is keyed and has 64 bits: the chance of confusing two texts is one in 10^19 a pair."""


class Memo(Generic[Value]):
    """Cache of values by text and section (a vocabulary or any other name), in at most `capacity` bytes.

    None cannot be cached: it means that there is no value. Safe between threads.
    """

    __slots__ = ("_half", "_lock", "_sections", "_size", "longest")

    def __init__(self, capacity: int = 32 * 1024 * 1024) -> None:
        self._half = capacity // 2
        self._lock = Lock()
        self._size = 0
        self._sections: dict[str, Section[Value]] = {}
        self.longest = capacity // _SHARE
        """The longest text, in characters, that is itself used as the key."""

    def section(self, name: str) -> "Section[Value]":
        """Return the section of one vocabulary. Keep the object, to avoid the look-up by name each time."""
        found = self._sections.get(name)
        return self._sections.setdefault(name, Section(self)) if found is None else found

    def get(self, name: str, text: str) -> Value | None:
        return self.section(name).get(text)

    def put(self, name: str, text: str, value: Value) -> None:
        self.section(name).put(text, value)

    def keep(self, section: "Section[Value]", key: _Text, value: Value) -> None:
        """Store a value in the young generation; when that is full, it becomes the old one."""
        with self._lock:
            size = self._size + _ENTRY + getsizeof(key)
            if size > self._half:
                for each in self._sections.values():
                    each.age()
                size = _ENTRY + getsizeof(key)
            self._size = size
            section.young[key] = value


class Section(Generic[Value]):
    """The cached texts of one vocabulary."""

    __slots__ = ("_longest", "_memo", "old", "young")

    def __init__(self, memo: Memo[Value]) -> None:
        self._memo = memo
        self._longest = memo.longest
        self.young: dict[_Text, Value] = {}
        self.old: dict[_Text, Value] = {}

    def get(self, text: str) -> Value | None:
        found = self.young.get(text)
        if found is None and (self.old or len(text) > self._longest):
            return self._get_late(text)
        return found

    def put(self, text: str, value: Value) -> None:
        self._memo.keep(self, text if len(text) <= self._longest else self._key(text), value)

    def age(self) -> None:
        self.old, self.young = self.young, {}

    def _get_late(self, text: str) -> Value | None:
        """Look up a text in the old generation, or a long text by its hash."""
        key = self._key(text)
        found = self.young.get(key)
        if found is None:
            found = self.old.get(key)
            if found is not None:
                self._memo.keep(self, key, found)
        return found

    def _key(self, text: str) -> _Text:
        return text if len(text) <= self._longest else (len(text), hash(text))


_UNKNOWN = "unknown"
"""The tokenizer name used for a model that has no public tokenizer."""
_STAND_IN = "o200k_base"
"""The vocabulary used in place of one that is not public or not available on this machine."""
_STAND_IN_BAND = 0.3
_POOR_BAND = 0.2
"""The band of a calibration for which a vocabulary is missing: its mean error was 8.5 % on recorded requests."""
_LONG = 4_096
"""Characters of short texts counted before a step is yielded."""
_NAMES_KEPT = 1_000
_PARTS_KEPT = 4_096
"""Texts of which the ends are kept for `Meter.count_joined`."""
_SHORT_PART = 16
"""Characters of a part below which its ends are not kept: it is counted with its neighbours."""


@dataclass(frozen=True, slots=True)
class _Ends:
    """A text, cut at its first and its last seam."""

    head: str
    inner: int
    """Tokens between the two seams."""
    tail: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class _Scale:
    """The objects needed to count for one model, looked up once."""

    match: Match
    tokenizer: str
    seen: Section[Count]
    counter: Callable[[str], int] | None
    """The model's own tokenizer; None where counts are not exact."""
    ends: dict[str, _Ends | None] | None
    """By text, None for one without a seam; None where the counts of a text's parts do not add up."""


class Meter:
    """Counts the tokens of texts and requests, and caches the counts of texts.

    Safe between threads; one a process is enough, and `ullage.app.meter()` returns it.

        meter().count("Hello, world", "gpt-4o").tokens
    """

    def __init__(
        self,
        models: ModelTable,
        *,
        engine: Engine | None = None,
        memo: Memo[Count] | None = None,
        calibrations: "Mapping[str, Calibration] | None" = None,
        reaches: "Mapping[str, Reach] | None" = None,
    ) -> None:
        """Create a meter.

        Args:
            models: The table in which model names are looked up.
            engine: Counts exactly with public vocabularies; the default engine where None.
            memo: The cache of counts; a new one where None.
            calibrations: By tokenizer, in place of those that ship with the package.
            reaches: By request class, in place of those fitted to all recorded requests.
        """
        self.models = models
        self._reaches = reaches
        self._calibrations = calibrations
        self._engine = default_engine() if engine is None else engine
        self._memo = Memo[Count]() if memo is None else memo
        self._corrections = Corrections()
        self._scales: dict[str, _Scale] = {}

    def count(self, text: str, model: str = DEFAULT_MODEL) -> Count:
        """Count the tokens of a plain text. A text counted before costs one look-up.

        Raises:
            UnsupportedModel: The name is neither in the table nor a plain rule.
        """
        scale = self._scales.get(model) or self._scale(model)
        known = scale.seen.get(text)
        if known is None:
            known = self._at_once(scale, text)
        return known if known.method is Method.EXACT and not scale.match.is_guess else self._corrected(scale, known)

    def _corrected(self, scale: _Scale, count: Count) -> Count:
        """Return a count with what providers reported for the model. For a version that is not in the table it is an
        estimate, whatever it is for the version counted instead."""
        if not scale.match.is_guess:
            return self._corrections.apply(scale.match.card.id, count)
        guess = self._corrections.apply(_learns_as(scale.match), replace(count, method=Method.ESTIMATED))
        reach = _STAND_IN_BAND * guess.tokens
        low, high = math.floor(guess.tokens - reach), math.ceil(guess.tokens + reach)
        return replace(guess, low=max(0, min(guess.low, low)), high=max(guess.high, high))

    def count_joined(self, texts: Sequence[str], model: str = DEFAULT_MODEL) -> Count:
        """Count the texts joined, as `count("".join(texts), model)` does.

        Where the model's vocabulary splits texts, only the few characters around each joint are counted, so that a text
        composed of known ones costs a look-up for each. For any other model the joined text is counted.

        Raises:
            UnsupportedModel: The name is neither in the table nor a plain rule.
        """
        scale = self._scales.get(model) or self._scale(model)
        if scale.ends is None:
            return self.count("".join(texts), model)
        total, joint = 0, ""
        for text in texts:
            ends = self._ends(scale, scale.ends, text) if len(text) > _SHORT_PART else None
            if ends is None:
                joint += text
            else:
                total += self._count_known(scale, joint + ends.head) + ends.inner
                joint = ends.tail
        count = Count.exact(total + self._count_known(scale, joint))
        scale.seen.put("".join(texts), count)
        return count

    def _ends(self, scale: _Scale, known: dict[str, _Ends | None], text: str) -> _Ends | None:
        if text in known:
            return known[text]
        # Imported here because most counts are of single texts.
        from .bpe.stepwise_count import find_seams

        seams, ends = find_seams(text), None
        if seams is not None:
            head, tail = text[: seams[0]], text[seams[1] :]
            outer = self._count_known(scale, head) + self._count_known(scale, tail)
            ends = _Ends(head, self._count_known(scale, text) - outer, tail)
        if len(known) >= _PARTS_KEPT:
            known.clear()
        known[text] = ends
        return ends

    def _count_known(self, scale: _Scale, text: str) -> int:
        return (scale.seen.get(text) or self._at_once(scale, text)).tokens

    def match(self, model: str) -> Match:
        """Return the match for a name: a model, or a plain rule such as `character_count_div_4`."""
        return plain_match(model) or unheard_match(model) or self.models.find(model)

    def steps(self, text: str, model: str = DEFAULT_MODEL) -> Steps[Count]:
        """Count as `count` does, in steps of a few milliseconds: `await patiently(meter.steps(text, model))`."""
        scale = self._scale(model)
        return self._corrected(scale, (yield from self._raw_steps(scale, text)))

    def weigh(self, request: "Request", model: str | None = None) -> "Weight":
        """Return the weight of a request, part by part, as the model's provider counts it.

        Args:
            request: The request in neutral parts.
            model: The model to count for; the request's own where None.

        Raises:
            InvalidArguments: Neither `model` nor the request names a model.
            UnsupportedModel: The name is neither in the table nor a plain rule.
        """
        scale = self._scale_for(request, model)
        return self._weigh(scale, request).map(partial(self._corrected, scale))

    def weigh_steps(self, request: "Request", model: str | None = None) -> "Steps[Weight]":
        """Weigh as `weigh` does, in steps: texts not in the cache are counted first, so that weighing only looks them
        up."""
        scale, held = self._scale_for(request, model), 0
        for text in self._texts(scale.match, request):
            if scale.seen.get(text) is not None:
                continue
            yield from self._raw_steps(scale, text)
            held += len(text)
            if held > _LONG:
                held = 0
                yield
        return self.weigh(request, model)

    def _texts(self, match: Match, request: "Request") -> list[str]:
        """Return the texts that the rule will count, found by running it with a function that only collects them."""
        found: list[str] = []

        def note(text: str) -> Count:
            found.append(text)
            return Count.exact(1)

        _rule_of(match)(request, match, note)
        return found

    def observe(self, request: "Request", reported: int, model: str | None = None) -> Anchor:
        """Record the provider's own count of a request, as a correction for this model.

        Returns:
            An anchor for longer requests with the same beginning.

        Raises:
            InvalidArguments: `reported` is below 1, or no model is named.
        """
        scale = self._scale_for(request, model)
        if reported < 1:
            raise InvalidArguments(f"a provider reports at least one token, not `{reported}`")
        self._corrections.learn(_learns_as(scale.match), self._weigh(scale, request).total, reported)
        return Anchor(request, reported, scale.match.card.id)

    def learn(self, ours: Count, reported: int, model: str) -> None:
        """Record the provider's own count of something this meter has just weighed, as a correction for this model."""
        self._corrections.refine(_learns_as(self._scale(model).match), ours, reported)

    def anchored(self, request: "Request", anchor: Anchor, model: str | None = None) -> Count:
        """Return the weight of a request, based on the anchor where it applies (`Anchor.holds_for`), else counted in
        full."""
        weight, card = self.weigh(request, model), self._scale_for(request, model).match.card
        return anchor.weigh(weight) if anchor.holds_for(request, card.id) else weight.total

    def _scale(self, model: str) -> _Scale:
        found = self._scales.get(model)
        if found is None:
            found = self._new_scale(self.match(model))
            if len(self._scales) >= _NAMES_KEPT:
                self._scales.clear()
            self._scales[model] = found
        return found

    def _new_scale(self, match: Match) -> _Scale:
        tokenizer = match.card.tokenizer or _UNKNOWN
        is_exact = self._engine.available(tokenizer)
        return _Scale(
            match=match,
            tokenizer=tokenizer,
            seen=self._memo.section(tokenizer),
            counter=self._engine.counter(tokenizer) if is_exact else None,
            ends={} if is_exact and self._engine.adds_up(tokenizer) else None,
        )

    def _scale_for(self, request: "Request", model: str | None) -> _Scale:
        name = model or request.model
        if name is None:
            raise InvalidArguments("the request names no model", suggestion="say which: count_request(body, model=…)")
        return self._scale(name)

    def _weigh(self, scale: _Scale, request: "Request") -> "Weight":
        from .count import reach_of

        weight = _rule_of(scale.match)(
            request, scale.match, lambda text: scale.seen.get(text) or self._at_once(scale, text)
        )
        if scale.match.is_guess:
            return weight
        reaches = self._reaches
        if reaches is None:
            # Imported here because the table is needed only to weigh requests.
            from .fitted_bands import REACHES as reaches  # noqa: N811 - a local name
        return replace(weight, reach=reach_of(request, scale.match, weight.total.method, reaches))

    def _raw_steps(self, scale: _Scale, text: str) -> Steps[Count]:
        known = scale.seen.get(text) if text else ZERO
        if known is None:
            known = yield from self._tokenize(scale.tokenizer, text)
            scale.seen.put(text, known)
        return known

    def _at_once(self, scale: _Scale, text: str) -> Count:
        if not text:
            return ZERO
        counter = scale.counter
        count = drain(self._tokenize(scale.tokenizer, text)) if counter is None else Count.exact(counter(text))
        scale.seen.put(text, count)
        return count

    def _tokenize(self, tokenizer: str, text: str) -> Steps[Count]:
        if tokenizer in PLAIN_RULES:
            return by_characters(text, PLAIN_RULES[tokenizer])
        if self._engine.available(tokenizer):
            return Count.exact((yield from self._engine.steps(tokenizer, text)))
        # Imported here because most texts are counted exactly and do not need it.
        from .estimate import CALIBRATIONS, ELDERS

        calibration = (CALIBRATIONS if self._calibrations is None else self._calibrations).get(tokenizer)
        if calibration is not None:
            return (yield from self._count_calibrated(calibration, text))
        elder = ELDERS.get(tokenizer)
        if elder is not None and self._engine.available(elder.vocabulary):
            return elder.count(text, (yield from self._engine.steps(elder.vocabulary, text)))
        stand_in = yield from self._engine.steps(_STAND_IN, text)
        return Count.within(stand_in, _STAND_IN_BAND, Method.ESTIMATED)

    def _count_calibrated(self, calibration: "Calibration", text: str) -> Steps[Count]:
        from .estimate import VOCABULARIES, measure_steps

        if all(map(self._engine.available, VOCABULARIES)):
            for vocabulary in VOCABULARIES:  # loaded in steps, where one is not yet
                yield from self._engine.steps(vocabulary, "")
            return calibration.count((yield from measure_steps(text, self._engine.steps)))
        count = calibration.count((yield from measure_steps(text, self._count_poorly)))
        return Count.within(count.tokens, _POOR_BAND, Method.ESTIMATED)

    def _count_poorly(self, vocabulary: str, text: str) -> Steps[int]:
        """Count with the first calibration vocabulary where the engine lacks the one asked for."""
        from .estimate import VOCABULARIES

        return self._engine.steps(vocabulary if self._engine.available(vocabulary) else VOCABULARIES[0], text)


def _learns_as(match: Match) -> str:
    """Return the name under which reports of a provider are kept."""
    return unheard(match.asked) if match.is_guess else match.card.id


def _rule_of(match: Match) -> "Rule":
    # Imported here because it loads the framing of every provider, and most callers never weigh a request.
    from .rules import rule_of

    return rule_of(match)
