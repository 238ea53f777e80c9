"""Finds and reads the files that contain settings.

These are the user's own file, the project's, the policies in `conf/` folders, and included files of other programs. A
file that belongs to a project is used only if the user has approved its exact content: its bytes are read once, and the
same bytes are approved and parsed. From a file that is not approved only the restrictions are taken, and it is reported
as pending.

Besides the tokens in `loader` and the approvals in `project_trust`, this is the only module of the package that opens
files.
"""

import dataclasses
import json
import os
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from ullage.errors import StoreFailed
from ullage.options import DatabaseSettings

from .config_file import Issue, Page, Places, Severity, Stamp, load_toml, project_files, project_folders, stamp_of
from .entries import FILES, database_file, joined, of_files
from .included_files import parse_relaxed, read_codex_toml, read_mcp_json
from .layers import ClientFile, Delegation, Layer, restrictions_of, without_user_only_keys
from .project_trust import (
    PENDING_KEY,
    Approval,
    Approvals,
    PendingFile,
    ProjectScope,
    Unit,
    UnitKind,
    approve_command,
    effects_of,
    identity_of,
    other_settings,
    read_regular_file,
    sha256,
)
from .ullage_toml import read_ullage_toml

__all__ = ["Reading"]

_LARGEST = 64 * 1024 * 1024
"""Maximum bytes of a file of the user's own. Claude Code keeps a history in its file, which can be large."""
_SERVER_TABLES = ("mcpServers", "servers", "mcp_servers")
"""Tables of servers in other programs' files."""
_LARGEST_OF_PROJECT = 512 * 1024
"""Maximum bytes of a project's file, which is parsed before it is approved."""


