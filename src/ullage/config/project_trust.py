"""Approval of project files.

A settings file that comes with a project can only restrict until this user has approved its exact content.
`ProjectScope` decides which files belong to a project, `Unit` is a file together with everything it includes, and
`Approvals` are the approved contents, kept in the user's state folder.

An approval names the absolute path of the file and a SHA-256 digest. The digest of a file that includes nothing is what
`sha256sum` prints for it. With included files it is the digest of the JSON list of `[path, digest]` pairs, the paths
relative to the folder of the file, so that it is the same on every machine.

For a person to review, `effects_of` lists what a project file would do once approved, one line each: what it would
start, contact and read, which variables it would receive, what it sets, and which parts of it are ignored. The lines
are made from the file as written, with no variable replaced. Values of variables whose names look like secrets are
shown by their length and a digest, so that a changed value still shows as a difference.
"""

import contextlib
import hashlib
import json
import os
import re
import shlex
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit, urlunsplit

from ullage.errors import StoreFailed
from ullage.options import SAMPLE, Server

from .config_file import Places, project_folders, variables_in
from .entries import Documents, database_file
from .layers import USER_ONLY_SERVER_KEYS, USER_ONLY_VALUES, Delegation, Layer, user_only_profile_keys
from .settings import BUILT_IN, Budget

__all__ = [
    "PENDING_KEY",
    "Approval",
    "Approvals",
    "PendingFile",
    "ProjectScope",
    "Unit",
    "UnitKind",
    "approve_command",
    "effects_of",
    "identity_of",
    "is_approved",
    "is_secret_name",
    "masked_url",
    "other_settings",
    "read_regular_file",
    "sha256",
]

UnitKind = Literal["settings", "servers", "policy"]
"""An `ullage.toml`, another program's file, or a folder with a policy's two files."""
PENDING_KEY = "trust"
"""The key of issues about pending files."""

_MOST_APPROVALS = 10
"""Approved contents kept for one path, so that switching between branches does not need a new approval every time."""
_LARGEST_RECORD = 1024 * 1024


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def approve_command(path: Path | str) -> str:
    """Return the command with which a person reviews and approves a file."""
    return f"ullage trust {shlex.quote(str(path))}"


def identity_of(path: Path) -> Path:
    """Return the path under which a file is approved: absolute, with the symbolic links of its folder resolved.

    The last component stays as it is: a link that is replaced by another has either different content or the same.
    """
    return Path(os.path.realpath(path.parent)) / path.name


def is_approved(path: str, content: bytes, places: Places) -> bool:
    """Return whether this user has approved another program's file of a project with exactly this content."""
    try:
        approvals = Approvals(places.trust).for_path(identity_of(Path(path)))
    except StoreFailed:
        return False
    return any(one.kind == "servers" and one.digest == sha256(content) for one in approvals)


