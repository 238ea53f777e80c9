"""Approval of project files.

A settings file that comes with a project has no effect beyond restricting until this user has approved its exact
content. `ProjectScope` decides which files belong to a project, `Unit` is a file together with everything it includes,
and `Approvals` are the approved contents, kept in the user's state folder.

An approval names the absolute path of the file and a SHA-256 digest. The digest of a file that includes nothing is what
`sha256sum` prints for it. With included files it is the digest of the JSON list of `[path, digest]` pairs, the paths
relative to the folder of the file, so that it is the same on every machine.
"""

import contextlib
import hashlib
import json
import os
import shlex
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast

from ullage.errors import StoreFailed

from .places import Places, project_folders

__all__ = [
    "PENDING_KEY",
    "Approval",
    "Approvals",
    "PendingFile",
    "ProjectScope",
    "Unit",
    "UnitKind",
    "approve_command",
    "identity_of",
    "is_approved",
    "read_regular_file",
    "sha256",
]

UnitKind = Literal["settings", "servers", "policy"]
"""An `ullage.toml`, another program's file, or a folder with a policy's two files."""
PENDING_KEY = "trust"
"""The key of issues about pending files."""

_MOST_APPROVALS = 10
"""Approved contents remembered for one path, so that switching between branches does not ask every time."""
_LARGEST_RECORD = 1024 * 1024


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def approve_command(path: Path | str) -> str:
    """The command with which a person reviews and approves a file."""
    return f"ullage trust {shlex.quote(str(path))}"


def identity_of(path: Path) -> Path:
    """The path under which a file is approved: absolute, with the symbolic links of its folder resolved.

    The last component stays as it is: a link that is swapped for another one has other content, or the same.
    """
    return Path(os.path.realpath(path.parent)) / path.name


def is_approved(path: str, content: bytes, places: Places) -> bool:
    """Whether this user has approved another program's file of a project with exactly this content."""
    try:
        approvals = Approvals(places.trust).for_path(identity_of(Path(path)))
    except StoreFailed:
        return False
    return any(one.kind == "servers" and one.digest == sha256(content) for one in approvals)


def read_regular_file(path: Path, limit: int) -> bytes:
    """Reads a file without ever waiting for one that is a pipe, a device or a socket.

    Raises:
        OSError: it cannot be opened, is no regular file, or is larger than `limit` bytes.
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
    """Which files belong to the project that a command runs in, or to any other project.

    A file belongs to a project if it is in the working folder, in the folders above it up to the root of the
    repository or the home folder, or in any other repository. The user's own configuration (`~/.config/ullage`, and
    dot folders of the home folder such as `~/.cursor`) does not, unless it is itself a checked-out repository. Where
    the working folder is the file system's root or holds the home folder, it is no project.
    """

    directory: Path
    places: Places

    def contains(self, path: Path) -> bool:
        written = Path(os.path.abspath(path))  # noqa: PTH100 - `absolute` keeps `..`
        if written == self.places.user_file or _is_below(written, self.places.config):
            return False
        return any(self._contains(candidate) for candidate in {written, Path(os.path.realpath(path))})

    def is_inside(self, path: Path) -> bool:
        """Whether a path, with its links resolved, lies in the project's folders, but for those that hold the home
        folder."""
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
        """Whether it is where programs keep a user's own settings, and not in a repository below that."""
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
    """Whether a folder above the path, below `stop`, is the root of a repository."""
    for folder in path.parents:
        if folder in (stop, folder.parent):
            return False
        if (folder / ".git").exists():
            return True
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A project file and the files it includes, as they were read: what is approved as one."""

    root: Path
    """The file, or the folder of a policy, as it was found."""
    kind: UnitKind = "settings"
    contents: Mapping[Path, bytes | None] = field(repr=False)
    """Every file of the unit; None for one that is not there."""
    includes: tuple[Path, ...] = ()
    """Files of other programs that the root includes."""
    policy_files: tuple[Path, ...] = ()
    """The two files of the policy that the root names, or is."""
    digests: Mapping[Path, str] = field(default_factory=dict[Path, str], repr=False)
    """For included files of the user's own, whose other parts change all the time: a digest of what is read of them."""

    @property
    def identity(self) -> Path:
        return identity_of(self.root)

    @property
    def root_digest(self) -> str:
        """The digest of the root alone, by which an approval is found without reading what the root includes."""
        content = self.contents.get(self.root)
        return self.digest if content is None else sha256(content)

    @property
    def digest(self) -> str:
        found = {path: self._digest_of(path) for path in self.contents}
        if set(found) == {self.root}:
            return found[self.root]
        folder = self.root.parent if self.root in self.contents else self.root
        pairs = sorted([Path(os.path.relpath(path, folder)).as_posix(), one] for path, one in found.items())
        return sha256(json.dumps(pairs, ensure_ascii=True, separators=(",", ":")).encode())

    def _digest_of(self, path: Path) -> str:
        content = self.contents[path]
        return self.digests.get(path) or ("-" if content is None else sha256(content))


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingFile:
    """A project file whose content this user has not approved."""

    unit: Unit
    effects: tuple[str, ...] = ()
    """What it would do once approved, a line each. Empty unless it was read for a person to review."""
    before: "Approval | None" = None
    """What was approved for this path last."""
    faults: tuple[str, ...] = ()
    """Why it cannot be used even if it is approved."""
    is_running: bool = False
    """Whether the content approved before is still in use by this process."""

    @property
    def path(self) -> Path:
        return self.unit.identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    root_digest: str
    digest: str
    kind: UnitKind
    """What the file was reviewed as. It is used as nothing else."""
    approved: str
    """When, in ISO 8601."""
    effects: tuple[str, ...] = ()
    """What was shown to the user, for showing the difference when the file changes."""


