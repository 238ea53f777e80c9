"""Which tools does Claude Code keep from its model, or ask about?

Its settings name a tool `mcp__server__tool`, or a whole server `mcp__server`, under `permissions.deny` and
`permissions.ask`, and the servers of a project's `.mcp.json` that a person declined. What it allows without asking is
not taken over: that is between it and whoever sits there.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from ullage.options import Rules

from .lists import Lists
from .naming import folded
from .narrowing import EVERY, starred

__all__ = ["Permissions", "permissions_of", "rests_of", "rules_for"]

_ODD = "[!A-Za-z0-9]"
"""What Claude Code writes `_` for in a tool's name, `_` itself among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    declined: tuple[str, ...] = ()
    """Servers of a `.mcp.json`, folded."""


def permissions_of(lists: Lists, projects: Iterable[str]) -> Permissions | None:
    """Those of a settings file or of its entries for these folders; None where it has none."""
    places = [(), *(("projects", project) for project in projects)]
    found = Permissions(
        deny=tuple(_of_servers(lists.names("permissions", "deny"))),
        ask=tuple(_of_servers(lists.names("permissions", "ask"))),
        declined=tuple(
            folded(name) for place in places for name in lists.names(*place, "disabledMcpjsonServers") or ()
        ),
    )
    return found if lists.table("permissions") or found != Permissions() else None


def _of_servers(listed: Iterable[str] | None) -> Iterator[str]:
    """Rules that may name a server's tool, without the arguments: those cannot be kept to, the name can."""
    names = (one.partition("(")[0].strip() for one in listed or ())
    return (name for name in names if name.startswith("mcp__") or "*" in name)


def rules_for(servers: Collection[str], permissions: Permissions) -> Rules:
    """What they hold back of one server, which goes by these names, folded."""
    return Rules(ask=_patterns(servers, permissions.ask), deny=_patterns(servers, permissions.deny))


def _patterns(servers: Collection[str], rules: Iterable[str]) -> tuple[str, ...]:
    found = (pattern for rule in rules for server in servers for pattern in _for_server(rule, f"mcp__{server}"))
    return tuple(dict.fromkeys(found))


def _for_server(rule: str, whole: str) -> Iterator[str]:
    if "" in _rests(rule, whole):
        yield from EVERY
    for rest in filter(None, _rests(rule, f"{whole}__")):
        yield starred(rest)
        yield "".join("*" if one == "*" else _ODD if folded(one) == "_" else one for one in rest)


def rests_of(rules: Iterable[str], starts: Iterable[str]) -> Iterator[str]:
    """What rules say of a server's own tools, whose full names begin with one of these texts, folded."""
    for rule in rules:
        for start in starts:
            yield from filter(None, _rests(rule, start))


def _rests(rule: str, start: str) -> list[str]:
    """What can be left of a rule where its beginning stands for this start; a star may end anywhere in it."""
    places = _after_stars(rule, {0})
    for letter in start:
        stay = {at for at in places if rule[at : at + 1] == "*"}
        step = {at + 1 for at in places - stay if folded(rule[at : at + 1]) == letter}
        places = _after_stars(rule, stay | step)
    return [rule[at:] for at in sorted(places)]


def _after_stars(rule: str, places: Iterable[int]) -> set[int]:
    """These places and those behind stars that stand for nothing."""
    found = set(places)
    for place in places:
        behind = place
        while rule[behind : behind + 1] == "*":
            behind += 1
            found.add(behind)
    return found
