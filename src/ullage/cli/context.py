"""Show how full the context window of a session is, how it filled up, what takes the most space, and what would help.

FILE is a session of Claude Code, Codex, opencode, pi, Cline, Gemini CLI or Ullage, a list of messages, or a request
body. The format is detected. Several files are listed with one line each.
"""

import argparse
import os
import textwrap
from collections.abc import Sequence
from pathlib import Path

from ullage.clients.call_logs import find_logs
from ullage.context import Options, draw_grid, shown_percent, shown_tokens
from ullage.errors import UnreadableFile
from ullage.tool import Json

from .input_files import STDIN
from .output import Progress, bold, columns, dim, emit, emit_json, how_many, paint_text, say, yellow
from .session_stats import (
    Figures,
    FoundConversation,
    ToolBurden,
    WeighedConversation,
    add_flags,
    cost_of_calls,
    figures_of,
    find_by_id,
    read_conversations_in,
    weigh,
)

__all__ = ["arguments", "chart", "listed_json", "print_list", "print_report", "report_json", "run"]

_LATEST = 10
"""Maximum sessions listed if no file is named."""
_JSON_PIECES = 50
"""Maximum pieces listed, of those carried longest."""


def listed_json(weighed: WeighedConversation) -> dict[str, Json]:
    one = weighed.conversation
    cost = cost_of_calls(one.calls, weighed.model)
    return {
        "file": weighed.file,
        "program": one.program,
        "session": one.id,
        "title": one.title,
        "model": one.model,
        "weighedAs": weighed.model,
        "format": one.format.value,
        "messages": len(weighed.turns),
        "inWindow": len(weighed.entries),
        "calls": len(weighed.levels),
        "last": _day(weighed) or None,
        "dollars": None if cost is None else float(cost),
        "compactions": len(one.compactions),
        "usage": weighed.usage.to_json(),
        "unread": dict(one.unread),
    }


def report_json(weighed: WeighedConversation) -> dict[str, Json]:
    figures = figures_of(weighed)
    levels: list[Json] = [
        {
            "tokens": level.tokens,
            "reported": level.reported,
            "at": None if level.call.at is None else level.call.at.isoformat(),
        }
        for level in weighed.levels
    ]
    return {
        **listed_json(weighed),
        "toolsInFile": weighed.is_whole,
        "waterline": levels,
        "compactedBefore": [mark + 1 for mark in figures.marks],
        "tokensRead": figures.read,
        "tokensCached": figures.cached,
        "dollars": None if figures.dollars is None else f"{figures.dollars:f}",
        "byTool": [
            {"tool": one.name, "calls": one.calls, "tokens": one.tokens, "carried": one.carried}
            for one in figures.burdens
        ],
        "carriedLongest": [
            {
                "message": piece.place + 1,
                "category": piece.category,
                "tool": piece.tool,
                "label": piece.label,
                "tokens": piece.tokens,
                "calls": piece.calls,
                "carried": piece.carried,
                "inWindow": piece.standing,
            }
            for piece in figures.costliest[:_JSON_PIECES]
        ],
        "cacheLosses": [
            {
                "call": loss.call,
                "tokens": loss.tokens,
                "reason": loss.reason,
                "pauseSeconds": None if loss.pause is None else round(loss.pause.total_seconds(), 3),
            }
            for loss in figures.lost
        ],
        "advice": [{"finding": one.finding, "remedy": one.remedy} for one in figures.advice],
    }


_BLOCKS = " ▁▂▃▄▅▆▇█"
_HEIGHT = 8
_MARK = "↓"


