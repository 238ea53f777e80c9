"""Cache of the first answers on standard input and output, in files of the user's own.

An entry has the answers to `initialize`, `server/discover` and `tools/list`, and everything that decided them: the
package, the stamps of all settings files, a digest of the variables that settings name, the revision of the catalogue.
It is used only while all of that is unchanged. A file name is derived from what is known before an entry is read:
flags, client, Ullage's own variables and the project files in the working folder and above it. The working folder
itself is not part of it, so that all folders without project files share their answers.

No value of a variable or flag is written, only digests keyed with a random key that is stored beside the entries. The
same key authenticates entries. Nothing is read from a folder or file that another user owns or may read or write, nor
from a folder inside the project.

Only light modules of the standard library are imported here, because this runs before the first answer.
"""

import json
import os
import stat
import sys

try:
    from _blake2 import blake2b
except ImportError:  # pragma: no cover - an interpreter that is built without it
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

__all__ = [
    "Entry",
    "Situation",
    "cache_folder",
    "catalogue_token",
    "digest_of_tools",
    "drop_entries",
    "file_stamp",
    "package_stamp",
    "project_walk",
    "read_entry",
    "relevant_parts",
    "renew_catalogue",
    "write_entry",
]

FORMAT = 1
PROJECT_FILE = "ullage.toml"
POLICY_FILES = ("models.json", "policies.json")

_LARGEST = 16 * 1024 * 1024
"""Maximum bytes of an entry. A direct list of a thousand large tools has about two million."""
_LARGEST_CLIENT_FILE = 4 * 1024 * 1024
"""Maximum bytes of another program's file that is parsed before the first answer, if its stamp has changed."""
_MOST_ENTRIES = 64
_KEY_BYTES = 32
_OWN_VARIABLES = ("ULLAGE_", "ORCH_")
_NOT_SETTINGS = ("ULLAGE_OWNER", "ULLAGE_DEPTH")
"""Marks on processes that Ullage started. They do not affect lists."""
_PLACES = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
_PARTS = (
    "mcpServers",
    "servers",
    "mcp",
    "allowMCPServers",
    "excludeMCPServers",
    "permissions",
    "disabledMcpjsonServers",
    "context_servers",
    "permission",
    "tools",
    "excludeTools",
    "agent",
)
_PROJECT_PARTS = ("mcpServers", "disabledMcpServers", "disabledMcpjsonServers")


