"""Builds the sources behind the gateway: the servers, databases, folders and delegate of the settings.

A source whose settings did not change is kept as it is when others are added or removed: a server keeps running, and
folders keep their index and the handles that they issued. Disabled servers, and servers whose address leads back to
this gateway, are left out. Building a source starts nothing:

- a server is started when it is first needed;
- a database's SQL parser and driver are loaded on its first question or background check, so that listing tools does
  not wait for them;
- folders are read when they are first listed or searched.

SQL on stored results is treated as on any database: it is judged first, then run in a worker process with its own
locks and time limit. The parser and the worker are loaded and started on first use.

Background work that belongs to one server or client runs guarded, so that its failure does not end the others' work.

The delegate's tools (`delegate.run` and its kin) load nothing before they are listed or called, and follow the
settings. Where no provider has a key, or the settings do not mention delegating, there is no source. The tools
themselves are implemented in `delegate`.

A delegated call can include stored results and found passages by handle. A handle is valid only for the principal who
received it, and all texts of a call share one budget. The caller's context window is not passed on.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import anyio.to_thread

from ullage.config import Folders, Settings, provider_key, providers_off, providers_on
from ullage.errors import InvalidArguments, UllageError, UnknownHandle
from ullage.gateway import Catalogue, Kept, Member, Reference, ResultRules, Rules, Server, Vault
from ullage.ledger import Recorder
from ullage.options import DatabaseSettings
from ullage.store import Database
from ullage.tokens import Meter
from ullage.tool import Call, Caller, Contents, JsonObject, Listing, Origin, Read, Reply, ToolSource
from ullage.wire import Host, Supervised

if TYPE_CHECKING:
    import httpx2

    from ullage.delegate import DelegateSource, Files
    from ullage.retrieve import RetrieveSource
    from ullage.sql import Dialect, SqlSource
    from ullage.sql.embedded import TableWorker
    from ullage.sql.guard import Statement
    from ullage.table import Row

__all__ = [
    "DELEGATED",
    "QUIET",
    "RETRIEVED",
    "Behind",
    "Databases",
    "Delegating",
    "Handing",
    "HeldTables",
    "LateDatabase",
    "LateFolders",
    "Passages",
    "Retrieving",
    "Servers",
    "Work",
    "look_at",
    "run_guarded",
]

_log = logging.getLogger(__name__)

QUIET = 0.5
"""Seconds after startup before something is loaded that no request has needed yet."""

Work = Callable[[], Awaitable[None]]


async def run_guarded(work: Work) -> None:
    """Run background work; log any exception instead of raising it."""
    try:
        await work()
    except Exception:  # noqa: BLE001 - the failure of one server's or client's work must not end that of the others
        _log.exception("something went wrong in the background")


Weigh = Callable[[str], int]


@dataclass(slots=True, kw_only=True)
class LateDatabase(ToolSource):
    """A database as a source of tools and resources, opened on first use."""

    settings: DatabaseSettings
    sample: Path
    """Path of the sample shop's database, which is made on first use."""
    weigh: Callable[[Caller], Weigh]
    _source: "SqlSource | None" = None
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    async def tools(self) -> Listing:
        from ullage.sql import dialect_of, tools_of

        dialect, about = dialect_of(self.settings), self.settings.description
        return Listing(tools_of(dialect, about), revision=f"1 {dialect} {about}")

    async def call(self, call: Call) -> Reply:
        return await (await self._open_source()).call(call)

    async def resources(self) -> tuple[JsonObject, ...]:
        return await (await self._open_source()).resources()

    async def templates(self) -> tuple[JsonObject, ...]:
        return await (await self._open_source()).templates()

    async def read(self, read: Read) -> Contents:
        return await (await self._open_source()).read(read)

    async def warnings(self) -> tuple[str, ...]:
        """Return warnings for the user about this database; raises where it cannot be queried."""
        source = await self._open_source()
        from ullage.sql import Question

        simplest = Question(
            sql="SELECT 1 FROM dual" if source.engine.dialect == "oracle" else "SELECT 1",
            rows=1,
            seconds=self.settings.limits.seconds,
        )
        await source.engine.ask(simplest)
        return await source.warnings()

    async def close(self) -> None:
        if self._source is not None:
            await self._source.close()
            self._source = None

    async def _open_source(self) -> "SqlSource":
        if self._source is None:
            async with self._lock:
                self._source = self._source or await anyio.to_thread.run_sync(self._open)
        return self._source

    def _open(self) -> "SqlSource":
        from ullage.sql import SqlSource, open_engine

        engine = open_engine(self.settings, sample=self.sample)
        return SqlSource(settings=self.settings, engine=engine, weigh=self.weigh, is_cut_outside=True)


