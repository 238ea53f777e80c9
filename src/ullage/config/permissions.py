"""Reads tool permissions of other programs into allow, ask and deny rules.

Its settings name a tool `mcp__server__tool`, or a whole server `mcp__server`, under `permissions.deny` and
`permissions.ask`, and the servers of a project's `.mcp.json` that a person declined. What it allows without asking is
not taken over: that is between it and whoever sits there.

Ullage never widens what a client may do: a tool that its file leaves out is denied, one that must be asked for is
asked for. Where other programs say what they want, names are taken to the letter; where they say what they do not
want, a star is any text, which can only hold back more.

Each file's part is one value; here those that speak of one server are found, by every name it goes by, and joined.
Which file's server is used, and who may lift what is held back, is decided in `layer`.

Other programs allow any name; here it must be able to stand in a tool's name. Rules written elsewhere name the server
as that program spells it, so names are compared folded, never as they were made to fit.

Every name that can be read counts: one item nobody understands must not undo the others. A list that was not
understood whole is remembered, so that somebody is told. What a list means is its reader's matter.
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
    "folded",
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
    "starred",
    "tool_names",
    "within",
]


@dataclass(slots=True)
class Lists:
    """One document, and the places in it that could not be read whole."""

    document: object = field(repr=False)
    unclear: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])

    def names(self, *path: str) -> tuple[str, ...] | None:
        """Those on the list at this place; None where there is none. A text alone is one name."""
        value = at(self.document, path)
        if value is None:
            return None
        found, is_whole = readable(value)
        if not is_whole:
            self.unclear.append(path)
        return found

    def only(self, *path: str) -> tuple[str, ...] | None:
        """The same for a list of all that is wanted: one that is no list wants nothing."""
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
    """What stands at this place, or None."""
    for part in path:
        document = cast("Mapping[str, object]", document).get(part) if isinstance(document, dict) else None
    return document


def readable(value: object) -> tuple[tuple[str, ...], bool]:
    """The names that can be read, and whether it is a list of nothing else."""
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    names = tuple(item for item in items if isinstance(item, str) and item.strip())
    return names, isinstance(value, list) and len(names) == len(items)


def clean(name: str) -> str:
    """What cannot stand in a tool's name becomes a dash."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-") or "server"


def folded(name: str) -> str:
    """With `_` for whatever is no letter or digit, as Claude Code writes servers; two where its strings have two."""
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
    """Rules for a file that lists the only tools it wants, those it does not, and those a person must agree to.

    `ask_rest` asks for every tool but the `unasked`.
    """
    rules = Rules(
        only=None if only is None else _each(literal, only),
        ask=EVERY if ask_rest else _each(starred, asked),
        deny=_each(starred, denied),
    )
    free = [name for name in unasked if ask_rest and rules.access(name) != "deny"]
    return replace(rules, allow=_each(literal, free))


def tool_names(listed: Iterable[str], server: str) -> tuple[str, ...]:
    """Tools as the server calls them, of a list that may have them with arguments or under the program's own prefix."""
    names = [name.partition("(")[0].strip() for name in listed]
    return tuple(dict.fromkeys(one for name in names for one in (name, _unprefixed(name, folded(server)))))


def _unprefixed(name: str, server: str) -> str:
    ends = (match.start() for match in re.finditer(r"(?=__.)", name) if name.startswith(_PREFIX))
    return next((name[end + 2 :] for end in ends if folded(name[len(_PREFIX) : end]) == server), name)


def literal(name: str) -> str:
    """A pattern that only this name fits."""
    return re.sub(r"[*?\[]", r"[\g<0>]", name)


def starred(name: str) -> str:
    """A pattern in which nothing but a star is more than a letter."""
    return "*".join(literal(part) for part in name.split("*"))


def _each(pattern: Callable[[str], str], names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(pattern(name) for name in names))


def _name(pattern: str) -> str:
    return re.sub(r"\[([*?\[])\]", r"\1", pattern)


def narrower(first: Rules, second: Rules) -> Rules:
    """What two other programs' files both allow, for a server that stands in both."""
    return replace(
        first,
        allow=_joined(_still_allowed(first.allow, second), _still_allowed(second.allow, first)),
        ask=_joined(first.ask, second.ask),
        deny=_joined(first.deny, second.deny),
        only=_common(first.only, second.only),
    )


def overridden(own: Rules, other: Rules) -> Rules:
    """The user's own rules, with what another program's file holds back unless they allow it by name."""
    return replace(
        own,
        allow=_joined(own.allow, _still_allowed(other.allow, own)),
        ask=_joined(own.ask, other.ask),
        deny=_joined(own.deny, other.deny),
        only=None if other.only is None else _joined(other.only, own.allow),
    )


def within(rules: Rules, bound: Rules) -> Rules:
    """The rules with all that the bound holds back, whatever they allow themselves."""
    writing = _joined(rules.writing, bound.writing)
    limit = Rules(allow=bound.allow, ask=bound.ask, deny=bound.deny, only=bound.only)
    if not _holds_back(limit):
        return replace(rules, writing=writing)
    if _holds_back(rules):
        return replace(rules, writing=writing, under=limit)
    return replace(rules, writing=writing, allow=limit.allow, ask=limit.ask, deny=limit.deny, only=limit.only)


def _holds_back(rules: Rules) -> bool:
    return bool(rules.ask or rules.deny or rules.only is not None)


def _still_allowed(patterns: tuple[str, ...], rules: Rules) -> tuple[str, ...]:
    return tuple(pattern for pattern in patterns if rules.access(_name(pattern)) == "allow")


def _common(first: tuple[str, ...] | None, second: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if first is None or second is None:
        return second if first is None else first
    return tuple(one for one in first if one in second)


def _joined(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """What one file holds back."""

    rules: Mapping[str, Rules] = field(default_factory=dict[str, Rules])
    """By the name a server has here, those among them that are left out or lost."""
    called: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """The name a server has here to those the file has for it, folded."""
    off: frozenset[str] = frozenset()
    """Servers switched off, folded; they may stand elsewhere."""
    on: frozenset[str] = frozenset()
    """Servers of which it says outright that they are not switched off."""
    permissions: Permissions | None = None
    """What it holds back of servers that stand elsewhere."""


def names_of(server: str, parts: Iterable[Withheld]) -> frozenset[str]:
    """Every name it goes by, folded."""
    called = (part.called.get(server, frozenset[str]()) for part in parts)
    return frozenset((folded(server),)).union(*called)


def rules_of(server: str, names: frozenset[str], parts: Sequence[Withheld], *, home: Withheld) -> Rules:
    """What these parts hold back of a server, joined; in the one it stands in, only what is said of it alone."""
    said = (rules for part in parts for rules in _rules(server, frozenset() if part is home else names, part))
    permitted = (rules_for(names, part.permissions) for part in parts if part.permissions is not None)
    return reduce(narrower, (*said, *permitted), Rules())


def _rules(server: str, names: frozenset[str], part: Withheld) -> Iterator[Rules]:
    for name, rules in part.rules.items():
        if name == server or not names.isdisjoint(part.called.get(name, ())):
            yield rules
