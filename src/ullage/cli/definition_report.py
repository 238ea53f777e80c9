"""A server's tools as `trust`, `doctor`, `tools` and `find` show them: changes, flags, and tokens of visible tools.

Everything a server wrote is printed with control, bidirectional and invisible characters spelled out. All verbs count
with these functions, so that their figures agree.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ullage.app.build_gateway import Gateway, tokens_of
from ullage.app.open_store import DefinitionReport, open_definitions
from ullage.config import Settings
from ullage.errors import UnknownTool
from ullage.gateway import (
    DefinitionChange,
    Entry,
    Rules,
    Server,
    View,
    changed_parts,
    difference_lines,
    tool_of,
    trust_command,
)
from ullage.sql import ORIGINAL_NAMES
from ullage.tool import JsonObject, Tool

from .output import bold, dim, emit, green, how_many, red, yellow

if TYPE_CHECKING:
    from ullage.gateway.poison import Flag

__all__ = [
    "accept_definitions",
    "entries_of",
    "find_change_flags",
    "find_server_flags",
    "find_unmatched_patterns",
    "kept_back",
    "report_lines",
    "visible",
    "withheld_lines",
    "without_ullage",
]


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
