"""Does this log message reach the client?

By the levels of RFC 5424: a client of the earlier era sets one for its session, a later one names one in each request
and is sent nothing otherwise.
"""

from collections.abc import Iterable
from typing import Final

from ullage.tool import JsonObject

__all__ = ["LEVELS", "LEVEL_KEY", "is_heard", "most_talkative"]

LEVEL_KEY = "io.modelcontextprotocol/logLevel"
LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_RANK: Final = {level: rank for rank, level in enumerate(LEVELS)}


def is_heard(params: JsonObject, threshold: str | None) -> bool:
    """Whether a `notifications/message` is as grave as what was asked for; a level nobody knows is let through."""
    if threshold is None:
        return False
    level = params.get("level")
    rank = _RANK.get(level) if isinstance(level, str) else None
    return rank is None or rank >= _RANK.get(threshold, 0)


def most_talkative(levels: Iterable[str]) -> str:
    """The level that lets through what any of these would."""
    return min(levels, key=lambda level: _RANK.get(level, 0))
