"""What goes to a model, and what comes back?

A request in neutral parts with the few settings every provider has, and its answer as it streams in. Which wire it is
written on, each file of `providers` knows; who is asked, and again, `route` and `run`.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from ullage.messages import Message, ToolCall, ToolDefinition
from ullage.models import Usage
from ullage.tool import Json, JsonObject

__all__ = ["Completion", "Event", "Finish", "Outgoing", "Reader", "TextDelta", "ThinkingDelta", "Wire", "Written"]

Finish = Literal["stop", "length", "tool_calls", "refusal", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """One request to one model."""

    model: str
    """As the provider calls it."""
    messages: tuple[Message, ...]
    """System messages first, where there are any."""
    max_output_tokens: int | None = None
    temperature: float | None = None
    """None where the model refuses one, or nobody set it."""
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: Json = None
    output_schema: JsonObject | None = None
    """JSON Schema that the answer must fit."""
    thinks: bool = False
    """Whether the model is known to think before it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A request as it goes over the wire, less the address and the key."""

    path: str
    """Behind the provider's base address."""
    headers: JsonObject
    body: JsonObject


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    text: str


Event = TextDelta | ThinkingDelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A whole answer: its stream came to the end that its wire promises."""

    text: str
    finish: Finish
    usage: Usage
    """None in it is what the provider did not report."""
    tool_calls: tuple[ToolCall, ...] = ()
    message: Message
    """To be carried back in the next request: text, thinking with its signature, calls."""
    model: str | None = None
    """What the provider says answered."""
    reported_cost: str | None = None
    """In dollars, where the provider bills and says so (OpenRouter)."""


class Reader(Protocol):
    """Reads one streamed answer, event by event. Raises `ProviderFailed` for what is malformed or an error in band."""

    @property
    def is_whole(self) -> bool:
        """Whether the answer is complete, so that `finish` gives it; its usage may still be to come."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether the wire's end marker has come: nothing after it belongs to the answer."""
        ...

    def feed(self, event: str | None, data: str) -> tuple[Event, ...]:
        """One server-sent event: its name where it has one, and its data. A body that was not streamed is one event."""
        ...

    def finish(self) -> Completion:
        """Called when the stream has ended; raises `ProviderFailed` of kind `truncated` where its end did not come."""
        ...

    def so_far(self) -> Usage:
        """What is known of the use, also of an answer that broke off."""
        ...


class Wire(Protocol):
    """One way of speaking to a provider."""

    def write(self, outgoing: Outgoing) -> Written: ...

    def reader(self) -> Reader: ...

    def authorize(self, key: str) -> dict[str, str]:
        """The headers that carry the key."""
        ...
