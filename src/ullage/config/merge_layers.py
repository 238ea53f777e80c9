"""Merges the settings of all files into one, by precedence.

The first layer that sets a value decides it. A server, a database, a client's profile and a token are each taken as a
whole, all other settings key by key. If a server is in two places, the higher is used and a note says so; restrictions
from the other file still apply. A project's file never replaces a server, a database or folders of the user's by their
name, never raises a budget that the user set, and shows no client servers that the user's groups do not; it can only
restrict them (see `layers`).

Other programs' files restrict tools and whole servers, wherever the server is configured. Only the user's own
`ullage.toml` removes such a restriction, explicitly: `allow` for a tool, `disabled = false` for a server. A server that
came with a project is bound by the restrictions of the user's file and of the others. Restrictions that a project's
files place on a user's server cannot be removed.

A policy and a provider are each taken as a whole from the highest layer that has one, budgets key by key. A project's
file changes no provider of the user's, sends none of the user's variables anywhere unless the user's own file names
them, and removes no budget: neither by a larger one nor by prices that make calls look cheap.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from itertools import combinations
from typing import TYPE_CHECKING, Any, cast

from ullage.options import DatabaseSettings, Rules, Server, ServerResults

from .config_file import Issue
from .entries import judged
from .layers import (
    OFF_STAYS_OFF,
    Layer,
    is_switched_off,
    lower_budget,
    restricted_database,
    restricted_results,
    restricted_rules,
)
from .permissions import fold_server_name, names_of, narrower, overridden, rules_of, within
from .settings import (
    BUILT_IN,
    Budget,
    ClientProfile,
    DelegateSettings,
    Folders,
    Gateway,
    ProviderSettings,
    Results,
    Scope,
    Search,
    Settings,
    Telemetry,
    Token,
)

if TYPE_CHECKING:
    from ullage.delegate import Policy

__all__ = ["DEFAULT", "SAMPLE_SOURCE", "Combined", "combine", "combined_delegation", "combined_providers", "held_back"]


def held_back(server: Server, winner: Layer, layers: Sequence[Layer]) -> tuple[Server, tuple[Issue, ...]]:
    """Return the server with the restrictions of every layer, and notes about them."""
    project = [] if winner.is_project else [layer for layer in layers if layer.is_project]
    others = layers if winner.is_project else [layer for layer in layers if not layer.is_project]
    names = names_of(server.name, [layer.withheld for layer in layers])
    switching_off = (
        *_switched_off(server.name, names, winner, others),
        *(layer for layer in project if is_switched_off(server, layer)),
    )
    off_by = None if server.disabled else next(iter(switching_off), None)
    foreign = [layer.withheld for layer in others if layer.is_foreign]
    # Joined first, and only then combined with the user's own: one file's list of wanted tools must not override
    # another's denial.
    held = rules_of(server.name, names, foreign, home=winner.withheld)
    if winner.is_foreign:
        rules = narrower(server.rules, held)
    elif not winner.is_project:
        rules = overridden(server.rules, held)
    else:
        said = (layer.withheld.rules.get(server.name) for layer in others if layer.is_users)
        rules = within(server.rules, overridden(next(filter(None, said), Rules()), held))
    if project:
        rules = restricted_rules(replace(server, rules=rules), project)
    held = replace(server, rules=rules, disabled=server.disabled or off_by is not None)
    lost = winner.is_project and server.rules.allow and (rules.under or rules.allow != server.rules.allow)
    return held, (
        *([_off_note(server.name, winner, off_by)] if off_by else []),
        *([_allow_note(server.name, winner)] if lost else []),
    )


def _switched_off(name: str, names: frozenset[str], winner: Layer, layers: Sequence[Layer]) -> Iterator[Layer]:
    """Yield the layers that switch the server off."""
    is_lifted = any(layer.is_users and name in layer.withheld.on for layer in layers)
    for layer in layers:
        own = layer.servers.get(name)
        if layer.is_foreign:
            if not is_lifted:
                permissions = layer.withheld.permissions
                declined = permissions.declined if permissions and winner.source.endswith(".mcp.json") else ()
                # A file's restrictions on its own servers are already part of them, under names that are not folded.
                off = frozenset[str]() if layer is winner else layer.withheld.off
                if not names.isdisjoint((*off, *declined)):
                    yield layer
        elif own is not None and own.disabled:
            yield layer


def _off_note(name: str, winner: Layer, other: Layer) -> Issue:
    return Issue(
        severity="note",
        message=f"server `{name}` is not used: `{other.source}` switches it off",
        file=winner.source,
        key=f"servers.{name}",
        server=name,
        suggestion=""
        if other.is_users or other.is_project
        else "to have it all the same, write it with `disabled = false` into your own ullage.toml",
    )


def _allow_note(name: str, winner: Layer) -> Issue:
    return Issue(
        severity="note",
        message=f"`allow` of server `{name}` came with the project and lifts nothing that other files hold back",
        file=winner.source,
        key=f"servers.{name}.allow",
        server=name,
        suggestion="to lift it, write the server with that `allow` into your own ullage.toml",
    )


def combined_delegation(
    layers: Sequence[Layer], values: Mapping[str, Any], why: dict[str, str], today: date
) -> tuple[DelegateSettings, tuple[Issue, ...]]:
    policy, issues = _policy(layers, why, today)
    said = DelegateSettings(
        is_wanted=policy is not None or any(layer.delegation.is_mentioned for layer in layers),
        policy=policy,
        warnings=tuple(issue.sentence() for issue in issues if issue.severity == "note"),
        budgets=_budgets(layers),
        cut=next((layer.values["delegate.cut"] for layer in layers if "delegate.cut" in layer.values), False),
        alerts=_alerts(layers),
        file_roots=values.get("delegate.file_roots", ()),
        log_level=values.get("delegate.log_level"),
        cost_alert=values.get("delegate.cost_alert"),
        usage_export=values.get("delegate.usage_export"),
    )
    return said, issues


def _policy(layers: Sequence[Layer], why: dict[str, str], today: date) -> "tuple[Policy | None, tuple[Issue, ...]]":
    for layer in layers:
        documents = layer.delegation.policy
        if documents is not None:
            why["delegate.policy"] = layer.source
            policy, issues = judged(documents, layer.source, today)
            if layer.is_project and any(
                any(budget.dollars is not None for budget in other.delegation.budgets.values())
                for other in layers
                if other.is_users
            ):
                if any(one.price is not None for one in policy.models.values()):
                    said = (
                        "the prices of this policy came with the project and are not used: you have budgets in dollars"
                    )
                    hint = "to have them used, write the policy into your own ullage.toml"
                    note = Issue(
                        severity="note", message=said, file=layer.source, key="delegate.models", suggestion=hint
                    )
                    issues = (*issues, note)
                models = {name: replace(one, price=None) for name, one in policy.models.items()}
                return replace(policy, models=models), issues
            return policy, issues
    return None, ()


def _budgets(layers: Sequence[Layer]) -> dict[Scope, Budget]:
    """Return the user's budgets, lowered by those of projects."""
    found = dict[Scope, Budget]()
    for layer in reversed(layers):
        for scope, budget in layer.delegation.budgets.items():
            known = found.get(scope, Budget())
            if layer.is_project:
                dollars = [one.dollars for one in (known, budget) if one.dollars is not None]
                tokens = [one.tokens for one in (known, budget) if one.tokens is not None]
                found[scope] = Budget(dollars=min(dollars, default=None), tokens=min(tokens, default=None))
            else:
                found[scope] = Budget(
                    dollars=known.dollars if budget.dollars is None else budget.dollars,
                    tokens=known.tokens if budget.tokens is None else budget.tokens,
                )
    return found


