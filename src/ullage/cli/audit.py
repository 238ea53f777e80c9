"""Show what was refused, withheld, approved, revoked or answered by another model: who, what, why and when.

Events come from the store that all gateways of this machine or team write to. They contain no arguments or results.
"""

import argparse
import csv
import os
import sys
from datetime import datetime, time, timedelta
from pathlib import Path

from ullage.config import Flags, load
from ullage.errors import InvalidArguments
from ullage.ledger import AUDIT_KINDS, read_audit
from ullage.store import Database

from .output import cut, dim, emit, emit_json, fitted_columns, plain, screen
from .usage import parse_day, parse_zone

__all__ = ["arguments", "run"]

_COLUMNS = ("time", "kind", "principal", "session", "client", "server", "subject", "reason")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--since", metavar="DAY", default="30d", help="first day: 2026-11-18, 7d, today (default: 30d)")
    parser.add_argument("--until", metavar="DAY", help="last day")
    parser.add_argument("--kind", choices=AUDIT_KINDS, help="show only events of this kind")
    parser.add_argument(
        "--limit",
        metavar="NUMBER",
        type=int,
        default=1_000,
        help="show at most this many events, the latest ones (default: 1000)",
    )
    parser.add_argument("--timezone", metavar="ZONE", help="time zone of the days (default: this machine's)")
    parser.add_argument("--store", metavar="URL", help="store to read (default: that of the settings)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--csv", action="store_true", help="print CSV")


def run(arguments: argparse.Namespace) -> int:
    if arguments.limit < 1:
        raise InvalidArguments(f"--limit {arguments.limit} is less than 1")
    zone = parse_zone(arguments.timezone)
    today = datetime.now(zone).date()
    since = datetime.combine(parse_day(arguments.since, today), time(), zone)
    last = None if arguments.until is None else parse_day(arguments.until, today) + timedelta(days=1)
    until = None if last is None else datetime.combine(last, time(), zone)
    database = Database.open(arguments.store or load(Flags(), os.environ, Path.cwd()).settings.store)
    try:
        found = list(read_audit(database, since=since, until=until, kind=arguments.kind, limit=arguments.limit))
    finally:
        database.close()
    if arguments.json:
        emit_json([dict(event.to_json()) for event in found])
    elif arguments.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(_COLUMNS)
        # An apostrophe keeps a spreadsheet from reading a name as a formula.
        for event in found:
            cells = event.to_json()
            row = [cells[name] or "" for name in _COLUMNS]
            writer.writerow([f"'{cell}" if cell[:1] in ("=", "+", "-", "@") else cell for cell in row])
    elif not found:
        emit(f"Nothing was refused, withheld, approved or replaced since {since.date()}.")
    else:
        rows = [("when", "event", "who", "what", "why")]
        for event in found:
            who = " ".join(filter(None, (event.principal, event.client and f"({event.client})")))
            what = f"{event.server}: {event.subject}" if event.server else event.subject
            when = event.time.astimezone().strftime("%m-%d %H:%M")
            rows.append((when, event.kind, plain(who), plain(what)[:60], plain(event.reason)))
        lines = fitted_columns(rows) or ["  ".join(row) for row in rows]
        emit(dim(cut(lines[0], screen())))
        for line in lines[1:]:
            emit(line)
    return 0
