"""List the tools of every server behind Ullage, with what their definitions cost in every request.

A server is started only if its tools are not known yet.
"""

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import anyio

from ullage.app.build_gateway import OWN, Gateway, tokens_of, weigh
from ullage.app.open_store import DefinitionReport
from ullage.config import Loaded
from ullage.errors import UllageError
from ullage.gateway import Entry, View, definition_text
from ullage.gateway.poison import Flag, flag_json, flag_line
from ullage.tool import Json, Tool

from .definition_report import entries_of, find_server_flags, kept_back, report_lines, without_ullage
from .load_settings import add_flags, choose_servers, read, say, situation_of, with_gateway
from .output import (
    NO_SERVERS,
    bold,
    columns,
    dim,
    emit,
    emit_json,
    emit_wrapped,
    fitted_columns,
    how_many,
    show_waiting,
    waiting_or,
    without_name,
    yellow,
)
from .scan import plan_for
from .status import doubled_lines, read_installed

__all__ = ["arguments", "run"]

_NAMED = 8
"""Maximum listed tools that are shown by name."""
_SENTENCE = 80
"""Maximum characters of a description in a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """The known tools, and what is shown to a client."""

    loaded: Loaded
    own: str
    """The name of the server of Ullage's own tools."""
    view: View
    listed: tuple[Tool, ...]
    instructions: str
    is_direct: bool
    definitions: Mapping[str, DefinitionReport]
    """By server, withheld and new definitions."""
    flags: Mapping[str, Sequence[Flag]]
    """By server, definitions that look poisoned."""
    others: Sequence[str] = ()
    """Programs that have servers but not Ullage."""
    is_planned: bool = False
    """Whether the servers are those of other programs, none of which is behind Ullage yet."""
    doubled: Sequence[str] = ()
    """Warnings about servers that a program lists in addition to Ullage, which serves them too."""

    @property
    def without(self) -> int:
        """Tokens that a request would carry without Ullage."""
        return without_ullage(self.view)

    @property
    def surface(self) -> int:
        return sum(weigh(definition_text(tool)) for tool in self.listed)

    @property
    def instructed(self) -> int:
        return weigh(self.instructions)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", nargs="?", metavar="SERVER", help="show this server only, one line per tool")
    parser.add_argument("--refresh", action="store_true", help="start every server and list its tools again")
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        type=seconds,
        default=60.0,
        help="time limit for servers never listed before (default 60)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, including the definitions")
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    loaded = read(arguments)
    found = read_installed()
    # If nothing is behind Ullage, the servers of all programs are shown as if they were.
    is_named = bool(arguments.include) or arguments.config is not None
    others = [] if is_named else [config for config, behind in found if behind is None and config.active_servers]
    is_planned = not loaded.settings.servers and bool(others)
    if is_planned:
        loaded = plan_for(None, store=arguments.store).loaded
    if arguments.server not in _own_parts(loaded):
        choose_servers(loaded, arguments.server)

    async def look(gateway: Gateway) -> _Listing:
        if arguments.refresh:
            waiting = [server.name for server in gateway.settings.servers if not server.disabled]

            async def one(name: str) -> None:
                try:
                    await gateway.kept(name).refresh()
                except UllageError as error:
                    say(f"ullage: {name}: {without_name(error.message, name)}")
                finally:
                    waiting.remove(name)

            async with show_waiting(len(waiting), lambda: waiting), anyio.create_task_group() as tasks:
                for name in tuple(waiting):
                    tasks.start_soon(one, name)
        view = await _wait_for_tools(gateway, arguments.wait)
        find = gateway.find(arguments.client)
        listed = (await find.tools()).tools
        is_direct = find.surface == "direct"
        running = [one.name for one in gateway.settings.servers if not one.disabled]
        return _Listing(
            loaded=loaded,
            own=gateway.own_name,
            view=view,
            listed=listed,
            instructions=find.instructions(view),
            is_direct=is_direct,
            definitions={name: await gateway.definition_report(name) for name in running},
            flags=find_server_flags(gateway),
            others=tuple(config.program.title for config in others),
            is_planned=is_planned,
            doubled=tuple(doubled_lines(found)),
        )

    seen = with_gateway(loaded, look, situation=None if is_planned else situation_of(arguments))
    if arguments.json:
        emit_json(_json(seen, arguments.server))
    elif arguments.server is None:
        _print_servers(seen)
    else:
        _print_tools(seen, arguments.server)
    return 1 if any(one.server == arguments.server for one in seen.view.missing) else 0


async def _wait_for_tools(gateway: Gateway, wait: float) -> View:
    """Return all known tools, with progress while servers that were never listed start."""
    running = [one.name for one in gateway.settings.servers if not one.disabled]

    def waiting() -> tuple[str, ...]:
        return tuple(one.server for one in gateway.merge.known.missing if not one.has_failed and one.server in running)

    async with show_waiting(len(running), waiting):
        return await gateway.view(wait)


def seconds(text: str) -> float:
    """Parse seconds. Named for argparse, whose error message contains the function's name."""
    value = float(text)
    if not value >= 0:
        raise ValueError
    return value


def _print_servers(seen: _Listing) -> None:
    _print_columns([("server", "tools", "tokens", ""), *(_row(seen, server) for server in _servers(seen))], {1, 2})
    if seen.view.missing:
        emit("\nNot counted, because they did not answer (`ullage doctor` shows more):")
        for one in seen.view.missing:
            emit_wrapped(f"  {one.server}  {without_name(one.reason, one.server)}")
    for server, report in seen.definitions.items():
        if lines := report_lines(server, report):
            emit(f"\n{server}")
            for line in lines:
                emit_wrapped(line)
    if any(seen.flags.values()):
        emit("\nFlagged definitions, which may try to steer the model; read them first:")
        for server, flags in seen.flags.items():
            for flag in flags:
                emit_wrapped(f"  {server}  {flag_line(flag)}")
    emit()
    for line in (*_format_sums(seen), *_format_hints(seen)):
        emit_wrapped(line)


