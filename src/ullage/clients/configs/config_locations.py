"""The programs whose MCP servers Ullage can read and take over.

For each program: its files on Linux, macOS and Windows, the tables of servers in them, the names of an entry's parts,
its rules about tools, its model, and the entry that starts Ullage. The formats of Claude Code, Codex, Gemini CLI,
opencode and Qwen Code were checked against files that these programs write themselves, the others against their
documentation. Nothing is opened here. What a program writes into its first request is in `first_request`.

Other programs' rules about single tools are converted to rules of one server. Programs name a tool in their settings by
its server and its own name: `mcp__github__delete_repo` (Claude Code, Qwen Code), `mcp_github_delete_repo` (Gemini CLI),
`github_delete_repo` (opencode), `github:delete_repo` (Cursor). A star matches any text, also across the boundary
between the two. An ambiguous rule is read in the way that restricts more.
"""

import ntpath
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Literal, cast

from .server_entries import (
    ConfigFile,
    EntryKeys,
    FileFormat,
    KeyPath,
    Scope,
    ServerEntry,
    ToolRules,
    read_names,
    value_at,
)

__all__ = [
    "PROGRAMS",
    "FileRules",
    "Program",
    "Surroundings",
    "apply_rules",
    "find_program",
    "fold_name",
    "tools_named_by",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """One of several rules, of which the first that matches decides."""

    pattern: str
    """Pattern of a tool's full name."""
    decision: Literal["deny", "ask", "allow"]
    rank: float
    """Rules of higher rank come first."""
    is_limited: bool = False
    """Whether the rule applies to some arguments or modes only."""
    is_project: bool = False
    """Whether it came with a project: it may exempt tools from other rules of projects, and permits none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPattern:
    """One item of a list of servers that are never, or alone, started. One of the three is set."""

    name: str | None = None
    """The server's name, folded."""
    command: tuple[str, ...] | None = None
    """The command with all its arguments."""
    url: str | None = None
    """The address; a star matches any text."""

    def matches(self, entry: ServerEntry) -> bool:
        """Return whether this is about the server."""
        if self.command is not None:
            return entry.command is not None and (entry.command, *entry.arguments) == self.command
        if self.url is not None:
            wanted = ".*".join(map(re.escape, self.url.rstrip("/").split("*")))
            return entry.url is not None and re.fullmatch(wanted, entry.url.rstrip("/"), re.IGNORECASE) is not None
        return fold_name(entry.name) == self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRules:
    """One file's rules for servers and tools that may be configured elsewhere."""

    deny: tuple[str, ...] = ()
    """Rules as the file has them."""
    ask: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    exempt: tuple[str, ...] = ()
    """Exceptions to wider rules of `ask`, for programs that read them so."""
    off: frozenset[str] = frozenset()
    """Servers that are switched off, folded."""
    on: frozenset[str] | None = None
    """The only servers that are switched on; None if there is no such list."""
    declined: frozenset[str] = frozenset()
    """Servers of project files that the user declined, folded."""
    policies: tuple[PolicyRule, ...] = ()
    agents: tuple[str, ...] = ()
    """Rules that restrict tools for single agents of the program only."""
    hooks: tuple[str, ...] = ()
    """Patterns of the tools for which the program runs commands of the user, which may refuse a call."""
    layered: frozenset[str] = frozenset()
    """Servers of which the file changes settings in some runs only, folded."""
    denied: tuple["ServerPattern", ...] = ()
    """Servers that are never started."""
    admitted: tuple["ServerPattern", ...] | None = None
    """The only servers that are started; None if there is no such list."""


def fold_name(name: str) -> str:
    """Return a server's name with `_` for everything but letters and digits: programs spell it with fewer
    characters."""
    return re.sub(r"[^A-Za-z0-9]", "_", name)


def tools_named_by(rules: Iterable[str], prefixes: Sequence[str], wholes: Sequence[str]) -> tuple[str, ...]:
    """Return the patterns of a server's own tools that these rules name.

    Args:
        rules: Rules as the file has them; arguments in parentheses are ignored, which can only make a rule wider.
        prefixes: Prefixes of the tool's name, such as `mcp__github__`.
        wholes: Names of the server with all its tools, such as `mcp__github`.
    """
    found = dict[str, None]()
    for rule in rules:
        name = rule.partition("(")[0].strip()
        if any("" in _match_beginning(name, whole) for whole in wholes):
            found["*"] = None
        for prefix in prefixes:
            found.update(dict.fromkeys(rest for rest in _match_beginning(name, prefix) if rest))
    return tuple(found)


def _match_beginning(pattern: str, text: str) -> list[str]:
    """Return all possible remainders of a pattern after its beginning has matched a text."""
    places = _skip_stars(pattern, {0})
    for letter in text:
        stay = {at for at in places if pattern[at : at + 1] == "*"}
        step = {at + 1 for at in places - stay if _is_same(pattern[at : at + 1], letter)}
        places = _skip_stars(pattern, stay | step)
    return [pattern[at:] for at in sorted(places)]


def _skip_stars(pattern: str, places: set[int]) -> set[int]:
    """Return these places, and those after stars that match the empty text."""
    found = set(places)
    for place in places:
        after = place
        while pattern[after : after + 1] == "*":
            after += 1
            found.add(after)
    return found


def _is_same(one: str, other: str) -> bool:
    return one == other or (bool(one) and fold_name(one) == fold_name(other) == "_")


def apply_rules(
    entry: ServerEntry, rules: Iterable[FileRules], prefixes: Sequence[str], wholes: Sequence[str]
) -> ServerEntry:
    """Return the entry with all rules of these files about it."""
    own, is_off = entry.rules, entry.disabled
    folded = fold_name(entry.name)
    files = tuple(rules)
    unresolved = entry.unresolved
    for one in files:
        # A rule for all tools holds for those of Ullage as it held for the server's.
        if tools_named_by((rule for rule in one.agents if rule.strip("*")), prefixes, wholes):
            unresolved = _join(unresolved, ("the rules of single agents",))
        if tools_named_by(one.hooks, prefixes, wholes):
            unresolved = _join(unresolved, ("the hooks on its tools",))
        if folded in one.layered:
            unresolved = _join(unresolved, ("the settings of single profiles",))
        own = ToolRules(
            only=own.only,
            deny=_join(own.deny, tools_named_by(one.deny, prefixes, wholes)),
            ask=_join(own.ask, tools_named_by(one.ask, prefixes, wholes)),
            allow=_join(own.allow, tools_named_by(one.allow, prefixes, wholes)),
            exempt=_join(own.exempt, tools_named_by(one.exempt, prefixes, wholes)),
        )
        is_off = is_off or folded in one.off or (one.on is not None and folded not in one.on)
        is_off = is_off or (entry.scope == "project" and folded in one.declined)
        is_off = is_off or any(pattern.matches(entry) for pattern in one.denied)
        is_off = is_off or (one.admitted is not None and not _is_admitted(entry, one.admitted))
    policies = sorted((one for file in files for one in file.policies), key=lambda one: -one.rank)
    return replace(entry, rules=_with_policies(own, policies, prefixes, wholes), disabled=is_off, unresolved=unresolved)


def _is_admitted(entry: ServerEntry, patterns: Sequence[ServerPattern]) -> bool:
    """Return whether a list of the only servers names this one. Where the list has commands, or addresses, a name in it
    does not admit a server that is started by a command, or has an address."""
    if entry.command is not None:
        narrower = [one for one in patterns if one.command is not None]
    else:
        narrower = [one for one in patterns if one.url is not None]
    return any(one.matches(entry) for one in narrower or patterns)


def _with_policies(
    own: ToolRules, policies: Iterable[PolicyRule], prefixes: Sequence[str], wholes: Sequence[str]
) -> ToolRules:
    """Return the rules with these policies, of which the first that matches a tool decides. A policy limited to some
    arguments or modes restricts always and permits never; so does one that matches a part of the tools that an earlier
    one permits, unless it matches all tools."""
    only: tuple[str, ...] | None = own.only
    deny, ask = [*own.deny], [*own.ask]
    free, usable = list[str](), list[str]()
    for policy in policies:
        for tool in tools_named_by((policy.pattern,), prefixes, wholes):
            if _is_any(tool, usable):
                continue
            if policy.decision == "deny" and tool == "*" and usable:
                kept = tuple[str, ...](usable)
                only = kept if only is None else tuple(one for one in only if _is_any(one, kept))
            elif policy.decision == "deny":
                deny.append(tool)
            else:
                usable += [] if policy.is_limited else [tool]
                if policy.decision == "ask":
                    ask.append(tool)
                # An earlier rule that asks, even if it is limited, is not waived by a later one.
                elif not (policy.is_limited or policy.is_project or _is_any(tool, ask)):
                    free.append(tool)
    return ToolRules(
        only=only,
        deny=_join((), tuple(deny)),
        ask=_join((), tuple(ask)),
        allow=_join(own.allow, tuple(free)),
        exempt=_join(own.exempt, tuple(free)),
    )


def _is_any(tool: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(tool, one) for one in patterns)


def _join(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


Platform = Literal["linux", "darwin", "win32"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The places where programs look for their files."""

    platform: Platform
    home: str
    environment: Mapping[str, str] = field(repr=False)
    folders: tuple[str, ...] = ()
    """The working folder and those above it that belong to the same project, innermost first."""

    def join(self, *parts: str) -> str:
        return (ntpath if self.platform == "win32" else posixpath).join(*parts)

    def at_home(self, *parts: str) -> str:
        return self.join(self.home, *parts)

    def from_variable(self, name: str, *default: str) -> str:
        """Return the folder named by a variable, else one below the home folder."""
        return self.environment.get(name) or self.at_home(*default)

    @property
    def application_data(self) -> str:
        """Return the folder in which desktop programs keep their settings."""
        if self.platform == "win32":
            return self.from_variable("APPDATA", "AppData", "Roaming")
        if self.platform == "darwin":
            return self.at_home("Library", "Application Support")
        return self.from_variable("XDG_CONFIG_HOME", ".config")

    def system_folder(self, linux: str, darwin: str, windows: str) -> str:
        """Return the folder in which an administrator keeps settings for all users."""
        if self.platform == "win32":
            return self.join(self.environment.get("PROGRAMDATA") or "C:\\ProgramData", windows)
        return self.join("/Library/Application Support", darwin) if self.platform == "darwin" else f"/etc/{linux}"

    def in_projects(
        self,
        *parts: str,
        tables: tuple[KeyPath, ...] = (),
        format: FileFormat = "json",  # noqa: A002 - the field's name
        is_main: bool = False,
    ) -> Iterator[ConfigFile]:
        """Yield a file of this name for each folder of the project."""
        for folder in self.folders:
            if folder != self.home:
                yield ConfigFile(
                    path=self.join(folder, *parts),
                    scope="project",
                    format=format,
                    tables=tables,
                    folder=folder,
                    is_main=is_main and folder == self.folders[0],
                )


def _pass_on_nothing(names: Sequence[str]) -> dict[str, object]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The description of one program."""

    name: str
    """Its name on the command line: `codex`."""
    title: str
    """Its name for display: `Codex`."""
    keys: EntryKeys
    list_files: Callable[[Surroundings], Iterable[ConfigFile]]
    make_entry: Callable[[str, tuple[str, ...], tuple[str, ...]], dict[str, object]]
    """Creates the entry that starts a stdio server, from the command, its arguments, and the tools that may run without
    consent."""
    scope_order: tuple[Scope, ...] = ("project", "user", "managed")
    """Nearest first: of two servers with one name, the nearer is used."""
    list_command: tuple[str, ...] | None = None
    """The program's own command that lists its servers."""
    models: tuple[KeyPath, ...] = ()
    """Where its files set the model; the first that is found is used. `{key}` is the file's value of this key."""
    usual_model: str | None = None
    """The model it probably uses if its files set none; None if that cannot be guessed."""
    defers_tools: bool = False
    """Whether the program can load tool definitions on demand by itself."""
    allowed_tools: KeyPath | None = None
    """Where the user's settings list the tools that run without consent; None if the server's entry does."""
    read_rules: Callable[[object, ConfigFile, Surroundings], FileRules] | None = None
    finish_entry: Callable[[ServerEntry, Mapping[str, object]], ServerEntry] | None = None
    """Adds settings that only this program's entries have."""
    prefixes: Callable[[str], tuple[str, ...]] = lambda server: ()
    """The prefixes of a tool's name in its rules, for a server."""
    wholes: Callable[[str], tuple[str, ...]] = lambda server: ()
    """The names of a server with all its tools in its rules."""
    aliases: tuple[str, ...] = ()
    pass_on: Callable[[Sequence[str]], dict[str, object]] = _pass_on_nothing
    """Parts of an entry that give the server these variables of the program's own environment; empty for programs that
    give it all."""
    allowed_servers: tuple[KeyPath, ...] = ()
    """Where its files list the only servers that are started."""

    def tables_of(self, file: ConfigFile, document: object) -> Iterator[tuple[KeyPath, object, ConfigFile]]:
        """Yield the existing tables of servers in a parsed file, each with the file in the table's scope."""
        for path in file.tables:
            table = value_at(document, path)
            if table is not None:
                # Claude Code keeps servers of single folders in the user's file.
                is_local = file.scope == "user" and path[0] == "projects"
                yield path, table, replace(file, scope="local", folder=path[1]) if is_local else file


def _user_file(path: str, tables: tuple[KeyPath, ...] = (), **more: object) -> ConfigFile:
    return ConfigFile(path=path, scope="user", tables=tables, **more)  # pyright: ignore[reportArgumentType]


def _stdio_entry(command: str, arguments: tuple[str, ...], unasked: tuple[str, ...]) -> dict[str, object]:
    return {"command": command, "args": list(arguments)}


def _pass_on_for_editors(names: Sequence[str]) -> dict[str, object]:
    return {"env": {name: f"${{env:{name}}}" for name in names}} if names else {}


def _typed_entry(command: str, arguments: tuple[str, ...], unasked: tuple[str, ...]) -> dict[str, object]:
    return {"type": "stdio", "command": command, "args": list(arguments)}


def _claude_prefixes(server: str) -> tuple[str, ...]:
    return (f"mcp__{fold_name(server)}__",)


def _claude_wholes(server: str) -> tuple[str, ...]:
    return (f"mcp__{fold_name(server)}",)


def _fold_all(names: Iterable[str]) -> frozenset[str]:
    return frozenset(map(fold_name, names))


def _names_at(document: object, *path: str) -> tuple[str, ...]:
    value = value_at(document, path)
    return () if value is None else read_names(value)


# -- Claude Code and Claude Desktop

_MCP_SERVERS: tuple[KeyPath, ...] = (("mcpServers",),)


def _agent_files(around: Surroundings, users: str, projects: tuple[str, ...]) -> Iterator[ConfigFile]:
    """Yield the folders of the user and of the project in which a program keeps descriptions of agents."""
    yield _user_file(users, format="markdown", is_folder=True)
    for file in around.in_projects(*projects, format="markdown"):
        yield replace(file, is_folder=True)


def _agent_rules(document: object) -> FileRules:
    """Read the tools and servers that the description of an agent names.

    Whether it wants or excludes them, they stay in the program: behind Ullage, they would have other names there, and
    Ullage cannot tell which agent calls.
    """
    rules = list[str]()
    for key, words in _items(document):
        if key in ("tools", "disallowedTools", "permission", "permissions", "mcpServers", "mcp"):
            rules += (word for word in read_names(words))
        if key in ("mcpServers", "mcp"):
            rules += (f"mcp__{fold_name(word)}" for word in read_names(words))
    return FileRules(agents=tuple(rules))


_OWN_TOOLS = (
    ("mcp__ullage__call_tool", "mcp__ullage__call_tool_write"),
    ("mcp_ullage_call_tool", "mcp_ullage_call_tool_write"),
)
"""As Claude Code and Qwen Code name them, and as Gemini CLI does."""
_MOST_MATCHERS = 200


def _hook_patterns(document: object) -> tuple[str, ...]:
    """Return the patterns of MCP tools that the matchers of hooks name, which are regular expressions.

    A matcher that also matches Ullage's tools needs nothing: the hook is run for them. Text that a regular
    expression leaves open is a star, so that no tool is missed.
    """
    found = dict[str, None]()
    for _, entries in _items(value_at(document, ("hooks",))):
        for entry in cast("list[object]", entries) if isinstance(entries, list) else []:
            matcher = value_at(entry, ("matcher",))
            for pattern in _expand_matcher(matcher) if isinstance(matcher, str) else ():
                is_named = "mcp" in pattern or (pattern.startswith("*") and "__" in pattern)
                is_run = any(all(fnmatchcase(one, f"{pattern}*") for one in tools) for tools in _OWN_TOOLS)
                if is_named and not is_run:
                    found[pattern] = None
    return tuple(found)


def _expand_matcher(matcher: str) -> Iterator[str]:
    """Yield the alternatives of a regular expression as patterns with stars, up to a number of them."""
    waiting = [matcher]
    for _ in range(_MOST_MATCHERS):
        if not waiting:
            return
        one = waiting.pop()
        group = re.search(r"\((?:\?:)?([^()]*)\)[*+?]?", one)
        if group is not None:
            waiting += [f"{one[: group.start()]}{part}{one[group.end() :]}" for part in group[1].split("|")]
        elif "|" in one:
            waiting += one.split("|")
        else:
            # A class of characters or an escaped letter, with or without a quantifier.
            opened = re.sub(r"(?:\[[^\]]*\]|\\[a-zA-Z]|\.)(?:[*+?]|\{[^}]*\})?", "*", one)
            yield re.sub(r"\*+", "*", re.sub(r"\\(.)", r"\1", opened.strip("^$")))


def _claude_code_files(around: Surroundings) -> Iterator[ConfigFile]:
    managed = around.system_folder("claude-code", "ClaudeCode", "ClaudeCode")
    if around.platform == "win32":
        managed = around.join(around.environment.get("PROGRAMFILES") or "C:\\Program Files", "ClaudeCode")
    yield ConfigFile(path=around.join(managed, "managed-mcp.json"), scope="managed", tables=_MCP_SERVERS)
    yield ConfigFile(path=around.join(managed, "managed-settings.json"), scope="managed")
    own = around.environment.get("CLAUDE_CONFIG_DIR")
    local = tuple(("projects", folder.replace("\\", "/"), "mcpServers") for folder in around.folders)
    home_file = around.join(own, ".claude.json") if own else around.at_home(".claude.json")
    yield _user_file(home_file, (*local, ("mcpServers",)), is_main=True)
    yield _user_file(around.join(own or around.at_home(".claude"), "settings.json"))
    yield from around.in_projects(".mcp.json", tables=_MCP_SERVERS, is_main=True)
    yield from around.in_projects(".claude", "settings.json")
    yield from around.in_projects(".claude", "settings.local.json")
    yield from _agent_files(around, around.join(own or around.at_home(".claude"), "agents"), (".claude", "agents"))


def _claude_code_rules(document: object, file: ConfigFile, around: Surroundings) -> FileRules:
    if file.format == "markdown":
        return _agent_rules(document)
    off = [name for folder in around.folders for name in _names_at(document, "projects", folder, "disabledMcpServers")]
    declined = [*_names_at(document, "disabledMcpjsonServers")]
    for folder in around.folders:
        declined += _names_at(document, "projects", folder, "disabledMcpjsonServers")
    admitted = value_at(document, ("allowedMcpServers",))
    return FileRules(
        deny=_mcp_rules(_names_at(document, "permissions", "deny")),
        ask=_mcp_rules(_names_at(document, "permissions", "ask")),
        allow=_mcp_rules(_names_at(document, "permissions", "allow")),
        off=_fold_all(off),
        declined=_fold_all(declined),
        hooks=_hook_patterns(document),
        denied=tuple(_claude_server_patterns(value_at(document, ("deniedMcpServers",)))),
        admitted=None if admitted is None else tuple(_claude_server_patterns(admitted)),
    )


def _claude_server_patterns(listed: object) -> Iterator[ServerPattern]:
    """Read the items of `deniedMcpServers` and `allowedMcpServers`."""
    for one in cast("list[object]", listed) if isinstance(listed, list) else []:
        name, url = value_at(one, ("serverName",)), value_at(one, ("serverUrl",))
        command = value_at(one, ("serverCommand",))
        if isinstance(name, str):
            yield ServerPattern(name=fold_name(name))
        if isinstance(url, str):
            yield ServerPattern(url=url)
        if isinstance(command, list):
            yield ServerPattern(command=tuple(map(str, cast("list[object]", command))))


def _mcp_rules(rules: Iterable[str]) -> tuple[str, ...]:
    """Return the rules that can name a tool of a server."""
    return tuple(rule for rule in rules if rule.startswith("mcp__") or rule.partition("(")[0].strip() == "*")


_CLAUDE_CODE = Program(
    name="claude",
    title="Claude Code",
    aliases=("claude-code",),
    keys=EntryKeys(
        disabled=None,
        call_timeout=(("timeout", 0.001),),
        external=("headersHelper",),
        ignored=("alwaysLoad",),
    ),
    list_files=_claude_code_files,
    make_entry=lambda command, arguments, unasked: {**_typed_entry(command, arguments, unasked), "env": {}},
    scope_order=("managed", "local", "project", "user"),
    list_command=("claude", "mcp", "list"),
    models=(("model",), ("env", "ANTHROPIC_MODEL")),
    usual_model="claude-opus-5-5",
    defers_tools=True,
    allowed_tools=("permissions", "allow"),
    read_rules=_claude_code_rules,
    prefixes=_claude_prefixes,
    wholes=_claude_wholes,
)

_CLAUDE_DESKTOP = Program(
    name="claude-desktop",
    title="Claude Desktop",
    usual_model="claude-sonnet-5-5",
    keys=EntryKeys(variables="none", disabled=None),
    list_files=lambda around: [
        _user_file(
            around.join(around.application_data, "Claude", "claude_desktop_config.json"), _MCP_SERVERS, is_main=True
        )
    ],
    make_entry=_stdio_entry,
)

# -- Editors


def _cursor_rules(document: object, file: ConfigFile, around: Surroundings) -> FileRules:
    """Read `mcpAllowlist` of `permissions.json`, and `Mcp(server:tool)` of the files of the command line program."""

    def of_cli(kind: str) -> tuple[str, ...]:
        rules = _names_at(document, "permissions", kind)
        return tuple(rule[4:].rstrip(")") for rule in rules if rule.startswith("Mcp("))

    return FileRules(deny=of_cli("deny"), allow=(*of_cli("allow"), *_names_at(document, "mcpAllowlist")))


def _cursor_files(around: Surroundings) -> Iterator[ConfigFile]:
    yield _user_file(around.at_home(".cursor", "mcp.json"), _MCP_SERVERS, is_main=True)
    yield _user_file(around.at_home(".cursor", "permissions.json"))
    yield _user_file(around.at_home(".cursor", "cli-config.json"))
    yield from around.in_projects(".cursor", "mcp.json", tables=_MCP_SERVERS, is_main=True)
    yield from around.in_projects(".cursor", "permissions.json")
    yield from around.in_projects(".cursor", "cli.json")


_CURSOR = Program(
    name="cursor",
    title="Cursor",
    keys=EntryKeys(variables="editor", external=("envFile",)),
    list_files=_cursor_files,
    make_entry=_stdio_entry,
    list_command=("cursor-agent", "mcp", "list"),
    pass_on=_pass_on_for_editors,
    read_rules=_cursor_rules,
    prefixes=lambda server: (f"{server}:",),
)


def _vscode_files(around: Surroundings) -> Iterator[ConfigFile]:
    for product in ("Code", "Code - Insiders", "VSCodium"):
        user = around.join(around.application_data, product, "User")
        yield _user_file(around.join(user, "mcp.json"), (("servers",),), is_main=product == "Code")
        # Before June 2025, servers were kept among the other settings.
        yield _user_file(around.join(user, "settings.json"), (("mcp", "servers"),))
    yield from around.in_projects(".vscode", "mcp.json", tables=(("servers",),), is_main=True)
    yield from around.in_projects(".vscode", "settings.json", tables=(("mcp", "servers"),))


_VSCODE = Program(
    name="vscode",
    title="VS Code",
    aliases=("code", "vs-code"),
    keys=EntryKeys(
        variables="editor",
        disabled=None,
        external=("envFile",),
        ignored=("dev", "gallery", "version", "sandboxEnabled", "sandbox"),
    ),
    list_files=_vscode_files,
    make_entry=_typed_entry,
)

_WINDSURF = Program(
    name="windsurf",
    title="Windsurf",
    keys=EntryKeys(
        variables="editor", urls=(("serverUrl", None), ("url", None)), deny=("disabledTools",), allow=("alwaysAllow",)
    ),
    list_files=lambda around: [
        _user_file(around.at_home(".codeium", "windsurf", "mcp_config.json"), _MCP_SERVERS, is_main=True)
    ],
    pass_on=_pass_on_for_editors,
    make_entry=_stdio_entry,
)


def _cline_files(around: Surroundings) -> Iterator[ConfigFile]:
    named = around.environment.get("CLINE_MCP_SETTINGS_PATH")
    name = "cline_mcp_settings.json"
    yield _user_file(named or around.at_home(".cline", "data", "settings", name), _MCP_SERVERS)
    for product in ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"):
        storage = around.join(around.application_data, product, "User", "globalStorage", "saoudrizwan.claude-dev")
        yield _user_file(around.join(storage, "settings", name), _MCP_SERVERS, is_main=product == "Code")


_CLINE = Program(
    name="cline",
    title="Cline",
    keys=EntryKeys(
        variables="editor",
        call_timeout=(("timeout", 1.0),),
        allow=("autoApprove", "alwaysAllow"),
        ignored=("remoteConfigured",),
    ),
    list_files=_cline_files,
    pass_on=_pass_on_for_editors,
    make_entry=lambda command, arguments, unasked: {
        **_stdio_entry(command, arguments, unasked),
        "disabled": False,
        "autoApprove": list(unasked),
    },
)


def _zed_files(around: Surroundings) -> Iterator[ConfigFile]:
    tables: tuple[KeyPath, ...] = (("context_servers",),)
    if around.platform == "win32":
        folder = around.join(around.application_data, "Zed")
    else:
        folder = around.join(around.from_variable("XDG_CONFIG_HOME", ".config"), "zed")
    yield _user_file(around.join(folder, "settings.json"), tables, is_main=True)
    yield from around.in_projects(".zed", "settings.json", tables=tables, is_main=True)


def _zed_rules(document: object, file: ConfigFile, around: Surroundings) -> FileRules:
    """Read permissions of single tools, and the tools that the default profile leaves out."""
    by_default: dict[str, list[str]] = {"deny": [], "confirm": [], "allow": []}
    for name, tool in _items(value_at(document, ("agent", "tool_permissions", "tools"))):
        by_default.get(str(value_at(tool, ("default",))), []).append(name)
    profile = value_at(document, ("agent", "default_profile"))
    servers = value_at(document, ("agent", "profiles", str(profile), "context_servers"))
    for server, table in _items(servers):
        tools = _items(value_at(table, ("tools",)))
        by_default["deny"] += [f"mcp:{server}:{tool}" for tool, is_on in tools if is_on is False]
    return FileRules(deny=tuple(by_default["deny"]), ask=tuple(by_default["confirm"]), allow=tuple(by_default["allow"]))


def _items(value: object) -> Iterable[tuple[str, object]]:
    return cast("Mapping[str, object]", value).items() if isinstance(value, Mapping) else ()


_ZED = Program(
    name="zed",
    title="Zed",
    keys=EntryKeys(
        variables="none",
        enabled="enabled",
        disabled=None,
        call_timeout=(("timeout", 1.0),),
        external=("settings",),
        ignored=("source",),
    ),
    list_files=_zed_files,
    make_entry=lambda command, arguments, unasked: {
        "source": "custom",
        **_stdio_entry(command, arguments, unasked),
        "env": {},
    },
    models=(("agent", "default_model", "model"),),
    read_rules=_zed_rules,
    prefixes=lambda server: (f"mcp:{server}:",),
)

# -- Programs for the terminal

_CODEX_TABLE: tuple[KeyPath, ...] = (("mcp_servers",),)


def _codex_files(around: Surroundings) -> Iterator[ConfigFile]:
    if around.platform != "win32":
        yield ConfigFile(path="/etc/codex/config.toml", scope="managed", format="toml", tables=_CODEX_TABLE)
    own = around.from_variable("CODEX_HOME", ".codex")
    yield _user_file(around.join(own, "config.toml"), _CODEX_TABLE, format="toml", is_main=True)
    yield from around.in_projects(".codex", "config.toml", tables=_CODEX_TABLE, format="toml", is_main=True)
    yield _user_file(own, format="toml", is_folder=True, ending=".config.toml", is_optional=True)


def _codex_rules(document: object, file: ConfigFile, around: Surroundings) -> FileRules:
    """Read the files of profiles. A part of a server in one of them cannot be read without the server's command, and
    Codex does not start then."""
    changed = (name for name, _ in _items(value_at(document, _CODEX_TABLE[0])))
    return FileRules(layered=_fold_all(changed) if file.is_optional else frozenset())


_CODEX_UNASKED = ("approve", "auto")
"""Approval modes in which Codex does not ask by itself; `prompt` and `writes` ask."""


def _finish_codex_entry(entry: ServerEntry, raw: Mapping[str, object]) -> ServerEntry:
    """Add headers and variables that are named by a variable, and the approval of single tools."""
    headers = dict(entry.headers)
    for name, variable in _items(raw.get("env_http_headers")):
        headers[name] = f"${{{variable}}}"
    bearer = raw.get("bearer_token_env_var")
    if isinstance(bearer, str) and bearer:
        headers["Authorization"] = f"Bearer ${{{bearer}}}"
    listed = raw.get("env_vars")
    named = [
        one if isinstance(one, str) else value_at(one, ("name",))
        for one in (cast("list[object]", listed) if isinstance(listed, list) else [])
    ]
    tools = dict(_items(raw.get("tools")))
    modes = {name: value_at(tool, ("approval_mode",)) for name, tool in tools.items()}
    off = [name for name, tool in tools.items() if value_at(tool, ("enabled",)) is False]
    default = raw.get("default_tools_approval_mode")
    asks_rest = default is not None and default not in _CODEX_UNASKED
    unasked = [name for name, mode in modes.items() if mode in _CODEX_UNASKED]
    rules = ToolRules(
        only=entry.rules.only,
        deny=(*entry.rules.deny, *off),
        ask=("*",) if asks_rest else tuple(name for name, mode in modes.items() if mode and name not in unasked),
        allow=("*",) if default == "approve" else tuple(unasked),
        exempt=tuple(unasked) if asks_rest else (),
    )
    return replace(
        entry,
        headers=headers,
        inherited=tuple(name for name in named if isinstance(name, str)),
        rules=rules,
        signs_in=entry.signs_in or bool(raw.get("scopes")),
    )


def _codex_entry(command: str, arguments: tuple[str, ...], unasked: tuple[str, ...]) -> dict[str, object]:
    # Codex silently drops a server that exceeds its start-up time-out.
    entry = {**_stdio_entry(command, arguments, unasked), "startup_timeout_sec": 60, "tool_timeout_sec": 600}
    return {**entry, "tools": {tool: {"approval_mode": "approve"} for tool in unasked}} if unasked else entry


_CODEX = Program(
    name="codex",
    title="Codex",
    keys=EntryKeys(
        variables="none",
        headers="http_headers",
        type=None,
        disabled=None,
        enabled="enabled",
        start_timeout=(("startup_timeout_sec", 1.0), ("startup_timeout_ms", 0.001)),
        call_timeout=(("tool_timeout_sec", 1.0),),
        only=("enabled_tools",),
        deny=("disabled_tools",),
        sign_in=("oauth", "oauth_resource"),
        external=("http_headers_helper", "environment_id"),
        ignored=(
            "env_vars",
            "env_http_headers",
            "bearer_token_env_var",
            "tools",
            "default_tools_approval_mode",
            "required",
            "scopes",
            "auth",
            "supports_parallel_tool_calls",
        ),
    ),
    list_files=_codex_files,
    make_entry=_codex_entry,
    list_command=("codex", "mcp", "list", "--json"),
    models=(("profiles", "{profile}", "model"), ("model",)),
    usual_model="gpt-5.3-codex",
    # Codex gives a server the home folder, the search path and few more.
    pass_on=lambda names: {"env_vars": list(names)} if names else {},
    read_rules=_codex_rules,
    finish_entry=_finish_codex_entry,
)


def _gemini_files(around: Surroundings) -> Iterator[ConfigFile]:
    system = around.environment.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH") or around.join(
        around.system_folder("gemini-cli", "GeminiCli", "gemini-cli"), "settings.json"
    )
    yield ConfigFile(path=system, scope="managed", tables=_MCP_SERVERS)
    home = around.environment.get("GEMINI_CLI_HOME") or around.home
    yield _user_file(around.join(home, ".gemini", "settings.json"), _MCP_SERVERS, is_main=True)
    yield _user_file(around.join(home, ".gemini", "mcp-server-enablement.json"))
    yield _user_file(around.join(home, ".gemini", "policies"), format="toml", is_folder=True)
    system_policies = around.join(around.system_folder("gemini-cli", "GeminiCli", "gemini-cli"), "policies")
    yield ConfigFile(path=system_policies, scope="managed", format="toml", is_folder=True)
    for folder in around.folders:
        if folder != around.home:
            policies = around.join(folder, ".gemini", "policies")
            yield ConfigFile(path=policies, scope="project", format="toml", folder=folder, is_folder=True)
    yield from around.in_projects(".gemini", "settings.json", tables=_MCP_SERVERS, is_main=True)
    yield from _agent_files(around, around.join(home, ".gemini", "agents"), (".gemini", "agents"))


_POLICY_RANKS: Mapping[Scope, int] = {"project": 1000, "user": 2000, "local": 2000, "managed": 3000}
_POLICY_DECISIONS: Mapping[str, Literal["deny", "ask", "allow"]] = {"deny": "deny", "ask_user": "ask", "allow": "allow"}
_POLICY_CONDITIONS = (
    "argsPattern",
    "commandPrefix",
    "commandRegex",
    "modes",
    "toolAnnotations",
    "interactive",
    "subagent",
)


def _gemini_rules(document: object, file: ConfigFile, around: Surroundings) -> FileRules:
    if file.format == "markdown":
        return _agent_rules(document)
    if file.format == "toml":
        policies: list[PolicyRule] = []
        rules = value_at(document, ("rule",))
        for rule in cast("list[object]", rules) if isinstance(rules, list) else []:
            said = dict(_items(rule))
            decision = _POLICY_DECISIONS.get(str(said.get("decision")), "deny")
            priority = said.get("priority")
            rank = _POLICY_RANKS[file.scope] + min(max(priority if isinstance(priority, int | float) else 0, 0), 999)
            server = said.get("mcpName")
            names = read_names(said["toolName"]) if "toolName" in said else ("*",)
            for name in names:
                is_whole = not isinstance(server, str) or name.startswith(("mcp_", f"{server}__"))
                policies.append(
                    PolicyRule(
                        pattern=name if is_whole else f"mcp_{server}_{name}",
                        decision=decision,
                        rank=rank,
                        is_limited=any(key in said for key in _POLICY_CONDITIONS),
                        is_project=file.scope == "project",
                    )
                )
        return FileRules(policies=tuple(policies))
    if file.path.endswith("mcp-server-enablement.json"):
        disabled = [name for name, state in _items(document) if value_at(state, ("enabled",)) is False]
        return FileRules(off=_fold_all(disabled))
    wanted = [value_at(document, path) for path in (("mcp", "allowed"), ("allowMCPServers",))]
    lists = [_fold_all(read_names(one)) for one in wanted if one is not None]
    return FileRules(
        deny=(
            *_names_at(document, "tools", "exclude"),
            *_names_at(document, "excludeTools"),
            *_mcp_rules(_names_at(document, "permissions", "deny")),
        ),
        ask=_mcp_rules(_names_at(document, "permissions", "ask")),
        allow=(*_names_at(document, "tools", "allowed"), *_mcp_rules(_names_at(document, "permissions", "allow"))),
        off=_fold_all((*_names_at(document, "mcp", "excluded"), *_names_at(document, "excludeMCPServers"))),
        on=lists[0].intersection(*lists) if lists else None,
        hooks=_hook_patterns(document),
    )


def _finish_gemini_entry(entry: ServerEntry, raw: Mapping[str, object]) -> ServerEntry:
    """Complete an entry. `trust` means that all tools of the server run without consent. A name may carry arguments:
    `run(git status)`."""
    rules = entry.rules
    only = None if rules.only is None else tuple(name.partition("(")[0].strip() for name in rules.only)
    allow = ("*",) if raw.get("trust") is True else rules.allow
    return replace(entry, rules=replace(rules, only=only, allow=allow))


_GEMINI_KEYS = EntryKeys(
    variables="dollar",
    urls=(("httpUrl", "http"), ("url", None), ("tcp", "http")),
    disabled=None,
    call_timeout=(("timeout", 0.001),),
    only=("includeTools",),
    deny=("excludeTools",),
    external=("extension", "targetAudience", "targetServiceAccount"),
    sign_in=("oauth", "authProviderType"),
    ignored=("trust", "extensionName"),
)


def _gemini_entry(command: str, arguments: tuple[str, ...], unasked: tuple[str, ...]) -> dict[str, object]:
    # Consent can be waived for all of a server's tools or for none.
    is_trusted = "call_tool_write" in unasked
    return {**_stdio_entry(command, arguments, unasked), **({"trust": True} if is_trusted else {})}


_GEMINI = Program(
    name="gemini",
    title="Gemini CLI",
    aliases=("gemini-cli",),
    keys=_GEMINI_KEYS,
    list_files=_gemini_files,
    make_entry=_gemini_entry,
    list_command=("gemini", "mcp", "list"),
    models=(("model", "name"), ("model",)),
    usual_model="gemini-3.8-flash",
    # Gemini CLI gives a server no variable whose name or value looks secret, unless its entry does.
    pass_on=lambda names: {"env": {name: f"${name}" for name in names}} if names else {},
    allowed_servers=(("mcp", "allowed"), ("allowMCPServers",)),
    read_rules=_gemini_rules,
    finish_entry=_finish_gemini_entry,
    prefixes=lambda server: (f"mcp_{server}_", f"{server}__", f"mcp__{fold_name(server)}__"),
    wholes=_claude_wholes,
)


def _qwen_files(around: Surroundings) -> Iterator[ConfigFile]:
    system = around.environment.get("QWEN_CODE_SYSTEM_SETTINGS_PATH") or around.join(
        around.system_folder("qwen-code", "QwenCode", "qwen-code"), "settings.json"
    )
    yield ConfigFile(path=system, scope="managed", tables=_MCP_SERVERS)
    own = around.from_variable("QWEN_HOME", ".qwen")
    yield _user_file(around.join(own, "settings.json"), _MCP_SERVERS, is_main=True)
    yield from around.in_projects(".qwen", "settings.json", tables=_MCP_SERVERS, is_main=True)
    yield from around.in_projects(".mcp.json", tables=_MCP_SERVERS)
    yield from _agent_files(around, around.join(own, "agents"), (".qwen", "agents"))


_QWEN = replace(
    _GEMINI,
    name="qwen",
    title="Qwen Code",
    aliases=("qwen-code",),
    list_files=_qwen_files,
    list_command=("qwen", "mcp", "list"),
    usual_model="qwen3-coder-plus",
    pass_on=_pass_on_nothing,
    defers_tools=True,
)


def _opencode_files(around: Surroundings) -> Iterator[ConfigFile]:
    tables: tuple[KeyPath, ...] = (("mcp",),)
    folder = around.join(around.from_variable("XDG_CONFIG_HOME", ".config"), "opencode")
    system = around.system_folder("opencode", "opencode", "opencode")
    for name in ("opencode.json", "opencode.jsonc"):
        yield ConfigFile(path=around.join(system, name), scope="managed", tables=tables)
    for name in ("config.json", "opencode.json", "opencode.jsonc"):
        yield _user_file(around.join(folder, name), tables, is_main=name != "config.json")
    named = around.environment.get("OPENCODE_CONFIG")
    if named:
        yield _user_file(named, tables)
    own = around.environment.get("OPENCODE_CONFIG_DIR")
    for name in ("opencode.json", "opencode.jsonc"):
        if own:
            yield _user_file(around.join(own, name), tables)
        yield from around.in_projects(name, tables=tables, is_main=True)
        yield from around.in_projects(".opencode", name, tables=tables)
    for name in ("agent", "agents", "mode", "modes"):
        yield from _agent_files(around, around.join(folder, name), (".opencode", name))
        if own:
            yield _user_file(around.join(own, name), format="markdown", is_folder=True)


def _opencode_rules(document: object, file: ConfigFile, around: Surroundings) -> FileRules:
    """Read `permission`, by pattern of a tool's full name or one word for all; `tools` switches tools off."""
    if file.format == "markdown":
        return _agent_rules(document)
    by_kind: dict[str, list[str]] = {"deny": [], "ask": [], "allow": []}
    permission = value_at(document, ("permission",))
    said = [("*", permission)] if isinstance(permission, str) else list(_items(permission))
    for pattern, kind in said:
        by_kind.get(str(kind), []).append(pattern)
    # The last match decides. An unapproved project cannot permit anything.
    last = max((at for at, (_, kind) in enumerate(said) if kind in ("ask", "deny")), default=-1)
    freed = [pattern for pattern, kind in said[last + 1 :] if kind == "allow"]
    exempt = () if file.scope == "project" else tuple(freed)
    by_kind["deny"] += [name for name, is_on in _items(value_at(document, ("tools",))) if is_on is False]
    agents = list[str]()
    for table in ("agent", "mode"):
        for _, agent in _items(value_at(document, (table,))):
            said = value_at(agent, ("permission",))
            some = [("*", said)] if isinstance(said, str) else _items(said)
            # Also what is switched on: elsewhere it may be off.
            agents += [pattern for pattern, _ in some]
            agents += [name for name, _ in _items(value_at(agent, ("tools",)))]
    return FileRules(
        deny=tuple(by_kind["deny"]),
        ask=tuple(by_kind["ask"]),
        allow=tuple(by_kind["allow"]),
        exempt=exempt,
        agents=tuple(agents),
    )


_OPENCODE = Program(
    name="opencode",
    title="opencode",
    keys=EntryKeys(
        variables="opencode",
        environment="environment",
        disabled=None,
        enabled="enabled",
        start_timeout=(("timeout", 0.001),),
    ),
    list_files=_opencode_files,
    make_entry=lambda command, arguments, unasked: {
        "type": "local",
        "command": [command, *arguments],
        "enabled": True,
        "timeout": 60_000,
    },
    list_command=("opencode", "mcp", "list"),
    models=(("model",),),
    read_rules=_opencode_rules,
    prefixes=lambda server: (f"{fold_name(server)}_",),
)

PROGRAMS: Mapping[str, Program] = MappingProxyType(
    {
        one.name: one
        for one in (
            _CLAUDE_CODE, _CLAUDE_DESKTOP, _CURSOR, _VSCODE, _CODEX, _GEMINI, _OPENCODE, _WINDSURF, _ZED, _CLINE, _QWEN,
        )
    }
)  # fmt: skip
"""Programs by their names on the command line."""


def find_program(name: str) -> Program | None:
    """Return the program of this name or alias, ignoring case; None if there is none."""
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    return next((one for one in PROGRAMS.values() if wanted in (one.name, *one.aliases, one.title.lower())), None)
