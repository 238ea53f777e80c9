"""Show what was spent and saved, in tokens and dollars.

Reads new entries in the session logs of Claude Code, Codex, Gemini CLI, opencode, pi and Cline on this machine, and the
ledger of all gateways that share the store. Only model calls count as spending.
"""

import argparse
import csv
import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from pathlib import Path

from ullage.app.usage_advice import Advice, Block, Span, UnusedTools, advise, five_hour_blocks, open_usage, unused_tools
from ullage.errors import InvalidArguments
from ullage.ledger import GROUPS, Group, Line, Report, usage_report
from ullage.tool import Json

from .output import bold, columns, cut, dim, emit, emit_json, green, page, plain, say, screen, width_of

__all__ = ["arguments", "money", "parse_day", "parse_zone", "report_json", "run", "short"]

_PERIODS = {"today": 0, "yesterday": 1, "week": 6, "month": 29}
_UNNAMED = "(unknown)"
_NO_TOOL = "(model calls)"
"""The row of what no server or tool caused."""
_LESS_IMPORTANT = ("written", "cache read", "errors", "calls")
"""Columns that are left out, in this order, where a table is wider than the terminal."""
_MOST_UNUSED = 10
"""Servers whose unused tools are shown; JSON has all."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--since", metavar="DAY", help="first day: 2026-11-18, 7d, today (default: 30 days; all with --by month)"
    )
    parser.add_argument("--until", metavar="DAY", help="last day")
    parser.add_argument("--by", choices=(*GROUPS, "block"), default="day", help="what to group by (default: day)")
    parser.add_argument("--timezone", metavar="ZONE", help="time zone of the days (default: this machine's)")
    parser.add_argument("--store", metavar="URL", help="store with the ledger (default: that of the settings)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--csv", action="store_true", help="print CSV")


def run(arguments: argparse.Namespace) -> int:
    zone = parse_zone(arguments.timezone)
    today = datetime.now(zone).date()
    since = parse_day(arguments.since, today) if arguments.since else None
    if since is None and arguments.by in ("day", "block", "session"):
        since = today - timedelta(days=29)
    last = parse_day(arguments.until, today) if arguments.until else None
    until = None if last is None else last + timedelta(days=1)
    if since is not None and last is not None and last < since:
        raise InvalidArguments(f"the last day, {last}, is before the first, {since}")
    with open_usage(arguments.store, os.environ, Path.cwd()) as usage:
        if not usage.imported.is_complete:
            say("ullage: some logs were not read")
        if arguments.by == "block":
            blocks = five_hour_blocks(usage.database, since=since, until=until, zone=zone)
            if arguments.csv:
                writer = csv.writer(sys.stdout, lineterminator="\n")
                names = "start end client calls input cache_read cache_write output reasoning dollars"
                writer.writerow(names.split())
                for one in blocks:
                    spent, span = one.spent, [moment.astimezone(zone).isoformat() for moment in (one.start, one.end)]
                    fresh = spent.input - spent.cache_read - spent.cache_write
                    figures = [spent.calls, fresh, spent.cache_read, spent.cache_write, spent.output, spent.reasoning]
                    writer.writerow([*span, _safe_cell(one.client), *figures, spent.dollars])
            else:
                _print_blocks(blocks, zone, as_json=arguments.json)
            return 0
        report = usage_report(usage.database, by=arguments.by, since=since, until=until, zone=zone, prices=usage.price)
        advice = advise(usage, report, Span(since, until, zone))
        unused = unused_tools(usage, report, Span(since, until, zone))
    if arguments.json:
        said = report_json(report, [one.to_json() for one in advice])
        emit_json({**said, "unusedTools": [one.to_json() for one in unused]})
    elif arguments.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        header = [
            report.by, "calls", "input", "cache_read", "cache_write", "output", "reasoning", "dollars", "saved_tokens",
            "saved_dollars", "tool_uses", "tool_errors", "result_tokens",
        ]  # fmt: skip
        writer.writerow(header)
        for line in report.lines:
            spent, saved = line.spent, line.saved
            fresh = spent.input - spent.cache_read - spent.cache_write
            of_calls = [spent.calls, fresh, spent.cache_read, spent.cache_write, spent.output, spent.reasoning]
            of_use = [saved.net, saved.dollars, line.uses, line.errors, line.result_tokens]
            writer.writerow([_safe_cell(line.key), *of_calls, spent.dollars, *of_use])
    else:
        _print_report(report, advice, unused if report.by in ("server", "tool") else [])
    return 0


def parse_zone(name: str | None) -> tzinfo:
    """Return the time zone of this name; this machine's for None."""
    if name is None:
        return _LocalZone()
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidArguments(
            f"`{name}` is not a time zone", suggestion="write it like Europe/Berlin, or UTC"
        ) from error


class _LocalZone(tzinfo):
    """This machine's time zone, including its changes during the year."""

    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        return None if dt is None else dt.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, dt: datetime | None) -> timedelta | None:
        return None

    def tzname(self, dt: datetime | None) -> str | None:
        return None if dt is None else dt.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, dt: datetime) -> datetime:
        return dt.replace(tzinfo=UTC).astimezone().replace(tzinfo=self)


