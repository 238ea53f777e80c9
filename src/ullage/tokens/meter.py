"""The one meter: every token number in Ullage comes from here. It decides which tokenizer speaks for a model and
remembers what it has counted. How a tokenizer works, how a provider frames a request and which models exist, others
know.

Agents count the same messages again and again, and a look-up is hundreds of times cheaper than the best tokenizer.
Bounded by the bytes of the texts it holds; safe between threads. It knows nothing of tokens: a value for a text.

Two generations stand for an order of use: what is asked for moves into the young one, and when that is full the old
one goes. A hit in the young generation is one dictionary look-up without a lock, and what was used within the last half
of the capacity is always there.

An anchor is the reported input of a request; a longer request that begins the same way weighs that, and what follows is
all that must be counted. Each report also corrects the meter for that model. Nothing is stored beyond the process.
"""

import math
import threading
from collections.abc import Callable, Mapping
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
    unheard_match,
)

if TYPE_CHECKING:
    from ullage.messages import Request

    from .count import Reach, Rule, Weight
    from .estimate import Calibration

__all__ = ["Anchor", "Corrections", "Memo", "Meter", "Section"]

_LEAST_TOKENS = 50
"""Shorter requests say more about framing than about text, and teach nothing."""
_LEARNING = 0.2
"""The weight of one report against all before it."""
_FURTHEST = math.log(2)
"""A report further off than twice or half is a mistake in matching, not a correction."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a provider reported for a request."""

    request: "Request"
    tokens: int
    model: str
    """The id of the card that was asked."""

    def holds_for(self, request: "Request", model: str) -> bool:
        """Whether `request` is this one with messages added at its end, to the same model."""
        mine, theirs = self.request, request
        return (
            model == self.model
            and theirs.messages[: len(mine.messages)] == mine.messages
            and (theirs.system, theirs.tools) == (mine.system, mine.tools)
            and (theirs.tool_choice, theirs.output_schema) == (mine.tool_choice, mine.output_schema)
        )

    def weigh(self, weight: "Weight") -> Count:
        """The weight of a request it holds for, given that request's own weight."""
        tail = total(weight.messages[len(self.request.messages) :])
        known = Count(tokens=self.tokens, method=Method.ANCHORED, low=self.tokens, high=self.tokens)
        return replace(known + tail, method=Method.ANCHORED)


class Corrections:
    """How far our counts of each model have been from its provider's; safe between threads."""

    def __init__(self) -> None:
        self._logs: dict[str, float] = {}
        self._lock = threading.Lock()

    def learn(self, model: str, ours: Count, reported: int) -> None:
        """Takes one report into account, on what was weighed without corrections."""
        off = _off(ours, reported)
        if off is None:
            return
        with self._lock:
            before = self._logs.get(model)
            self._logs[model] = off if before is None else before + _LEARNING * (off - before)

    def refine(self, model: str, ours: Count, reported: int) -> None:
        """The same, on what was weighed with the corrections that hold now."""
        off = _off(ours, reported)
        if off is not None:
            with self._lock:
                self._logs[model] = self._logs.get(model, 0.0) + _LEARNING * off

    def factor(self, model: str) -> float:
        return math.exp(self._logs.get(model, 0.0))

    def apply(self, model: str, count: Count) -> Count:
        """The count as experience has it; exact ones are left alone."""
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
    """How far off, or None where it teaches nothing: an exact count differs for other reasons than the tokenizer."""
    if ours.method is Method.EXACT or min(ours.tokens, reported) < _LEAST_TOKENS:
        return None
    off = math.log(reported / ours.tokens)
    return off if abs(off) <= _FURTHEST else None


Value = TypeVar("Value")
_Text = str | tuple[int, int]

_ENTRY = 300
"""Bytes that an entry costs beside its text: its place in the dictionary, a small value."""
_SHARE = 64
"""A text above this part of the capacity is held by its length and hash alone, so that a few long ones do not drive out
the rest. Python's hash is keyed and of 64 bits: to take one text for another is a chance of one in 10^19 a pair."""


class Memo(Generic[Value]):
    """Values for texts, by vocabulary (or any other name), in at most `capacity` bytes. None is no value."""

    __slots__ = ("_half", "_lock", "_sections", "_size", "longest")

    def __init__(self, capacity: int = 32 * 1024 * 1024) -> None:
        self._half = capacity // 2
        self._lock = Lock()
        self._size = 0
        self._sections: dict[str, Section[Value]] = {}
        self.longest = capacity // _SHARE
        """Characters of a text that is held itself."""

    def section(self, name: str) -> "Section[Value]":
        """The part of one vocabulary; keep it, to spare each look-up the name."""
        found = self._sections.get(name)
        return self._sections.setdefault(name, Section(self)) if found is None else found

    def get(self, name: str, text: str) -> Value | None:
        return self.section(name).get(text)

    def put(self, name: str, text: str, value: Value) -> None:
        self.section(name).put(text, value)

    def keep(self, section: "Section[Value]", key: _Text, value: Value) -> None:
        """Into the young generation; when that is full, it becomes the old one."""
        with self._lock:
            size = self._size + _ENTRY + getsizeof(key)
            if size > self._half:
                for each in self._sections.values():
                    each.age()
                size = _ENTRY + getsizeof(key)
            self._size = size
            section.young[key] = value


