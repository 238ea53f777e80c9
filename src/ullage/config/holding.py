"""What is held back of a server by any file, and who may lift it?

Other programs' files hold back tools and whole servers, wherever the server stands. Only the user's own `ullage.toml`
lifts that, by saying so: `allow` for a tool, `disabled = false` for a server. One that came with a project is bound by
the user's as by the others. What a project's files hold back of a user's server, nothing lifts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ullage.options import Rules, Server

from .issue import Issue
from .layer import Layer
from .narrowing import narrower, overridden, within
from .restricting import is_switched_off, restricted_rules
from .withheld import names_of, rules_of

__all__ = ["held_back"]


def held_back(server: Server, winner: Layer, layers: Sequence[Layer]) -> tuple[Server, tuple[Issue, ...]]:
    """The server with all that any of the layers holds back of it, and what is to be said of that."""
    project = [] if winner.is_project else [layer for layer in layers if layer.is_project]
    others = layers if winner.is_project else [layer for layer in layers if not layer.is_project]
    names = names_of(server.name, [layer.withheld for layer in layers])
    switching_off = (
        *_switched_off(server.name, names, winner, others),
        *(layer for layer in project if is_switched_off(server, layer)),
    )
    off_by = None if server.disabled else next(iter(switching_off), None)
    rules = _bound(server, names, winner, others)
    if project:
        rules = restricted_rules(replace(server, rules=rules), project)
    held = replace(server, rules=rules, disabled=server.disabled or off_by is not None)
    lost = winner.is_project and server.rules.allow and (rules.under or rules.allow != server.rules.allow)
    return held, (
        *([_off_note(server.name, winner, off_by)] if off_by else []),
        *([_allow_note(server.name, winner)] if lost else []),
    )


def _bound(server: Server, names: frozenset[str], winner: Layer, layers: Sequence[Layer]) -> Rules:
    foreign = [layer.withheld for layer in layers if layer.is_foreign]
    # Joined first, and only then set against the user's own: what one file wants must not excuse what another denies.
    held = rules_of(server.name, names, foreign, home=winner.withheld)
    if winner.is_foreign:
        return narrower(server.rules, held)
    if not winner.is_project:
        return overridden(server.rules, held)
    said = (layer.withheld.rules.get(server.name) for layer in layers if layer.is_users)
    return within(server.rules, overridden(next(filter(None, said), Rules()), held))


def _switched_off(name: str, names: frozenset[str], winner: Layer, layers: Sequence[Layer]) -> Iterator[Layer]:
    """The layers that switch it off."""
    is_lifted = any(layer.is_users and name in layer.withheld.on for layer in layers)
    for layer in layers:
        own = layer.servers.get(name)
        if layer.is_foreign:
            if not is_lifted and _excludes(layer, names, winner):
                yield layer
        elif own is not None and own.disabled:
            yield layer


def _excludes(layer: Layer, names: frozenset[str], winner: Layer) -> bool:
    permissions = layer.withheld.permissions
    declined = permissions.declined if permissions and winner.source.endswith(".mcp.json") else ()
    # What a file says of its own servers is in them already, under names that are not folded.
    off = frozenset[str]() if layer is winner else layer.withheld.off
    return not names.isdisjoint((*off, *declined))


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
