"""How did the window fill up over time, in a few lines of text?

One column for one or several calls of the model, the highest of them; marks below it where something was let go. It
knows nothing of what stood in the window.
"""

from collections.abc import Sequence

from ullage.context import shown_tokens

__all__ = ["chart"]

_BLOCKS = " ▁▂▃▄▅▆▇█"
_HEIGHT = 8
_MARK = "↓"


def chart(
    levels: Sequence[int], marks: Sequence[int], *, window: int, threshold: int | None, width: int = 78
) -> list[str]:
    """`levels` is one a call; `marks` are the calls before which something was let go."""
    if not levels:
        return []
    top = _top(max(levels), window)
    label = max(len(shown_tokens(value)) for value in (top, threshold or 0))
    columns = min(len(levels), width - label - 2)
    heights = [max(levels[_from(n, columns, levels) : _to(n, columns, levels)]) for n in range(columns)]
    rows = [_row(row, heights, top, threshold, label) for row in range(_HEIGHT, 0, -1)]
    axis = "".join(_MARK if _is_marked(n, columns, levels, marks) else "─" for n in range(columns))
    return [*rows, f"{'0':>{label}} └{axis}", *_caption(len(levels), columns, label)]


def _top(highest: int, window: int) -> int:
    """The window where the highest level comes near it; else a round number above the level."""
    if highest > window / 3:
        return max(highest, window)
    size = 10 ** (len(str(max(1, highest))) - 1)
    return next(step * size for step in (1, 2, 3, 4, 5, 6, 8, 10) if step * size >= highest)


def _from(column: int, columns: int, levels: Sequence[int]) -> int:
    return column * len(levels) // columns


def _to(column: int, columns: int, levels: Sequence[int]) -> int:
    return max(_from(column, columns, levels) + 1, _from(column + 1, columns, levels))


def _row(row: int, heights: Sequence[int], top: int, threshold: int | None, label: int) -> str:
    is_threshold = threshold is not None and round(threshold * _HEIGHT / top) == row and threshold < top
    name = shown_tokens(top) if row == _HEIGHT else shown_tokens(threshold or 0) if is_threshold else ""
    edge = "┤" if name else "│"
    cells = "".join(_cell(height * _HEIGHT / top - (row - 1), is_threshold) for height in heights)
    return f"{name:>{label}} {edge}{cells}".rstrip()


def _cell(part: float, is_threshold: bool) -> str:  # noqa: FBT001
    """`part` of this row is filled. Whatever is more than nothing is seen."""
    eighths = min(8, max(0, round(part * 8)))
    if eighths == 0 and part > 0:
        eighths = 1
    return "┄" if is_threshold and eighths == 0 else _BLOCKS[eighths]


def _is_marked(column: int, columns: int, levels: Sequence[int], marks: Sequence[int]) -> bool:
    """What was let go after the last call is marked there."""
    shown = (min(mark, len(levels) - 1) for mark in marks)
    return any(_from(column, columns, levels) <= mark < _to(column, columns, levels) for mark in shown)


def _caption(calls: int, columns: int, label: int) -> list[str]:
    first, last = "call 1", f"{calls:,}"
    gap = columns - len(first) - len(last)
    return [" " * (label + 2) + (f"{first}{' ' * gap}{last}" if gap > 0 else first)]
