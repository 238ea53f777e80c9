"""Plans how Ullage is put in front of a program's servers, and how it is removed again.

`plan_install` compares a program's configuration with the user's own `ullage.toml` and returns the edits of both files,
with a reason for every server that stays where it is. `plan_uninstall` returns the edits of the user's file that remove
the program's group again. `find_doubled` finds servers that a program still lists beside Ullage. Plans read and write
nothing; the last functions find the user's files and apply a plan for `install`, `uninstall` and `scan`.
"""

import json
import re
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast

from ullage import __version__
from ullage.clients.configs import (
    PROGRAMS,
    ClientConfig,
    ConfigFile,
    Edit,
    EditRefused,
    FileChanged,
    KeyPath,
    Program,
    Put,
    Remove,
    ServerEntry,
    UndoFolder,
    apply_rules,
    current_surroundings,
    find_program,
    parse_config,
    read_bytes,
    read_client,
    value_at,
)
from ullage.config import Places, server_fault
from ullage.errors import BadConfiguration, InvalidArguments, Unavailable
from ullage.gateway import Server
from ullage.processes import find_executable

__all__ = [
    "OWN_NAME",
    "InstallPlan",
    "Moved",
    "MovedScope",
    "ServeFlags",
    "Staying",
    "StayingKind",
    "changing_files",
    "chosen_client",
    "find_doubled",
    "is_ullage",
    "own_settings",
    "plan_install",
    "plan_uninstall",
    "program_of",
    "serve_flags",
    "server_table",
    "ullage_command",
    "ullage_entry",
    "undo_folder",
]

OWN_NAME = "ullage"
"""The name of Ullage's entry in other programs' files."""
UNASKED_TOOLS = ("find_tool", "read_result")
"""Ullage's tools that only look things up; programs with an allow list run them without asking the user."""
CALLING_TOOLS = ("call_tool", "call_tool_write")
"""Ullage's tools that call a server's tool."""
_RUNNERS = ("npx", "uvx", "bunx", "pnpx", "pipx")
"""Programs that download the package named in their arguments and start it."""
_BARE = re.compile(r"[^A-Za-z0-9_.-]+")
_ULLAGE = re.compile(r"(?:^|[/\\])ullage(?:\.exe)?(?:@.*)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Moved:
    """A server that moves behind Ullage."""

    entry: ServerEntry
    name: str
    """Its name in the user's `ullage.toml`."""
    is_known: bool = False
    """Whether the user's file already has the same server."""


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
    """The file that gets Ullage's entry."""
    entry_path: KeyPath
    moved: tuple[Moved, ...] = ()
    staying: tuple[Staying, ...] = ()
    own_edits: tuple[Edit, ...] = field(default=(), repr=False)
    """Edits of the user's `ullage.toml`."""
    file_edits: Mapping[str, tuple[Edit, ...]] = field(default_factory=dict[str, tuple[Edit, ...]], repr=False)
    """Edits of the program's files, by path."""
    formats: Mapping[str, ConfigFile] = field(default_factory=dict[str, ConfigFile])
    shut_out: str | None = None
    """Why the program would not start Ullage, or not show its tools."""

    def added_to_own(self) -> tuple[KeyPath, ...]:
        """The tables that are added to the user's file."""
        return tuple(edit.path for edit in self.own_edits if isinstance(edit, Put))


def plan_install(  # noqa: PLR0913 - the last three select what is moved
    config: ClientConfig,
    own: Mapping[str, object],
    command: Sequence[str],
    *,
    model: str | None = None,
    scope: MovedScope = "user",
    is_approved: Callable[[str], bool] = lambda path: False,
    behind: Iterable[str] = (),
    needs_sign_in: Iterable[str] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> InstallPlan:
    """Plan how to put Ullage in front of a program's servers.

    A server of one folder stays limited to that folder. Ullage's entry always goes to the user's file: its command is
    specific to this machine, and a project's file may be shared.

    Args:
        config: the program's configuration.
        own: the user's `ullage.toml`, parsed.
        command: the words that start Ullage as a server.
        model: the program's model under a name that Ullage knows; None where there is none.
        scope: which servers are moved.
        is_approved: whether the user has approved a project's file as it is. Servers of other project files stay.
        behind: names of the servers that are already behind Ullage for this program. They stay there.
        needs_sign_in: the program's names of servers that were found to require a sign-in.
        environment: the variables that are set.
    """
    program = config.program
    there = [one for one in config.files if one.scope == "user" and one.tables]
    main = [one for one in there if one.is_main]
    file = main[0] if main else next(one for one in config.candidates if one.scope == "user" and one.is_main)
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
    # A second installation adds to the group: its present members are no longer in the program's own files.
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
    entry_path = (
        (*next(path for path in file.tables if path[0] != "projects"), OWN_NAME) if present is None else present.path
    )
    file_edits = dict[str, list[Edit]]()
    for one in moved:
        file_edits.setdefault(one.entry.file, []).append(Remove(one.entry.path))
    unasked = _unasked_tools(present, moved)
    own_entry = _own_entry(program, present, command, unasked)
    names = _needed_variables([_table(servers.get(name)) for name in dict.fromkeys((*known, *group))], environment)
    _give_variables(own_entry, program, names, environment)
    file_edits.setdefault(file.path, []).append(Put(entry_path, own_entry))
    admitting, shut_out = _admit(config, file, entry_path, command)
    for path, edit in (*_allowed_tools(config, entry_path[-1], unasked), *admitting):
        file_edits.setdefault(path, []).append(edit)
    return InstallPlan(
        program=program,
        file=file,
        entry_path=entry_path,
        moved=tuple(moved),
        staying=tuple(staying),
        own_edits=tuple(own_edits),
        file_edits={path: tuple(edits) for path, edits in file_edits.items()},
        formats={one.path: one for one in (*config.candidates, *config.files, file)},
        shut_out=shut_out,
    )


_OWN_FOLDERS = (("XDG_CONFIG_HOME", ".config"), ("XDG_DATA_HOME", ".local/share"), ("XDG_STATE_HOME", ".local/state"))
"""Variables that move Ullage's own files, and the folder below the home folder without them."""
_NETWORK = (
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
)  # fmt: skip
"""Variables that servers and Ullage need to reach a network, where they are set."""
_REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(:-[^}]*)?\}", re.ASCII)


