"""Show where Ullage is installed, and what each program has configured.

Starts nothing. Warns where a server is listed by a program and behind Ullage too: its definitions are paid for twice.
"""

import argparse
from collections.abc import Sequence

from ullage.app.installing import find_doubled, is_ullage
from ullage.clients.configs import ClientConfig, current_surroundings, read_clients
from ullage.config import Settings
from ullage.tool import Json

from .configured import add_flags, examined
from .output import bold, dim, emit, emit_json, green, plain, yellow
from .wording import how_many

__all__ = ["arguments", "doubled_lines", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    settings = examined(arguments).settings
    found = read_clients(current_surroundings())
    if arguments.json:
        emit_json({"clients": [_client_json(one, settings) for one in found]})
        return 0
    for one in found:
        for line in _client_lines(one, settings):
            emit(line)
    if not found:
        emit("No program with MCP servers was found.")
    waiting = [one.program.name for one in found if one.active_servers and not _is_installed(one)]
    if waiting:
        emit(f"\nNext: ullage install {waiting[0]} --dry-run")
    return 0


def doubled_lines(settings: Settings, clients: Sequence[ClientConfig]) -> list[str]:
    """One warning for each program that lists servers which are behind Ullage too."""
    lines = list[str]()
    for one in clients:
        names = ", ".join(plain(entry.name) for entry in find_doubled(one, _behind(one, settings)))
        if names:
            lines.append(
                f"{one.program.title} lists {names} beside Ullage, which serves them too: their definitions are paid "
                f"for twice; run `ullage install {one.program.name}`"
            )
    return lines


def _is_installed(config: ClientConfig) -> bool:
    return any(is_ullage(entry) for entry in config.active_servers)


def _behind(config: ClientConfig, settings: Settings) -> frozenset[str]:
    """The servers that are behind Ullage for this program."""
    known = frozenset(server.name for server in settings.servers if not server.disabled)
    seen = settings.servers_of(config.program.name)
    return known if seen is None else known & seen


def _client_lines(config: ClientConfig, settings: Settings) -> list[str]:
    own = [one for one in config.active_servers if not is_ullage(one)]
    state = green("Ullage is installed") if _is_installed(config) else dim("without Ullage")
    lines = [f"{bold(config.program.title)}  {state}; {how_many(len(own), 'server')} of its own"]
    if _is_installed(config):
        behind = sorted(_behind(config, settings))
        lines.append(f"  behind Ullage: {', '.join(map(plain, behind)) or 'nothing'}")
    if own:
        lines.append(f"  its own: {', '.join(plain(one.name) for one in own)}")
    lines += [f"  {yellow('warning')}  {line}" for line in doubled_lines(settings, [config])]
    lines += [f"  {yellow('problem')}  {plain(one.file)}: {plain(one.message)}" for one in config.problems]
    return lines


def _client_json(config: ClientConfig, settings: Settings) -> dict[str, Json]:
    is_installed = _is_installed(config)
    return {
        "client": config.program.name,
        "files": [file.path for file in config.files],
        "installed": is_installed,
        "behind": list[Json](sorted(_behind(config, settings)) if is_installed else ()),
        "servers": [
            {"name": one.name, "scope": one.scope, "transport": one.transport, "disabled": one.disabled}
            for one in config.servers
            if not is_ullage(one)
        ],
        "doubled": [one.name for one in find_doubled(config, _behind(config, settings))],
        "model": config.model,
        "defers_tools": config.defers_tools,
        "problems": [{"file": one.file, "message": one.message} for one in config.problems],
    }
