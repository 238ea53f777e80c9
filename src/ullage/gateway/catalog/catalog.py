"""The catalogue: every tool that was ever listed, with its definition and token count.

One database serves all of a user's sessions and projects. A server is identified by its name and its key together: two
projects that configure one name differently each keep their own tools, and a server with a changed configuration is a
new one whose tools are not known yet. If the database fails, the catalogue continues in memory and logs that once. It
never contacts a server.

The functions on rows each do one thing within a given transaction. `Catalogue` decides what to do, and what a
failure means. `Renewal` decides which tools are unchanged, changed, new or gone.
"""

import json
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from ullage.errors import StoreFailed
from ullage.options import Server
from ullage.store import Connection, Database, in_list, moment, seconds, storable, upsert
from ullage.thread_pacing import pace, run_in_worker, take_turn
from ullage.tool import Introduction, Json, JsonObject, Listing, Tool

from ..accepted_definitions import Baselines, DefinitionChange, Era, Offered, Verdict
from ..fingerprint import Places
from ..tool_source import definition, definition_hash, definition_text, revision_of, tool_of

__all__ = [
    "Catalogue",
    "Fresh",
    "Renewal",
    "ServerRow",
    "Stored",
    "StoredTool",
    "claim_server",
    "delete_forgotten",
    "delete_server",
    "find_latest_server",
    "find_server",
    "fresh_of",
    "load_tools",
    "save_server",
    "save_tools",
    "thin_out",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTool:
    """A stored tool of a server."""

    id: UUID
    """Constant while the tool keeps its name, whatever else changes."""
    server_id: UUID
    tool: Tool
    definition_hash: str
    token_count: int = 0
    """Tokens of its definition as a client shows it to a model."""
    embedding: bytes | None = field(default=None, repr=False)
    """Used by the index only; never shown or serialised."""
    created: datetime
    updated: datetime
    """Time of the last change of its definition."""

    def __post_init__(self) -> None:
        if self.token_count < 0:
            raise ValueError(f"a definition cannot weigh {self.token_count} tokens")

    def shown(self) -> dict[str, Json]:
        """Return the fields that may leave the process."""
        return {
            "id": str(self.id),
            "server_id": str(self.server_id),
            "definition": definition(self.tool),
            "token_count": self.token_count,
            "created": self.created.isoformat(),
            "updated": self.updated.isoformat(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A server's tools as last listed."""

    server_id: UUID
    tools: tuple[StoredTool, ...]
    listing: Listing
    introduction: Introduction | None = None
    """The server's introduction at that time."""
    changed: bool = False
    """Whether the listing differed from the one before it."""
    withheld: Mapping[str, DefinitionChange] = field(default_factory=dict[str, DefinitionChange])
    """Tools that are not in `listing`, by name, because their definitions are not the accepted ones."""
    instructions_change: DefinitionChange | None = None

    @property
    def is_held(self) -> bool:
        """Whether anything of the server awaits the user's acceptance."""
        return bool(self.withheld) or self.instructions_change is not None

    @classmethod
    def of(
        cls,
        server_id: UUID,
        tools: tuple[StoredTool, ...],
        introduction: Introduction | None,
        *,
        changed: bool = False,
    ) -> "Stored":
        listing = Listing(
            tuple(stored.tool for stored in tools), revision_of(stored.definition_hash for stored in tools)
        )
        return cls(server_id=server_id, tools=tools, listing=listing, introduction=introduction, changed=changed)

    def judged(self, verdict: Verdict) -> "Stored":
        """Return a copy without the withheld tools.

        The revision covers them too, so that views are rebuilt when they change.
        """
        withheld = {name: change for (kind, name), change in verdict.withheld.items() if kind == "tool"}
        listing = self.listing
        if withheld:
            served = tuple(stored for stored in self.tools if stored.tool.name not in withheld)
            hashes = (stored.definition_hash for stored in served)
            held = sorted(f"{change.offered_hash}{change.accepted_hash}" for change in withheld.values())
            listing = Listing(tuple(stored.tool for stored in served), revision_of((*hashes, "withheld", *held)))
        return replace(
            self,
            listing=listing,
            withheld=withheld,
            instructions_change=verdict.withheld.get(("instructions", "")),
        )


@dataclass(frozen=True, slots=True)
class Fresh:
    """A tool that was just listed."""

    tool: Tool
    definition_hash: str


def fresh_of(tools: Iterable[Tool]) -> tuple[Fresh, ...]:
    return tuple(Fresh(tool, definition_hash(tool)) for tool in pace(tools))


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """Updates a server's tools. Each definition is counted once, so that a second try under a lock counts nothing."""

    weigh: Callable[[str], int]
    new_id: Callable[[], UUID]
    now: datetime
    weights: dict[str, int] = field(default_factory=dict[str, int])

    def of(self, old: tuple[StoredTool, ...], listed: Sequence[Fresh], server_id: UUID) -> tuple[StoredTool, ...]:
        """Return the listed tools with the stored fields of those already known; `old` itself if no definition differs.

        The same tools in another order are no change that a model should read again.
        """
        if Counter(stored.definition_hash for stored in old) == Counter(fresh.definition_hash for fresh in listed):
            return old
        # In order, since a server may list a name twice although it should not.
        known: dict[str, list[StoredTool]] = {}
        for stored in old:
            known.setdefault(stored.tool.name, []).append(stored)
        return tuple(self._renewed(known.get(fresh.tool.name), fresh, server_id) for fresh in pace(listed))

    def _renewed(self, known: list[StoredTool] | None, fresh: Fresh, server_id: UUID) -> StoredTool:
        if not known:
            return StoredTool(
                id=self.new_id(),
                server_id=server_id,
                tool=fresh.tool,
                definition_hash=fresh.definition_hash,
                token_count=self._weight(fresh),
                created=self.now,
                updated=self.now,
            )
        before = known.pop(0)
        if before.definition_hash == fresh.definition_hash:
            return before
        return replace(
            before,
            tool=fresh.tool,
            definition_hash=fresh.definition_hash,
            token_count=self._weight(fresh),
            embedding=None,
            updated=self.now,
        )

    def _weight(self, fresh: Fresh) -> int:
        if fresh.definition_hash not in self.weights:
            self.weights[fresh.definition_hash] = self.weigh(definition_text(fresh.tool))
        return self.weights[fresh.definition_hash]


class RandomIds:
    """Random ids like those of `uuid4`, whose bytes are read for many at a time.

    Reading them releases the interpreter for a moment, each time at the expense of whichever thread waits for it.
    """

    def __init__(self) -> None:
        self._bytes: list[bytes] = []

    def __call__(self) -> UUID:
        if not self._bytes:
            read = secrets.token_bytes(16 * _IDS)
            self._bytes = [read[start : start + 16] for start in range(0, len(read), 16)]
        return UUID(bytes=self._bytes.pop(), version=4)


_TEXTS = ("id", "server_id", "position", "name", "definition", "definition_hash", "token_count", "embedding")
_COLUMNS = (*_TEXTS, "created", "updated")
_CLAIM = upsert("ullage_servers", ("id", "name", "key", "created", "updated", "seen"), key='name, "key"')
_ADD_TOOL = (
    f"INSERT INTO ullage_tools ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{column}' for column in _COLUMNS)})"
)
_CHANGE_TOOL = f"UPDATE ullage_tools SET {', '.join(f'{column} = :{column}' for column in _COLUMNS)} WHERE id = :row"

_INTRODUCTION = frozenset(field.name for field in fields(Introduction))

_IDS = 256
"""Ids whose random bytes are read at once."""
_AT_ONCE = 500
"""Most rows deleted by one statement; databases limit its parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    """The row of a server."""

    id: UUID
    introduction: Introduction | None
    seen: datetime
    """Time at which it was last known to list these tools."""


def find_server(connection: Connection, server: Server, *, for_update: bool = False) -> ServerRow | None:
    """Return the row of a server in its current configuration."""
    query = 'SELECT id, introduction, seen FROM ullage_servers WHERE name = :name AND "key" = :key'
    # SQLite needs no lock: it allows only one writing transaction at a time.
    lock = " FOR UPDATE" if for_update and connection.kind == "postgresql" else ""
    row = connection.execute(query + lock, {"name": storable(server.name), "key": server.key}).first()
    return None if row is None else _server_row(row)


def find_latest_server(connection: Connection, name: str) -> ServerRow | None:
    """Return the most recently listed server of that name, whatever its configuration."""
    query = "SELECT id, introduction, seen FROM ullage_servers WHERE name = :name ORDER BY seen DESC LIMIT 1"
    row = connection.execute(query, {"name": storable(name)}).first()
    return None if row is None else _server_row(row)


def find_same_server(connection: Connection, server: Server) -> ServerRow | None:
    """Return the most recently listed server with the same configuration, whatever its name."""
    query = 'SELECT id, introduction, seen FROM ullage_servers WHERE "key" = :key ORDER BY seen DESC LIMIT 1'
    row = connection.execute(query, {"key": server.key}).first()
    return None if row is None else _server_row(row)


def _server_row(row: Mapping[str, Any]) -> ServerRow:
    said, introduction = row["introduction"], None
    try:
        if said is not None:
            # The keys known to this version, since a newer one may have written more.
            known = {key: value for key, value in json.loads(said).items() if key in _INTRODUCTION}
            introduction = Introduction(**known)
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreFailed("the introduction of a server in the database cannot be read") from error
    return ServerRow(id=UUID(row["id"]), introduction=introduction, seen=moment(row["seen"]))


def claim_server(connection: Connection, server: Server, *, new_id: UUID, now: datetime) -> tuple[ServerRow, bool]:
    """Return the server's row, created if missing, and whether it was created. It is locked for this transaction."""
    time = seconds(now)
    row = {"id": str(new_id), "name": storable(server.name), "key": server.key}
    connection.execute(_CLAIM, row | {"created": time, "updated": time, "seen": time})
    found = find_server(connection, server, for_update=True)
    if found is None:
        raise StoreFailed(f"the row of `{server.name}` vanished while it was being written")
    return found, found.id == new_id


def save_server(
    connection: Connection, row: ServerRow, introduction: Introduction | None, *, changed: bool, now: datetime
) -> None:
    said = None if introduction is None else json.dumps(asdict(introduction))
    updated = ", updated = :seen" if changed or introduction != row.introduction else ""
    connection.execute(
        f"UPDATE ullage_servers SET introduction = :introduction, seen = :seen{updated} WHERE id = :id",
        {"introduction": said, "seen": seconds(now), "id": str(row.id)},
    )


def thin_out(connection: Connection, name: str, *, most: int) -> None:
    """Keep the most recently seen servers of that name.

    Each change of a server's environment adds one, and some environments contain a token that changes every hour.
    """
    doomed = connection.execute(
        "SELECT id FROM ullage_servers WHERE name = :name ORDER BY seen DESC LIMIT :some OFFSET :most",
        {"name": storable(name), "some": _AT_ONCE, "most": most},
    ).all()
    if doomed:
        listed, values = in_list("id", [row[0] for row in doomed])
        connection.execute(f"DELETE FROM ullage_servers WHERE id IN {listed}", values)


def delete_server(connection: Connection, server: Server) -> None:
    """Delete a server and its tools."""
    connection.execute(
        'DELETE FROM ullage_servers WHERE name = :name AND "key" = :key',
        {"name": storable(server.name), "key": server.key},
    )


def delete_forgotten(connection: Connection, *, unseen_since: datetime) -> None:
    """Delete the servers not seen since a time, with their tools."""
    connection.execute("DELETE FROM ullage_servers WHERE seen < :since", {"since": seconds(unseen_since)})


def load_tools(connection: Connection, server_id: UUID) -> tuple[StoredTool, ...]:
    """Return the stored tools of a server, in the order of its list."""
    query = f"SELECT {', '.join(_COLUMNS)} FROM ullage_tools WHERE server_id = :server ORDER BY position"
    rows = connection.execute(query, {"server": str(server_id)}).mappings()
    return tuple(_tool(row, server_id) for row in pace(rows))


def _tool(row: Mapping[Any, Any], server_id: UUID) -> StoredTool:
    try:
        said = json.loads(row["definition"])
        return StoredTool(
            id=UUID(row["id"]),
            server_id=server_id,
            tool=tool_of(said),
            definition_hash=row["definition_hash"],
            token_count=row["token_count"],
            embedding=row["embedding"],
            created=moment(row["created"]),
            updated=moment(row["updated"]),
        )
    except (ValueError, KeyError, AttributeError) as error:
        raise StoreFailed(f"the definition of `{row['name']}` in the database cannot be read") from error


def save_tools(connection: Connection, old: Sequence[StoredTool], new: Sequence[StoredTool]) -> None:
    """Replace the rows of `old` by those of `new`, writing only differences."""
    before = {stored.id: (position, stored.definition_hash) for position, stored in enumerate(old)}
    staying = {stored.id for stored in new}
    gone = [{"row": str(one)} for one in before if one not in staying]
    added = [_row(at, stored) for at, stored in pace(enumerate(new)) if stored.id not in before]
    changed = [
        _row(at, stored) | {"row": str(stored.id)}
        for at, stored in enumerate(new)
        if stored.id in before and before[stored.id] != (at, stored.definition_hash)
    ]
    if gone:
        connection.execute("DELETE FROM ullage_tools WHERE id = :row", gone)
    if added:
        connection.execute(_ADD_TOOL, added)
    if changed:
        connection.execute(_CHANGE_TOOL, changed)


def _row(position: int, stored: StoredTool) -> dict[str, object]:
    return {
        "id": str(stored.id),
        "server_id": str(stored.server_id),
        "position": position,
        "name": storable(stored.tool.name),
        "definition": json.dumps(definition(stored.tool), separators=(",", ":")),
        "definition_hash": stored.definition_hash,
        "token_count": stored.token_count,
        "embedding": stored.embedding,
        "created": seconds(stored.created),
        "updated": seconds(stored.updated),
    }


Result = TypeVar("Result")
_log = logging.getLogger(__name__)

_KEYS = 8
"""Most configurations kept of one name."""
_SEEN = timedelta(days=1)
"""How old the stored time of an unchanged server may be, so that most listings write nothing."""
_FORGOTTEN = timedelta(days=180)
"""Age at which an unlisted server is assumed to have left the settings while no gateway ran."""
_NOBODY = UUID(int=0)


class Catalogue:
    """The catalogue of one process; any number of processes may share the database."""

    def __init__(  # noqa: PLR0913 - clock and ids are for tests
        self,
        database: Database | None,
        weigh: Callable[[str], int],
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_id: Callable[[], UUID] | None = None,
        places: Places | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """Open the catalogue.

        Args:
            database: None to keep everything in memory.
            weigh: Counts a definition's text for the reference model; called from other threads.
            new_id: Makes the id of a server or tool; random if None.
            on_change: Called from other threads after a change was stored.
        """
        self._database = database
        self._weigh = weigh
        self._clock = clock
        self._new_id = new_id
        self._on_change = on_change
        self._memory: dict[tuple[str, str], Stored] = {}
        self._said = False
        self.baselines = Baselines(database, places=places, clock=clock, on_failure=self._say)
        self.problem: str | None = None
        """Why the database last failed; None if it did not."""

    async def listing(self, server: Server) -> Stored | None:
        """Return what is stored of the server; None if it was never listed in its current configuration."""
        in_memory = self._memory.get((server.name, server.key))

        def load(database: Database) -> Stored | None:
            return database.read(lambda connection: _stored_of(connection, find_server(connection, server)))

        stored = await self._stored(load, in_memory)
        if stored is None:
            return None
        return await run_in_worker(partial(self._recalled, server, stored), items=len(stored.tools))

    async def find_listing(self, server: Server) -> Stored | None:
        """Return what is stored of the server; otherwise what was last listed of one that is started in the same way
        under another name."""

        def load(database: Database) -> Stored | None:
            return database.read(lambda connection: _stored_of(connection, find_same_server(connection, server)))

        return await self.listing(server) or await self._stored(load, None)

    def _recalled(self, server: Server, stored: Stored) -> Stored:
        tools = (one.tool for one in stored.tools)
        return stored.judged(self.baselines.recall(server, self._offered(server, tools, stored.introduction)))

    def _offered(self, server: Server, tools: Iterable[Tool], introduction: Introduction | None) -> tuple[Offered, ...]:
        of_tools = self.baselines.offer(server, "tool", ((tool.name, definition(tool)) for tool in tools))
        # The parts of a server's introduction that a model may read.
        said = {} if introduction is None else {"instructions": introduction.instructions, "title": introduction.title}
        instructions = {key: text for key, text in said.items() if text is not None}
        return of_tools + self.baselines.offer(server, "instructions", [("", instructions)])

    def _legacy(self, server: Server) -> tuple[Offered, ...]:
        """Return what is stored of a server without a baseline: in its configuration, else under its name."""

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
        """Record a server's prompts and return those to withhold, by name."""
        named = [(str(one.get("name")), one) for one in prompts]

        def work() -> dict[str, DefinitionChange]:
            verdict = self.baselines.judge(server, era, self.baselines.offer(server, "prompt", named))
            return {name: change for (_, name), change in verdict.withheld.items()}

        return await run_in_worker(work, items=len(named))

    async def replace(
        self,
        server: Server,
        tools: Iterable[Tool],
        introduction: Introduction | None = None,
        era: Era = "",
    ) -> Stored:
        """Replace the server's tools in one transaction.

        Returns:
            The stored tools. `changed` tells whether any definition differs from before, `withheld` which tools are
            not as accepted.
        """
        listed = tuple(tools)

        def judge() -> Verdict:
            offered = self._offered(server, listed, introduction)
            return self.baselines.judge(server, era, offered, legacy=lambda: self._legacy(server))

        # Before the catalogue is overwritten, since it may be the only basis for comparison.
        verdict = await run_in_worker(judge, items=len(listed))
        async with take_turn(len(listed)):
            stored = await self._stored(lambda database: self._exchange(database, server, listed, introduction), None)
        if stored is None:
            work = partial(self._exchange_in_memory, server, listed, introduction)
            stored = await run_in_worker(work, items=len(listed))
        self._memory[server.name, server.key] = stored
        return stored.judged(verdict)

    async def forget(self, server: Server) -> None:
        """Delete a server that left the settings, and its tools.

        Others of that name, configured by other projects, stay; a project with this same configuration lists it
        again. Its accepted definitions stay, so that changes are noticed if the server is added again.
        """
        self._memory.pop((server.name, server.key), None)

        def delete(database: Database) -> None:
            database.write(lambda connection: delete_server(connection, server))
            self._on_change()

        await self._stored(delete, None)

    async def _stored(self, work: Callable[[Database], Result], otherwise: Result) -> Result:
        """Run `work` with the database in a thread; return `otherwise` if the database fails."""
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
        renewal = self._renewal()
        server_id, before = (renewal.new_id(), ()) if old is None else (old.server_id, old.tools)
        new = renewal.of(before, fresh_of(tools), server_id)
        return Stored.of(server_id, new, introduction, changed=old is None or new is not before)

    def _renewal(self) -> Renewal:
        return Renewal(weigh=self._weigh, new_id=self._new_id or RandomIds(), now=self._clock())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Exchange:
    """The replacement of one server's tools."""

    server: Server
    listed: tuple[Fresh, ...]
    introduction: Introduction | None
    renewal: Renewal

    def unchanged(self, connection: Connection) -> Stored | None:
        """Return the stored tools if nothing needs to be written.

        Counts new definitions outside the lock, so that no other writer waits.
        """
        row = find_server(connection, self.server)
        old = () if row is None else load_tools(connection, row.id)
        new = self.renewal.of(old, self.listed, _NOBODY)
        if row is None or new is not old or self.introduction != row.introduction:
            return None
        return Stored.of(row.id, old, row.introduction) if self.renewal.now - row.seen < _SEEN else None

    def write(self, connection: Connection) -> tuple[Stored, bool, bool]:
        """Write the tools; return them, whether the server was unknown before, and whether anything differs."""
        now = self.renewal.now
        row, is_new = claim_server(connection, self.server, new_id=self.renewal.new_id(), now=now)
        old = load_tools(connection, row.id)
        new = self.renewal.of(old, self.listed, row.id)
        save_tools(connection, old, new)
        save_server(connection, row, self.introduction, changed=new is not old, now=now)
        is_changed = is_new or new is not old
        stored = Stored.of(row.id, new, self.introduction, changed=is_changed)
        return stored, is_new, is_changed or self.introduction != row.introduction


def _stored_of(connection: Connection, row: ServerRow | None) -> Stored | None:
    return None if row is None else Stored.of(row.id, load_tools(connection, row.id), row.introduction)
