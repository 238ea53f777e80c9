"""Reads tool permissions of other programs into allow, ask and deny rules.

Claude Code's settings name a tool `mcp__server__tool`, or a whole server `mcp__server`, under `permissions.deny` and
`permissions.ask`, and the servers of a project's `.mcp.json` that a person declined. Tools that it allows without
asking are not taken over: that decision applies to that program and its user.

Ullage never permits more than a client's file does: a tool that the file leaves out is denied, and one that needs
consent there needs it here. In lists of wanted tools, names are taken literally; in lists of unwanted tools, a star
matches any text, which can only restrict more.

The restrictions of each file are one `Withheld` value. Functions here find those that concern one server, by every name
it has, and join them. `merge_layers` decides which file's server is used, and which settings may lift restrictions.

Other programs allow any name; Ullage's must be valid in a tool's name. Rules in other files use that program's spelling
of the server, so names are compared in folded form, not in the form that Ullage gave them.

Every readable name counts: one invalid item does not cancel the others. A list with unreadable items is recorded, so
that it can be reported. The readers of each format decide what a list means.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import cast

from ullage.options import Rules

__all__ = [
    "EVERY",
    "Lists",
    "Permissions",
    "Withheld",
    "at",
    "clean",
    "fold_server_name",
    "literal",
    "names_of",
    "narrowed",
    "narrower",
    "overridden",
    "permissions_of",
    "readable",
    "rests_of",
    "rules_for",
    "rules_of",
    "star_pattern",
    "tool_names",
    "within",
]


@dataclass(slots=True)
class Lists:
    """A document, and the places in it that could not be read completely."""

    document: object = field(repr=False)
    unclear: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])

    def names(self, *path: str) -> tuple[str, ...] | None:
        """Return the names on the list at this path; None if there is none. A single text counts as one name."""
        value = at(self.document, path)
        if value is None:
            return None
        found, is_whole = readable(value)
        if not is_whole:
            self.unclear.append(path)
        return found

    def only(self, *path: str) -> tuple[str, ...] | None:
        """Return the names on a list of the only wanted items. A value that is not a list allows nothing."""
        names = self.names(*path)
        return names if names is None or isinstance(at(self.document, path), list) else ()

    def table(self, *path: str) -> Mapping[str, object]:
        value = at(self.document, path)
        if isinstance(value, dict):
            return cast("Mapping[str, object]", value)
        if value is not None:
            self.unclear.append(path)
        return {}


def at(document: object, path: tuple[str, ...]) -> object:
    """Return the value at this path, or None."""
    for part in path:
        document = cast("Mapping[str, object]", document).get(part) if isinstance(document, dict) else None
    return document


def readable(value: object) -> tuple[tuple[str, ...], bool]:
    """Return the names that can be read, and whether the value is a list of names only."""
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    names = tuple(item for item in items if isinstance(item, str) and item.strip())
    return names, isinstance(value, list) and len(names) == len(items)


def clean(name: str) -> str:
    """Replace characters that are invalid in a tool's name with dashes."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-") or "server"


def fold_server_name(name: str) -> str:
    """Replace everything except letters and digits with `_`, as Claude Code writes servers. A character above U+FFFF
    becomes `__`, because it is two UTF-16 units there."""
    return re.sub(r"[^A-Za-z0-9]", lambda match: "__" if match.group() > "\uffff" else "_", name)


EVERY = ("*",)
_PREFIX = "mcp__"


def narrowed(
    *,
    only: Sequence[str] | None = None,
    denied: Sequence[str] = (),
    asked: Sequence[str] = (),
    ask_rest: bool = False,
    unasked: Sequence[str] = (),
) -> Rules:
    """Return rules for a file that lists the only tools it wants, those it does not want, and those that need consent.

    `ask_rest` requires consent for every tool except the `unasked`.
    """
    rules = Rules(
        only=None if only is None else _each(literal, only),
        ask=EVERY if ask_rest else _each(star_pattern, asked),
        deny=_each(star_pattern, denied),
    )
    free = [name for name in unasked if ask_rest and rules.access(name) != "deny"]
    return replace(rules, allow=_each(literal, free))


