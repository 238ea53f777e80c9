"""How is a gateway put together from settings, and kept in step with them?

    Metered(Find(Budgeted(Guarded(Cached(Merge({"ullage": own tools, database: …, server: Kept(Supervised), …}))))))

One `Gateway` a process: one host of servers, one catalogue, one vault, one ledger, one merge; a `Budgeted`, a `Find`
and a `Metered` for each client's profile, since what is listed and counted may differ. It decides nothing about tools
or tokens.
"""

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import anyio
from anyio.abc import TaskGroup

from ullage.config import Loaded, Settings
from ullage.errors import StoreFailed, UnknownResource
from ullage.gateway import (
    ASSUMED,
    NAMES,
    READ,
    Cached,
    Catalogue,
    Find,
    Kept,
    Member,
    Merge,
    OpenCalls,
    ResultRules,
    StoredForms,
    Vault,
    View,
)
from ullage.ledger import Recorder, Recording, Unrecorded
from ullage.start_cache import renew_catalogue
from ullage.store import Database
from ullage.tokens import CountSource
from ullage.tool import Era, Listing, ToolSource
from ullage.wire import Health, Host, Profile

from .accepting import DefinitionReport, places_of, report_definitions
from .background import QUIET, Work, guarded
from .clients import LISTED, OWN, Kit, Served, find_settings
from .counting import counting_in_worker, meter
from .databases import Databases, LateDatabase, look_at
from .delegating import Delegating
from .following import follow
from .handing import Handing
from .held_tables import HeldTables
from .notices import tell_of_withheld_variables
from .own import LateSource, OwnTools
from .referring import Weighing, references
from .retrieving import Retrieving
from .searches import Searches
from .servers import Servers
from .storing import open_store
from .surfaces import StoredSurfaces

__all__ = ["OWN", "Gateway", "open_gateway"]


