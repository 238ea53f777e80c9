"""Databases behind a server: PostgreSQL, MySQL and any that SQLAlchemy reaches.

The URL's scheme decides which driver is needed; nothing is connected before the first statement.
"""

from collections.abc import Callable

from ullage.errors import BadConfiguration, UllageError
from ullage.options import DatabaseSettings

from ..database import Engine
from .database_pool import Address, NetworkEngine, Pool, Session

__all__ = ["network_engine", "warning"]

_FEWER_LOCKS = (
    "is of a kind that only some locks hold: statements are judged, rows and time are limited and everything is "
    "rolled back, but the database itself may not keep a statement from writing or running on; give it a role that "
    "may only read"
)


def network_engine(settings: DatabaseSettings) -> Engine:
    """Return the engine of a database behind a server."""
    address = Address.of(settings.url)
    pool = Pool(_opener(address), size=settings.limits.concurrency, shown=settings.name)
    return NetworkEngine(pool, dialect=address.dialect, limits=settings.limits)


def warning(settings: DatabaseSettings) -> str | None:
    """Return what the user must know of a database for which not every lock is in place; None if all are."""
    address = Address.of(settings.url)
    return f"`{settings.name}` ({address.shown}) {_FEWER_LOCKS}" if address.kind == "other" else None


def _opener(address: Address) -> Callable[[float], Session]:
    match address.kind:
        case "postgresql":
            try:
                from .postgresql import PostgreSQLSession
            except ImportError:
                raise _not_installed(address, "postgresql") from None
            return lambda seconds: PostgreSQLSession.open(address, seconds)
        case "mysql":
            try:
                from .mysql import MySQLSession
            except ImportError:
                raise _not_installed(address, "mysql") from None
            return lambda seconds: MySQLSession.open(address, seconds)
        case "other":
            from .any_database import OtherSession, open_engine

            engine = open_engine(address)
            return lambda seconds: OtherSession.open(engine, address)


def _not_installed(address: Address, extra: str) -> UllageError:
    return BadConfiguration(
        f"`{address.shown}` needs a driver that is not installed", suggestion=f"pip install 'ullage[{extra}]'"
    )