def tool_names(listed: Iterable[str], server: str) -> tuple[str, ...]:
    """Return tools as the server calls them, from a list that may add arguments or the program's own prefix."""
    names = [name.partition("(")[0].strip() for name in listed]
    return tuple(dict.fromkeys(one for name in names for one in (name, _strip_prefix(name, fold_server_name(server)))))


def _strip_prefix(name: str, server: str) -> str:
    ends = (match.start() for match in re.finditer(r"(?=__.)", name) if name.startswith(_PREFIX))
    return next((name[end + 2 :] for end in ends if fold_server_name(name[len(_PREFIX) : end]) == server), name)


def literal(name: str) -> str:
    """Return a pattern that matches only this name."""
    return re.sub(r"[*?\[]", r"[\g<0>]", name)


def star_pattern(name: str) -> str:
    """Return a pattern in which only a star has a special meaning."""
    return "*".join(literal(part) for part in name.split("*"))


def _each(pattern: Callable[[str], str], names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(pattern(name) for name in names))


def narrower(first: Rules, second: Rules) -> Rules:
    """Return what two other programs' files both allow, for a server that is in both."""
    if first.only is None or second.only is None:
        only = second.only if first.only is None else first.only
    else:
        only = tuple(one for one in first.only if one in second.only)
    return replace(
        first,
        allow=_join_patterns(_still_allowed(first.allow, second), _still_allowed(second.allow, first)),
        ask=_join_patterns(first.ask, second.ask),
        deny=_join_patterns(first.deny, second.deny),
        only=only,
        under=_join_bounds(first.under, second.under),
    )


def overridden(own: Rules, other: Rules) -> Rules:
    """Return the user's own rules, with the restrictions of another program's file except those lifted by name."""
    wanted = None if other.only is None else _join_patterns(other.only, own.allow)
    bounds = _join_bounds(own.under, other.under)
    return replace(
        own,
        allow=_join_patterns(own.allow, _still_allowed(other.allow, own)),
        ask=_join_patterns(own.ask, other.ask),
        deny=_join_patterns(own.deny, other.deny),
        only=wanted if own.only is None else own.only,
        # Of two lists of patterns, a tool must be on both.
        under=bounds if own.only is None or wanted is None else Rules(only=wanted, under=bounds),
    )


def within(rules: Rules, bound: Rules) -> Rules:
    """Return the rules with all restrictions of the bound, even for tools that the rules allow."""
    writing = _join_patterns(rules.writing, bound.writing)
    limit = Rules(allow=bound.allow, ask=bound.ask, deny=bound.deny, only=bound.only)
    bounds = _join_bounds(bound.under, rules.under)
    if not _holds_back(limit):
        return replace(rules, writing=writing, under=bounds)
    if _holds_back(rules):
        return replace(rules, writing=writing, under=replace(limit, under=bounds))
    return replace(
        rules, writing=writing, allow=limit.allow, ask=limit.ask, deny=limit.deny, only=limit.only, under=bounds
    )


def _join_bounds(first: Rules | None, second: Rules | None) -> Rules | None:
    """Return one chain of further rules in which all of both apply."""
    if first is None or second is None:
        return second if first is None else first
    return replace(first, under=_join_bounds(first.under, second))


def _holds_back(rules: Rules) -> bool:
    return bool(rules.ask or rules.deny or rules.only is not None)


def _still_allowed(patterns: tuple[str, ...], rules: Rules) -> tuple[str, ...]:
    return tuple(pattern for pattern in patterns if rules.access(re.sub(r"\[([*?\[])\]", r"\1", pattern)) == "allow")


