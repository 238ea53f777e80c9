"""Builds the gateway from the settings. The stack of wrappers, outermost first:

    Metered(Find(Budgeted(Guarded(Cached(Merge({"ullage": own tools, database: …, server: Kept(Supervised), …}))))))

One `Gateway` a process: one host of servers, one catalogue, one vault, one ledger, one merge. Each client's profile has
its own `Budgeted`, `Find` and `Metered` around what all clients share, since what is listed and counted may differ by
profile. This module decides nothing about tools or tokens.

Surface decisions (tools shown directly, or found by search) are stored with the forms of definitions and depend on
them; a lost decision is made again. Each is stored under a fingerprint of everything that decides which tools exist and
whether they are shown directly, and stays valid while the fingerprint is the same. Stored forms, embedding vectors and
learned uses survive a restart. Without a database nothing is stored, and nothing is learned.

When settings files change, the new settings are adopted and one log line reports what was refused and why, what was
left out, and what takes effect at the next start. No value is logged, since it may be a secret.

A user may configure a plain rule of a fixed number of characters per token in place of a model; every other token count
reference is the gateway package's responsibility.
"""

import hashlib
import logging
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import astuple, dataclass, field, replace
from functools import partial

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from ullage import __version__
from ullage.config import Gateway as SettingsGateway
from ullage.config import Issue, Loaded, Reloading, Settings, approve_command
from ullage.errors import StoreFailed, UllageError, UnknownResource, UnknownTool
from ullage.gateway import (
    ASSUMED,
    EDITION,
    NAMES,
    READ,
    Budgeted,
    Cached,
    Catalogue,
    Decision,
    Embedders,
    Entry,
    Find,
    FindSettings,
    Guarded,
    Kept,
    Learning,
    Member,
    Merge,
    Metered,
    Missing,
    OpenCalls,
    Reference,
    References,
    ResultRules,
    ShapeMemory,
    StoredForms,
    StoredShapes,
    StoredUses,
    StoredVectors,
    Surroundings,
    Underscored,
    Vault,
    View,
    definition_text,
)
from ullage.ledger import KEEP_DAYS, Recorder, Recording, Unrecorded
from ullage.start_cache import renew_catalogue
from ullage.store import Database
from ullage.tokens import PLAIN_RULES, CountSource, Meter
from ullage.tool import Call, Caller, ClientDeclaration, Era, JsonObject, Listing, Reply, ToolSource
from ullage.tracing import Tracer
from ullage.wire import Health, Host, Identity, Profile

from .build_sources import (
    DELEGATED,
    QUIET,
    RETRIEVED,
    Databases,
    Delegating,
    Handing,
    HeldTables,
    LateDatabase,
    Retrieving,
    Servers,
    Work,
    look_at,
    run_guarded,
)
from .count_text import counting_in_worker, meter, write_request_texts
from .open_store import DefinitionReport, open_store, places_of, report_definitions, tell_of_withheld_variables

__all__ = [
    "LISTED",
    "OWN",
    "Gateway",
    "Kit",
    "LateSource",
    "OwnTools",
    "Searches",
    "Served",
    "StoredSurfaces",
    "Weighing",
    "find_settings",
    "fingerprint",
    "follow",
    "open_gateway",
    "references",
    "tokens_of",
    "until_restart",
    "weigh",
]

_log = logging.getLogger(__name__)

_SETTLED = ("model", "window", "underscore_names")
"""Keys of a client's profile that are fixed when the client connects; the others are looked up each time."""