def _own_entry(
    program: Program, present: ServerEntry | None, command: Sequence[str], unasked: tuple[str, ...]
) -> dict[str, object]:
    """Return Ullage's entry. What the user added to the present one stays."""
    table = program.make_entry(command[0], tuple(command[1:]), unasked)
    given = program.make_entry(command[0], tuple(command[1:]), (*UNASKED_TOOLS, *CALLING_TOOLS))
    flags = (program.keys.disabled, program.keys.enabled, program.keys.environment)
    before: Mapping[str, object] = {} if present is None else _table(present.raw)
    table |= {key: value for key, value in before.items() if key not in given and key not in flags}
    set_there = _table(before.get(program.keys.environment))
    return {**table, program.keys.environment: dict(set_there)} if set_there else table


def _needed_variables(tables: Iterable[Mapping[str, object]], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables that these servers name, and those for the network that are set."""
    found = dict[str, None]()
    for table in tables:
        listed = table.get("inherit_env")
        for name in cast("list[object]", listed) if isinstance(listed, list) else []:
            found |= {name: None} if isinstance(name, str) and "*" not in name else {}
        for match in _REFERENCE.finditer(json.dumps(table)):
            # A default serves where the variable is not set, but not where it is set to nothing.
            found |= {match[1]: None} if match[2] is None or match[1] in environment else {}
    return (*found, *(name for name in _NETWORK if name in environment and name not in found))


def _give_variables(
    table: dict[str, object], program: Program, names: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Add to Ullage's entry what its own start and its servers need of the environment, as far as the program may
    withhold it."""
    key = program.keys.environment
    home = environment.get("HOME", "")
    folders = {
        name: value
        for name, usual in _OWN_FOLDERS
        if (value := environment.get(name, "")) and value != f"{home}/{usual}" and not re.search(r"[${}]", value)
    }
    for part, given in {key: folders, **program.pass_on(names)}.items():
        there = table.get(part)
        if isinstance(given, dict) and (given or folders):
            table[part] = {**cast("dict[str, object]", given), **_table(there), **folders}
        elif isinstance(given, list) and given:
            listed = cast("list[object]", there) if isinstance(there, list) else []
            table[part] = [*listed, *(one for one in cast("list[object]", given) if one not in listed)]


def _admit(
    config: ClientConfig, file: ConfigFile, path: KeyPath, command: Sequence[str]
) -> tuple[list[tuple[str, Put]], str | None]:
    """Return the edits that add Ullage to the user's own lists of the only servers, and why the program would still not
    start it or not show its tools."""
    program, name = config.program, path[-1]
    edits = list[tuple[str, Put]]()
    rules = list(config.rules)
    for one in config.files:
        for place in program.allowed_servers:
            listed = value_at(config.documents.get(one.path), place)
            if not isinstance(listed, list) or name in cast("list[object]", listed):
                continue
            if one.scope != "user":
                return [], f"`{'.'.join(place)}` in `{one.path}` leaves it out"
            edits.append((one.path, Put(place, [*cast("list[object]", listed), name])))
    if edits:
        rules = [replace(one, on=None) for one in rules]
    entry = ServerEntry(
        name=name,
        program=program.name,
        file=file.path,
        path=path,
        scope="user",
        command=command[0],
        arguments=tuple(command[1:]),
    )
    entry = apply_rules(entry, rules, program.prefixes(name), program.wholes(name))
    if entry.disabled:
        return [], "a list of servers that it may start leaves Ullage out, or one that it may not start names it"
    deny, only = entry.rules.deny, entry.rules.only
    hidden = [
        tool
        for tool in UNASKED_TOOLS + CALLING_TOOLS[:1]
        if any(fnmatchcase(tool, one) for one in deny)
        or (only is not None and not any(fnmatchcase(tool, one) for one in only))
    ]
    return edits, f"its rules leave out Ullage's tools ({', '.join(hidden)})" if hidden else None


def _unasked_tools(present: ServerEntry | None, moved: Sequence[Moved]) -> tuple[str, ...]:
    """Return Ullage's tools that the program may run without asking the user.

    The calling tools are included only if the program runs every tool of the servers behind Ullage without asking.
    Where only some tools need a question, Ullage itself asks.
    """
    before = () if present is None else present.rules.allow
    is_free = bool(moved) or "*" in before or "call_tool_write" in before
    is_free = is_free and all("*" in one.entry.rules.allow for one in moved)
    is_free = is_free and (present is None or "*" in before or "call_tool_write" in before)
    return (*UNASKED_TOOLS, *CALLING_TOOLS) if is_free else UNASKED_TOOLS


def _allowed_tools(config: ClientConfig, server: str, unasked: Sequence[str]) -> list[tuple[str, Put]]:
    """Return the edit of a program's own list of tools that run without asking, with the path of its file.

    Empty if the program stores this in its server entries, or if the list already has the tools or cannot be read.
    """
    path = config.program.allowed_tools
    file = next((one for one in config.candidates if one.scope == "user" and not one.tables), None)
    if path is None or file is None or any(one.file == file.path for one in config.problems):
        return []
    listed = value_at(config.documents.get(file.path), path)
    if listed is not None and not isinstance(listed, list):
        return []
    known = cast("list[object]", listed or [])
    added = [f"mcp__{server}__{tool}" for tool in unasked if f"mcp__{server}__{tool}" not in known]
    return [(file.path, Put(path, [*known, *added]))] if added else []


def plan_uninstall(program: str, own: Mapping[str, object], added: Iterable[KeyPath]) -> tuple[Edit, ...]:
    """Plan the edits of the user's `ullage.toml` that remove a program again.

    Args:
        program: its name.
        own: the user's current file, parsed.
        added: what the installation added to it. A server among these stays if another group uses it too.
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
    """Return the servers that a program lists although they are also behind Ullage, which it lists as well.

    Two servers are the same if they start or reach the same thing, under any name, or if one has the name under which
    Ullage serves the other.

    Args:
        config: the program's configuration.
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


_USUAL_TIMEOUTS = {one.name: one.default for one in fields(Server) if one.name in ("start_timeout", "call_timeout")}
"""Seconds that apply where an entry names none."""

_Launch = tuple[str | None, tuple[str, ...], str | None]


def _launch_identity(command: str | None, arguments: Sequence[str], url: str | None) -> _Launch:
    """Return what an entry starts or reaches, without irrelevant differences.

    These are folder and file extension of the command, whether a package runner asks before it downloads, and the
    version of the package.
    """
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
    """Return whether an entry starts Ullage as a gateway."""
    words = (entry.command or "", *entry.arguments)
    return any(_ULLAGE.search(word) for word in words) and "serve" in words


def ullage_entry(config: ClientConfig) -> ServerEntry | None:
    """Return the entry with which a program starts Ullage; None where it has none.

    One in a project's file does not count: its flags name files to be read, and the file may come from anyone.
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
        """The flags as command-line words, without the client."""
        included = [word for path in self.include for word in ("--include", path)]
        return (*included, *(("--store", self.store) if self.store else ()))


def serve_flags(entry: ServerEntry) -> ServeFlags:
    """Parse the flags of an entry that starts Ullage."""
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
    """Convert a server to a table of `ullage.toml`, with everything that its program configured."""
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
            # The folder in which a server is started. A relative one is resolved against the folder to which
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
    rules = entry.rules
    # An exemption that `deny` matches is dropped, as Ullage's `allow` overrides `deny`.
    deny, ask = [_pattern(one) for one in rules.deny], [_pattern(one) for one in rules.ask]
    exempt = [one for one in rules.exempt if ask and "*" not in one and not any(fnmatchcase(one, two) for two in deny)]
    found: dict[str, object] = {"allow": [_pattern(one) for one in exempt], "ask": ask, "deny": deny}
    if rules.only is not None:
        # An empty list means that no tool is wanted, which only `deny` can express.
        found |= {"only": [_pattern(one) for one in rules.only]} if rules.only else {"deny": ["*"], "allow": []}
    said = {
        "description": entry.description,
        "start_timeout": entry.start_timeout,
        "call_timeout": entry.call_timeout,
        **found,
    }
    return {**table, **{key: value for key, value in said.items() if value}}


def _pattern(name: str) -> str:
    """Escape a name so that only a star is a wildcard."""
    return re.sub(r"[?\[]", r"[\g<0>]", name)


def _reason_to_stay(
    entry: ServerEntry, scope: MovedScope, is_approved: Callable[[str], bool], needs_sign_in: frozenset[str]
) -> Staying | None:
    """Return why a server is not moved; None where it is moved."""
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
        found = f"it needs {PROGRAMS[entry.program].title} for {', '.join(entry.unresolved)}", "unresolved"
    elif entry.signs_in:
        found = f"{PROGRAMS[entry.program].title} signs in to it, which Ullage cannot do yet", "sign-in"
    elif entry.name in needs_sign_in:
        found = "it needs a sign-in, which Ullage cannot do yet", "sign-in"
    elif (fault := server_fault(_clean(entry.name), server_table(entry))) is not None:
        found = fault, "faulty"
    return None if found is None else Staying(entry, *found)


def _choose_name(entry: ServerEntry, table: Mapping[str, object], taken: Mapping[str, object]) -> tuple[str, bool]:
    """Return a name for the server, and whether the same server already has it."""
    base = _clean(entry.name)
    candidates = [base, f"{base}-{entry.program}", *(f"{base}-{entry.program}-{number}" for number in range(2, 1000))]
    for name in candidates:
        if name not in taken:
            return name, False
        if _is_covered(table, _table(taken[name])):
            return name, True
    return candidates[-1], False


def _is_covered(wanted: Mapping[str, object], there: Mapping[str, object]) -> bool:
    """Return whether a server of the user's file is the wanted one, and waits for it at least as long."""
    for key, usual in _USUAL_TIMEOUTS.items():
        long, short = there.get(key, usual), wanted.get(key, usual)
        if not isinstance(long, int | float) or not isinstance(short, int | float) or long < short:
            return False
    return _without_timeouts(wanted) == _without_timeouts(there)


def _without_timeouts(table: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in table.items() if key not in _USUAL_TIMEOUTS}


def _clean(name: str) -> str:
    return _BARE.sub("-", name).strip("-") or "server"


def _table(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def program_of(name: str) -> Program:
    """Return the program of that name.

    Raises:
        InvalidArguments: There is none.
    """
    found = find_program(name)
    if found is None:
        raise InvalidArguments(
            f"no program is called `{name}`", suggestion="choose one of these", options=tuple(PROGRAMS)
        )
    return found


def chosen_client(name: str) -> ClientConfig:
    """Return the configuration of a program, as seen from the working folder."""
    return read_client(program_of(name), current_surroundings())


def undo_folder(places: Places) -> UndoFolder:
    """Return the folder with the records of changes to other programs' files."""
    return UndoFolder((places.state or places.data / "state") / "installs")


def own_settings(places: Places) -> tuple[bytes | None, dict[str, object]]:
    """Return the user's `ullage.toml`, as bytes and parsed.

    Raises:
        BadConfiguration: The file cannot be read.
    """
    path = str(places.user_file)
    try:
        content = read_bytes(path)
        document = parse_config(content or b"", ConfigFile(path=path, scope="user", format="toml"))
    except (OSError, ValueError) as error:
        raise BadConfiguration(
            f"`{path}` {error}", suggestion="fix the file first; `ullage doctor` shows details"
        ) from error
    return content, document


def ullage_command() -> tuple[str, ...]:
    """Return the words that start this Ullage from anywhere: graphical programs do not have a shell's search path."""
    beside = Path(sys.executable).with_name("ullage.exe" if sys.platform == "win32" else "ullage")
    uvx = find_executable("uvx")
    is_passing = any(part in ("archive-v0", "builds-v0") for part in beside.parts)
    if is_passing and uvx is not None:
        # Run by `uvx` from its cache, which may be cleaned up later.
        return str(Path(uvx).absolute()), f"ullage@{__version__}"
    if beside.is_file():
        return (str(beside),)
    # `-P`: the program runs this in any folder, and modules there are not to be imported.
    return sys.executable, "-P", "-m", "ullage"


@contextmanager
def changing_files() -> Generator[None]:
    """Convert errors of file operations to errors for display."""
    try:
        yield
    except FileChanged as error:
        raise Unavailable(str(error), suggestion="nothing was changed; run this again") from error
    except EditRefused as error:
        raise BadConfiguration(
            str(error), suggestion="nothing was changed; correct the file and run this again"
        ) from error
    except OSError as error:
        where = f"`{error.filename}` " if error.filename else ""
        raise Unavailable(
            f"{where}cannot be written: {error.strerror or error}", suggestion="nothing was changed"
        ) from error
