"""Files that a caller names by path, inside folders that the user named.

A path is resolved first, links and all, and must then lie in a root; it is opened from that root part by part without
following a link, so that what is swapped between the check and the reading is not read. What ignore files name, what is
called like a secret or holds one, and what is too large is refused. An error names the path as it was asked for, and
never what a file holds.
"""

import base64
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ullage.errors import Denied, InvalidArguments, UnreadableFile

from .decoding import decode_text
from .patterns import Parts, Patterns
from .reading import Unread, open_below, read_lines
from .settings import EXCLUDED

__all__ = ["FileRoots", "Image"]

_IGNORE_FILES = (".gitignore", ".ignore", ".aiignore", ".aiexclude", ".cursorignore", ".geminiignore")
_LARGEST_IGNORE_FILE = 100_000
"""Bytes; a longer one is not read, and neither is what lies around it."""
_MOST_FILES = 50
_IMAGES: dict[str, re.Pattern[bytes]] = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}
_DATA_URI = re.compile(r"data:(image/[a-z]+);base64,([A-Za-z0-9+/=\s]+)")
_SECRETS = re.compile(
    rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
    rb"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    rb"|\bsk-(?:ant-|proj-|svcacct-)?[A-Za-z0-9_-]{32,}"
    rb"|\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_[A-Za-z0-9_]{50,}|\bglpat-[A-Za-z0-9_-]{20,}"
    rb"|\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"
    rb"|\bxox[abeprs]-[A-Za-z0-9-]{20,}|\bAIza[0-9A-Za-z_-]{35}\b|\bhf_[A-Za-z0-9]{30,}|\bnpm_[A-Za-z0-9]{36}\b"
)
"""Private keys, and keys of services that have a shape of their own."""
_EXCLUDED = Patterns(EXCLUDED, any_case=True)


@dataclass(frozen=True, slots=True)
class Image:
    media_type: str
    data: str
    """Base64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRoots:
    """The folders, as the user named them; what they lead to is looked up at each reading."""

    folders: tuple[Path, ...]
    max_bytes: int = 1_000_000
    """Of one text."""
    max_image_bytes: int = 5_000_000
    secrets: tuple[str, ...] = ()
    """Values that no file may hold, such as the providers' own keys."""

    def texts(self, paths: tuple[str, ...]) -> dict[str, str]:
        """The contents of files, by the path of each from its root; by the whole path where another root has the same.

        Args:
            paths: absolute, or from a root; of two roots that have it the first is meant.

        Raises:
            Denied: one lies outside the roots, is ignored, or is called like a secret or holds one.
            UnreadableFile: one is not there, is no text, or is larger than `max_bytes`.
            InvalidArguments: there are more than can be read at once.
        """
        _check_number(paths, "files")
        found, places = dict[str, str](), dict[str, Path]()
        for path in paths:
            place, name, content = self._read(path, self.max_bytes)
            text = decode_text(content)
            if text is None or "\0" in text:
                raise UnreadableFile(
                    f"`{path[:200]}` is no text in UTF-8",
                    suggestion="save it as UTF-8, or give the part that matters in the prompt; for images use `images`",
                )
            if text.encode("utf-8", "replace") != content:
                self._check_secrets(path, text.encode("utf-8", "replace"))
            if places.setdefault(name, place) != place:
                name = place.as_posix()
            found[name] = text
        return found

    def images(self, names: tuple[str, ...]) -> tuple[Image, ...]:
        """The same for images, each a path or a `data:` URI. What is no image by its first bytes is not handed on."""
        _check_number(names, "images")
        return tuple(self._image(name) for name in names)

    def _image(self, name: str) -> Image:
        given = _DATA_URI.fullmatch(name)
        if given is not None:
            try:
                content = base64.b64decode(given[2])
            except ValueError as error:
                raise InvalidArguments("an image is no base64", suggestion="give a path instead") from error
            name = "the image"
        else:
            _, _, content = self._read(name, self.max_image_bytes)
        kind = next((kind for kind, begins in _IMAGES.items() if begins.match(content)), None)
        if kind is None or len(content) > self.max_image_bytes:
            why = "is no image" if kind is None else f"has more than {self.max_image_bytes:,} bytes"
            raise UnreadableFile(f"`{name[:200]}` {why}", suggestion=f"give one of {', '.join(_IMAGES)}")
        return Image(kind, base64.b64encode(content).decode("ascii"))

    def _read(self, path: str, most: int) -> tuple[Path, str, bytes]:
        """Where a file lies, its path from its root, and what it holds."""
        root, parts = self._place(path)
        _check_name(path, parts)
        _check_ignored(path, root, parts)
        content = _content(path, root, parts, most)
        self._check_secrets(path, content)
        return root.joinpath(*parts), "/".join(parts), content

    def _check_secrets(self, path: str, content: bytes) -> None:
        if _SECRETS.search(content) or any(secret.encode() in content for secret in self.secrets if len(secret) > 5):
            raise Denied(
                f"`{path[:200]}` holds what looks like a key",
                suggestion="move the key out of the file, or give the part that matters in the prompt",
            )

    def _place(self, path: str) -> tuple[Path, Parts]:
        """The root that a file lies in once every link is followed, and its path from there."""
        roots = [Path(os.path.realpath(folder.expanduser())) for folder in self.folders]
        if "\0" in path or not path.strip():
            raise InvalidArguments("a path is empty or no text", suggestion="give paths inside the roots")
        asked = Path(path).expanduser() if path.startswith("~/") else Path(path)
        places = [Path(os.path.realpath(root / asked)) for root in roots]
        inside = [
            (root, place.relative_to(root).parts)
            for place in dict.fromkeys(places)
            for root in roots
            if place != root and place.is_relative_to(root)
        ]
        if not inside:
            raise Denied(
                f"`{path[:200]}` lies outside the folders that files may be read from",
                suggestion="give a path inside one of them; `ullage config --why` shows `delegate.file_roots`",
            )
        return next(((root, parts) for root, parts in inside if root.joinpath(*parts).is_file()), inside[0])


