"""How is what another program may not do said as rules?

Ullage never widens what a client may do: a tool that its file leaves out is denied, one that must be asked for is
asked for. Other programs name tools, they do not write patterns, so names are taken to the letter.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ullage.gateway import Rules

__all__ = ["EVERY", "literal", "narrowed", "narrower", "overridden"]

EVERY = ("*",)


def narrowed(
    *,
    only: Sequence[str] | None = None,
    denied: Sequence[str] = (),
    asked: Sequence[str] = (),
    ask_rest: bool = False,
    unasked: Sequence[str] = (),
) -> Rules:
    """Rules for a file that lists the only tools it wants, those it does not, and those a person must agree to.

    `ask_rest` asks for every tool but the `unasked`. Where a tool is among the only ones and must be asked for, it is
    denied: rules cannot yet say both, and denying is the narrower.
    """
    if only is None:
        wanted = [name for name in unasked if ask_rest and name not in denied]
        ask = EVERY if ask_rest else _literals(asked)
        return Rules(allow=_literals(wanted), ask=ask, deny=_literals(denied))
    free = [name for name in only if name not in denied and name not in asked]
    return Rules(allow=_literals(name for name in free if not ask_rest or name in unasked), deny=EVERY)


def literal(name: str) -> str:
    """A pattern that only this name fits."""
    return re.sub(r"[*?\[]", r"[\g<0>]", name)


def _literals(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(literal(name) for name in names)


def _name(pattern: str) -> str:
    return re.sub(r"\[([*?\[])\]", r"\1", pattern)


def narrower(first: Rules, second: Rules) -> Rules:
    """What two other programs' files both allow, for a server that stands in both."""
    return replace(
        first,
        allow=_joined(_still_allowed(first.allow, second), _still_allowed(second.allow, first)),
        ask=_joined(first.ask, second.ask),
        deny=_joined(first.deny, second.deny),
    )


def overridden(own: Rules, other: Rules) -> Rules:
    """The user's own rules, with what another program's file holds back unless they allow it by name."""
    return replace(
        own,
        allow=_joined(own.allow, _still_allowed(other.allow, own)),
        ask=_joined(own.ask, other.ask),
        deny=_joined(own.deny, other.deny),
    )


def _still_allowed(patterns: tuple[str, ...], rules: Rules) -> tuple[str, ...]:
    return tuple(pattern for pattern in patterns if rules.access(_name(pattern)) == "allow")


def _joined(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