@dataclass(slots=True)
class Reading:
    """One pass over the files."""

    environment: Mapping[str, str] = field(repr=False)
    directory: Path
    places: Places
    in_use: Mapping[Path, Unit] = field(default_factory=dict[Path, Unit], repr=False)
    """Project files as this process last used them, by identity."""
    is_review: bool = False
    """Whether pending files are read for a person to review, with everything they include."""
    replaced: Mapping[Path, bytes] = field(default_factory=dict[Path, bytes], repr=False)
    """Contents used in place of files of the user's own."""
    stamps: dict[Path, Stamp | None] = field(default_factory=dict[Path, "Stamp | None"])
    issues: list[Issue] = field(default_factory=list[Issue])
    unread: list[str] = field(default_factory=list[str])
    records: set[Path] = field(default_factory=set[Path])
    """Among `stamps`, the files in which approvals are kept."""
    pending: list[PendingFile] = field(default_factory=list[PendingFile])
    used: dict[Path, Unit] = field(default_factory=dict[Path, Unit], repr=False)
    """The approved project files that this pass used, by identity."""
    client_files: dict[Path, ClientFile] = field(default_factory=dict[Path, ClientFile], repr=False)
    """The relevant parts of other programs' JSON files that do not belong to a project."""
    _contents: dict[Path, bytes | None] = field(default_factory=dict[Path, "bytes | None"], repr=False)
    """The content of every file read in this pass, so that none is read twice."""

    @property
    def scope(self) -> ProjectScope:
        return ProjectScope(self.directory, self.places)

    @property
    def approvals(self) -> Approvals:
        return Approvals(self.places.trust)

    # -- Ullage's own files

    def layers(self, named: Path | None, flagged: Sequence[Path]) -> Iterator[Layer]:
        """Yield every file's layer, highest first: Ullage's own files, policies in folders, then other programs' files.

        Args:
            named: The one file to read instead of the project's and the user's.
            flagged: Other programs' files, which precede those that the settings include.
        """
        own = list(self._own_files(named))
        yield from self._with_project_policy([layer for layer, _ in own], is_named=named is not None)
        yield from self._foreign_files(own, flagged)

    def _own_files(self, named: Path | None) -> Iterator[tuple[Layer, Unit | None]]:
        """Yield the layers of `ullage.toml` files, each with the unit that its included files are read from."""
        if named is not None:
            path = self._absolute(str(named), self.directory)
            if stamp_of(path) is None:
                self.issues.append(Issue(severity="error", message="the settings file does not exist", file=str(path)))
            if not self.scope.contains(path):
                yield from self._users_toml(path)
                return
            # A project's file never replaces the user's: deny rules, budgets and the store remain those of the user.
            yield from self._project_toml(path)
            yield from self._users_toml(self.places.user_file)
            return
        is_found = False
        for path in self._project_files():
            if is_found:
                # The innermost approved file is used; those further out still restrict.
                content = self._content(path, limit=_LARGEST_OF_PROJECT, severity="problem")
                if content is not None:
                    yield restrictions_of(self._inert_toml(Unit(root=path, contents={path: content}))), None
                continue
            layers = list(self._project_toml(path))
            yield from layers
            is_found = any(not layer.is_pending for layer, _ in layers)
        yield from self._users_toml(self.places.user_file)

    def _project_files(self) -> Iterator[Path]:
        """Yield the files in the working folder and those above it that do not belong to another user, innermost
        first."""
        for path, is_own in project_files(self.directory, self.places):
            self.stamps[path] = stamp_of(path)
            if not is_own:
                said = "belongs to another user and is not read"
                self.issues.append(Issue(severity="problem", message=said, file=str(path)))
            elif self.stamps[path] is not None and path != self.places.user_file:
                yield path

    def _users_toml(self, path: Path) -> Iterator[tuple[Layer, Unit | None]]:
        text = self._text(path, severity="error")
        if text is not None:
            yield self._with_named_policy(read_ullage_toml(self._page(path, text)), None), None

    def _project_toml(self, path: Path) -> Iterator[tuple[Layer, Unit | None]]:
        """Yield the layers of a project's file: the approved content, or the restrictions of a pending file together
        with the content that was approved before, as long as this process runs."""
        approved, pending = self._project_file(path, "settings")
        if approved is not None:
            page = self._page(approved.root, _decode_text(approved.contents[approved.root] or b""))
            layer = self._with_named_policy(read_ullage_toml(page), approved)
            yield self._without_links_outside(without_user_only_keys(replace(layer, is_project=True))), approved
        if pending is not None:
            layer = self._inert_toml(pending)
            yield restrictions_of(layer), None
            yield from ((one, None) for one in self._included_restrictions(layer))

    def _included_restrictions(self, layer: Layer) -> Iterator[Layer]:
        """Yield the restrictions in the included files of a pending file, if those files are in the project
        themselves."""
        for path in (self._absolute(entry, Path(layer.source).parent) for entry in layer.include):
            if self.scope.is_inside(path):
                content = self._content(path, _LARGEST_OF_PROJECT, "problem")
                if content is not None:
                    yield restrictions_of(self._foreign(path, _decode_text(content), expands=False))

    def _without_links_outside(self, layer: Layer) -> Layer:
        """Return the layer without folders, files and databases of the project that are links leading out of it: the
        user approved a path in the project."""
        folder, issues = Path(layer.source).parent, list[Issue]()
        real_folder = os.path.realpath(folder)

        def is_named_inside(path: str) -> bool:
            # `abspath` keeps two leading slashes.
            return Path(os.path.abspath(f"/{path.lstrip('/')}")).is_relative_to(folder)  # noqa: PTH100

        def is_inside(path: str, key: str) -> bool:
            leaves = is_named_inside(path) and not Path(os.path.realpath(path)).is_relative_to(real_folder)
            if leaves:
                said = f"`{key}` is left out: `{path}` is a link that leads out of the project"
                issues.append(Issue(severity="problem", message=said, file=layer.source, key=key))
            return not leaves

        retrieves = {
            name: replace(
                one,
                folders=tuple(path for path in one.folders if is_inside(path, f"retrieve.{name}")),
                files=tuple(path for path in one.files if is_inside(path, f"retrieve.{name}")),
                exclude=tuple(pattern for pattern in one.exclude if not pattern.startswith("!")),
                within=str(folder),
            )
            for name, one in layer.retrieves.items()
        }
        databases = dict[str, DatabaseSettings | None]()
        for name, one in layer.databases.items():
            file = None if one is None else database_file(one.url)
            if one is None or file is None:
                databases[name] = one
            elif is_inside(file, f"sources.{name}"):
                databases[name] = replace(one, within=real_folder if is_named_inside(file) else None)
        return replace(layer, retrieves=retrieves, databases=databases, issues=(*layer.issues, *issues))

    def _inert_toml(self, unit: Unit) -> Layer:
        return read_ullage_toml(self._page(unit.root, _decode_text(unit.contents[unit.root] or b""), expands=False))

    # -- Approval

    def _project_file(self, path: Path, kind: UnitKind) -> tuple[Unit | None, Unit | None]:
        """Return a project's file as it is used, and as it waits for approval; either may be None."""
        content = self._content(path, _LARGEST_OF_PROJECT, "problem")
        if content is not None:
            return self._decide(Unit(root=path, kind=kind, contents={path: content}))
        if self.stamps[path] is None:
            return None, None
        # The file exists but cannot be read at the moment: the content approved before stays in use.
        identity = identity_of(path)
        return self._in_use(identity, self._approvals_of(identity)), None

    def _decide(self, unit: Unit) -> tuple[Unit | None, Unit | None]:
        """Return the unit that is used with full effect, and the one that is pending; either may be None.

        Included files are read only if the file itself has been approved with some content of theirs.
        """
        approvals = tuple(one for one in self._approvals_of(unit.identity) if one.kind == unit.kind)
        if any(one.root_digest == unit.root_digest for one in approvals):
            whole = self._closure(unit)
            if any(one.digest == whole.digest for one in approvals):
                self.used[unit.identity] = whole
                return whole, None
        before = self._in_use(unit.identity, approvals)
        self._report_pending(unit, approvals[0] if approvals else None, is_running=before is not None)
        return before, unit

    def _in_use(self, identity: Path, approvals: Sequence[Approval]) -> Unit | None:
        """Return the content of a project file that this process uses, if it is still approved."""
        before = self.in_use.get(identity)
        if before is None or all(one.digest != before.digest for one in approvals):
            return None
        self.used[identity] = before
        return before

    def _approvals_of(self, identity: Path) -> tuple[Approval, ...]:
        """Return the approvals of a path. Their record is watched, so that a running gateway notices a new one."""
        record = self.approvals.record(identity)
        self.stamps[record] = stamp_of(record)
        self.records.add(record)
        if self.scope.is_inside(self.places.trust):
            said = "approvals are not read from inside the project; check XDG_STATE_HOME"
            self.issues.append(Issue(severity="problem", message=said, file=str(self.places.trust)))
            return ()
        try:
            return self.approvals.for_path(identity)
        except StoreFailed as error:
            said = Issue(severity="problem", message=error.message, file=str(identity), suggestion=error.suggestion)
            self.issues.append(said)
            return ()

    def _report_pending(self, unit: Unit, before: Approval | None, *, is_running: bool) -> None:
        pending = PendingFile(unit=unit, before=before, is_running=is_running)
        if self.is_review:
            whole = self._closure(unit)
            layers = list[Layer]()
            if whole.kind == "settings":
                layers.append(self._inert_toml(whole))
            if whole.policy_files:
                pages = self._policy_pages(whole.policy_files[0].parent, whole)
                documents, issues = of_files(*pages) if pages is not None else (None, ())
                policy_layer = Layer(
                    source=str(whole.policy_files[0].parent),
                    delegation=Delegation(policy=documents),
                    issues=issues,
                    is_project=True,
                )
                layers.append(policy_layer)
            for path in (whole.root,) if whole.kind == "servers" else whole.includes:
                text = _text_of(whole, path)
                if text is not None:
                    layers.append(self._foreign(path, text, expands=False))
            faults = [issue.sentence() for layer in layers for issue in layer.issues if issue.severity == "error"]
            effects = (*effects_of(layers), *dict.fromkeys(self._other_settings(whole)))
            pending = replace(pending, unit=whole, effects=effects, faults=tuple(faults))
        self.pending.append(pending)
        self.issues.append(pending_issue(pending))

    def review(self, path: Path) -> PendingFile | None:
        """Read one file as `ullage trust` shows it, approved or not; return None if there is no such file."""
        self.is_review = True
        folder = path.is_dir()
        names = [path / name for name in FILES] if folder else [path]
        contents = {name: self._content(name, _LARGEST_OF_PROJECT, "problem") for name in names}
        if any(content is None for content in contents.values()):
            return None
        if folder:
            kind = "policy"
        elif path.suffix == ".json":
            kind = "servers"
        else:
            try:
                document = load_toml(_decode_text(contents[path] or b""))
            except (ValueError, RecursionError):
                kind = "settings" if path.suffix == ".toml" else "servers"
            else:
                kind = "servers" if "mcp_servers" in document else "settings"
        unit = Unit(root=path, kind=kind, contents=contents)
        approvals = self._approvals_of(unit.identity)
        self._report_pending(unit, approvals[0] if approvals else None, is_running=False)
        return self.pending.pop()

    def _closure(self, unit: Unit) -> Unit:
        """Return the unit with every file that its root includes, read now. Only regular files are opened for it."""
        if unit.kind == "policy":
            return replace(unit, policy_files=tuple(unit.contents))
        if unit.kind == "servers":
            return unit
        contents, digests = dict(unit.contents), dict[Path, str]()
        layer = self._inert_toml(unit)
        includes = tuple(self._absolute(entry, unit.root.parent) for entry in layer.include)
        conf = layer.delegation.conf
        policy_files = () if conf is None else tuple(Path(conf) / name for name in FILES)
        for path in (*includes, *policy_files):
            is_users = self._is_users_own(path)
            limit = _LARGEST if is_users else _LARGEST_OF_PROJECT
            content = contents[path] = self._content(path, limit, "problem", is_regular=True)
            if is_users and content is not None and path not in policy_files:
                layer = self._foreign(path, _decode_text(content), expands=False)
                said = {"servers": layer.servers, "withheld": layer.withheld}
                digests[path] = sha256(json.dumps(_plain(said), sort_keys=True, default=str).encode())
        return replace(unit, contents=contents, digests=digests, includes=includes, policy_files=policy_files)

    def _other_settings(self, unit: Unit) -> Iterator[str]:
        """Yield lines for the keys of a unit's files that its layers do not show."""
        if unit.kind == "settings":
            yield from other_settings(_parse_document(unit.contents[unit.root], is_toml=True))
        for path in unit.policy_files:
            yield from other_settings(_parse_document(unit.contents[path], is_toml=False))
        for path in (unit.root,) if unit.kind == "servers" else unit.includes:
            document = _parse_document(unit.contents[path], is_toml=path.suffix == ".toml")
            yield from other_settings(document, _SERVER_TABLES)

    # -- Policies

    def _with_named_policy(self, layer: Layer, unit: Unit | None) -> Layer:
        """Return the layer with the policy of the folder that it names."""
        if layer.delegation.conf is None:
            return layer
        folder = Path(layer.delegation.conf)
        if unit is None and self.scope.contains(folder / FILES[0]):
            files, pending = self._project_policy(folder)
            if pending is not None and files is None:
                return layer
        else:
            files = self._policy_pages(folder, unit)
        if files is None:
            message = f"`conf` has not both {' and '.join(f'`{name}`' for name in FILES)}"
            fault = Issue(
                severity="error", message=message, file=layer.source, key="delegate.conf", suggestion="check the folder"
            )
            return replace(layer, issues=(*layer.issues, fault))
        documents, issues = of_files(*files)
        policy = joined(layer.delegation.policy, documents)
        return replace(layer, delegation=replace(layer.delegation, policy=policy), issues=(*layer.issues, *issues))

    def _with_project_policy(self, own: Sequence[Layer], *, is_named: bool) -> Iterator[Layer]:
        """Yield the layers with the policy of the project's folder `conf`, unless a higher file has one."""
        # A single file named by the user is read instead of the project's, and takes precedence over a policy in a
        # folder.
        above = len(own) if is_named else sum(layer.is_project for layer in own)
        yield from own[:above]
        if not any(layer.delegation.policy for layer in own[:above]):
            files = [Path(one.source) for one in own if one.is_project and not one.is_foreign]
            folders = dict.fromkeys((*(file.parent for file in files), self.directory))
            yield from self._policy_of_project(folders)
        yield from own[above:]

    def _policy_of_project(self, folders: Iterable[Path]) -> Iterator[Layer]:
        """Yield the policy of the first folder `conf` that has both files."""
        for folder in folders:
            files, pending = self._project_policy(folder / "conf")
            if files is not None:
                documents, issues = of_files(*files)
                delegation = Delegation(is_mentioned=True, policy=documents)
                yield Layer(source=str(folder / "conf"), delegation=delegation, issues=issues, is_project=True)
            if files is not None or pending is not None:
                return

    def _project_policy(self, folder: Path) -> tuple[tuple[Page, Page] | None, Unit | None]:
        """Return the two files of a project's policy if they are approved, and the pending unit if they are not."""
        contents = {folder / name: self._content(folder / name, _LARGEST_OF_PROJECT, "problem") for name in FILES}
        if any(content is None for content in contents.values()):
            return None, None
        approved, pending = self._decide(Unit(root=folder, kind="policy", contents=contents))
        return (None if approved is None else self._policy_pages(folder, approved)), pending

    def _policy_pages(self, folder: Path, unit: Unit | None) -> tuple[Page, Page] | None:
        pages = list[Page]()
        for path in (folder / name for name in FILES):
            text = self._text(path, severity="error") if unit is None else _text_of(unit, path)
            if text is not None:
                pages.append(self._page(path, text, environment={}))
        return (pages[0], pages[1]) if len(pages) == len(FILES) else None

    # -- Other programs' files

    def _foreign_files(self, own: Sequence[tuple[Layer, Unit | None]], flagged: Sequence[Path]) -> Iterator[Layer]:
        """Yield the files that flags and settings include, in their order, each file once."""
        seen = set[Path]()
        for entry in flagged:
            yield from self._foreign_file(self._absolute(str(entry), self.directory), None, seen)
        for layer, unit in own:
            for entry in layer.include:
                path = self._absolute(entry, Path(layer.source).parent)
                yield from self._foreign_file(path, unit, seen)

    def _foreign_file(self, path: Path, unit: Unit | None, seen: set[Path]) -> Iterator[Layer]:
        """Yield one included file: as part of the approved unit that includes it, or on its own."""
        if path in seen:
            return
        seen.add(path)
        if unit is not None:
            self.stamps.setdefault(path, stamp_of(path))
            text = _text_of(unit, path)
            layers = (
                [] if text is None else [replace(self._foreign(path, text), is_project=not self._is_users_own(path))]
            )
        elif self.scope.contains(path):
            approved, pending = self._project_file(path, "servers")
            layers = list[Layer]()
            if approved is not None:
                layers.append(replace(self._foreign(path, _text_of(approved, path) or ""), is_project=True))
            if pending is not None:
                layers.append(restrictions_of(self._foreign(path, _text_of(pending, path) or "", expands=False)))
        else:
            text = self._text(path, severity="problem")
            layers = [] if text is None else [self._foreign(path, text)]
            self.client_files.update((path, layer.client_file) for layer in layers if layer.client_file is not None)
        for layer in layers:
            if layer.is_unread and not layer.is_pending:
                self.unread.append(str(path))
            yield without_user_only_keys(layer) if layer.is_project and not layer.is_pending else layer
        if not layers and self.stamps.get(path) is None:
            self.issues.append(Issue(severity="problem", message="the included file is not there", file=str(path)))

    def _is_users_own(self, path: Path) -> bool:
        return self.scope.is_users_place(path) and not self.scope.contains(path)

    def _foreign(self, path: Path, text: str, *, expands: bool = True) -> Layer:
        folder = path.parent
        outside = folder if self.scope.contains(path) else self.directory
        workspace = folder.parent if folder.name.startswith(".") else outside
        known = {"workspaceFolder": str(workspace), "userHome": str(self.places.home)}
        # The user's own variables take precedence; a name missing there is looked up in `known`.
        variables = ChainMap(cast("dict[str, str]", self.environment), known)
        page = self._page(path, text, environment=variables, expands=expands)
        return read_codex_toml(page) if path.suffix == ".toml" else read_mcp_json(page)

    # -- Files

    def _page(
        self, path: Path, text: str, *, environment: Mapping[str, str] | None = None, expands: bool = True
    ) -> Page:
        return Page(
            file=str(path),
            text=text,
            environment=self.environment if environment is None else environment,
            absolute=lambda entry: str(self._absolute(entry, path.parent)),
            # A project's file cannot set anything for single folders: its effect must not depend on where it is used.
            projects=()
            if self.scope.contains(path)
            else tuple(str(folder) for folder in project_folders(self.directory, self.places.home)),
            expands=expands,
        )

    def _absolute(self, entry: str, folder: Path) -> Path:
        if entry == "~" or entry.startswith(("~/", "~\\")):
            return self.places.home / entry[2:]
        return folder / entry

    def _text(self, path: Path, *, severity: Severity) -> str | None:
        """Return the text of a file of the user's own; None if there is none."""
        content = self._content(path, _LARGEST, severity)
        return None if content is None else _decode_text(content)

    def _content(self, path: Path, limit: int, severity: Severity, *, is_regular: bool = False) -> bytes | None:
        """Return a file's bytes, or None. An existing file that cannot be read adds an issue.

        A file of a project, and one that a project's file names, is opened only if it is a regular file.
        """
        if path in self._contents:
            return self._contents[path]
        if path in self.replaced:
            return self.replaced[path]
        self.stamps[path] = stamp_of(path)
        content: bytes | None = None
        if self.stamps[path] is not None:
            try:
                is_regular = is_regular or self.scope.contains(path)
                if is_regular:
                    content = read_regular_file(path, limit)
                else:
                    # It may be a pipe, as a shell creates for `<(…)`.
                    with path.open("rb") as file:
                        content = file.read(limit)
                content.decode("utf-8")
            except UnicodeDecodeError:
                self._cannot_be_read(path, "it is not UTF-8", severity)
                content = None
            except (OSError, ValueError) as error:
                self._cannot_be_read(path, getattr(error, "strerror", None) or type(error).__name__, severity)
        self._contents[path] = content
        return content

    def _cannot_be_read(self, path: Path, why: str, severity: Severity) -> None:
        self.issues.append(Issue(severity=severity, message=f"cannot be read: {why}", file=str(path)))
        if not self.scope.contains(path):  # a project's file must not keep other changes from being taken over
            self.unread.append(str(path))


