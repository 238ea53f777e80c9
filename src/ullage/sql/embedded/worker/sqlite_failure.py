"""What does an error of SQLite mean to whoever asked?"""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from .failure import Failure

__all__ = ["failing_as_sqlite"]

_WAL = (
    "it is in write-ahead-log mode, and the -shm file beside it can be neither opened nor made; let its directory be "
    "written to, or leave that mode (PRAGMA journal_mode=DELETE)"
)
_OF_THE_FILE = {
    "SQLITE_CANTOPEN": "it cannot be opened",
    "SQLITE_CORRUPT": "it is damaged",
    "SQLITE_IOERR": "it cannot be read",
    "SQLITE_NOTADB": "it is not a SQLite database, or is encrypted",
    "SQLITE_PERM": "it may not be read",
    "SQLITE_READONLY_CANTINIT": _WAL,
    "SQLITE_READONLY_DIRECTORY": _WAL,
    "SQLITE_CANTOPEN_ISDIR": "it is a directory",
    "SQLITE_IOERR_SHMOPEN": _WAL,
    "SQLITE_IOERR_SHMSIZE": _WAL,
    "SQLITE_READONLY_RECOVERY": "a writer left it unfinished: let one that may write open it once",
    "SQLITE_READONLY_ROLLBACK": "a writer left it unfinished: let one that may write open it once",
}


@contextmanager
def failing_as_sqlite(path: str) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _failure(error, path) from error


def _failure(error: sqlite3.Error, path: str) -> Failure:
    code: str | None = getattr(error, "sqlite_errorname", None)
    if code == "SQLITE_INTERRUPT":
        return Failure("deadline", "time was up", code=code)
    if code in ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_BUSY_RECOVERY", "SQLITE_BUSY_SNAPSHOT"):
        return Failure("query", "the database is locked by another program; ask again when it has finished", code=code)
    if code == "SQLITE_NOMEM":
        return Failure("memory", "the question needs more memory than there is for one", code=code)
    if (why := _why(code, path)) is not None:
        return Failure("source", why, code=code)
    return Failure("query", str(error), code=code)


def _why(code: str | None, path: str) -> str | None:
    if code == "SQLITE_CANTOPEN" and _is_wal(path):
        return _WAL
    general = "_".join((code or "").split("_")[:2])
    return _OF_THE_FILE.get(code or "", _OF_THE_FILE.get(general))


def _is_wal(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib is not loaded here
            return file.read(20)[18:20] == b"\x02\x02"
    except OSError:
        return False
