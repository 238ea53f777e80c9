"""The neutral request to a model, its streamed answer, and the errors of providers.

Requests and answers are in provider-neutral parts with the few settings that every provider has. Each module in
`providers` converts them to its wire format; `router` and `delegation` decide which model to ask, and `retry` what to
do about a failure.

A `Provider` is a configured provider with its key and time-outs. An `Observer` (ledger, log, cost alert) receives each
run as a `RunRecord`, which never contains the prompt, the answer or a key.

`is_strict` tells which JSON Schemas providers can enforce.
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
    "Observer",
    "Outcome",
    "Outgoing",
    "Provider",
    "ProviderFailed",
    "Reader",
    "RunRecord",
    "TextDelta",
    "ThinkingDelta",
    "Timeouts",
    "Wire",
    "WireRequest",
    "is_strict",
    "tables_of",
]

Finish = Literal["stop", "length", "tool_calls", "refusal", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """One request to one model."""

    model: str
    """The provider's name for the model."""
    messages: tuple[Message, ...]
    """System messages come first, if there are any."""
    max_output_tokens: int | None = None
    temperature: float | None = None
    """None if the model refuses a temperature, or none is set."""
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: Json = None
    output_schema: JsonObject | None = None
    """JSON Schema that the answer must match."""
    thinks: bool = False
    """Whether the model is known to reason before it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """A request in wire format, without the address and the key."""

    path: str
    """Path below the provider's base address."""
    headers: JsonObject
    body: JsonObject


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of the model's reasoning."""

    text: str


Event = TextDelta | ThinkingDelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A complete answer, whose stream ended as its wire format requires."""

    text: str
    finish: Finish
    usage: Usage
    """Fields that the provider did not report are None."""
    tool_calls: tuple[ToolCall, ...] = ()
    message: Message
    """Text, reasoning with its signature and tool calls, to send back in the next request."""
    model: str | None = None
    """The model that answered, as the provider reports it."""
    reported_cost: str | None = None
    """Cost in dollars, if the provider bills and reports it (OpenRouter)."""


class Reader(Protocol):
    """Reads one streamed answer, event by event.

    Raises:
        ProviderFailed: an event is malformed or reports an error.
    """

    @property
    def is_whole(self) -> bool:
        """Whether the answer is complete, so that `finish` returns it; its usage may still follow."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether the wire's end marker has arrived; nothing after it belongs to the answer."""
        ...

    def feed(self, event: str | None, data: str) -> tuple[Event, ...]:
        """Read one server-sent event and return the pieces of the answer in it.

        Args:
            event: the event's name, if it has one.
            data: its data; a body that was not streamed is passed as one event.
        """
        ...

    def finish(self) -> Completion:
        """Return the answer when the stream has ended.

        Raises:
            ProviderFailed: of kind `truncated`, if the answer's end did not arrive.
        """
        ...

    def so_far(self) -> Usage:
        """Return the usage reported so far, also for an interrupted answer."""
        ...


class Wire(Protocol):
    """The request and response format of a provider's API."""

    def write(self, outgoing: Outgoing) -> WireRequest:
        """Return the request in wire format."""
        ...

    def reader(self) -> Reader:
        """Return a new reader for one answer."""
        ...

    def authorize(self, key: str) -> dict[str, str]:
        """Return the headers that carry the key."""
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
"""The kind of a failed attempt.

- `cut`: the connection broke.
- `truncated`: the stream ended without its end marker.
- `malformed`: the response does not follow its wire format.
- `exhausted`: the account has no credit, or no quota until another day.
- `sealed`: the provider cannot decrypt the reasoning it received, or encrypts none.
- `refused`: the provider refuses for a reason of its own.
- `no_key`: no request was sent.
"""

_PROXY_TIMEOUTS = frozenset({504, 524})
_REJECTIONS = frozenset[FailureKind](
    {"rate_limited", "exhausted", "bad_request", "context_length", "sealed", "unauthorized", "not_found"}
)
"""Kinds of errors with which a provider rejects a request instead of working on it."""