@dataclass(slots=True, kw_only=True)
class Databases:
    """The databases of the settings, by name."""

    weigh: Callable[[Caller], Weigh]
    _late: Mapping[str, LateDatabase] = field(default_factory=dict[str, LateDatabase])

    def __getitem__(self, name: str) -> LateDatabase:
        return self._late[name]

    def arranged(self, settings: Settings) -> dict[str, LateDatabase]:
        """Return the settings' databases, reusing the unchanged ones. Nothing changes until `take`."""
        return {database.name: self._reuse_or_make(database, settings) for database in settings.databases}

    def _reuse_or_make(self, database: DatabaseSettings, settings: Settings) -> LateDatabase:
        known = self._late.get(database.name)
        if known is not None and (
            replace(known.settings, default=database.default, came_from=database.came_from) == database
        ):
            return known
        return LateDatabase(settings=database, sample=Path(settings.sample), weigh=self.weigh)

    def take(self, arranged: Mapping[str, LateDatabase]) -> tuple[list[LateDatabase], list[LateDatabase]]:
        """Replace the databases by these.

        Returns:
            The added databases, and the removed ones, which the caller must close.
        """
        before, self._late = self._late, arranged
        came = [late for name, late in arranged.items() if before.get(name) is not late]
        return came, [late for name, late in before.items() if arranged.get(name) is not late]

    def members(self, arranged: Mapping[str, LateDatabase], settings: Settings) -> list[Member]:
        """Return the gateway's members for these databases.

        One set of tools serves all databases, under unprefixed names. Each other database also has tools with its name
        as prefix, which can be called but are not listed.
        """
        default = settings.default_database
        chosen = None if default is None else arranged[default.name]
        return [_database_member(late, settings.own, _source(late, chosen, arranged)) for late in arranged.values()]

    async def close(self) -> None:
        for late in self._late.values():
            await late.close()


@dataclass(frozen=True, slots=True)
class SharedDatabases(ToolSource):
    """Several databases behind one set of tools, which select one by the argument `database`."""

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
        # The original server accepts any name here, and answers for its only database.
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
    """Return the source of the unprefixed tools for the default database; None for any other database."""
    if late is not default:
        return None
    others = tuple(other for other in arranged.values() if other is not late)
    return SharedDatabases(late, others) if others else late


def _database_member(late: LateDatabase, own: Rules, shared: "LateDatabase | SharedDatabases | None") -> Member:
    from ullage.sql import LISTED_NAMES, ORIGINAL_NAMES

    if shared is None:
        rules = replace(own, hidden=("*",))
    else:
        rules = replace(own, pinned=(*own.pinned, *LISTED_NAMES), hidden=(*own.hidden, *ORIGINAL_NAMES))
    return Member(
        name=late.settings.name,
        source=late if shared is None else shared,
        prefix=late.settings.name if shared is None else "",
        rules=rules,
        own=True,
        description=late.settings.description,
    )


async def look_at(late: LateDatabase) -> None:
    """Log once what the user should know of a database: that it cannot be reached, or is not safe."""
    name = late.settings.name
    try:
        for sentence in await late.warnings():
            _log.warning("%s", sentence)
    except UllageError as error:
        _log.warning("database `%s` cannot be asked: %s (%s)", name, error.message, error.suggestion)


RETRIEVED = "retrieve.search"


@dataclass(slots=True, kw_only=True)
class LateFolders(ToolSource):
    """A collection of folders as a source of `retrieve.search`, opened on first use."""

    settings: Folders
    weigh: Callable[[Caller], Callable[[str], int]]
    _source: "RetrieveSource | None" = None

    async def tools(self) -> Listing:
        return await self._open_source().tools()

    async def call(self, call: Call) -> Reply:
        return await self._open_source().call(call)

    async def passages(self, handles: tuple[str, ...], caller: Caller, max_tokens: int) -> str:
        return await self._open_source().passages(handles, caller, max_tokens)

    def _open_source(self) -> "RetrieveSource":
        if self._source is None:
            # Imported late: loading takes a while, and most gateways search no folders.
            from ullage.retrieve import FolderRetriever, RetrieveSettings, RetrieveSource

            said = self.settings
            chosen = RetrieveSettings(
                within=None if self.settings.within is None else Path(self.settings.within),
                name=said.name,
                folders=tuple(map(Path, said.folders)),
                files=tuple(map(Path, said.files)),
                include=said.include,
                exclude=said.exclude,
                gitignore=said.gitignore,
                max_file_bytes=said.max_file_bytes,
            )
            self._source = RetrieveSource(FolderRetriever(chosen), self.weigh)
        return self._source


