"""The screen of `ullage` without arguments: programs, servers, what they cost, and the next command. Starts nothing."""

import os
from collections.abc import Iterator, Sequence

import anyio

from ullage import __version__
from ullage.app.scan_servers import ClientScan, read_known, report_client
from ullage.tool import Json

from .output import bold, columns, cut, dim, emit, emit_json, green, plain, screen, yellow
from .scan import client_json, pending_lines, plan_for, review_command

__all__ = ["show_overview"]


def show_overview(*, as_json: bool) -> int:
    """Print the screen; return the exit status."""
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
        for line in _table(shown):
            emit(line)
    else:
        emit("  No program with MCP servers was found.")
    emit()
    for line in pending_lines(scans):
        emit(line)
    warnings = [one for one in scans if any(server.is_doubled for server in one.servers)]
    for one in warnings:
        names = ", ".join(plain(server.name) for server in one.servers if server.is_doubled)
        emit(f"{yellow('warning')}  {one.config.program.title} lists {names} beside Ullage, which serves them too")
    emit(f"{bold('Next')}  {_next(scans, warnings)}")
    emit(dim("      ullage --help lists all commands"))
    return 0


def _table(scans: Sequence[ClientScan]) -> Iterator[str]:
    rows = [("program", "servers", "tokens per request", ""), *map(_row, scans)]
    for number, line in enumerate(columns(rows, right=frozenset({1, 2}))):
        text = cut(f"  {line}", screen())
        yield dim(text) if number == 0 else text


def _row(scan: ClientScan) -> tuple[str, str, str, str]:
    servers = [one for one in scan.servers if one.state not in ("pending", "disabled")]
    counted = sum(one.state == "counted" for one in servers)
    tokens = scan.now
    said = "without Ullage"
    if scan.is_installed:
        said = "Ullage is installed" if scan.without is None else f"with Ullage, {scan.without:,} without it"
    if tokens is not None and counted < len(servers):
        said += f" ({counted} of {len(servers)} counted)"
    return scan.config.program.title, f"{len(servers)}", "not known" if tokens is None else f"{tokens:,}", said


def _next(scans: Sequence[ClientScan], warnings: Sequence[ClientScan]) -> str:
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
