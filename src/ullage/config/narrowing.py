"""How is what another program may not do said as rules?

Ullage never widens what a client may do: a tool that its file leaves out is denied, one that must be asked for is
asked for. Where other programs say what they want, names are taken to the letter; where they say what they do not
want, a star is any text, which can only hold back more.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ullage.options import Rules

from .naming import folded

__all__ = ["EVERY", "literal", "narrowed", "narrower", "overridden", "starred", "tool_names", "within"]

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