@dataclass(slots=True, kw_only=True)
class Retrieving:
    """The collections of folders of the settings, by name."""

    weigh: Callable[[Caller], Callable[[str], int]]
    _late: Mapping[str, LateFolders] = field(default_factory=dict[str, LateFolders])

    def arranged(self, settings: Settings) -> dict[str, LateFolders]:
        """Return the settings' collections, reusing the unchanged ones. Nothing changes until `take`."""
        return {one.name: self._reuse_or_make(one) for one in settings.retrieves}

    def _reuse_or_make(self, folders: Folders) -> LateFolders:
        known = self._late.get(folders.name)
        if known is not None and known.settings == folders:
            return known
        return LateFolders(settings=folders, weigh=self.weigh)

    def take(self, arranged: Mapping[str, LateFolders]) -> None:
        self._late = arranged

    def all(self) -> tuple[LateFolders, ...]:
        return tuple(self._late.values())

    def members(self, arranged: Mapping[str, LateFolders], settings: Settings) -> list[Member]:
        """Return the members: the first collection's tool has its plain name, others a prefix of their collection."""
        return [
            Member(name=name, source=late, prefix="" if number == 0 else name, rules=settings.own, own=True)
            for number, (name, late) in enumerate(arranged.items())
        ]


_ROWS = 10_000
"""Maximum rows of an answer; its tokens are limited elsewhere."""
_FREED_AT_ONCE = 500


class HeldTables:
    """Runs SQL on stored results, for `read_result`."""

    def __init__(self) -> None:
        self._worker: TableWorker | None = None

    async def tables(self, sql: str) -> frozenset[str]:
        return frozenset((await anyio.to_thread.run_sync(_judge_sqlite, sql)).tables)

    async def ask(
        self,
        columns: Sequence[str],
        rows: "Iterable[Row]",
        sql: str,
        seconds: float,
        *,
        beside: "Mapping[str, tuple[Sequence[str], Iterable[Row]]] | None" = None,
    ) -> "tuple[Sequence[str], Sequence[Row], bool]":
        statement = (await anyio.to_thread.run_sync(_judge_sqlite, sql)).sql
        # The time limit is for the statement alone: reading the stored rows does not count.
        held = [await anyio.to_thread.run_sync(list["Row"], rows)]
        others = dict[str, tuple[Sequence[str], Sequence["Row"]]]()
        try:
            for name, (names, rows_beside) in (beside or {}).items():
                held.append(await anyio.to_thread.run_sync(list["Row"], rows_beside))
                others[name] = names, held[-1]
            if self._worker is None:
                self._worker = await anyio.to_thread.run_sync(_worker)
            answer = await self._worker.ask_table(
                columns, held[0], statement, seconds=seconds, limit=_ROWS, beside=others
            )
        finally:
            with anyio.CancelScope(shield=True):
                for each in held:
                    await anyio.to_thread.run_sync(_free, each)
        return answer.columns, answer.rows, answer.more

    async def close(self) -> None:
        if self._worker is not None:
            await self._worker.close()


def _free(rows: "list[Row]") -> None:
    """Empty a list a few rows at a time; freeing a million rows at once would block every thread."""
    while rows:
        del rows[-_FREED_AT_ONCE:]


def _worker() -> "TableWorker":
    from ullage.sql.embedded import TableWorker

    return TableWorker()


def _judge_sqlite(sql: str) -> "Statement":
    # Imported late: loading the parser takes a while, and most results are never queried in SQL.
    from ullage.sql.guard import judge

    return judge(sql, "sqlite")


@dataclass(frozen=True, slots=True)
class Behind:
    """The gateway's objects for one server."""

    kept: Kept
    supervised: Supervised


