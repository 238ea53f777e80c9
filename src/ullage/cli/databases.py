"""Is this database well, are these folders there, and what should the user know of them?

Asks a database once, as an agent would reach it. What to do about a role that can write, its own sentence says. Of
folders it is only seen whether they exist.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import anyio

from ullage.app.gateway import Gateway
from ullage.config import Folders
from ullage.errors import UllageError
from ullage.sql import DIALECTS, DatabaseSettings, dialect_of
from ullage.tool import Json

from .output import bold, dim, green, red
from .wording import how_many

__all__ = [
    "FoundDatabase",
    "FoundFolders",
    "database_json",
    "database_lines",
    "look_at_databases",
    "look_at_folders",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDatabase:
    """What came of looking at one."""

    settings: DatabaseSettings
    warnings: Sequence[str] = ()
    error: UllageError | None = None

    @property
    def is_well(self) -> bool:
        return self.error is None


async def look_at_databases(gateway: Gateway, databases: Sequence[DatabaseSettings]) -> list[FoundDatabase]:
    found: dict[str, FoundDatabase] = {}

    async def one(database: DatabaseSettings) -> None:
        try:
            warnings = await gateway.databases[database.name].warnings()
            found[database.name] = FoundDatabase(settings=database, warnings=warnings)
        except UllageError as error:
            found[database.name] = FoundDatabase(settings=database, error=error)

    async with anyio.create_task_group() as tasks:
        for database in databases:
            tasks.start_soon(one, database)
    return [found[database.name] for database in databases]


def database_lines(one: FoundDatabase) -> list[str]:
    name = bold(one.settings.name)
    if one.error is not None:
        return [
            f"{name}  {red('fails')}: {one.error.message}",
            *([f"  {hint}"] if (hint := one.error.suggestion) else []),
        ]
    spoken = DIALECTS[dialect_of(one.settings)]
    return [f"{name}  {green('well')}: {spoken} database", *(f"  {dim('note')}  {said}" for said in one.warnings)]


def database_json(one: FoundDatabase) -> dict[str, Json]:
    return {
        "database": one.settings.name,
        "came_from": one.settings.came_from,
        "notes": list(one.warnings),
        "error": None if one.error is None else cast("dict[str, Json]", dict(one.error.wire())),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFolders:
    """What came of looking at one collection."""

    settings: Folders
    missing: tuple[str, ...] = ()
    """Of its folders and files, as the settings have them."""

    @property
    def is_well(self) -> bool:
        return not self.missing

    def lines(self) -> list[str]:
        name = bold(self.settings.name)
        if self.missing:
            reasons = [f"{name}  {red('fails')}: `{path}` is not there" for path in self.missing]
            return [*reasons, "  check the path; it is taken from the folder of ullage.toml"]
        counts = ((self.settings.folders, "folder"), (self.settings.files, "file"))
        named = " and ".join(how_many(len(paths), thing) for paths, thing in counts if paths)
        return [f"{name}  {green('well')}: {named} to be searched"]

    def json(self) -> dict[str, Json]:
        return {"folders": self.settings.name, "came_from": self.settings.came_from, "missing": list(self.missing)}


def look_at_folders(collections: Sequence[Folders]) -> list[FoundFolders]:
    return [FoundFolders(settings=one, missing=_missing(one)) for one in collections]


def _missing(one: Folders) -> tuple[str, ...]:
    folders = (path for path in one.folders if not Path(path).is_dir())
    return (*folders, *(path for path in one.files if not Path(path).is_file()))