async def follow(loaded: Loaded, again: Callable[[Loaded], Loaded], adopt: Callable[[Loaded], Awaitable[None]]) -> None:
    """Adopt every relevant change of the settings files, until cancelled.

    Args:
        loaded: The settings now in force.
        again: Reads all settings anew.
        adopt: Puts changed settings into force. Where it fails, the error is logged and the settings before stay.
    """
    async for change in Reloading(loaded=loaded, again=again).changes():
        if change.refused:
            _log.warning("the settings were changed and not taken over: %s", _sentences(change.refused))
            continue
        try:
            await adopt(change.loaded)
        except UllageError as error:
            _log.warning("the settings were changed and not taken over: %s", error.message)
            continue
        except Exception:  # noqa: BLE001 - the gateway continues to serve with the settings before
            _log.exception("the settings were changed and not taken over")
            continue
        after = change.loaded
        # A file that is merely waiting for approval now has changed nothing.
        if replace(loaded.settings, pending_files=()) == replace(after.settings, pending_files=()):
            fresh = [issue for issue in after.pending_issues if issue not in loaded.pending_issues]
            for issue in fresh:
                _log.warning("%s", issue.sentence())
        else:
            late = until_restart(loaded.settings, after.settings)
            fresh = tuple(issue for issue in after.issues if issue.severity == "problem" and issue not in loaded.issues)
            parts = [f"from the next start on: {', '.join(late)}"] if late else []
            _log.warning(
                "the settings were changed and taken over%s",
                "".join(f"; {part}" for part in (*parts, _sentences(fresh)) if part),
            )
        loaded = change.loaded


def _sentences(issues: tuple[Issue, ...]) -> str:
    return "; ".join(issue.sentence() for issue in issues)


def until_restart(before: Settings, after: Settings) -> tuple[str, ...]:
    """Return the changed keys that take effect only at the next start, being fixed on connecting or opening."""
    changed = ["store.url"] if before.store != after.store else []
    changed += ["http.tokens"] if before.tokens != after.tokens else []
    changed += ["telemetry"] if before.telemetry != after.telemetry else []
    kept = ("keep_hours", "keep_megabytes")
    changed += [f"results.{key}" for key in kept if getattr(before.results, key) != getattr(after.results, key)]
    changed += [f"gateway.{key}" for key in _SETTLED if getattr(before.gateway, key) != getattr(after.gateway, key)]
    for name in sorted(before.clients.keys() & after.clients.keys()):
        old, new = before.clients[name], after.clients[name]
        changed += [f"clients.{name}.{key}" for key in _SETTLED if getattr(old, key) != getattr(new, key)]
    return tuple(changed)


@dataclass(frozen=True, slots=True)
class OwnTools(ToolSource):
    """Several sources of Ullage's own tools as one source.

    A call goes to the source that lists the tool under its name or an alias.
    """

    sources: tuple[ToolSource, ...]

    async def tools(self) -> Listing:
        listings = [await source.tools() for source in self.sources]
        tools = tuple(tool for listing in listings for tool in listing.tools)
        return Listing(tools, revision=" ".join(listing.revision for listing in listings))

    async def call(self, call: Call) -> Reply:
        for source in self.sources:
            if any(call.tool in (tool.name, *tool.aliases) for tool in (await source.tools()).tools):
                return await source.call(call)
        options = tuple(tool.name for tool in (await self.tools()).tools)
        raise UnknownTool(f"no tool is called `{call.tool}`", options=options)


@dataclass(slots=True)
class LateSource(ToolSource):
    """A source with a known listing that is created on the first call of one of its tools; most sessions make none."""

    listing: Listing
    make: Callable[[], ToolSource]
    """Creates the source. Runs in a worker thread, since it imports the source's modules."""
    _made: ToolSource | None = None

    async def tools(self) -> Listing:
        return self.listing

    async def call(self, call: Call) -> Reply:
        if self._made is None:
            self._made = await anyio.to_thread.run_sync(self.make)
        return await self._made.call(call)


def references(meter: Meter, window: int | None = None) -> Callable[[Caller], Reference]:
    """Return a function that gives each caller's token count reference.

    Args:
        meter: Provides the model table.
        window: The context window in tokens that the user set; None for the model's own.
    """
    models, wide = References(meter.models, window), window or ASSUMED.window
    rules = {name: Reference(model=None, counted_as=name, label=name, window=wide, exact=False) for name in PLAIN_RULES}

    def reference(caller: Caller) -> Reference:
        return rules.get(caller.model or "") or models(caller)

    return reference


def weigh(text: str) -> int:
    """Return the tokens of a text for the model that the catalogue counts for."""
    return meter().count(text, ASSUMED.counted_as).tokens


def tokens_of(entry: Entry) -> int:
    """Return the tokens of a tool's definition: those in the catalogue, else counted now."""
    known = entry.token_count
    return weigh(definition_text(entry.tool)) if known is None else known


