"""Which passages is a message made of?

Every text in it, part by part and cut at its lines, each passage with its place: which message, which tool and call,
which lines. A passage is long enough to be understood and short enough that several fit into an answer. Sizes are in
characters, since a passage is cut once and weighed for whoever asks.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from ullage.messages import Message, Part, Text, Thinking, ToolCall, ToolResult, Unknown
from ullage.tool import Json

__all__ = ["LetGo", "Passage", "calls_of", "passages_of"]

_MOST = 1_500
"""Characters of a passage: some 400 tokens."""
_OVERLAP = 100
"""Characters that two parts of one long line share, so that what stands at the cut is whole in one of them."""
_LONG_CALL = 2_000
"""Characters of a call by which its result can be found."""
_SEAM = re.compile(r"[\s,;(){}\[\]<>\"'&|]")


@dataclass(frozen=True, slots=True, kw_only=True)
class LetGo:
    """A message that is not before the model any more."""

    id: str
    number: int
    """In the conversation, from 1."""
    message: Message
    generation: int
    """The compaction that let it go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Some lines of a message that was let go."""

    id: str
    message: int
    """Its number in the conversation, from 1."""
    generation: int
    """The compaction that let it go."""
    speaker: str
    """The role of the message, or the name of the tool."""
    about: str
    """The call that it is the result of; empty for anything else."""
    part: int
    """Of the message, from 0."""
    first: int
    """Lines are counted from 1, in the part."""
    last: int
    of: int
    """Lines that the part has."""
    piece: int = 0
    """Of a line that is too long for one passage, from 1; 0 where no line is cut."""
    text: str


def calls_of(messages: Iterable[Message]) -> dict[str, ToolCall]:
    """The calls by their ids, to know what a result is the result of."""
    parts = (part for message in messages for part in message.parts)
    return {part.id: part for part in parts if isinstance(part, ToolCall) and part.id is not None}


def passages_of(gone: LetGo, calls: Mapping[str, ToolCall]) -> Iterator[Passage]:
    for number, part in enumerate(gone.message.parts):
        speaker, about, text = _said(gone.message, part, calls)
        lines = text.removesuffix("\n").split("\n")
        for place, (first, last, piece, cut) in enumerate(_cut(lines)):
            yield Passage(
                id=f"{gone.id}:{number}:{place}",
                message=gone.number,
                generation=gone.generation,
                speaker=speaker,
                about=about,
                part=number,
                first=first,
                last=last,
                of=len(lines),
                piece=piece,
                text=cut,
            )


def _said(message: Message, part: Part, calls: Mapping[str, ToolCall]) -> tuple[str, str, str]:
    """Who says it, about what, and what."""
    match part:
        case ToolResult():
            call = calls.get(part.call_id or "")
            name = part.name or (call.name if call else "tool")
            return name, _written(call)[:_LONG_CALL] if call else name, "\n".join(map(_text, part.parts))
        case _:
            return message.role, "", _text(part)


def _text(part: Part) -> str:
    match part:
        case Text() | Thinking():
            return part.text
        case ToolCall():
            return "\n".join([part.name, *(f"{name}: {_plain(value)}" for name, value in _arguments(part).items())])
        case ToolResult():
            return "\n".join(map(_text, part.parts))
        case Unknown():
            return _plain(part.value)
        case _:
            return f"[{part.kind}]"


def _written(call: ToolCall) -> str:
    """As people write calls: `read(path="a.py")`."""
    said = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in _arguments(call).items())
    return f"{call.name}({', '.join(said)})"


def _arguments(call: ToolCall) -> Mapping[str, Json]:
    try:
        read: Json = json.loads(call.arguments)
    except (ValueError, RecursionError):
        read = None
    if isinstance(read, dict):
        return cast("dict[str, Json]", read)
    return {"arguments": call.arguments} if call.arguments.strip() else {}


def _plain(value: Json) -> str:
    """A text as it is, so that its lines are lines and its quotes are quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(lines: list[str]) -> Iterator[tuple[int, int, int, str]]:
    """First line, last line, which piece of a long line, and the text."""
    start, size = 0, 0
    for at, line in enumerate(lines):
        if at > start and size + len(line) > _MOST:
            yield from _stretch(lines, start, at)
            start, size = at, 0
        size += len(line) + 1
    yield from _stretch(lines, start, len(lines))


def _stretch(lines: list[str], start: int, end: int) -> Iterator[tuple[int, int, int, str]]:
    text = "\n".join(lines[start:end])
    if len(text) <= _MOST:
        if text.strip():
            yield start + 1, end, 0, text
        return
    for number, piece in enumerate(_pieces(text), start=1):
        yield start + 1, end, number, piece


def _pieces(line: str) -> Iterator[str]:
    start = 0
    while start < len(line):
        end = start + _MOST
        if end < len(line):
            seams = [found.end() for found in _SEAM.finditer(line, end - 3 * _OVERLAP, end)]
            end = seams[-1] if seams else end
        yield line[start:end]
        start = end if end >= len(line) else end - _OVERLAP
