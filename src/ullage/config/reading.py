"""Which files hold settings, and what stands in them?

Looks for them, reads their texts and hands these to the readers. Besides the tokens of `loading`, this is the only
place of the room where files are opened.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from .codex_toml import read_codex_toml
from .delegation import Delegation
from .issue import Issue, Severity
from .layer import Layer
from .mcp_json import read_mcp_json
from .page import Page
from .places import Places, project_files, project_folders
from .policies import FILES, joined, of_files
from .stamp import Stamp, stamp_of
from .ullage_toml import read_ullage_toml

__all__ = ["Reading"]

_LARGEST = 64 * 1024 * 1024
"""No settings file has more bytes; Claude Code keeps a history in its own, which may have many."""


@dataclass(slots=True)
class Reading:
    """One pass over the files."""

    environment: Mapping[str, str] = field(repr=False)
    directory: Path
    places: Places
    stamps: dict[Path, Stamp | None] = field(default_factory=dict[Path, "Stamp | None"])
    issues: list[Issue] = field(default_factory=list[Issue])
    unread: list[str] = field(default_factory=list[str])

    def own_files(self, named: Path | None) -> Iterator[Layer]:
        """The one file that was named, or else the project's and the user's."""
        if named is not None:
            path = self._absolute(str(named), self.directory)
            text = self._text(path, severity="error")
            if text is None and stamp_of(path) is None:
                self.issues.append(Issue(severity="error", message="the settings file is not there", file=str(path)))
            yield from self._own(path, text)
            return
        for path in dict.fromkeys((*self._project_file(), self.places.user_file)):
            is_project = path != self.places.user_file
            yield from self._own(path, self._text(path, severity="error"), is_project=is_project)

    def _project_file(self) -> Iterator[Path]:
        """The innermost one that is there and may be trusted."""
        for path, is_trusted in project_files(self.directory, self.places):
            self.stamps[path] = stamp_of(path)
            if not is_trusted:
                said = "belongs to another user and is not read"
                self.issues.append(Issue(severity="problem", message=said, file=str(path)))
            elif self.stamps[path] is not None:
                yield path
                return

    def _own(self, path: Path, text: str | None, *, is_project: bool = False) -> Iterator[Layer]:
        if text is not None:
            layer = read_ullage_toml(self._page(path, text, self.environment))
            yield replace(layer, is_project=is_project)

    def with_policies(self, own: Sequence[Layer], *, is_named: bool) -> Iterator[Layer]:
        """The same with the policies that stand in folders: the one a file names, else that of the project."""
        layers = [self._with_named(layer) for layer in own]
        # One file that was named is read instead of the project's, and stands above what lies in a folder.
        above = len(layers) if is_named else sum(layer.is_project for layer in layers)
        folders = [Path(layer.source).parent for layer in layers if layer.is_project]
        yield from layers[:above]
        if not any(layer.delegation.policy for layer in layers[:above]):
            yield from self._in_project(dict.fromkeys((*folders, self.directory)))
        yield from layers[above:]

    def _with_named(self, layer: Layer) -> Layer:
        if layer.delegation.conf is None:
            return layer
        files = self._policy_files(Path(layer.delegation.conf))
        if files is None:
            message = f"`conf` has not both {' and '.join(f'`{name}`' for name in FILES)}"
            return replace(layer, issues=(*layer.issues, _conf_error(message, layer.source)))
        documents, issues = of_files(*files)
        policy = joined(layer.delegation.policy, documents)
        return replace(layer, delegation=replace(layer.delegation, policy=policy), issues=(*layer.issues, *issues))

    def _in_project(self, folders: Iterable[Path]) -> Iterator[Layer]:
        """The first folder `conf` that holds both files."""
        for folder in folders:
            files = self._policy_files(folder / "conf")
            if files is not None:
                documents, issues = of_files(*files)
                delegation = Delegation(is_mentioned=True, policy=documents)
                yield Layer(source=str(folder / "conf"), delegation=delegation, issues=issues, is_project=True)
                return

    def _policy_files(self, folder: Path) -> tuple[Page, Page] | None:
        paths = [folder / name for name in FILES]
        texts = [self._text(path, severity="error") for path in paths]
        pages = [self._page(path, text, {}) for path, text in zip(paths, texts, strict=True) if text is not None]
        return (pages[0], pages[1]) if len(pages) == len(FILES) else None

    def foreign_files(self, own: Sequence[Layer], flagged: Sequence[Path]) -> Iterator[Layer]:
        """What flags and settings include, in their order, each file once."""
        spoken = (self._absolute(str(file), self.directory) for file in flagged)
        named = (self._absolute(entry, Path(layer.source).parent) for layer in own for entry in layer.include)
        for path in dict.fromkeys((*spoken, *named)):
            text = self._text(path, severity="problem")
            if text is not None:
                layer = self._foreign(path, text)
                if layer.is_unread:
                    self.unread.append(str(path))
                yield layer
            elif str(path) not in self.unread:
                self.issues.append(Issue(severity="problem", message="the included file is not there", file=str(path)))

    def _foreign(self, path: Path, text: str) -> Layer:
        folder = path.parent
        workspace = folder.parent if folder.name.startswith(".") else self.directory
        known = {"workspaceFolder": str(workspace), "userHome": str(self.places.home)}
        page = self._page(path, text, {**known, **self.environment})
        return read_codex_toml(page) if path.suffix == ".toml" else read_mcp_json(page)

    def _page(self, path: Path, text: str, environment: Mapping[str, str]) -> Page:
        return Page(
            file=str(path),
            text=text,
            environment=environment,
            absolute=lambda entry: str(self._absolute(entry, path.parent)),
            projects=tuple(str(folder) for folder in project_folders(self.directory, self.places.home)),
        )

    def _absolute(self, entry: str, folder: Path) -> Path:
        if entry == "~" or entry.startswith(("~/", "~\\")):
            return self.places.home / entry[2:]
        return folder / entry

    def _text(self, path: Path, *, severity: Severity) -> str | None:
        """The file's text; None where there is none, with an issue where there is a file all the same."""
        self.stamps[path] = stamp_of(path)
        if self.stamps[path] is None:
            return None
        try:
            with path.open("rb") as file:
                content = file.read(_LARGEST)
            return content.decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            self.issues.append(Issue(severity=severity, message=f"cannot be read: {why}", file=str(path)))
            self.unread.append(str(path))
            return None


def _conf_error(message: str, source: str) -> Issue:
    return Issue(severity="error", message=message, file=source, key="delegate.conf", suggestion="check the folder")
