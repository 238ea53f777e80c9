"""Start the MCP servers of every program once, and count what their tools cost.

Shows for each program what its servers add to every request, and how much of it Ullage would save, in tokens of that
program's model. Programs that load tools on demand are charged only for what they send. Servers from project files that
you have not approved are listed but not started. Nothing is changed.
"""

import argparse
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio

from ullage import __version__
from ullage.app.build_gateway import Gateway
from ullage.app.scan_servers import (
    ClientScan,
    Outcome,
    ScannedServer,
    ScanPlan,
    list_tools,
    plan_scan,
    read_known,
    report_client,
    report_scan,
)
from ullage.clients.configs import PROGRAMS, current_surroundings, read_clients
from ullage.config import Places, approve_command
from ullage.errors import BadConfiguration
from ullage.gateway import ASSUMED
from ullage.tool import Json

from ..app.install_plan import program_of
from .load_settings import with_gateway
from .output import (
    bold,
    columns,
    cut,
    dim,
    emit,
    emit_json,
    emit_wrapped,
    green,
    how_many,
    plain,
    red,
    screen,
    short_path,
    show_waiting,
    width_of,
    wrap_line,
    yellow,
)

__all__ = [
    "arguments",
    "client_json",
    "next_step",
    "pending_lines",
    "plan_for",
    "review_command",
    "run",
    "scan_clients",
    "short_reason",
    "show_overview",
]

_WAIT = 20.0
"""Seconds allowed to all servers together."""
_STATES = {
    "sign-in": "needs a sign-in",
    "pending": "not approved, not started",
    "disabled": "switched off",
    "unknown": "not known yet",
}
_NAME_COLUMNS = 24


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", nargs="?", metavar="CLIENT", help=f"this program only: {', '.join(PROGRAMS)}")
    parser.add_argument(
        "--wait", metavar="SECONDS", type=float, default=_WAIT, help=f"time limit for all servers (default {_WAIT:g})"
    )
    parser.add_argument("--store", metavar="URL", help="SQLite file or PostgreSQL database for the catalogue")
    parser.add_argument("--json", action="store_true", help="print JSON, with every tool")


def run(arguments: argparse.Namespace) -> int:
    plan = plan_for(arguments.client, store=arguments.store)
    scans = scan_clients(plan, max(arguments.wait, 0.1))
    if arguments.json:
        emit_json({"clients": [client_json(one) for one in scans], "counted_as": ASSUMED.counted_as})
        return 0
    for one in scans:
        for line in _client_lines(one):
            emit(line)
    for line in pending_lines(scans):
        emit(line)
    if not scans:
        emit("No program with MCP servers was found.")
    emit(next_step(scans))
    return 0


def plan_for(client: str | None, *, store: str | None = None) -> ScanPlan:
    """Return the plan for scanning this user's programs, or one of them.

    Raises:
        BadConfiguration: The user's own settings cannot be read.
    """
    wanted = None if client is None else program_of(client).name
    around, places = current_surroundings(), Places.of_user()
    clients = [one for one in read_clients(around) if wanted in (None, one.program.name)]
    try:
        plan = plan_scan(clients, places, os.environ, Path.cwd(), store=store)
    except (OSError, ValueError) as error:
        raise BadConfiguration(
            f"`{places.user_file}` {error}", suggestion="fix the file first; `ullage doctor` shows details"
        ) from error
    if plan.loaded.errors:
        raise BadConfiguration(
            "; ".join(issue.sentence() for issue in plan.loaded.errors), suggestion="`ullage doctor` shows details"
        )
    return plan


def scan_clients(plan: ScanPlan, wait: float) -> tuple[ClientScan, ...]:
    """Start the servers of a plan, with progress on standard error, and report on every program."""
    names = plan.names
    waiting = dict.fromkeys(names)

    def done(name: str, _: Outcome) -> None:
        waiting.pop(name, None)

    async def look(gateway: Gateway) -> tuple[ClientScan, ...]:
        async with show_waiting(len(names), lambda: tuple(waiting)):
            outcomes = await list_tools(gateway, names, wait, when_done=done)
            return await report_scan(plan, gateway, outcomes)

    return with_gateway(plan.loaded, look, is_quiet=True)


# -- For people


