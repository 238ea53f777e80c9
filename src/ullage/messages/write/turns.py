"""Repairs the calls, results and turns of a history before it is written for a provider.

A history comes from anywhere: Google's calls may have no ids, some servers give one id twice, most results do not
say whose they are, and an id that one provider made another may not take.

Results belong to the user's turn and come first in it, and what the system says has its place outside.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count, dropwhile, groupby
from json import dumps, loads
from re import Pattern
from re import compile as pattern
from typing import NoReturn, cast
from zlib import crc32

from ullage.tool import Json

from ..parts import Media, Message, Part, Text, ToolCall, ToolResult, Unknown

__all__ = [
    "DETAILS",
    "Pairing",
    "Turn",
    "address",
    "arguments_of",
    "beside",
    "conversation",
    "fitting",
    "identity",
    "is_file",
    "media_type",
    "merged",
    "object_of",
    "ordered",
    "result_parts",
    "runs",
]

_ODD = pattern(r"[^a-zA-Z0-9_-]")
_MADE = 31
"""Characters that an id made here keeps of the one given: with the mark behind, no more than a chat takes."""


def arguments_of(call: ToolCall) -> dict[str, Json]:
    """As an object, for formats that carry them so; a text that is none is put into one."""
    value = object_of(call.arguments) if call.arguments else {}
    return {"arguments": call.arguments} if value is None else value


def object_of(text: str) -> dict[str, Json] | None:
    """The JSON object that a text is; None where it is none."""
    try:
        value = cast("Json", loads(text, parse_constant=_refuse))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse(name: str) -> NoReturn:
    """NaN and its like are no JSON."""
    raise ValueError(name)


def identity(part: ToolCall | ToolResult) -> str:
    """The id of a call; where it has none, one that its result will have too, if that knows its name."""
    given = part.id if isinstance(part, ToolCall) else part.call_id
    return given or f"call_{part.name or ''}"


def fitting(given: str, allowed: Pattern[str]) -> str:
    """An id that a provider takes: the one given where it may stay, else one made of it that any would take."""
    if allowed.fullmatch(given):
        return given
    mark = f"{crc32(given.encode('utf-8', 'surrogatepass')):08x}"
    return f"{_ODD.sub('_', given)[:_MADE]}_{mark}"


@dataclass(slots=True)
class Pairing:
    """Gives every call an id of its own, and every result the id of its call."""

    by_name: bool = False
    """Whether a result gets its call's name instead, and ids stay as they were."""
    _waiting: list[tuple[str | None, ToolCall]] = field(default_factory=list[tuple[str | None, ToolCall]])
    """Calls without their result, each with the id that it came with."""
    _used: set[str] = field(default_factory=set[str])
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def paired(self, messages: Iterable[Message]) -> Iterator[Message]:
        for message in messages:
            yield replace(message, parts=tuple(map(self._part, message.parts)))

    def _part(self, part: Part) -> Part:
        if isinstance(part, ToolCall):
            stays = self.by_name or (part.id and part.id not in self._used)
            known = part if stays else replace(part, id=self._fresh())
            self._used.add(known.id or "")
            self._waiting.append((part.id, known))
            return known
        return self._answered(part) if isinstance(part, ToolResult) else part

    def _fresh(self) -> str:
        return next(name for name in (f"call_{number}" for number in self._numbers) if name not in self._used)

    def _answered(self, result: ToolResult) -> ToolResult:
        found = next(self._candidates(result), None)
        if found is None:
            return result
        self._waiting.remove(found)
        return replace(result, name=found[1].name) if self.by_name else replace(result, call_id=found[1].id)

    def _candidates(self, result: ToolResult) -> Iterator[tuple[str | None, ToolCall]]:
        """By the id where the result has one; else the call of that name, else the one that waits longest."""
        if result.call_id:
            yield from (one for one in self._waiting if one[0] == result.call_id)
            return
        yield from (one for one in self._waiting if one[1].name == result.name)
        yield from self._waiting


DETAILS = frozenset({"low", "high", "auto", "original"})
"""How closely OpenAI's models look at an image."""
_TYPES = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "document": "application/pdf"}
"""Where nobody said."""


def ordered(message: Message) -> tuple[Part, ...]:
    """The parts of a message; before what a user says come the results."""
    if message.role == "assistant":
        return message.parts
    return tuple(sorted(message.parts, key=lambda part: not isinstance(part, ToolResult)))


def runs(message: Message) -> Iterator[tuple[tuple[ToolResult, ...], tuple[Part, ...]]]:
    """The parts of a message in runs: of results, or else of what is none."""
    for _, run in groupby(ordered(message), lambda part: isinstance(part, ToolResult)):
        parts = tuple(run)
        results = tuple(part for part in parts if isinstance(part, ToolResult))
        yield results, () if results else parts


def result_parts(parts: Iterable[Part]) -> Iterator[Text | Media]:
    """What the parts of a result say; what is neither text nor medium, as JSON, so that it is not lost on the model."""
    for part in parts:
        if isinstance(part, Text | Media):
            yield part
        elif isinstance(part, Unknown) and (not isinstance(part.value, dict) or "type" in part.value):
            yield Text(dumps(part.value, ensure_ascii=False, separators=(",", ":")))


def beside(parts: tuple[Part, ...], place: int, key: str) -> Json:
    """What stood beside a part on the wire under a key, for a reader put that behind it."""
    for after in parts[place + 1 :]:
        if not isinstance(after, Unknown):
            break
        if isinstance(after.value, dict) and after.value.keys() == {key}:
            return after.value[key]
    return None


def media_type(media: Media) -> str:
    return media.media_type or _TYPES[media.kind]


def is_file(media: Media) -> bool:
    """Whether it is known by the id of a file that the provider keeps."""
    return media.data is None and media.url is not None and "://" not in media.url


def address(media: Media) -> str | None:
    """As a data URL where the bytes are here, else as an address of the web."""
    if media.data is not None:
        return f"data:{media_type(media)};base64,{media.data}"
    return media.url if media.url is not None and media.url.startswith(("http://", "https://")) else None


Turn = tuple[str, list[dict[str, Json]]]
"""A role, and what is said in it."""


def conversation(messages: Iterable[Message]) -> Iterator[Message]:
    """Without what the system says at the beginning; what it says later, not every model takes but from the user."""
    for message in dropwhile(_is_system, messages):
        yield replace(message, role="user") if _is_system(message) else message


def merged(turns: Iterable[Turn], is_result: Callable[[dict[str, Json]], bool]) -> list[Turn]:
    """With neighbours of one role as one turn; those in which nothing is said are left out."""
    made: list[Turn] = []
    for role, parts in turns:
        if parts and made and made[-1][0] == role:
            made[-1][1].extend(parts)
        elif parts:
            made.append((role, list(parts)))
    return [(role, sorted(parts, key=lambda part: not is_result(part))) for role, parts in made]


def _is_system(message: Message) -> bool:
    return message.role in ("system", "developer")
