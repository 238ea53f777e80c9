"""What a project file may say: restrictions before it is approved, and never some keys.

`restrictions_of` reduces a layer of a pending file to what can only hold back more: denied, asked-for, hidden and
disabled tools and servers, and lower budgets. `without_user_only_keys` removes from an approved file what only the
user's own settings decide. `restricted_rules`, `restricted_results` and `restricted_database` apply the restrictions
of project files to the user's own servers and databases. Nothing is read here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import reduce
from typing import Any

from ullage.options import DatabaseSettings, Limits, Rules, Server, ServerResults

from .delegation import Delegation
from .issue import Issue
from .layer import Layer
from .naming import folded
from .narrowing import within
from .withheld import Withheld, names_of, rules_of

__all__ = [
    "USER_ONLY_SERVER_KEYS",
    "USER_ONLY_VALUES",
    "is_switched_off",
    "lower_budget",
    "restricted_database",
    "restricted_results",
    "restricted_rules",
    "restrictions_of",
    "without_user_only_keys",
]

USER_ONLY_VALUES = {
    "store.url": "the store holds your ledger, budgets and results",
    "delegate.file_roots": "it decides which of your files are sent to a model",
    "delegate.project_keys": "it decides which of your variables a project may send",
    "gateway.join_calls": "it would let a client's approval of reading stand for writing",
    "results.keep_hours": "results of all your projects share one store",
    "results.keep_megabytes": "results of all your projects share one store",
}
"""Settings that are never read from a project's file, approved or not, with the reason."""
USER_ONLY_SERVER_KEYS = {
    "inherit_env": "it would hand your variables to the server",
    "definition_changes": "it would let changed tools pass unseen",
}
"""The same for the keys of a server."""
_RESTRICTING_VALUES = ("own.ask", "own.deny", "own.hidden", "results.budget")


def restrictions_of(layer: Layer) -> Layer:
    """The layer of a pending file: nothing but its restrictions, and none of its problems."""
    values = {key: layer.values[key] for key in _RESTRICTING_VALUES if key in layer.values}
    if layer.values.get("search.learn") is False:
        values["search.learn"] = False
    return Layer(
        source=layer.source,
        values=values,
        handling=layer.handling,
        delegation=Delegation(budgets=layer.delegation.budgets),
        database_limits={name: one for name, one in layer.databases.items() if one is not None},
        is_foreign=layer.is_foreign,
        is_project=True,
        is_pending=True,
        withheld=_restricting(layer),
    )


def _restricting(layer: Layer) -> Withheld:
    disabled = {folded(name) for name, server in layer.servers.items() if server is not None and server.disabled}
    return replace(
        layer.withheld,
        rules={name: _holding_back(rules) for name, rules in layer.withheld.rules.items()},
        off=frozenset((*layer.withheld.off, *disabled)),
        on=frozenset(),
    )


def _holding_back(rules: Rules) -> Rules:
    return Rules(ask=rules.ask, deny=rules.deny, hidden=rules.hidden, writing=rules.writing, only=rules.only)


def without_user_only_keys(layer: Layer) -> Layer:
    """The layer of an approved project file without what only the user's own settings decide, each reported."""
    issues = [_ignored(layer, key, why) for key, why in USER_ONLY_VALUES.items() if key in layer.values]
    issues += [_ignored(layer, f"http.tokens.{name}", "it decides who may connect") for name in layer.tokens]
    servers = dict[str, Server | None]()
    for name, server in layer.servers.items():
        servers[name] = None if server is None else _without_user_only(server)
        if server is not None and servers[name] != server:
            issues += [
                _ignored(layer, f"servers.{name}.{key}", why)
                for key, why in USER_ONLY_SERVER_KEYS.items()
                if getattr(server, key) != getattr(servers[name], key)
            ]
    return replace(
        layer,
        values={key: value for key, value in layer.values.items() if key not in USER_ONLY_VALUES},
        tokens={},
        servers=servers,
        withheld=replace(layer.withheld, on=frozenset()),
        issues=(*layer.issues, *issues),
    )


def _without_user_only(server: Server) -> Server:
    defaults: dict[str, Any] = {one.name: one.default for one in fields(Server) if one.name in USER_ONLY_SERVER_KEYS}
    return replace(server, **defaults)


def _ignored(layer: Layer, key: str, why: str) -> Issue:
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
    """The rules of a user's server, with all that project files hold back of it."""
    names = names_of(server.name, [layer.withheld for layer in project])
    parts = [replace(layer.withheld, rules=_all_holding_back(layer)) for layer in project]
    held = rules_of(server.name, names, parts, home=Withheld())
    bound = within(server.rules, held)
    hidden = (
        one for part in parts for name, rules in part.rules.items() if name == server.name for one in rules.hidden
    )
    return replace(bound, hidden=tuple(dict.fromkeys((*bound.hidden, *hidden))))


def _all_holding_back(layer: Layer) -> dict[str, Rules]:
    return {name: _holding_back(rules) for name, rules in layer.withheld.rules.items()}


def is_switched_off(server: Server, layer: Layer) -> bool:
    """Whether a project file disables a user's server."""
    own = layer.servers.get(server.name)
    names = names_of(server.name, [layer.withheld])
    return bool(own is not None and own.disabled) or not names.isdisjoint(layer.withheld.off)


def lower_budget(first: int | None, second: int | None) -> int | None:
    """The lower of two budgets in tokens, where 0 is no limit and None is not said."""
    limits = [one for one in (first, second) if one]
    if limits:
        return min(limits)
    return first if second is None else second


def restricted_results(
    said: ServerResults | None, ceiling: int, project: Iterable[ServerResults]
) -> ServerResults | None:
    """How results of a user's server are handled, with the lower budgets of project files.

    Args:
        said: what the user's own settings say of the server.
        ceiling: the budget of all results, 0 for no limit.
        project: what project files say of the server.
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
    """A user's database with the masks and the lower limits of project files. A default limit says nothing."""
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