@dataclass(frozen=True, slots=True)
class Approvals:
    """The approved contents, in a folder with one small file for each approved path."""

    folder: Path

    def record(self, path: Path) -> Path:
        """The file in which the approvals of a path are kept, for watching it."""
        return self.folder / f"{sha256(str(path).encode('utf-8', 'surrogateescape'))[:40]}.json"

    def for_path(self, path: Path) -> tuple[Approval, ...]:
        """The approvals of a path, newest first.

        Raises:
            StoreFailed: they are there and cannot be used. The path counts as not approved then.
        """
        found = _read_record(self.record(path))
        if found is None:
            return ()
        if found[0] != str(path):
            raise _unusable(self.record(path), "it is the record of another file")
        return found[1]

    def all(self) -> dict[Path, tuple[Approval, ...]]:
        """Every approved path. Records that cannot be read are left out."""
        found = dict[Path, tuple[Approval, ...]]()
        for record in sorted(self.folder.glob("*.json")):
            with contextlib.suppress(StoreFailed):
                said = _read_record(record)
                if said is not None and self.record(Path(said[0])) == record:
                    found[Path(said[0])] = said[1]
        return found

    def approve(self, unit: Unit, effects: Sequence[str]) -> None:
        """Adds the unit's content to the approved contents of its path."""
        fresh = Approval(
            root_digest=unit.root_digest,
            digest=unit.digest,
            kind=unit.kind,
            approved=datetime.now(UTC).isoformat(timespec="seconds"),
            effects=tuple(effects),
        )
        known = list[Approval]()
        with contextlib.suppress(StoreFailed):  # a damaged record is replaced by what was approved just now
            known = [
                one for one in self.for_path(unit.identity) if (one.digest, one.kind) != (fresh.digest, fresh.kind)
            ]
        record = self.record(unit.identity)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            _replace_file(record, _serialize(unit.identity, (fresh, *known)[:_MOST_APPROVALS]))
        except OSError as error:
            raise StoreFailed(
                f"the approval cannot be written to `{record}`: {error.strerror}",
                suggestion="check the permissions of that folder",
            ) from error

    def forget(self, path: Path) -> bool:
        """Removes every approval of a path; False where there was none."""
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


def _serialize(path: Path, approvals: Sequence[Approval]) -> bytes:
    said = [
        {
            "kind": one.kind,
            "sha256": one.digest,
            "root_sha256": one.root_digest,
            "approved": one.approved,
            "effects": list(one.effects),
        }
        for one in approvals
    ]
    return json.dumps({"version": 1, "path": str(path), "approvals": said}, indent=1).encode()


def _replace_file(path: Path, content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