def parse_day(word: str, today: date) -> date:
    """Parse a day: `2026-11-18`, `20261118`, `7d` (that many days including today), `today`, `yesterday`, `week`,
    `month`."""
    if word in _PERIODS:
        return today - timedelta(days=_PERIODS[word])
    try:
        day = today - timedelta(days=int(word[:-1]) - 1) if word.endswith("d") else date.fromisoformat(word)
    except (ValueError, OverflowError) as error:
        raise InvalidArguments(
            f"`{word}` is not a day", suggestion="write 2026-11-18, 7d, today, yesterday, week or month"
        ) from error
    if word.endswith("d") and day > today:
        raise InvalidArguments(f"`{word}` is in the future", suggestion="write 1d for today")
    return day


def short(tokens: float) -> str:
    """Format tokens in at most six characters: 950, 12.3k, 4.56M."""
    size = abs(tokens)
    for limit, unit, divisor in ((1e12, "T", 1e12), (1e9, "B", 1e9), (1e6, "M", 1e6), (1e4, "k", 1e3)):
        if size >= limit * 0.9995:
            value = tokens / divisor
            return f"{value:.0f}{unit}" if abs(value) >= 99.95 else f"{value:.3g}{unit}"
    return f"{tokens:,.0f}"


def money(dollars: Decimal | None) -> str:
    if dollars is None:
        return "–"
    if dollars and abs(dollars) < Decimal("0.005"):
        return "<$0.01" if dollars > 0 else ">-$0.01"
    return f"{'-' if dollars < 0 else ''}${abs(dollars):,.2f}"


def _print_report(report: Report, advice: Sequence[Advice], unused: Sequence[UnusedTools]) -> None:
    total = report.total
    if not total.spent.calls and not total.requests and not unused:
        emit(f"No usage was recorded {_format_span(report)}.")
        emit(dim("Try `ullage usage --by month`; `ullage status` shows where Ullage is installed."))
        return
    span = _format_span(report)
    worth = "" if total.saved.dollars is None else f" ({money(total.saved.dollars)})"
    saved = f"{short(total.saved.net)} tokens{worth}"
    if not total.requests and not total.saved.net:
        saved = "nothing yet" + dim(" (Ullage served no client)")
    emit(f"{bold('Spent')} {money(total.spent.dollars)}   {bold('Saved')} {saved}   {dim(span)}")
    emit()
    for line in _format_table(report):
        emit(line)
    notes = list(_format_notes(total))
    for line in (line for note in notes for line in textwrap.wrap(note, page())):
        emit(dim(line))
    _print_unused(unused)
    if advice:
        emit()
        emit(bold("Most worth doing"))
        for one in advice:
            worth = "" if one.dollars is None else f" ({money(one.dollars)})"
            for line in textwrap.wrap(plain(one.finding) + worth, page() - 2):
                emit(f"  {line}")
            emit(f"    {green(plain(one.command))}")


def _format_span(report: Report) -> str:
    span = f"since {report.since}" if report.since else "all time"
    return span if report.until is None else f"{span} until {report.until - timedelta(days=1)}"


def _print_unused(unused: Sequence[UnusedTools]) -> None:
    if not unused:
        return
    emit()
    emit(bold("Never used"))
    for one in unused[:_MOST_UNUSED]:
        worth = "" if not one.dollars else f", {money(one.dollars)} if every request had listed them"
        names = ", ".join(one.names)
        count = f"{len(one.names)} of {one.tools} tools" if len(one.names) < one.tools else f"all {one.tools} tools"
        which = f": {names}" if len(one.names) < one.tools else ""
        said = f"{one.server}: {count}, {one.tokens:,} tokens{worth}{which}"
        for line in textwrap.wrap(plain(said), page() - 2, max_lines=2, placeholder=" …"):
            emit(f"  {line}")


def _format_notes(total: Line) -> Iterator[str]:
    spent, saved = total.spent, total.saved
    if spent.missed:
        # Without a known price there is no difference to name.
        more = f": {money(spent.missed_dollars)} more than cache reads" if spent.missed_dollars else ""
        yield f"{short(spent.missed)} tokens that had been cached were sent again{more}"
    if total.requests:
        parts = {
            "definitions": saved.definitions,
            "results": saved.result,
            "history": saved.history,
            "searches": saved.search,
            "read back": saved.page,
        }
        named = [f"{name} {short(value)}" for name, value in parts.items() if value]
        if named:
            yield f"Saved tokens: {', '.join(named)}"
    if spent.unpriced:
        yield f"{spent.unpriced:,} of {spent.calls:,} calls have no known price and are in no sum of money"