@dataclass(slots=True, kw_only=True)
class Gateway:
    """Every server behind one face, while `open_gateway` lasts."""

    loaded: Loaded
    host: Host
    merge: Merge
    servers: Servers
    databases: Databases
    vault: Vault
    recorder: Recorder
    surfaces: StoredSurfaces
    searches: Searches
    spawn: Callable[[Work], None]
    environment: Mapping[str, str] = field(repr=False)
    database: Database | None = None
    store_error: StoreFailed | None = None
    """Why nothing is kept of this session; None where it is."""
    tables: HeldTables = field(default_factory=HeldTables)
    open_calls: OpenCalls = field(default_factory=OpenCalls)
    when_adopted: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """Called whenever other settings were taken over."""
    cached: Cached = field(init=False)
    retrieving: Retrieving = field(default_factory=lambda: Retrieving(weigh=Weighing(meter())))
    delegating: Delegating = field(init=False)
    _own: ToolSource = field(init=False)
    _rules: ResultRules = field(init=False)
    """One value for as long as the settings stay: others go by its being the same."""
    _members: tuple[Member, ...] = ()
    _group_merges: dict[str, Merge] = field(default_factory=dict[str, Merge])
    """By client, for those that see only some of the servers."""
    _served: dict[str | None, Served] = field(default_factory=dict[str | None, Served])
    _is_watching: bool = False
    """Whether databases are looked at in the background."""

    def __post_init__(self) -> None:
        self._rules = self.settings.result_rules
        reader = LateSource(Listing((READ,), revision="1"), self._make_reader)
        self._own = OwnTools((CountSource(meter()), reader))
        self.cached = Cached(self.merge, lambda: self._rules, time.monotonic)
        self.delegating = Delegating(
            settings=lambda: self.settings,
            environment=self.environment,
            database=self.database,
            recorder=self.recorder,
            held=Handing(vault=self.vault, meter=meter(), reference=references(meter()), found=self.retrieving.all),
        )

    def _make_reader(self) -> ToolSource:
        from ullage.gateway import ResultReader

        return ResultReader(
            vault=self.vault, rules=lambda: self._rules, meter=meter(), reference=references(meter()), query=self.tables
        )

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    def met(self, era: Era) -> None:
        """A client speaks this era of the protocol: servers that are started next are spoken to likewise."""
        self.host.client_era = era

    def profile(self, client: str | None = None) -> Profile:
        """What a client of that name gets; raises `UnknownResource` for one that the settings do not know."""
        if client is not None and client not in self.settings.clients:
            raise UnknownResource(
                f"no client is called `{client}`",
                suggestion=f"use /mcp alone, or add a table [clients.{client}] to the settings",
                options=tuple(self.settings.clients),
            )
        return self.serve(client).profile

    def flagged(self, client: str | None) -> Profile:
        """The same for a name from a flag, which may be any: it is only what figures are filed under."""
        return self.serve(client).profile

    def serve(self, client: str | None) -> Served:
        served = self._served.get(client)
        if served is None:
            served = self._served[client] = self._make_served(client)
        return served

    def preview(self, client: str | None) -> Served:
        """What a client that comes now would be given by a gateway that has served nobody before."""
        return self._make_served(client, is_preview=True)

    def find(self, client: str | None = None) -> Find:
        return self.serve(client).find

    async def view(self, wait: float = 0.0) -> View:
        return await self.merge.view(wait)

    async def settle(self, client: str | None) -> None:
        """Makes a client's list before it is asked for, where every server's tools are known: whether tools are shown
        or searched is in the instructions too, which a client asks for first, and both must say the same."""
        if not (await self.view()).missing:
            await self.find(client).tools()

    def warm_up(self) -> None:
        """Logs, once the first requests are answered, what is wrong with a database or a policy."""
        self._is_watching = True
        self.spawn(partial(self._warm_up, [self.databases[one.name] for one in self.settings.databases]))

    async def _warm_up(self, databases: Sequence[LateDatabase]) -> None:
        await anyio.sleep(QUIET)
        for database in databases:
            await look_at(database)
        self.delegating.look()

    def health(self) -> tuple[Health, ...]:
        return self.host.health()

    def kept(self, server: str) -> Kept:
        return self.servers.kept(server)

    async def definition_report(self, server: str) -> DefinitionReport:
        """What of a server's definitions is withheld, new, or was accepted by a setting."""
        baselines = self.servers.catalogue.baselines
        try:
            kept = self.servers.kept(server)
        except KeyError:  # left out, as one whose address leads back here is
            return DefinitionReport()
        return await anyio.to_thread.run_sync(report_definitions, baselines, kept.server)

    async def adopt(self, loaded: Loaded) -> None:
        """Takes other settings over: what stays is not disturbed, what left is retired. Where that fails, all stays as
        it was."""
        before, self.loaded = self.loaded, loaded
        try:
            wanted = self.servers.wanted(self.settings)
            servers, databases = self.servers.arranged(wanted), self.databases.arranged(self.settings)
            folders, delegate = self.retrieving.arranged(self.settings), self.delegating.member(self.settings)
            members = [
                *self.databases.members(databases, self.settings),
                *([] if delegate is None else [delegate]),
                *self.retrieving.members(folders, self.settings),
                *self.servers.members(servers, wanted),
            ]
            self._members = (self._own_member(), *members)
            self.merge.replace(self._members)
            for client, merge in self._group_merges.items():
                merge.replace(self._members_of(client))
        except BaseException:
            self.loaded = before
            raise
        self._rules = self.settings.result_rules
        gone = self.servers.take(servers, wanted)
        self.cached.forget(behind.kept.server.name for behind in gone)
        for behind in gone:
            self.spawn(partial(self.servers.retire, behind, lambda: self.settings))
        self._take_databases(databases)
        self.retrieving.take(folders)
        if self._is_watching:
            self.delegating.look()
        for client, served in self._served.items():
            served.find.replace(find_settings(self.settings, client))
        for note in self.when_adopted:
            note()

    def _take_databases(self, arranged: Mapping[str, LateDatabase]) -> None:
        came, left = self.databases.take(arranged)
        for database in left:
            self.spawn(database.close)
        for database in came if self._is_watching else ():
            self.spawn(partial(look_at, database))

    @property
    def own_name(self) -> str:
        """What our own tools' server is called."""
        return self.settings.name_of_own(OWN)

    def _own_member(self) -> Member:
        own = self.settings.own
        unused = () if self.settings.may_cut else ("read_result",)
        rules = replace(own, pinned=(*own.pinned, *LISTED), hidden=(*own.hidden, *unused))
        return Member(name=self.own_name, source=self._own, prefix="", rules=rules, own=True)

    def _members_of(self, client: str) -> list[Member]:
        """What a client sees: Ullage's own parts, and the servers of its groups."""
        seen = self.settings.servers_of(client)
        return [one for one in self._members if one.own or seen is None or one.name in seen]

    def _make_served(self, client: str | None, *, is_preview: bool = False) -> Served:
        merge, cached = self.merge, self.cached
        if client is not None and self.settings.servers_of(client) is not None:
            merge = Merge(self._members_of(client), spawn=None if is_preview else self.spawn, reserved=NAMES)
            cached = Cached(merge, lambda: self._rules, time.monotonic)
            if not is_preview:
                self._group_merges[client] = merge
        return Kit(
            merge=merge,
            cached=cached,
            vault=self.vault,
            rules=lambda: self._rules,
            recorder=self.recorder,
            surfaces=self.surfaces,
            searches=self.searches,
            spawn=self.spawn,
            open_calls=self.open_calls,
            when_met=self.met,
        ).serve(self.settings, client, is_preview=is_preview)


