"""Usage of the context window, as figures and as text.

`ContextUsage` is made of weights that are known already: nothing is weighed here, and the only decision is whether the
threshold is reached. The figures of its `Breakdown` sum to what is used.

`render` draws a bar and a line for each part, `render_line` one line for a status bar. Both are plain text, and halves
are rounded up.

`render_grid` draws ten rows of ten cells, each a hundredth of the window, with a mark for what it is spent on and a
legend beside; below are the tools by weight. Colours are off by default.

`learnt_window` reads the window from a provider's error text: it is the window of the model that really answered,
whatever a table says. The caller must know that the text is such an error.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from ullage.models import Window
from ullage.tokens import Count, Method
from ullage.tool import Json

from .context_options import DEFAULTS, Options, camel, window_of
from .token_weights import Anchored, Category, Entry, Fixed, Scale, apportioned, summed

__all__ = [
    "Breakdown",
    "ContextUsage",
    "ToolShare",
    "draw_grid",
    "learnt_window",
    "percent",
    "render",
    "render_grid",
    "render_line",
    "title",
    "tokens",
    "usage_of",
]


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


USED, PART, FREE = "⛁", "⛀", "⛶"
_CELLS = 10


def render(usage: ContextUsage) -> str:
    """Draw the bar and what the window is spent on."""
    notes = list[str]()
    if usage.overflow:
        notes.append(f"  More than the window holds: {tokens(usage.overflow)} tokens are over.")
    if not usage.resolved:
        notes.append(
            f"  The window of `{usage.model}` is not known; {tokens(usage.context_window)} tokens are assumed."
        )
    notes = ["", *notes] if notes else []
    rows = (
        (USED, "System prompt", usage.system_prompt),
        (USED, "Tool definitions", usage.tool_definitions),
        (USED, "Messages", usage.messages),
        (FREE, "Free space", usage.free),
    )
    window = usage.context_window
    width = max(len(name) + len(tokens(number)) for _, name, number in rows) + 2
    lines = (
        f"  {mark} {name}:{tokens(number).rjust(width - len(name) - 1)} tokens ({percent(number, window)})"
        for mark, name, number in rows
    )
    return "\n".join((f"{_bar(usage)}  {title(usage)}", "", *lines, *notes))


def render_line(usage: ContextUsage) -> str:
    """Draw one line for a status bar."""
    window = usage.context_window
    left = f"compacts at {usage.compact_threshold:.0f}%" if not usage.will_compact else "compacts now"
    shown = f"{tokens(usage.used)}/{tokens(window)} ({_percent_used(usage)})"
    free = f"{tokens(usage.overflow)} over" if usage.overflow else f"{tokens(usage.free)} free"
    return f"{_bar(usage).replace(' ', '')} {shown} · {free} · {left}"


def title(usage: ContextUsage) -> str:
    """Format a title such as `anthropic/claude-3.5-sonnet · 28.8k/200k tokens (14%)`."""
    return f"{usage.model} · {tokens(usage.used)}/{tokens(usage.context_window)} tokens ({_percent_used(usage)})"


def _percent_used(usage: ContextUsage) -> str:
    """Percent of the window in use, at most 100. An excess is given in tokens."""
    return percent(min(usage.used, usage.context_window), usage.context_window, 1)


def tokens(number: int) -> str:
    """Format a number of tokens for people: `950`, `1.1k`, `200k`, `1M`."""
    size = abs(number)
    sign = "-" if number < 0 else ""
    if size < 1_000:
        return f"{sign}{size}"
    unit, mark = (1_000, "k") if size < 999_950 else (1_000_000, "M")
    tenths = _half_up(10 * size, unit)
    return f"{sign}{tenths // 10}{f'.{tenths % 10}' if tenths % 10 else ''}{mark}"


def percent(part: int, whole: int, parts: int = 10) -> str:
    """Format the share of a whole in percent, with one decimal, or with none if `parts` is 1."""
    found = _half_up(100 * parts * abs(part), whole)
    sign = "-" if part < 0 and found else ""
    return f"{sign}{found}%" if parts == 1 else f"{sign}{found // 10}.{found % 10}%"


def _half_up(part: int, whole: int) -> int:
    return (2 * part + whole) // (2 * whole)


def _bar(usage: ContextUsage) -> str:
    full, rest = divmod(_CELLS * max(0, usage.used), usage.context_window)
    cells = (USED * full + (PART if rest else "") + FREE * _CELLS)[:_CELLS]
    return " ".join(cells)


_ROWS = _COLUMNS = 10
_SERVERS = 8
"""Most servers that are named, largest first."""
_NAME = 21
"""Most characters of a name, so that a line stays under eighty."""
_GREY = 90
_KEPT = "⛝"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slice:
    mark: str
    name: str
    number: int
    colour: int


Paint = Callable[[str, int], str]
"""Colours a mark; the number is the colour's code in a terminal."""


