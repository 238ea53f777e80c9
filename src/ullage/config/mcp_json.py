"""Which servers stand in the JSON file of another program?

`mcpServers` as Claude Code, Claude Desktop, Cursor, Gemini CLI, Windsurf, Cline and Copilot write it, `servers` as VS
Code does, and Claude Code's servers of single projects. What such a file excludes stays excluded. Where those files
are kept is not known here.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from ullage.gateway import Rules, Server

from .issue import Issue
from .layer import Layer
from .loose import Loose, clean, flag, names, pairs, read_tables, seconds, text, texts, transport
from .narrowing import narrowed
from .page import Page
from .permissions import permissions_of
from .relaxed import parse_relaxed

__all__ = ["read_mcp_json"]

_IN_SECONDS = re.compile(r"(?:^|[/\\])(?:cline_mcp_settings\.json|mcp_settings\.json|\.roo[/\\]mcp\.json)$")
"""Files of programs that write time-outs in seconds; all others write milliseconds."""

_Object = Mapping[str, object]


def read_mcp_json(page: Page) -> Layer:
    try:
        document = parse_relaxed(page.text)
    except (json.JSONDecodeError, RecursionError) as error:
        where = (
            f": {error.msg}, line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ": nested too deep"
        )
        return replace(_nothing(page, f"is not JSON{where}"), is_unread=True)
    tables = list(_tables(document, page.projects))
    permissions = permissions_of(document, page.projects)
    if not tables and permissions is None:
        return _nothing(page, "has no `mcpServers` and no `servers`")
    found = read_tables(page, tables, _values)
    kept, switched_off = _without(page, found.servers, _excluded(document, page.projects))
    return Layer(
        source=page.file,
        servers=kept,
        rules=found.rules,
        permissions=permissions,
        issues=(*found.issues, *switched_off),
        is_foreign=True,
    )


def _nothing(page: Page, why: str) -> Layer:
    issue = page.issue("problem", f"{why}; none of its servers are used")
    return Layer(source=page.file, issues=(issue,), is_foreign=True)


def _tables(document: object, projects: Iterable[str]) -> Iterator[tuple[tuple[str, ...], object]]:
    """The tables of servers with their places; those of a single project come before those for all."""
    places = [("projects", project, "mcpServers") for project in projects]
    for path in (*places, ("mcpServers",), ("servers",), ("mcp", "servers")):
        found = _at(document, path)
        if found is not None:
            yield path, found


def _at(document: object, path: Iterable[str]) -> object:
    for part in path:
        document = cast("_Object", document).get(part) if isinstance(document, dict) else None
    return document


def _excluded(document: object, projects: Iterable[str]) -> tuple[frozenset[str] | None, frozenset[str]]:
    """The only servers the file wants, where it says so, and those it does not want."""
    wanted = [names(_at(document, path)) for path in (("mcp", "allowed"), ("allowMCPServers",))]
    lists = [
        ("mcp", "excluded"),
        ("excludeMCPServers",),
        *(("projects", one, "disabledMcpServers") for one in projects),
    ]
    unwanted = frozenset(clean(name) for path in lists for name in names(_at(document, path)) or ())
    return _common(None if one is None else map(clean, one) for one in wanted), unwanted


def _common(lists: Iterable[Iterable[str] | None]) -> frozenset[str] | None:
    """What is on every list there is; None where there is none."""
    common: frozenset[str] | None = None
    for one in lists:
        if one is not None:
            common = frozenset(one) if common is None else common.intersection(one)
    return common


def _without(
    page: Page, servers: Mapping[str, Server | None], excluded: tuple[frozenset[str] | None, frozenset[str]]
) -> tuple[dict[str, Server | None], tuple[Issue, ...]]:
    only, unwanted = excluded
    off = {name for name in servers if name in unwanted or (only is not None and name not in only)}
    kept = {name: replace(one, disabled=True) if one and name in off else one for name, one in servers.items()}
    said = (page.issue("note", f"server `{name}` is switched off here", server=name) for name in sorted(off))
    return kept, tuple(said)


def _values(entry: Loose) -> dict[str, Any]:
    http_url = entry.take(text, "httpUrl")
    enabled = entry.take(flag, "enabled")
    return {
        "command": entry.take(text, "command"),
        "arguments": entry.take(texts, "args"),
        "environment": entry.take(pairs, "env"),
        "directory": entry.take(text, "cwd"),
        "url": http_url or entry.take(text, "url", "serverUrl"),
        "headers": entry.take(pairs, "headers"),
        "transport": entry.take(transport, "type", "transport") or ("http" if http_url else None),
        "disabled": bool(entry.take(flag, "disabled")) or enabled is False,
        "description": entry.take(text, "description"),
        "call_timeout": _timeout(entry),
        "rules": _rules(entry),
    }


def _timeout(entry: Loose) -> float | None:
    given = entry.take(seconds, "timeout")
    # Nobody means to wait less than a second: a small number is seconds whoever wrote it.
    is_seconds = given is not None and (given < 1000 or _IN_SECONDS.search(entry.page.file))
    return given if given is None or is_seconds else given / 1000


def _rules(entry: Loose) -> Rules:
    only = _common(_wanted(entry.take(names, key)) for key in ("includeTools", "enabledTools", "tools"))
    denied = [name for key in ("excludeTools", "disabledTools") for name in entry.take(names, key) or ()]
    return narrowed(only=None if only is None else sorted(only), denied=denied)


def _wanted(listed: tuple[str, ...] | None) -> list[str] | None:
    if listed is None or "*" in listed:
        return None
    # Gemini CLI may write a tool with the arguments it is wanted for; the name is what can be kept to.
    return [name.partition("(")[0] for name in listed]
