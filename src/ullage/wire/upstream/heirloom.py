"""What of our environment does a server inherit?

All but what is Ullage's own: its tokens and its database's address, and whatever else the settings name. A server that
is itself an Ullage is told how many stand above it, so that one that starts itself comes to an end. Pure.
"""

from collections.abc import Mapping, Set

__all__ = ["DEEPEST", "depth", "inherited"]

DEEPEST = 4
"""Gateways above one another; nobody means more."""
_DEPTH = "ULLAGE_DEPTH"
_OURS = frozenset({"ULLAGE_TOKENS", "ULLAGE_STORE"})


def depth(environment: Mapping[str, str]) -> int:
    """How many gateways stand above the one that was given this environment."""
    told = environment.get(_DEPTH, "").strip()
    return int(told) if told.isascii() and told.isdecimal() and len(told) < 10 else 0


def inherited(environment: Mapping[str, str], withheld: Set[str] = frozenset()) -> dict[str, str]:
    """The environment of a server that is started from this one."""
    kept = {name: value for name, value in environment.items() if name not in _OURS and name not in withheld}
    return {**kept, _DEPTH: str(depth(environment) + 1)}