def _format_sums(seen: _Listing) -> Iterator[str]:
    """Yield the tokens of a request without Ullage and with it."""
    if len(_servers(seen)) == 1:
        yield waiting_or(seen.loaded, NO_SERVERS)
        return
    if seen.is_direct:
        listed = "every tool is listed directly"
    else:
        rest = f" and {len(seen.listed) - _NAMED} more" if len(seen.listed) > _NAMED else ""
        listed = ", ".join(tool.name for tool in seen.listed[:_NAMED]) + rest
    with_it = seen.surface + seen.instructed
    yield "Tokens of definitions in every request (o200k_base):"
    if not seen.loaded.settings.servers:
        yield f"  {bold(f'{with_it:,}')}, instructions included: {listed}"
        return
    width = len(f"{max(seen.without, with_it):,}")
    yield f"  without Ullage  {bold(f'{seen.without:>{width},}')}"
    yield f"  with Ullage     {bold(f'{with_it:>{width},}')}, instructions included: {listed}"


def _format_hints(seen: _Listing) -> Iterator[str]:
    """Yield hints about servers that are not behind Ullage, and about those paid for twice."""
    names = " and ".join(filter(None, (", ".join(seen.others[:-1]), *seen.others[-1:])))
    if seen.is_planned:
        yield f"\nThese are the servers of {names}. None is behind Ullage yet."
    elif seen.others:
        yield f"\nNot counted here: the servers of {names}, where Ullage is not installed."
    if seen.others:
        yield "`ullage scan` counts them by program; `ullage install CLIENT` puts Ullage in front."
    for line in seen.doubled:
        yield f"{yellow('warning')}  {line}"


def _servers(seen: _Listing) -> list[str]:
    """Return the names of the servers: configured servers first, then parts of Ullage, its own tools last."""
    ours = [name for name in _own_parts(seen.loaded) if name != seen.own and entries_of(seen.view, name)]
    return [*(server.name for server in seen.loaded.settings.servers), *ours, seen.own]


def _own_parts(loaded: Loaded) -> list[str]:
    """Return the parts of Ullage that have tools: databases, folders, models, and its own server."""
    settings = loaded.settings
    named = (one.name for one in (*settings.databases, *settings.retrieves))
    return [*named, settings.delegate_name, settings.name_of_own(OWN)]


def _row(seen: _Listing, server: str) -> tuple[str, str, str, str]:
    disabled = any(one.name == server and one.disabled for one in seen.loaded.settings.servers)
    if disabled or any(one.server == server for one in seen.view.missing):
        return server, "-", "-", "disabled" if disabled else ""
    entries = entries_of(seen.view, server)
    return server, f"{len(entries):,}", f"{sum(map(tokens_of, entries)):,}", kept_back(seen.view, server)


def _print_tools(seen: _Listing, server: str) -> None:
    entries = entries_of(seen.view, server)
    missing = next((one for one in seen.view.missing if one.server == server), None)
    if missing is not None:
        emit_wrapped(f"{server}  {without_name(missing.reason, server)}")
    elif not entries:
        emit(f"{server}  {_row(seen, server)[3] or 'offers no tools'}")
    else:
        _print_columns([("tool", "tokens", "", ""), *map(_tool_row, entries)], {1})
        emit(dim(f"\n{how_many(len(entries), 'tool')}, {how_many(sum(map(tokens_of, entries)), 'token')}"))
    for line in report_lines(server, seen.definitions.get(server, DefinitionReport())):
        emit_wrapped(line)
    for flag in seen.flags.get(server, ()):
        emit_wrapped(f"{yellow('flag')}  {flag_line(flag)}")


def _tool_row(entry: Entry) -> tuple[str, str, str, str]:
    door = "read" if entry.is_read_only else "write"
    said = " ".join((entry.tool.description or entry.tool.title or "").split())
    short = said if len(said) <= _SENTENCE else f"{said[: _SENTENCE - 1].rstrip()}…"
    return entry.listed, f"{tokens_of(entry):,}", f"{door}, ask" if entry.access == "ask" else door, short


def _print_columns(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> None:
    """Print rows in columns. If some are flush right, the first row is printed as titles."""
    lines = fitted_columns(rows, right=frozenset(right)) or columns(rows, right=frozenset(right))
    for number, line in enumerate(lines):
        emit(dim(line) if right and number == 0 else line)


def _json(seen: _Listing, server: str | None) -> dict[str, Json]:
    entries = [entry for entry in seen.view.entries if server in (None, entry.server)]
    return {
        "tools": [
            {
                "name": entry.listed,
                "server": entry.server,
                "original_name": entry.original,
                "read_only": entry.is_read_only,
                "access": entry.access,
                "token_count": tokens_of(entry),
                "description": entry.tool.description,
                "inputSchema": dict(entry.tool.input_schema),
            }
            for entry in entries
        ],
        "listed": [tool.name for tool in seen.listed],
        "missing": [{"server": one.server, "reason": one.reason} for one in seen.view.missing],
        "definitions": {name: report.to_json() for name, report in seen.definitions.items() if server in (None, name)},
        "behind": not seen.is_planned,
        "doubled": list[Json](seen.doubled),
        "disabled": [one.name for one in seen.loaded.settings.servers if one.disabled],
        "flags": [flag_json(flag) for name, flags in seen.flags.items() if server in (None, name) for flag in flags],
        "first_request": {"without": seen.without, "surface": seen.surface, "instructions": seen.instructed},
        "approximationMethod": "o200k_base",
    }
