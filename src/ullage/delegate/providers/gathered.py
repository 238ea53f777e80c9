"""What has come of an answer so far?

The pieces of text, thinking and calls that a reader of any wire puts together, in the order in which they came: a
provider takes its own thoughts back only where they stood.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ullage.messages import Message, Part, SealedAs, Text, Thinking, ToolCall
from ullage.models import Usage

from ..exchange import Completion, Event, Finish, TextDelta, ThinkingDelta
from ..failure import ProviderFailed

__all__ = ["Gathered", "UnfinishedCall", "broken_off", "truncated"]


@dataclass(slots=True)
class UnfinishedCall:
    name: str = ""
    id: str | None = None
    arguments: list[str] = field(default_factory=list[str])

    def whole(self) -> ToolCall:
        return ToolCall(name=self.name, arguments="".join(self.arguments) or "{}", id=self.id)


@dataclass(slots=True)
class Gathered:
    calls: dict[int, UnfinishedCall] = field(default_factory=dict[int, UnfinishedCall])
    """By whatever number the wire gives them."""
    _said: list[list[str] | Thinking | UnfinishedCall] = field(
        default_factory=list["list[str] | Thinking | UnfinishedCall"]
    )
    """Stretches of text, whole thoughts and calls, as they came."""
    _thought: list[str] = field(default_factory=list[str])

    @property
    def text_so_far(self) -> str:
        return "".join(piece for said in self._said if isinstance(said, list) for piece in said)

    def text(self, piece: str | None) -> tuple[Event, ...]:
        if not piece:
            return ()
        self.thought_ends()
        last = self._said[-1] if self._said else None
        if isinstance(last, list):
            last.append(piece)
        else:
            self._said.append([piece])
        return (TextDelta(piece),)

    def thinking(self, piece: str | None) -> tuple[Event, ...]:
        if not piece:
            return ()
        self._thought.append(piece)
        return (ThinkingDelta(piece),)

    def thought_ends(self, signature: str | None = None, sealed_as: SealedAs | None = None) -> None:
        """Also for a signature without a thought."""
        if self._thought or signature:
            kind = sealed_as if signature else None
            self._said.append(Thinking(text="".join(self._thought), signature=signature, sealed_as=kind))
            self._thought.clear()

    def call(self, number: int) -> UnfinishedCall:
        if number not in self.calls:
            self.thought_ends()
            self.calls[number] = UnfinishedCall()
            self._said.append(self.calls[number])
        return self.calls[number]

    def completion(
        self, finish: Finish, usage: Usage, *, model: str | None = None, reported_cost: str | None = None
    ) -> Completion:
        self.thought_ends()
        parts = tuple(self._parts())
        calls = tuple(part for part in parts if isinstance(part, ToolCall))
        return Completion(
            text=self.text_so_far,
            finish="tool_calls" if calls and finish in ("stop", "other") else finish,
            tool_calls=calls,
            message=Message(role="assistant", parts=parts),
            usage=usage,
            model=model,
            reported_cost=reported_cost,
        )

    def _parts(self) -> Iterator[Part]:
        for said in self._said:
            match said:
                case UnfinishedCall():
                    yield said.whole()
                case Thinking():
                    yield said
                case _:
                    yield Text("".join(said))


def truncated() -> ProviderFailed:
    return ProviderFailed("the stream ended before the answer did", kind="truncated")


def broken_off(reason: str) -> ProviderFailed:
    """Where the provider itself says that the answer is not whole, though the stream is."""
    return ProviderFailed(f"broke off: `{reason[:40]}`", kind="truncated")