class ProviderFailed(Unavailable):
    """A failed attempt. Contains no response body, no key and no prompt."""

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
        """Seconds, if the provider sent them."""
        self.usage = Usage()
        """Usage reported before the failure."""
        self.was_sent = kind not in ("connect", "no_key")
        """Whether the request reached the provider, as far as is known."""

    @property
    def may_be_billed(self) -> bool:
        """Whether the provider may have worked on the request: it was sent, and either no HTTP status arrived, or one
        with which a proxy reports that the provider behind it timed out. An error that rejects the request is not
        billed, even if it arrives with status 200."""
        is_rejected = self.kind in _REJECTIONS
        return self.was_sent and not is_rejected and (self.status is None or self.status in _PROXY_TIMEOUTS)


def is_strict(schema: JsonObject) -> bool:
    """Return whether providers can enforce the schema: every object is closed and every property required."""
    objects = [table for table in tables_of(dict(schema)) if "properties" in table or table.get("type") == "object"]
    for table in objects:
        properties, required = table.get("properties", {}), table.get("required", [])
        names = set(properties) if isinstance(properties, dict) else set[str]()
        if table.get("additionalProperties") is not False or not isinstance(required, list) or names != set(required):
            return False
    return bool(objects)


def tables_of(value: Json) -> Iterator[dict[str, Json]]:
    """Yield every object in a JSON value, the outermost first."""
    waiting: list[Json] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


_REASONING = 5
"""Factor on the time-outs of models that reason, where the user set no limit."""
_KEEP_ALIVE = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Time-outs in seconds."""

    connect: float = 3.0
    first_byte: float = 60.0
    """Until the answer begins; some models reason first."""
    idle: float = 30.0
    """Between two pieces of an answer; a keep-alive counts as a piece."""

    def for_reasoning(self) -> "Timeouts":
        """Return the limits for a model that reasons before it answers: longer ones, except where the user set them."""
        usual = Timeouts()
        return Timeouts(
            connect=self.connect,
            first_byte=self.first_byte * (_REASONING if self.first_byte == usual.first_byte else 1),
            idle=self.idle * (_REASONING if self.idle == usual.idle else 1),
        )

    @property
    def keep_alive(self) -> float:
        """How long keep-alives alone extend the wait, so that a dead model behind a live proxy is abandoned."""
        return max(_KEEP_ALIVE, 4 * self.idle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A configured provider, with its address, key and time-outs."""

    name: str
    wire: Wire
    base_url: str
    key: str | None = field(default=None, repr=False)
    """None if it needs none, such as a model on this machine."""
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    timeouts: Timeouts = field(default_factory=Timeouts)
    host: str | None = None
    """The billing host, as price tables name it; None for the model's maker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The record of one attempt with one model."""

    alias: str | None
    provider: str
    model: str
    success: bool
    milliseconds: float
    waited: float = 0.0
    """Milliseconds waited before it because of the previous attempt."""
    kind: FailureKind | None = None
    error: str | None = None
    status: int | None = None
    usage: Usage
    """Tokens used; estimated if a request was sent and the provider reported nothing."""
    usage_reported: bool
    cost: Cost | None = None
    """None if the price is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a run that answered."""

    completion: Completion
    candidate: Candidate
    """The candidate that answered."""
    route: Route
    estimated_input: int
    usage: Usage
    """Usage of the attempt that answered."""
    usage_reported: bool
    cost: Cost | None
    """Cost of all attempts together; None if one of them has no known price."""
    attempts: tuple[Attempt, ...]
    warnings: tuple[str, ...] = ()
    """Failures that waiting does not resolve, a shortened prompt, and records that could not be written."""

    @property
    def fallback_used(self) -> bool:
        """Whether another model answered than the policy chose."""
        first = self.route.candidates[0].entry.id
        return self.candidate.entry.id != (self.route.preferred or first)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """The record of a finished run, for observers."""

    time: datetime
    caller: Caller
    task: str | None
    route: Route
    estimated_input: int
    attempts: tuple[Attempt, ...]
    cost: Cost | None
    outcome: Outcome | None
    """None if no model answered."""
    error: str | None = None
    """Why no model answered, in Ullage's words."""
    tool: str | None = None
    """The tool or command that sent the request, such as `run`."""
    earlier: tuple[Attempt, ...] = ()
    """Attempts of earlier runs of the same call, if it has several."""


class Observer(Protocol):
    """Receives every finished run."""

    def record_run(self, run_record: RunRecord) -> None:
        """Record a run; must neither wait nor raise."""
        ...