def _alerts(layers: Sequence[Layer]) -> Any:  # noqa: ANN401 - as its kind reads it
    """Return the user's alerts together with those of projects; None if there are none."""
    said = [
        (layer.is_project, layer.values["delegate.alerts"]) for layer in layers if "delegate.alerts" in layer.values
    ]
    projects = [alerts for is_project, alerts in said if is_project]
    users = next((alerts for is_project, alerts in said if not is_project), ())
    return tuple(sorted({part for alerts in (*projects, users) for part in alerts})) or None


def combined_providers(
    layers: Sequence[Layer], why: dict[str, str]
) -> tuple[tuple[ProviderSettings, ...], tuple[Issue, ...]]:
    """Return the providers of every layer and the built-in ones, each as a whole from the highest layer that may define
    it."""
    found, issues = dict[str, ProviderSettings | None](), list[Issue]()
    for layer in reversed(layers):
        for name, provider in layer.delegation.providers.items():
            fault = _fault(name, provider, layers) if layer.is_project else None
            if fault is not None:
                reason, hint = fault
                issues.append(
                    Issue(
                        severity="problem",
                        message=f"provider `{name}` is left out: {reason}",
                        file=layer.source,
                        key=f"providers.{name}",
                        suggestion=hint,
                    )
                )
            else:
                found[name], why[f"providers.{name}"] = provider, layer.source
    present = {**BUILT_IN, **found}
    return tuple(one for one in present.values() if one is not None), tuple(issues)


