"""The neutral request to a model, its streamed answer, and the errors of providers.

A request in neutral parts with the few settings every provider has, and its answer as it streams in. Which wire it
is written on, each file of `providers` knows; who is asked, and again, `route` and `run`.

The kinds of failure of one attempt, and what is known of each. What to do about a failure, `retry` decides.

A provider as configured, with its key and its time-outs.

To the ledger, to the log, to whoever watches the money. Never the prompt, the answer or a key.

Which JSON Schemas providers hold a model to.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Literal, Protocol

from ullage.errors import Unavailable
from ullage.messages import Message, ToolCall, ToolDefinition
from ullage.models import Cost, Usage
from ullage.tool import Caller, Json, JsonObject

from .router import Candidate, Route

__all__ = [
    "Attempt",
    "Completion",
    "Event",
    "FailureKind",
    "Finish",
    "Happening",
    "Observer",
    "Outcome",
    "Outgoing",
    "Provider",
    "ProviderFailed",
    "Reader",
    "TextDelta",
    "ThinkingDelta",
    "Timeouts",
    "Wire",
    "Written",
    "is_strict",
    "tables_of",
]

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


FailureKind = Literal[
    "connect",
    "first_byte",
    "idle",
    "cut",
    "truncated",
    "malformed",
    "rate_limited",
    "exhausted",
    "server",
    "overloaded",
    "bad_request",
    "context_length",
    "sealed",
    "unauthorized",
    "not_found",
    "refused",
    "no_key",
    "deadline",
]
"""`cut`: the connection broke; `truncated`: the stream ended without its mark; `malformed`: it was not what its wire
promises; `exhausted`: the account has no money, or no quota before another day; `sealed`: it cannot open the thoughts
that it was sent, or seals none; `refused`: the provider will not, for a reason of its own; `no_key`: nobody was
asked."""

_PROXY_TIMEOUTS = frozenset({504, 524})


class ProviderFailed(Unavailable):
    """One attempt that came to nothing. Holds no body, no key and no prompt."""

    code: ClassVar[str] = "PROVIDER_FAILED"

    def __init__(
        self,
        message: str,
        *,
        kind: FailureKind,
        status: int | None = None,
        retry_after: float | None = None,
        suggestion: str = "",
    ) -> None:
        super().__init__(message, suggestion=suggestion)
        self.kind: FailureKind = kind
        self.status = status
        self.retry_after = retry_after
        """Seconds, where the provider said so."""
        self.usage = Usage()
        """What the provider had reported before it failed."""
        self.was_sent = kind not in ("connect", "no_key")
        """Whether the request reached the provider, as far as is known."""

    @property
    def may_be_billed(self) -> bool:
        """Whether the provider may have worked on the request: it was sent, and either no HTTP status came, or one by
        which a proxy says that the provider behind it took too long."""
        return self.was_sent and (self.status is None or self.status in _PROXY_TIMEOUTS)


def is_strict(schema: JsonObject) -> bool:
    """Whether providers that hold a model to a schema take it: every object closed, and every property required."""
    objects = [table for table in tables_of(dict(schema)) if "properties" in table or table.get("type") == "object"]
    return bool(objects) and all(_is_closed(table) for table in objects)


def _is_closed(table: dict[str, Json]) -> bool:
    properties, required = table.get("properties", {}), table.get("required", [])
    names = set(properties) if isinstance(properties, dict) else set[str]()
    return table.get("additionalProperties") is False and isinstance(required, list) and names == set(required)


def tables_of(value: Json) -> Iterator[dict[str, Json]]:
    """Every table in it, its own first."""
    waiting: list[Json] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


_REASONING = 5
"""How many times longer than others a model may take that reasons, where the user set no limit."""
_KEEP_ALIVE = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """In seconds."""

    connect: float = 3.0
    first_byte: float = 60.0
    """Until the answer begins; some models think first."""
    idle: float = 30.0
    """Between two pieces of an answer; a keep-alive is one."""

    def for_reasoning(self) -> "Timeouts":
        """The limits for a model that reasons before it answers: longer ones, except where the user set others."""
        usual = Timeouts()
        return Timeouts(
            connect=self.connect,
            first_byte=self.first_byte * (_REASONING if self.first_byte == usual.first_byte else 1),
            idle=self.idle * (_REASONING if self.idle == usual.idle else 1),
        )

    @property
    def keep_alive(self) -> float:
        """For how long keep-alives alone are waited through, so that a dead model behind a live proxy is given up."""
        return max(_KEEP_ALIVE, 4 * self.idle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    name: str
    wire: Wire
    base_url: str
    key: str | None = field(default=None, repr=False)
    """None where it needs none, as a model on this machine."""
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    timeouts: Timeouts = field(default_factory=Timeouts)
    host: str | None = None
    """Who bills, as prices know them; None for whoever made the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One model asked once."""

    alias: str | None
    provider: str
    model: str
    success: bool
    milliseconds: float
    waited: float = 0.0
    """Milliseconds before it, on account of the one before."""
    kind: FailureKind | None = None
    error: str | None = None
    status: int | None = None
    usage: Usage
    """What it took, estimated where the provider reported nothing and something had been sent."""
    usage_reported: bool
    cost: Cost | None = None
    """None where nobody knows the price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    completion: Completion
    candidate: Candidate
    """Who answered."""
    route: Route
    estimated_input: int
    usage: Usage
    """Of the attempt that answered."""
    usage_reported: bool
    cost: Cost | None
    """Of every attempt together; None where one of them has no price."""
    attempts: tuple[Attempt, ...]
    warnings: tuple[str, ...] = ()
    """What no waiting mends, what was cut, and what could not be written down."""

    @property
    def fallback_used(self) -> bool:
        """Whether another model answered than the one that the policy chose."""
        first = self.route.candidates[0].entry.id
        return self.candidate.entry.id != (self.route.preferred or first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    time: datetime
    caller: Caller
    task: str | None
    route: Route
    estimated_input: int
    attempts: tuple[Attempt, ...]
    cost: Cost | None
    outcome: Outcome | None
    """None where nobody answered."""
    error: str | None = None
    """Why, in our words."""
    tool: str | None = None
    """Which tool or command asked, such as `run`."""
    earlier: tuple[Attempt, ...] = ()
    """Of the runs of the same call that were over before this one, where there are several."""


class Observer(Protocol):
    def happened(self, happening: Happening) -> None:
        """Must neither wait nor raise."""
        ...
