"""How far the count of a whole request was seen to be off, by host, maker and kind.

A rule weighs a request part by part, and each part has a band of its own. What a sum of such bands is worth was
measured: `fitted` holds, for each class of recorded requests, by how much the band of the sum must be stretched or may
be drawn in so that nineteen of twenty lie in it, and whether counts that a rule holds for exact were. A class of which
nothing was recorded is judged by its nearest kin: the same maker on any host, then any maker.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from ullage.models import Match

from .count import Count, Method

if TYPE_CHECKING:
    from ullage.messages import Request

__all__ = ["FLOOR", "Reach", "keys_of", "kind_of", "reach_of", "stretch"]

FLOOR = 2.0
"""Tokens that a side of a band gains when it is doubled, so that a band of none can be stretched too."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What becomes of the band of a sum."""

    below: float
    """Times the distance from the low end to the number."""
    above: float
    exact: bool = False
    """Whether a sum that is exact by its rule stays so."""

    def apply(self, count: Count) -> Count:
        if count.method is Method.EXACT and self.exact:
            return count
        low = count.tokens - stretch(count.tokens - count.low, self.below)
        high = count.tokens + stretch(count.high - count.tokens, self.above)
        method = Method.CALIBRATED if count.method is Method.EXACT else count.method
        return Count(tokens=count.tokens, method=method, low=max(0, int(low)), high=ceil(high))


def stretch(side: float, times: float) -> float:
    """One side of a band drawn in or stretched; in stretching, a narrow one gains more than its share."""
    return side * times + FLOOR * max(0.0, times - 1)


def kind_of(request: "Request") -> str:
    """`plain` for text alone, `tools` with definitions, calls or results, `other` with anything that is neither."""
    from ullage.messages import Media, Thinking, ToolCall, ToolResult

    parts = [part for message in (*request.system, *request.messages) for part in message.parts]
    parts += [inner for part in parts if isinstance(part, ToolResult) for inner in part.parts]
    hosted = any(tool.hosted is not None for tool in request.tools)
    asked = request.output_schema
    shaped = asked is not None and not (isinstance(asked, dict) and asked.get("type") == "text")
    if hosted or shaped or any(isinstance(part, Media | Thinking) for part in parts):
        return "other"
    return "tools" if request.tools or any(isinstance(part, ToolCall | ToolResult) for part in parts) else "plain"


def keys_of(host: str, maker: str, kind: str, method: Method) -> Iterator[str]:
    """The classes that a request belongs to, the narrowest first."""
    ending = f"{kind} {method}"
    return iter((f"{host} {maker} {ending}", f"{host} * {ending}", f"* {maker} {ending}", f"* * {ending}"))


def reach_of(request: "Request", match: Match, method: Method, reaches: Mapping[str, Reach]) -> Reach | None:
    """The reach of the narrowest class that was measured; None where none was."""
    host = match.host or match.card.provider
    keys = keys_of(host, match.card.provider, kind_of(request), method)
    return next((reaches[key] for key in keys if key in reaches), None)