def read_regular_file(path: Path, limit: int) -> bytes:
    """Read a file without blocking on a pipe, a device or a socket.

    Raises:
        OSError: The file cannot be opened, is not a regular file, or is larger than `limit` bytes.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is not a regular file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(0, f"it is larger than {limit // 1024} KiB")
    return content


@dataclass(frozen=True, slots=True)
class ProjectScope:
    """Decides which files belong to the project that a command runs in, or to any other project.

    A file belongs to a project if it is in the working folder, in the folders above it up to the root of the repository
    or the home folder, or in any other repository. The user's own configuration (`~/.config/ullage`, and dot folders of
    the home folder such as `~/.cursor`) does not, unless it is itself a checked-out repository. A working folder that
    is the file system's root or contains the home folder is not a project.
    """

    directory: Path
    places: Places

    def contains(self, path: Path) -> bool:
        written = Path(os.path.abspath(path))  # noqa: PTH100 - `absolute` keeps `..`
        if written == self.places.user_file or _is_below(written, self.places.config):
            return False
        return any(self._contains(candidate) for candidate in {written, Path(os.path.realpath(path))})

    def is_inside(self, path: Path) -> bool:
        """Return whether a path, with its links resolved, lies in the project's folders, except those that contain the
        home folder."""
        real = Path(os.path.realpath(path))
        roots = [root for root in self._roots() if not _is_below(self.places.home, root)]
        return any(_is_below(real, Path(os.path.realpath(root))) for root in roots)

    def _roots(self) -> tuple[Path, ...]:
        if _is_below(self.places.home, self.directory) and self.directory != self.places.home:
            return ()
        return (self.directory, project_folders(self.directory, self.places.home)[-1])

    def _contains(self, path: Path) -> bool:
        is_users = self.is_users_place(path)
        for root in self._roots():
            holds_home = _is_below(self.places.home, root)
            if (_is_below(path, root) or _is_below(path, Path(os.path.realpath(root)))) and not (
                is_users and holds_home
            ):
                return True
        return not is_users and _repository_above(path, self.places.home)

    def is_users_place(self, path: Path) -> bool:
        """Return whether a path is where programs keep a user's own settings, and not in a repository below that
        place."""
        for home in {self.places.home, Path(os.path.realpath(self.places.home))}:
            if _is_below(path, home) and path != home:
                first = path.relative_to(home).parts[0]
                if first.startswith(".") or first in ("Library", "AppData"):
                    return not (_repository_above(path, home / first) or (home / first / ".git").exists())
        return False


def _is_below(path: Path, folder: Path) -> bool:
    parts, above = (Path(os.path.normcase(one)).parts for one in (path, folder))
    return parts[: len(above)] == above


def _repository_above(path: Path, stop: Path) -> bool:
    """Return whether a folder above the path, below `stop`, is the root of a repository."""
    for folder in path.parents:
        if folder in (stop, folder.parent):
            return False
        if (folder / ".git").exists():
            return True
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A project file and the files it includes, as read. They are approved together."""

    root: Path
    """The path of the file, or of a policy's folder, before links are resolved."""
    kind: UnitKind = "settings"
    contents: Mapping[Path, bytes | None] = field(repr=False)
    """Every file of the unit; None for a file that does not exist."""
    includes: tuple[Path, ...] = ()
    """Files of other programs that the root includes."""
    policy_files: tuple[Path, ...] = ()
    """The two files of the policy that the root names, or that the root consists of."""
    digests: Mapping[Path, str] = field(default_factory=dict[Path, str], repr=False)
    """For included files of the user's own, other parts of which change all the time: a digest of the parts that are
    read."""

    @property
    def identity(self) -> Path:
        return identity_of(self.root)

    @property
    def root_digest(self) -> str:
        """The digest of the root alone, by which an approval is found without reading the included files."""
        content = self.contents.get(self.root)
        return self.digest if content is None else sha256(content)

    @property
    def digest(self) -> str:
        found = {
            path: self.digests.get(path) or ("-" if content is None else sha256(content))
            for path, content in self.contents.items()
        }
        if set(found) == {self.root}:
            return found[self.root]
        folder = self.root.parent if self.root in self.contents else self.root
        pairs = sorted([Path(os.path.relpath(path, folder)).as_posix(), one] for path, one in found.items())
        return sha256(json.dumps(pairs, ensure_ascii=True, separators=(",", ":")).encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingFile:
    """A project file whose content this user has not approved."""

    unit: Unit
    effects: tuple[str, ...] = ()
    """What it would do once approved, one line each. Empty unless it was read for a person to review."""
    before: "Approval | None" = None
    """The most recent approval of this path."""
    faults: tuple[str, ...] = ()
    """Why it cannot be used even if it is approved."""
    is_running: bool = False
    """Whether this process still uses the content approved before."""

    @property
    def path(self) -> Path:
        return self.unit.identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A content that the user has approved for one path."""

    root_digest: str
    digest: str
    kind: UnitKind
    """The kind of file it was reviewed as. It is not used as any other kind."""
    approved: str
    """The time in ISO 8601."""
    effects: tuple[str, ...] = ()
    """The effects shown to the user, for showing the difference when the file changes."""


@dataclass(frozen=True, slots=True)
class Approvals:
    """The approved contents, in a folder with one small file for each approved path."""

    folder: Path

    def record(self, path: Path) -> Path:
        """Return the file in which the approvals of a path are kept, for watching it."""
        return self.folder / f"{sha256(str(path).encode('utf-8', 'surrogateescape'))[:40]}.json"

    def for_path(self, path: Path) -> tuple[Approval, ...]:
        """Return the approvals of a path, newest first.

        Raises:
            StoreFailed: The record exists and cannot be used. The path then counts as not approved.
        """
        found = _read_record(self.record(path))
        if found is None:
            return ()
        if found[0] != str(path):
            raise _unusable(self.record(path), "it is the record of another file")
        return found[1]

    def all(self) -> dict[Path, tuple[Approval, ...]]:
        """Return the approvals of every approved path. Records that cannot be read are left out."""
        found = dict[Path, tuple[Approval, ...]]()
        for record in sorted(self.folder.glob("*.json")):
            with contextlib.suppress(StoreFailed):
                said = _read_record(record)
                if said is not None and self.record(Path(said[0])) == record:
                    found[Path(said[0])] = said[1]
        return found

    def approve(self, unit: Unit, effects: Sequence[str]) -> None:
        """Add the unit's content to the approved contents of its path."""
        fresh = Approval(
            root_digest=unit.root_digest,
            digest=unit.digest,
            kind=unit.kind,
            approved=datetime.now(UTC).isoformat(timespec="seconds"),
            effects=tuple(effects),
        )
        known = list[Approval]()
        with contextlib.suppress(StoreFailed):  # a damaged record is replaced by the new approval
            known = [
                one for one in self.for_path(unit.identity) if (one.digest, one.kind) != (fresh.digest, fresh.kind)
            ]
        record = self.record(unit.identity)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            approvals = [
                {
                    "kind": one.kind,
                    "sha256": one.digest,
                    "root_sha256": one.root_digest,
                    "approved": one.approved,
                    "effects": list(one.effects),
                }
                for one in (fresh, *known)[:_MOST_APPROVALS]
            ]
            content = json.dumps({"version": 1, "path": str(unit.identity), "approvals": approvals}, indent=1).encode()
            descriptor, name = tempfile.mkstemp(dir=record.parent, prefix=f"{record.name}.")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(descriptor)
                Path(name).replace(record)
            except BaseException:
                with contextlib.suppress(OSError):
                    Path(name).unlink()
                raise
        except OSError as error:
            raise StoreFailed(
                f"the approval cannot be written to `{record}`: {error.strerror}",
                suggestion="check the permissions of that folder",
            ) from error

    def forget(self, path: Path) -> bool:
        """Remove every approval of a path; return False if there was none."""
        try:
            self.record(path).unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StoreFailed(
                f"the approval `{self.record(path)}` cannot be removed: {error.strerror}",
                suggestion="check the permissions of that folder",
            ) from error
        return True


def _read_record(record: Path) -> tuple[str, tuple[Approval, ...]] | None:
    try:
        content = read_regular_file(record, _LARGEST_RECORD)
        if hasattr(os, "getuid") and record.stat().st_uid not in (0, os.getuid()):
            raise _unusable(record, "it belongs to another user")
        document = cast("dict[str, Any]", json.loads(content))
        approvals = tuple(
            Approval(
                root_digest=str(one["root_sha256"]),
                digest=str(one["sha256"]),
                kind=one["kind"],
                approved=str(one["approved"]),
                effects=tuple(str(line) for line in one["effects"]),
            )
            for one in document["approvals"]
        )
        return str(document["path"]), approvals
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(record, error.strerror or type(error).__name__) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _unusable(record, "its content is damaged") from error


def _unusable(record: Path, why: str) -> StoreFailed:
    return StoreFailed(
        f"the approval `{record}` cannot be used: {why}",
        suggestion="approve the project file again with `ullage trust`",
    )


_SECRET_NAME = re.compile(
    r"(?:^|[_.-])(?:api[_-]?key|access[_-]?key|auth|authorization|bearer|cookie|cred(?:ential)?s?|key|pass(?:wd|word|phrase)?|"
    r"pat|pwd|secret|session|signature|token)s?(?:$|[_.-])",
    re.IGNORECASE,
)
_NAMED_KEY = 3
"""Parts of a path such as `servers.github.command`."""
_NEVER_CUT = ("start ", "contact ", "receive ", "read ")
_LONGEST = 2_000
"""Maximum characters of one line; the rest is cut, and a digest still shows a change."""


def is_secret_name(name: str) -> bool:
    """Return whether a variable, a header or a parameter of that name probably contains a secret."""
    return _SECRET_NAME.search(name) is not None


def effects_of(layers: Sequence[Layer]) -> tuple[str, ...]:
    """Return what the layers of one project file and its included files would do, in a stable order."""
    lines = [line for layer in layers for line in _effects(layer)]
    return tuple(dict.fromkeys(_shorten_line(line) for line in lines))


# fmt: off
_SHOWN_ELSEWHERE = {
    "servers": {
        "command",
        "args",
        "env",
        "cwd",
        "url",
        "headers",
        "deny",
        "ask",
        "hidden",
        "allow",
        "read_only",
        "pinned",
    },
    "sources": {"database"},
    "retrieve": {"folders", "files"},
    "providers": {"base_url", "key_env"},
    "clients": {"model", "window", "mode", "underscore_names", "whole"},
}
"""Keys of named tables that have a line of their own."""
# fmt: on
_TABLES_SHOWN_ELSEWHERE = ("include", "gateway", "search", "results", "own", "store", "http")


def other_settings(document: Mapping[str, object], tables: Sequence[str] = ()) -> Iterator[str]:
    """Yield a line for every key of a file that has an effect and that no other line shows.

    Args:
        document: The parsed file.
        tables: The only tables to look at; empty for all of them.
    """
    for table, value in document.items():
        if (tables and table not in tables) or table in _TABLES_SHOWN_ELSEWHERE:
            continue
        named = _SHOWN_ELSEWHERE["servers" if tables else table] if tables or table in _SHOWN_ELSEWHERE else set[str]()
        for path, leaf in _leaves(value, (table,)):
            if not (len(path) >= _NAMED_KEY and path[2] in named) and not _is_user_only(path):
                shown = _format_value(leaf)
                # A number, such as `max_output_tokens`, is no secret.
                shown = _shown_value(path[-1], shown) if isinstance(leaf, str | tuple) else shown
                yield _shorten_line(f"set       {'.'.join(path)} = {shown}")


def _is_user_only(path: Sequence[str]) -> bool:
    """Return whether a key is never read from a project's file, which another line says."""
    if path[0] == "servers" and len(path) >= _NAMED_KEY and path[2] in USER_ONLY_SERVER_KEYS:
        return True
    return ".".join(path[:2]) in USER_ONLY_VALUES or (path[0] == "providers" and len(path) > 1 and path[1] in BUILT_IN)


def _leaves(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, object]", value).items():
            yield from _leaves(inner, (*path, str(key)))
    else:
        yield path, tuple(cast("list[object]", value)) if isinstance(value, list) else value


def _effects(layer: Layer) -> Iterator[str]:
    for name, server in layer.servers.items():
        if server is not None:
            yield from _server_effects(name, server)
    for name, database in layer.databases.items():
        if database is not None:
            if database.url == SAMPLE:
                effect = f"open      the sample shop (database `{name}`)"
            else:
                verb = "contact" if database_file(database.url) is None else "read   "
                received = variables_in(database.url)
                also = f", receiving your variable {', '.join(received)}" if received else ""
                effect = f"{verb}   {masked_url(database.url)} (database `{name}`{also})"
            yield effect
    for name, folders in layer.retrieves.items():
        paths = ", ".join(f"`{path}`" for path in (*folders.folders, *folders.files))
        yield f"read      {paths} (collection `{name}`, for `retrieve.search` and `files`)"
    yield from _delegation_effects(layer.delegation)
    yield from (f"read      the servers of `{path}`" for path in layer.include)
    yield from _setting_effects(layer)


def _delegation_effects(delegation: Delegation) -> Iterator[str]:
    for name, provider in delegation.providers.items():
        if name in BUILT_IN:
            yield f"ignored   providers.{name}: a project's file does not change a provider of yours"
        elif provider is not None:
            asked = ", ".join(sorted(provider.variables))
            also = f"; ignored unless your own settings allow it to receive {asked}" if asked else ""
            yield f"contact   {masked_url(provider.base_url)} with prompts (provider `{name}`{also})"
    if delegation.policy is not None:
        yield f"choose    models by its own policy: {_policy_summary(delegation.policy)}"
    for scope, budget in delegation.budgets.items():
        if budget != Budget():
            yield f"restrict  one {scope} to {_fields_of(budget)}"


def _setting_effects(layer: Layer) -> Iterator[str]:
    for name, profile in layer.clients.items():
        yield f"set       the profile of client `{name}`: {_fields_of(replace(profile, whole=None))}"
    for key, value in sorted(layer.values.items()):
        if key not in USER_ONLY_VALUES:
            yield f"set       {key} = {_format_value(value)}"
    for name, rules in layer.withheld.rules.items():
        for kind in ("deny", "ask", "hidden"):
            patterns = getattr(rules, kind)
            if patterns:
                yield f"restrict  server `{name}`: {kind} {', '.join(patterns)}"
        for kind in ("allow", "read_only", "pinned"):
            patterns = getattr(rules, kind)
            if patterns:
                yield f"set       server `{name}`: {kind} {', '.join(patterns)}"
    ignored = [key for key in layer.values if key in USER_ONLY_VALUES]
    ignored += user_only_profile_keys(layer)
    for key in (*ignored, *(f"http.tokens.{name}" for name in layer.tokens)):
        yield f"ignored   {key}: never read from a project's file"


def _server_effects(name: str, server: Server) -> Iterator[str]:
    state = ", disabled" if server.disabled else ""
    if server.command is not None:
        line = shlex.join((server.command, *server.arguments))
        where = f" in `{server.directory}`" if server.directory else ""
        yield f"start     `{line}`{where} (server `{name}`{state})"
    else:
        yield f"contact   {masked_url(server.url or '')} (server `{name}`{state})"
    for key, value in sorted(server.environment.items()):
        yield f"set       variable {key}={_shown_value(key, value)} for server `{name}`"
    for key, value in sorted(server.headers.items()):
        yield f"send      header {key}: {_shown_value(key, value)} to server `{name}`"
    texts = (
        server.command or "",
        *server.arguments,
        *server.environment.values(),
        server.url or "",
        *server.headers.values(),
    )
    received = dict.fromkeys(one for text in (*texts, server.directory or "") for one in variables_in(text))
    yield from (f"receive   your variable {one} (server `{name}`)" for one in received)
    for key in USER_ONLY_SERVER_KEYS:
        if getattr(server, key, None) not in (None, False, (), "hold"):
            yield f"ignored   servers.{name}.{key}: never read from a project's file"


def _policy_summary(policy: Documents) -> str:
    models, aliases = (cast("Mapping[str, object] | None", policy.tables.get(name)) for name in ("models", "aliases"))
    named = sorted(str(one) for one in aliases.values()) if isinstance(aliases, Mapping) else []
    known = sorted(models) if isinstance(models, Mapping) else []
    return ", ".join(dict.fromkeys((*named, *known))) or "rules only"


def _fields_of(value: object) -> str:
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    said = {name: getattr(value, name) for name in names if getattr(value, name) is not None}
    return ", ".join(f"{name} {_format_value(one)}" for name, one in said.items()) or "nothing"


def _format_value(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, cast('tuple[object, ...]', value)))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown_value(name: str, value: str) -> str:
    """Return a value for display. The name of a variable is not a secret; its value may be."""
    rest = re.sub(r"\$\{[^}]*\}", "", value)
    if not is_secret_name(name) or not rest or rest.strip() in ("Bearer", "Basic", "token"):
        return value
    return f"(hidden, {len(value)} characters, digest {_digest(value)})"


