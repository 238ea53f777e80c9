"""Which database is meant?

A path or a URL becomes an `Address`: a SQLite file, or a PostgreSQL server. Its secrets stay in `url`; `shown` is what
may be said of it. Nothing is opened here.
"""

from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from ullage.errors import BadConfiguration

__all__ = ["Address", "read_url"]

_ACCEPTED = ("a path", "sqlite:///path", "postgresql://user@host/database")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    url: URL = field(repr=False)
    """Whole, with its password."""
    shown: str
    """For people: no password, no query."""
    path: Path | None = None
    """The file, for SQLite."""

    @classmethod
    def of(cls, where: str | Path) -> "Address":
        if isinstance(where, Path) or "://" not in where:
            return _file(Path(where))
        url = read_url(where, _ACCEPTED)
        match url.get_backend_name():
            case "sqlite" if url.database and url.database != ":memory:":
                return _file(Path(url.database))
            case "postgresql" | "postgres":
                return _server(url.set(drivername="postgresql+psycopg"))
            case other:
                raise BadConfiguration(f"`{other}` is no database to keep things in", options=_ACCEPTED)


def read_url(where: str, accepted: tuple[str, ...]) -> URL:
    """Raises `BadConfiguration` for what is no URL, with those that would do."""
    try:
        return make_url(where)
    except (ArgumentError, ValueError):
        # The cause is dropped: it may quote a part of the URL, and so of the password.
        raise BadConfiguration(
            "the database's URL cannot be read as one",
            suggestion="Write special characters of its password as %xx.",
            options=accepted,
        ) from None


def _file(path: Path) -> Address:
    path = path.expanduser().absolute()
    return Address(url=URL.create("sqlite+pysqlite", database=str(path)), shown=str(path), path=path)


def _server(url: URL) -> Address:
    shown = URL.create("postgresql", host=url.host, port=url.port, database=url.database)
    return Address(url=url, shown=shown.render_as_string())
