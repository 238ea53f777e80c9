"""Measures what every program's MCP servers cost, and what Ullage would save.

`plan_scan` computes the settings that would result from installing Ullage in every program, without writing them.
`list_tools` starts the servers of these settings concurrently, each within a time limit, and `read_known` starts none
and uses what earlier runs listed. `report_scan` reports on either: for each program its servers with the tokens of
their definitions for that program's model, the tokens that a request carries now, and those that it would carry with
Ullage in front.

A server of a project file that this user has not approved is reported as pending and is never part of the settings.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread

from ullage.clients.configs import (
    ClientConfig,
    ConfigFile,
    ListedServer,
    Program,
    ServerEntry,
    edit_content,
    first_request_texts,
    format_definition,
    format_instructions,
    parse_config,
    read_bytes,
)
from ullage.config import Flags, Loaded, Places, examine, is_approved
from ullage.errors import SignInNeeded, UllageError, UnsupportedModel
from ullage.gateway import ASSUMED, Catalogue, Server
from ullage.models import shipped
from ullage.store import Database
from ullage.tool import Introduction, Listing, Tool

from .build_gateway import Gateway
from .count_text import count, meter
from .install_plan import InstallPlan, StayingKind, find_doubled, is_ullage, plan_install, serve_flags, ullage_entry
from .open_store import places_of

__all__ = [
    "ClientScan",
    "KnownServer",
    "Outcome",
    "ScanPlan",
    "ScannedServer",
    "ServerState",
    "ToolCost",
    "approval_of",
    "list_tools",
    "plan_scan",
    "read_known",
    "report_client",
    "report_scan",
    "servers_behind",
    "usable_model",
]

ServerState = Literal["counted", "unknown", "failed", "late", "sign-in", "pending", "disabled", "stays"]
"""Its tools were listed; they are not known; it failed; it did not answer in time; it wants a sign-in; its file is not
approved; it is switched off; only the program can start it."""
_STAYS: dict[StayingKind, ServerState] = {
    "pending": "pending", "disabled": "disabled", "sign-in": "sign-in", "unresolved": "stays", "managed": "stays",
    "faulty": "failed", "scope": "stays",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ToolCost:
    """One tool, under its server's own name, with the tokens of its definition."""

    name: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedServer:
    """One server of a program."""

    name: str
    """The program's name for it."""
    state: ServerState
    is_behind: bool = False
    """Whether it is already behind Ullage."""
    is_doubled: bool = False
    """Whether it is listed beside Ullage, which also serves it."""
    reason: str = ""
    """Why its tools are not known, or why it cannot be moved."""
    tools: tuple[ToolCost, ...] = ()
    """The tools, the most expensive first."""
    instructions: int = 0
    """Tokens of the server's instructions, which programs put into every request, and of what else the program writes
    for the server besides its tools."""
    entry: ServerEntry | None = field(default=None, repr=False)
    """Its entry in the program's file; None for one behind Ullage."""

    @property
    def tokens(self) -> int:
        """Tokens of definitions and instructions, before any is deferred."""
        return self.instructions + sum(tool.tokens for tool in self.tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientScan:
    """What one program's servers cost."""

    config: ClientConfig
    model: str | None
    """The model whose tokens are counted; None for o200k_base."""
    is_model_assumed: bool
    """Whether the program's files name no known model."""
    is_installed: bool
    servers: tuple[ScannedServer, ...] = ()
    without: int | None = None
    """Tokens that its servers would add to every request without Ullage, after what the program itself defers; None
    where no server's tools are known. The same applies to the next two.
    """
    now: int | None = None
    """Tokens that they add in the program's present configuration."""
    with_ullage: int | None = None
    """Tokens that they would add with all movable servers behind Ullage."""

    @property
    def saved(self) -> int | None:
        """Tokens that installing Ullage would save in every request; where it is installed, what it saves already."""
        before = self.without if self.is_installed else self.now
        return None if before is None or self.with_ullage is None else before - self.with_ullage

    @property
    def own(self) -> tuple[ScannedServer, ...]:
        """Servers that the program itself starts, or would start."""
        return tuple(one for one in self.servers if not one.is_behind and one.state not in ("pending", "disabled"))

    @property
    def unknown(self) -> tuple[ScannedServer, ...]:
        """Servers in use whose tools are not known, so that no figure includes them."""
        return tuple(one for one in self.servers if one.state not in ("counted", "pending", "disabled"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of listing one server's tools."""

    state: ServerState
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownServer:
    """What a server adds to requests of a program that lists it."""

    tools: tuple[Tool, ...] = ()
    """Tools under the server's own names, without those that the user's rules deny."""
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    """One server of one program, and its name in the planned settings."""

    entry: ServerEntry
    name: str | None
    state: ServerState = "unknown"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """The settings that would result with Ullage in every program."""

    clients: tuple[ClientConfig, ...]
    loaded: Loaded
    """The planned settings."""
    places: Mapping[str, tuple[_Place, ...]]
    """By program, the servers of its own files."""
    behind: Mapping[str, tuple[Server, ...]]
    """By program with Ullage installed, the servers behind it today."""
    installs: Mapping[str, InstallPlan]

    @property
    def names(self) -> tuple[str, ...]:
        """The servers to list."""
        known = {server.name for server in self.loaded.settings.servers if not server.disabled}
        wanted = [one.name for places in self.places.values() for one in places if one.name is not None]
        behind = [server.name for servers in self.behind.values() for server in servers]
        return tuple(name for name in dict.fromkeys((*wanted, *behind)) if name in known)


def servers_behind(
    config: ClientConfig, places: Places, environment: Mapping[str, str], directory: Path
) -> tuple[Server, ...] | None:
    """Return the servers behind Ullage for a program, by the flags with which it starts Ullage; None if it does not."""
    entry = ullage_entry(config)
    if entry is None:
        return None
    flags = serve_flags(entry)
    loaded = examine(
        Flags(
            config=None if flags.config is None else Path(flags.config).expanduser(),
            include=tuple(Path(path).expanduser() for path in flags.include),
            store=flags.store,
        ),
        {**environment, **entry.environment},
        directory,
        places=places,
    )
    seen = loaded.settings.servers_of(flags.client)
    return tuple(one for one in loaded.settings.servers if not one.disabled and (seen is None or one.name in seen))


def plan_scan(  # noqa: PLR0913 - the sources of configuration
    clients: Sequence[ClientConfig],
    places: Places,
    environment: Mapping[str, str],
    directory: Path,
    *,
    include: Sequence[Path] = (),
    store: str | None = None,
) -> ScanPlan:
    """Plan the settings with every program's servers behind Ullage. Reads files; starts and writes nothing.

    Args:
        clients: the programs' configurations.
        places: the user's own folders.
        environment: variables that entries may name.
        directory: the working folder.
        include: further files of other programs.
        store: the database's address from the command line.

    Raises:
        OSError, ValueError: the user's own `ullage.toml` cannot be read.
    """
    content = read_bytes(str(places.user_file))
    form = ConfigFile(path=str(places.user_file), scope="user", format="toml")
    found = dict[str, tuple[_Place, ...]]()
    behind = dict[str, tuple[Server, ...]]()
    installs = dict[str, InstallPlan]()
    included = [*include]
    for config in clients:
        there = servers_behind(config, places, environment, directory)
        if there is not None:
            behind[config.program.name] = there
        entry = ullage_entry(config)
        if entry is not None:
            included += [Path(path).expanduser() for path in serve_flags(entry).include]
        plan = plan_install(
            config,
            parse_config(content or b"", form),
            ("ullage",),
            model=usable_model(config.users_model),
            scope="all",
            is_approved=approval_of(config, places),
            behind=[server.name for server in there or ()],
        )
        content = edit_content(content, "toml", plan.own_edits)
        installs[config.program.name] = plan
        found[config.program.name] = tuple(_places_of(config, plan))
    loaded = examine(
        Flags(include=tuple(dict.fromkeys(included)), store=store),
        environment,
        directory,
        places=places,
        replaced={places.user_file: content or b""},
    )
    return ScanPlan(clients=tuple(clients), loaded=loaded, places=found, behind=behind, installs=installs)


def approval_of(config: ClientConfig, places: Places) -> Callable[[str], bool]:
    """Return a function that says whether the user has approved a project's file with the content that was read.

    A file is looked up once, however many servers are in it.
    """

    def is_file_approved(path: str) -> bool:
        content = config.project_contents.get(path)
        return content is not None and is_approved(path, content, places)

    return cache(is_file_approved)


def _places_of(config: ClientConfig, plan: InstallPlan) -> Iterable[_Place]:
    """Yield the program's servers in its own order.

    Of two with one name, the one that the program starts counts; one that waits for approval hides none.
    """
    named = {(one.entry.file, one.entry.path): one.name for one in plan.moved}
    stays = {(one.entry.file, one.entry.path): one for one in plan.staying}
    started = set[str]()
    for entry in config.servers:
        key = (entry.file, entry.path)
        if is_ullage(entry) or entry.name in started:
            continue
        if key in named:
            started.add(entry.name)
            yield _Place(entry, named[key])
        elif key in stays:
            if stays[key].kind != "pending":
                started.add(entry.name)
            yield _Place(entry, None, _STAYS[stays[key].kind], stays[key].reason)


def usable_model(model: str | None) -> str | None:
    """Return the model if its tokens can be counted, else None."""
    with suppress(UnsupportedModel):
        return None if model is None else (shipped().find(model) and model)
    return None


# -- Listing


async def list_tools(
    gateway: Gateway, names: Iterable[str], wait: float, *, when_done: Callable[[str, Outcome], None]
) -> dict[str, Outcome]:
    """Start these servers concurrently and list their tools.

    Args:
        gateway: the gateway whose settings have the servers.
        names: the servers.
        wait: seconds after which a server that has not answered is left out.
        when_done: called with each server as soon as its outcome is known.
    """
    found = dict[str, Outcome]()
    deadline = anyio.current_time() + wait

    async def one(name: str) -> None:
        outcome = Outcome(state="late", reason=f"no answer within {wait:g} s")
        with anyio.CancelScope(deadline=deadline):
            try:
                await gateway.kept(name).refresh()
                outcome = Outcome(state="counted")
            except SignInNeeded:
                outcome = Outcome(state="sign-in", reason="needs a sign-in")
            except UllageError as error:
                outcome = Outcome(
                    state="failed", reason=re.sub(rf"^(?:server )?`{re.escape(name)}` ", "", error.message)
                )
            except KeyError:
                outcome = Outcome(state="failed", reason="its address is Ullage's own")
        found[name] = outcome
        when_done(name, outcome)

    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(one, name)
    return found


async def read_known(loaded: Loaded, names: Iterable[str], environment: Mapping[str, str]) -> dict[str, KnownServer]:
    """Return what is known of these servers from their last listing. Starts nothing, and creates no database."""
    path = loaded.settings.store.partition("sqlite:///")[2]
    if path and not Path(path).exists():
        return {}
    servers = {server.name: server for server in loaded.settings.servers}
    found = dict[str, KnownServer]()
    try:
        database = await anyio.to_thread.run_sync(Database.open, loaded.settings.store)
    except UllageError:
        return {}
    try:
        catalogue = Catalogue(database, lambda text: count(text).tokens, places=places_of(environment))
        for name in names:
            stored = await catalogue.find_listing(servers[name]) if name in servers else None
            if stored is not None:
                found[name] = _known_server(servers[name], stored.listing, stored.introduction)
    finally:
        database.close()
    return found


def _known_server(server: Server, listing: Listing, introduction: Introduction | None) -> KnownServer:
    """Return what a program that lists the server sends: also tools that Ullage itself would not show."""
    return KnownServer(
        tools=tuple(tool for tool in listing.tools if server.rules.access(tool.name) != "deny"),
        instructions=(introduction.instructions if introduction is not None else None) or "",
    )


# -- Reporting


async def report_scan(plan: ScanPlan, gateway: Gateway, outcomes: Mapping[str, Outcome]) -> tuple[ClientScan, ...]:
    """Report on every program, after `list_tools`."""
    known = dict[str, KnownServer]()
    for name, outcome in outcomes.items():
        kept = gateway.kept(name) if outcome.state == "counted" else None
        listing = None if kept is None else kept.peek()
        if kept is not None and listing is not None:
            known[name] = _known_server(kept.server, listing, kept.introduction())
    found = list[ClientScan]()
    for config in plan.clients:
        # What a request carries for Ullage itself.
        client = config.program.name
        served = gateway.serve(client)
        listed = (await served.find.tools()).tools
        surface = KnownServer(tools=tuple(listed), instructions=served.profile.identity.current_instructions() or "")
        found.append(await anyio.to_thread.run_sync(report_client, plan, config, known, outcomes, surface))
    return tuple(found)


def report_client(
    plan: ScanPlan,
    config: ClientConfig,
    known: Mapping[str, KnownServer],
    outcomes: Mapping[str, Outcome] | None = None,
    surface: KnownServer | None = None,
) -> ClientScan:
    """Report on one program.

    Args:
        plan: the result of `plan_scan`.
        config: the program.
        known: the planned settings' servers, as far as they are known.
        outcomes: the results of listing them; None where nothing was started.
        surface: what Ullage itself adds to a request; None where that is not known.
    """
    program = config.program
    stated = usable_model(config.model)
    model = stated or program.usual_model
    outcomes = outcomes or {}
    there = plan.behind.get(program.name)
    doubled = {(one.file, one.path) for one in find_doubled(config, there or ())}
    servers = list[ScannedServer]()
    own = dict[str, KnownServer]()
    for place in plan.places[program.name]:
        outcome = Outcome(state=place.state, reason=place.reason)
        listed: KnownServer | None = None
        if place.name is not None:
            listed = known.get(place.name)
            if any(server.name == place.name for server in plan.loaded.settings.servers):
                left_out = None
            else:
                said = (
                    issue.message
                    for issue in plan.loaded.issues
                    if issue.server == place.name and issue.severity != "note"
                )
                left_out = re.sub(r"^server `[^`]*` is left out: ", "", next(said, "it cannot be used"))
            outcome = outcomes.get(place.name, Outcome(state="unknown" if listed is None else "counted"))
            outcome = outcome if left_out is None else Outcome(state="failed", reason=left_out)
        if listed is not None:
            own[place.entry.name] = listed
        scanned = ScannedServer(
            name=place.entry.name,
            state=outcome.state,
            reason=outcome.reason,
            is_doubled=(place.entry.file, place.entry.path) in doubled,
            entry=place.entry,
        )
        servers.append(_with_costs(scanned, listed, model, program))
    everything = dict(own)
    shown = {place.name for place in plan.places[program.name]}
    for server in there or ():
        listed = known.get(server.name)
        outcome = outcomes.get(server.name, Outcome(state="unknown" if listed is None else "counted"))
        if listed is not None:
            everything.setdefault(server.name, listed)
        if server.name not in shown:
            scanned = ScannedServer(name=server.name, state=outcome.state, reason=outcome.reason, is_behind=True)
            servers.append(_with_costs(scanned, listed, model, program))
    with_ullage = None if surface is None else _count_carried(config, {"ullage": surface}, model)
    now = _count_carried(config, own, model)
    if there is not None:
        now = None if with_ullage is None else now + with_ullage
    return ClientScan(
        config=config,
        model=model,
        is_model_assumed=stated is None,
        is_installed=there is not None,
        servers=tuple(servers),
        without=_count_carried(config, everything, model) if everything else None,
        now=now if everything else None,
        with_ullage=with_ullage if everything else None,
    )


def _with_costs(
    scanned: ScannedServer, listed: KnownServer | None, model: str | None, program: Program
) -> ScannedServer:
    """Return the server with its costs, where its tools are known."""
    if listed is None:
        return scanned
    server = ListedServer(scanned.name, listed.tools, listed.instructions)
    costs = [
        ToolCost(one.name, _weigh(format_definition(program.name, scanned.name, one), model)) for one in listed.tools
    ]
    return replace(
        scanned,
        tools=tuple(sorted(costs, key=lambda one: (-one.tokens, one.name))),
        instructions=_weigh(format_instructions(program.name, server), model),
    )


def _weigh(text: str, model: str | None) -> int:
    return meter().count(text, model or ASSUMED.counted_as).tokens if text else 0


def _count_carried(config: ClientConfig, servers: Mapping[str, KnownServer], model: str | None) -> int:
    """Count the tokens that these servers add to a request, after what the program itself defers."""
    listed = [ListedServer(name, server.tools, server.instructions) for name, server in servers.items()]
    texts = first_request_texts(config.program.name, listed, defers=config.defers_tools)
    return sum(_weigh(text, model) for text in texts)
