"""What weighs in a conversation, and for how long was it carried?

Whatever stands in the window is sent again with every call of the model: a result of 5,000 tokens that stays for 200
calls is a million tokens read. Figures only, of weights that are known already.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from ullage.clients import Conversation
from ullage.context import Category, Entry, pair
from ullage.messages import Part, Text, ToolCall, ToolResult

__all__ = ["Piece", "ToolBurden", "by_tool", "calls_carried", "pieces", "repeated"]

_LABEL = 48
"""Characters at most."""
_WORDS: Mapping[Category, str] = {
    "user": "user",
    "assistant": "answer",
    "images": "media",
    "thinking": "thinking",
    "summary": "summary",
    "system": "system",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A result, a call, or what else one message is spent on."""

    place: int
    """Of its turn."""
    category: Category
    tool: str | None
    """For calls and results."""
    label: str
    tokens: int
    calls: int
    """Of the model, that it was sent with."""
    standing: bool
    """Whether it is in the window at the end."""
    asked: str | None = None
    """For calls and results, what was asked for, to the letter."""

    @property
    def carried(self) -> int:
        """Tokens that were read for its sake."""
        return self.tokens * self.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBurden:
    name: str
    calls: int
    """Of the tool, since the conversation began."""
    tokens: int
    """Of its calls and results that are in the window now."""
    carried: int


def calls_carried(conversation: Conversation) -> list[int]:
    """For each turn, with how many calls of the model it was sent."""
    counts = [0] * len(conversation.turns)
    bounds = [0, *(mark.place for mark in conversation.compactions), len(conversation.turns)]
    places = [call.place for call in conversation.calls]
    for start, end in pairwise(bounds):
        # A call at the very place of a compaction came after it.
        asked = places[bisect_left(places, start) : bisect_left(places, end)]
        for turn in conversation.standing(asked[-1]) if asked else ():
            counts[turn] += len(asked) - (bisect_right(asked, turn) if turn >= start else 0)
    return counts


def pieces(conversation: Conversation, turns: Sequence[Entry], count: Callable[[str], int]) -> list[Piece]:
    """Of every turn; `count` weighs a plain text, to tell apart what shares one message."""
    carried, standing = calls_carried(conversation), frozenset(conversation.standing())
    asked = {
        id(one.result): (one.call.name, one.call.arguments)
        for one in pair([entry.message for entry in turns]).answered
        if one.call is not None
    }
    return [
        Piece(
            place=place,
            category=category,
            tool=tool,
            label=label,
            tokens=tokens,
            calls=carried[place],
            standing=place in standing,
            asked=said,
        )
        for place, entry in enumerate(turns)
        for category, tool, label, tokens, said in _parted(entry, asked, count)
    ]


_Told = tuple[Category, str | None, str, int, str | None]


def _parted(entry: Entry, asked: Mapping[int, tuple[str, str]], count: Callable[[str], int]) -> Iterator[_Told]:
    for category, tokens in entry.shares.items():
        if category not in ("tool_calls", "tool_results"):
            yield category, None, _words(category, entry.message.parts), tokens, None
            continue
        kind = ToolCall if category == "tool_calls" else ToolResult
        parts = [part for part in entry.message.parts if isinstance(part, kind)]
        weights = [count(_text(part)) for part in parts] if len(parts) > 1 else [1] * len(parts)
        whole = sum(weights) or 1
        for part, weight in zip(parts, weights, strict=True):
            name, arguments = _asked(part, asked)
            yield category, name, _label(name, arguments), round(tokens * weight / whole), arguments


def _asked(part: ToolCall | ToolResult, asked: Mapping[int, tuple[str, str]]) -> tuple[str, str]:
    if isinstance(part, ToolCall):
        return part.name, part.arguments
    return asked.get(id(part), (part.name or "unknown", ""))


def _text(part: Part) -> str:
    match part:
        case ToolCall():
            return part.arguments
        case ToolResult():
            return "\n".join(map(_text, part.parts))
        case Text():
            return part.text
        case _:
            return ""


def _label(name: str, arguments: str) -> str:
    """The tool and its most telling argument."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        given = arguments
    values = list(cast("dict[str, object]", given).values()) if isinstance(given, dict) else [cast("object", given)]
    said = next((" ".join(value.split()) for value in values if isinstance(value, str) and value.strip()), "")
    return _clipped(f"{name} {said}".strip())


def _words(category: Category, parts: Sequence[Part]) -> str:
    text = next((part.text for part in parts if isinstance(part, Text) and part.text.strip()), "")
    said = " ".join(text[:400].split()) if category in ("user", "assistant", "system") else ""
    return _clipped(f"{_WORDS.get(category, category)}: {said}" if said else _WORDS.get(category, category))


def _clipped(text: str) -> str:
    """The end of a path tells more than its beginning, and the beginning of a sentence more than its end."""
    if len(text) <= _LABEL:
        return text
    name, _, rest = text.partition(" ")
    if rest.startswith(("/", "~", ".")) and " " not in rest:
        return f"{name} …{rest[len(name) + 2 - _LABEL :]}"
    return text[: _LABEL - 1] + "…"


def by_tool(found: Sequence[Piece]) -> list[ToolBurden]:
    """The heaviest in the window first, then by what was carried."""
    names = dict.fromkeys(piece.tool for piece in found if piece.tool is not None)
    burdens = [_burden(name, [piece for piece in found if piece.tool == name]) for name in names]
    return sorted(burdens, key=lambda one: (-one.tokens, -one.carried, one.name))


def _burden(name: str, own: Sequence[Piece]) -> ToolBurden:
    return ToolBurden(
        name=name,
        calls=sum(piece.category == "tool_calls" for piece in own),
        tokens=sum(piece.tokens for piece in own if piece.standing),
        carried=sum(piece.carried for piece in own),
    )


def repeated(found: Sequence[Piece]) -> list[tuple[Piece, int, int]]:
    """Calls made several times whose results all stand in the window: the last of each, how many there are, and the
    tokens of the earlier ones; the heaviest first."""
    groups: dict[tuple[str | None, str | None], list[Piece]] = {}
    for piece in found:
        if piece.standing and piece.category == "tool_results" and piece.asked:
            groups.setdefault((piece.tool, piece.asked), []).append(piece)
    several = [(own[-1], len(own), sum(piece.tokens for piece in own[:-1])) for own in groups.values() if len(own) > 1]
    return sorted(several, key=lambda one: -one[2])
