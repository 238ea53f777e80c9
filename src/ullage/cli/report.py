"""How does a person read what weighs in a session?

The picture of the window, its waterline over time, the tools, what was carried longest, and advice; each section of a
few lines and no more than 80 columns. The figures come from elsewhere.
"""

import textwrap
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from ullage.context import draw_grid, shown_percent, shown_tokens

from .burden import Piece, ToolBurden
from .figures import Figures, figures_of
from .output import bold, columns, dim, emit, painted, yellow
from .sessions import Weighed
from .waterline import chart
from .wording import how_many

__all__ = ["print_list", "print_report"]

_WIDTH = 80
_TOOLS, _PIECES = 8, 8
"""Lines at most."""


def print_report(weighed: Weighed) -> None:
    figures = figures_of(weighed)
    for line in (*_head(weighed, figures), "", *_picture(weighed)):
        emit(line)
    _notes(weighed)
    _waterline(weighed, figures)
    _tools(figures.burdens, weighed)
    _longest(figures.costliest, weighed)
    _advice(figures)


def _picture(weighed: Weighed) -> list[str]:
    return draw_grid(weighed.usage, painted).split("\n")


def _head(weighed: Weighed, figures: Figures) -> list[str]:
    one = weighed.conversation
    named = f"{Path(weighed.file).name}" if not one.title else f"{one.title}"
    said = [
        one.program,
        how_many(len(one.turns), "message") + _standing(weighed),
        how_many(len(one.calls), "call"),
        *([f"compacted {_times(len(one.compactions))}"] if one.compactions else []),
    ]
    lines = [bold(_clipped(named, _WIDTH)), dim(" · ".join(said))]
    span = _span(one.calls[0].at, one.calls[-1].at) if one.calls else ""
    return [*lines, *(dim(line) for line in (span, figures.spent) if line)]


def _standing(weighed: Weighed) -> str:
    now, ever = len(weighed.entries), len(weighed.turns)
    return f" ({now:,} in the window)" if now != ever else ""


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def _span(first: datetime | None, last: datetime | None) -> str:
    if first is None or last is None:
        return ""
    day, end = first.strftime("%Y-%m-%d %H:%M"), last.strftime("%H:%M")
    return f"{day}–{end}" if first.date() == last.date() else f"{day} to {last.strftime('%Y-%m-%d %H:%M')}"


def _clipped(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _notes(weighed: Weighed) -> None:
    """What the figures rest on."""
    usage, one = weighed.usage, weighed.conversation
    said: list[str] = []
    if weighed.is_guessed:
        said.append(f"The file names no model: weighed as {weighed.model}; --model names another.")
    if not weighed.is_whole:
        said.append(_unseen(weighed))
    if not usage.resolved:
        said.append(f"Nobody knows the window of {usage.model}; --window says it.")
    said += [f"Left aside: {what} ({count:,})." for what, count in one.unread.items()]
    if said:
        emit()
    for line in (each for text in said for each in textwrap.wrap(text, _WIDTH)):
        emit(dim(line))


def _unseen(weighed: Weighed) -> str:
    what = "The tools" if weighed.conversation.system else "The system prompt and the tools"
    if not weighed.unseen:
        return f"{what} are not in this file, and what they weigh is not known."
    return f"{what} are not in this file; by what was reported they weigh {shown_tokens(weighed.unseen)}."


def _waterline(weighed: Weighed, figures: Figures) -> None:
    levels, usage = weighed.levels, weighed.usage
    if len(levels) < 2:
        return
    reported = sum(level.reported for level in levels)
    how = {0: "weighed", len(levels): "as the provider reported"}.get(reported, f"{reported:,} of them reported")
    emit()
    emit(bold("Waterline") + dim(f"  tokens that each call was asked with, {how}"))
    threshold = int(usage.context_window * usage.compact_threshold / 100)
    for line in chart(
        [level.tokens for level in levels], figures.marks, window=usage.context_window, threshold=threshold
    ):
        emit(line)
    if figures.marks:
        emit(dim(f"↓ compacted: {', '.join(figures.drops[:3])}{_more(len(figures.drops) - 3)}"))


def _more(number: int) -> str:
    return f" and {number:,} more" if number > 0 else ""


def _tools(burdens: Sequence[ToolBurden], weighed: Weighed) -> None:
    if not burdens:
        return
    rows = [
        (
            _clipped(one.name, 34),
            f"{one.calls:,}",
            shown_tokens(one.tokens),
            shown_percent(one.tokens, weighed.usage.weighed),
            shown_tokens(one.carried),
        )
        for one in burdens[:_TOOLS]
    ]
    emit()
    _table(("By tool", "calls", "in the window", "of used", "carried in all"), rows, frozenset({1, 2, 3, 4}))
    if len(burdens) > _TOOLS:
        rest = burdens[_TOOLS:]
        emit(dim(f"and {how_many(len(rest), 'tool')} more with {shown_tokens(sum(one.tokens for one in rest))}"))


def _longest(costliest: Sequence[Piece], weighed: Weighed) -> None:
    if not costliest or not weighed.levels:
        return
    rows = [
        (
            piece.label,
            shown_tokens(piece.tokens),
            f"× {piece.calls:,}",
            f"= {shown_tokens(piece.carried)}",
            "" if piece.standing else "gone",
        )
        for piece in costliest[:_PIECES]
    ]
    emit()
    _table(("Carried longest", "tokens", "calls", "read", ""), rows, frozenset({1, 2, 3}))


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int]) -> None:
    titles, *lines = columns([header, *rows], right=right)
    emit(bold(titles[: len(header[0])]) + dim(titles[len(header[0]) :]))
    for line in lines:
        emit(line)


def _advice(figures: Figures) -> None:
    emit()
    emit(bold("Advice"))
    for one in figures.advice:
        for number, line in enumerate(_wrapped(f"{one.finding} {one.remedy}")):
            emit(f"{yellow('•') if number == 0 else ' '} {line}")
    if not figures.advice:
        emit("Nothing stands out.")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH - 2, break_long_words=False, break_on_hyphens=False)


def print_list(found: Sequence[Weighed]) -> None:
    header = ("", "program", "model", "calls", "used", "", "")
    rows = [
        (
            _clipped(one.conversation.title or Path(one.file).name, 24),
            one.conversation.program,
            _clipped(one.model, 15),
            f"{len(one.levels):,}",
            shown_tokens(one.usage.used),
            shown_percent(one.usage.used, one.usage.context_window, 1),
            f"↓{len(one.conversation.compactions):,}" if one.conversation.compactions else "",
        )
        for one in found
    ]
    _table(header, rows, frozenset({3, 4, 5}))
    files = [one.file for one in found]
    several = [one for one in found if files.count(one.file) > 1 and one.conversation.id is not None]
    emit(dim("Name one file to see what weighs in it" + (", or one session of several:" if several else ".")))
    for one in several:
        emit(dim(f"  --session {one.conversation.id}"))