def _client_lines(scan: ClientScan) -> Iterator[str]:
    config = scan.config
    shown = [one for one in scan.servers if one.state != "pending"]
    if not shown and not config.problems:
        return
    model = f"{scan.model or 'o200k_base'}{' (assumed)' if scan.is_model_assumed and scan.model else ''}"
    deferring = "; loads tools on demand" if config.defers_tools else ""
    yield f"{bold(config.program.title)}  {dim(plain(model) + deferring)}"
    if shown:
        is_installed = scan.is_installed
        rows = [("server", "tools", "tokens"), *map(_server_row, shown)]
        notes = ["most expensive tools", *("" for _ in shown)]
        if len(shown) > 1:
            counted = [one for one in shown if one.state == "counted" and not one.is_doubled]
            rows.append(
                ("total", f"{sum(len(one.tools) for one in counted):,}", f"{sum(one.tokens for one in counted):,}")
            )
            notes.append("" if len(counted) == len(shown) else f"of {how_many(len(counted), 'server')}")
        lines = columns(rows, right=frozenset({1, 2}))
        room = screen() - max(map(width_of, lines)) - 4
        notes[1 : len(shown) + 1] = [_describe_server(one, room, is_installed=is_installed) for one in shown]
        indent = max(map(width_of, lines))
        for number, (line, note) in enumerate(zip(lines, notes, strict=True)):
            text = f"  {line}{' ' * (indent - width_of(line))}  {note}".rstrip()
            state = shown[number - 1].state if 0 < number <= len(shown) else None
            if number == 0 or state in ("disabled", "unknown"):
                yield dim(text)
            elif state in ("failed", "late"):
                yield red(text)
            else:
                yield yellow(text) if state == "sign-in" else text
    yield from (f"  {line}" for line in _format_sums(scan))
    doubled = ", ".join(plain(one.name) for one in scan.servers if one.is_doubled)
    if doubled:
        yield f"  {yellow('warning')}  {doubled}: listed here and behind Ullage, so its tokens are paid for twice"
        yield f"           run: ullage install {config.program.name}"
    for problem in config.problems:
        yield from wrap_line(f"  {yellow('problem')}  {short_path(problem.file)} {plain(problem.message)}")
    yield ""


def _server_row(server: ScannedServer) -> tuple[str, str, str]:
    name = cut(plain(server.name), _NAME_COLUMNS)
    if server.state != "counted":
        return name, "-", "-"
    return name, f"{len(server.tools):,}", f"{server.tokens:,}"


def _describe_server(server: ScannedServer, room: int, *, is_installed: bool) -> str:
    """Return a problem of a server, or the most expensive of its tools that fit."""
    if server.state != "counted":
        return cut(short_reason(server), room)
    note = (
        "behind Ullage too"
        if server.is_doubled
        else "not behind Ullage"
        if is_installed and not server.is_behind
        else ""
    )
    for tool in server.tools[:3]:
        more = f"{note}{', ' if note else ''}{plain(tool.name)} {tool.tokens:,}"
        if width_of(more) > room:
            break
        note = more
    return note


def short_reason(server: ScannedServer) -> str:
    """Return on one line why a server's tools are not known."""
    reason = _STATES.get(server.state) or plain(" ".join(server.reason.split()))
    return reason.replace("ended with exit", "exit").replace("; it last said: ", ": ")


def _format_sums(scan: ClientScan) -> Iterator[str]:
    """Yield the tokens that a request carries now, and with Ullage."""
    if scan.now is None or scan.with_ullage is None or scan.saved is None:
        return
    if scan.is_installed:
        without, saved = scan.without or 0, (scan.without or 0) - scan.now
        share = f" ({saved / without:.0%})" if without else ""
        now = f"{bold(f'{scan.now:,}')} tokens in every request"
        yield f"{now}, {without:,} without Ullage: {_format_saving(saved, share)}"
        if any(one.state == "counted" for one in scan.own) and scan.now > scan.with_ullage:
            yield f"{bold(f'{scan.with_ullage:,}')} with Ullage in front of the rest, too"
        return
    share = f" ({scan.saved / scan.now:.0%})" if scan.now else ""
    now = f"{bold(f'{scan.now:,}')} tokens in every request"
    yield f"{now}, {scan.with_ullage:,} with Ullage: {_format_saving(scan.saved, share)}"


def _format_saving(tokens: int, share: str) -> str:
    return (
        green(f"{tokens:,} saved{share}")
        if tokens > 0
        else dim(f"{-tokens:,} more, nothing saved" if tokens else "nothing saved")
    )


def pending_lines(scans: Sequence[ClientScan]) -> Iterator[str]:
    """Yield the servers of project files that wait for approval, with their commands."""
    pending = [(scan, one.entry) for scan in scans for one in scan.servers if one.state == "pending" and one.entry]
    files = dict[str, dict[str, list[str]]]()
    for scan, entry in pending:
        launch = shlex.join((entry.command or "", *entry.arguments)) if entry.url is None else entry.url.split("?")[0]
        lines = files.setdefault(entry.file, {}).setdefault(f"{plain(entry.name)}  {plain(launch)}", [])
        lines.append(scan.config.program.title)
    if not files:
        return
    yield bold("Pending: not approved, not started")
    for file, servers in files.items():
        yield f"  {short_path(file)}"
        for line, titles in servers.items():
            yield cut(f"    {line}", max(screen(), 60)) + dim(f"  ({', '.join(titles)})" if width_of(line) < 40 else "")
        yield f"    review it: {review_command(file)}"
    yield ""


def review_command(file: str) -> str:
    """Return the command with which a person reviews a project's file, to be pasted into a shell in the working
    folder."""
    short = short_path(file)
    return plain(approve_command(file if short.startswith("~") else short))