def masked_url(url: str) -> str:
    """Return an address without its password and without the secret values of its query.

    The host is always shown as the one that is connected to: of the part before `@`, only the user name of a database
    is kept. A path to a file is shown unchanged.
    """
    try:
        parts = urlsplit(url)
        host, password = parts.hostname, parts.password
    except ValueError:
        return f"(an address that cannot be read, digest {_digest(url)})"
    if not parts.scheme or not host:
        return url
    user = ""
    if "@" in parts.netloc:
        is_database = (
            not parts.scheme.startswith("http")
            and parts.username
            and re.fullmatch(r"[\w.$-]+|\$\{\w+\}", parts.username)
        )
        user = f"{parts.username if is_database else '…'}{':…' if password else ''}@"
        if not is_database or (password and not password.startswith("${")):
            user = f"{user[:-1]}({_digest(parts.netloc)})@"
    place = parts.netloc.rpartition("@")[2]
    query = "&".join(_masked_pair(pair) for pair in parts.query.split("&")) if parts.query else ""
    return urlunsplit((parts.scheme, f"{user}{place}", parts.path, query, parts.fragment))


def _masked_pair(pair: str) -> str:
    key, equals, value = pair.partition("=")
    is_hidden = is_secret_name(key) and value and not value.startswith("${")
    return f"{key}=…({_digest(value)})" if is_hidden else f"{key}{equals}{value}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def _shorten_line(line: str) -> str:
    if len(line) <= _LONGEST or line.startswith(_NEVER_CUT):
        return line
    return f"{line[:_LONGEST]}… ({len(line)} characters, digest {_digest(line)})"
