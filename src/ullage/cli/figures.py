"""Which figures of a session are worth showing?

Everything that the report prints and its JSON holds, found once. Nothing is printed here.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise

from ullage import app
from ullage.clients import Call
from ullage.context import DEFAULTS, Change, limits_of, mask, shown_percent, shown_tokens
from ullage.models import cost_of

from .advice import Advice, Findings, advise
from .burden import Piece, ToolBurden, by_tool, pieces
from .cached import Loss, losses
from .sessions import Weighed

__all__ = ["Figures", "figures_of", "masked"]

_LEAST = Decimal("0.005")
"""Dollars that are worth a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    costliest: tuple[Piece, ...]
    """Every piece, by what was carried."""
    burdens: tuple[ToolBurden, ...]
    lost: tuple[Loss, ...]
    marks: tuple[int, ...]
    """For each compaction, the place of the first call after it; the number of calls where there is none."""
    drops: tuple[str, ...]
    """What each compaction let go, in words."""
    read: int | None
    """Tokens of input, over all calls that were reported."""
    cached: int | None
    """That of them came from a cache."""
    dollars: Decimal | None
    """None where some call has no usage or no price."""
    advice: tuple[Advice, ...]

    @property
    def spent(self) -> str:
        """One line of words."""
        if not self.read:
            return ""
        cached = f", {shown_percent(self.cached, self.read, 1)} of them cached" if self.cached else ""
        money = "" if not self.dollars or self.dollars < _LEAST else f" · ${self.dollars:,.2f} at list prices"
        return f"{shown_tokens(self.read)} tokens read{cached}{money}"


def figures_of(weighed: Weighed) -> Figures:
    conversation = weighed.conversation
    found = pieces(conversation, weighed.turns, weighed.scale.count)
    burdens, lost = by_tool(found), losses(conversation)
    marks = _marks(weighed)
    used = [call.usage for call in conversation.calls if call.usage is not None]
    return Figures(
        costliest=tuple(sorted(found, key=lambda one: (-one.carried, -one.tokens, one.place))),
        burdens=tuple(burdens),
        lost=tuple(lost),
        marks=tuple(marks),
        drops=tuple(_drops(weighed, marks)),
        read=sum(one.input or 0 for one in used) if used else None,
        cached=sum(one.cache_read or 0 for one in used) if used else None,
        dollars=_dollars(conversation.calls, weighed.model),
        advice=tuple(
            advise(
                Findings(
                    file=weighed.file,
                    usage=weighed.usage,
                    pieces=found,
                    burdens=burdens,
                    masked=masked(weighed),
                    lost=lost,
                    between=[later - mark for mark, later in pairwise(marks)],
                )
            )
        ),
    )


def _marks(weighed: Weighed) -> list[int]:
    places = [call.place for call in weighed.conversation.calls]
    return [bisect_left(places, mark.place) for mark in weighed.conversation.compactions]


def _drops(weighed: Weighed, marks: Sequence[int]) -> list[str]:
    """From the call before to the call after; where there is none between two compactions, what was left is weighed."""
    levels, fixed = [level.tokens for level in weighed.levels], weighed.fixed.total.tokens
    said: list[str] = []
    earlier, last = 0, fixed
    for mark, later, one in zip(marks, [*marks, len(levels)][1:], weighed.conversation.compactions, strict=True):
        before = one.before or (levels[mark - 1] if mark > earlier else last)
        left = fixed + sum(weighed.turns[place].weight.tokens for place in one.left)
        last = levels[mark] if mark < later else one.after or left
        said.append(f"{shown_tokens(before)} → {shown_tokens(last)}")
        earlier = mark
    return said


def masked(weighed: Weighed) -> Change | None:
    """What masking old results would leave, and nothing else; None where it would win too little."""
    usage = weighed.usage
    limits = limits_of(
        DEFAULTS,
        usage.context_window,
        fixed=weighed.fixed.total.tokens,
        used=usage.weighed,
        scale=usage.used / usage.weighed if usage.weighed else 1.0,
    )
    return mask(weighed.entries, weighed.scale, limits)


def _dollars(calls: Sequence[Call], model: str) -> Decimal | None:
    total = Decimal(0)
    for call in calls:
        match = app.meter().models.get(call.model or model)
        if call.usage is None or match is None:
            return None
        cost = cost_of(call.usage, match, when=call.at or datetime.now(UTC))
        if cost is None or cost.total is None or cost.currency != "USD":
            return None
        total += cost.total
    return total if calls else None