def render_grid(usage: ContextUsage, *, colour: bool = False) -> str:
    """Draw the grid as text, with terminal colours if `colour` is set."""
    return draw_grid(usage, lambda mark, code: f"\x1b[{code}m{mark}\x1b[0m" if colour else mark)


def draw_grid(usage: ContextUsage, paint: Paint) -> str:
    """Draw the grid and colour its marks with `paint`."""
    slices = _slices(usage)
    # Everything that is not zero gets at least one cell, taken from the free space.
    window = usage.context_window
    *used, free, answer = slices
    size = _ROWS * _COLUMNS
    filled = [one for one in used for _ in range(max(1, round(size * one.number / window)))][:size]
    kept = min(size - len(filled), round(size * answer.number / window))
    whole = [*filled, *([free] * (size - len(filled) - kept)), *([answer] * kept)]
    cells = [paint(one.mark, one.colour) for one in whole]
    rows = [" ".join(cells[at : at + _COLUMNS]) for at in range(0, _ROWS * _COLUMNS, _COLUMNS)]
    explained = (
        f"{paint(one.mark, one.colour)} {one.name}: {tokens(one.number)} tokens ({percent(one.number, window)})"
        for one in slices
    )
    legend = [title(usage), "", *explained]
    blank = " " * (2 * _COLUMNS - 1)
    beside = [f"{row or blank}   {said}".rstrip() for row, said in zip_longest(rows, legend, fillvalue="")]
    return "\n".join((*beside, *_servers(usage.breakdown)))


def _slices(usage: ContextUsage) -> list[_Slice]:
    """Return a slice for each kind of content. Free space is divided into usable space and the reserve for the
    answer."""
    spent = usage.breakdown.messages
    used = [
        _Slice(mark="⛁", name="System prompt", number=usage.system_prompt, colour=36),
        _Slice(mark="⛃", name="Tool definitions", number=usage.tool_definitions, colour=35),
        _Slice(mark="▲", name="User", number=spent.get("user", 0), colour=32),
        _Slice(mark="●", name="Assistant", number=spent.get("assistant", 0), colour=34),
        _Slice(mark="◇", name="Tool calls", number=spent.get("tool_calls", 0), colour=33),
        _Slice(mark="◆", name="Tool results", number=spent.get("tool_results", 0), colour=93),
        _Slice(mark="▣", name="Images", number=spent.get("images", 0), colour=95),
        _Slice(mark="○", name="Thinking", number=spent.get("thinking", 0), colour=94),
        _Slice(mark="≡", name="Summary", number=spent.get("summary", 0), colour=92),
    ]
    kept = max(0, min(usage.reserve, usage.free))
    free = _Slice(mark="⛶", name="Free space", number=max(0, usage.free - kept), colour=_GREY)
    answer = _Slice(mark=_KEPT, name="Kept for the answer", number=kept, colour=_GREY)
    return [one for one in used if one.number > 0] + [free, answer]


def _servers(breakdown: Breakdown) -> list[str]:
    if not breakdown.tools:
        return []
    servers = list(breakdown.servers.items())
    named = [_server(breakdown, name, number) for name, number in servers[:_SERVERS]]
    more = sum(number for _, number in servers[_SERVERS:])
    rest = [f"  {len(servers) - _SERVERS} more: {tokens(more)}"] if more else []
    added = [f"  their presence: {tokens(breakdown.tools_added)}"] if breakdown.tools_added else []
    return ["", "Tools, by tokens", *named, *rest, *added]


def _server(breakdown: Breakdown, name: str | None, number: int) -> str:
    own = [tool for tool in breakdown.tools if tool.server == name]
    most = max(own, key=lambda tool: tool.tokens)
    alone = f" alone {tokens(most.tokens)}" if len(own) > 1 else ""
    tools = f"{len(own)} tool{'s' * (len(own) > 1)}, {_cut(_bare(most.name))}{alone}"
    return f"  {_cut(name or 'of no server')}: {tokens(number)} in {tools}"


def _bare(name: str) -> str:
    """Return the tool's own name, without the server's prefix."""
    return name.rpartition("__")[2] or name


def _cut(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