class Weighing:
    """Upper bound of a text's tokens for a caller, used for size limits."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._reference = references(meter)

    def __call__(self, caller: Caller) -> Callable[[str], int]:
        counted_as = self._reference(caller).counted_as
        return lambda text: self._meter.count(text, counted_as).high


@dataclass(frozen=True, slots=True, kw_only=True)
class Searches:
    """Stored data of the tool search: forms of definitions, embedding vectors, learned uses and what tools return."""

    forms: StoredForms
    counts: StoredForms
    """Tokens of long texts by their hashes."""
    vectors: StoredVectors
    learning: Learning | None
    shapes: ShapeMemory
    embedders: Embedders = field(default_factory=Embedders)

    @classmethod
    def of(cls, database: Database | None, spawn: Callable[[Work], None]) -> "Searches":
        return cls(
            forms=StoredForms(database, edition=EDITION),
            counts=StoredForms(database, edition=f"tokens {__version__}"),
            vectors=StoredVectors(database),
            learning=None if database is None else Learning(StoredUses(database), spawn),
            shapes=ShapeMemory(None if database is None else StoredShapes(database), spawn),
        )

    async def save(self) -> None:
        """Write what is not yet saved."""
        if self.learning is not None:
            await self.learning.save()
        await self.shapes.settle()


class StoredSurfaces:
    """Surface decisions cached in memory; loaded once and written in the background."""

    def __init__(self, kept: StoredForms, spawn: Callable[[Callable[[], Awaitable[None]]], None]) -> None:
        self._kept = kept
        self._spawn = spawn
        self._decisions: dict[str, Decision] = {}
        self._unsaved: dict[str, JsonObject] = {}

    async def load(self, keys: Iterable[str]) -> None:
        found = await anyio.to_thread.run_sync(self._kept.load, list(keys))
        read = ((key, _read(said)) for key, said in found.items())
        self._decisions |= {key: decision for key, decision in read if decision is not None}

    def recall(self, key: str) -> Decision | None:
        return self._decisions.get(key)

    def remember(self, key: str, decision: Decision) -> None:
        if self._decisions.get(key) == decision:
            return
        self._decisions[key] = decision
        self._unsaved[key] = {
            "surface": decision.surface,
            "reason": decision.reason,
            "configuration": decision.configuration,
        }
        self._spawn(self.save)

    async def save(self) -> None:
        """Write the decisions that are not yet saved.

        Also called on shutdown, which may precede the background write.
        """
        unsaved = dict(self._unsaved)
        if unsaved:
            await anyio.to_thread.run_sync(self._kept.save, unsaved)
        self._unsaved = {key: said for key, said in self._unsaved.items() if unsaved.get(key) is not said}


def _read(said: JsonObject) -> Decision | None:
    surface, reason, configuration = (said.get(key) for key in ("surface", "reason", "configuration"))
    if surface not in ("direct", "search") or not isinstance(reason, str) or not isinstance(configuration, str):
        return None
    return Decision(surface="direct" if surface == "direct" else "search", reason=reason, configuration=configuration)


def fingerprint(settings: Settings, chosen: SettingsGateway) -> str:
    """Return a hash of all settings that decide which tools exist and whether they are shown directly."""
    servers = ((one.name, one.key, one.disabled, one.prefix, astuple(one.rules)) for one in settings.servers)
    databases = ((one.name, one.default, one.description) for one in settings.databases)
    others = settings.delegate.is_wanted, tuple(one.name for one in settings.retrieves)
    parts = [
        *servers,
        *databases,
        others,
        astuple(settings.own),
        (chosen.mode, chosen.direct_below, chosen.model, chosen.window),
    ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


OWN = "ullage"
"""Server name of Ullage's own tools, unless a configured server has this name."""
LISTED = ("count-tokens", "read_result")
"""Own tools that are listed unless the settings hide them; the others are found by search."""

_LONGEST_PATH = 400


