"""Which call does a result answer, and how are both named in a format that is strict about it?

A history comes from anywhere: Google's calls may have no ids, some servers give one id twice, most results do not say
whose they are, and an id that one provider made another may not take.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from json import loads
from re import Pattern
from re import compile as pattern
from typing import NoReturn, cast
from zlib import crc32

from ullage.tool import Json

from ..parts import Message, Part, ToolCall, ToolResult

__all__ = ["Pairing", "arguments_of", "fitting", "identity", "object_of"]

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
            return self._called(part)
        return self._answered(part) if isinstance(part, ToolResult) else part

    def _called(self, call: ToolCall) -> ToolCall:
        stays = self.by_name or (call.id and call.id not in self._used)
        known = call if stays else replace(call, id=self._fresh())
        self._used.add(known.id or "")
        self._waiting.append((call.id, known))
        return known

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
