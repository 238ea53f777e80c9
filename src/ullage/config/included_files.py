"""Readers of the server files of other programs: JSON, TOML and JSON with comments.

JSON files are read in these dialects: `mcpServers` as written by Claude Code, Claude Desktop, Cursor, Gemini CLI, Qwen
Code, Windsurf, Cline and Copilot, `servers` of VS Code, `mcp` of opencode, `context_servers` of Zed, and Claude Code's
servers of single projects. Tools that such a file excludes, or asks about, stay excluded or need consent. The locations
of these files are defined elsewhere.

Codex's TOML has the tables `[mcp_servers.NAME]`. Tools that Codex leaves out or asks about are treated in the same way;
its other settings are ignored.

Entries are read leniently, key by key: a number in place of a text becomes that text; null and the empty text count as
absent. A value that cannot be understood leaves out only its server; keys that Ullage does not use are noted. The
dialect defines the keys.

Comments and trailing commas in JSON are replaced with blanks, so that a line number in an error is the line in the
file. Anything else that JSON does not allow is still refused.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, TypeVar, cast

from ullage.jsonc import blank_comments
from ullage.options import Rules, Server
from ullage.start_cache import parts_text, relevant_folders, relevant_parts

from .config_file import Issue, Page, join_path, load_toml
from .entries import Entry, launch_fault, server_of
from .layers import ClientFile, Layer
from .permissions import (
    Lists,
    Permissions,
    Withheld,
    at,
    clean,
    fold_server_name,
    narrowed,
    narrower,
    permissions_of,
    readable,
    rests_of,
    tool_names,
)
from .setting_definitions import FLAG, SECONDS, TRANSPORT, VARIABLE, describe_value

__all__ = [
    "Loose",
    "flag",
    "pairs",
    "parse_relaxed",
    "read_codex_toml",
    "read_mcp_json",
    "read_tables",
    "seconds",
    "text",
    "texts",
    "transport",
]

Value = TypeVar("Value")

_UNUSED = {
    "autoApprove": "is not taken over: your client asks before `call_tool_write`, as it is set to",
    "alwaysAllow": "is not taken over: your client asks before `call_tool_write`, as it is set to",
    "trust": "is not taken over: your client asks before `call_tool_write`, as it is set to",
    "envFile": "is not read: put its variables into `env`",
    "oauth": "is not used: Ullage cannot sign in for that program; send a token in `headers`",
    "headersHelper": "is not run: put the header into `headers`",
}


def text(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value)


def texts(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    found = [text(item) for item in cast("list[object]", value)]
    return None if None in found else cast("tuple[str, ...]", tuple(found))


def pairs(value: object) -> dict[str, str] | None:
    if not isinstance(value, dict):
        return {} if value == [] else None
    given = {key: one for key, one in cast("dict[str, object]", value).items() if one is not None}
    found = {key: str(one).lower() if isinstance(one, bool) else text(one) for key, one in given.items()}
    return None if None in found.values() else cast("dict[str, str]", found)


def flag(value: object) -> bool | None:
    return cast("bool | None", FLAG.read(value))


def seconds(value: object) -> float | None:
    return cast("float | None", SECONDS.read(value))


def transport(value: object) -> str | None:
    return cast("str | None", TRANSPORT.read(value))


@dataclass(slots=True)
class Loose:
    """One entry while it is being read."""

    page: Page
    path: tuple[str, ...]
    raw: Mapping[str, object]
    used: set[str] = field(default_factory=set[str])
    faults: list[str] = field(default_factory=list[str])

    def take(self, read: Callable[[object], Value | None], *keys: str) -> Value | None:
        """Return the value of the first of these keys that has one; None if none has, or if it cannot be understood."""
        for key in keys:
            self.used.add(key)
            value = self.raw.get(key)
            if value not in (None, ""):
                return self._read(read, key, value)
        return None

    def tools(self, key: str) -> tuple[str, ...] | None:
        """Return the readable tools on a list, as the server calls them; None if there is no list."""
        self.used.add(key)
        value = self.raw.get(key)
        if value in (None, ""):
            return None
        names = [item for item in cast("list[object]", value) if item != ""] if isinstance(value, list) else value
        found, is_whole = readable(cast("object", names))
        if not is_whole:
            self._misread(key, cast("object", value))
        return tool_names(found, self.path[-1])

    def _read(self, read: Callable[[object], Value | None], key: str, value: object) -> Value | None:
        found = read(value)
        if found is None:
            self._misread(key, value)
        return found

    def _misread(self, key: str, value: object) -> None:
        self.faults.append(f"its `{key}` is {describe_value(value)}, which cannot be meant")

    def unused(self, server: str) -> tuple[Issue, ...]:
        return tuple(
            self.page.issue(
                "note",
                f"`{key}` of server `{server}` {_UNUSED.get(key, 'means nothing to Ullage')}",
                (*self.path, key),
                server=server,
            )
            for key in self.raw
            if key not in self.used
        )


Dialect = Callable[[Loose], Mapping[str, Any]]
"""The values of an entry, under the names of `Server`'s fields; None for those not set. `rules` is always set."""