@dataclass(slots=True)
class Served:
    """The objects that serve one client."""

    find: Find
    profile: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """The objects that all clients share."""

    merge: Merge
    cached: Cached
    """Cache around `merge`."""
    vault: Vault
    rules: Callable[[], ResultRules]
    whole: Callable[[], tuple[str, ...]]
    """The tools whose results the client gets as their source sent them."""
    learns_shapes: Callable[[], bool]
    """Whether what tools return is learnt from replies."""
    recorder: Recorder
    surfaces: StoredSurfaces
    searches: Searches
    spawn: Callable[[Work], None]
    open_calls: OpenCalls
    when_met: Callable[[Era, ClientDeclaration | None], None]
    when_roots_changed: Callable[[Caller, ClientDeclaration], None]
    tracer: Tracer | None
    environment: Mapping[str, str] = field(repr=False)

    def serve(self, settings: Settings, client: str | None, *, is_preview: bool = False) -> Served:
        """Build the objects that serve one client. A preview only lists tools and starts no background work."""
        chosen = settings.gateway_for(client)
        reference = references(meter(), chosen.window)
        around = Surroundings(
            recorder=self.recorder,
            reference=reference,
            memory=self.surfaces,
            forms=self.searches.forms,
            embedders=self.searches.embedders,
            vectors=self.searches.vectors,
            learning=self.searches.learning,
            shapes=self.searches.shapes,
            spawn=None if is_preview else self.spawn,
            quiet=QUIET,
            lister=Caller(principal=OWN, session="lists", client=client, model=chosen.model),
            request_texts=partial(write_request_texts, client, self.environment),
            counts=self.searches.counts,
        )
        budgeted = Budgeted(
            inner=Guarded(self.cached, self.recorder.audit),
            rules=self.rules,
            vault=self.vault,
            meter=meter(),
            reference=reference,
            whole=self.whole,
            shapes=lambda: self.searches.shapes if self.learns_shapes() else None,
        )
        find = Find(budgeted, meter(), find_settings(settings, client), around)
        source: ToolSource = Metered(
            inner=find,
            meter=meter(),
            recorder=self.recorder,
            clock=time.perf_counter,
            reference=reference,
            open_calls=self.open_calls,
            is_budgeted=True,
        )
        if chosen.underscore_names:
            source = Underscored(inner=source, own=(*LISTED, *DELEGATED, RETRIEVED))
        identity = Identity(
            name="ullage", version=__version__, instructions=lambda: find.instructions(self.merge.known) or None
        )
        profile = Profile(
            source=source,
            identity=identity,
            model=chosen.model,
            when_met=self.when_met,
            before_introduction=find.meet_servers,
            when_roots_changed=self.when_roots_changed,
            tracer=self.tracer,
        )
        return Served(find, profile)


def _pending(path: str) -> Missing:
    reason = "this project file waits for the user's approval; the user reviews and approves it with"
    return Missing(
        server=_plain_text(re.split(r"[/\\]", path)[-1]), reason=reason, command=_plain_text(approve_command(path))
    )


def _plain_text(text: str) -> str:
    """Return a path as plain text for a reply: unprintable characters are escaped, and a very long path is cut."""
    shown = "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
    return shown if len(shown) <= _LONGEST_PATH else f"{shown[:_LONGEST_PATH]}…"


def find_settings(settings: Settings, client: str | None) -> FindSettings:
    """Return the tool search's settings for a client."""
    chosen = settings.gateway_for(client)
    # The search tools are all that a model sees of the other tools, so they stay listed even where the settings hide
    # them; a denied one is removed.
    own = settings.own
    listed = replace(own, hidden=tuple(name for name in own.hidden if name not in NAMES))
    return FindSettings(
        mode=chosen.mode,
        direct_below=chosen.direct_below,
        find_budget=chosen.find_budget,
        index=settings.search.index,
        learn=settings.search.learn,
        shapes=settings.search.shapes,
        whole=settings.whole_for(client),
        join_calls=chosen.join_calls,
        start_wait=chosen.start_wait,
        own=listed,
        pending=tuple(_pending(path) for path in settings.pending_files),
        # A client name without a profile has no settings of its own, so it shares the decision made for all clients.
        key=f"{client if client in settings.clients else ''}:{fingerprint(settings, chosen)}",
        configuration=fingerprint(settings, chosen),
    )


