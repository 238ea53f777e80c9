"""The settings of one file, and the restrictions that a project's file may make.

A `Layer` contains the values of one file, flag or variable, so that precedence can be decided without reading anything
(see `merge_layers`).

A project file may only restrict before it is approved, and may never set some keys. `restrictions_of` reduces the layer
of a pending file to what can only restrict further: denied, asked-for, hidden and disabled tools and servers, and lower
budgets. `without_user_only_keys` removes from an approved file the keys that only the user's own settings may set.
`restricted_rules`, `restricted_results` and `restricted_database` apply the restrictions of project files to the user's
own servers and databases. Nothing is read here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from typing import Any

from ullage.options import DatabaseSettings, Limits, Rules, Server, ServerResults

from .config_file import Issue
from .entries import Documents
from .permissions import Withheld, fold_server_name, names_of, rules_of, within
from .settings import Budget, ClientProfile, Folders, ProviderSettings, Scope, Token

__all__ = [
    "OFF_STAYS_OFF",
    "USER_ONLY_SERVER_KEYS",
    "USER_ONLY_VALUES",
    "ClientFile",
    "Delegation",
    "Layer",
    "is_switched_off",
    "lower_budget",
    "restricted_database",
    "restricted_results",
    "restricted_rules",
    "restrictions_of",
    "user_only_profile_keys",
    "without_user_only_keys",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """The settings of delegation in one file."""

    is_mentioned: bool = False
    conf: str | None = None
    """The absolute path of the folder with a policy's two files."""
    policy: Documents | None = None
    budgets: dict[Scope, Budget] = field(default_factory=dict[Scope, Budget])
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    """By dotted key."""
    providers: dict[str, ProviderSettings | None] = field(default_factory=dict[str, "ProviderSettings | None"])
    """None for a server that is left out: its name stays taken, so that no lower layer replaces it."""


@dataclass(frozen=True, slots=True)
class ClientFile:
    """The relevant parts of another program's JSON file, which also contains histories and counters."""

    parts: str = field(repr=False)
    """Its tables of servers and permissions, as one text. May contain secrets."""
    folders: tuple[str, ...] = ()
    """Folders for which it has separate entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The settings of one file, of one flag or of one variable."""

    source: str
    """The name for display: `--mode`, `ULLAGE_MODE`, a file's path."""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """By dotted key, such as `gateway.mode`."""
    servers: Mapping[str, Server | None] = field(default_factory=dict[str, "Server | None"])
    """None for a server that is left out: its name stays taken, so that no lower layer replaces it."""
    handling: Mapping[str, ServerResults] = field(default_factory=dict[str, ServerResults])
    """Settings of the results of these servers."""
    databases: Mapping[str, DatabaseSettings | None] = field(default_factory=dict[str, "DatabaseSettings | None"])
    """None for a database that is left out, as with servers."""
    delegation: Delegation = field(default_factory=Delegation)
    retrieves: Mapping[str, Folders] = field(default_factory=dict[str, Folders])
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Names of servers by the name of their group."""
    clients: Mapping[str, ClientProfile] = field(default_factory=dict[str, ClientProfile])
    tokens: Mapping[str, Token] = field(default_factory=dict[str, Token])
    include: tuple[str, ...] = ()
    issues: tuple[Issue, ...] = ()
    is_foreign: bool = False
    """Whether the layer is another program's file."""
    is_project: bool = False
    """Whether the file came with a project: it may restrict further, and removes no restriction."""
    withheld: Withheld = field(default_factory=Withheld)
    """Restrictions on servers, its own and those configured elsewhere."""
    is_pending: bool = False
    """Whether this is a project's file that the user has not approved: the layer contains only its restrictions."""
    database_limits: Mapping[str, DatabaseSettings] = field(default_factory=dict[str, DatabaseSettings], repr=False)
    """Databases of a pending file, by name: none is opened, but their limits and masks apply to the user's own."""
    is_bound_to_folder: bool = False
    """Whether the content depends on the working folder."""
    is_unread: bool = False
    """Whether the file contained a text that could not be understood."""
    client_file: ClientFile | None = field(default=None, repr=False, compare=False)
    """Set for another program's JSON file."""

    @property
    def is_users(self) -> bool:
        """Whether the user wrote the layer for Ullage."""
        return not (self.is_foreign or self.is_project)


