"""Usage of the context window, in figures.

`ContextUsage` is made of weights that are known already: nothing is weighed here, and the only decision is whether the
threshold is reached. The figures of its `Breakdown` sum to what is used.

`learnt_window` reads the window from a provider's error text: it is the window of the model that really answered,
whatever a table says. The caller must know that the text is such an error.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ullage.models import Window
from ullage.tokens import Count, Method
from ullage.tool import Json

from .context_options import DEFAULTS, Options, camel, window_of
from .token_weights import Anchored, Category, Entry, Fixed, Scale, apportioned, summed

__all__ = ["Breakdown", "ContextUsage", "ToolShare", "learnt_window", "usage_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolShare:
    """Tokens of one tool's definition."""

    name: str
    server: str | None
    """The server that the tool belongs to; None if the tool's name does not tell."""
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """What the window is spent on, in tokens."""

    system: int
    """Tokens of the system prompt, of what the provider adds to it, and of system messages among the others."""
    tools: tuple[ToolShare, ...] = ()
    tools_added: int = 0
    """Tokens that the presence of any tool adds to the definitions."""
    messages: Mapping[Category, int] = field(default_factory=dict[Category, int])
    """Tokens of the messages by category, without empty categories. Audio, video and documents count as images."""
    free: int
    """Tokens that are free; 0 if the window overflows."""
    reserve: int
    """The part of `free` that is kept for the answer."""

    @property
    def servers(self) -> dict[str | None, int]:
        """Tokens of the tools of each server, largest first."""
        found: dict[str | None, int] = {}
        for tool in self.tools:
            found[tool.server] = found.get(tool.server, 0) + tool.tokens
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def to_json(self) -> dict[str, Json]:
        return {
            "system": self.system,
            "tools": [{"name": tool.name, "server": tool.server, "tokens": tool.tokens} for tool in self.tools],
            "toolsAdded": self.tools_added,
            **{camel(name): tokens for name, tokens in ((name, self.messages.get(name, 0)) for name in _CATEGORIES)},
            "free": self.free,
            "reserve": self.reserve,
        }


_CATEGORIES: tuple[Category, ...] = (
    "user",
    "assistant",
    "tool_calls",
    "tool_results",
    "images",
    "thinking",
    "summary",
)


_FIGURE = r"(\d[\d,_]*\d)"
_SAYINGS = (
    rf"context limit: [\d,_ +]*> ?{_FIGURE}",
    rf"maximum (?:context|prompt|model|input|allowed input) (?:length|size|window)(?: is| of|:)? ?\(?{_FIGURE}",
    rf"context (?:length|size|window)(?: is| of|:)?(?: only)? ?\(?{_FIGURE}",
    rf"tokens? > {_FIGURE} (?:maximum|limit)",
    rf"maximum number of (?:input )?tokens(?: allowed)?(?: is|:)? ?\(?{_FIGURE}",
    rf"token count.{{1,40}}supports up to {_FIGURE}",
    rf"token count.{{1,40}}exceeds the limit of {_FIGURE}",
    rf"with {_FIGURE} maximum context length",
    rf"model token limit: {_FIGURE}",
    rf"input length should be \[\d+, ?{_FIGURE}\]",
    rf"tokens in the prompt cannot exceed {_FIGURE}",
    rf"`inputs` tokens \+ `max_new_tokens` must be <= {_FIGURE}",
    rf"`inputs` must have less than {_FIGURE} tokens",
    rf"current length is \d+ while limit is {_FIGURE}",
    rf"max_(?:seq|model)_len(?:gth)?(?: is| of|:|=)? ?\(?{_FIGURE}",
    rf"[\"']?\bn_ctx\b[\"']?(?: is|:|=| =)? ?\(?{_FIGURE}",
)
"""The wording of OpenAI and its imitators, llama.cpp, LM Studio, SGLang, Anthropic, Gemini on both its hosts, GitHub,
Mistral, Moonshot, DashScope, Cohere, TGI, Cerebras and vLLM. Limits on the answer alone are worded differently."""
_WINDOW = re.compile("|".join(_SAYINGS), re.IGNORECASE)
_PACE = re.compile(r"per (?:minute|day)|rate.?limit|throttl|quota|\b[RT]P[MD]\b", re.IGNORECASE)
"""A rate limit says nothing about the window."""
_SMALLEST, _LARGEST = 256, 100_000_000
_LONGEST = 20_000
"""Characters of a message that are searched: some providers echo the whole prompt after the error."""


