"""Which databases stand behind the gateway, and when is each of them opened?

When it is first asked something, or looked at in the background: whoever only lists tools does not wait for a parser
of SQL and a driver to be loaded. One that stays in the settings as it was is not disturbed when others come and go.
What may be asked of a database is not known here.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from ullage.config import Settings
from ullage.errors import InvalidArguments, UllageError
from ullage.gateway import Member, Rules
from ullage.options import DatabaseSettings
from ullage.tool import Call, Caller, Contents, JsonObject, Listing, Origin, Read, Reply

if TYPE_CHECKING:
    from ullage.sql import Dialect, Question, SqlSource

__all__ = ["Databases", "LateDatabase", "look_at"]

_log = logging.getLogger(__name__)

Weigh = Callable[[str], int]


@dataclass(slots=True, kw_only=True)
class LateDatabase:
    """A database as a source of tools and resources."""

    settings: DatabaseSettings
    sample: Path
    """Where the sample shop lies, or will."""
    weigh: Callable[[Caller], Weigh]
    _source: "SqlSource | None" = None
    _lock: anyio.Lock | None = None

    async def tools(self) -> Listing:
        from ullage.sql import dialect_of, tools_of

        dialect, about = dialect_of(self.settings), self.settings.description
        return Listing(tools_of(dialect, about), revision=f"1 {dialect} {about}")

    async def call(self, call: Call) -> Reply:
        return await (await self._opened()).call(call)

    async def resources(self) -> tuple[JsonObject, ...]:
        return await (await self._opened()).resources()

    async def templates(self) -> tuple[JsonObject, ...]:
        return await (await self._opened()).templates()

    async def read(self, read: Read) -> Contents:
        return await (await self._opened()).read(read)

    async def warnings(self) -> tuple[str, ...]:
        """What the user should know of it; raises where it cannot be asked."""
        source = await self._opened()
        await source.engine.ask(_simplest(source.engine.dialect, self.settings.limits.seconds))
        return await source.warnings()

    async def close(self) -> None:
        if self._source is not None:
            await self._source.close()
            self._source = None

    async def _opened(self) -> "SqlSource":
        if self._source is None:
            self._lock = self._lock or anyio.Lock()
            async with self._lock:
                self._source = self._source or await anyio.to_thread.run_sync(self._open)
        return self._source

    def _open(self) -> "SqlSource":
        from ullage.sql import SqlSource, open_engine

        engine = open_engine(self.settings, sample=self.sample)
        return SqlSource(settings=self.settings, engine=engine, weigh=self.weigh)


def _simplest(dialect: "Dialect", seconds: float) -> "Question":
    """What every database of that kind can answer that can be reached at all."""
    from ullage.sql import Question

    return Question(sql="SELECT 1 FROM dual" if dialect == "oracle" else "SELECT 1", rows=1, seconds=seconds)


@dataclass(slots=True, kw_only=True)
class Databases:
    """Those of the settings, by name."""

    weigh: Callable[[Caller], Weigh]
    _late: Mapping[str, LateDatabase] = field(default_factory=dict[str, LateDatabase])

    def __getitem__(self, name: str) -> LateDatabase:
        return self._late[name]

    def arranged(self, settings: Settings) -> dict[str, LateDatabase]:
        """Those of the settings, the ones that stay as they are; nothing changes before they are taken."""
        return {database.name: self._refitted(database, settings) for database in settings.databases}

    def _refitted(self, database: DatabaseSettings, settings: Settings) -> LateDatabase:
        known = self._late.get(database.name)
        if known is not None and _alike(known.settings, database):
            return known
        return LateDatabase(settings=database, sample=Path(settings.sample), weigh=self.weigh)

    def take(self, arranged: Mapping[str, LateDatabase]) -> tuple[list[LateDatabase], list[LateDatabase]]:
        """Has just these from now on; returns those that came and those that left, which are to be closed."""
        before, self._late = self._late, arranged
        came = [late for name, late in arranged.items() if before.get(name) is not late]
        return came, [late for name, late in before.items() if arranged.get(name) is not late]

    def members(self, arranged: Mapping[str, LateDatabase], settings: Settings) -> list[Member]:
        """One set of tools for all of them, under the default one's name; the others' own, with the database's name
        before theirs, answer and are not listed."""
        default = settings.default_database
        chosen = None if default is None else arranged[default.name]
        return [_member(late, settings.own, _source(late, chosen, arranged)) for late in arranged.values()]

    async def close(self) -> None:
        for late in self._late.values():
            await late.close()


def _alike(before: DatabaseSettings, now: DatabaseSettings) -> bool:
    return replace(before, default=now.default, came_from=now.came_from) == now


@dataclass(frozen=True, slots=True)
class SharedDatabases:
    """Several databases behind one set of tools, which name one in their argument `database`."""

    default: LateDatabase
    others: tuple[LateDatabase, ...]

    async def tools(self) -> Listing:
        from ullage.sql import dialect_of, shared_tools

        every = (self.default, *self.others)
        known: list[tuple[str, Dialect, str | None]] = [
            (late.settings.name, dialect_of(late.settings), late.settings.description) for late in every
        ]
        return Listing(shared_tools(known), revision=f"2 {known}")

    async def call(self, call: Call) -> Reply:
        arguments = dict(call.arguments)
        named = arguments.pop("database", None)
        original = arguments.get("databaseName")
        by_name = {late.settings.name: late for late in (self.default, *self.others)}
        if named is not None and named not in by_name:
            raise InvalidArguments(
                f"no database is called `{named}`", suggestion="take one of these", options=tuple(by_name)
            )
        # The original takes any name, and answers for the one database that it has.
        wanted = named if named is not None else original if original in by_name else self.default.settings.name
        late = by_name[str(wanted)]
        reply = await late.call(replace(call, arguments=arguments))
        return replace(reply, origin=Origin(late.settings.name, call.tool))

    async def resources(self) -> tuple[JsonObject, ...]:
        return await self.default.resources()

    async def templates(self) -> tuple[JsonObject, ...]:
        return await self.default.templates()

    async def read(self, read: Read) -> Contents:
        return await self.default.read(read)

    async def close(self) -> None:
        await self.default.close()


def _source(
    late: LateDatabase, default: LateDatabase | None, arranged: Mapping[str, LateDatabase]
) -> "LateDatabase | SharedDatabases | None":
    """What answers to the names without a prefix; None for a database that is named before each of its tools."""
    if late is not default:
        return None
    others = tuple(other for other in arranged.values() if other is not late)
    return SharedDatabases(late, others) if others else late


def _member(late: LateDatabase, own: Rules, shared: "LateDatabase | SharedDatabases | None") -> Member:
    return Member(
        name=late.settings.name,
        source=late if shared is None else shared,
        prefix=late.settings.name if shared is None else "",
        rules=_rules(own, is_default=shared is not None),
        own=True,
        description=late.settings.description,
    )


def _rules(own: Rules, *, is_default: bool) -> Rules:
    """The user's rules for our own tools; the names of the system before this one answer, and are never shown."""
    from ullage.sql import LISTED_NAMES, ORIGINAL_NAMES

    if not is_default:
        return replace(own, hidden=("*",))
    return replace(own, pinned=(*own.pinned, *LISTED_NAMES), hidden=(*own.hidden, *ORIGINAL_NAMES))


async def look_at(late: LateDatabase) -> None:
    """Says on the log, once, what the user should know of a database: that it cannot be reached, or is not safe."""
    name = late.settings.name
    try:
        for sentence in await late.warnings():
            _log.warning("%s", sentence)
    except UllageError as error:
        _log.warning("database `%s` cannot be asked: %s (%s)", name, error.message, error.suggestion)
