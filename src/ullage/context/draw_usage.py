"""Draws the usage of a context window as text.

`render` draws a bar and a line for each part, `render_line` one line for a status bar. Both are plain text, and halves
are rounded up.

`render_grid` draws ten rows of ten cells, each a hundredth of the window, with a mark for what it is spent on and a
legend beside; below are the tools by weight. Colours are off by default.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest

from .window_usage import Breakdown, ContextUsage

__all__ = ["draw_grid", "percent", "render", "render_grid", "render_line", "title", "tokens"]

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