class Situation:
    """The facts about a process's start that affect the first answers."""

    __slots__ = ("client", "environment", "flags", "folder", "folders", "home")

    def __init__(
        self,
        flags: "Mapping[str, Any]",
        environment: "Mapping[str, str]",
        folder: str,
        client: "str | None" = None,
    ) -> None:
        """Args:
        flags: `config`, `include`, `store`, `model`, `mode` and `sample` as given on the command line, and the
            `client_rules` of the client's.
        environment: the process's variables.
        folder: the working folder, absolute.
        client: the value of `--client`.
        """
        self.environment = environment
        self.folder = folder
        self.home = os.path.expanduser("~")
        self.folders = project_walk(folder, self.home)
        self.client = client
        self.flags = [
            _absolute(flags.get("config"), folder),
            [_absolute(one, folder) for one in flags.get("include") or ()],
            flags.get("store"),
            flags.get("model"),
            flags.get("mode"),
            bool(flags.get("sample")),
        ]
        if flags.get("client_rules"):
            self.flags.append(flags["client_rules"])

    def for_client(self, client: "str | None") -> "Situation":
        """Return the same situation with another `--client`."""
        other = object.__new__(Situation)
        other.environment, other.folder, other.home = self.environment, self.folder, self.home
        other.folders, other.flags, other.client = self.folders, self.flags, client
        return other

    def slot(self, key: bytes) -> str:
        """Return the name of the entry's file."""
        said = {
            name: value
            for name, value in self.environment.items()
            if name in _PLACES or (name.startswith(_OWN_VARIABLES) and name not in _NOT_SETTINGS)
        }
        said["ULLAGE_CONFIG"] = _absolute(said.get("ULLAGE_CONFIG") or None, self.folder) or ""
        package = os.path.dirname(os.path.abspath(__file__))
        parts = [FORMAT, package, sys.hexversion, self.flags, self.client, sorted(said.items()), self.project_files()]
        return f"{digest(key, parts)}.entry"

    def project_files(self) -> "list[str]":
        """Return the settings files in the working folder and above it, innermost first."""
        found: list[str] = []
        for folder in self.folders:
            path = f"{folder.rstrip('/')}/{PROJECT_FILE}"
            is_there = os.path.lexists(path)
            if is_there:
                found.append(path)
            if is_there or folder == self.folder:
                policies = [f"{folder.rstrip('/')}/conf/{name}" for name in POLICY_FILES]
                found.extend(path for path in policies if os.path.lexists(path))
        return found

    def project_places(self) -> "set[str]":
        """Return where project files are looked for, whether or not there are any."""
        names = (PROJECT_FILE, *(f"conf/{name}" for name in POLICY_FILES))
        return {f"{folder.rstrip('/')}/{name}" for folder in self.folders for name in names}

    def place(self, path: str) -> "list[bool]":
        """Return whether a file is in the project, and whether it is in a repository.

        Both decide whether the user has to approve it.
        """
        holds_home = _is_below(self.home, self.folder) and self.folder != self.home
        roots = [] if holds_home else [self.folder, self.folders[-1]]
        roots = [*roots, *(os.path.realpath(root) for root in roots)]
        return [self._is_inside(path, roots), self._is_in_repository(path)]

    def _is_inside(self, path: str, roots: "list[str]") -> bool:
        hidden = f"{self.home.rstrip('/')}/."
        for candidate in {path, os.path.realpath(path)}:
            for root in roots:
                is_users = candidate.startswith(hidden) and _is_below(self.home, root)
                if _is_below(candidate, root) and not is_users:
                    return True
        return False

    def _is_in_repository(self, path: str) -> bool:
        for candidate in {path, os.path.realpath(path)}:
            folder = os.path.dirname(candidate)
            while folder not in (self.home, os.path.dirname(folder)):
                if os.path.lexists(f"{folder}/.git"):
                    return True
                folder = os.path.dirname(folder)
        return False

    def is_inside_project(self, path: str) -> bool:
        """Return whether a folder is writable by others who work on the project."""
        real = os.path.realpath(path)
        roots = [root for root in {self.folder, self.folders[-1]} if not _is_below(self.home, root)]
        return any(_is_below(real, os.path.realpath(root)) for root in roots)


class Entry:
    """The first answers for one situation, as read from the cache."""

    __slots__ = ("header", "tools", "tools_modern")

    def __init__(self, header: "dict[str, Any]", tools: bytes, tools_modern: bytes) -> None:
        """Args:
        header: what the answers depend on (`facts`) and the small answers (`answers`).
        tools: the array of tools as it is sent to clients of the handshake era, JSON.
        tools_modern: the same for clients of 2026-07-28.
        """
        self.header = header
        self.tools = tools
        self.tools_modern = tools_modern

    @property
    def answers(self) -> "dict[str, Any]":
        return self.header["answers"]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and all(getattr(self, one) == getattr(other, one) for one in self.__slots__)

    __hash__ = None  # pyright: ignore[reportAssignmentType]


# -- Where


def cache_folder(environment: "Mapping[str, str]") -> "str | None":
    """Return the folder of the entries; None where this platform or environment has no reliable one."""
    if sys.platform == "win32":
        return None
    state = environment.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):
        home = environment.get("HOME", "")
        if not home.startswith("/"):
            return None
        below = "Library/Application Support" if sys.platform == "darwin" else ".local/state"
        state = f"{home}/{below}"
    return f"{state}/ullage/start"