@asynccontextmanager
async def open_gateway(
    loaded: Loaded,
    *,
    environment: Mapping[str, str],
    again: Callable[[Loaded], Loaded] | None = None,
    is_own_address: Callable[[str], bool] = lambda _: False,
) -> AsyncGenerator[Gateway]:
    """A gateway for these settings. With `again` their files are watched, and what they say is taken over."""
    database, store_error = await anyio.to_thread.run_sync(
        open_store, loaded.settings.store, "nothing is kept of this session"
    )
    recording = None if database is None else Recording(database)
    failure: Exception | None = None
    tokens = frozenset(token.env for token in loaded.settings.tokens if token.env is not None)
    with counting_in_worker():
        async with Host(environment=environment, withheld=tokens) as host, anyio.create_task_group() as tasks:
            ground = _Ground(host=host, environment=environment, database=database, recording=recording)
            gateway = _build(loaded, ground, tasks)
            gateway.store_error, gateway.servers.is_own_address = store_error, is_own_address
            await gateway.surfaces.load(
                find_settings(loaded.settings, client).key for client in (None, *loaded.settings.clients)
            )
            await gateway.adopt(loaded)
            await tell_of_withheld_variables(database, host.environment, loaded.settings.servers)
            if again is not None:
                gateway.spawn(partial(follow, loaded, again, gateway.adopt))
            try:
                yield gateway
            except Exception as error:  # noqa: BLE001 - raised again below: a task group would wrap it
                failure = error
            finally:
                with anyio.CancelScope(shield=True):
                    await gateway.surfaces.save()
                    await gateway.searches.save()
                    await gateway.databases.close()
                    await gateway.tables.close()
                    await gateway.delegating.close()
                tasks.cancel_scope.cancel()
    with anyio.CancelScope(shield=True):
        if recording is not None:
            await recording.close()
        if database is not None:
            database.close()
    if failure is not None:
        raise failure


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    host: Host
    environment: Mapping[str, str] = field(repr=False)
    database: Database | None
    recording: Recording | None


def _build(loaded: Loaded, ground: _Ground, tasks: TaskGroup) -> Gateway:
    def spawn(work: Work) -> None:
        tasks.start_soon(guarded, work)

    host, database = ground.host, ground.database
    catalogue = Catalogue(
        database,
        lambda text: meter().count(text, ASSUMED.counted_as).tokens,
        places=places_of(ground.environment),
        on_change=partial(renew_catalogue, ground.environment, loaded.settings.store),
    )
    results = loaded.settings.results
    return Gateway(
        loaded=loaded,
        host=host,
        merge=Merge(spawn=spawn, reserved=NAMES),
        servers=Servers(host=host, catalogue=catalogue, spawn=spawn),
        databases=Databases(weigh=Weighing(meter())),
        vault=Vault(database, size=int(results.keep_megabytes * 1_000_000), age=results.keep_hours * 3_600),
        recorder=ground.recording or Unrecorded(),
        surfaces=StoredSurfaces(StoredForms(database, edition="surface"), spawn),
        searches=Searches.of(database, spawn),
        spawn=spawn,
        environment=ground.environment,
        database=database,
    )
