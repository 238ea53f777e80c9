"""What has come of an answer so far?

The pieces of text, thinking and calls that a reader of any wire puts together.
"""

from dataclasses import dataclass, field

from ullage.messages import Message, Part, Text, Thinking, ToolCall
from ullage.models import Usage

from ..exchange import Completion, Event, Finish, TextDelta, ThinkingDelta
from ..failure import ProviderFailed

__all__ = ["Gathered", "UnfinishedCall", "truncated"]


@dataclass(slots=True)
class UnfinishedCall:
    name: str = ""
    id: str | None = None
    arguments: list[str] = field(default_factory=list[str])

    def whole(self) -> ToolCall:
        return ToolCall(name=self.name, arguments="".join(self.arguments) or "{}", id=self.id)


@dataclass(slots=True)
class Gathered:
    texts: list[str] = field(default_factory=list[str])
    thoughts: list[Thinking] = field(default_factory=list[Thinking])
    """Whole ones, each with its signature."""
    calls: dict[int, UnfinishedCall] = field(default_factory=dict[int, UnfinishedCall])
    """By their place in the answer."""
    _thought: list[str] = field(default_factory=list[str])

    def text(self, piece: str | None) -> tuple[Event, ...]:
        if not piece:
            return ()
        self.texts.append(piece)
        return (TextDelta(piece),)

    def thinking(self, piece: str | None) -> tuple[Event, ...]:
        if not piece:
            return ()
        self._thought.append(piece)
        return (ThinkingDelta(piece),)

    def thought_ends(self, signature: str | None) -> None:
        if self._thought or signature:
            self.thoughts.append(Thinking(text="".join(self._thought), signature=signature))
            self._thought.clear()

    def call(self, place: int) -> UnfinishedCall:
        return self.calls.setdefault(place, UnfinishedCall())

    def completion(
        self, finish: Finish, usage: Usage, *, model: str | None = None, reported_cost: str | None = None
    ) -> Completion:
        text = "".join(self.texts)
        calls = tuple(self.calls[place].whole() for place in sorted(self.calls))
        self.thought_ends(None)
        parts: tuple[Part, ...] = (*self.thoughts, *((Text(text),) if text else ()), *calls)
        return Completion(
            text=text,
            finish="tool_calls" if calls and finish in ("stop", "other") else finish,
            tool_calls=calls,
            message=Message(role="assistant", parts=parts),
            usage=usage,
            model=model,
            reported_cost=reported_cost,
        )


def truncated() -> ProviderFailed:
    return ProviderFailed("the stream ended before the answer did", kind="truncated")