def _fault(name: str, provider: ProviderSettings | None, layers: Sequence[Layer]) -> tuple[str, str] | None:
    """Return why a provider that came with a project may not be used; None if it may."""
    if name in BUILT_IN or any(name in layer.delegation.providers for layer in layers if layer.is_users):
        return "a project's file does not change a provider of yours", "give it another name, or write it in your own"
    allowed = {one for layer in layers if layer.is_users for one in layer.values.get("delegate.project_keys", ())}
    asked = frozenset[str]() if provider is None else provider.variables - allowed
    if not asked:
        return None
    names = ", ".join(f"`{one}`" for one in sorted(asked))
    return f"a project's file may not send {names} anywhere", "name them under `project_keys` in your own ullage.toml"


DEFAULT = "default"
SAMPLE_SOURCE = "--sample"
"""Source of the layer with the sample shop, which any database of that name replaces."""
_KINDS = {"servers": "a server", "sources": "a source", "retrieve": "a collection of folders"}
_ENDINGS = {"sources": "db", "retrieve": "texts"}


@dataclass(frozen=True, slots=True)
class Combined:
    """The merged settings, with the source of each value."""

    settings: Settings
    why: Mapping[str, str]
    """Source of each dotted key."""
    issues: tuple[Issue, ...]


def combine(layers: Sequence[Layer], *, store: str, today: date, sample: str = "") -> Combined:
    """Merge all layers, highest first. `store` is the URL of the store if none is set."""
    values, why = _decide_values(layers)
    for key in OFF_STAYS_OFF:
        users = next((layer for layer in layers if not layer.is_project and key in layer.values), None)
        if users is not None and not users.values[key]:
            values[key], why[key] = False, users.source
    servers, issues = _servers(layers, why)
    databases, notes = _databases(layers, why)
    clients = _clients(layers, why)
    groups = _groups(layers, why)
    tokens: dict[str, Token] = _whole([(layer.source, layer.tokens) for layer in layers], "http.tokens", why)
    ordered = _by_ownership(layers)
    retrieves: dict[str, Folders] = _whole([(layer.source, layer.retrieves) for layer in ordered], "retrieve", why)
    delegate, policy_issues = combined_delegation(layers, values, why, today)
    providers, left_out = combined_providers(layers, why)
    # What may be called is also bound by the user's file.
    decided = Rules(**_under("own.", values))
    project, user = (
        Rules(**_under("own.", _decide_values([layer for layer in layers if layer.is_project is from_project])[0]))
        for from_project in (True, False)
    )
    hidden = tuple(dict.fromkeys((*user.hidden, *project.hidden)))
    settings = Settings(
        store=values.get("store.url", store),
        servers=tuple(servers[name] for name in sorted(servers)),
        gateway=Gateway(**_under("gateway.", values)),
        search=Search(**_under("search.", values)),
        own=replace(within(project, user), pinned=decided.pinned, hidden=hidden),
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
        telemetry=Telemetry(**_under("telemetry.", values)),
    )
    said = (issue for layer in layers for issue in layer.issues)
    clashes = _clashes({"servers": servers, "sources": databases, "retrieve": retrieves}, why)
    return Combined(settings, why, (*said, *issues, *notes, *policy_issues, *left_out, *clashes))


def _decide_values(layers: Sequence[Layer]) -> tuple[dict[str, Any], dict[str, str]]:
    values = dict[str, Any]()
    tables = {"gateway": Gateway, "search": Search, "results": Results}
    names = (f"{table}.{one.name}" for table, kind in tables.items() for one in fields(kind))
    why = dict.fromkeys(("store.url", *names), DEFAULT)
    for layer in reversed(layers):
        values |= layer.values
        why |= dict.fromkeys(layer.values, layer.source)
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
    return values, why


def _under(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}


def _by_ownership(layers: Sequence[Layer]) -> list[Layer]:
    """Sort the user's layers before those of projects, and the sample shop after all of them."""
    return sorted(layers, key=lambda layer: (layer.source == SAMPLE_SOURCE, layer.is_project))


def _whole(layers: Sequence[tuple[str, Mapping[str, Any]]], table: str, why: dict[str, str]) -> dict[str, Any]:
    found = dict[str, Any]()
    for source, entries in reversed(layers):
        found |= entries
        why |= {f"{table}.{name}": source for name in entries}
    return found


def _clients(layers: Sequence[Layer], why: dict[str, str]) -> dict[str, ClientProfile]:
    """Return the profiles by client. A project's profile sees the groups that the user's has as well."""
    found: dict[str, ClientProfile] = _whole([(layer.source, layer.clients) for layer in layers], "clients", why)
    users = {name for layer in layers if not layer.is_project for name in layer.groups}
    for name, groups in _users_groups(layers).items():
        more = [group for group in found[name].groups or () if group not in users]
        found[name] = replace(found[name], groups=tuple(dict.fromkeys((*groups, *more))))
    return found