def next_step(scans: Sequence[ClientScan]) -> str:
    """Return the command that is most useful to this user now."""
    waiting = [one for one in scans if not one.is_installed and (one.saved or 0) > 0]
    if waiting:
        best = max(waiting, key=lambda one: one.saved or 0)
        return f"Next: ullage install {best.config.program.name} --dry-run"
    if any(one.is_doubled for scan in scans for one in scan.servers):
        return "Next: ullage install CLIENT, for each program with a warning"
    pending = [
        server.entry.file for one in scans for server in one.servers if server.state == "pending" and server.entry
    ]
    if any(one.is_installed for one in scans):
        return "Next: ullage status"
    return f"Next: {review_command(pending[0])}" if pending else "Next: ullage --help"


# -- For programs


def client_json(scan: ClientScan) -> dict[str, Json]:
    """Return one program's report."""
    servers: list[Json] = []
    for server in scan.servers:
        entry = server.entry
        is_known = server.state == "counted"
        pending = entry if server.state == "pending" else None
        servers.append(
            {
                "server": server.name,
                "state": server.state,
                "reason": server.reason or None,
                "behind": server.is_behind,
                "doubled": server.is_doubled,
                "scope": None if entry is None else entry.scope,
                "file": None if entry is None else entry.file,
                "command": [pending.command or "", *pending.arguments]
                if pending is not None and pending.url is None
                else None,
                # Without its query, which may contain a key.
                "url": None if pending is None or pending.url is None else pending.url.split("?")[0],
                "tools": [{"name": one.name, "tokens": one.tokens} for one in server.tools] if is_known else None,
                "instructions": server.instructions if is_known else None,
                "tokens": server.tokens if is_known else None,
            }
        )
    return {
        "client": scan.config.program.name,
        "title": scan.config.program.title,
        "files": [file.path for file in scan.config.files],
        "model": scan.model,
        "model_assumed": scan.is_model_assumed,
        "defers_tools": scan.config.defers_tools,
        "installed": scan.is_installed,
        "servers": servers,
        "tokens": {
            "without": scan.without,
            "now": scan.now,
            "with_ullage": scan.with_ullage,
            "saved": scan.saved,
        },
        "problems": [{"file": one.file, "message": one.message} for one in scan.config.problems],
    }


def show_overview(*, as_json: bool) -> int:
    """Print the screen of `ullage` without arguments: programs, servers, what they cost, and the next command.

    Starts nothing. Returns the exit status.
    """
    plan = plan_for(None)
    known = anyio.run(read_known, plan.loaded, plan.names, os.environ)
    scans = [report_client(plan, config, known) for config in plan.clients]
    if as_json:
        emit_json({"version": __version__, "clients": list[Json](client_json(one) for one in scans)})
        return 0
    emit(f"{bold('Ullage')} {__version__}  {dim('MCP servers of your programs; nothing was started')}")
    emit()
    shown = [one for one in scans if one.is_installed or any(server.state != "pending" for server in one.servers)]
    if shown:
        rows = [("program", "servers", "tokens per request", ""), *map(_overview_row, shown)]
        for number, row in enumerate(columns(rows, right=frozenset({1, 2}))):
            line = cut(f"  {row}", screen())
            emit(dim(line) if number == 0 else line)
    else:
        emit("  No program with MCP servers was found.")
    emit()
    for line in pending_lines(scans):
        emit(line)
    warnings = [one for one in scans if any(server.is_doubled for server in one.servers)]
    for one in warnings:
        names = ", ".join(plain(server.name) for server in one.servers if server.is_doubled)
        emit(f"{yellow('warning')}  {one.config.program.title} lists {names} although Ullage serves them too")
    for one in (problem for scan in scans for problem in scan.config.problems):
        emit_wrapped(f"{yellow('problem')}  {short_path(one.file)} {plain(one.message)}")
    emit(f"{bold('Next')}  {_suggest_command(scans, warnings)}")
    emit(dim("      ullage --help lists all commands"))
    return 0


def _overview_row(scan: ClientScan) -> tuple[str, str, str, str]:
    servers = [one for one in scan.servers if one.state not in ("pending", "disabled")]
    counted = sum(one.state == "counted" for one in servers)
    tokens = scan.now
    said = "without Ullage"
    if scan.is_installed:
        said = "Ullage is installed" if scan.without is None else f"with Ullage, {scan.without:,} without it"
    if tokens is not None and counted < len(servers):
        said += f" ({counted} of {len(servers)} counted)"
    return scan.config.program.title, f"{len(servers)}", "not known" if tokens is None else f"{tokens:,}", said


def _suggest_command(scans: Sequence[ClientScan], warnings: Sequence[ClientScan]) -> str:
    if warnings:
        return f"ullage install {warnings[0].config.program.name}"
    if any(one.own and not any(server.state == "counted" for server in one.servers) for one in scans):
        return f"ullage scan    {dim('start the servers once and count their tools')}"
    waiting = [one for one in scans if not one.is_installed and one.own]
    if waiting:
        best = max(waiting, key=lambda one: one.now or 0)
        return f"ullage install {best.config.program.name} --dry-run    {green('see what would change')}"
    pending = [
        server.entry.file for one in scans for server in one.servers if server.state == "pending" and server.entry
    ]
    if pending:
        return review_command(pending[0])
    return "ullage status" if scans else "ullage serve --help"