def chart(
    levels: Sequence[int], marks: Sequence[int], *, window: int, threshold: int | None, width: int = 78
) -> list[str]:
    """Draw the levels as a chart, one level per call. `marks` are the calls before which something was dropped."""
    if not levels:
        return []
    # The window is the top if the highest level is close to it; else a round number above the level.
    highest = max(levels)
    if highest > window / 3:
        top = max(highest, window)
    else:
        size = 10 ** (len(str(max(1, highest))) - 1)
        top = next(step * size for step in (1, 2, 3, 4, 5, 6, 8, 10) if step * size >= highest)
    label = max(len(shown_tokens(value)) for value in (top, threshold or 0))
    columns = min(len(levels), width - label - 2)
    heights = [max(levels[_first_level(n, columns, levels) : _last_level(n, columns, levels)]) for n in range(columns)]
    rows: list[str] = []
    for row in range(_HEIGHT, 0, -1):
        is_threshold = threshold is not None and round(threshold * _HEIGHT / top) == row and threshold < top
        name = shown_tokens(top) if row == _HEIGHT else shown_tokens(threshold or 0) if is_threshold else ""
        edge = "┤" if name else "│"
        cells = "".join(_cell(height * _HEIGHT / top - (row - 1), is_threshold) for height in heights)
        rows.append(f"{name:>{label}} {edge}{cells}".rstrip())
    axis = "".join(_MARK if _is_marked(n, columns, levels, marks) else "─" for n in range(columns))
    first, last = "call 1", f"{len(levels):,}"
    gap = columns - len(first) - len(last)
    caption = f"{first}{' ' * gap}{last}" if gap > 0 else first
    return [*rows, f"{'0':>{label}} └{axis}", " " * (label + 2) + caption]


def _first_level(column: int, columns: int, levels: Sequence[int]) -> int:
    return column * len(levels) // columns


def _last_level(column: int, columns: int, levels: Sequence[int]) -> int:
    return max(_first_level(column, columns, levels) + 1, _first_level(column + 1, columns, levels))


def _cell(part: float, is_threshold: bool) -> str:  # noqa: FBT001
    """Draw one cell, of which the fraction `part` is filled. Anything above zero is visible."""
    eighths = min(8, max(0, round(part * 8)))
    if eighths == 0 and part > 0:
        eighths = 1
    return "┄" if is_threshold and eighths == 0 else _BLOCKS[eighths]


def _is_marked(column: int, columns: int, levels: Sequence[int], marks: Sequence[int]) -> bool:
    """Return whether a drop is marked in this column; one after the last call is marked there too."""
    shown = (min(mark, len(levels) - 1) for mark in marks)
    return any(_first_level(column, columns, levels) <= mark < _last_level(column, columns, levels) for mark in shown)


_WIDTH = 80
_TOOLS, _PIECES = 8, 8
"""Maximum lines."""


def print_report(weighed: WeighedConversation) -> None:
    figures = figures_of(weighed)
    for line in (*_format_head(weighed, figures), "", *draw_grid(weighed.usage, paint_text).split("\n")):
        emit(line)
    _print_notes(weighed)
    levels, usage = weighed.levels, weighed.usage
    if len(levels) > 1:
        reported = sum(level.reported for level in levels)
        how = {0: "as counted", len(levels): "as the provider reported"}.get(reported, f"{reported:,} of them reported")
        emit()
        emit(bold("Waterline") + dim(f"  input tokens of each call, {how}"))
        threshold = int(usage.context_window * usage.compact_threshold / 100)
        for line in chart(
            [level.tokens for level in levels], figures.marks, window=usage.context_window, threshold=threshold
        ):
            emit(line)
        if figures.marks:
            number = len(figures.drops) - 3
            more = f" and {number:,} more" if number > 0 else ""
            emit(dim(f"↓ compacted: {', '.join(figures.drops[:3])}{more}"))
    _print_tools(figures.burdens, weighed)
    if figures.costliest and weighed.levels:
        rows = [
            (
                piece.label,
                shown_tokens(piece.tokens),
                f"× {piece.calls:,}",
                f"= {shown_tokens(piece.carried)}",
                "" if piece.standing else "gone",
            )
            for piece in figures.costliest[:_PIECES]
        ]
        emit()
        _print_table(("Carried longest", "tokens", "calls", "read", ""), rows, frozenset({1, 2, 3}))
    emit()
    emit(bold("Advice"))
    for one in figures.advice:
        text = f"{one.finding} {one.remedy}"
        for number, line in enumerate(textwrap.wrap(text, _WIDTH - 2, break_long_words=False, break_on_hyphens=False)):
            emit(f"{yellow('•') if number == 0 else ' '} {line}")
    if not figures.advice:
        emit("Nothing stands out.")


