"""Reads the servers in the JSON file of another program.

`mcpServers` as Claude Code, Claude Desktop, Cursor, Gemini CLI, Qwen Code, Windsurf, Cline and Copilot write it,
`servers` as VS Code does, `mcp` as opencode does, `context_servers` as Zed does, and Claude Code's servers of single
projects. What such a file excludes or asks for stays so. Where those files are kept is not known here.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from ullage.options import Rules
from ullage.start_cache import parts_text, relevant_folders, relevant_parts

from .issue import Issue
from .layer import ClientFile, Layer
from .lists import Lists, at
from .loose import Found, Loose, flag, pairs, read_tables, seconds, text, texts, transport
from .naming import folded
from .narrowing import narrowed, narrower
from .page import Page, dotted
from .permissions import permissions_of, rests_of
from .relaxed import parse_relaxed

__all__ = ["read_mcp_json"]

_IN_SECONDS = re.compile(r"(?:^|[/\\])(?:cline_mcp_settings\.json|mcp_settings\.json|\.roo[/\\]mcp\.json)$")
"""Files of programs that write time-outs in seconds; all others write milliseconds."""

_OPENCODE, _ZED = ("mcp",), ("context_servers",)
_Object = Mapping[str, object]


def read_mcp_json(page: Page) -> Layer:
    try:
        whole = parse_relaxed(page.text)
    except (ValueError, RecursionError) as error:
        where = (
            f": {error.msg}, line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ": nested too deep"
        )
        return replace(_nothing(page, f"is not JSON{where}"), is_unread=True)
    client_file = ClientFile(parts_text(whole, page.projects), tuple(relevant_folders(whole)))
    # Nothing else is read, since nothing else is compared when the first answers come from the cache.
    document = relevant_parts(whole, page.projects)
    tables = list(_tables(document, page.projects))
    lists = Lists(document)
    permissions = permissions_of(lists, page.projects)
    if not tables and permissions is None:
        return replace(_nothing(page, "has no `mcpServers` and no `servers`"), client_file=client_file)
    found = read_tables(page, tables, _values)
    _hold_back(found, document)
    only, unwanted = _excluded(lists, page.projects)
    switched_off = list(_switch_off(page, found, only, unwanted))
    return Layer(
        source=page.file,
        servers=found.servers,
        withheld=found.withheld(unwanted, permissions),
        issues=(*found.issues, *switched_off, *_unclear(page, lists)),
        is_foreign=True,
        client_file=client_file,
    )


def _nothing(page: Page, why: str) -> Layer:
    issue = page.issue("problem", f"{why}; none of its servers are used")
    return Layer(source=page.file, issues=(issue,), is_foreign=True)


def _tables(document: object, projects: Iterable[str]) -> Iterator[tuple[tuple[str, ...], object]]:
    """The tables of servers with their places; those of a single project come before those for all."""
    places = [("projects", project, "mcpServers") for project in projects]
    for path in (*places, ("mcpServers",), ("servers",), ("mcp", "servers"), _ZED):
        found = at(document, path)
        if found is not None:
            yield path, found
    # Other programs keep settings in a table of this name, none of which is a server.
    table = at(document, _OPENCODE)
    entries = cast("_Object", table).items() if isinstance(table, dict) else ()
    servers = {name: entry for name, entry in entries if at(entry, ("command",)) or at(entry, ("url",))}
    if servers:
        yield _OPENCODE, servers


def _hold_back(found: Found, document: object) -> None:
    """Adds the rules that the file has for single tools of its servers, by their full names.

    opencode names them `server_tool`, Zed `mcp:server:tool`, Gemini CLI `mcp_server_tool`, `server__tool` or
    `mcp__server__tool`.
    """
    denied, asked = list[str](), list[str]()
    lists = Lists(document)
    excluded = [("tools", "exclude")] if isinstance(at(document, ("tools", "exclude")), list) else []
    for path in (*excluded, ("excludeTools",)):
        denied += [name.partition("(")[0].strip() for name in lists.names(*path) or ()]
    permission = at(document, ("permission",))
    said: dict[str, object] = {"*": permission} if isinstance(permission, str) else _table(permission)
    denied += [name for name, kind in said.items() if kind == "deny"]
    asked += [name for name, kind in said.items() if kind == "ask"]
    denied += [name for name, is_on in _table(at(document, ("tools",))).items() if is_on is False]
    for name, tool in _table(at(document, ("agent", "tool_permissions", "tools"))).items():
        kind = at(tool, ("default",))
        denied += [name] if kind == "deny" else []
        asked += [name] if kind == "confirm" else []
    profile = str(at(document, ("agent", "default_profile")))
    for server, table in _table(at(document, ("agent", "profiles", profile, "context_servers"))).items():
        tools = _table(at(table, ("tools",)))
        denied += [f"mcp:{server}:{tool}" for tool, is_on in tools.items() if is_on is False]
    if not denied and not asked:
        return
    for name, rules in found.rules.items():
        starts = [
            start
            for called in found.called.get(name, ())
            for start in (f"{called}_", f"{called}__", f"mcp_{called}_", f"mcp__{called}__")
        ]
        more = narrowed(denied=tuple(rests_of(denied, starts)), asked=tuple(rests_of(asked, starts)))
        found.rules[name] = narrower(rules, more)


def _table(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _excluded(lists: Lists, projects: Iterable[str]) -> tuple[frozenset[str] | None, frozenset[str]]:
    """The only servers the file wants, where it says so, and those it does not want, folded."""
    wanted = [lists.only(*path) for path in (("mcp", "allowed"), ("allowMCPServers",))]
    places = [
        ("mcp", "excluded"),
        ("excludeMCPServers",),
        *(("projects", one, "disabledMcpServers") for one in projects),
    ]
    unwanted = frozenset(folded(name) for path in places for name in lists.names(*path) or ())
    return _common(None if one is None else map(folded, one) for one in wanted), unwanted


def _common(lists: Iterable[Iterable[str] | None]) -> frozenset[str] | None:
    """What is on every list there is; None where there is none."""
    common: frozenset[str] | None = None
    for one in lists:
        if one is not None:
            common = frozenset(one) if common is None else common.intersection(one)
    return common


def _switch_off(page: Page, found: Found, only: frozenset[str] | None, unwanted: frozenset[str]) -> Iterator[Issue]:
    for name in sorted(found.servers):
        called = found.called[name]
        if not called.isdisjoint(unwanted) or (only is not None and called.isdisjoint(only)):
            found.switch_off(name)
            yield page.issue("note", f"server `{name}` is switched off here", server=name)


def _unclear(page: Page, lists: Lists) -> Iterator[Issue]:
    for path in dict.fromkeys(lists.unclear):
        said = f"`{dotted(path)}` cannot be read whole; what could be read is kept to"
        yield page.issue("problem", said, path, suggestion="write names, each in quotes, in square brackets")


def _values(entry: Loose) -> dict[str, Any]:
    http_url = entry.take(text, "httpUrl")
    enabled = entry.take(flag, "enabled")
    command, arguments, environment = _launch(entry)
    values = {
        "command": command,
        "arguments": arguments,
        "environment": environment,
        "directory": entry.take(text, "cwd"),
        "url": http_url or entry.take(text, "url", "serverUrl"),
        "headers": entry.take(pairs, "headers"),
        "transport": entry.take(transport, "type", "transport") or ("http" if http_url else None),
        "disabled": bool(entry.take(flag, "disabled")) or enabled is False,
        "description": entry.take(text, "description"),
        "rules": _rules(entry),
    }
    if entry.path[:-1] == _OPENCODE:
        # `remote` is streamable HTTP or server-sent events, which its address says; its time-out is for the start.
        declared = None if values["transport"] == "http" else values["transport"]
        waited = entry.take(seconds, "timeout")
        values = {key: _variables(value) for key, value in values.items()}
        return {**values, "transport": declared, "start_timeout": waited and waited / 1000}
    entry.used |= {"source"} if entry.path[:-1] == _ZED else set()
    return {**values, "call_timeout": _timeout(entry)}


def _launch(entry: Loose) -> tuple[str | None, tuple[str, ...] | None, dict[str, str] | None]:
    """The command, its arguments and its environment; opencode has the first two in one list, and old files of Zed all
    three in one table."""
    given = entry.raw.get("command")
    if isinstance(given, list) and entry.path[:-1] == _OPENCODE:
        words = entry.take(texts, "command") or ()
        rest = (*words[1:], *(entry.take(texts, "args") or ()))
        return (words[0] if words else None), rest, entry.take(pairs, "environment", "env")
    if isinstance(given, dict) and entry.path[:-1] == _ZED:
        entry.used.add("command")
        inner = Loose(entry.page, (*entry.path, "command"), cast("_Object", given))
        command, arguments = inner.take(text, "path"), inner.take(texts, "args")
        environment = inner.take(pairs, "env")
        entry.faults += inner.faults
        return command, arguments, environment
    return entry.take(text, "command"), entry.take(texts, "args"), entry.take(pairs, "env", "environment")


def _variables(value: object) -> Any:  # noqa: ANN401 - a value of any key
    """With `{env:NAME}` of opencode written as `${NAME:-}`: an unset variable is an empty text there."""
    if isinstance(value, str):
        return re.sub(r"\{env:([A-Za-z_]\w*)\}", r"${\1:-}", value)
    if isinstance(value, tuple):
        return tuple(_variables(one) for one in cast("tuple[object, ...]", value))
    if isinstance(value, dict):
        return {key: _variables(one) for key, one in cast("dict[str, object]", value).items()}
    return value


def _timeout(entry: Loose) -> float | None:
    given = entry.take(seconds, "timeout")
    # Nobody means to wait less than a second: a small number is seconds whoever wrote it.
    is_seconds = given is not None and (given < 1000 or _IN_SECONDS.search(entry.page.file))
    return given if given is None or is_seconds else given / 1000


def _rules(entry: Loose) -> Rules:
    only = _common(_wanted(entry.tools(key)) for key in ("includeTools", "enabledTools", "tools"))
    denied = [name for key in ("excludeTools", "disabledTools") for name in entry.tools(key) or ()]
    return narrowed(only=None if only is None else sorted(only), denied=denied)


def _wanted(listed: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if listed is None or "*" in listed else listed
