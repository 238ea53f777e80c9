"""Which of several places decides a setting?

The first that says it. A server, a database, a client's profile and a token are each decided as a whole, the other
settings key by key. Where a server stands in two places the higher wins and that is noted; what another file held back
stays held back (see `holding`). A project's file never replaces a server, a database or folders of the user's by their
name, and never raises a budget that the user set; it can only restrict them (see `restricting`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from itertools import combinations
from typing import Any, cast

from ullage.options import DatabaseSettings, Rules, Server, ServerResults

from .combining_delegates import combined_delegation, combined_providers
from .folders import Folders
from .holding import held_back
from .issue import Issue
from .layer import Layer
from .naming import folded
from .narrowing import within
from .restricting import lower_budget, restricted_database, restricted_results
from .settings import ClientProfile, Gateway, Results, Search, Settings, Token

__all__ = ["DEFAULT", "SAMPLE_SOURCE", "Combined", "combine"]

DEFAULT = "default"
SAMPLE_SOURCE = "--sample"
"""The layer of the sample shop, which gives way to any database of that name."""
_KINDS = {"servers": "a server", "sources": "a source", "retrieve": "a collection of folders"}
_ENDINGS = {"sources": "db", "retrieve": "texts"}


@dataclass(frozen=True, slots=True)
class Combined:
    settings: Settings
    why: Mapping[str, str]
    """Dotted key to the place that decided it."""
    issues: tuple[Issue, ...]


def combine(layers: Sequence[Layer], *, store: str, today: date, sample: str = "") -> Combined:
    """All layers, highest first, as one; `store` is where things live if nobody says."""
    values, why = _decided(layers)
    _stay_off("search.learn", layers, values, why)
    servers, issues = _servers(layers, why)
    databases, notes = _databases(layers, why)
    clients: dict[str, ClientProfile] = _whole([(layer.source, layer.clients) for layer in layers], "clients", why)
    groups: dict[str, tuple[str, ...]] = _whole([(layer.source, layer.groups) for layer in layers], "groups", why)
    tokens: dict[str, Token] = _whole([(layer.source, layer.tokens) for layer in layers], "http.tokens", why)
    ordered = _by_ownership(layers)
    retrieves: dict[str, Folders] = _whole([(layer.source, layer.retrieves) for layer in ordered], "retrieve", why)
    delegate, policy_issues = combined_delegation(layers, values, why, today)
    providers, left_out = combined_providers(layers, why)
    settings = Settings(
        store=values.get("store.url", store),
        servers=tuple(servers[name] for name in sorted(servers)),
        gateway=Gateway(**_under("gateway.", values)),
        search=Search(**_under("search.", values)),
        own=_own(layers, values),
        clients=dict(sorted(clients.items())),
        groups=dict(sorted(groups.items())),
        tokens=tuple(tokens[name] for name in sorted(tokens)),
        databases=tuple(databases.values()),
        results=Results(**_under("results.", values)),
        handling=_handling(servers, layers, why, values.get("results.budget", Results().budget)),
        sample=sample,
        delegate=delegate,
        providers=providers,
        retrieves=tuple(retrieves[name] for name in dict.fromkeys(name for one in layers for name in one.retrieves)),
    )
    said = (issue for layer in layers for issue in layer.issues)
    clashes = _clashes({"servers": servers, "sources": databases, "retrieve": retrieves}, why)
    return Combined(settings, why, (*said, *issues, *notes, *policy_issues, *left_out, *clashes))


def _decided(layers: Sequence[Layer]) -> tuple[dict[str, Any], dict[str, str]]:
    values = dict[str, Any]()
    tables = {"gateway": Gateway, "search": Search, "results": Results}
    names = (f"{table}.{one.name}" for table, kind in tables.items() for one in fields(kind))
    why = dict.fromkeys(("store.url", *names), DEFAULT)
    for layer in reversed(layers):
        values |= layer.values
        why |= dict.fromkeys(layer.values, layer.source)
    _keep_budget(layers, values, why)
    return values, why


def _keep_budget(layers: Sequence[Layer], values: dict[str, Any], why: dict[str, str]) -> None:
    """Lets a project's file lower the budget of results that the user set, and a pending one the default as well."""
    key = "results.budget"
    users = next((layer for layer in layers if not layer.is_project and key in layer.values), None)
    approved = next(
        (layer for layer in layers if layer.is_project and not layer.is_pending and key in layer.values), None
    )
    home = users or approved
    budget, source = (Results().budget, DEFAULT) if home is None else (home.values[key], home.source)
    for layer in layers:
        lower = lower_budget(budget, layer.values.get(key) or None) if layer.is_project else budget
        if lower != budget:
            budget, source = cast("int", lower), layer.source
    if source != DEFAULT:
        values[key], why[key] = budget, source
    else:
        values.pop(key, None)
        why[key] = DEFAULT


def _stay_off(key: str, layers: Sequence[Layer], values: dict[str, Any], why: dict[str, str]) -> None:
    """What the user switched off, a project does not switch on."""
    users = next((layer for layer in layers if not layer.is_project and key in layer.values), None)
    if users is not None and not users.values[key]:
        values[key], why[key] = False, users.source


def _under(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}


def _own(layers: Sequence[Layer], values: Mapping[str, Any]) -> Rules:
    """Key by key, but for what may be called: there a project's file is bound by the user's."""
    decided = Rules(**_under("own.", values))
    project, user = (
        Rules(**_under("own.", _decided([layer for layer in layers if layer.is_project is from_project])[0]))
        for from_project in (True, False)
    )
    hidden = tuple(dict.fromkeys((*user.hidden, *project.hidden)))
    return replace(within(project, user), pinned=decided.pinned, hidden=hidden)