def _users_groups(layers: Sequence[Layer]) -> dict[str, tuple[str, ...]]:
    """Return the groups that the user's own settings give to clients."""
    users: dict[str, ClientProfile] = _whole(
        [(layer.source, layer.clients) for layer in layers if not layer.is_project], "clients", {}
    )
    return {name: profile.groups for name, profile in users.items() if profile.groups is not None}


def _groups(layers: Sequence[Layer], why: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the servers of each group.

    If the user gave groups to clients, a project's file adds only the project's own servers to groups: it does not show
    a client other servers of the user's.
    """
    sources = {layer.source for layer in layers if layer.is_project}
    projects = {key.removeprefix("servers.") for key, source in why.items() if source in sources}
    found: dict[str, tuple[str, ...]] = _whole(
        [(layer.source, layer.groups) for layer in _by_ownership(layers)], "groups", why
    )
    if not _users_groups(layers):
        return found
    users = {name for layer in layers if not layer.is_project for name in layer.groups}
    said = [(name, servers) for layer in layers if layer.is_project for name, servers in layer.groups.items()]
    for name, servers in said:
        own = tuple(server for server in servers if server in projects)
        known = found[name] if name in users else ()
        found[name] = tuple(dict.fromkeys((*known, *own)))
    return found


def _servers(layers: Sequence[Layer], why: dict[str, str]) -> tuple[dict[str, Server], tuple[Issue, ...]]:
    """Return the servers by name; the source of each is recorded in `why`."""
    taken, found, issues = dict[str, Layer](), dict[str, Server](), list[Issue]()
    entries = ((layer, *entry) for layer in _by_ownership(layers) for entry in layer.servers.items())
    for layer, name, server in entries:
        winner = taken.setdefault(name, layer)
        if winner is not layer:
            issue = replace(_twice("server", name, winner, layer), server=name)
            if layer.is_project:
                note = issue
            else:
                held = "; tools that are left out or asked for here stay so"
                note = replace(issue, message=f"{issue.message}{held}") if layer.is_foreign else issue
            issues.append(note)
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
    """Ignore the prefix of a project's server if it is that of a user's server, or empty."""
    if not layer.is_project:
        return server, ()
    users = [one for other in layers if not other.is_project for one in other.servers.values() if one is not None]
    taken = {fold_server_name(name).casefold() for one in users for name in (one.name, one.spoken_prefix)}
    if server.prefix is None or (server.prefix and fold_server_name(server.prefix).casefold() not in taken):
        return server, ()
    said = f"`prefix` of server `{server.name}` is ignored in a project's file: it would take names of other tools"
    issue = Issue(
        severity="note", message=said, file=layer.source, key=f"servers.{server.name}.prefix", server=server.name
    )
    return replace(server, prefix=None), (issue,)


def _handling(
    servers: Mapping[str, Server], layers: Sequence[Layer], why: Mapping[str, str], ceiling: int
) -> dict[str, ServerResults]:
    """Return the settings of results from the layer that defines each server, with the lower budgets of project
    files."""
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
    """Return the databases by name, in the order of the files."""
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
                found[name] = replace(
                    _bound_to_user(database, layer, layers), default=database.default and not is_taken
                )
    return found, tuple(issues)


def _bound_to_user(database: DatabaseSettings, winner: Layer, layers: Sequence[Layer]) -> DatabaseSettings:
    if winner.is_project:
        return database
    name = database.name
    said = (layer.databases.get(name) or layer.database_limits.get(name) for layer in layers if layer.is_project)
    return restricted_database(database, filter(None, said))


def _clashes(tables: Mapping[str, Mapping[str, object]], why: Mapping[str, str]) -> Iterator[Issue]:
    """Report names used twice: every source is published by the gateway under its name, whatever its kind."""
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


def _twice(kind: str, name: str, winner: Layer, loser: Layer) -> Issue:
    if loser.is_project and not winner.is_project:
        said = f"{kind} `{name}` of this project is not used: your own settings have one of that name"
        hint = "rename it in the project's file; what it restricts holds for yours as well"
        return Issue(severity="problem", message=said, file=loser.source, key=f"{kind}s.{name}", suggestion=hint)
    said = f"{kind} `{name}` is also in `{winner.source}`, which is the one used"
    return Issue(severity="note", message=said, file=loser.source, key=f"{kind}s.{name}")
