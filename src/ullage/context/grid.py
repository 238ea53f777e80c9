"""How does the whole window look, cell by cell?

Ten rows of ten cells, each a hundredth of the window, with a mark for what it is spent on and a legend beside; below,
whose tools weigh how much. No colours unless they are asked for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from .breakdown import Breakdown
from .render import percent, title, tokens
from .usage import ContextUsage

__all__ = ["draw_grid", "render_grid"]

_ROWS = _COLUMNS = 10
_SERVERS = 8
"""How many of those whose tools weigh most are named."""
_NAME = 21
"""Characters of a name that leave a line shorter than eighty."""
_GREY = 90
_KEPT = "⛝"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slice:
    mark: str
    name: str
    number: int
    colour: int


Paint = Callable[[str, int], str]
"""Gives a mark a colour, by the number that a terminal knows it by."""


def render_grid(usage: ContextUsage, *, colour: bool = False) -> str:
    """The picture as text, with a terminal's colours where they are wanted."""
    return draw_grid(usage, lambda mark, code: f"\x1b[{code}m{mark}\x1b[0m" if colour else mark)


def draw_grid(usage: ContextUsage, paint: Paint) -> str:
    """The picture with its marks painted by someone else."""
    slices = _slices(usage)
    cells = _cells(slices, usage.context_window, paint)
    rows = [" ".join(cells[at : at + _COLUMNS]) for at in range(0, _ROWS * _COLUMNS, _COLUMNS)]
    legend = [title(usage), "", *(_legend(one, usage.context_window, paint) for one in slices)]
    blank = " " * (2 * _COLUMNS - 1)
    beside = [f"{row or blank}   {said}".rstrip() for row, said in zip_longest(rows, legend, fillvalue="")]
    return "\n".join((*beside, *_servers(usage.breakdown)))


def _slices(usage: ContextUsage) -> list[_Slice]:
    """What is there of each kind; what is free is parted in what may be filled and what is kept for the answer."""
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


def _cells(slices: Sequence[_Slice], window: int, paint: Paint) -> list[str]:
    """A cell at least for whatever there is; the free space gives it."""
    *used, free, answer = slices
    size = _ROWS * _COLUMNS
    filled = [one for one in used for _ in range(max(1, round(size * one.number / window)))][:size]
    kept = min(size - len(filled), round(size * answer.number / window))
    whole = [*filled, *([free] * (size - len(filled) - kept)), *([answer] * kept)]
    return [paint(one.mark, one.colour) for one in whole]


def _legend(one: _Slice, window: int, paint: Paint) -> str:
    mark = paint(one.mark, one.colour)
    return f"{mark} {one.name}: {tokens(one.number)} tokens ({percent(one.number, window)})"


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
    """The tool's own name, without the server's."""
    return name.rpartition("__")[2] or name


def _cut(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