@dataclass(slots=True, kw_only=True)
class Servers:
    """The servers of the settings, by name."""

    host: Host
    catalogue: Catalogue
    spawn: Callable[[Work], None]
    is_own_address: Callable[[str], bool] = lambda _: False
    """Whether a URL leads to this gateway itself, which would then call itself endlessly."""
    _behind: Mapping[str, Behind] = field(default_factory=dict[str, Behind])
    _left_out: frozenset[str] = frozenset()

    def kept(self, server: str) -> Kept:
        return self._behind[server].kept

    async def are_known(self) -> bool:
        """Return whether the catalogue has the tools of every server. Starts none."""
        for behind in tuple(self._behind.values()):
            if await behind.kept.load() is None:
                return False
        return True

    async def is_current(self) -> bool:
        """Return whether the catalogue is up to date with what this process knows of every server."""
        for behind in tuple(self._behind.values()):
            if not await behind.kept.is_current():
                return False
        return True

    def wanted(self, settings: Settings) -> dict[str, Server]:
        servers = [server for server in settings.servers if not server.disabled]
        circular = frozenset(
            server.name for server in servers if server.url is not None and self.is_own_address(server.url)
        )
        for name in sorted(circular - self._left_out):
            _log.warning("server `%s` is left out: its address is where this very gateway is served", name)
        self._left_out = circular
        return {server.name: server for server in servers if server.name not in circular}

    def arranged(self, wanted: Mapping[str, Server]) -> dict[str, Behind]:
        """Return these servers' objects, reusing the unchanged ones. Nothing changes until `take`."""
        return {name: self._reuse_or_make(server) for name, server in wanted.items()}

    def members(self, arranged: Mapping[str, Behind], wanted: Mapping[str, Server]) -> list[Member]:
        return [_member(server, arranged[name]) for name, server in wanted.items()]

    def take(self, arranged: Mapping[str, Behind], wanted: Mapping[str, Server]) -> list[Behind]:
        """Replace the servers by these; return the removed ones."""
        before, self._behind = self._behind, arranged
        for name, server in wanted.items():
            arranged[name].kept.reconfigure(server)
        return [behind for name, behind in before.items() if arranged.get(name) is not behind]

    async def retire(self, behind: Behind, settings: Callable[[], Settings]) -> None:
        await self.host.retire(behind.supervised)
        await behind.kept.close()
        left = behind.kept.server
        if all(server.name != left.name for server in settings().servers):
            await self.catalogue.forget(left)

    def _reuse_or_make(self, server: Server) -> Behind:
        known = self._behind.get(server.name)
        supervised = self.host.source(server)
        if known is not None and ((known.kept.server.key, known.kept.server.shared) == (server.key, server.shared)):
            return known
        return Behind(Kept(supervised, server, self.catalogue, spawn=self.spawn), supervised)


def _member(server: Server, behind: Behind) -> Member:
    return Member(
        name=server.name,
        source=behind.kept,
        prefix=server.spoken_prefix,
        rules=server.rules,
        description=server.description,
    )


_LEAST = 50
"""Tokens below which no useful part of a text fits."""


class Passages(Protocol):
    async def passages(self, handles: tuple[str, ...], caller: Caller, max_tokens: int) -> str:
        """Return the texts of these handles; raises `UnknownHandle`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Handing:
    vault: Vault
    meter: Meter
    reference: Callable[[Caller], Reference]
    found: Callable[[], Sequence[Passages]]
    """The sources that issue handles of passages."""

    async def passages(self, handles: tuple[str, ...], caller: Caller, max_tokens: int) -> str:
        """Return the handles' texts in this order."""
        parts = [partial(self._text, handle, caller) for handle in handles]
        return await self._share_budget(parts, caller, max_tokens)

    async def _share_budget(self, parts: Sequence[Callable[[int], Awaitable[str]]], caller: Caller, budget: int) -> str:
        """Return the parts' texts. Each part gets an equal share of the budget that the parts before it left."""
        texts, left = list[str](), budget
        for number, part in enumerate(parts):
            share = left // (len(parts) - number)
            if share < _LEAST:
                texts.append(f"[{len(parts) - number} more left out]")
                break
            texts.append(await part(share))
            left -= self.meter.count(texts[-1], self.reference(caller).counted_as).high
        return "\n\n".join(texts)

    async def _text(self, handle: str, caller: Caller, budget: int) -> str:
        for found in self.found():
            with suppress(UnknownHandle):
                return await found.passages((handle,), caller, budget)
        opened = await self.vault.aside(lambda: self.vault.open(handle, caller.principal))
        follows = [
            False,
            *(one.kind == other.kind == "lines" and not other.label for one, other in pairwise(opened.shapes)),
        ]
        starts = [
            shape.first for shape, is_more in zip(opened.shapes, follows, strict=False) if not is_more and shape.units
        ]
        pages = [partial(self._page, handle, start, caller) for start in starts]
        return await self._share_budget(pages, caller, budget)

    async def _page(self, handle: str, start: int, caller: Caller, budget: int) -> str:
        from ullage.gateway import ResultReader

        rules = ResultRules(budget=budget)
        reader = ResultReader(vault=self.vault, rules=lambda: rules, meter=self.meter, reference=self.reference)
        asked = Call(tool="read_result", arguments={"handle": handle, "offset": start}, caller=caller)
        reply = await reader.call(asked)
        return "\n".join(str(block["text"]) for block in reply.content if block.get("type") == "text")


