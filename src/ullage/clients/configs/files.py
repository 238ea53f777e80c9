"""Reading and replacing of configuration files that belong to other programs.

A file is read without side effects, whatever is at its path. It is replaced only as a whole, in one step, and only
where it still has the content that was read before: a program that writes it meanwhile never loses its change. Links
are followed, so that the file they lead to is the one replaced; its mode stays.
"""

import contextlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

from .edits import EditRefused

__all__ = ["FileChanged", "hold_lock", "read_bytes", "remove_file", "replace_file"]

_LARGEST = 64 * 1024 * 1024
"""Bytes. Claude Code keeps a history in its file, which may have many."""
_LOCK_PATIENCE = 30.0
"""Seconds to wait for another Ullage that is just changing files."""


class FileChanged(EditRefused):
    """The file is not as it was when it was read."""


def read_bytes(path: str) -> bytes | None:
    """The content of a file; None where there is none.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger than 64 MiB.
    """
    try:
        # Without blocking: somebody may have put a pipe there.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise OSError(f"the path cannot be used: {error}") from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is not a regular file")
        content = file.read(_LARGEST + 1) if found.st_size <= _LARGEST else None
    if content is None or len(content) > _LARGEST:
        raise OSError("it is larger than 64 MiB")
    return content


def replace_file(path: str, before: bytes | None, after: bytes, *, new_mode: int = 0o600) -> None:
    """Replaces the content of a file in one step.

    Args:
        path: the file, or a link to it.
        before: its content as it was read; None where it was not there.
        after: its new content.
        new_mode: the mode of a file that was not there. An existing one keeps its own.

    Raises:
        FileChanged: it has another content now. Nothing was written.
        EditRefused: it is read-only. Nothing was written.
        OSError: it cannot be written: no space, no right. It is as it was.
    """
    target = os.path.realpath(path)
    if before is None:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
    _check_unchanged(target, before)
    mode = new_mode
    owner: tuple[int, int] | None = None
    if before is not None:
        found = os.stat(target)  # noqa: PTH116
        mode, owner = stat.S_IMODE(found.st_mode), (found.st_uid, found.st_gid)
        if not mode & 0o222:
            raise EditRefused(f"`{path}` is read-only")
    aside = _write_aside(target, after, mode, owner)
    try:
        _check_unchanged(target, before)
        if before is None:
            _link_new(aside, target)
        else:
            os.replace(aside, target)  # noqa: PTH105
    finally:
        with contextlib.suppress(OSError):
            os.unlink(aside)  # noqa: PTH108
    _sync_folder(target)


def remove_file(path: str, before: bytes) -> None:
    """Removes a file that still has this content.

    Raises:
        FileChanged: it has another one. Nothing was removed.
        OSError: it cannot be removed.
    """
    target = os.path.realpath(path)
    _check_unchanged(target, before)
    os.unlink(target)  # noqa: PTH108


def _check_unchanged(target: str, before: bytes | None) -> None:
    if read_bytes(target) != before:
        raise FileChanged(f"`{target}` was changed by another program meanwhile")


def _write_aside(target: str, content: bytes, mode: int, owner: tuple[int, int] | None) -> str:
    """A new file with this content beside the target."""
    descriptor, aside = tempfile.mkstemp(prefix=".ullage-", dir=os.path.dirname(target))  # noqa: PTH120
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
            if sys.platform != "win32":
                if owner is not None and owner != (os.geteuid(), os.getegid()):
                    # Another user's file, changed by root; where that is not allowed, it becomes this user's.
                    with contextlib.suppress(OSError):
                        os.fchown(descriptor, *owner)
                os.fchmod(descriptor, mode)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(aside)  # noqa: PTH108
        raise
    return aside


def _link_new(aside: str, target: str) -> None:
    """Puts a new file in its place, unless another one has come there."""
    try:
        os.link(aside, target)
    except FileExistsError as error:
        raise FileChanged(f"`{target}` was made by another program meanwhile") from error
    except OSError:
        # A file system without hard links.
        os.replace(aside, target)  # noqa: PTH105


def _sync_folder(target: str) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(os.path.dirname(target), os.O_RDONLY)  # noqa: PTH120
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def hold_lock(path: Path) -> Generator[None]:
    """Holds a lock that other processes of Ullage respect; the system releases it when its holder dies.

    Raises:
        OSError: the lock file cannot be made, or another process has held the lock for half a minute.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + _LOCK_PATIENCE
    try:
        while not _try_lock(descriptor):
            if time.monotonic() > until:
                raise OSError(f"another process holds `{path}`")
            time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
