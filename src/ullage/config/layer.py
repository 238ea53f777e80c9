"""Which of several places decides a setting?

The first that says it. A server, a client's profile and a token are each decided as a whole, the other settings key
by key. Where a server stands in two places the higher wins and that is noted; what another program's file held back
stays held back (see `narrowing`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from typing import Any

from ullage.gateway import Rules, Server

from .issue import Issue
from .narrowing import narrower, overridden
from .permissions import Permissions, rules_for
from .settings import ClientProfile, Gateway, Settings, Token

__all__ = ["DEFAULT", "Combined", "Layer", "combine"]

DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What one place says: a flag, a variable, a file."""

    source: str
    """For people: `--mode`, `ULLAGE_MODE`, a file's path."""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """By dotted key, such as `gateway.mode`."""
    servers: Mapping[str, Server | None] = field(default_factory=dict[str, "Server | None"])
    """None for one that is left out: its name is taken, it does not fall back to a lower place."""
    clients: Mapping[str, ClientProfile] = field(default_factory=dict[str, ClientProfile])
    tokens: Mapping[str, Token] = field(default_factory=dict[str, Token])
    include: tuple[str, ...] = ()
    issues: tuple[Issue, ...] = ()
    is_foreign: bool = False
    """Whether it is another program's file."""
    rules: Mapping[str, Rules] = field(default_factory=dict[str, Rules])
    """What another program's file holds back of its servers, those among them that are left out or lost."""
    permissions: Permissions | None = None
    """What it holds back of servers that stand elsewhere."""
    is_unread: bool = False
    """Whether there was a text that nobody could make sense of."""


@dataclass(frozen=True, slots=True)
class Combined:
    settings: Settings
    why: Mapping[str, str]
    """Dotted key to the place that decided it."""
    issues: tuple[Issue, ...]


def combine(layers: Sequence[Layer], *, store: str) -> Combined:
    """All layers, highest first, as one; `store` is where things live if nobody says."""
    values, why = _decided(layers)
    servers, issues = _servers(layers, why)
    clients: dict[str, ClientProfile] = _whole([(layer.source, layer.clients) for layer in layers], "clients", why)
    tokens: dict[str, Token] = _whole([(layer.source, layer.tokens) for layer in layers], "http.tokens", why)
    settings = Settings(
        store=values.get("store.url", store),
        servers=tuple(servers[name] for name in sorted(servers)),
        gateway=Gateway(**_under("gateway.", values)),
        own=Rules(**_under("own.", values)),
        clients=dict(sorted(clients.items())),
        tokens=tuple(tokens[name] for name in sorted(tokens)),
    )
    return Combined(settings, why, (*(issue for layer in layers for issue in layer.issues), *issues))


def _decided(layers: Sequence[Layer]) -> tuple[dict[str, Any], dict[str, str]]:
    values = dict[str, Any]()
    why = dict.fromkeys(("store.url", *(f"gateway.{one.name}" for one in fields(Gateway))), DEFAULT)
    for layer in reversed(layers):
        values |= layer.values
        why |= dict.fromkeys(layer.values, layer.source)
    return values, why


def _under(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}


def _whole(layers: Sequence[tuple[str, Mapping[str, Any]]], table: str, why: dict[str, str]) -> dict[str, Any]:
    found = dict[str, Any]()
    for source, entries in reversed(layers):
        found |= entries
        why |= {f"{table}.{name}": source for name in entries}
    return found


def _servers(layers: Sequence[Layer], why: dict[str, str]) -> tuple[dict[str, Server], tuple[Issue, ...]]:
    """By name; the layer that wins a name is written to `why`."""
    taken, found, issues = dict[str, Layer](), dict[str, Server](), list[Issue]()
    for layer, name, server in _entries(layers):
        winner = taken.setdefault(name, layer)
        if winner is not layer:
            issues.append(_note(name, winner, layer))
            continue
        why[f"servers.{name}"] = layer.source
        if server is not None:
            found[name] = _held_back(server, layer, layers)
    return found, tuple(issues)


def _entries(layers: Sequence[Layer]) -> Iterator[tuple[Layer, str, Server | None]]:
    return ((layer, name, server) for layer in layers for name, server in layer.servers.items())


def _held_back(server: Server, winner: Layer, layers: Sequence[Layer]) -> Server:
    """The server with what any other program's file holds back of one of that name."""
    permissions = [layer.permissions for layer in layers if layer.permissions]
    said = [layer.rules.get(server.name, Rules()) for layer in layers]
    # Joined first, and only then set against the user's own: what one file wants must not excuse what another denies.
    held = reduce(narrower, [*said, *(rules_for(server.name, one) for one in permissions)], Rules())
    declined = winner.source.endswith(".mcp.json") and any(server.name in one.declined for one in permissions)
    return replace(
        server,
        rules=(narrower if winner.is_foreign else overridden)(server.rules, held),
        disabled=server.disabled or declined,
    )


def _note(name: str, winner: Layer, loser: Layer) -> Issue:
    said = f"server `{name}` is also in `{winner.source}`, which is the one used"
    if loser.is_foreign:
        said += "; tools that are left out or asked for here stay so"
    return Issue(severity="note", message=said, file=loser.source, key=f"servers.{name}", server=name)
