"""How is a gateway put together from settings, and kept in step with them?

    Metered(Find(Guarded(Merge({server: Kept(Supervised), …, "ullage": own tools}))))

One `Gateway` a process: one host of servers, one catalogue, one ledger, one merge; a `Find` and a `Metered` for each
client's profile, since what is listed and counted may differ. It decides nothing about tools or tokens.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import anyio
from anyio.abc import TaskGroup

from ullage.config import Loaded, Settings
from ullage.errors import StoreFailed, UnknownResource
from ullage.gateway import (
    ASSUMED,
    EDITION,
    NAMES,
    Catalogue,
    Find,
    Kept,
    Member,
    Merge,
    Server,
    StoredForms,
    View,
)
from ullage.ledger import Recorder, Recording, Unrecorded
from ullage.models import DEFAULT_MODEL
from ullage.store import Database
from ullage.tokens import CountSource
from ullage.wire import Health, Host, Profile, Supervised

from .clients import LISTED, OWN, Kit, Served, find_settings
from .counting import meter
from .following import follow
from .surfaces import StoredSurfaces

__all__ = ["OWN", "Gateway", "open_gateway"]

_log = logging.getLogger(__name__)

_QUIET = 0.5
"""Seconds after which a vocabulary is loaded that nobody has asked for yet."""

Work = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Behind:
    """A server's part of the gateway."""

    kept: Kept
    supervised: Supervised


@dataclass(slots=True, kw_only=True)
class Gateway:
    """Every server behind one face, while `open_gateway` lasts."""

    loaded: Loaded
    host: Host
    merge: Merge
    catalogue: Catalogue
    recorder: Recorder
    surfaces: StoredSurfaces
    forms: StoredForms
    spawn: Callable[[Work], None]
    store_error: StoreFailed | None = None
    """Why nothing is kept of this session; None where it is."""
    is_own_address: Callable[[str], bool] = lambda _: False
    """Whether a URL leads to this very gateway, which would then ask itself for ever."""
    _own: CountSource = field(default_factory=lambda: CountSource(meter()))
    _left_out: set[str] = field(default_factory=set[str])
    _behind: dict[str, _Behind] = field(default_factory=dict[str, _Behind])
    _served: dict[str | None, Served] = field(default_factory=dict[str | None, Served])

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

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
        """Has the vocabularies loaded once the first requests are answered, so that no later one waits for that."""
        self.spawn(_load_vocabularies)

    def health(self) -> tuple[Health, ...]:
        return self.host.health()

    def kept(self, server: str) -> Kept:
        return self._behind[server].kept

    async def adopt(self, loaded: Loaded) -> None:
        """Takes other settings over: servers that stay are not disturbed, those that left are retired. Where that
        fails, all stays as it was."""
        before = self.loaded, dict(self._behind)
        try:
            self.loaded = loaded
            gone = self._arrange({server.name: server for server in self._wanted()})
        except BaseException:
            self.loaded, self._behind = before
            raise
        for behind in gone:
            self.spawn(lambda behind=behind: self._retire(behind))

    def _wanted(self) -> list[Server]:
        servers = [server for server in self.settings.servers if not server.disabled]
        circular = {server.name for server in servers if server.url is not None and self.is_own_address(server.url)}
        for name in sorted(circular - self._left_out):
            _log.warning("server `%s` is left out: its address is where this very gateway is served", name)
        self._left_out = circular
        return [server for server in servers if server.name not in circular]

    def _arrange(self, wanted: dict[str, Server]) -> list[_Behind]:
        """Puts these servers behind the gateway; returns those that stood there and no longer do."""
        leaving = [name for name, behind in self._behind.items() if not _same(behind, wanted.get(name))]
        gone = [self._behind.pop(name) for name in leaving]
        for name, server in wanted.items():
            self._behind[name] = self._refitted(server)
        self.merge.replace([self._own_member(), *(self._member(server) for server in wanted.values())])
        for name, server in wanted.items():
            self._behind[name].kept.server = server
        for client, served in self._served.items():
            served.find.replace(find_settings(self.settings, client))
        return gone

    async def _retire(self, behind: _Behind) -> None:
        await self.host.retire(behind.supervised)
        await behind.kept.close()
        left = behind.kept.server
        if all(server.name != left.name for server in self.settings.servers):
            await self.catalogue.forget(left)

    def _refitted(self, server: Server) -> _Behind:
        known = self._behind.get(server.name)
        supervised = self.host.source(server)
        return known or _Behind(Kept(supervised, server, self.catalogue, spawn=self.spawn), supervised)

    @property
    def own_name(self) -> str:
        """What our own tools' server is called; another server may be called as we are, and keeps its name."""
        taken = {server.name for server in self.settings.servers}
        # No server's name in the settings has brackets.
        return f"{OWN} (own)" if OWN in taken else OWN

    def _own_member(self) -> Member:
        rules = replace(self.settings.own, pinned=(*self.settings.own.pinned, *LISTED))
        return Member(name=self.own_name, source=self._own, prefix="", rules=rules, own=True)

    def _member(self, server: Server) -> Member:
        return Member(
            name=server.name,
            source=self._behind[server.name].kept,
            prefix=server.spoken_prefix,
            rules=server.rules,
            description=server.description,
        )

    def _make_served(self, client: str | None) -> Served:
        return Kit(
            merge=self.merge, recorder=self.recorder, surfaces=self.surfaces, forms=self.forms, spawn=self.spawn
        ).serve(self.settings, client)