@dataclass(slots=True)
class Found:
    """The servers of a file, collected while reading."""

    servers: dict[str, Server | None] = field(default_factory=dict[str, "Server | None"])
    """None for a server that is left out."""
    rules: dict[str, Rules] = field(default_factory=dict[str, Rules])
    """Restrictions by server; if several have one name, the restrictions of all of them."""
    called: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """The file's names of each server, folded."""
    off: set[str] = field(default_factory=set[str])
    """Servers that are switched off, folded."""
    issues: list[Issue] = field(default_factory=list[Issue])

    def switch_off(self, name: str) -> None:
        """Switch a server off in this file and in every other that configures it."""
        server = self.servers.get(name)
        self.servers[name] = server and replace(server, disabled=True)
        self.off |= self.called[name]

    def withheld(self, off: Iterable[str] = (), permissions: Permissions | None = None) -> Withheld:
        """Return all restrictions. `off` are folded names of servers that need not be in this file."""
        return Withheld(rules=self.rules, called=self.called, off=frozenset((*self.off, *off)), permissions=permissions)


def read_tables(page: Page, tables: Sequence[tuple[tuple[str, ...], object]], dialect: Dialect) -> Found:
    """Read every server of these tables, each with its place. If tables share a name, the first one is used."""
    found = Found()
    for path, table in tables:
        if isinstance(table, dict):
            _read_table(page, path, cast("dict[str, object]", table), dialect, found)
        else:
            said = f"`{path[-1]}` is {describe_value(table)}, not a table of servers"
            found.issues.append(page.issue("problem", said, path))
    return found


def _read_table(page: Page, path: tuple[str, ...], table: Mapping[str, object], dialect: Dialect, found: Found) -> None:
    earlier = frozenset(found.servers)
    taken, numbers = set[str](), dict[str, int]()
    for given, raw in table.items():
        name = _free(clean(given), taken, numbers)
        server, rules, issues = _read(page, (*path, given), name, raw, dialect)
        found.rules[name] = narrower(found.rules.get(name, Rules()), rules)
        found.called[name] = found.called.get(name, frozenset()) | {fold_server_name(given)}
        if name in earlier:
            found.issues.append(
                page.issue(
                    "note",
                    f"this entry of server `{name}` is not used: there is another one above",
                    (*path, given),
                    server=name,
                )
            )
        else:
            found.issues += issues
            if server is not None or any(issue.severity == "problem" for issue in issues):
                found.servers[name] = server
                if name not in earlier:
                    taken.add(name)
        if server is not None and server.disabled:
            found.switch_off(name)


