"""Show where Ullage is installed, and what each program has configured.

Starts nothing. Warns if a program lists a server that Ullage also serves, because you then pay for its tokens twice.
"""

import argparse
import os
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

from ullage.app.install_plan import find_doubled, is_ullage
from ullage.app.scan_servers import approval_of, servers_behind
from ullage.clients.configs import ClientConfig, ServerEntry, current_surroundings, read_clients
from ullage.config import Places
from ullage.gateway import Server
from ullage.tool import Json

from .output import bold, dim, emit, emit_json, emit_wrapped, green, how_many, plain, screen, short_path, yellow

__all__ = ["arguments", "doubled_lines", "read_installed", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    found = read_installed()
    if arguments.json:
        emit_json({"clients": [_client_json(one, behind) for one, behind in found]})
        return 0
    for config, behind in found:
        is_approved = approval_of(config, Places.of_user())
        own = [one for one in config.active_servers if not is_ullage(one)]
        state = dim("without Ullage") if behind is None else green("Ullage is installed")
        lines = [
            f"{bold(config.program.title)}  {state}; {how_many(len(own), 'server') if own else 'no servers'} of its own"
        ]
        if behind is not None:
            lines += _wrap_names("behind Ullage", [plain(one.name) for one in behind] or ["nothing"])
        for title, scopes in (("its own", ("user", "managed")), ("in this folder", ("local", "project"))):
            some = [plain(one.name) + _state_of(one, is_approved) for one in own if one.scope in scopes]
            lines += _wrap_names(title, some) if some else []
        lines += [f"  {yellow('warning')}  {line}" for line in doubled_lines([(config, behind)])]
        lines += [f"  {yellow('problem')}  {short_path(one.file)} {plain(one.message)}" for one in config.problems]
        for line in lines:
            emit_wrapped(line)
    if not found:
        emit("No program with MCP servers was found.")
    waiting = [one.program.name for one, behind in found if one.active_servers and behind is None]
    if waiting:
        emit(f"\nNext: ullage install {waiting[0]} --dry-run")
    return 0


Behind = tuple[Server, ...] | None
"""The servers behind Ullage for a program; None if Ullage is not installed there."""


def read_installed() -> list[tuple[ClientConfig, Behind]]:
    """Return every program that has a configuration, with what is behind Ullage for it."""
    places = Places.of_user()
    return [
        (one, servers_behind(one, places, os.environ, Path.cwd()))
        for one in read_clients(current_surroundings())
        # A project's file alone does not show whether the program is installed.
        if one.problems or any(file.scope != "project" for file in one.files)
    ]


def doubled_lines(found: Sequence[tuple[ClientConfig, Behind]]) -> list[str]:
    """Return one warning for each program that lists servers which are also behind Ullage."""
    lines = list[str]()
    for one, behind in found:
        names = [plain(entry.name) for entry in find_doubled(one, behind or ())]
        if names:
            what = "it" if len(names) == 1 else "them"
            lines.append(
                f"{one.program.title} lists {', '.join(names)} beside Ullage, which serves {what} too: paid for twice "
                f"in every request; run `ullage install {one.program.name}`"
            )
    return lines


def _wrap_names(title: str, names: Sequence[str]) -> list[str]:
    """Wrap names to as few lines as the terminal allows."""
    return textwrap.wrap(
        f"{title}: {', '.join(names)}",
        screen(),
        initial_indent="  ",
        subsequent_indent=" " * (len(title) + 4),
        break_on_hyphens=False,
    )


def _state_of(entry: ServerEntry, is_approved: Callable[[str], bool]) -> str:
    if entry.scope == "project" and not is_approved(entry.file):
        return " (not approved)"
    return " (needs a sign-in)" if entry.signs_in else ""


def _client_json(config: ClientConfig, behind: Behind) -> dict[str, Json]:
    return {
        "client": config.program.name,
        "files": [file.path for file in config.files],
        "installed": behind is not None,
        "behind": list[Json](one.name for one in behind or ()),
        "servers": [
            {
                "name": one.name,
                "scope": one.scope,
                "transport": one.transport,
                "disabled": one.disabled,
                "needs_sign_in": one.signs_in,
            }
            for one in config.servers
            if not is_ullage(one)
        ],
        "doubled": [one.name for one in find_doubled(config, behind or ())],
        "model": config.model,
        "defers_tools": config.defers_tools,
        "problems": [{"file": one.file, "message": one.message} for one in config.problems],
    }
