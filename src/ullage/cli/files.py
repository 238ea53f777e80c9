"""Which texts does a person mean by these paths?

Files are texts, folders are trees of texts, `-` is standard input. Whether a file is text is told from its bytes.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ullage.errors import UnreadableFile

__all__ = ["STDIN", "Found", "find_files", "read_text"]

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Found:
    """A file below a folder, or one that was named itself."""

    path: Path
    size: int


def find_files(folder: Path) -> Iterator[Found]:
    """Every file below a folder in the order of its names; hidden entries and links are left out."""
    for entry in sorted(folder.iterdir(), key=lambda path: (path.is_file(), path.name)):
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        if entry.is_dir():
            yield from find_files(entry)
        elif entry.is_file():
            yield Found(entry, entry.stat().st_size)


def read_text(path: Path) -> str:
    """A file's text, or `UnreadableFile` where it has none."""
    data = sys.stdin.buffer.read() if str(path) == STDIN else _read_bytes(path)
    if b"\0" in data[:8192]:
        raise UnreadableFile(f"`{path}` is not text", suggestion="only text has tokens that can be counted here")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableFile(
            f"`{path}` is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}",
            suggestion="convert it first, for example with iconv -t utf-8",
        ) from error


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableFile(
            f"`{path}` cannot be read: {error.strerror}", suggestion="check the path and its permissions"
        ) from error
