"""Do these neutral messages make a history that every provider could be given?

The rules that all of them share: a call is answered before the user speaks again, and nothing answers what was not
called.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from .parts import Message, Thinking, ToolCall, ToolResult

__all__ = ["altered", "refused", "speaker"]


def speaker(message: Message) -> str | None:
    """The system may say something among the turns, which parts none."""
    return None if message.role in ("system", "developer") else message.role


def refused(messages: Sequence[Message]) -> Iterator[str]:
    """In the order of the parts: what a provider ran itself is answered in the very message that calls it."""
    waiting = Counter[str]()
    for message in (message for message in messages if speaker(message) is not None):
        if message.role == "user" and not any(isinstance(part, ToolResult) for part in message.parts):
            yield from (f"{call} has no result before the user speaks" for call in +waiting)
            waiting.clear()
        for part in message.parts:
            if isinstance(part, ToolCall):
                waiting[_named(part.id)] += 1
            elif isinstance(part, ToolResult) and waiting[_named(part.call_id)]:
                waiting[_named(part.call_id)] -= 1
            elif isinstance(part, ToolResult):
                yield f"the result of {_named(part.call_id)} has no call before it"
    yield from (f"{call} has no result" for call in +waiting)


def altered(messages: Sequence[Message], original: Sequence[Message]) -> Iterator[str]:
    sealed = {thought for message in original for thought in _thoughts(message)}
    if any(thought not in sealed for message in messages for thought in _thoughts(message)):
        yield "a stretch of thinking is not what it was"


def _named(identity: str | None) -> str:
    """Where a provider gives no ids, calls and results are only counted."""
    return "a call without an id" if identity is None else f"the call `{identity}`"


def _thoughts(message: Message) -> list[Thinking]:
    return [part for part in message.parts if isinstance(part, Thinking)]
