"""Check the settings and every server, database and folder behind Ullage, and say how to fix what is wrong.

Starts every server once and lists its tools, and checks what each database role may do. Exits with 1 if something is
wrong.
"""

import argparse
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import anyio

from ullage.app.build_gateway import Gateway, tokens_of
from ullage.app.open_store import DefinitionReport
from ullage.config import (
    Folders,
    Issue,
    Loaded,
    Settings,
    is_provider_on,
    key_variables,
    providers_off,
    providers_on,
)
from ullage.errors import SignInNeeded, StoreFailed, UllageError
from ullage.gateway import Server, View
from ullage.gateway.poison import Flag, flag_json, flag_line
from ullage.search import load_encoder, load_table
from ullage.sql import DIALECTS, DatabaseSettings, dialect_of
from ullage.tool import Json, JsonObject
from ullage.wire import Health, WithheldVariables

from .load_settings import (
    add_flags,
    check,
    choose_servers,
    examine_settings,
    offer_pending_files,
    situation_of,
    with_gateway,
)
from .output import (
    NO_SERVERS,
    bold,
    dim,
    emit,
    emit_json,
    emit_wrapped,
    green,
    how_many,
    plain,
    red,
    short_path,
    show_waiting,
    without_name,
    yellow,
)
from .status import doubled_lines, read_installed
from .tools import entries_of, find_server_flags, find_unmatched_patterns, kept_back, report_lines