def _by_ownership(layers: Sequence[Layer]) -> list[Layer]:
    """The user's layers before those of projects, and the sample shop after all of them."""
    return sorted(layers, key=lambda layer: (layer.source == SAMPLE_SOURCE, layer.is_project))


def _whole(layers: Sequence[tuple[str, Mapping[str, Any]]], table: str, why: dict[str, str]) -> dict[str, Any]:
    found = dict[str, Any]()
    for source, entries in reversed(layers):
        found |= entries
        why |= {f"{table}.{name}": source for name in entries}
    return found


def _servers(layers: Sequence[Layer], why: dict[str, str]) -> tuple[dict[str, Server], tuple[Issue, ...]]:
    """By name; the layer that wins a name is written to `why`."""
    taken, found, issues = dict[str, Layer](), dict[str, Server](), list[Issue]()
    for layer, name, server in _entries(_by_ownership(layers)):
        winner = taken.setdefault(name, layer)
        if winner is not layer:
            issues.append(_note(name, winner, layer))
            continue
        why[f"servers.{name}"] = layer.source
        if server is not None:
            named, said = _without_taken_prefix(server, layer, layers)
            issues += said
            origin = "client" if layer.is_foreign else "project" if layer.is_project else "user"
            found[name], said = held_back(replace(named, origin=origin), layer, layers)
            issues += said
    return found, tuple(issues)


def _without_taken_prefix(server: Server, layer: Layer, layers: Sequence[Layer]) -> tuple[Server, tuple[Issue, ...]]:
    """A project's server does not name its tools as a server of the user's does, nor without any prefix."""
    if not layer.is_project:
        return server, ()
    users = [one for other in layers if not other.is_project for one in other.servers.values() if one is not None]
    taken = {folded(name).casefold() for one in users for name in (one.name, one.spoken_prefix)}
    if server.prefix is None or (server.prefix and folded(server.prefix).casefold() not in taken):
        return server, ()
    said = f"`prefix` of server `{server.name}` is ignored in a project's file: it would take names of other tools"
    issue = Issue(
        severity="note", message=said, file=layer.source, key=f"servers.{server.name}.prefix", server=server.name
    )
    return replace(server, prefix=None), (issue,)


def _entries(layers: Sequence[Layer]) -> Iterator[tuple[Layer, str, Server | None]]:
    return ((layer, name, server) for layer in layers for name, server in layer.servers.items())


def _handling(
    servers: Mapping[str, Server], layers: Sequence[Layer], why: Mapping[str, str], ceiling: int
) -> dict[str, ServerResults]:
    """What the place that has a server says of its results, with the lower budgets of project files."""
    found = dict[str, ServerResults]()
    for name in servers:
        home = next(layer for layer in layers if layer.source == why[f"servers.{name}"] and name in layer.servers)
        said = home.handling.get(name)
        others = (
            [] if home.is_project else [one.handling[name] for one in layers if one.is_project and name in one.handling]
        )
        lowered = restricted_results(said, ceiling, others)
        if lowered is not None:
            found[name] = lowered
    return found


def _databases(layers: Sequence[Layer], why: dict[str, str]) -> tuple[dict[str, DatabaseSettings], tuple[Issue, ...]]:
    """By name, in the order of the files."""
    taken, found, issues = dict[str, Layer](), dict[str, DatabaseSettings](), list[Issue]()
    for layer in _by_ownership(layers):
        for name, database in layer.databases.items():
            winner = taken.setdefault(name, layer)
            if winner is not layer:
                issues.append(_twice("source", name, winner, layer))
                continue
            why[f"sources.{name}"] = layer.source
            if database is not None:
                is_taken = layer.is_project and any(one.databases for one in layers if not one.is_project)
                found[name] = replace(_bound(database, layer, layers), default=database.default and not is_taken)
    return found, tuple(issues)


def _bound(database: DatabaseSettings, winner: Layer, layers: Sequence[Layer]) -> DatabaseSettings:
    if winner.is_project:
        return database
    name = database.name
    said = (layer.databases.get(name) or layer.database_limits.get(name) for layer in layers if layer.is_project)
    return restricted_database(database, filter(None, said))


def _clashes(tables: Mapping[str, Mapping[str, object]], why: Mapping[str, str]) -> Iterator[Issue]:
    """Each of them stands behind the gateway under its name, whatever it is."""
    for (table, here), (other, there) in combinations(tables.items(), 2):
        for name in here.keys() & there.keys():
            first, second = why[f"{table}.{name}"], why[f"{other}.{name}"]
            kinds = f"{_KINDS[table]} in `{first}` and {_KINDS[other]} in `{second}`"
            yield Issue(
                severity="error",
                message=f"`{name}` is {kinds}, and no two may have one name",
                file=second,
                key=f"{other}.{name}",
                suggestion=f"rename one of them, such as [{other}.{name}-{_ENDINGS[other]}]",
            )


def _note(name: str, winner: Layer, loser: Layer) -> Issue:
    issue = replace(_twice("server", name, winner, loser), server=name)
    if loser.is_project:
        return issue
    held = "; tools that are left out or asked for here stay so"
    return replace(issue, message=f"{issue.message}{held}") if loser.is_foreign else issue


def _twice(kind: str, name: str, winner: Layer, loser: Layer) -> Issue:
    if loser.is_project and not winner.is_project:
        said = f"{kind} `{name}` of this project is not used: your own settings have one of that name"
        hint = "rename it in the project's file; what it restricts holds for yours as well"
        return Issue(severity="problem", message=said, file=loser.source, key=f"{kind}s.{name}", suggestion=hint)
    said = f"{kind} `{name}` is also in `{winner.source}`, which is the one used"
    return Issue(severity="note", message=said, file=loser.source, key=f"{kind}s.{name}")