USER_ONLY_VALUES = {
    "store.url": "the store holds your ledger, budgets and results",
    "delegate.file_roots": "it decides which of your files are sent to a model",
    "delegate.project_keys": "it decides which of your variables a project may send",
    "gateway.join_calls": "it would let a client's approval of reading stand for writing",
    "results.ceiling": "it is your limit on the results of all your projects",
    "telemetry.endpoint": "it decides where figures about your calls are sent",
    "telemetry.export": "it decides whether figures about your calls are sent",
    "telemetry.headers": "they may carry your keys",
    "results.keep_hours": "results of all your projects share one store",
    "results.keep_megabytes": "results of all your projects share one store",
}
"""Settings that are never read from a project's file, approved or not, with the reason."""
USER_ONLY_SERVER_KEYS = {
    "inherit_env": "it would hand your variables to the server",
    "definition_changes": "it would let changed tools pass unseen",
}
"""Keys of a server that are never read from a project's file, with the reason."""
_USER_ONLY_WHOLE = "it would lift your budgets of results"
"""Why `whole` of a client is never read from a project's file."""
OFF_STAYS_OFF = ("search.learn", "search.shapes")
"""Keys that any file can switch off, and a project's file cannot switch on."""
_RESTRICTING_VALUES = ("own.ask", "own.deny", "own.hidden", "results.budget")


def restrictions_of(layer: Layer) -> Layer:
    """Return the layer of a pending file: only its restrictions, and none of its problems."""
    values = {key: layer.values[key] for key in _RESTRICTING_VALUES if key in layer.values}
    for key in OFF_STAYS_OFF:
        if layer.values.get(key) is False:
            values[key] = False
    disabled = {
        fold_server_name(name) for name, server in layer.servers.items() if server is not None and server.disabled
    }
    restricting = replace(
        layer.withheld,
        rules={name: _holding_back(rules) for name, rules in layer.withheld.rules.items()},
        off=frozenset((*layer.withheld.off, *disabled)),
        on=frozenset(),
    )
    return Layer(
        source=layer.source,
        values=values,
        handling=layer.handling,
        delegation=Delegation(budgets=layer.delegation.budgets),
        database_limits={name: one for name, one in layer.databases.items() if one is not None},
        is_foreign=layer.is_foreign,
        is_project=True,
        is_pending=True,
        withheld=restricting,
    )


def _holding_back(rules: Rules) -> Rules:
    return Rules(ask=rules.ask, deny=rules.deny, hidden=rules.hidden, writing=rules.writing, only=rules.only)


def without_user_only_keys(layer: Layer) -> Layer:
    """Return the layer of an approved project file without the keys that only the user's own settings may set. Each is
    reported."""
    issues = [_ignored_issue(layer, key, why) for key, why in USER_ONLY_VALUES.items() if key in layer.values]
    issues += [_ignored_issue(layer, f"http.tokens.{name}", "it decides who may connect") for name in layer.tokens]
    issues += [_ignored_issue(layer, key, _USER_ONLY_WHOLE) for key in user_only_profile_keys(layer)]
    servers = dict[str, Server | None]()
    for name, server in layer.servers.items():
        if server is None:
            servers[name] = None
        else:
            defaults: dict[str, Any] = {
                one.name: one.default for one in fields(Server) if one.name in USER_ONLY_SERVER_KEYS
            }
            servers[name] = replace(server, **defaults)
        if server is not None and servers[name] != server:
            issues += [
                _ignored_issue(layer, f"servers.{name}.{key}", why)
                for key, why in USER_ONLY_SERVER_KEYS.items()
                if getattr(server, key) != getattr(servers[name], key)
            ]
    return replace(
        layer,
        values={key: value for key, value in layer.values.items() if key not in USER_ONLY_VALUES},
        tokens={},
        servers=servers,
        clients={name: replace(profile, whole=None) for name, profile in layer.clients.items()},
        withheld=replace(layer.withheld, on=frozenset()),
        issues=(*layer.issues, *issues),
    )


