"""Which database is meant?

A path or a URL becomes an `Address`: a SQLite file, or a PostgreSQL server. Its secrets stay in `url`; `shown` is what
may be said of it. Nothing is opened here.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ullage.errors import BadConfiguration

if TYPE_CHECKING:
    from sqlalchemy import URL

__all__ = ["Address", "read_url"]

_FILE = "sqlite:///"
_ACCEPTED = ("a path", "sqlite:///path", "postgresql://user@host/database")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    shown: str
    """For people: no password, no query."""
    url: "URL | None" = field(default=None, repr=False)
    """Whole, with its password; None for a file."""
    path: Path | None = None
    """The file, for SQLite."""

    @classmethod
    def of(cls, where: str | Path) -> "Address":
        if isinstance(where, Path) or "://" not in where:
            return _file(Path(where))
        if where.startswith(_FILE) and "?" not in where and where not in (_FILE, f"{_FILE}:memory:"):
            return _file(Path(where.removeprefix(_FILE)))  # without SQLAlchemy, which takes long to import
        url = read_url(where, _ACCEPTED)
        match url.get_backend_name():
            case "sqlite" if url.database and url.database != ":memory:":
                return _file(Path(url.database))
            case "postgresql" | "postgres":
                return _server(url.set(drivername="postgresql+psycopg"))
            case other:
                raise BadConfiguration(f"`{other}` is no database to keep things in", options=_ACCEPTED)


def read_url(where: str, accepted: tuple[str, ...]) -> "URL":
    """Raises `BadConfiguration` for what is no URL, with those that would do."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

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
    return Address(shown=str(path), path=path)


def _server(url: "URL") -> Address:
    from sqlalchemy import URL

    shown = URL.create("postgresql", host=url.host, port=url.port, database=url.database)
    return Address(url=url, shown=shown.render_as_string())
