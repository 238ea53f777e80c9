"""What does a history weigh, by what the provider said of it the last time?

A report is what the provider counted for a request. What was only added to since weighs that, and what was added is all
that is weighed. Of what was changed since, the report tells still how our scale and the provider's differ. Reports that
cannot be right are passed over: some leave out what was cached, some count a request twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ullage.messages import Thinking
from ullage.models import Usage
from ullage.tokens import Count, Method

from .entry import Entry
from .fixed import Fixed
from .weighing import Scale

__all__ = ["Anchored", "observe", "summed"]

_JUMP = 1.6
"""A report that is so many times what was expected, or less than that part of it, is a mistake."""
_NEAR = 1.1
"""The band of our own weight, so many times: a report within it is believed whatever was expected."""
_REPLY_BAND = 12
"""Tokens by which an answer differed as output and as input: in 19 of 20 answers of one recorded session of Claude."""
_LESSON = 1_000
"""Tokens under which a growth says more of framing than of text."""
_SPAN = 0.25
"""The part of a request by which another must be smaller for the two to tell what grows from what is added once."""


def summed(entries: Sequence[Entry]) -> Count:
    """What entries weigh together; as `total` of their weights, for a thousand of them before every call of a model."""
    weights = [entry.weight for entry in entries]
    methods = {weight.method for weight in weights}
    return Count(
        tokens=sum([weight.tokens for weight in weights]),
        method=next((method for method in reversed(Method) if method in methods), Method.EXACT),
        low=sum([weight.low for weight in weights]),
        high=sum([weight.high for weight in weights]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchored:
    """A report of the provider's, and what it was of."""

    tokens: Count
    """Of what was sent, as reported, and of the answer that came back."""
    fixed: Fixed
    entries: tuple[Entry, ...]
    """What was sent, and the answer."""
    own: Count
    """What we weigh for both."""
    least: tuple[int, int]
    """The smallest request that was reported on with the same system prompt and tools: ours, and the provider's."""

    def weigh(self, fixed: Fixed, entries: Sequence[Entry]) -> Count:
        """What a history weighs as the provider counts."""
        sent = len(self.entries)
        if fixed == self.fixed and tuple(entries[:sent]) == self.entries:
            grown = self.tokens + summed(entries[sent:])
            return Count(tokens=grown.tokens, method=Method.ANCHORED, low=grown.low, high=grown.high)
        return self._carried_over(fixed, entries)

    def _carried_over(self, fixed: Fixed, entries: Sequence[Entry]) -> Count:
        """Along the line on which the reports lie; as unsure as our own weight of what is new or no longer there."""
        own = fixed.total + summed(entries)
        tokens = max(0, round(self.tokens.tokens + self.slope * (own.tokens - self.own.tokens)))
        moved = _moved(self.entries, entries) / max(1, own.tokens)
        low, high = (round(min(1.0, moved) * reach) for reach in (own.tokens - own.low, own.high - own.tokens))
        return Count(tokens=tokens, method=Method.CALIBRATED, low=max(0, tokens - low), high=tokens + high)

    @property
    def slope(self) -> float:
        """What the provider counts for a token of ours, as far as our band allows; the rest is added once."""
        ours, reported = self.least
        own = self.own.tokens
        told = own - ours > _SPAN * own
        slope = (self.tokens.tokens - reported) / (own - ours) if told else self.tokens.tokens / max(1, own)
        return min(max(slope, self.own.low / max(1, own)), self.own.high / max(1, own))


def observe(  # noqa: PLR0913 - what was sent, what came back, and what was known before
    scale: Scale,
    usage: Usage,
    *,
    fixed: Fixed,
    sent: Sequence[Entry],
    answer: Sequence[Entry] = (),
    before: Anchored | None = None,
) -> Anchored | None:
    """What to go by from now on, after a call of the model: a new anchor, or the one before where the report cannot be
    right or there is none. What grew since the one before is a lesson for the scale."""
    own, reported = fixed.total + summed(sent), usage.input
    if reported is None or not _is_plausible(reported, own, before.weigh(fixed, sent) if before else None):
        return before
    if before is not None:
        _teach(scale, before, reported, fixed, sent)
    told = Count(tokens=reported, method=Method.ANCHORED, low=reported, high=reported)
    least = (own.tokens, reported)
    return Anchored(
        tokens=told + _reply(scale, usage, answer),
        fixed=fixed,
        entries=(*sent, *answer),
        own=own + summed(answer),
        least=min(least, before.least) if before and before.fixed == fixed else least,
    )


def _is_plausible(reported: int, own: Count, expected: Count | None) -> bool:
    if own.low / _NEAR <= reported <= own.high * _NEAR:
        return True
    if expected is None:
        # Nothing is known yet of what the provider adds out of sight: only too little can be told.
        return reported * _JUMP >= own.low
    return expected.tokens / _JUMP <= reported <= expected.tokens * _JUMP


def _reply(scale: Scale, usage: Usage, answer: Sequence[Entry]) -> Count:
    """The answer as input, by its output where that lies in our band: thinking that is not sent back is no input, and
    an answer that was broken off reports little. With the model's own vocabulary we know better: an answer that was
    held to a schema may have been made of more tokens than it is read as."""
    own, output = summed(answer), usage.output
    if scale.has_vocabulary or output is None:
        return own
    thinks = any(isinstance(part, Thinking) for entry in answer for part in entry.message.parts)
    said = output if thinks else output - (usage.reasoning or 0)
    said += sum(scale.around(entry.message) for entry in answer)
    if not own.low <= said <= own.high:
        return own
    return Count(tokens=said, method=Method.ANCHORED, low=max(0, said - _REPLY_BAND), high=said + _REPLY_BAND)


def _teach(scale: Scale, before: Anchored, reported: int, fixed: Fixed, sent: Sequence[Entry]) -> None:
    """What grew since, as the provider counts it and as we do."""
    known = len(before.entries)
    if fixed == before.fixed and tuple(sent[:known]) == before.entries:
        ours = summed(sent[known:])
        if ours.tokens >= _LESSON:
            scale.learn(ours, max(1, reported - before.tokens.tokens))


def _moved(before: Sequence[Entry], now: Sequence[Entry]) -> int:
    """What the entries weigh that are in one and not in the other."""
    was, there = {id(entry) for entry in before}, {id(entry) for entry in now}
    gone = (entry.weight.tokens for entry in before if id(entry) not in there)
    new = (entry.weight.tokens for entry in now if id(entry) not in was)
    return sum(gone) + sum(new)
