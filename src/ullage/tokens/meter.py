"""How many tokens is this, to that model?

The one meter: every token number in Ullage comes from here. It decides which tokenizer speaks for a model and remembers
what it has counted. How a tokenizer works, how a provider frames a request and which models exist, others know.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from ullage.errors import InvalidArguments
from ullage.models import DEFAULT_MODEL, Match, ModelTable

from .anchor import Anchor, Corrections
from .bpe import default_engine
from .count import ZERO, Count, Method
from .engine import Engine
from .memo import Memo, Section
from .plain import PLAIN_RULES, by_characters, plain_match
from .steps import Steps, drain
from .unheard import unheard_match

if TYPE_CHECKING:
    from ullage.messages import Request

    from .calibrated import Calibration
    from .reach import Reach
    from .weight import Rule, Weight

__all__ = ["Meter"]

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
        from .reach import reach_of

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
        from .calibrated import CALIBRATIONS
        from .elder import ELDERS

        calibration = (CALIBRATIONS if self._calibrations is None else self._calibrations).get(tokenizer)
        if calibration is not None:
            return (yield from self._calibrated(calibration, text))
        elder = ELDERS.get(tokenizer)
        if elder is not None and self._engine.available(elder.vocabulary):
            return elder.count(text, (yield from self._engine.steps(elder.vocabulary, text)))
        stand_in = yield from self._engine.steps(_STAND_IN, text)
        return Count.within(stand_in, _STAND_IN_BAND, Method.ESTIMATED)

    def _calibrated(self, calibration: "Calibration", text: str) -> Steps[Count]:
        from .calibrated import VOCABULARIES, measure_steps

        if all(map(self._engine.available, VOCABULARIES)):
            for vocabulary in VOCABULARIES:  # loaded in steps, where one is not yet
                yield from self._engine.steps(vocabulary, "")
            return calibration.count((yield from measure_steps(text, self._engine.steps)))
        count = calibration.count((yield from measure_steps(text, self._count_poorly)))
        return Count.within(count.tokens, _POOR_BAND, Method.ESTIMATED)

    def _count_poorly(self, vocabulary: str, text: str) -> Steps[int]:
        """For an engine that has not all the vocabularies of a calibration: the first stands for the others."""
        from .calibrated import VOCABULARIES

        return self._engine.steps(vocabulary if self._engine.available(vocabulary) else VOCABULARIES[0], text)


def _fitted_reaches() -> "Mapping[str, Reach]":
    # A table that only those need who weigh requests.
    from .fitted import REACHES

    return REACHES


def _rule_of(match: Match) -> "Rule":
    # Every provider's framing comes with it, and most who count never weigh a request.
    from .rules import rule_of

    return rule_of(match)