def _join_patterns(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


_ODD = "[!A-Za-z0-9]"
"""Characters that Claude Code replaces with `_` in a tool's name, including `_` itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """The permissions in one file of Claude Code."""

    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    declined: tuple[str, ...] = ()
    """Servers of a `.mcp.json`, folded."""


def permissions_of(lists: Lists, projects: Iterable[str]) -> Permissions | None:
    """Return the permissions of a settings file or of its entries for these folders; None if it has none."""
    places = [(), *(("projects", project) for project in projects)]
    found = Permissions(
        deny=tuple(_of_servers(lists.names("permissions", "deny"))),
        ask=tuple(_of_servers(lists.names("permissions", "ask"))),
        declined=tuple(
            fold_server_name(name) for place in places for name in lists.names(*place, "disabledMcpjsonServers") or ()
        ),
    )
    return found if lists.table("permissions") or found != Permissions() else None


def _of_servers(listed: Iterable[str] | None) -> Iterator[str]:
    """Yield rules that may name a server's tool, without arguments: Ullage cannot enforce arguments, but it can enforce
    the name."""
    names = (one.partition("(")[0].strip() for one in listed or ())
    return (name for name in names if name.startswith("mcp__") or "*" in name)


def rules_for(servers: Collection[str], permissions: Permissions) -> Rules:
    """Return the restrictions on one server, which is known by these folded names."""
    return Rules(ask=_patterns(servers, permissions.ask), deny=_patterns(servers, permissions.deny))


def _patterns(servers: Collection[str], rules: Iterable[str]) -> tuple[str, ...]:
    found = (pattern for rule in rules for server in servers for pattern in _for_server(rule, f"mcp__{server}"))
    return tuple(dict.fromkeys(found))


def _for_server(rule: str, whole: str) -> Iterator[str]:
    if "" in _rests(rule, whole):
        yield from EVERY
    for rest in filter(None, _rests(rule, f"{whole}__")):
        yield star_pattern(rest)
        yield "".join("*" if one == "*" else _ODD if fold_server_name(one) == "_" else one for one in rest)


def rests_of(rules: Iterable[str], starts: Iterable[str]) -> Iterator[str]:
    """Yield the parts of rules that refer to a server's own tools, whose full names begin with one of these folded
    texts."""
    for rule in rules:
        for start in starts:
            yield from filter(None, _rests(rule, start))


def _rests(rule: str, start: str) -> list[str]:
    """Return all possible remainders of a rule after its beginning has matched this text; a star may end anywhere in
    it."""
    places = _after_stars(rule, {0})
    for letter in start:
        stay = {at for at in places if rule[at : at + 1] == "*"}
        step = {at + 1 for at in places - stay if fold_server_name(rule[at : at + 1]) == letter}
        places = _after_stars(rule, stay | step)
    return [rule[at:] for at in sorted(places)]


def _after_stars(rule: str, places: Iterable[int]) -> set[int]:
    """Return these places and those after stars that match the empty text."""
    found = set(places)
    for place in places:
        behind = place
        while rule[behind : behind + 1] == "*":
            behind += 1
            found.add(behind)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """The restrictions of one file."""

    rules: Mapping[str, Rules] = field(default_factory=dict[str, Rules])
    """By Ullage's name of a server, including servers that are left out or replaced."""
    called: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Ullage's name of a server to the file's names of it, folded."""
    off: frozenset[str] = frozenset()
    """Servers that are switched off, folded; they may be configured in another file."""
    on: frozenset[str] = frozenset()
    """Servers that the file explicitly declares as not switched off."""
    permissions: Permissions | None = None
    """Restrictions on servers that are configured in other files."""


def names_of(server: str, parts: Iterable[Withheld]) -> frozenset[str]:
    """Return every name of a server, folded."""
    called = (part.called.get(server, frozenset[str]()) for part in parts)
    return frozenset((fold_server_name(server),)).union(*called)


def rules_of(server: str, names: frozenset[str], parts: Sequence[Withheld], *, home: Withheld) -> Rules:
    """Return the joined restrictions of these parts on a server. In the file that configures it, only those on that
    server alone count."""
    said = (
        rules
        for part in parts
        for name, rules in part.rules.items()
        if name == server or (part is not home and not names.isdisjoint(part.called.get(name, ())))
    )
    permitted = (rules_for(names, part.permissions) for part in parts if part.permissions is not None)
    return reduce(narrower, (*said, *permitted), Rules())