def _free(name: str, taken: set[str], numbers: dict[str, int]) -> str:
    """Return the name, or the name with the next number. `numbers` keeps the last number of each name, so that many
    entries with one name take linear time."""
    if name not in taken:
        return name
    for number in count(numbers.get(name, 1) + 1):
        if f"{name}-{number}" not in taken:
            numbers[name] = number
            break
    return f"{name}-{numbers[name]}"


def _read(
    page: Page, path: tuple[str, ...], name: str, raw: object, dialect: Dialect
) -> tuple[Server | None, Rules, tuple[Issue, ...]]:
    if not isinstance(raw, dict):
        return None, Rules(), (_left_out(page, path, name, f"its entry is {describe_value(raw)}, not a table"),)
    loose = Loose(page, path, cast("dict[str, object]", raw))
    values = {key: value for key, value in dialect(loose).items() if value is not None}
    if "command" in values and "url" in values and "transport" in values:
        # The type decides which of the two is used.
        values.pop("url" if values["transport"] == "stdio" else "command")
    fault, rules = launch_fault(values), cast("Rules", values["rules"])
    faults = loose.faults or ([f"it {fault}"] if fault else [])
    unused = loose.unused(name)
    if faults and not values.get("disabled"):
        return None, rules, (*(_left_out(page, path, name, one) for one in faults), *unused)
    server, issues = server_of(page, Entry(name=name, path=path, values=values))
    return server, rules, (*issues, *unused)


def _left_out(page: Page, path: tuple[str, ...], name: str, why: str) -> Issue:
    return page.issue("problem", f"server `{name}` is left out: {why}", path, server=name)


def parse_relaxed(text: str) -> object:
    """Parse JSON with comments and trailing commas.

    Raises:
        json.JSONDecodeError: The text is not valid even so.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(blank_comments(text))


_UNASKED = ("approve", "auto")
"""Approval modes in which Codex decides by itself; it still asks before `call_tool_write`, as configured."""


def read_codex_toml(page: Page) -> Layer:
    """Return the layer of Codex's `config.toml`."""
    try:
        table = load_toml(page.text).get("mcp_servers")
    except (ValueError, RecursionError) as error:
        return replace(
            _nothing(page, f"is not TOML: {'nested too deep' if isinstance(error, RecursionError) else error}"),
            is_unread=True,
        )
    if table is None:
        return _nothing(page, "has no `[mcp_servers]`")
    found = read_tables(page, [(("mcp_servers",), table)], _values)
    return Layer(
        source=page.file,
        servers=found.servers,
        withheld=found.withheld(),
        issues=tuple(found.issues),
        is_foreign=True,
    )


def _nothing(page: Page, why: str) -> Layer:
    issue = page.issue("problem", f"{why}; none of its servers are used")
    return Layer(source=page.file, issues=(issue,), is_foreign=True)


def _values(entry: Loose) -> dict[str, Any]:
    milliseconds = entry.take(seconds, "startup_timeout_ms")
    # The variables that are written in `env`, and those of `env_vars` that are set here.
    named = entry.take(_variable_names, "env_vars") or ()
    inherited = {name: f"${{{name}}}" for name in named if name in entry.page.environment}
    environment = {**inherited, **(entry.take(pairs, "env") or {})} or None
    # Headers with written values, and those whose value comes from a variable.
    headers = entry.take(pairs, "http_headers") or {}
    headers |= {name: f"${{{one}}}" for name, one in (entry.take(_variables, "env_http_headers") or {}).items()}
    bearer = entry.take(_variable, "bearer_token_env_var")
    headers = headers | ({"Authorization": f"Bearer ${{{bearer}}}"} if bearer else {}) or None
    return {
        "command": entry.take(text, "command"),
        "arguments": entry.take(texts, "args"),
        "environment": environment,
        "directory": entry.take(text, "cwd"),
        "url": entry.take(text, "url"),
        "headers": headers,
        "disabled": entry.take(flag, "enabled") is False,
        "start_timeout": entry.take(seconds, "startup_timeout_sec") or (milliseconds and milliseconds / 1000),
        "call_timeout": entry.take(seconds, "tool_timeout_sec"),
        "rules": _rules(entry),
    }