def pending_issue(pending: PendingFile) -> Issue:
    """Return the issue that reports a pending file to a person, wherever settings are read."""
    changed = "changed after you approved it" if pending.before is not None else "is not approved"
    rest = "the content approved before stays in use" if pending.is_running else "only its restrictions are in force"
    return Issue(
        severity="problem",
        message=f"this project file {changed}: {rest}",
        file=str(pending.path),
        key=PENDING_KEY,
        suggestion=f"review and approve it: {approve_command(pending.path)}",
    )


def _decode_text(content: bytes) -> str:
    """Return the text of a file, which `_content` has checked to be UTF-8."""
    return content.decode("utf-8-sig")


def _text_of(unit: Unit, path: Path) -> str | None:
    content = unit.contents.get(path)
    return None if content is None else _decode_text(content)


def _parse_document(content: bytes | None, *, is_toml: bool) -> Mapping[str, object]:
    """Return a file's document; an empty one if it cannot be parsed, which its layer reports."""
    try:
        text = _decode_text(content or b"")
        document: object = load_toml(text) if is_toml else parse_relaxed(text)
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, object]", document) if isinstance(document, dict) else {}


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in cast("Mapping[object, object]", value).items()}
    if isinstance(value, AbstractSet):
        return sorted(map(str, cast("AbstractSet[object]", value)))
    if isinstance(value, list | tuple):
        return [_plain(one) for one in cast("Sequence[object]", value)]
    return value