def user_only_profile_keys(layer: Layer) -> tuple[str, ...]:
    """Return the keys of client profiles in a layer that are never read from a project's file."""
    return tuple(f"clients.{name}.whole" for name, profile in layer.clients.items() if profile.whole is not None)


def _ignored_issue(layer: Layer, key: str, why: str) -> Issue:
    hint = "write it into your own ullage.toml if you want it"
    if key.endswith(".inherit_env"):
        hint = 'name the variables in the entry instead: env = { NAME = "${NAME}" }'
    elif key.startswith("servers."):
        hint = "to decide it, copy the whole table of the server into your own ullage.toml under another name"
    return Issue(
        severity="note",
        message=f"`{key}` is ignored in a project's file: {why}",
        file=layer.source,
        key=key,
        suggestion=hint,
    )


def restricted_rules(server: Server, project: Sequence[Layer]) -> Rules:
    """Return the rules of a user's server with the restrictions of all project files."""
    names = names_of(server.name, [layer.withheld for layer in project])
    parts = [
        replace(layer.withheld, rules={name: _holding_back(rules) for name, rules in layer.withheld.rules.items()})
        for layer in project
    ]
    held = rules_of(server.name, names, parts, home=Withheld())
    bound = within(server.rules, held)
    hidden = (
        one for part in parts for name, rules in part.rules.items() if name == server.name for one in rules.hidden
    )
    return replace(bound, hidden=tuple(dict.fromkeys((*bound.hidden, *hidden))))


def is_switched_off(server: Server, layer: Layer) -> bool:
    """Return whether a project file disables a user's server."""
    own = layer.servers.get(server.name)
    names = names_of(server.name, [layer.withheld])
    return bool(own is not None and own.disabled) or not names.isdisjoint(layer.withheld.off)


def lower_budget(first: int | None, second: int | None) -> int | None:
    """Return the lower of two budgets in tokens, where 0 is no limit and None is not set."""
    limits = [one for one in (first, second) if one]
    if limits:
        return min(limits)
    return first if second is None else second


def restricted_results(
    said: ServerResults | None, ceiling: int, project: Iterable[ServerResults]
) -> ServerResults | None:
    """Return how results of a user's server are handled, with the lower budgets of project files.

    Args:
        said: The user's own settings of the server.
        ceiling: The budget of all results, 0 for no limit.
        project: The settings of the server in project files.
    """
    own = said or ServerResults()

    def lowered(known: ServerResults, other: ServerResults) -> ServerResults:
        in_force = ceiling if known.budget is None else known.budget
        budget = known.budget if not other.budget else lower_budget(in_force, other.budget)
        least = min((one for one in (in_force, *known.budgets.values()) if one), default=None)
        lower = {tool: one for tool, one in other.budgets.items() if one and (least is None or one <= least)}
        return replace(known, budget=budget, budgets={**lower, **known.budgets})

    found = reduce(lowered, project, own)
    return said if found == own else found


def restricted_database(database: DatabaseSettings, project: Iterable[DatabaseSettings]) -> DatabaseSettings:
    """Return a user's database with the masks and the lower limits of project files. Default limits are ignored."""
    for other in project:
        tokens = [most for most in (database.max_tokens, other.max_tokens) if most is not None]
        lower = {
            one.name: min(getattr(database.limits, one.name), getattr(other.limits, one.name))
            for one in fields(Limits)
            if getattr(other.limits, one.name) != one.default
        }
        database = replace(
            database,
            limits=replace(database.limits, **lower),
            max_tokens=min(tokens, default=None),
            masked=tuple(dict.fromkeys((*database.masked, *other.masked))),
        )
    return database