def _variable_names(value: object) -> tuple[str, ...] | None:
    """Return names of variables, each a text or a table with a `name`."""
    if not isinstance(value, list):
        return None
    items = cast("list[object]", value)
    names = [cast("dict[str, object]", item).get("name") if isinstance(item, dict) else item for item in items]
    return None if None in map(_variable, names) else cast("tuple[str, ...]", tuple(names))


def _variable(value: object) -> str | None:
    return cast("str | None", VARIABLE.read(value))


def _variables(value: object) -> dict[str, str] | None:
    found = pairs(value)
    return found if found is not None and all(_variable(name) for name in found.values()) else None


def _rules(entry: Loose) -> Rules:
    tools = entry.take(_tools, "tools") or {}
    modes = {name: str(one["approval_mode"]) for name, one in tools.items() if one.get("approval_mode") is not None}
    off = [name for name, one in tools.items() if one.get("enabled") is False]
    return narrowed(
        only=entry.tools("enabled_tools"),
        denied=(*(entry.tools("disabled_tools") or ()), *off),
        asked=[name for name, mode in modes.items() if mode not in _UNASKED],
        ask_rest=entry.take(text, "default_tools_approval_mode") not in (None, *_UNASKED),
        unasked=[name for name, mode in modes.items() if mode in _UNASKED],
    )


def _tools(value: object) -> dict[str, dict[str, object]] | None:
    """Return the tables of single tools."""
    if not isinstance(value, dict):
        return None
    tables = cast("dict[str, object]", value)
    return {name: cast("dict[str, object]", one) for name, one in tables.items() if isinstance(one, dict)}


_IN_SECONDS = re.compile(r"(?:^|[/\\])(?:cline_mcp_settings\.json|mcp_settings\.json|\.roo[/\\]mcp\.json)$")
"""Files of programs that write time-outs in seconds; all others write milliseconds."""

_OPENCODE, _ZED = ("mcp",), ("context_servers",)
_Object = Mapping[str, object]


def read_mcp_json(page: Page) -> Layer:
    """Return the layer of another program's JSON file."""
    try:
        whole = parse_relaxed(page.text)
    except (ValueError, RecursionError) as error:
        where = (
            f": {error.msg}, line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ": nested too deep"
        )
        return replace(_nothing(page, f"is not JSON{where}"), is_unread=True)
    client_file = ClientFile(parts_text(whole, page.projects), tuple(relevant_folders(whole)))
    # Nothing else is read, because nothing else is compared when the first answers come from the cache.
    document = relevant_parts(whole, page.projects)
    tables = list[tuple[tuple[str, ...], object]]()
    places = [("projects", project, "mcpServers") for project in page.projects]
    for path in (*places, ("mcpServers",), ("servers",), ("mcp", "servers"), _ZED):
        found = at(document, path)
        if found is not None:
            tables.append((path, found))
    # Other programs use a table of this name for settings that are not servers.
    table = at(document, _OPENCODE)
    entries = cast("_Object", table).items() if isinstance(table, dict) else ()
    servers = {name: entry for name, entry in entries if at(entry, ("command",)) or at(entry, ("url",))}
    if servers:
        tables.append((_OPENCODE, servers))
    lists = Lists(document)
    permissions = permissions_of(lists, page.projects)
    if not tables and permissions is None:
        return replace(_nothing(page, "has no `mcpServers` and no `servers`"), client_file=client_file)
    found = read_tables(page, tables, _mcp_json_values)
    _hold_back(found, document)
    only, unwanted = _find_excluded_servers(lists, page.projects)
    switched_off = list[Issue]()
    for name in sorted(found.servers):
        called = found.called[name]
        if not called.isdisjoint(unwanted) or (only is not None and called.isdisjoint(only)):
            found.switch_off(name)
            switched_off.append(page.issue("note", f"server `{name}` is switched off here", server=name))
    unclear = [
        page.issue(
            "problem",
            f"`{join_path(path)}` cannot be read whole; what could be read is kept to",
            path,
            suggestion="write names, each in quotes, in square brackets",
        )
        for path in dict.fromkeys(lists.unclear)
    ]
    return Layer(
        source=page.file,
        servers=found.servers,
        withheld=found.withheld(unwanted, permissions),
        issues=(*found.issues, *switched_off, *unclear),
        is_foreign=True,
        client_file=client_file,
    )


