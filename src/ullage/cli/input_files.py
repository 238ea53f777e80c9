"""Reads the texts of the paths on a command line.

A file is a text, a folder is a tree of texts, and `-` is standard input. Whether a file is text is determined from its
bytes.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ullage.errors import UnreadableFile

__all__ = [
    "STDIN",
    "Found",
    "find_files",
    "is_folder",
    "is_watched_input",
    "read_standard_input",
    "read_text",
    "size_of",
]

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Found:
    """A file below a folder, or one that was named itself."""

    path: Path
    size: int


def is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # the name is too long, or not valid in any file system
        return False


def size_of(path: Path) -> int:
    """Return the bytes of a file; 0 if it is not a file."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except (OSError, ValueError):
        return 0


def find_files(folder: Path, skipped: list[str]) -> Iterator[Found]:
    """Yield every file below a folder, ordered by name. Hidden entries and links are left out, and what cannot be
    opened is added to `skipped`. A folder that cannot be opened itself is an error, because its size is unknown."""
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        try:
            if path.is_dir():
                waiting += sorted(
                    (entry for entry in path.iterdir() if not entry.name.startswith(".") and not entry.is_symlink()),
                    key=lambda entry: (entry.is_file(), entry.name),
                    reverse=True,
                )
            elif path.is_file():
                yield Found(path, path.stat().st_size)
        except OSError as error:
            if path == folder:
                raise _unreadable(path, error) from error
            skipped.append(str(path))


def read_text(path: Path) -> str:
    """Return a file's text.

    Raises:
        UnreadableFile: The file has none.
    """
    return _decode_text(_read_bytes(path), str(path))


def is_watched_input() -> bool:
    """Return whether standard input is a terminal. If it is closed (`<&-`), Python has None in its place."""
    return sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison]


def read_standard_input() -> str:
    """Return the text of standard input.

    Raises:
        UnreadableFile: Its bytes are not text.
    """
    return _decode_text(_input().buffer.read(), STDIN)


def read_piped() -> str:
    """Return what was typed or piped, in the encoding of the terminal."""
    return _input().read()


def _input() -> TextIO:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise UnreadableFile("standard input is closed", suggestion="name a file, or pipe a text in")
    return sys.stdin


def _decode_text(data: bytes, name: str) -> str:
    if b"\0" in data[:8192]:
        raise UnreadableFile(f"`{name}` is not text", suggestion="only text has tokens that can be counted here")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableFile(
            f"`{name}` is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}",
            suggestion="convert it first, for example with iconv -t utf-8",
        ) from error


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    except ValueError as error:
        raise UnreadableFile(f"`{path}` is not a path: {error}") from error


def _unreadable(path: Path, error: OSError) -> UnreadableFile:
    return UnreadableFile(f"`{path}` cannot be read: {error.strerror}", suggestion="check the path and its permissions")