@dataclass(slots=True, kw_only=True)
class Gateway:
    """All servers, databases and own tools behind one source for each client.

    It is valid inside `open_gateway`.
    """

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
    tracer: Tracer | None = None
    """Records a span of each request; None to record none."""
    store_error: StoreFailed | None = None
    """Why this session is not stored; None where it is."""
    recording: Recording | None = None
    """Writes the ledger; None without a store."""
    tables: HeldTables = field(default_factory=HeldTables)
    open_calls: OpenCalls = field(default_factory=OpenCalls)
    when_adopted: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """Called each time that changed settings have been adopted."""
    cached: Cached = field(init=False)
    retrieving: Retrieving = field(default_factory=lambda: Retrieving(weigh=Weighing(meter())))
    delegating: Delegating = field(init=False)
    _own: ToolSource = field(init=False)
    _rules: ResultRules = field(init=False)
    """The same object until the settings change; users compare it by identity."""
    _members: tuple[Member, ...] = ()
    _client_merges: dict[str, tuple[Merge, Cached]] = field(default_factory=dict[str, tuple[Merge, Cached]])
    """By client, for clients that have a table in the settings and so may see only some of the servers."""
    _served: dict[str | None, Served] = field(default_factory=dict[str | None, Served])
    _is_watching: bool = False
    """Whether databases are checked in the background."""

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

    def met(self, era: Era, client: ClientDeclaration | None = None) -> None:
        """Record the protocol era and declaration of a client; servers started later receive them."""
        self.host.client_era = era
        if client is not None:
            self.host.client = client

    def profile(self, client: str | None = None) -> Profile:
        """Return the profile of a client.

        Raises:
            UnknownResource: The settings have no client of that name.
        """
        if client is not None and client not in self.settings.clients:
            raise UnknownResource(
                f"no client is called `{client}`",
                suggestion=f"use /mcp alone, or add a table [clients.{client}] to the settings",
                options=tuple(self.settings.clients),
            )
        return self.serve(client).profile

    def flagged(self, client: str | None) -> Profile:
        """Return the profile for a client name from a flag. Any name is accepted, as it only labels the figures."""
        return self.serve(client).profile

    def serve(self, client: str | None) -> Served:
        served = self._served.get(client)
        if served is None:
            served = self._served[client] = self._make_served(client)
        return served

    def preview(self, client: str | None) -> Served:
        """Return what a newly started gateway would serve to a client that connects now."""
        return self._make_served(client, is_preview=True)

    def find(self, client: str | None = None) -> Find:
        return self.serve(client).find

    async def view(self, wait: float = 0.0) -> View:
        return await self.merge.view(wait)

    def record_definitions(self) -> None:
        """Record what the last requests of all clients carried."""
        for served in self._served.values():
            served.find.record_definitions()

    async def settle(self, client: str | None) -> None:
        """Build a client's tool list before it is requested, where the tools of every server are known.

        The instructions, which a client requests first, also say whether tools are shown directly or searched, and must
        agree with the list.
        """
        if not (await self.view()).missing:
            await self.find(client).tools()

    def warm_up(self) -> None:
        """Log problems of databases and the policy in the background once the first requests are answered."""
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
        """Return the definitions of a server that are withheld, new, or accepted by a setting."""
        baselines = self.servers.catalogue.baselines
        try:
            kept = self.servers.kept(server)
        except KeyError:  # left out, as a server whose address leads back here is
            return DefinitionReport()
        return await anyio.to_thread.run_sync(report_definitions, baselines, kept.server)

    async def adopt(self, loaded: Loaded) -> None:
        """Adopt changed settings.

        Servers, databases and folders that stay the same keep running, and removed ones are retired. On failure nothing
        changes.
        """
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
            own = self.settings.own
            unused = () if self.settings.may_cut else ("read_result",)
            rules = replace(own, pinned=(*own.pinned, *LISTED), hidden=(*own.hidden, *unused))
            own_member = Member(name=self.own_name, source=self._own, prefix="", rules=rules, own=True)
            self._members = (own_member, *members)
            self.merge.replace(self._members)
            for client, (merge, _) in self._client_merges.items():
                merge.replace(self._members_of(client))
        except BaseException:
            self.loaded = before
            raise
        self._rules = self.settings.result_rules
        gone = self.servers.take(servers, wanted)
        for cached in (self.cached, *(cached for _, cached in self._client_merges.values())):
            cached.forget(behind.kept.server.name for behind in gone)
        for behind in gone:
            self.spawn(partial(self.servers.retire, behind, lambda: self.settings))
        self._take_databases(databases)
        self.retrieving.take(folders)
        if self._is_watching:
            self.delegating.look()
        for client, served in self._served.items():
            served.find.replace(find_settings(self.settings, client))
            if client not in self._client_merges and self.settings.servers_of(client) is not None:
                _log.warning("client `%s` had no table when it connected: its groups apply from the next start", client)
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
        """Server name of Ullage's own tools."""
        return self.settings.name_of_own(OWN)

    def _members_of(self, client: str) -> list[Member]:
        """Return the members that a client sees: Ullage's own parts, and the servers of its groups."""
        seen = self.settings.servers_of(client)
        return [one for one in self._members if one.own or seen is None or one.name in seen]

    def _make_served(self, client: str | None, *, is_preview: bool = False) -> Served:
        merge, cached = self.merge, self.cached
        if client is not None and client in self.settings.clients:
            # Also where it sees every server now: an edit of the settings may put it into a group.
            merge = Merge(self._members_of(client), spawn=None if is_preview else self.spawn, reserved=NAMES)
            cached = Cached(merge, lambda: self._rules, time.monotonic)
            if not is_preview:
                self._client_merges[client] = merge, cached
        return Kit(
            merge=merge,
            cached=cached,
            vault=self.vault,
            rules=lambda: self._rules,
            whole=lambda: self.settings.whole_for(client),
            learns_shapes=lambda: self.settings.search.shapes,
            recorder=self.recorder,
            surfaces=self.surfaces,
            searches=self.searches,
            spawn=self.spawn,
            open_calls=self.open_calls,
            when_met=self.met,
            when_roots_changed=lambda caller, client: self.host.tell_roots_changed(
                caller.principal, caller.session, client
            ),
            tracer=self.tracer,
            environment=self.environment,
        ).serve(self.settings, client, is_preview=is_preview)


