"""How does a program read what weighs in a session?

The same figures as the report's, under names in JSON's spelling.
"""

from ullage.tool import Json

from .burden import Piece
from .figures import figures_of
from .sessions import Level, Weighed

__all__ = ["listed_json", "report_json"]

_PIECES = 50
"""At most, of those that were carried longest."""


def listed_json(weighed: Weighed) -> dict[str, Json]:
    one = weighed.conversation
    return {
        "file": weighed.file,
        "program": one.program,
        "session": one.id,
        "title": one.title,
        "model": one.model,
        "weighedAs": weighed.model,
        "format": one.format.value,
        "messages": len(weighed.turns),
        "inWindow": len(weighed.entries),
        "calls": len(weighed.levels),
        "compactions": len(one.compactions),
        "usage": weighed.usage.to_json(),
        "unread": dict(one.unread),
    }


def report_json(weighed: Weighed) -> dict[str, Json]:
    figures = figures_of(weighed)
    return {
        **listed_json(weighed),
        "toolsInFile": weighed.is_whole,
        "waterline": [_level(level) for level in weighed.levels],
        "compactedBefore": [mark + 1 for mark in figures.marks],
        "tokensRead": figures.read,
        "tokensCached": figures.cached,
        "dollars": None if figures.dollars is None else f"{figures.dollars:f}",
        "byTool": [
            {"tool": one.name, "calls": one.calls, "tokens": one.tokens, "carried": one.carried}
            for one in figures.burdens
        ],
        "carriedLongest": [_piece(piece) for piece in figures.costliest[:_PIECES]],
        "cacheLosses": [
            {
                "call": loss.call,
                "tokens": loss.tokens,
                "reason": loss.reason,
                "pauseSeconds": None if loss.pause is None else round(loss.pause.total_seconds(), 3),
            }
            for loss in figures.lost
        ],
        "advice": [{"finding": one.finding, "remedy": one.remedy} for one in figures.advice],
    }


def _level(level: Level) -> dict[str, Json]:
    at = level.call.at
    return {"tokens": level.tokens, "reported": level.reported, "at": None if at is None else at.isoformat()}


def _piece(piece: Piece) -> dict[str, Json]:
    return {
        "message": piece.place + 1,
        "category": piece.category,
        "tool": piece.tool,
        "label": piece.label,
        "tokens": piece.tokens,
        "calls": piece.calls,
        "carried": piece.carried,
        "inWindow": piece.standing,
    }
