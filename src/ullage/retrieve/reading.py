"""What is in this file, if it is one that may be read?

Opens files below a folder without leaving it: every part of the path is opened by its name in the folder before, and a
link is not followed, so that what is swapped between a look and the reading is not read either. What is no plain file
(a pipe, a device, a socket) is not waited for.
"""

import os
import stat
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from .decoding import HEAD, is_binary, lines_of
from .patterns import Parts

__all__ = ["Stamp", "Unread", "open_below", "read_lines", "stamp_of"]

_DESCENDS = os.open in os.supports_dir_fd
"""Whether a file can be opened by its name in an open folder; not so on Windows."""
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_PLAIN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class Stamp:
    """Equal stamps mean an equal file, as far as can be known without reading it."""

    modified: int
    """In nanoseconds, as is `touched`."""
    touched: int
    size: int
    inode: int


class Unread(Enum):
    """Why a file has no lines to be searched."""

    UNREADABLE = "unreadable"
    """Or gone, or no plain file, or behind a link."""
    BINARY = "binary"
    LARGE = "large"


def stamp_of(status: os.stat_result) -> Stamp:
    return Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def read_lines(folder: Path, parts: Parts, most: int) -> list[str] | Unread:
    """The lines of a file below a folder that has at most so many bytes; never raises."""
    try:
        content = _content(folder, parts, most)
    except (OSError, ValueError):
        return Unread.UNREADABLE
    if isinstance(content, Unread):
        return content
    return Unread.LARGE if len(content) > most else lines_of(content)


def _content(folder: Path, parts: Parts, most: int) -> bytes | Unread:
    """At most a byte more than may be."""
    descriptor = open_below(folder, parts)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return Unread.UNREADABLE
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            head = file.read(HEAD)
            return Unread.BINARY if is_binary(head) else head + file.read(max(0, most + 1 - len(head)))
    finally:
        os.close(descriptor)


def open_below(folder: Path, parts: Parts) -> int:
    """A descriptor of a file below a folder, reached without following a link; raises `OSError`."""
    return _opened(folder, parts) if _DESCENDS else opened_plainly(folder, parts)


def _opened(folder: Path, parts: Parts) -> int:
    at = os.open(folder, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER | _NO_LINK, dir_fd=at)
            os.close(at)
            at = inner
        return os.open(parts[-1], _PLAIN | _NO_LINK, dir_fd=at)
    finally:
        os.close(at)


def opened_plainly(folder: Path, parts: Parts) -> int:
    """Where folders cannot be held open: a path that leads elsewhere than it says is not opened."""
    path = Path(os.path.realpath(folder)).joinpath(*parts)
    if os.path.realpath(path) != str(path):
        raise PermissionError(path)
    return os.open(path, _PLAIN)
