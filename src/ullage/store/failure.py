"""What went wrong with the database, and what can be done about it?

Every error of a driver becomes one `StoreFailed` that names the place and the remedy. Nothing is retried here.
"""

import sqlite3
import sys
from collections.abc import Generator
from contextlib import contextmanager

from ullage.errors import StoreFailed

from .address import Address

__all__ = ["failing_as_store"]

_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_HELD = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_CLOSED = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)


@contextmanager
def failing_as_store(address: Address) -> Generator[None]:
    try:
        yield
    except Exception as error:
        cause = _cause_of(error)
        if cause is None:
            raise
        raise StoreFailed(
            f"the database `{address.shown}` failed: {_first_line(cause)}", suggestion=_remedy(address, cause)
        ) from error


def _cause_of(error: Exception) -> BaseException | None:
    """The driver's own error; None for one that is not the database's. SQLAlchemy raises nothing before it is
    imported, which it is for PostgreSQL alone."""
    if isinstance(error, sqlite3.Error | OSError):
        return error
    if "sqlalchemy" not in sys.modules:
        return None
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError

    if isinstance(error, DBAPIError) and error.orig is not None:
        return error.orig
    return error if isinstance(error, SQLAlchemyError) else None


def _first_line(cause: BaseException) -> str:
    """Drivers add the statement or a stack of hints below it."""
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]


def _remedy(address: Address, cause: BaseException) -> str:
    if address.path is None:
        return "Check that the PostgreSQL server answers and that its URL, user and password are right."
    # The low byte of SQLite's code is the kind; the rest says where in SQLite it arose.
    kind = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_CANTOPEN) & 0xFF
    if kind in _BROKEN:
        return f"Move it away (`mv '{address.path}' '{address.path}.broken'`) and restart: a new one is made."
    if kind in _HELD:
        return f"Another process holds it for too long; `fuser '{address.path}'` names it."
    if kind == sqlite3.SQLITE_FULL:
        return "Make room on the disk."
    if kind in _CLOSED:
        return "Check that its folder and file may be read and written, or name another place in the settings."
    return "Restart; if it happens again, move the file away."