def _hold_back(found: Found, document: object) -> None:
    """Add the file's rules for single tools of its servers, which it names in full.

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


def _find_excluded_servers(lists: Lists, projects: Iterable[str]) -> tuple[frozenset[str] | None, frozenset[str]]:
    """Return the only servers the file wants, if it lists any, and those it does not want, folded."""
    wanted = [lists.only(*path) for path in (("mcp", "allowed"), ("allowMCPServers",))]
    places = [
        ("mcp", "excluded"),
        ("excludeMCPServers",),
        *(("projects", one, "disabledMcpServers") for one in projects),
    ]
    unwanted = frozenset(fold_server_name(name) for path in places for name in lists.names(*path) or ())
    return _common(None if one is None else map(fold_server_name, one) for one in wanted), unwanted


def _common(lists: Iterable[Iterable[str] | None]) -> frozenset[str] | None:
    """Return the items that every existing list contains; None if there is no list."""
    common: frozenset[str] | None = None
    for one in lists:
        if one is not None:
            common = frozenset(one) if common is None else common.intersection(one)
    return common


def _mcp_json_values(entry: Loose) -> dict[str, Any]:
    http_url = entry.take(text, "httpUrl")
    enabled = entry.take(flag, "enabled")
    command, arguments, environment = _launch(entry)
    wanted = [entry.tools(key) for key in ("includeTools", "enabledTools", "tools")]
    only = _common(None if listed is None or "*" in listed else listed for listed in wanted)
    denied = [name for key in ("excludeTools", "disabledTools") for name in entry.tools(key) or ()]
    mcp_json_rules = narrowed(only=None if only is None else sorted(only), denied=denied)
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
        "rules": mcp_json_rules,
    }
    if entry.path[:-1] == _OPENCODE:
        # `remote` means streamable HTTP or server-sent events, depending on the address; its time-out applies to the
        # start.
        declared = None if values["transport"] == "http" else values["transport"]
        waited = entry.take(seconds, "timeout")
        values = {key: _mcp_json_variables(value) for key, value in values.items()}
        return {**values, "transport": declared, "start_timeout": waited and waited / 1000}
    entry.used |= {"source"} if entry.path[:-1] == _ZED else set()
    given = entry.take(seconds, "timeout")
    # A time-out below one second is implausible, so a small number is read as seconds in any file.
    is_seconds = given is not None and (given < 1000 or _IN_SECONDS.search(entry.page.file))
    timeout = given if given is None or is_seconds else given / 1000
    return {**values, "call_timeout": timeout}


def _launch(entry: Loose) -> tuple[str | None, tuple[str, ...] | None, dict[str, str] | None]:
    """Return the command, its arguments and its environment. opencode has the first two in one list, and old files of
    Zed have all three in one table."""
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


def _mcp_json_variables(value: object) -> Any:  # noqa: ANN401 - a value of any key
    """Replace opencode's `{env:NAME}` with `${NAME:-}`: opencode replaces an unset variable with an empty text."""
    if isinstance(value, str):
        return re.sub(r"\{env:([A-Za-z_]\w*)\}", r"${\1:-}", value)
    if isinstance(value, tuple):
        return tuple(_mcp_json_variables(one) for one in cast("tuple[object, ...]", value))
    if isinstance(value, dict):
        return {key: _mcp_json_variables(one) for key, one in cast("dict[str, object]", value).items()}
    return value