DELEGATED = ("delegate.run", "delegate.diff", "delegate.tests", "delegate.consensus")
"""The tools; only the first is listed."""


_LEDGER_SECONDS = 2.0
"""Maximum wait for a call's cost to be written to the ledger. A locked database loses entries, never a call."""


@dataclass(slots=True, kw_only=True)
class Delegating(ToolSource):
    settings: Callable[[], Settings]
    """Returns the settings now in force."""
    environment: Mapping[str, str] = field(repr=False)
    database: Database | None
    recorder: Recorder
    held: Handing
    _source: "DelegateSource | None" = None
    _made_for: tuple[Any, ...] = ()
    """The settings that the source was created for."""
    _client: "httpx2.AsyncClient | None" = None
    _lock: anyio.Lock = field(default_factory=anyio.Lock)
    _said: frozenset[str] = frozenset()

    def member(self, settings: Settings) -> Member | None:
        """Return the gateway's member; None where no provider can be called."""
        if not settings.delegate.is_wanted or not providers_on(settings, self.environment):
            return None
        own = settings.own
        rules = replace(own, pinned=(*own.pinned, DELEGATED[0]))
        return Member(name=settings.delegate_name, source=self, prefix="", rules=rules, own=True)

    async def tools(self) -> Listing:
        # Imported late: loading takes a while, and most gateways never delegate.
        from ullage.delegate import TOOLS

        return Listing(TOOLS, revision="1")

    async def call(self, call: Call) -> Reply:
        source = await self._open_source()
        try:
            return await source.call(call)
        finally:
            # The cost is written before the answer is returned, so that a killed process loses no costs.
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.recorder.flush, _LEDGER_SECONDS)

    def look(self) -> None:
        """Log once each which providers are off and which entries of the policy are unusable."""
        settings = self.settings()
        sentences = providers_off(settings, self.environment) if settings.delegate.is_wanted else ()
        for sentence in (*sentences, *settings.delegate.warnings):
            if sentence not in self._said:
                _log.warning("%s", sentence)
        self._said |= {*sentences, *settings.delegate.warnings}

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _open_source(self) -> "DelegateSource":
        async with self._lock:
            settings = self.settings()
            wanted = (settings.delegate, settings.providers)
            if self._source is None or self._made_for != wanted:
                self._source = await anyio.to_thread.run_sync(self._make, settings)
                self._made_for = wanted
            return self._source

    def _make(self, settings: Settings) -> "DelegateSource":
        import httpx2

        from ullage.delegate import DelegateSource, load_detector

        from .build_delegate import KeptAnswers, build, purse_of, rebuild_delegate

        files = self._files(settings)
        if self._source is not None:
            delegate = rebuild_delegate(self._source.delegate, settings, self.environment, self.recorder)
            return replace(self._source, delegate=delegate, files=files)
        self._client = httpx2.AsyncClient()
        purse = purse_of(self.database, self.settings)
        delegate = build(settings, self.environment, client=self._client, purse=purse, recorder=self.recorder)
        if delegate.policy.languages:
            # Loaded here, in a worker thread; later it would block the event loop.
            load_detector()
        answers = KeptAnswers(vault=self.held.vault)
        return DelegateSource(delegate=delegate, held=self.held, files=files, answers=answers)

    def _files(self, settings: Settings) -> "Files | None":
        """Return the file reader; None where the settings name no folder."""
        if not settings.delegate.file_roots:
            return None
        from ullage.retrieve import FileRoots

        from .build_delegate import FilesOfRoots

        keys = (provider_key(one, self.environment) for one in settings.providers)
        folders = tuple(Path(folder) for folder in settings.delegate.file_roots)
        return FilesOfRoots(FileRoots(folders=folders, secrets=tuple(key for key in keys if key)))
