"""Where was the prompt cache lost, and why?

A provider keeps what it has read for a few minutes, and reads it again at a tenth of the price as long as the prompt
begins the same way. Told from what was reported; a provider that reports no cache loses none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Literal

from ullage.clients import Call, Conversation

__all__ = ["Loss", "Reason", "losses", "together"]

Reason = Literal["pause", "compaction", "model", "change"]
"""`change` is any that the file does not tell: another system prompt, other tools, a message that was edited."""
_LEAST = 5_000
"""Tokens that are worth speaking of."""
_KEPT_FOR = timedelta(minutes=4.5)
"""After which most providers forget, less the time that an answer takes: times are those of its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    call: int
    """The number of the call, from 1."""
    tokens: int
    """That had been read before and were read anew."""
    reason: Reason
    pause: timedelta | None


def losses(conversation: Conversation) -> list[Loss]:
    marks = [mark.place for mark in conversation.compactions]
    calls = conversation.calls
    found = (
        _loss(number, before, call, compacted=any(before.place < mark <= call.place for mark in marks))
        for number, (before, call) in enumerate(pairwise(calls), 2)
    )
    return [loss for loss in found if loss is not None]


def _loss(number: int, before: Call, call: Call, *, compacted: bool) -> Loss | None:
    tokens = _anew(before, call)
    if tokens < _LEAST:
        return None
    pause = call.at - before.at if call.at and before.at else None
    return Loss(call=number, tokens=tokens, reason=_reason(before, call, pause, compacted=compacted), pause=pause)


def _anew(before: Call, call: Call) -> int:
    """Nothing where the call before had not been put into a cache, or more than half of it came from there."""
    if before.usage is None or call.usage is None or call.usage.cache_read is None:
        return 0
    if not (before.usage.cache_read or before.usage.cache_write):
        return 0
    shared = min(before.usage.input or 0, call.usage.input or 0)
    return shared - call.usage.cache_read if 2 * call.usage.cache_read < shared else 0


def _reason(before: Call, call: Call, pause: timedelta | None, *, compacted: bool) -> Reason:
    if compacted:
        return "compaction"
    if before.model != call.model:
        return "model"
    return "pause" if pause is not None and pause > _KEPT_FOR else "change"


def together(found: Sequence[Loss], reason: Reason) -> tuple[int, int]:
    """How often for that reason, and how many tokens in all."""
    own = [loss.tokens for loss in found if loss.reason == reason]
    return len(own), sum(own)