def _format_head(weighed: WeighedConversation, figures: Figures) -> list[str]:
    one = weighed.conversation
    find_by_id = f"{Path(weighed.file).name}" if not one.title else f"{one.title}"
    now, ever = len(weighed.entries), len(weighed.turns)
    times = {1: "once", 2: "twice"}.get(len(one.compactions), f"{len(one.compactions):,} times")
    said = [
        one.program,
        how_many(len(one.turns), "message") + (f" ({now:,} in the window)" if now != ever else ""),
        how_many(len(one.calls), "call"),
        *([f"compacted {times}"] if one.compactions else []),
    ]
    lines = [bold(_clip_text(find_by_id, _WIDTH)), dim(" · ".join(said))]
    span = ""
    first, last = (one.calls[0].at, one.calls[-1].at) if one.calls else (None, None)
    if first is not None and last is not None:
        day, end = first.strftime("%Y-%m-%d %H:%M"), last.strftime("%H:%M")
        span = f"{day}–{end}" if first.date() == last.date() else f"{day} to {last.strftime('%Y-%m-%d %H:%M')}"
    return [*lines, *(dim(line) for line in (span, figures.spent) if line)]


def _clip_text(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _print_notes(weighed: WeighedConversation) -> None:
    """Print how the figures were obtained."""
    usage, one = weighed.usage, weighed.conversation
    said: list[str] = []
    if weighed.is_guessed:
        said.append(f"The file names no model, so tokens are counted for {weighed.model}; --model sets another.")
    if not weighed.is_whole:
        what = "The tools" if weighed.conversation.system else "The system prompt and the tools"
        size = "and their size is not known"
        if weighed.unseen:
            size = f"the reported usage implies {shown_tokens(weighed.unseen)} tokens"
        said.append(f"{what} are not in this file{';' if weighed.unseen else ','} {size}.")
    if not usage.resolved:
        said.append(f"The window of {usage.model} is not known; set it with --window.")
    said += [f"Skipped: {what} ({count:,})." for what, count in one.unread.items()]
    if said:
        emit()
    for line in (each for text in said for each in textwrap.wrap(text, _WIDTH)):
        emit(dim(line))


def _print_tools(burdens: Sequence[ToolBurden], weighed: WeighedConversation) -> None:
    if not burdens:
        return
    rows = [
        (
            _clip_text(one.name, 34),
            f"{one.calls:,}",
            shown_tokens(one.tokens),
            shown_percent(one.tokens, weighed.usage.weighed),
            shown_tokens(one.carried),
        )
        for one in burdens[:_TOOLS]
    ]
    emit()
    _print_table(("By tool", "calls", "in the window", "of used", "carried in all"), rows, frozenset({1, 2, 3, 4}))
    if len(burdens) > _TOOLS:
        rest = burdens[_TOOLS:]
        emit(dim(f"and {how_many(len(rest), 'tool')} more with {shown_tokens(sum(one.tokens for one in rest))}"))


def _print_table(header: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int]) -> None:
    titles, *lines = columns([header, *rows], right=right)
    emit(bold(titles[: len(header[0])]) + dim(titles[len(header[0]) :]))
    for line in lines:
        emit(line)


def _day(one: WeighedConversation) -> str:
    times = [call.at for call in one.conversation.calls if call.at is not None]
    return f"{max(times).astimezone():%Y-%m-%d}" if times else ""


