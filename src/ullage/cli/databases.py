"""Is this database well, and what should the user know of it?

Asks it once, as an agent would reach it. What to do about a role that can write, its own sentence says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import anyio

from ullage.app.gateway import Gateway
from ullage.errors import UllageError
from ullage.sql import DIALECTS, DatabaseSettings, dialect_of
from ullage.tool import Json

from .output import bold, dim, green, red

__all__ = ["FoundDatabase", "database_json", "database_lines", "look_at_databases"]


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
