"""How is a history shown to one who is to put it into fewer words?

Piece by piece: what was said, what was called with which arguments, and what came back. Thinking is left out, media are
named, and of long results and arguments the middle is left out. What a piece is worth says how much of it is shown
where not all can be: the user's words before the assistant's, those before calls and results, and the newest before the
oldest. Nothing is counted here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from json import dumps

from ullage.messages import Media, Message, Part, Text, Thinking, ToolCall, ToolResult, Unknown

from .clipping import clipped, line_of
from .pairing import pair

__all__ = ["Piece", "pieces"]

_NAME = 80
"""Characters that are shown of a tool's name, which anyone may have made up."""
_LONGEST = 4_000
"""Characters that are shown of one result or of the arguments of one call. No cache holds what a summariser is shown:
it is the dearest part of a compaction. What a result says to the letter, the identifiers beside the summary have."""
_USER, _ASSISTANT, _TOOL = 4.0, 2.0, 1.0
_NEWEST = 3.0
"""How much more the newest is worth than the oldest, on top of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    who: str
    """Whose it is, in a few words on one line."""
    text: str
    worth: float


def pieces(messages: Sequence[Message]) -> list[Piece]:
    names = _names(messages)
    return [
        Piece(who=who, text=text, worth=worth * (1 + _NEWEST * (place + 1) / len(messages)))
        for place, message in enumerate(messages)
        for who, text, worth in _told(message, names.get(place, {}))
        if text.strip()
    ]


def _names(messages: Sequence[Message]) -> Mapping[int, dict[int, str]]:
    """The tools that gave the results of each message, by place and number."""
    found: dict[int, dict[int, str]] = {}
    for one in pair(messages).answered:
        if one.call is not None and one.result is not None:
            found.setdefault(one.place, {})[one.nth] = one.call.name
    return found


def _told(message: Message, names: Mapping[int, str]) -> Iterator[tuple[str, str, float]]:
    worth = _ASSISTANT if message.role == "assistant" else _USER
    nth = 0
    for part in message.parts:
        match part:
            case ToolCall():
                yield f"assistant calls {line_of(part.name, _NAME)}", clipped(part.arguments, _LONGEST), _TOOL
            case ToolResult():
                name = line_of(part.name or names.get(nth, "a tool"), _NAME)
                told = "an error of" if part.is_error else "result of"
                said = "\n".join(filter(None, map(_said, part.parts)))
                yield f"{told} {name}", clipped(said, _LONGEST) or "(nothing)", _TOOL
                nth += 1
            case _:
                yield message.role, _said(part), worth


def _said(part: Part) -> str:
    match part:
        case Text(text):
            return text
        case Media():
            where = "" if part.url is None else f" at {line_of(part.url, _NAME)}"
            return f"({part.kind}{f' of type {part.media_type}' if part.media_type else ''}{where}, not shown)"
        case Thinking():
            return ""
        case Unknown(value):
            return _json(value)
        case ToolCall() | ToolResult():
            return _json(part.name)


def _json(value: object) -> str:
    try:
        return dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deeply to be shown)"