class Section(Generic[Value]):
    """The texts of one vocabulary."""

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
        """From the old generation, or by a long text's hash."""
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
"""Stands for the tokenizer of a model that has no public one."""
_STAND_IN = "o200k_base"
"""Speaks for a vocabulary that is not public, or not to be had on this machine."""
_STAND_IN_BAND = 0.3
_POOR_BAND = 0.2
"""Of a calibration that lacks a vocabulary: its mean error was 8.5 % on recorded requests."""
_LONG = 4_096
"""Characters of short texts after which there is a step."""
_NAMES_KEPT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class _Scale:
    """What is needed to count for one model, looked up once."""

    match: Match
    tokenizer: str
    seen: Section[Count]
    counter: Callable[[str], int] | None
    """Where the model's own tokenizer is at hand; None where counts are not exact."""


class Meter:
    """Counts texts and requests, and remembers. Safe between threads; one a process is enough."""

    def __init__(
        self,
        models: ModelTable,
        *,
        engine: Engine | None = None,
        memo: Memo[Count] | None = None,
        calibrations: "Mapping[str, Calibration] | None" = None,
        reaches: "Mapping[str, Reach] | None" = None,
    ) -> None:
        """`reaches` takes the place of those that were fitted to all recorded requests."""
        self.models = models
        self._reaches = reaches
        self._calibrations = calibrations
        self._engine = default_engine() if engine is None else engine
        self._memo = Memo[Count]() if memo is None else memo
        self._corrections = Corrections()
        self._scales: dict[str, _Scale] = {}

    def count(self, text: str, model: str = DEFAULT_MODEL) -> Count:
        """The tokens of a plain text. A text seen before costs a look-up."""
        scale = self._scales.get(model) or self._scale(model)
        known = scale.seen.get(text)
        if known is None:
            known = self._at_once(scale, text)
        return known if known.method is Method.EXACT else self._corrections.apply(scale.match.card.id, known)

    def match(self, model: str) -> Match:
        """What a name stands for: a model, or a plain rule in a model's place."""
        return plain_match(model) or unheard_match(model) or self.models.find(model)

    def steps(self, text: str, model: str = DEFAULT_MODEL) -> Steps[Count]:
        """The same count in steps of a few milliseconds: `await patiently(meter.steps(text, model))`."""
        scale = self._scale(model)
        return self._corrections.apply(scale.match.card.id, (yield from self._raw_steps(scale, text)))

    def weigh(self, request: "Request", model: str | None = None) -> "Weight":
        """What a request weighs, part by part, as the model's provider counts it."""
        scale = self._scale_for(request, model)
        return self._weigh(scale, request).map(partial(self._corrections.apply, scale.match.card.id))

    def weigh_steps(self, request: "Request", model: str | None = None) -> "Steps[Weight]":
        """The same weight in steps: every text not seen before is counted first, so that weighing only looks it up."""
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
        """What the rule will want counted, found by letting it weigh the request with an empty scale."""
        found: list[str] = []

        def note(text: str) -> Count:
            found.append(text)
            return Count.exact(1)

        _rule_of(match)(request, match, note)
        return found

    def observe(self, request: "Request", reported: int, model: str | None = None) -> Anchor:
        """Takes the provider's own count of a request: an anchor for longer ones, and a lesson for this model."""
        scale = self._scale_for(request, model)
        if reported < 1:
            raise InvalidArguments(f"a provider reports at least one token, not `{reported}`")
        self._corrections.learn(scale.match.card.id, self._weigh(scale, request).total, reported)
        return Anchor(request, reported, scale.match.card.id)

    def learn(self, ours: Count, reported: int, model: str) -> None:
        """Takes the provider's own count of something that this meter has just weighed, as a lesson for this model."""
        self._corrections.refine(self._scale(model).match.card.id, ours, reported)

    def anchored(self, request: "Request", anchor: Anchor, model: str | None = None) -> Count:
        """The weight of a request from an anchor on, or from nothing where the anchor does not hold for it."""
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
        return _Scale(
            match=match,
            tokenizer=tokenizer,
            seen=self._memo.section(tokenizer),
            counter=self._engine.counter(tokenizer) if self._engine.available(tokenizer) else None,
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
        reaches = _fitted_reaches() if self._reaches is None else self._reaches
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
        # Most texts are counted exactly and never need these.
        from .estimate import CALIBRATIONS, ELDERS

        calibration = (CALIBRATIONS if self._calibrations is None else self._calibrations).get(tokenizer)
        if calibration is not None:
            return (yield from self._calibrated(calibration, text))
        elder = ELDERS.get(tokenizer)
        if elder is not None and self._engine.available(elder.vocabulary):
            return elder.count(text, (yield from self._engine.steps(elder.vocabulary, text)))
        stand_in = yield from self._engine.steps(_STAND_IN, text)
        return Count.within(stand_in, _STAND_IN_BAND, Method.ESTIMATED)

    def _calibrated(self, calibration: "Calibration", text: str) -> Steps[Count]:
        from .estimate import VOCABULARIES, measure_steps

        if all(map(self._engine.available, VOCABULARIES)):
            for vocabulary in VOCABULARIES:  # loaded in steps, where one is not yet
                yield from self._engine.steps(vocabulary, "")
            return calibration.count((yield from measure_steps(text, self._engine.steps)))
        count = calibration.count((yield from measure_steps(text, self._count_poorly)))
        return Count.within(count.tokens, _POOR_BAND, Method.ESTIMATED)

    def _count_poorly(self, vocabulary: str, text: str) -> Steps[int]:
        """For an engine that has not all the vocabularies of a calibration: the first stands for the others."""
        from .estimate import VOCABULARIES

        return self._engine.steps(vocabulary if self._engine.available(vocabulary) else VOCABULARIES[0], text)


def _fitted_reaches() -> "Mapping[str, Reach]":
    # A table that only those need who weigh requests.
    from .fitted_bands import REACHES

    return REACHES


def _rule_of(match: Match) -> "Rule":
    # Every provider's framing comes with it, and most who count never weigh a request.
    from .rules import rule_of

    return rule_of(match)
