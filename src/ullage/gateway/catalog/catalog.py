"""Which tools does each server have, though it may not be running?

Every tool that was ever listed, with its definition and weight, in one database for all of a user's sessions and
projects. A server stands in it under its name and its key together: two projects that configure one name differently
each keep their own tools, and a changed configuration is another server whose tools are not known yet. Where the
database fails, the catalogue goes on in memory and says so once. It asks no server anything.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from uuid import UUID, uuid4

import anyio.to_thread

from ullage.errors import StoreFailed
from ullage.options import Server
from ullage.store import Connection, Database
from ullage.tool import JsonObject, Tool

from ..baseline import Baselines, DefinitionChange, Era, Offered, Places, Verdict
from ..definition import definition
from ..introduction import Introduction
from .rows import (
    claim_server,
    delete_forgotten,
    delete_server,
    find_latest_server,
    find_server,
    load_tools,
    save_server,
    save_tools,
    thin_out,
)
from .stored import Fresh, Renewal, Stored, fresh_of

__all__ = ["Catalogue"]

Result = TypeVar("Result")
_log = logging.getLogger(__name__)

_KEYS = 8
"""Configurations kept of one name."""
_SEEN = timedelta(days=1)
"""How stale the time of the last look at an unchanged server may be, so that most looks write nothing."""
_FORGOTTEN = timedelta(days=180)
"""After which a server that nobody listed is taken for one that left the settings while no gateway ran."""
_NOBODY = UUID(int=0)


def _now() -> datetime:
    return datetime.now(UTC)


class Catalogue:
    """Of one process; any number of processes may share the database."""

    def __init__(  # noqa: PLR0913 - clock and ids are for tests
        self,
        database: Database | None,
        weigh: Callable[[str], int],
        *,
        clock: Callable[[], datetime] = _now,
        new_id: Callable[[], UUID] = uuid4,
        places: Places | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """`weigh` counts a definition's text for the reference model; it is called from other threads, and so is
        `on_change`, after something was stored that differs from before. Without a database all is kept in memory."""
        self._database = database
        self._weigh = weigh
        self._clock = clock
        self._new_id = new_id
        self._on_change = on_change
        self._memory: dict[tuple[str, str], Stored] = {}
        self._said = False
        self.baselines = Baselines(database, places=places, clock=clock, on_failure=self._say)
        self.problem: str | None = None
        """Why the database could not be used the last time it was tried; None where it could."""

    async def listing(self, server: Server) -> Stored | None:
        """What is known of the server; None where it was never listed as it is now configured."""
        in_memory = self._memory.get((server.name, server.key))

        def load(database: Database) -> Stored | None:
            return database.read(lambda connection: _load(connection, server))

        stored = await self._stored(load, in_memory)
        return None if stored is None else await anyio.to_thread.run_sync(self._recalled, server, stored)

    def _recalled(self, server: Server, stored: Stored) -> Stored:
        tools = (one.tool for one in stored.tools)
        return stored.judged(self.baselines.recall(server, self._offered(server, tools, stored.introduction)))

    def _offered(self, server: Server, tools: Iterable[Tool], introduction: Introduction | None) -> tuple[Offered, ...]:
        of_tools = self.baselines.offer(server, "tool", ((tool.name, definition(tool)) for tool in tools))
        return of_tools + self.baselines.offer(server, "instructions", [("", _instructions(introduction))])

    def _legacy(self, server: Server) -> tuple[Offered, ...]:
        """What the catalogue has of a server that has no baseline yet: as it is configured, else under its name."""

        def load(connection: Connection) -> Stored | None:
            row = find_server(connection, server) or find_latest_server(connection, server.name)
            return None if row is None else Stored.of(row.id, load_tools(connection, row.id), row.introduction)

        try:
            stored = None if self._database is None else self._database.read(load)
        except StoreFailed as error:
            self._say(error)
            return ()
        if stored is None:
            return ()
        return self._offered(server, (one.tool for one in stored.tools), stored.introduction)

    async def judge_prompts(
        self, server: Server, prompts: Iterable[JsonObject], era: Era = ""
    ) -> dict[str, DefinitionChange]:
        """The prompts that are to be withheld, by name; the rest may be served, and is recorded."""
        named = [(str(one.get("name")), one) for one in prompts]

        def work() -> dict[str, DefinitionChange]:
            verdict = self.baselines.judge(server, era, self.baselines.offer(server, "prompt", named))
            return {name: change for (_, name), change in verdict.withheld.items()}

        return await anyio.to_thread.run_sync(work)

    async def replace(
        self,
        server: Server,
        tools: Iterable[Tool],
        introduction: Introduction | None = None,
        era: Era = "",
    ) -> Stored:
        """Makes these the server's tools, in one transaction. `changed` of the result says whether any definition
        differs from before, `withheld` which tools are not as they were accepted."""
        listed = tuple(tools)

        def judge() -> Verdict:
            offered = self._offered(server, listed, introduction)
            return self.baselines.judge(server, era, offered, legacy=lambda: self._legacy(server))

        # Before the catalogue is overwritten, which may be all there is to compare with.
        verdict = await anyio.to_thread.run_sync(judge)
        stored = await self._stored(lambda database: self._exchange(database, server, listed, introduction), None)
        if stored is None:
            stored = await anyio.to_thread.run_sync(self._exchange_in_memory, server, listed, introduction)
        self._memory[server.name, server.key] = stored
        return stored.judged(verdict)

    async def forget(self, server: Server) -> None:
        """Forgets a server that left the settings, and its tools with it. Others of that name, as other projects have
        them, stay; a project that starts this very one as well lists it anew. Its accepted definitions stay: whoever
        takes the server up again is told what changed meanwhile."""
        self._memory.pop((server.name, server.key), None)

        def delete(database: Database) -> None:
            database.write(lambda connection: delete_server(connection, server))
            self._on_change()

        await self._stored(delete, None)

    async def _stored(self, work: Callable[[Database], Result], otherwise: Result) -> Result:
        """What `work` does with the database, in a thread of its own; `otherwise` where the database fails."""
        database = self._database
        if database is None:
            return otherwise
        try:
            result = await database.aside(lambda: work(database))
        except StoreFailed as error:
            self._say(error)
            return otherwise
        self.problem = None
        return result

    def _say(self, error: StoreFailed) -> None:
        self.problem = error.message
        if not self._said:
            self._said = True
            _log.warning("the catalogue is kept in memory only: %s. %s", error.message, error.suggestion)

    def _exchange(
        self, database: Database, server: Server, tools: Iterable[Tool], introduction: Introduction | None
    ) -> Stored:
        exchange = _Exchange(server=server, listed=fresh_of(tools), introduction=introduction, renewal=self._renewal())
        unchanged = database.read(exchange.unchanged)
        if unchanged is not None:
            return unchanged
        stored, is_new, is_changed = database.write(exchange.write)
        if is_changed:
            self._on_change()
        if is_new:
            database.write(lambda connection: self._thin_out(connection, server))
        return stored

    def _thin_out(self, connection: Connection, server: Server) -> None:
        thin_out(connection, server.name, most=_KEYS)
        delete_forgotten(connection, unseen_since=self._clock() - _FORGOTTEN)

    def _exchange_in_memory(self, server: Server, tools: Iterable[Tool], introduction: Introduction | None) -> Stored:
        old = self._memory.get((server.name, server.key))
        server_id, before = (self._new_id(), ()) if old is None else (old.server_id, old.tools)
        new = self._renewal().of(before, fresh_of(tools), server_id)
        return Stored.of(server_id, new, introduction, changed=old is None or new is not before)

    def _renewal(self) -> Renewal:
        return Renewal(weigh=self._weigh, new_id=self._new_id, now=self._clock())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Exchange:
    """One server's new tools for its old ones."""

    server: Server
    listed: tuple[Fresh, ...]
    introduction: Introduction | None
    renewal: Renewal

    def unchanged(self, connection: Connection) -> Stored | None:
        """What is stored, where writing would change nothing. Weighs what is new on the way, while nobody waits."""
        row = find_server(connection, self.server)
        old = () if row is None else load_tools(connection, row.id)
        new = self.renewal.of(old, self.listed, _NOBODY)
        if row is None or new is not old or self.introduction != row.introduction:
            return None
        return Stored.of(row.id, old, row.introduction) if self.renewal.now - row.seen < _SEEN else None

    def write(self, connection: Connection) -> tuple[Stored, bool, bool]:
        """What is stored from now on, whether the server was unknown before, and whether anything differs."""
        now = self.renewal.now
        row, is_new = claim_server(connection, self.server, new_id=self.renewal.new_id(), now=now)
        old = load_tools(connection, row.id)
        new = self.renewal.of(old, self.listed, row.id)
        save_tools(connection, old, new)
        save_server(connection, row, self.introduction, changed=new is not old, now=now)
        is_changed = is_new or new is not old
        stored = Stored.of(row.id, new, self.introduction, changed=is_changed)
        return stored, is_new, is_changed or self.introduction != row.introduction


def _instructions(introduction: Introduction | None) -> JsonObject:
    """What of a server's introduction a model may read."""
    said = {} if introduction is None else {"instructions": introduction.instructions, "title": introduction.title}
    return {key: text for key, text in said.items() if text is not None}


def _load(connection: Connection, server: Server) -> Stored | None:
    row = find_server(connection, server)
    return None if row is None else Stored.of(row.id, load_tools(connection, row.id), row.introduction)
