"""How does the sample shop become a file?

Made on first use where the caller wants it, whole or not at all: a file of another name is written and then renamed,
so that whoever opens it meanwhile sees the old one or the new one. One of an earlier edition is replaced.
"""

import contextlib
import os
import sqlite3
import tempfile
from itertools import groupby
from pathlib import Path

from ullage.errors import SourceFailed

from .shop import AFTERWARDS, EDITION, TABLES, rows

__all__ = ["make_sample"]

_APPLICATION = 0x756C6C67
"""SQLite keeps it in the file's header, so that no file of anybody else's is taken for the shop."""


def make_sample(path: Path) -> Path:
    """The shop's file, made where it is not there yet."""
    application, edition = _marks(path)
    if (application, edition) == (_APPLICATION, EDITION):
        return path
    if path.exists() and application != _APPLICATION:
        raise SourceFailed(
            f"`{path.name}` lies where the sample shop would, and is not it",
            suggestion="move that file away, or name a database in the settings",
        )
    try:
        _written(path)
    except (OSError, sqlite3.Error) as error:
        raise SourceFailed(
            f"the sample shop cannot be written: {error}", suggestion="see that its folder can be written to"
        ) from error
    return path


def _written(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    try:
        _fill(name)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def _fill(name: str) -> None:
    with contextlib.closing(sqlite3.connect(name)) as connection:
        connection.executescript(TABLES)
        for table, group in groupby(rows(), key=lambda one: one[0]):
            values = [row for _, row in group]
            places = ", ".join("?" * len(values[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({places})", values)
        connection.commit()
        connection.executescript(AFTERWARDS)
        connection.execute("ANALYZE")
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {EDITION}")
        connection.commit()


def _marks(path: Path) -> tuple[int, int]:
    """Whose file it is, and of which edition; (0, 0) where there is none that can be read."""
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
            read = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
    except sqlite3.Error:
        return 0, 0
    return read[0], read[1]
