"""Which file operations does a session need?

Every one of them goes through here, in steps as small as the operating system's, so that a test can stop between any
two of them and lose what a failing machine may lose. What they are for, others know.
"""

import contextlib
import os
from collections.abc import Generator
from dataclasses import dataclass
from errno import ENOSPC
from pathlib import Path

from .lock import PATIENCE, locked

__all__ = ["Files", "Stamp", "put"]

_MODE = 0o600
_FOLDER_MODE = 0o700
_BINARY = getattr(os, "O_BINARY", 0)
"""Windows' own; without it, line breaks would be changed there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Tells whether a file is still the one that was read."""

    device: int
    inode: int
    size: int
    changed: int
    """Nanoseconds, as the file system keeps them."""
    mode: int

    @property
    def identity(self) -> tuple[int, int]:
        """Which file it is, whatever stands in it."""
        return self.device, self.inode


class Files:
    """The disk as it is."""

    def stamp(self, path: Path) -> Stamp | None:
        """None where there is no such file."""
        try:
            return _stamp(path.stat())
        except FileNotFoundError:
            return None

    def read(self, path: Path, start: int = 0) -> tuple[bytes, Stamp]:
        """What stands there from a place on, and in which file that was."""
        with path.open("rb") as file:
            file.seek(start)
            data = file.read()
            return data, _stamp(os.fstat(file.fileno()), size=start + len(data))

    def names(self, folder: Path) -> tuple[str, ...]:
        """Of what lies in it; none where there is no such folder."""
        try:
            return tuple(sorted(os.listdir(folder)))  # noqa: PTH208 - names, not paths
        except FileNotFoundError:
            return ()

    def make_folder(self, path: Path) -> None:
        """One that is there is no error; the folder around it must be."""
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=_FOLDER_MODE)

    def create(self, path: Path, data: bytes, mode: int = _MODE) -> None:
        """A file that must not be there yet, seen by nobody else."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, _MODE)
        with contextlib.closing(os.fdopen(descriptor, "wb", buffering=0)) as file:
            _write_all(file.fileno(), data)
            if mode != _MODE:
                path.chmod(mode)

    def append(self, path: Path, data: bytes, size: int) -> None:
        """All of it in one write behind the first `size` bytes, or nothing."""
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | _BINARY)
        try:
            if os.write(descriptor, data) != len(data):
                os.ftruncate(descriptor, size)
                raise OSError(ENOSPC, os.strerror(ENOSPC))
        finally:
            os.close(descriptor)

    def sync(self, path: Path) -> None:
        """Returns when what was written to the file would survive a power cut."""
        descriptor = os.open(path, os.O_RDWR | _BINARY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_folder(self, path: Path) -> None:
        """The same for the names in a folder; Windows knows no such thing."""
        if os.name == "nt":
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def replace(self, source: Path, target: Path) -> None:
        """From one moment to the next."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """One that is not there is no error."""
        path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def locked(self, path: Path) -> Generator[None]:
        """Holds everybody else off who asks for the same lock."""
        with locked(path, PATIENCE):
            yield


def put(files: Files, path: Path, data: bytes, mode: int = _MODE) -> None:
    """The file is what it was, or has these bytes and nothing else, whenever the machine stops.

    Returns when it would survive a power cut. For whoever holds the lock.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    files.remove(temporary)
    try:
        files.create(temporary, data, mode)
        files.sync(temporary)
        files.replace(temporary, path)
    except OSError:
        files.remove(temporary)
        raise
    files.sync_folder(path.parent)


def _stamp(found: os.stat_result, size: int | None = None) -> Stamp:
    return Stamp(
        device=found.st_dev,
        inode=found.st_ino,
        size=found.st_size if size is None else size,
        changed=found.st_mtime_ns,
        mode=found.st_mode & 0o777,
    )


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
