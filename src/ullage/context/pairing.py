"""Which result answers which call?

By the call's id where there is one; where there is none (Gemini, older clients), by name and order among the calls of
the turn before. Histories that are broken are read as well as they can be: a result may have no call, a call no result,
and an id may come again in a later turn.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from json import dumps, loads
from typing import cast

from ullage.messages import Message, ToolCall, ToolResult, Unknown
from ullage.tool import Json

__all__ = ["Answered", "Call", "Pairing", "pair"]

_ID_OF_CALL = {"mcp_approval_request": "id"}
_ID_OF_RESULT = {"mcp_approval_response": "approval_request_id"}
"""Items of Responses that belong together by another key than `call_id`."""
_ASKED = ("action", "operation", "arguments")
"""Where such an item says what it asks for."""
_PICTURED = "computer_call"
"""Its result is a picture and can be nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Call:
    """One of a history, and no other's equal: what it asks for may have been asked before."""

    place: int
    """Of its message."""
    name: str
    arguments: str
    id: str | None = None
    takes_text: bool = True
    """Whether its result may be a plain text."""

    @property
    def asked(self) -> Json:
        """The arguments, read; None where they are no JSON."""
        try:
            return cast("Json", loads(self.arguments))
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    place: int
    """Of the result's message."""
    call: Call | None
    """None where nothing before it asked for it."""
    result: ToolResult | None = None
    """None where it is of a kind that no reader knows."""
    nth: int = 0
    """Among the results of its message."""
    as_text: bool = False
    """Whether the message is a text in the user's role that brings output."""


@dataclass(frozen=True, slots=True)
class Pairing:
    answered: tuple[Answered, ...]
    """Every result, in order."""
    unanswered: tuple[Call, ...]
    """Every call without one, in order."""


def pair(messages: Sequence[Message], apart: Collection[int] = ()) -> Pairing:
    """`apart` are places before which something was lost: what the assistant says there is another turn."""
    work, before = _Work(), None
    for place, message in enumerate(messages):
        if message.role == "assistant" and (before != "assistant" or place in apart):
            work.loose.clear()
        before = message.role
        work.read(place, message)
    return Pairing(tuple(work.answered), tuple(work.unanswered))


@dataclass(slots=True)
class _Work:
    waiting: defaultdict[str, list[Call]] = field(default_factory=lambda: defaultdict[str, list[Call]](list))
    """By id; an id that comes again is answered from the latest call back."""
    loose: list[Call] = field(default_factory=list[Call])
    """Of the latest turn, those that may be answered without an id."""
    answered: list[Answered] = field(default_factory=list[Answered])
    unanswered: dict[Call, None] = field(default_factory=dict[Call, None])

    def read(self, place: int, message: Message) -> None:
        nth = 0
        for part in message.parts:
            match part:
                case ToolResult():
                    call = self._answer(part.call_id, part.name)
                    self.answered.append(Answered(place=place, call=call, result=part, nth=nth))
                    nth += 1
                case ToolCall():
                    self._ask(Call(place=place, name=part.name, arguments=part.arguments, id=part.id))
                case Unknown():
                    self._read_item(place, part.value)
                case _:
                    pass

    def _read_item(self, place: int, item: Json) -> None:
        """An item of Responses that no reader knows."""
        kind = item.get("type") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(kind, str):
            return
        answers = item.get("call_id" if kind.endswith("_output") else _ID_OF_RESULT.get(kind, ""))
        asks = item.get(_ID_OF_CALL.get(kind, "call_id"))
        if isinstance(answers, str):
            self.answered.append(Answered(place=place, call=self._answer(answers, None)))
        elif isinstance(asks, str):
            asked = dumps({key: value for key, value in item.items() if key in _ASKED})
            name, takes_text = kind.removesuffix("_call"), kind != _PICTURED
            self._ask(Call(place=place, name=name, arguments=asked, id=asks, takes_text=takes_text))

    def _ask(self, call: Call) -> None:
        self.unanswered[call] = None
        self.loose.append(call)
        if call.id is not None:
            self.waiting[call.id].append(call)

    def _answer(self, identity: str | None, name: str | None) -> Call | None:
        named = self.waiting.get(identity, []) if identity is not None else []
        call = named[-1] if named else self._in_order(identity, name)
        if call is None:
            return None
        del self.unanswered[call]
        for pending in (self.loose, self.waiting.get(call.id or "", [])):
            if call in pending:
                pending.remove(call)
        return call

    def _in_order(self, identity: str | None, name: str | None) -> Call | None:
        """Where either side has no id: the first of that name, or the first of all."""
        able = (call for call in self.loose if identity is None or call.id is None)
        first = next(able, None)
        if first is None or first.name == name:
            return first
        return next((call for call in able if call.name == name), first)