def learnt_window(message: str) -> int | None:
    """Read the context window, in tokens, from a provider's error text; None if it names none."""
    said = " ".join(message[:_LONGEST].split())
    found = None if _PACE.search(said) else _WINDOW.search(said)
    if found is None:
        return None
    figure = int(re.sub(r"[,_]", "", next(filter(None, found.groups()))))
    return figure if _SMALLEST <= figure <= _LARGEST else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUsage:
    """How full a context window is.

    `to_json` returns the object of the `context_status` event, with `used`, `free`, `usagePercent` and the other
    figures.
    """

    model: str
    context_window: int
    system_prompt: int
    """Tokens of the system prompt, including what the provider adds to every request and system messages among the
    others."""
    tool_definitions: int
    messages: int
    compact_threshold: float
    """Percent of the window. If the threshold is a number of messages, the percentage at which the reserve for the
    answer begins, since the history is compacted there in any case."""
    will_compact: bool
    resolved: bool
    """Whether the model's window is known. If False, it is the default."""
    method: Method
    """How the figures were determined."""
    low: int
    high: int
    """Upper end of the range that `used` lies in; `low` is the lower end."""
    weighed: int
    """Tokens in use as Ullage counts them, without the provider's reports. The entries' own weights have this scale."""
    reserve: int
    """Tokens kept for the answer. They are part of `free`."""
    breakdown: Breakdown

    @property
    def used(self) -> int:
        """Tokens in use."""
        return self.system_prompt + self.tool_definitions + self.messages

    @property
    def free(self) -> int:
        """Tokens of the window that are not used; 0 if it overflows."""
        return max(0, self.context_window - self.used)

    @property
    def overflow(self) -> int:
        """Tokens used beyond the window; 0 if everything fits."""
        return max(0, self.used - self.context_window)

    @property
    def usage_percent(self) -> float:
        """Percent of the window in use, from 0 to 100. For a window that overflows it is 100; `overflow` has the
        excess."""
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
    """Compute the usage of a window.

    Args:
        scale: Weighs messages for the model.
        fixed: Weights of the system prompt and the tools.
        entries: The messages, weighed.
        options: Window and thresholds.
        anchored: The provider's last report, if any.
        learnt: Window that an overflow taught, if any.
    """
    window = window_of(scale.meter.models, scale.model, said=options.context_window, learnt=learnt)
    own = fixed.total + summed(entries)
    used = own if anchored is None else anchored.weigh(fixed, entries)
    found: dict[Category, int] = {}
    for entry in entries:
        for category, tokens in entry.shares.items():
            found[category] = found.get(category, 0) + tokens
    shares = found
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
        and (_hundredths(used.tokens / window.tokens) >= threshold or _many(entries, options)),
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
        """Scale the parts to the provider's total. The part of the difference that Ullage's error band explains is
        shared in the ratio of the parts; the rest was added by the provider and counts as system prompt."""
        explained = min(used, own.high)
        parts = apportioned(explained, (self.system, self.tools, self.messages))
        return _Parts(system=parts[0] + used - explained, tools=parts[1], messages=parts[2])


def _threshold(options: Options, window: Window) -> float:
    kind, value = options.threshold
    if kind == "messages":
        return _hundredths(1 - options.reserve)
    return _hundredths(value) if kind == "fraction" else min(100.0, _hundredths(value / window.tokens))


def _hundredths(share: float) -> float:
    return round(100 * share, 6)


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