def _format_table(report: Report) -> list[str]:
    wide, by = screen() >= 100, report.by
    lines = report.lines
    if by not in ("day", "week", "month", "session"):
        lines = tuple(sorted(lines, key=lambda one: (-(one.spent.dollars or 0), -one.uses, one.key)))
    is_use = by in ("server", "tool")
    has_savings = bool(report.total.requests or report.total.saved.net)
    if is_use:
        header = (by, "uses", "errors", "tokens", "saved", "calls", "cost")
        rows = [header, *(_use_row(line, _label(line, by)) for line in lines), _use_row(report.total, "total")]
    else:
        header = (by, *(("models",) if wide else ()), "calls", "input", "output", "cache read", "written", "cost")
        every = [*((line, _label(line, by)) for line in lines), (report.total, "total")]
        rows: list[tuple[str, ...]] = []
        for line, label in every:
            spent = line.spent
            models = sorted(line.models, key=lambda name: -(line.models[name].dollars or 0))
            named = ", ".join(
                name.removeprefix("claude-").removesuffix("-latest").split("-20")[0] for name in models[:2]
            ) + (f" +{len(models) - 2}" if len(models) > 2 else "")
            fresh = spent.input - spent.cache_read - spent.cache_write
            rows.append(
                (
                    label,
                    *((plain(named)[:34],) if wide else ()),
                    f"{spent.calls:,}",
                    short(fresh),
                    short(spent.output),
                    short(spent.cache_read),
                    short(spent.cache_write),
                    money(spent.dollars) if spent.calls else "",
                )
            )
        if has_savings:
            header = (*header, "saved")
            rows = [(*row, short(line.saved.net)) for row, (line, _) in zip(rows, every, strict=True)]
        rows = [header, *rows]
    width = screen()
    aligned = _fit_table(rows, left=2 if wide and not is_use else 1)
    shown = [dim(cut(aligned[0], width)), *(cut(one, width) for one in aligned[1:-1]), bold(cut(aligned[-1], width))]
    return shown if len(lines) != 1 else shown[:-1]


def _fit_table(rows: Sequence[tuple[str, ...]], *, left: int) -> list[str]:
    """Return rows as aligned lines, without some of their figures where the terminal is too narrow for all.

    Args:
        rows: The header, then the rows.
        left: How many columns are flush left.
    """
    while True:
        aligned = columns(rows, right=frozenset(range(left, len(rows[0]))))
        name = next((one for one in _LESS_IMPORTANT if one in rows[0]), None)
        if name is None or max(map(width_of, aligned)) <= screen():
            return aligned
        place = rows[0].index(name)
        rows = [(*row[:place], *row[place + 1 :]) for row in rows]


def _label(line: Line, by: Group) -> str:
    name = plain(line.key) or (_NO_TOOL if by in ("server", "tool") else _UNNAMED)
    if by == "session":
        day = "" if line.last is None else line.last.astimezone().strftime("%m-%d ")
        project = "" if line.project is None else f" {Path(line.project).name}"
        return f"{day}{(line.client or '')[:11]} {name[:8]}{plain(project)[:18]}"
    if by == "project" and len(name) > 30:
        return "…" + name[-29:]
    return name if len(name) <= 36 else name[:35] + "…"


def _use_row(line: Line, label: str) -> tuple[str, ...]:
    return (
        label,
        f"{line.uses:,}",
        f"{line.errors:,}" if line.errors else "",
        short(line.result_tokens),
        short(line.saved.net) if line.requests else "",
        f"{line.spent.calls:,}" if line.spent.calls else "",
        money(line.spent.dollars) if line.spent.calls else "",
    )


def report_json(report: Report, advice: Sequence[Json]) -> dict[str, Json]:
    return {
        "by": report.by,
        "since": None if report.since is None else report.since.isoformat(),
        "until": None if report.until is None else (report.until - timedelta(days=1)).isoformat(),
        "lines": [one.to_json() for one in report.lines],
        "total": report.total.to_json(),
        "advice": list(advice),
    }


def _safe_cell(text: str) -> str:
    """Keep a text from being read as a formula by a spreadsheet, because names come from others."""
    return f"'{text}" if text[:1] in "=+-@\t\r" and text else text


def _print_blocks(found: Sequence[Block], zone: tzinfo, *, as_json: bool) -> None:
    if as_json:
        emit_json(
            [
                {
                    "start": one.start.isoformat(),
                    "end": one.end.isoformat(),
                    "isActive": one.is_active,
                    "client": one.client,
                    "spent": one.spent.to_json(),
                }
                for one in found
            ]
        )
        return
    rows = [("block", "client", "calls", "input", "output", "cache read", "written", "cost", "state")]
    for one in found:
        spent = one.spent
        start = one.start.astimezone(zone)
        fresh = spent.input - spent.cache_read - spent.cache_write
        label = f"{start:%Y-%m-%d %H:%M}–{one.end.astimezone(zone):%H:%M}"
        figures = (short(fresh), short(spent.output), short(spent.cache_read), short(spent.cache_write))
        rows.append(
            (label, one.client, f"{spent.calls:,}", *figures, money(spent.dollars), green("active") * one.is_active)
        )
    if not any(row[-1] for row in rows[1:]):
        rows = [row[:-1] for row in rows]
    for number, line in enumerate(_fit_table(rows, left=2)):
        emit(dim(line) if number == 0 else line)