@asynccontextmanager
async def open_gateway(  # noqa: PLR0913
    loaded: Loaded,
    *,
    environment: Mapping[str, str],
    again: Callable[[Loaded], Loaded] | None = None,
    is_own_address: Callable[[str], bool] = lambda _: False,
    observe: Callable[[Recorder], Recorder] | None = None,
    tracer: Tracer | None = None,
) -> AsyncGenerator[Gateway]:
    """Open a gateway for these settings.

    Args:
        loaded: The settings.
        environment: Variables that servers may inherit.
        again: Reads all settings anew. With it, the settings files are watched and their changes adopted.
        is_own_address: Whether a URL leads to this gateway itself; such a server is left out.
        observe: Wraps the ledger's recorder in another one, as for metrics.
        tracer: Records a span of each request.
    """
    database, store_error = await anyio.to_thread.run_sync(
        open_store, loaded.settings.store, "nothing is kept of this session"
    )
    recording = None if database is None else Recording(database, keep_days=KEEP_DAYS)
    recorder: Recorder = recording or Unrecorded()
    recorder = recorder if observe is None else observe(recorder)
    failure: Exception | None = None
    tokens = frozenset(token.env for token in loaded.settings.tokens if token.env is not None)
    with counting_in_worker():
        async with Host(environment=environment, withheld=tokens) as host, anyio.create_task_group() as tasks:
            ground = _Ground(
                host=host,
                environment=environment,
                database=database,
                recorder=recorder,
            )
            gateway = _build(loaded, ground, tasks)
            gateway.store_error, gateway.servers.is_own_address = store_error, is_own_address
            gateway.tracer, gateway.recording = tracer, recording
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
                gateway.record_definitions()
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
    recorder: Recorder


def _build(loaded: Loaded, ground: _Ground, tasks: TaskGroup) -> Gateway:
    def spawn(work: Work) -> None:
        tasks.start_soon(run_guarded, work)

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
        recorder=ground.recorder,
        surfaces=StoredSurfaces(StoredForms(database, edition="surface"), spawn),
        searches=Searches.of(database, spawn),
        spawn=spawn,
        environment=ground.environment,
        database=database,
    )
