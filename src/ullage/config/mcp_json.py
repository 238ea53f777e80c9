"""Which servers stand in the JSON file of another program?

`mcpServers` as Claude Code, Claude Desktop, Cursor, Gemini CLI, Windsurf, Cline and Copilot write it, `servers` as VS
Code does, and Claude Code's servers of single projects. What such a file excludes stays excluded. Where those files
are kept is not known here.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ullage.options import Rules
from ullage.start_cache import parts_text, relevant_folders, relevant_parts

from .issue import Issue
from .layer import ClientFile, Layer
from .lists import Lists, at
from .loose import Found, Loose, flag, pairs, read_tables, seconds, text, texts, transport
from .naming import folded
from .narrowing import narrowed
from .page import Page, dotted
from .permissions import permissions_of
from .relaxed import parse_relaxed

__all__ = ["read_mcp_json"]

_IN_SECONDS = re.compile(r"(?:^|[/\\])(?:cline_mcp_settings\.json|mcp_settings\.json|\.roo[/\\]mcp\.json)$")
"""Files of programs that write time-outs in seconds; all others write milliseconds."""

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
    for path in (*places, ("mcpServers",), ("servers",), ("mcp", "servers")):
        found = at(document, path)
        if found is not None:
            yield path, found


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
    only = _common(_wanted(entry.tools(key)) for key in ("includeTools", "enabledTools", "tools"))
    denied = [name for key in ("excludeTools", "disabledTools") for name in entry.tools(key) or ()]
    return narrowed(only=None if only is None else sorted(only), denied=denied)


def _wanted(listed: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if listed is None or "*" in listed else listed
