"""What is sent in the place of what a file has lost?

A line that cannot be read takes its message along. Where that was a call, its result is left without one; where it was
a result, its call is; and a provider refuses either. What is left is told as plain text, so that nothing more is lost,
and a result that is gone is stood in for by one that says so. The messages themselves are not changed, and nothing is
written anywhere.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json import dumps

from ullage.messages import (
    Format,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant_message,
    user_message,
    write_message,
)
from ullage.tool import Json, JsonObject

from .groups import is_instruction
from .pairing import Call, Pairing, pair
from .words import text_of

__all__ = ["Amended", "amended", "is_broken"]

_RESULT = "[The result of a call{named} that was lost:]"
_CALL = "[A call stood here whose result was lost: {call}]"
_NO_RESULT = "[The result was lost. The call may have been carried out: check before you call it again.]"
_THOUGHT = "[A thought stood here; what followed it was lost.]"
_BEGINNING = "[The beginning of this conversation was lost. Go on.]"
_LONGEST = 2_000
"""Characters that are shown of what no reader knows."""
_IDENTITY = {Format.OPENAI_CHAT: "tool_call_id", Format.OPENAI_RESPONSES: "call_id"}
_CUSTOM = "custom_tool_call"
_IN_TURNS = (Format.ANTHROPIC, Format.GEMINI)
"""Whose results are brought behind all that the assistant says at once, however many messages that is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amended:
    """What a provider takes instead, by the places of the messages."""

    retold: Mapping[int, object] = field(default_factory=dict[int, object])
    """The same as text."""
    before: Mapping[int, Sequence[object]] = field(default_factory=dict[int, Sequence[object]])
    """What stands in for what was lost before it."""

    def __bool__(self) -> bool:
        return bool(self.retold or self.before)


def is_broken(messages: Sequence[Message], gap: int) -> bool:
    """Whether something may have been lost from before the place `gap`: a call or a result stands alone, or the
    assistant speaks first. Calls behind it are only waiting."""
    pairing = pair(messages)
    alone = any(one.call is None for one in pairing.answered) or any(one.place < gap for one in pairing.unanswered)
    return alone or _opener(messages) is not None or any(_is_left(messages, place) for place in range(gap))


def amended(
    messages: Sequence[Message],
    natives: Sequence[JsonObject],
    format: Format,  # noqa: A002
    gaps: Collection[int],
) -> Amended:
    """`gaps` are the places of messages right before which some were lost. The natives are the same messages as they
    were given."""
    pairing = pair(messages, gaps)
    return _Work(messages=messages, natives=natives, format=format, pairing=pairing, gap=max(gaps, default=-1)).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    messages: Sequence[Message]
    natives: Sequence[JsonObject]
    format: Format
    pairing: Pairing
    gap: int
    """The last one."""

    def run(self) -> Amended:
        # Those behind the gap may still be answered.
        parted = [call for call in self.pairing.unanswered if call.place < self.gap]
        retold = dict((*self._results(), *self._thoughts(), *self._items(parted)))
        return Amended(retold=retold, before=self._stand_ins([call for call in parted if call.place not in retold]))

    def _results(self) -> Iterator[tuple[int, object]]:
        orphans = defaultdict[int, set[int]](set)
        for one in self.pairing.answered:
            if one.call is None:
                orphans[one.place].add(-1 if one.result is None else one.nth)
        for place, numbers in orphans.items():
            yield place, self._written(self._without_calls(self.messages[place], numbers))

    def _without_calls(self, message: Message, numbers: set[int]) -> Message:
        """Those results as text, behind those that have their calls; in the user's turn where none has."""
        nth, sound, told = 0, list[Part](), list[Part]()
        for part in message.parts:
            if not isinstance(part, ToolResult):
                told.append(part if -1 not in numbers else Text(f"{_RESULT.format(named='')}\n{_shown(part)}"))
                continue
            if nth in numbers:
                told += self._told(part)
            else:
                sound.append(part)
            nth += 1
        return Message(role=message.role if sound else "user", parts=(*sound, *told))

    def _told(self, result: ToolResult) -> Iterator[Part]:
        said = text_of(result, self.format)
        heading = _RESULT.format(named=f" of `{result.name}`" if result.name else "")
        yield Text(f"{heading}\n{said}" if said.strip() else heading)
        yield from (part for part in result.parts if not isinstance(part, Text))

    def _thoughts(self) -> Iterator[tuple[int, object]]:
        """Reasoning that stands alone (Responses) is only taken with what followed it."""
        for place in range(self.gap):
            if _is_left(self.messages, place):
                thoughts = (part.text for part in self.messages[place].parts if isinstance(part, Thinking))
                yield place, assistant_message(self.format, "\n".join(filter(str.strip, thoughts)) or _THOUGHT)

    def _items(self, calls: Sequence[Call]) -> Iterator[tuple[int, object]]:
        """Calls of kinds that no reader knows: nobody can say what their results look like."""
        for call in calls:
            if not any(isinstance(part, ToolCall) for part in self.messages[call.place].parts):
                shown = f"{call.name}({call.arguments})"[:_LONGEST]
                yield call.place, assistant_message(self.format, _CALL.format(call=shown))

    def _stand_ins(self, calls: Sequence[Call]) -> dict[int, list[object]]:
        made = defaultdict[int, list[object]](list)
        for call in calls:
            made[self._behind(call.place)] += self._no_result(call)
        first = _opener(self.messages)
        if first is not None and first <= self.gap:
            made[first].insert(0, user_message(self.format, _BEGINNING))
        return made

    def _behind(self, place: int) -> int:
        """Where the results of a message's calls are brought."""
        place += 1
        if self.format in _IN_TURNS:
            while place < len(self.messages) and self.messages[place].role == "assistant":
                place += 1
        return place

    def _no_result(self, call: Call) -> list[object]:
        name = None if self.format in _IDENTITY else call.name
        result = ToolResult(parts=(Text(_NO_RESULT),), call_id=call.id, name=name, is_error=True)
        made = self._written(Message(role="tool", parts=(result,)))
        if isinstance(made, Message):
            return [made]
        identity = {_IDENTITY[self.format]: call.id} if self.format in _IDENTITY and call.id else {}
        if self.natives[call.place].get("type") == _CUSTOM:
            identity["type"] = f"{_CUSTOM}_output"
        return [{**made, **identity}]

    def _written(self, message: Message) -> Message | dict[str, Json]:
        """As one message, which it is in every format: results with other things beside them come only where those
        have their place too."""
        return message if self.format is Format.ULLAGE else write_message(message, self.format)[0]


def _opener(messages: Sequence[Message]) -> int | None:
    """The place of the first turn, where it is the assistant's."""
    first = next((place for place, one in enumerate(messages) if not is_instruction(one)), None)
    return first if first is not None and messages[first].role == "assistant" else None


def _is_left(messages: Sequence[Message], place: int) -> bool:
    """Whether it is a thought alone, and nothing of the assistant's follows."""
    parts = messages[place].parts
    is_alone = any(isinstance(part, Thinking) for part in parts) and not any(
        isinstance(part, Text | ToolCall | ToolResult) for part in parts
    )
    return is_alone and place + 1 < len(messages) and messages[place + 1].role != "assistant"


def _shown(part: Part) -> str:
    value = getattr(part, "value", None)
    return dumps(value, ensure_ascii=False)[:_LONGEST]