def _same(behind: _Behind, server: Server | None) -> bool:
    """Whether it is the server it was, as far as starting it goes; its rules may differ."""
    before = behind.kept.server
    return server is not None and (before.key, before.shared) == (server.key, server.shared)


@asynccontextmanager
async def open_gateway(
    loaded: Loaded,
    *,
    environment: Mapping[str, str],
    again: Callable[[], Loaded] | None = None,
    is_own_address: Callable[[str], bool] = lambda _: False,
) -> AsyncGenerator[Gateway]:
    """A gateway for these settings. With `again` their files are watched, and what they say is taken over."""
    database, store_error = await anyio.to_thread.run_sync(_open_store, loaded.settings.store)
    recording = None if database is None else Recording(database)
    failure: Exception | None = None
    tokens = frozenset(token.env for token in loaded.settings.tokens if token.env is not None)
    async with Host(environment=environment, withheld=tokens) as host, anyio.create_task_group() as tasks:
        gateway = _build(loaded, host, database, recording, tasks)
        gateway.store_error, gateway.is_own_address = store_error, is_own_address
        await gateway.surfaces.load(
            find_settings(loaded.settings, client).key for client in (None, *loaded.settings.clients)
        )
        await gateway.adopt(loaded)
        if again is not None:
            gateway.spawn(partial(follow, loaded, again, gateway.adopt))
        try:
            yield gateway
        except Exception as error:  # noqa: BLE001 - raised again below: a task group would wrap it
            failure = error
        finally:
            with anyio.CancelScope(shield=True):
                await gateway.surfaces.save()
            tasks.cancel_scope.cancel()
    with anyio.CancelScope(shield=True):
        if recording is not None:
            await recording.close()
        if database is not None:
            database.close()
    if failure is not None:
        raise failure


def _build(
    loaded: Loaded, host: Host, database: Database | None, recording: Recording | None, tasks: TaskGroup
) -> Gateway:
    def spawn(work: Work) -> None:
        tasks.start_soon(_guarded, work)

    return Gateway(
        loaded=loaded,
        host=host,
        merge=Merge(spawn=spawn, reserved=NAMES),
        catalogue=Catalogue(database, lambda text: meter().count(text, ASSUMED.counted_as).tokens),
        recorder=recording or Unrecorded(),
        surfaces=StoredSurfaces(StoredForms(database, edition="surface"), spawn),
        forms=StoredForms(database, edition=EDITION),
        spawn=spawn,
    )


def _open_store(url: str) -> tuple[Database | None, StoreFailed | None]:
    """A gateway without its database still serves; it forgets."""
    try:
        return Database.open(url), None
    except StoreFailed as error:
        _log.warning("nothing is kept of this session: %s (%s)", error.message, error.suggestion)
        return None, error


async def _load_vocabularies() -> None:
    for model in dict.fromkeys((ASSUMED.counted_as, DEFAULT_MODEL)):
        # A client that starts us waits for its first answers; loading would take the interpreter from them.
        await anyio.sleep(_QUIET)
        await anyio.to_thread.run_sync(meter().count, "ready", model)


async def _guarded(work: Work) -> None:
    try:
        await work()
    except Exception:  # noqa: BLE001 - it belongs to one server or client, and must not end the work of the others
        _log.exception("something went wrong in the background")
