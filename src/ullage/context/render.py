"""How is the fill of a window shown to a person?

As a bar with a line a part, or as one line for a status bar; the grid is `grid`'s. Plain text, halves rounded up.
"""

from .usage import ContextUsage

__all__ = ["percent", "render", "render_line", "title", "tokens"]

USED, PART, FREE = "⛁", "⛀", "⛶"
_CELLS = 10


def render(usage: ContextUsage) -> str:
    """The bar and what the window is spent on."""
    return "\n".join((f"{_bar(usage)}  {title(usage)}", "", *_lines(usage), *_notes(usage)))


def render_line(usage: ContextUsage) -> str:
    """For a status bar."""
    window = usage.context_window
    left = f"compacts at {_threshold(usage)}" if not usage.will_compact else "compacts now"
    shown = f"{tokens(usage.used)}/{tokens(window)} ({_percent_used(usage)})"
    free = f"{tokens(usage.overflow)} over" if usage.overflow else f"{tokens(usage.free)} free"
    return f"{_bar(usage).replace(' ', '')} {shown} · {free} · {left}"


def title(usage: ContextUsage) -> str:
    """`anthropic/claude-3.5-sonnet · 28.8k/200k tokens (14%)`."""
    return f"{usage.model} · {tokens(usage.used)}/{tokens(usage.context_window)} tokens ({_percent_used(usage)})"


def _percent_used(usage: ContextUsage) -> str:
    """At most 100: what is beyond is said in tokens."""
    return percent(min(usage.used, usage.context_window), usage.context_window, 1)


def tokens(number: int) -> str:
    """A number of tokens as people read it: `950`, `1.1k`, `200k`, `1M`."""
    size = abs(number)
    sign = "-" if number < 0 else ""
    if size < 1_000:
        return f"{sign}{size}"
    unit, mark = (1_000, "k") if size < 999_950 else (1_000_000, "M")
    tenths = _half_up(10 * size, unit)
    return f"{sign}{tenths // 10}{f'.{tenths % 10}' if tenths % 10 else ''}{mark}"


def percent(part: int, whole: int, parts: int = 10) -> str:
    """The share of a whole in percent, to one decimal, or to none where `parts` of a percent is 1."""
    found = _half_up(100 * parts * abs(part), whole)
    sign = "-" if part < 0 and found else ""
    return f"{sign}{found}%" if parts == 1 else f"{sign}{found // 10}.{found % 10}%"


def _half_up(part: int, whole: int) -> int:
    return (2 * part + whole) // (2 * whole)


def _bar(usage: ContextUsage) -> str:
    full, rest = divmod(_CELLS * max(0, usage.used), usage.context_window)
    cells = (USED * full + (PART if rest else "") + FREE * _CELLS)[:_CELLS]
    return " ".join(cells)


def _lines(usage: ContextUsage) -> list[str]:
    rows = (
        (USED, "System prompt", usage.system_prompt),
        (USED, "Tool definitions", usage.tool_definitions),
        (USED, "Messages", usage.messages),
        (FREE, "Free space", usage.free),
    )
    window = usage.context_window
    width = max(len(name) + len(tokens(number)) for _, name, number in rows) + 2
    return [
        f"  {mark} {name}:{tokens(number).rjust(width - len(name) - 1)} tokens ({percent(number, window)})"
        for mark, name, number in rows
    ]


def _notes(usage: ContextUsage) -> list[str]:
    notes = list[str]()
    if usage.overflow:
        notes.append(f"  More than the window holds: {tokens(usage.overflow)} tokens are over.")
    if not usage.resolved:
        notes.append(
            f"  The window of `{usage.model}` is not known; {tokens(usage.context_window)} tokens are assumed."
        )
    return ["", *notes] if notes else []


def _threshold(usage: ContextUsage) -> str:
    return f"{usage.compact_threshold:.0f}%"
