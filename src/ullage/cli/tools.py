"""List the tools of every server behind Ullage, with what their definitions cost in every request.

A server is started only if its tools are not known yet.
"""

import argparse
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import anyio

from ullage.app.build_gateway import OWN, Gateway, tokens_of, weigh
from ullage.app.open_store import DefinitionReport, open_definitions
from ullage.config import Loaded, Settings
from ullage.errors import UllageError, UnknownTool
from ullage.gateway import (
    DefinitionChange,
    Entry,
    Rules,
    Server,
    View,
    changed_parts,
    definition_text,
    difference_lines,
    tool_of,
    trust_command,
)
from ullage.gateway.poison import Flag, flag_json, flag_line
from ullage.sql import ORIGINAL_NAMES
from ullage.tool import Json, JsonObject, Tool

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
    green,
    how_many,
    red,
    show_waiting,
    waiting_or,
    without_name,
    yellow,
)
from .scan import plan_for
from .status import doubled_lines, read_installed

__all__ = [
    "accept_definitions",
    "arguments",
    "entries_of",
    "find_change_flags",
    "find_server_flags",
    "find_unmatched_patterns",
    "kept_back",
    "report_lines",
    "run",
    "visible",
    "withheld_lines",
    "without_ullage",
]

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


# `trust`, `doctor` and `find` use the functions below too, so that the figures of all commands agree. Everything that a
# server wrote is printed with control, bidirectional and invisible characters spelled out.


def find_change_flags(change: DefinitionChange) -> "tuple[Flag, ...]":
    """Return flags on a changed definition as the server offers it now, before the user accepts it."""
    from ullage.gateway.poison import find_flags

    if change.kind == "tool":
        return find_flags(change.server, [tool_of(change.offered)])
    if change.kind == "prompt":
        return find_flags(change.server, (), prompts=[change.offered])
    return find_flags(change.server, (), instructions="\n".join(map(str, change.offered.values())))


def find_server_flags(
    gateway: Gateway, prompts: Mapping[str, Sequence[JsonObject]] | None = None
) -> "dict[str, tuple[Flag, ...]]":
    """Return flags by server, for every enabled server whose tools are known. Starts none.

    Args:
        gateway: Its servers are compared with one another, because one may shadow another's tools.
        prompts: Definitions of prompts by server, if they were requested.
    """
    from ullage.gateway.poison import find_flags

    known: dict[str, Sequence[Tool]] = {}
    for server in gateway.settings.servers:
        listing = None if server.disabled else gateway.kept(server.name).peek()
        if listing is not None:
            known[server.name] = listing.tools
    flags: dict[str, tuple[Flag, ...]] = {}
    for name, tools in known.items():
        said = gateway.kept(name).introduction()
        flags[name] = find_flags(
            name,
            tools,
            instructions=None if said is None else said.instructions,
            prompts=(prompts or {}).get(name, ()),
            others=known,
        )
    return flags