def print_list(found: Sequence[WeighedConversation]) -> None:
    header = ("", "last", "program", "model", "calls", "cost", "tokens", "used", "")
    costs = [cost_of_calls(one.conversation.calls, one.model) for one in found]
    rows = [
        (
            _clip_text(one.conversation.title or Path(one.file).name, 18),
            _day(one),
            one.conversation.program,
            _clip_text(one.model.removeprefix("claude-"), 13),
            f"{len(one.levels):,}",
            "" if cost is None else f"${cost:,.2f}",
            shown_tokens(one.usage.used),
            shown_percent(one.usage.used, one.usage.context_window, 1),
            f"↓{len(one.conversation.compactions):,}" if one.conversation.compactions else "",
        )
        for one, cost in zip(found, costs, strict=True)
    ]
    _print_table(header, rows, frozenset({4, 5, 6, 7}))
    known = [cost for cost in costs if cost is not None]
    calls, unpriced = sum(len(one.levels) for one in found), len(costs) - len(known)
    total = f"{how_many(len(found), 'session')}, {calls:,} calls, ${sum(known):,.2f} at list prices"
    emit(bold(total) + dim(f"; {how_many(unpriced, 'session')} without a known price" if unpriced else ""))
    files = [one.file for one in found]
    several = [one for one in found if files.count(one.file) > 1 and one.conversation.id is not None]
    emit(dim("Name one file to see what fills it" + (", or one session of several:" if several else ".")))
    for one in several:
        emit(dim(f"  --session {one.conversation.id}"))


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="session files or folders; - is standard input (default: list the latest sessions)",
    )
    add_flags(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    files = _expand_paths(arguments.files) if arguments.files else _find_latest_files(arguments.session)
    # If several files are named, unreadable ones are reported and skipped.
    found: list[FoundConversation] = []
    unread: list[UnreadableFile] = []
    for file in files:
        try:
            found += read_conversations_in(file)
        except UnreadableFile as error:
            unread.append(error)
    if not found:
        raise unread[0]
    say(*(f"ullage: {error.message}" for error in unread))
    if arguments.session is not None:
        found = [find_by_id(found, arguments.session)]
    if len(found) > 1:
        options = Options(context_window=arguments.window)
        with Progress(sum(one.size for one in found), "weighing") as progress:
            weighed = [weigh(one, options, arguments.model) for one in progress.through(found)]
        if arguments.json:
            emit_json([listed_json(one) for one in weighed])
        else:
            print_list(weighed)
        return 0
    weighed = weigh(found[0], Options(context_window=arguments.window), arguments.model)
    if arguments.json:
        emit_json(report_json(weighed))
    else:
        print_report(weighed)
    return 0


def _expand_paths(words: Sequence[str]) -> list[str]:
    """Return the named files, and those below folders, the most recently changed last."""
    files: list[str] = []
    for word in words:
        if word != STDIN and Path(word).is_dir():
            below = [one for one in Path(word).rglob("*") if one.suffix in (".json", ".jsonl") and one.is_file()]
            files += [str(one) for one in sorted(below, key=lambda one: one.stat().st_mtime)]
        else:
            files.append(word)
    if not files:
        raise UnreadableFile(f"no session is in {', '.join(f'`{word}`' for word in words)}")
    return files


def _find_latest_files(session: str | None) -> list[str]:
    """Return the session files most recently changed on this machine; with a session's id, those that have it in their
    name."""
    found = [one for one in find_logs(os.environ) if one.program != "opencode" or one.path.endswith(".db")]
    if session is not None:
        found = [one for one in found if session in one.path] or found
    if not found:
        raise UnreadableFile(
            "no session of a known program was found on this machine", suggestion="name a session's file or a folder"
        )
    found.sort(key=lambda one: one.changed)
    # A task of Cline has its calls and its messages in two files.
    logs = [Path(one.path) for one in found[-_LATEST:]]
    return [
        str(log.with_name("api_conversation_history.json") if log.name == "ui_messages.json" else log) for log in logs
    ]
