"""How is the result of this server's tool to be handled?

What the user set, looked up by where a reply really came from. Nothing is counted, cut or kept here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TypeVar

from ullage.tool import Origin

__all__ = ["Handling", "ResultRules", "ServerResults"]

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handling:
    budget: int | None
    """Tokens that a reply may have; None for as many as it likes."""
    encode: bool
    """Whether JSON tables are written as the cheapest lossless text."""

    def limited(self, most: int | None) -> "Handling":
        """The same with at most so many tokens; None for no further limit."""
        return self if most is None else replace(self, budget=min(self.budget or most, most))

    @property
    def is_whole(self) -> bool:
        """Whether it is passed on as it is, so that its outputSchema can be promised."""
        return self.budget is None and not self.encode


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerResults:
    """What differs for one server; tools by their own names or patterns such as `list_*`, the first that fits."""

    budget: int | None = None
    """Tokens; None for what holds for all servers, 0 for no limit."""
    budgets: Mapping[str, int] = field(default_factory=dict[str, int])
    """By tool, instead of `budget`."""
    encode: bool | None = None
    """Whether JSON tables are written as cheaper text; None for what holds for all servers."""
    whole: tuple[str, ...] = ()
    """Tools whose results are neither cut nor written otherwise."""
    cache: Mapping[str, float] = field(default_factory=dict[str, float])
    """By tool, seconds in which the same call is answered from memory."""


_NOTHING = ServerResults()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRules:
    budget: int = 10_000
    """Tokens of any result where nothing else is said; 0 for no limit."""
    encode: bool = True
    servers: Mapping[str, ServerResults] = field(default_factory=dict[str, ServerResults])

    def handling(self, origin: Origin, asked: int | None = None) -> Handling:
        """`asked` is the caller's own budget for this call, which may be smaller or larger than what is set."""
        server = self.servers.get(origin.server, _NOTHING)
        if any(fnmatchcase(origin.tool, pattern) for pattern in server.whole):
            return Handling(budget=asked or None, encode=False)
        set_here = _first(origin.tool, server.budgets)
        budget = next(one for one in (asked, set_here, server.budget, self.budget) if one is not None)
        return Handling(budget=budget or None, encode=self.encode if server.encode is None else server.encode)

    def cached_for(self, origin: Origin) -> float:
        """Seconds; 0 for not at all."""
        return _first(origin.tool, self.servers.get(origin.server, _NOTHING).cache) or 0.0


def _first(tool: str, by_pattern: Mapping[str, Value]) -> Value | None:
    return next((value for pattern, value in by_pattern.items() if fnmatchcase(tool, pattern)), None)