def visible(text: str) -> str:
    """Return a line that is safe to display: characters that a terminal would act on, reorder or hide are spelled
    out."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def _title(change: DefinitionChange) -> str:
    return "instructions" if change.kind == "instructions" else f"{change.kind} {visible(change.name)}"


def withheld_lines(changes: Iterable[DefinitionChange]) -> list[str]:
    """Return the whole difference of each definition that waits for the user."""
    lines = list[str]()
    for change in changes:
        hashes = f"{change.accepted_hash[:12] or 'unreadable'} → {change.offered_hash[:12]}"
        lines.append(f"{bold(_title(change))}  {yellow('changed')} {change.since:%Y-%m-%d}  {dim(hashes)}")
        for line in difference_lines(change):
            shown = f"  {visible(line)}"
            mark = line.lstrip()[:1] if line.startswith("  ") else ""
            lines.append(green(shown) if mark == "+" else red(shown) if mark == "-" else shown)
        lines += _flag_lines(change)
    return lines


def _flag_lines(change: DefinitionChange) -> list[str]:
    """Return the parts of the offered definition that try to influence the model."""
    from ullage.gateway.poison import flag_line

    return [f"  {yellow('flag')}  {visible(flag_line(flag))}" for flag in find_change_flags(change)]


def accept_definitions(settings: Settings, server: Server, tool: str | None, *, only_show: bool = False) -> int:
    """Show what a server changed and accept it: everything, or the tool or prompt of that name. Starts nothing.

    Returns:
        0, or 1 if a different definition was offered in the meantime and so was not accepted.

    Raises:
        UnknownTool: Nothing of that name was ever recorded for the server.
        StoreFailed: The store cannot be read or written.
    """
    with open_definitions(settings, server) as definitions:
        waiting = definitions.withheld(tool)
        if tool is not None and not waiting and tool not in definitions.names():
            raise UnknownTool(
                f"nothing called `{tool}` is recorded of server `{server.name}`",
                suggestion="use the server's own name for it; `ullage trust SERVER` without a tool is for all of them",
                options=tuple(dict.fromkeys(one.name for one in definitions.withheld() if one.name)),
            )
        new = () if tool is not None else definitions.new()
        for line in (*withheld_lines(waiting), *(f"{bold(visible(one.name))}  {green('new')}" for one in new)):
            emit(line)
        if not waiting and not new:
            emit(f"Server `{server.name}` has no changed definitions.")
            return 0
        if only_show:
            command = trust_command(server.name, tool)
            emit(f"\n{how_many(len(waiting), 'change')} not accepted; `{command}` accepts.")
            return 0
        taken = definitions.accept(waiting)
        if new:
            definitions.acknowledge()
    emit()
    if waiting:
        emit(f"{how_many(len(taken), 'change')} accepted; a running gateway serves it within seconds.")
    if len(taken) < len(waiting):
        emit(f"{how_many(len(waiting) - len(taken), 'definition')} changed again meanwhile: run this again.")
    return 0 if len(taken) == len(waiting) else 1


def report_lines(server: str, report: DefinitionReport) -> list[str]:
    """Return lines for `doctor` and `tools`: what is withheld and why, what is new, and what to do."""
    lines = list[str]()
    for change in report.withheld:
        parts = "; ".join(map(visible, changed_parts(change)))
        name = change.name if change.kind != "instructions" else None
        lines.append(f"  {yellow('withheld')}  {_title(change)}: {parts}")
        lines += [f"  {line}" for line in _flag_lines(change)]
        lines.append(
            f"    `{visible(trust_command(server, name))} --show` shows the difference; without `--show` it accepts"
        )
    if report.keeps_changing:
        lines.append(
            "    It has changed more than once. If you know that the changes are harmless, accept them automatically:"
        )
        lines.append(f'    definition_changes = "accept"  under [servers.{server}]')
    for record in report.new:
        lines.append(f"  {dim('note')}  {record.kind} {visible(record.name)} is new since {record.created:%Y-%m-%d}")
    for record in report.accepted_by_setting:
        name = "instructions" if record.kind == "instructions" else f"{record.kind} {visible(record.name)}"
        lines.append(
            f"  {dim('note')}  {name} changed on {record.accepted_at:%Y-%m-%d} and was accepted, as "
            "`definition_changes` says"
        )
    return lines


_RULES = ("allow", "ask", "deny", "read_only", "writing", "pinned", "hidden", "only")


def entries_of(view: View, server: str) -> list[Entry]:
    return [entry for entry in view.entries if entry.server == server]


def without_ullage(view: View) -> int:
    """Return the tokens of definitions that a request would carry without Ullage."""
    return sum(tokens_of(entry) for entry in view.entries if not entry.member.own)


def kept_back(view: View, server: str) -> str:
    """Return how many tools of a server cannot be found, and why."""
    # The older names of a database's tools are left out of lists; that withholds nothing.
    hidden = [entry for entry in view.hidden if not (entry.member.own and entry.original in ORIGINAL_NAMES)]
    parts = {
        "denied": view.withheld,
        "hidden": hidden,
        "not offered (run only as tasks)": view.uncallable,
        "withheld (changed)": view.changed,
    }
    counts = {word: sum(entry.server == server for entry in entries) for word, entries in parts.items()}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def find_unmatched_patterns(rules: Rules, tools: Iterable[str]) -> list[str]:
    """Return sentences about the patterns that match no tool of a server: a name may be misspelled or obsolete."""
    names = tuple(tools)
    return [
        f"`{key}` has `{pattern}`, which matches no tool"
        for key in _RULES
        for pattern in getattr(rules, key) or ()
        if not any(fnmatchcase(name, pattern) for name in names)
    ]
