"""How full is the window?

One value with every figure, made of weights that are known already: nothing is weighed here, and nothing decided but
whether the threshold is reached.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ullage.models import Window
from ullage.tokens import Count, Method
from ullage.tool import Json

from .anchored import Anchored, summed
from .breakdown import Breakdown, ToolShare
from .entry import Category, Entry
from .fixed import Fixed
from .options import DEFAULTS, Options
from .shares import apportioned
from .weighing import Scale
from .window import window_of

__all__ = ["ContextUsage", "usage_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUsage:
    model: str
    context_window: int
    system_prompt: int
    """With what the provider adds to every request, and with system messages that stand among the others."""
    tool_definitions: int
    messages: int
    compact_threshold: float
    """In hundredths of the window. Where a number of messages is the threshold, that at which the room for the answer
    begins: there something is let go in any case."""
    will_compact: bool
    resolved: bool
    """False where nobody knows the model's window, and the default stands in."""
    method: Method
    """How the figures were found."""
    low: int
    high: int
    """The range that `used` lies in."""
    weighed: int
    """What is used as we weigh it, without what the provider reported; the scale of the entries' own weights."""
    reserve: int
    """Tokens that stay free for the answer; they are part of what is free."""
    breakdown: Breakdown

    @property
    def used(self) -> int:
        return self.system_prompt + self.tool_definitions + self.messages

    @property
    def free(self) -> int:
        """Tokens of the window that are not used; 0 where it overflows."""
        return max(0, self.context_window - self.used)

    @property
    def overflow(self) -> int:
        """Tokens that are used beyond the window; 0 where all fits."""
        return max(0, self.used - self.context_window)

    @property
    def usage_percent(self) -> float:
        """From 0 to 100; a window that overflows is full, and `overflow` says by how much."""
        return min(100.0, 100 * self.used / self.context_window)

    def to_json(self) -> dict[str, Json]:
        return {
            "model": self.model,
            "contextWindow": self.context_window,
            "systemPrompt": self.system_prompt,
            "toolDefinitions": self.tool_definitions,
            "messages": self.messages,
            "used": self.used,
            "free": self.free,
            "usagePercent": self.usage_percent,
            "compactThreshold": self.compact_threshold,
            "willCompact": self.will_compact,
            "overflow": self.overflow,
            "resolved": self.resolved,
            "method": self.method.value,
            "low": self.low,
            "high": self.high,
            "reserve": self.reserve,
            "breakdown": self.breakdown.to_json(),
        }


def usage_of(  # noqa: PLR0913 - what is known of a history, each from another file
    scale: Scale,
    fixed: Fixed,
    entries: Sequence[Entry],
    options: Options = DEFAULTS,
    *,
    anchored: Anchored | None = None,
    learnt: int | None = None,
) -> ContextUsage:
    """`anchored` is what the provider reported the last time, `learnt` the window that an overflow taught."""
    window = window_of(scale.meter.models, scale.model, said=options.context_window, learnt=learnt)
    own = fixed.total + summed(entries)
    used = own if anchored is None else anchored.weigh(fixed, entries)
    shares = _shares(entries)
    weighed = _Parts(
        system=fixed.system_prompt.tokens + shares.pop("system", 0),
        tools=fixed.tool_definitions.tokens,
        messages=sum(shares.values()),
    )
    parts = weighed.summing_to(used.tokens, own)
    threshold = _threshold(options, window)
    return ContextUsage(
        model=scale.model,
        context_window=window.tokens,
        system_prompt=parts.system,
        tool_definitions=parts.tools,
        messages=parts.messages,
        compact_threshold=threshold,
        will_compact=not options.disable_compaction
        and (_at_least(used.tokens, threshold, window) or _many(entries, options)),
        resolved=window.resolved,
        method=used.method,
        low=used.low,
        high=used.high,
        weighed=own.tokens,
        reserve=int(options.reserve * window.tokens),
        breakdown=_breakdown(fixed, parts, shares, window, options),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    system: int
    tools: int
    messages: int

    def summing_to(self, used: int, own: Count) -> "_Parts":
        """The same parts as the provider counts them all together. As much of the difference as our band explains is
        shared in the ratio of the parts; what is more was added out of sight, and is the system prompt's."""
        explained = min(used, own.high)
        parts = apportioned(explained, (self.system, self.tools, self.messages))
        return _Parts(system=parts[0] + used - explained, tools=parts[1], messages=parts[2])


def _shares(entries: Sequence[Entry]) -> dict[Category, int]:
    found: dict[Category, int] = {}
    for entry in entries:
        for category, tokens in entry.shares.items():
            found[category] = found.get(category, 0) + tokens
    return found


def _threshold(options: Options, window: Window) -> float:
    kind, value = options.threshold
    if kind == "messages":
        return _hundredths(1 - options.reserve)
    return _hundredths(value) if kind == "fraction" else min(100.0, _hundredths(value / window.tokens))


def _hundredths(share: float) -> float:
    return round(100 * share, 6)


def _at_least(used: int, threshold: float, window: Window) -> bool:
    return _hundredths(used / window.tokens) >= threshold


def _many(entries: Sequence[Entry], options: Options) -> bool:
    kind, value = options.threshold
    return kind == "messages" and len(entries) >= value


def _breakdown(fixed: Fixed, parts: _Parts, shares: dict[Category, int], window: Window, options: Options) -> Breakdown:
    added = fixed.tool_definitions.tokens - sum([tool.weight.tokens for tool in fixed.tools])
    *tools, added = apportioned(parts.tools, (*(tool.weight.tokens for tool in fixed.tools), added))
    spent = apportioned(parts.messages, tuple(shares.values()))
    return Breakdown(
        system=parts.system,
        tools=tuple(
            ToolShare(name=tool.name, server=tool.server, tokens=tokens)
            for tool, tokens in zip(fixed.tools, tools, strict=True)
        ),
        tools_added=added,
        messages=dict(zip(shares, spent, strict=True)),
        free=max(0, window.tokens - parts.system - parts.tools - parts.messages),
        reserve=int(options.reserve * window.tokens),
    )
