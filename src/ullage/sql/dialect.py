"""Which SQL does a database speak?

Told by its URL's scheme, or for a path by what the file is and what it is called. Nothing is opened but a file's first
bytes.
"""

import re
from pathlib import Path
from typing import Literal

from ullage.errors import BadConfiguration
from ullage.options import SAMPLE, DatabaseSettings

from .engine import Dialect

__all__ = ["dialect_of", "file_of", "served_dialect"]

_URL = re.compile(r"(?P<scheme>\w+)(?:\+\w+)?://(?P<path>/[^?]*)?.*", re.DOTALL)
_SERVED: dict[str, Dialect] = {"mysql": "mysql", "mariadb": "mysql", "mssql": "tsql", "oracle": "oracle"}
_SUFFIXES: dict[str, Literal["sqlite", "duckdb"]] = {
    ".db": "sqlite",
    ".db3": "sqlite",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".duckdb": "duckdb",
    ".ddb": "duckdb",
}
_SQLITE, _DUCKDB = b"SQLite format 3\x00", b"DUCK"

DatabaseFile = tuple[Path, Literal["sqlite", "duckdb"]]


def dialect_of(settings: DatabaseSettings) -> Dialect:
    if settings.url == SAMPLE:
        return "sqlite"
    file = file_of(settings)
    if file is not None:
        return file[1]
    url = _URL.fullmatch(settings.url)
    return "postgres" if url is None else served_dialect(url["scheme"])


def served_dialect(scheme: str) -> Dialect:
    """Of a server, by its URL's scheme; one of a kind that is not known is judged as PostgreSQL is."""
    return _SERVED.get(scheme.lower(), "postgres")


def file_of(settings: DatabaseSettings) -> DatabaseFile | None:
    """The file and its kind, None where it is a server's database; raises for what is neither."""
    url = _URL.fullmatch(settings.url)
    if url is None:
        path = _named(settings, settings.url)
        return path, _kind(settings, path)
    match url["scheme"].lower():
        case "sqlite" | "duckdb" as kind:
            return _named(settings, (url["path"] or "")[1:]), kind
        case _:
            return None


def _named(settings: DatabaseSettings, path: str) -> Path:
    if path in ("", ":memory:"):
        raise BadConfiguration(
            f"database `{settings.name}` names no file", suggestion="give the path of a database that exists"
        )
    return Path(path).expanduser()


def _kind(settings: DatabaseSettings, path: Path) -> Literal["sqlite", "duckdb"]:
    """A file's first bytes tell, whatever it is called: many a `.db` is DuckDB's."""
    first = _first_bytes(path)
    if first.startswith(_SQLITE):
        return "sqlite"
    if first[8:12] == _DUCKDB:
        return "duckdb"
    kind = _SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise BadConfiguration(
            f"database `{settings.name}` is neither a URL nor a file of SQLite or DuckDB",
            suggestion="write a URL such as postgresql://user@host/name, or the path of a database file",
            options=tuple(_SUFFIXES),
        )
    return kind


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(16)
    except OSError:
        return b""