def project_walk(folder: str, home: str) -> "list[str]":
    """Return the working folder and the parents that belong to the same project, innermost first."""
    found, here = [folder], folder
    while True:
        if here == home or os.path.exists(f"{here.rstrip('/')}/.git"):
            return found
        above = os.path.dirname(here)
        if above == here:
            return [folder]
        here = above
        found.append(here)


# -- Facts


def file_stamp(path: str) -> "list[int] | None":
    """Return time of modification, time of change, size and inode; None where there is no such file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return [found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino]


def package_stamp() -> "list[Any]":
    """Return a stamp that changes with every installation of this package, and of any other beside it."""
    package = os.path.dirname(os.path.abspath(__file__))
    files = [file_stamp(os.path.join(package, name)) for name in ("__init__.py", "start_cache.py")]
    beside = file_stamp(os.path.dirname(package)) or [0]
    return [*files, beside[0]]


def relevant_parts(document: object, folders: "Sequence[str]") -> "dict[str, Any]":
    """Return what of another program's JSON file affects servers.

    This is its tables of servers and permissions, and those of its entries for these folders. Such files also contain
    histories and counters, which change all the time.
    """
    whole = as_table(document)
    found: dict[str, Any] = {part: whole[part] for part in _PARTS if part in whole}
    if "projects" in whole:
        projects = as_table(whole["projects"])
        chosen = {folder: _parts_of_project(projects.get(folder)) for folder in folders}
        found["projects"] = {folder: parts for folder, parts in chosen.items() if parts}
    return found


def _parts_of_project(entry: object) -> "dict[str, Any]":
    table = as_table(entry)
    return {part: table[part] for part in _PROJECT_PARTS if table.get(part)}


def relevant_folders(document: object) -> "list[str]":
    """Return the folders for which another program's file has entries of their own that affect servers."""
    projects = as_table(as_table(document).get("projects"))
    return [folder for folder, entry in projects.items() if _parts_of_project(entry)]


def make_facts(  # noqa: PLR0913 - each is one thing that answers depend on
    situation: Situation,
    key: bytes,
    *,
    version: str,
    stamps: "Mapping[str, list[int] | None]",
    judged: "Collection[str]",
    variables: "Sequence[str]",
    client_files: "Mapping[str, tuple[str, Sequence[str]]]",
    is_bound_to_folder: bool,
    clients: "Sequence[str]",
    catalogue: "tuple[str, str]",
) -> "dict[str, Any]":
    """Return what an entry depends on.

    Args:
        situation: of this process.
        key: of the cache.
        version: of Ullage.
        stamps: every settings file and approval that was read or looked for, as it was just before.
        judged: those among them that may belong to a project, depending on their folder.
        variables: names of the variables that were looked up.
        client_files: for other programs' JSON files, their relevant parts as text, and the folders that they have
        entries
            for.
        is_bound_to_folder: whether the settings name the working folder.
        clients: the profiles of the settings.
        catalogue: the digest of the store's URL, and the revision of its catalogue before the answers were made.
    """
    looked_for = situation.project_places()
    files = {path: stamp for path, stamp in stamps.items() if stamp is not None or path not in looked_for}
    names = sorted(set(variables))
    return {
        "version": version,
        "package": package_stamp(),
        "files": files,
        "placement": [[path, *situation.place(path)] for path in files if path in judged],
        "parts": {
            path: [digest(key, text), list(folders), [one for one in situation.folders if one in folders]]
            for path, (text, folders) in client_files.items()
        },
        "variables": names,
        "values": _values_digest(key, names, situation.environment),
        "folder": situation.folder if is_bound_to_folder else None,
        "clients": sorted(clients),
        "catalogue": catalogue[0],
        "revision": catalogue[1],
    }