__all__ = [
    "DatabaseCheck",
    "FoldersCheck",
    "arguments",
    "database_json",
    "database_lines",
    "delegate_json",
    "delegate_lines",
    "look_at_databases",
    "look_at_folders",
    "run",
    "try_weights",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseCheck:
    """The result of checking one database."""

    settings: DatabaseSettings
    warnings: Sequence[str] = ()
    error: UllageError | None = None

    @property
    def is_well(self) -> bool:
        return self.error is None


async def look_at_databases(gateway: Gateway, databases: Sequence[DatabaseSettings]) -> list[DatabaseCheck]:
    found: dict[str, DatabaseCheck] = {}

    async def one(database: DatabaseSettings) -> None:
        try:
            warnings = await gateway.databases[database.name].warnings()
            found[database.name] = DatabaseCheck(settings=database, warnings=warnings)
        except UllageError as error:
            found[database.name] = DatabaseCheck(settings=database, error=error)

    async with anyio.create_task_group() as tasks:
        for database in databases:
            tasks.start_soon(one, database)
    return [found[database.name] for database in databases]


def database_lines(one: DatabaseCheck) -> list[str]:
    name = bold(one.settings.name)
    if one.error is not None:
        return [
            f"{name}  {red('fails')}: {one.error.message}",
            *([f"  {hint}"] if (hint := one.error.suggestion) else []),
        ]
    spoken = DIALECTS[dialect_of(one.settings)]
    return [f"{name}  {green('ok')}: {spoken} database", *(f"  {dim('note')}  {said}" for said in one.warnings)]


def database_json(one: DatabaseCheck) -> dict[str, Json]:
    return {
        "database": one.settings.name,
        "came_from": one.settings.came_from,
        "notes": list(one.warnings),
        "error": None if one.error is None else cast("dict[str, Json]", dict(one.error.wire())),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldersCheck:
    """The result of checking one collection."""

    settings: Folders
    missing: tuple[str, ...] = ()
    """Missing folders and files, as the settings name them."""

    @property
    def is_well(self) -> bool:
        return not self.missing

    def lines(self) -> list[str]:
        name = bold(self.settings.name)
        if self.missing:
            reasons = [f"{name}  {red('fails')}: `{path}` does not exist" for path in self.missing]
            return [*reasons, "  check the path; it is taken from the folder of ullage.toml"]
        counts = ((self.settings.folders, "folder"), (self.settings.files, "file"))
        named = " and ".join(how_many(len(paths), thing) for paths, thing in counts if paths)
        return [f"{name}  {green('ok')}: {named} to search"]

    def json(self) -> dict[str, Json]:
        return {"folders": self.settings.name, "came_from": self.settings.came_from, "missing": list(self.missing)}


def look_at_folders(collections: Sequence[Folders]) -> list[FoldersCheck]:
    found: list[FoldersCheck] = []
    for one in collections:
        folders = [path for path in one.folders if not Path(path).is_dir()]
        files = [path for path in one.files if not Path(path).is_file()]
        found.append(FoldersCheck(settings=one, missing=(*folders, *files)))
    return found


def delegate_lines(settings: Settings, environment: Mapping[str, str]) -> list[str]:
    """Return lines about delegation; none if it is not configured."""
    if not settings.delegate.is_wanted:
        return []
    present, policy = providers_on(settings, environment), settings.delegate.policy
    models = "default models" if policy is None else how_many(len(policy.models), "model")
    head = f"{green('ok')}: {models}, from {', '.join(present)}" if present else "off: no provider has a key"
    sentences = [*providers_off(settings, environment)]
    if not present and policy is None:
        # Without a policy any key is sufficient; with one, `providers_off` names the keys it needs.
        sentences.append(f"set {' or '.join(key_variables(settings))}, or write a policy: see docs/delegate.md")
    return [f"{bold('delegate')}  {head}", *(f"  {dim('note')}  {one}" for one in sentences)]


def delegate_json(settings: Settings, environment: Mapping[str, str]) -> dict[str, Json]:
    # A provider's address is left out, since it may contain a secret.
    return {
        "wanted": settings.delegate.is_wanted,
        "models": [] if settings.delegate.policy is None else list(settings.delegate.policy.models),
        "providers": [
            {
                "name": one.name,
                "kind": one.kind,
                "key_env": one.key_env,
                "on": is_provider_on(one, environment),
                "from": one.came_from,
            }
            for one in settings.providers
        ],
        "notes": list(providers_off(settings, environment)),
    }


def try_weights(loaded: Loaded) -> Loaded:
    """Return the settings with an issue if the weights cannot be used."""
    index = loaded.settings.search.index
    if index == "words":
        return loaded
    try:
        (load_encoder if index == "encoder" else load_table)()
    except Exception as error:  # noqa: BLE001 - any fault of an installation is reported
        hint = error.suggestion if isinstance(error, UllageError) else "reinstall Ullage and its extras"
        said = f"search by meaning cannot be loaded: {error}"
        issue = Issue(severity="problem", message=said, key="search.index", suggestion=hint)
        return replace(loaded, issues=(*loaded.issues, issue))
    return loaded


_PROMPTS_WAIT = 5.0
"""Seconds allowed to a server for listing its prompts."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "server", nargs="?", metavar="SERVER", help="check only this server, database or folder collection"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_flags(parser)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ServerCheck:
    """The result of checking one server."""

    server: Server
    health: Health | None = None
    """None for a server that is not to be started."""
    tools: int | None = None
    tokens: int | None = None
    kept_back: str = ""
    """The tools that the settings keep from being found."""
    unmatched: Sequence[str] = ()
    """Problems in its rules."""
    withheld: WithheldVariables = field(default_factory=WithheldVariables)
    """Variables of this environment that it may need and does not inherit."""
    error: UllageError | None = None
    definitions: DefinitionReport = field(default_factory=DefinitionReport)
    prompts: Sequence[JsonObject] = ()
    flags: Sequence[Flag] = ()
    """Definitions that look poisoned. Not a failure, because honest servers are flagged too."""

    @property
    def is_well(self) -> bool:
        return self.error is None


@dataclass(frozen=True, slots=True, kw_only=True)
class _CheckResults:
    loaded: Loaded
    found: Sequence[_ServerCheck] = ()
    """Empty if the settings cannot be used."""
    databases: Sequence[DatabaseCheck] = ()
    folders: Sequence[FoldersCheck] = ()
    store_error: StoreFailed | None = None
    doubled: Sequence[str] = ()
    """Warnings about servers that a program lists in addition to Ullage, which serves them too."""

    @property
    def wrong(self) -> list[Issue]:
        return [issue for issue in self.loaded.issues if issue.severity != "note"]

    @property
    def is_well(self) -> bool:
        looked_at = (*self.found, *self.databases, *self.folders)
        return (
            not self.wrong
            and self.store_error is None
            and all(one.is_well for one in looked_at)
            and not any(one.definitions.withheld for one in self.found)
        )


def run(arguments: argparse.Namespace) -> int:
    check(arguments)
    offer_pending_files(arguments)
    loaded = try_weights(examine_settings(arguments))
    databases = [one for one in loaded.settings.databases if arguments.server in (None, one.name)]
    folders = [one for one in loaded.settings.retrieves if arguments.server in (None, one.name)]
    is_ours = bool(databases or folders) and arguments.server is not None
    servers = [] if loaded.errors or is_ours else choose_servers(loaded, arguments.server)

    async def look(gateway: Gateway) -> _CheckResults:
        found, asked = await _look(gateway, servers), await look_at_databases(gateway, databases)
        there, failed = look_at_folders(folders), gateway.store_error
        return _CheckResults(loaded=loaded, found=found, databases=asked, folders=there, store_error=failed)

    seen = (
        _CheckResults(loaded=loaded) if loaded.errors else with_gateway(loaded, look, situation=situation_of(arguments))
    )
    if arguments.server is None:
        seen = replace(seen, doubled=doubled_lines(read_installed()))
    if arguments.json:
        emit_json(
            {
                "files": [str(path) for path in seen.loaded.files if seen.loaded.stamps[path] is not None],
                "issues": [
                    {
                        "severity": issue.severity,
                        "message": issue.message,
                        "file": issue.file,
                        "line": issue.line,
                        "key": issue.key,
                        "server": issue.server,
                        "suggestion": issue.suggestion,
                        "available_options": list(issue.options),
                    }
                    for issue in seen.loaded.issues
                ],
                "store_error": None if seen.store_error is None else _error_json(seen.store_error),
                "servers": [_found_json(one) for one in seen.found],
                "databases": [database_json(one) for one in seen.databases],
                "folders": [one.json() for one in seen.folders],
                "doubled": list[Json](seen.doubled),
                "delegate": delegate_json(seen.loaded.settings, os.environ),
            }
        )
    else:
        _print(seen)
    return 0 if seen.is_well else 1


async def _look(gateway: Gateway, servers: Sequence[Server]) -> list[_ServerCheck]:
    found: dict[str, _ServerCheck] = {}

    async def one(server: Server) -> None:
        if server.disabled:
            found[server.name] = _ServerCheck(server=server)
        else:
            error = None
            prompts: Sequence[JsonObject] = ()
            try:
                await gateway.kept(server.name).refresh()
                prompts = await _prompts_of(gateway, server)
            except UllageError as raised:
                error = raised
            health = next((one for one in gateway.health() if one.server == server.name), None)
            report = await gateway.definition_report(server.name)
            found[server.name] = _ServerCheck(
                server=server,
                health=health,
                error=error,
                prompts=prompts,
                definitions=report,
                withheld=gateway.host.environment.withheld(server),
            )

    started = [server.name for server in servers if not server.disabled]
    async with (
        show_waiting(len(started), lambda: tuple(name for name in started if name not in found)),
        anyio.create_task_group() as tasks,
    ):
        for server in servers:
            tasks.start_soon(one, server)
    view = await gateway.view()
    flags = find_server_flags(gateway, {name: one.prompts for name, one in found.items()})
    return [replace(_count_tools(found[server.name], view), flags=flags.get(server.name, ())) for server in servers]


async def _prompts_of(gateway: Gateway, server: Server) -> Sequence[JsonObject]:
    """Return the server's prompts, so that changed and poisoned ones are reported too. A server that cannot list them
    passes the check all the same."""
    kept = gateway.kept(server.name)
    if "prompts" not in (kept.capabilities or {}):
        return ()
    try:
        with anyio.fail_after(_PROMPTS_WAIT):
            return await kept.prompts()
    except (UllageError, TimeoutError):
        return ()


def _count_tools(found: _ServerCheck, view: View) -> _ServerCheck:
    """Return the result with the number of tools and their tokens, counted as in `ullage tools`."""
    name = found.server.name
    if found.server.disabled or found.error is not None:
        return found
    entries = entries_of(view, name)
    return replace(
        found,
        tools=len(entries),
        tokens=sum(map(tokens_of, entries)),
        kept_back=kept_back(view, name),
        unmatched=find_unmatched_patterns(
            found.server.rules, (entry.original for entry in view.all if entry.server == name)
        ),
    )


def _print(seen: _CheckResults) -> None:
    loaded = seen.loaded
    read = [short_path(str(path)) for path in loaded.files if loaded.stamps[path] is not None]
    lines = [f"{bold('settings')}  {', '.join(read) or 'no file, so the defaults are used'}"]
    for issue in loaded.issues:
        mark = {"error": red("error"), "problem": yellow("problem"), "note": dim("note")}[issue.severity]
        place = f"{issue.place}: " if issue.place else ""
        lines.append(f"  {mark}  {place}{issue.message}")
        lines += [f"    {issue.suggestion}"] if issue.suggestion else []
        unnamed = [option for option in issue.options if f"`{option}`" not in issue.suggestion]
        lines += [f"    options: {plain(', '.join(issue.options))}"] if unnamed else []
    for line in lines:
        emit_wrapped(line)
    if seen.store_error is not None:
        emit_wrapped(f"\n{bold('store')}  {red('fails')}: {seen.store_error.message}")
        emit_wrapped(f"  {seen.store_error.suggestion}")
    for one in seen.found:
        emit()
        for line in _format_server(one):
            emit_wrapped(line)
    for lines in (*map(database_lines, seen.databases), *(one.lines() for one in seen.folders)):
        emit()
        for line in lines:
            emit_wrapped(line)
    delegates = delegate_lines(seen.loaded.settings, os.environ)
    for line in seen.doubled:
        emit_wrapped(f"\n{yellow('warning')}  {line}")
    for line in (*(("", *delegates) if delegates else ()), "", _format_verdict(seen)):
        emit_wrapped(line)


def _format_verdict(seen: _CheckResults) -> str:
    if seen.loaded.errors:
        return "No server was checked: correct the errors in the settings first."
    started = [one for one in seen.found if not one.server.disabled]
    if seen.is_well:
        settings = seen.loaded.settings
        if not started and not seen.databases and not seen.folders and not settings.delegate.is_wanted:
            return NO_SERVERS if not seen.found else "Every server is disabled."
        if settings.delegate.is_wanted and not providers_on(settings, os.environ):
            return "Everything else works; no model can be called because no provider has a key."
        flags = sum(len(one.flags) for one in seen.found)
        return f"All servers answered; review {how_many(flags, 'flag')}." if flags else "Everything works."
    parts = ((started, "server"), (seen.databases, "database"))
    counts = [f"{sum(one.is_well for one in some)} of {how_many(len(some), thing)}" for some, thing in parts if some]
    count = sum(len(one.definitions.withheld) for one in seen.found)
    known = {server.name for server in seen.loaded.settings.servers}
    named = {issue.server for issue in seen.loaded.issues if issue.severity == "problem" and issue.server is not None}
    left_out, missing = len(named - known), sum(len(one.missing) for one in seen.folders)
    said = [f"{' and '.join(counts)} answered"] if counts else []
    if left_out:
        said.append(f"{left_out} {'was' if left_out == 1 else 'were'} left out")
    if missing:
        said.append(f"{how_many(missing, 'path')} to search not found")
    if count:
        said.append(f"{how_many(count, 'definition')} withheld because of a change")
    return f"{'; '.join(said) or how_many(len(seen.wrong), 'problem') + ' in the settings'}."


def _format_server(one: _ServerCheck) -> list[str]:
    name = bold(one.server.name)
    if one.server.disabled:
        return [f"{name}  disabled in {one.server.came_from or 'the settings'}"]
    if one.error is not None:
        why = without_name(one.error.message, one.server.name)
        is_locked = isinstance(one.error, SignInNeeded)
        lines = [f"{name}  {yellow(why)}" if is_locked else f"{name}  {red('fails')}: {why}"]
        report = report_lines(one.server.name, one.definitions)
        # A suggestion to run `ullage doctor` is replaced: the reader has just run it.
        advice = one.error.suggestion
        if not advice or "ullage doctor" in advice:
            by_address = "check its address, and that it is running"
            advice = by_address if one.server.command is None else "run its command by hand to see why"
        lines.append(f"  {advice}")
        tail = "" if one.health is None else one.health.stderr_tail.strip()
        if one.health is not None and tail and tail not in (one.health.last_error or ""):
            lines.append(dim("  last lines on standard error:"))
            lines.append(textwrap.indent("\n".join(tail.splitlines()[-10:]), "    "))
        return [*lines, *_withheld_variables(one), *report]
    tools, tokens = how_many(one.tools or 0, "tool"), how_many(one.tokens or 0, "token")
    notes = [*(() if one.health is None else one.health.notes), *one.unmatched]
    kept = f"; {one.kept_back}" if one.kept_back else ""
    introduction: list[str] = []
    if one.health is not None:
        said = one.health.introduction
        introduction += [f"{said.name} {said.version or ''}".rstrip()] if said else []
        introduction.append(f"protocol {one.health.protocol}")
        if one.health.start_seconds is not None:
            introduction.append(f"started in {one.health.start_seconds:.1f} s")
    return [
        f"{name}  {green('ok')}: {', '.join(introduction)}",
        f"  {tools}, {tokens} of definitions (o200k_base){kept}",
        *(f"  {dim('note')}  {note}" for note in notes),
        *_withheld_variables(one),
        *report_lines(one.server.name, one.definitions),
        *(f"  {yellow('flag')}  {flag_line(flag)}" for flag in one.flags),
    ]


def _withheld_variables(one: _ServerCheck) -> list[str]:
    """Return one line with the names of the variables that it may need and does not inherit."""
    return [f"  {dim('note')}  {one.withheld.sentence(one.server)}"] if one.withheld else []


def _found_json(one: _ServerCheck) -> dict[str, Json]:
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
        "kept_back": one.kept_back,
        "definitions": one.definitions.to_json(),
        "error": None if one.error is None else _error_json(one.error),
        "notes": [*(() if health is None else health.notes), *one.unmatched],
        "flags": [flag_json(flag) for flag in one.flags],
        "stderr": "" if health is None else health.stderr_tail,
        "withheld_variables": list(one.withheld.names),
        "withheld_hint": one.withheld.sentence(one.server) if one.withheld else "",
    }


def _error_json(error: UllageError) -> dict[str, Json]:
    return cast("dict[str, Json]", dict(error.wire()))
