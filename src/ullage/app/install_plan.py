"""Decides how Ullage is put in front of a program's servers, and how it is taken out again.

`plan_install` compares what a program has configured with the user's own `ullage.toml` and returns the edits of both
files, with a reason for every server that stays where it is. `plan_uninstall` returns the edits of the user's file that
take the program's group out again. `find_doubled` finds servers that a program still lists beside Ullage. Nothing is
read or written here.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, cast

from ullage.clients.configs import (
    ClientConfig,
    ConfigFile,
    Edit,
    KeyPath,
    Program,
    Put,
    Remove,
    ServerEntry,
    ToolRules,
    value_at,
)
from ullage.config import server_fault
from ullage.gateway import Server

__all__ = [
    "OWN_NAME",
    "InstallPlan",
    "Moved",
    "MovedScope",
    "ServeFlags",
    "Staying",
    "StayingKind",
    "find_doubled",
    "is_ullage",
    "plan_install",
    "plan_uninstall",
    "serve_flags",
    "server_table",
    "ullage_entry",
]

OWN_NAME = "ullage"
"""The name of Ullage's entry in other programs' files."""
UNASKED_TOOLS = ("find_tool", "read_result")
"""Ullage's tools that only look things up; programs that can be told so run them without asking."""
CALLING_TOOLS = ("call_tool", "call_tool_write")
"""Those that call a server's tool."""
_RUNNERS = ("npx", "uvx", "bunx", "pnpx", "pipx")
"""Programs that fetch the package named in their arguments and start it."""
_BARE = re.compile(r"[^A-Za-z0-9_.-]+")
_ULLAGE = re.compile(r"(?:^|[/\\])ullage(?:\.exe)?(?:@.*)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Moved:
    """A server that goes behind Ullage."""

    entry: ServerEntry
    name: str
    """Its name in the user's `ullage.toml`."""
    is_known: bool = False
    """Whether the user's file has the same server already."""


MovedScope = Literal["user", "project", "all"]
"""Which servers an installation moves: the user's for all folders, those of the working folder, or both."""
StayingKind = Literal["managed", "scope", "pending", "faulty", "disabled", "unresolved", "sign-in"]


@dataclass(frozen=True, slots=True)
class Staying:
    """A server that stays in the program's own file."""

    entry: ServerEntry
    reason: str
    kind: StayingKind


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallPlan:
    """What an installation changes."""

    program: Program
    file: ConfigFile
    """Where Ullage's entry goes."""
    entry_path: KeyPath
    moved: tuple[Moved, ...] = ()
    staying: tuple[Staying, ...] = ()
    own_edits: tuple[Edit, ...] = field(default=(), repr=False)
    """Of the user's `ullage.toml`."""
    file_edits: Mapping[str, tuple[Edit, ...]] = field(default_factory=dict[str, tuple[Edit, ...]], repr=False)
    """Of the program's files, by path."""
    formats: Mapping[str, ConfigFile] = field(default_factory=dict[str, ConfigFile])

    def added_to_own(self) -> tuple[KeyPath, ...]:
        """The tables that the user's file gets."""
        return tuple(edit.path for edit in self.own_edits if isinstance(edit, Put))


def plan_install(  # noqa: PLR0913 - the last three say what is moved
    config: ClientConfig,
    own: Mapping[str, object],
    command: Sequence[str],
    *,
    model: str | None = None,
    scope: MovedScope = "user",
    is_approved: Callable[[str], bool] = lambda path: False,
    behind: Iterable[str] = (),
    needs_sign_in: Iterable[str] = (),
) -> InstallPlan:
    """How Ullage is put in front of a program's servers.

    A server of one folder only is there in that folder only afterwards, too. Ullage's entry goes to the user's file in
    any case: the command in it is one of this machine, and a project's file may be shared.

    Args:
        config: what the program has configured.
        own: the user's `ullage.toml`, parsed.
        command: the words that start Ullage as a server.
        model: the program's model under a name that Ullage knows; None where there is none.
        scope: which servers are moved.
        is_approved: whether the user has approved a project's file as it is. Servers of others stay.
        behind: names of the servers that are behind Ullage for this program already. They stay there.
        needs_sign_in: names in the program of servers that were found to want a sign-in.
    """
    program = config.program
    file = _choose_file(config)
    moved, staying = list[Moved](), list[Staying]()
    servers = dict(_table(own.get("servers")))
    unsigned = frozenset(needs_sign_in)
    group = list(behind)
    own_edits = list[Edit]()
    for entry in config.servers:
        if is_ullage(entry):
            continue
        stays = _reason_to_stay(entry, scope, is_approved, unsigned)
        if stays is not None:
            staying.append(stays)
            continue
        table = server_table(entry)
        name, is_known = _choose_name(entry, table, servers)
        if not is_known:
            servers[name] = table
            own_edits.append(Put(("servers", name), table))
        group.append(name)
        moved.append(Moved(entry, name, is_known))
    # A second installation adds to the group: what it holds is no longer in the program's own files.
    before = _table(_table(own.get("groups")).get(program.name)).get("servers")
    known = [name for name in cast("list[object]", before) if isinstance(name, str)] if isinstance(before, list) else []
    own_edits.append(Put(("groups", program.name), {"servers": list(dict.fromkeys((*known, *group)))}))
    profile = _table(_table(own.get("clients")).get(program.name))
    if "groups" not in profile:
        own_edits.append(Put(("clients", program.name, "groups"), [program.name]))
    if model is not None and "model" not in profile:
        own_edits.append(Put(("clients", program.name, "model"), model))
    present = next((one for one in config.servers if one.scope == "user" and is_ullage(one)), None)
    if present is not None:
        file = next(one for one in config.files if one.path == present.file)
    entry_path = (*_servers_table(file), OWN_NAME) if present is None else present.path
    file_edits = dict[str, list[Edit]]()
    for one in moved:
        file_edits.setdefault(one.entry.file, []).append(Remove(one.entry.path))
    unasked = _unasked_tools(present, moved)
    file_edits.setdefault(file.path, []).append(
        Put(entry_path, program.make_entry(command[0], tuple(command[1:]), unasked))
    )
    allowed = _allowed_tools(config, entry_path[-1], unasked)
    if allowed is not None:
        file_edits.setdefault(allowed[0].path, []).append(allowed[1])
    return InstallPlan(
        program=program,
        file=file,
        entry_path=entry_path,
        moved=tuple(moved),
        staying=tuple(staying),
        own_edits=tuple(own_edits),
        file_edits={path: tuple(edits) for path, edits in file_edits.items()},
        formats={one.path: one for one in (*config.candidates, *config.files, file)},
    )


def _unasked_tools(present: ServerEntry | None, moved: Sequence[Moved]) -> tuple[str, ...]:
    """Ullage's tools that the program may run without asking. Those that call others are among them where no server
    that is behind it was asked for; what is to be asked for some tools only, Ullage asks itself."""
    before = () if present is None else present.rules.allow
    is_free = bool(moved) or "*" in before or "call_tool_write" in before
    is_free = is_free and all("*" in one.entry.rules.allow for one in moved)
    is_free = is_free and (present is None or "*" in before or "call_tool_write" in before)
    return (*UNASKED_TOOLS, *CALLING_TOOLS) if is_free else UNASKED_TOOLS


def _allowed_tools(config: ClientConfig, server: str, unasked: Sequence[str]) -> tuple[ConfigFile, Put] | None:
    """The edit of a program's own list of tools that run without asking; None where its entry of a server says so, or
    where the list has them or cannot be read."""
    path = config.program.allowed_tools
    file = next((one for one in config.candidates if one.scope == "user" and not one.tables), None)
    if path is None or file is None or any(one.file == file.path for one in config.problems):
        return None
    listed = value_at(config.documents.get(file.path), path)
    if listed is not None and not isinstance(listed, list):
        return None
    known = cast("list[object]", listed or [])
    added = [f"mcp__{server}__{tool}" for tool in unasked if f"mcp__{server}__{tool}" not in known]
    return (file, Put(path, [*known, *added])) if added else None


def plan_uninstall(program: str, own: Mapping[str, object], added: Iterable[KeyPath]) -> tuple[Edit, ...]:
    """The edits of the user's `ullage.toml` that take a program out again.

    Args:
        program: its name.
        own: the user's file as it is now, parsed.
        added: what the installation added to it. A server of these stays where another group has it too.
    """
    groups = {name: _table(group).get("servers") for name, group in _table(own.get("groups")).items()}
    elsewhere = {
        server
        for name, listed in groups.items()
        if name != program and isinstance(listed, list)
        for server in cast("list[object]", listed)
    }
    edits = list[Edit]()
    for path in added:
        if path[0] == "servers" and path[1] in elsewhere:
            continue
        edits.append(Remove(path))
    profile = _table(_table(own.get("clients")).get(program))
    left = {("clients", program, key) for key in profile} - set(added)
    if profile and not left:
        edits = [edit for edit in edits if edit.path[:2] != ("clients", program)]
        edits.append(Remove(("clients", program)))
    return tuple(edits)


def find_doubled(config: ClientConfig, behind: Iterable[Server]) -> tuple[ServerEntry, ...]:
    """The servers that a program lists itself although they are also behind Ullage, which it has as a server too.

    A server is the same where it starts or reaches the same thing, whatever it is called, and where it has the name
    under which Ullage serves one.

    Args:
        config: what the program has configured.
        behind: the servers behind Ullage for this program.
    """
    if ullage_entry(config) is None:
        return ()
    servers = tuple(behind)
    names = {server.name for server in servers}
    launches = {_launch_identity(one.command, one.arguments, one.url) for one in servers}
    return tuple(
        one
        for one in config.active_servers
        if not is_ullage(one)
        and (_clean(one.name) in names or _launch_identity(one.command, one.arguments, one.url) in launches)
    )


_Launch = tuple[str | None, tuple[str, ...], str | None]


def _launch_identity(command: str | None, arguments: Sequence[str], url: str | None) -> _Launch:
    """What an entry starts or reaches, without what makes no difference: folders and endings of the command, whether a
    package runner asks, and which version of the package it takes."""
    if url is not None:
        return None, (), url.split("#")[0].rstrip("/")
    words = [command or "", *arguments]
    if re.split(r"[/\\]", words[0])[-1].lower() in ("cmd", "cmd.exe") and words[1:2] in (["/c"], ["/C"]):
        words = words[2:]
    name = re.sub(r"\.(?:exe|cmd|bat)$", "", re.split(r"[/\\]", words[0])[-1] if words else "", flags=re.IGNORECASE)
    rest = words[1:]
    if name in _RUNNERS:
        rest = [re.sub(r"(?<=.)@[^/@]*$", "", word) for word in rest if word not in ("-y", "--yes", "-q", "--quiet")]
    return name, tuple(rest), None


def is_ullage(entry: ServerEntry) -> bool:
    """Whether an entry starts Ullage as a gateway."""
    words = (entry.command or "", *entry.arguments)
    return any(_ULLAGE.search(word) for word in words) and "serve" in words


def ullage_entry(config: ClientConfig) -> ServerEntry | None:
    """The entry with which a program starts Ullage; None where it has none.

    One in a project's file does not count: its flags name files to be read, and it may be anybody's.
    """
    entries = (one for one in config.servers if one.scope != "project" and not one.disabled and not one.faults)
    return next((one for one in entries if is_ullage(one)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeFlags:
    """The flags with which a program starts `ullage serve`, as far as they decide which servers it sees."""

    client: str | None = None
    config: str | None = None
    include: tuple[str, ...] = ()
    store: str | None = None

    def words(self) -> tuple[str, ...]:
        """As they are written, without the client."""
        included = [word for path in self.include for word in ("--include", path)]
        return (*included, *(("--store", self.store) if self.store else ()))


def serve_flags(entry: ServerEntry) -> ServeFlags:
    """The flags of an entry that starts Ullage."""
    found = dict[str, list[str]]()
    words = list(entry.arguments[entry.arguments.index("serve") + 1 :]) if "serve" in entry.arguments else []
    while words:
        name, equals, value = words.pop(0).partition("=")
        if name in ("--client", "--config", "--include", "--store"):
            found.setdefault(name, []).append(value if equals or not words else words.pop(0))

    def last(name: str) -> str | None:
        return found[name][-1] if name in found else None

    return ServeFlags(
        client=last("--client"),
        config=last("--config"),
        include=tuple(found.get("--include", ())),
        store=last("--store"),
    )


def server_table(entry: ServerEntry) -> dict[str, object]:
    """A server as a table of `ullage.toml`, with everything that its program said of it."""
    table: dict[str, object] = {}
    if entry.url is not None:
        table["url"] = entry.url
        if entry.transport == "sse":
            table["transport"] = "sse"
        if entry.headers:
            table["headers"] = dict(entry.headers)
    else:
        table["command"] = entry.command
        table["args"] = list(entry.arguments)
        if entry.directory is not None:
            # A folder in which a server is started. One that is relative begins at the folder to which
            # the entry belongs.
            directory = entry.directory
            folder = entry.folder
            is_whole = folder is None or re.match(r"[/\\~$]|[A-Za-z]:", directory) is not None
            table["cwd"] = directory if is_whole else f"{folder}/{directory}"
        if entry.environment:
            table["env"] = dict(entry.environment)
        if entry.inherited:
            table["inherit_env"] = list(entry.inherited)
    if entry.folder is not None:
        table["folders"] = [entry.folder]
    said = {
        "description": entry.description,
        "start_timeout": entry.start_timeout,
        "call_timeout": entry.call_timeout,
        **_rules_table(entry.rules),
    }
    return {**table, **{key: value for key, value in said.items() if value}}


def _rules_table(rules: ToolRules) -> dict[str, object]:
    """The rules in Ullage's patterns. Nothing is exempt from `deny`, which Ullage's `allow` would lift too."""
    deny, ask = [_pattern(one) for one in rules.deny], [_pattern(one) for one in rules.ask]
    exempt = [one for one in rules.exempt if ask and "*" not in one and not any(fnmatchcase(one, two) for two in deny)]
    found: dict[str, object] = {"allow": [_pattern(one) for one in exempt], "ask": ask, "deny": deny}
    if rules.only is not None:
        # An empty list means that no tool is wanted, which only `deny` can say.
        found |= {"only": [_pattern(one) for one in rules.only]} if rules.only else {"deny": ["*"], "allow": []}
    return found


def _pattern(name: str) -> str:
    """A name in which only a star is more than a letter."""
    return re.sub(r"[?\[]", r"[\g<0>]", name)


def _reason_to_stay(
    entry: ServerEntry, scope: MovedScope, is_approved: Callable[[str], bool], needs_sign_in: frozenset[str]
) -> Staying | None:
    """Why a server is not moved; None where it is."""
    is_users = entry.scope == "user"
    found: tuple[str, StayingKind] | None = None
    if entry.scope == "managed":
        found = "an administrator configured it", "managed"
    elif scope != "all" and is_users != (scope == "user"):
        found = ("it is for all folders" if is_users else f"it is for `{entry.folder}` only"), "scope"
    elif entry.scope == "project" and not is_approved(entry.file):
        found = "you have not approved this project file", "pending"
    elif entry.faults:
        found = entry.faults[0], "faulty"
    elif entry.disabled:
        found = "it is switched off", "disabled"
    elif entry.unresolved:
        found = f"it needs {entry.program} for {', '.join(entry.unresolved)}", "unresolved"
    elif entry.signs_in:
        found = f"{entry.program} signs in to it, which Ullage cannot do yet", "sign-in"
    elif entry.name in needs_sign_in:
        found = "it needs a sign-in, which Ullage cannot do yet", "sign-in"
    elif (fault := server_fault(_clean(entry.name), server_table(entry))) is not None:
        found = fault, "faulty"
    return None if found is None else Staying(entry, *found)


def _choose_name(entry: ServerEntry, table: Mapping[str, object], taken: Mapping[str, object]) -> tuple[str, bool]:
    """A name for the server, and whether the same server has it already."""
    base = _clean(entry.name)
    candidates = [base, f"{base}-{entry.program}", *(f"{base}-{entry.program}-{number}" for number in range(2, 1000))]
    for name in candidates:
        if name not in taken:
            return name, False
        if taken[name] == table:
            return name, True
    return candidates[-1], False


def _clean(name: str) -> str:
    return _BARE.sub("-", name).strip("-") or "server"


def _choose_file(config: ClientConfig) -> ConfigFile:
    """The user's file that the program writes new servers to: one that is there, or the first that may be."""
    there = [one for one in config.files if one.scope == "user" and one.tables]
    main = [one for one in there if one.is_main]
    if main:
        return main[0]
    return next(one for one in config.candidates if one.scope == "user" and one.is_main)


def _servers_table(file: ConfigFile) -> KeyPath:
    return next(path for path in file.tables if path[0] != "projects")


def _table(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}