def _are_facts(facts: "dict[str, Any]", situation: Situation, key: bytes, folder: str, version: str) -> bool:
    """Return whether everything is unchanged since an entry was written."""
    files: dict[str, Any] = facts["files"]
    return (
        facts["version"] == version
        and facts["package"] == package_stamp()
        and facts["folder"] in (None, situation.folder)
        and facts["values"] == _values_digest(key, facts["variables"], situation.environment)
        and facts["revision"] == catalogue_token(folder, facts["catalogue"])
        and all(_is_same_file(path, stamp, facts, situation, key) for path, stamp in files.items())
        and all(situation.place(path) == place for path, *place in facts["placement"])
    )


def _is_same_file(
    path: str, stamp: "list[int] | None", facts: "dict[str, Any]", situation: Situation, key: bytes
) -> bool:
    """Return whether a file is unchanged, or for another program's file its relevant parts are."""
    known = facts["parts"].get(path)
    if file_stamp(path) == stamp:
        return known is None or known[2] == [one for one in situation.folders if one in known[1]]
    if known is None:
        return False
    try:
        content = _read_file(path, _LARGEST_CLIENT_FILE)
        document = json.loads(content)
    except (OSError, ValueError, RecursionError):
        return False
    return known[0] == digest(key, parts_text(document, situation.folders))


def parts_text(document: object, folders: "Sequence[str]") -> str:
    """Return the relevant parts of another program's file as one text, for comparison."""
    return json.dumps(relevant_parts(document, folders), sort_keys=True)


def _values_digest(key: bytes, names: "Sequence[str]", environment: "Mapping[str, str]") -> str:
    return digest(key, [[name, environment.get(name)] for name in names])


# -- Reading


def read_key(folder: str) -> "bytes | None":
    """Return the key of a cache; None where there is no cache that can be trusted."""
    try:
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or not _is_private(found):
            return None
        key = _read_private(f"{folder}/key", _KEY_BYTES)
    except OSError:
        return None
    return key if len(key) == _KEY_BYTES else None


def read_entry(situation: Situation, *, version: str) -> "Entry | None":
    """Return the entry for a situation, if everything is unchanged since it was written."""
    folder = cache_folder(situation.environment)
    if folder is None or situation.is_inside_project(folder):
        return None
    key = read_key(folder)
    if key is None:
        return None
    # A client without a profile gets the same as a client without a name.
    for client in dict.fromkeys((situation.client, None)):
        entry = load_entry(folder, situation.for_client(client), key)
        if entry is not None:
            facts = entry.header["facts"]
            has_own = client is None and situation.client in facts["clients"]
            if not has_own and _are_facts(facts, situation, key, folder, version):
                return entry
    return None


def load_entry(folder: str, situation: Situation, key: bytes) -> "Entry | None":
    """Return the stored entry for a situation, even if it is outdated."""
    try:
        content = _read_private(f"{folder}/{situation.slot(key)}", _LARGEST)
    except OSError:
        return None
    mark, _, rest = content.partition(b"\n")
    if mark != _authenticate(key, rest):
        return None
    header, _, rest = rest.partition(b"\n")
    tools, _, modern = rest.partition(b"\n")
    try:
        said = json.loads(header)
    except (ValueError, RecursionError):
        return None
    return Entry(said, tools, modern or tools)


def catalogue_token(folder: str, catalogue: str) -> str:
    """Return the revision of the catalogue in a store, as known on this machine; empty if it never changed."""
    try:
        return _read_private(f"{folder}/{catalogue}.revision", 64).decode("ascii", "replace")
    except OSError:
        return ""


# -- Writing


def write_entry(situation: Situation, entry: Entry, *, key: bytes, folder: str) -> None:
    """Write an entry, atomically.

    Raises:
        OSError: it cannot be written.
    """
    header = json.dumps(entry.header, separators=(",", ":")).encode()
    modern = b"" if entry.tools_modern == entry.tools else entry.tools_modern
    rest = b"\n".join((header, entry.tools, modern))
    _replace(folder, situation.slot(key), _authenticate(key, rest) + b"\n" + rest)
    _remove_oldest(folder)