def _check_number(names: tuple[str, ...], argument: str) -> None:
    if len(names) > _MOST_FILES:
        raise InvalidArguments(f"`{argument}` has more than {_MOST_FILES}", suggestion="ask in several calls")


def _check_name(path: str, parts: Parts) -> None:
    asked = Path(path).parts
    for names in (parts, tuple(part for part in asked if part not in ("/", "..", "."))):
        if names and _covers(_EXCLUDED, names):
            raise Denied(
                f"`{path[:200]}` is called as secrets and machinery are, and is not read",
                suggestion="give the part that matters in the prompt, if it may be sent",
            )


def _covers(patterns: Patterns, parts: Parts) -> bool:
    """Whether a file, or a folder around it, is named; a later pattern may take a name back."""
    folders = (patterns.says(parts[:depth], is_folder=True) for depth in range(1, len(parts)))
    return any(folders) or bool(patterns.says(parts, is_folder=False))


def _check_ignored(path: str, root: Path, parts: Parts) -> None:
    """By the ignore files of every folder from the file's own up to its repository's, or to the root.

    The files of each name are read as Git reads its own: of those around a folder or a file the innermost that names it
    decides, and what lies in an ignored folder is ignored, whatever is said further in. What one name takes back, the
    others may still ignore. A file that cannot be read (a link, or too large) may say anything, so that nothing around
    it is read.
    """
    around = list(_around(root, parts))
    for name in _IGNORE_FILES:
        rules = list[tuple[Patterns, Parts]]()
        for folder, below in around:
            lines = read_lines(folder, (name,), _LARGEST_IGNORE_FILE)
            if not isinstance(lines, Unread):
                rules.append((Patterns(lines), below))
            elif os.path.lexists(folder / name) and ((folder / name).is_symlink() or not (folder / name).is_dir()):
                raise Denied(
                    f"`{path[:200]}` is not read, because a {name} around it cannot be read",
                    suggestion=f"make the {name} a plain text file of less than {_LARGEST_IGNORE_FILE:,} bytes",
                )
        if _is_ignored(rules):
            raise Denied(
                f"`{path[:200]}` is named in a {name}, and is not read",
                suggestion="give the part that matters in the prompt, if it may be sent",
            )


def _is_ignored(rules: Sequence[tuple[Patterns, Parts]]) -> bool:
    """Whether a file, or a folder that it lies in, is ignored; `rules` are the innermost first, each with the path from
    its folder to the file."""
    depth = max((len(below) for _, below in rules), default=0)
    for left in range(depth - 1, -1, -1):
        said = (
            patterns.says(below[: len(below) - left], is_folder=left > 0)
            for patterns, below in rules
            if len(below) > left
        )
        if next((one for one in said if one is not None), False):
            return True
    return False


def _around(root: Path, parts: Parts) -> Iterator[tuple[Path, Parts]]:
    """The folders around a file, the innermost first, each with the file's path from there."""
    for depth in range(len(parts) - 1, -1, -1):
        yield root.joinpath(*parts[:depth]), parts[depth:]
    above = parts
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return
        if not any((one / ".git").exists() for one in folder.parents):
            return
        above = (folder.name, *above)
        yield folder.parent, above


def _content(path: str, root: Path, parts: Parts, most: int) -> bytes:
    try:
        descriptor = open_below(root, parts)
    except (OSError, ValueError) as error:
        raise UnreadableFile(
            f"`{path[:200]}` cannot be read", suggestion="check the path, which begins at one of the roots"
        ) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnreadableFile(f"`{path[:200]}` is no plain file", suggestion="name the files in it one by one")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(most + 1)
    finally:
        os.close(descriptor)
    if len(content) > most:
        raise UnreadableFile(
            f"`{path[:200]}` has more than {most:,} bytes", suggestion="give the part that matters in the prompt"
        )
    return content
