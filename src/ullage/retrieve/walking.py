"""Which files lie in these folders?

Goes through the folders that the user named, in a stable order, and says which files are to be searched, with their
stamps. Follows no links, enters nothing that is excluded or ignored, and survives what vanishes meanwhile. What is in a
file, `reading` knows; the folders' own `.gitignore` files excepted.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from ullage.table import clean

from .patterns import Parts, Patterns
from .reading import Stamp, Unread, read_lines, stamp_of
from .settings import EXCLUDED, RetrieveSettings

__all__ = ["File", "Root", "Walk", "roots_of"]

_GITIGNORE = ".gitignore"
_LARGEST_GITIGNORE = 100_000
"""Bytes; a longer one is none."""

_Ignoring = tuple[tuple[int, Patterns], ...]
"""Of the folders around, each with how deep it lies, the innermost first."""


@dataclass(frozen=True, slots=True)
class Root:
    """A folder that the user named, or the one that a named file lies in."""

    folder: Path
    label: str
    """What stands before its paths; empty where it is the only one."""
    only: str | None = None
    """The named file."""


@dataclass(frozen=True, slots=True)
class File:
    path: str
    """As it is cited."""
    root: Root
    parts: Parts
    stamp: Stamp


def roots_of(settings: RetrieveSettings) -> tuple[Root, ...]:
    """What is named may be a link, since the user named it; it is cited as what it leads to. A link in a project that
    leads out of it is left out."""
    folders = [Path(os.path.realpath(path)) for path in settings.folders if not _leaves(path, settings.within)]
    files = [Path(os.path.realpath(path)) for path in settings.files if not _leaves(path, settings.within)]
    labels = _labels([*folders, *(path.parent for path in files)], settings.name)
    named = [Root(folder, labels[folder]) for folder in dict.fromkeys(folders)]
    return *named, *(Root(path.parent, labels[path.parent], path.name) for path in dict.fromkeys(files))


def _leaves(path: Path, project: Path | None) -> bool:
    """Whether a path in the project leads out of it."""
    if project is None or not Path(os.path.abspath(path)).is_relative_to(project):  # noqa: PTH100 - keeps links
        return False
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(project))


def _labels(folders: list[Path], instead: str) -> dict[Path, str]:
    """The folders' names, with a number where two have the same; nothing where there is only one."""
    labels: dict[Path, str] = {}
    for folder in dict.fromkeys(folders):
        name = folder.name or instead
        same = sum((other.name or instead) == name for other in labels)
        labels[folder] = f"{name}-{same + 1}" if same else name
    return labels if len(labels) > 1 else dict.fromkeys(labels, "")


@dataclass(slots=True)
class Walk:
    """One look at all the folders."""

    settings: RetrieveSettings
    roots: tuple[Root, ...]
    looked_at: int = 0
    """Names, in all folders together."""
    missing: list[str] = field(default_factory=list[str])
    """Named folders and files that cannot be read."""
    _excluded: Patterns = field(init=False)
    _included: Patterns = field(init=False)

    def __post_init__(self) -> None:
        self._excluded = Patterns((*EXCLUDED, *self.settings.exclude), any_case=True)
        self._included = Patterns(self.settings.include, any_case=True)

    @property
    def was_cut(self) -> bool:
        return self.looked_at >= self.settings.bounds.entries

    def files(self) -> Iterator[File | None]:
        """Each file once; None now and then, for a pause."""
        for root in self.roots:
            if root.only is None:
                yield from self._walked(root)
            else:
                yield self._named(root, root.only)

    def _named(self, root: Root, name: str) -> File | None:
        try:
            return File(_path(root, (name,)), root, (name,), stamp_of(os.lstat(root.folder / name)))
        except OSError:
            self.missing.append(name)
            return None

    def _walked(self, root: Root) -> Iterator[File | None]:
        waiting: list[tuple[Parts, _Ignoring]] = [((), ())]
        while waiting:
            parts, around = waiting.pop()
            entries = self._entries(root, parts)
            ignoring = self._ignoring(root, parts, entries, around)
            yield None
            inner: list[tuple[Parts, _Ignoring]] = []
            for entry in entries:
                found = self._judged(root, (*parts, entry.name), entry, ignoring)
                if isinstance(found, File):
                    yield found
                elif found:
                    inner.append(((*parts, entry.name), ignoring))
            waiting += reversed(inner)

    def _entries(self, root: Root, parts: Parts) -> list[os.DirEntry[str]]:
        room = max(0, self.settings.bounds.entries - self.looked_at)
        try:
            with os.scandir(root.folder.joinpath(*parts)) as scan:
                entries = list(islice(scan, room))
        except OSError:
            if not parts:
                self.missing.append(root.label or root.folder.name)
            return []
        self.looked_at += len(entries)
        return sorted((entry for entry in entries if _is_sayable(entry.name)), key=lambda entry: entry.name)

    def _ignoring(self, root: Root, parts: Parts, entries: list[os.DirEntry[str]], around: _Ignoring) -> _Ignoring:
        if not self.settings.gitignore or all(entry.name != _GITIGNORE for entry in entries):
            return around
        lines = read_lines(root.folder, (*parts, _GITIGNORE), _LARGEST_GITIGNORE)
        return around if isinstance(lines, Unread) else ((len(parts), Patterns(lines)), *around)

    def _judged(self, root: Root, parts: Parts, entry: os.DirEntry[str], ignoring: _Ignoring) -> File | bool:
        """A file to be searched, or whether it is a folder to be entered."""
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not entry.is_file(follow_symlinks=False):
                return False
            if self._excluded.says(parts, is_folder=is_folder) or _is_ignored(parts, ignoring, is_folder=is_folder):
                return False
            if is_folder:
                return True
            status = entry.stat(follow_symlinks=False)
        except OSError:
            return False
        wanted = status.st_size and (not self._included or self._included.covers(parts))
        return File(_path(root, parts), root, parts, stamp_of(status)) if wanted else False


def _is_ignored(parts: Parts, ignoring: _Ignoring, *, is_folder: bool) -> bool:
    for depth, patterns in ignoring:
        said = patterns.says(parts[depth:], is_folder=is_folder)
        if said is not None:
            return said
    return False


def _is_sayable(name: str) -> bool:
    """A name that is not text, or hides some of itself, is no citation."""
    return clean(name).text == name and "\n" not in name and "\t" not in name


def _path(root: Root, parts: Parts) -> str:
    return "/".join((root.label, *parts) if root.label else parts)
