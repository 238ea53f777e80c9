"""Who may write now?

An advisory lock on a file of its own, held for as long as one write or one swap takes. The kernel lets go of it when
its holder dies, however that dies. It is opened anew each time, so that a child of the process inherits none that is
not just held.

The branch for Windows is written by the book and untested.
"""

import contextlib
import os
import sys
import time
from collections.abc import Generator
from errno import EACCES, EAGAIN, EDEADLK, ETIMEDOUT
from pathlib import Path

__all__ = ["PATIENCE", "locked"]

PATIENCE = 30.0
"""Seconds; a swap of a very large file takes a few."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.000_2, 0.002
"""Seconds between two tries. Short, or somebody who writes all the time would leave no gap that is met."""
_BUSY = (EACCES, EAGAIN, EDEADLK)


@contextlib.contextmanager
def locked(path: Path, patience: float) -> Generator[None]:
    """Raises `TimeoutError` where somebody else holds it for longer than that."""
    descriptor = _held(path, time.monotonic() + patience)
    try:
        yield
    finally:
        os.close(descriptor)


def _held(path: Path, until: float) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _wait(descriptor, until)
            if _is_still(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _wait(descriptor: int, until: float) -> None:
    pause = _FIRST_PAUSE
    while not _taken(descriptor):
        if time.monotonic() > until:
            raise TimeoutError(ETIMEDOUT, "another process holds the lock")
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _is_still(descriptor: int, path: Path) -> bool:
    """Whether others find the same file there: somebody may have tidied it away while we waited."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _taken(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno not in _BUSY:
                raise
            return False
        return True

else:
    import fcntl

    def _taken(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _BUSY:
                raise
            return False
        return True
