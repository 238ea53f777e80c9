"""Say what is wrong with the settings and with each server behind Ullage, and what to do about it.

Starts every server once and asks for its tools. Ends with 1 where something is wrong.
"""

import argparse
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from ullage.app.gateway import Gateway
from ullage.config import Issue, Loaded
from ullage.errors import UllageError
from ullage.gateway import Server
from ullage.tool import Json
from ullage.wire import Health

from .configured import add_flags, examined, with_gateway
from .output import bold, dim, emit, emit_json, green, red, yellow

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", nargs="?", metavar="SERVER", help="look at this one only")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_flags(parser)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What came of looking at one server."""

    server: Server
    health: Health | None = None
    """None for one that is not to be started."""
    tools: int | None = None
    tokens: int | None = None
    error: UllageError | None = None

    @property
    def is_well(self) -> bool:
        return self.error is None


def run(arguments: argparse.Namespace) -> int:
    loaded = examined(arguments)
    servers = [server for server in loaded.settings.servers if arguments.server in (None, server.name)]
    found = [] if loaded.errors else with_gateway(loaded, lambda gateway: _look(gateway, servers))
    if arguments.json:
        emit_json(_json(loaded, found))
    else:
        _print(loaded, found)
    wrong = [issue for issue in loaded.issues if issue.severity != "note"]
    return 1 if wrong or not all(one.is_well for one in found) else 0


async def _look(gateway: Gateway, servers: Sequence[Server]) -> list[_Found]:
    found: dict[str, _Found] = {}

    async def one(server: Server) -> None:
        found[server.name] = await _examine(gateway, server)

    async with anyio.create_task_group() as tasks:
        for server in servers:
            tasks.start_soon(one, server)
    return [found[server.name] for server in servers]


async def _examine(gateway: Gateway, server: Server) -> _Found:
    if server.disabled:
        return _Found(server=server)
    kept, error = gateway.kept(server.name), None
    try:
        await kept.refresh()
    except UllageError as raised:
        error = raised
    health = next((one for one in gateway.health() if one.server == server.name), None)
    listing = kept.peek() if error is None else None
    tokens = None if listing is None else sum(kept.token_count(tool.name) or 0 for tool in listing.tools)
    return _Found(
        server=server, health=health, tools=None if listing is None else len(listing.tools), tokens=tokens, error=error
    )


def _print(loaded: Loaded, found: Sequence[_Found]) -> None:
    read = [str(path) for path, stamp in loaded.stamps.items() if stamp is not None]
    emit(f"{bold('settings')}  {', '.join(read) or 'no file: the defaults hold'}")
    for issue in loaded.issues:
        emit(_issue(issue))
    for one in found:
        emit()
        for line in _server(one):
            emit(line)
    if not found and not loaded.errors:
        emit("\nNo servers stand behind Ullage yet: name some in ullage.toml, or with --include FILE.")


def _issue(issue: Issue) -> str:
    mark = {"error": red("error"), "problem": yellow("problem"), "note": dim("note")}[issue.severity]
    return f"  {mark}  {issue.sentence()}"


def _server(one: _Found) -> list[str]:
    name, health = bold(one.server.name), one.health
    if health is None and one.error is None:
        return [f"{name}  disabled in {one.server.came_from or 'the settings'}"]
    if one.error is not None:
        lines = [f"{name}  {red('fails')}: {one.error.message}"]
        lines += [f"  {one.error.suggestion}"] if one.error.suggestion else []
        return lines + _stderr(health)
    assert health is not None
    said = health.introduction
    version = f" {said.name} {said.version or ''}".rstrip() if said else ""
    took = "" if health.start_seconds is None else f", started in {health.start_seconds:.1f} s"
    lines = [f"{name}  {green('well')}:{version}, protocol {health.protocol}{took}"]
    lines.append(f"  {one.tools} tools, {one.tokens:,} tokens of definitions (o200k_base)")
    return lines + [f"  {dim('note')}  {note}" for note in health.notes]


def _stderr(health: Health | None) -> list[str]:
    tail = "" if health is None else health.stderr_tail.strip()
    if not tail:
        return []
    return [dim("  the last it wrote to standard error:"), textwrap.indent("\n".join(tail.splitlines()[-10:]), "    ")]


def _json(loaded: Loaded, found: Sequence[_Found]) -> dict[str, Json]:
    return {
        "files": [str(path) for path, stamp in loaded.stamps.items() if stamp is not None],
        "issues": [_issue_json(issue) for issue in loaded.issues],
        "servers": [_found_json(one) for one in found],
    }


def _issue_json(issue: Issue) -> dict[str, Json]:
    return {
        "severity": issue.severity,
        "message": issue.message,
        "file": issue.file,
        "line": issue.line,
        "key": issue.key,
        "server": issue.server,
        "suggestion": issue.suggestion,
        "available_options": list(issue.options),
    }


def _found_json(one: _Found) -> dict[str, Json]:
    health = one.health
    return {
        "server": one.server.name,
        "came_from": one.server.came_from,
        "disabled": one.server.disabled,
        "state": None if health is None else health.state,
        "protocol": None if health is None else health.protocol,
        "start_seconds": None if health is None else health.start_seconds,
        "tools": one.tools,
        "tokens": one.tokens,
        "error": None if one.error is None else _error_json(one.error),
        "notes": [] if health is None else list(health.notes),
        "stderr": "" if health is None else health.stderr_tail,
    }


def _error_json(error: UllageError) -> dict[str, Json]:
    return {
        "error_code": error.code,
        "message": error.message,
        "suggestion": error.suggestion,
        "available_options": list(error.options),
    }