def make_folder(environment: "Mapping[str, str]") -> "tuple[str, bytes] | None":
    """Return the cache's folder and key, created if missing; None where there can be no cache that can be trusted."""
    folder = cache_folder(environment)
    if folder is None:
        return None
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        if read_key(folder) is None and not os.path.lexists(f"{folder}/key") and _is_private(os.lstat(folder)):
            # Two processes may do this at the same time: the first key stays.
            name = _write_aside(folder, os.urandom(_KEY_BYTES))
            try:
                os.link(name, f"{folder}/key")
            except FileExistsError:
                pass
            finally:
                os.unlink(name)
    except OSError:
        return None
    key = read_key(folder)
    return None if key is None else (folder, key)


def renew_catalogue(environment: "Mapping[str, str]", store: str) -> None:
    """Invalidate every entry that was made from an earlier catalogue in this store."""
    made = make_folder(environment)
    if made is not None:
        folder, key = made
        try:
            _replace(folder, f"{digest(key, store)}.revision", os.urandom(16).hex().encode())
        except OSError:
            drop_entries(environment)


def drop_entries(environment: "Mapping[str, str]") -> None:
    """Delete every entry."""
    folder = cache_folder(environment)
    if folder is None:
        return
    try:
        for name in os.listdir(folder):
            if name.endswith(".entry"):
                os.unlink(f"{folder}/{name}")
    except OSError:
        pass


def _remove_oldest(folder: str) -> None:
    found: list[tuple[int, str]] = []
    with os.scandir(folder) as files:
        for file in files:
            if file.name.endswith((".entry", ".tmp")):
                try:
                    found.append((file.stat(follow_symlinks=False).st_mtime_ns, file.path))
                except OSError:
                    continue
    for _, path in sorted(found)[:-_MOST_ENTRIES]:
        try:
            os.unlink(path)
        except OSError:
            continue


def _replace(folder: str, name: str, content: bytes) -> None:
    aside = _write_aside(folder, content)
    try:
        os.replace(aside, f"{folder}/{name}")
    except BaseException:
        os.unlink(aside)
        raise


def _write_aside(folder: str, content: bytes) -> str:
    path = f"{folder}/{os.getpid()}-{os.urandom(8).hex()}.tmp"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except BaseException:
        os.unlink(path)
        raise
    finally:
        os.close(descriptor)
    return path


# -- Parts


def digest(key: bytes, value: object) -> str:
    """Return a keyed digest of a JSON value."""
    return blake2b(json.dumps(value).encode(), key=key, digest_size=20).hexdigest()


def digest_of_tools(tools: "Sequence[Any]") -> str:
    """Return a digest that differs for different lists of tools, as they are sent."""
    text = json.dumps(tools, separators=(",", ":"), ensure_ascii=False)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()


def _authenticate(key: bytes, content: bytes) -> bytes:
    return blake2b(content, key=key, digest_size=32, person=b"ullage entry").hexdigest().encode()


def _is_private(found: os.stat_result) -> bool:
    return found.st_uid == os.getuid() and not found.st_mode & 0o077


def _read_private(path: str, limit: int) -> bytes:
    """Read a file that only this user can read and write.

    Raises:
        OSError: it is missing, another user's, accessible to others, no regular file, or too large.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or not _is_private(found) or found.st_size > limit:
            raise OSError(0, "it is not a private file of this user")
        return _read_all(descriptor, limit)
    finally:
        os.close(descriptor)


def _read_file(path: str, limit: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
            raise OSError(0, "it is not a regular file, or too large")
        return _read_all(descriptor, limit)
    finally:
        os.close(descriptor)


def _read_all(descriptor: int, limit: int) -> bytes:
    parts: list[bytes] = []
    while limit > 0 and (part := os.read(descriptor, min(limit, 1 << 20))):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def as_table(value: object) -> "dict[str, Any]":
    """Return a JSON object as it is; an empty one for anything else."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _absolute(path: "str | None", folder: str) -> "str | None":
    if path is None:
        return None
    text = str(path)
    return text if text.startswith(("/", "~")) else os.path.join(folder, text)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
