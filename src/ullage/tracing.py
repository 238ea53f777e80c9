"""Trace context (W3C) and the spans of requests, without an OpenTelemetry SDK.

The trace context of a request travels in a context variable. It comes from the request's `_meta`, else from the HTTP
header `traceparent`, and is passed to servers and model providers whether or not spans are recorded here. Spans are
recorded only where a `Tracer` is given: `Tracer.request` records what a client asked of Ullage, and `child_span` what
Ullage asks of a server or a provider because of it. Without a recorded parent, `child_span` records nothing.

Names and attributes are those of OpenTelemetry's conventions for MCP and generative AI. Spans contain names, durations
and numbers, never an argument, a result, a prompt or an answer.
"""

import re
import secrets
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "Span",
    "TraceContext",
    "Tracer",
    "annotate_span",
    "child_span",
    "current_trace",
    "is_recording",
    "trace_fields",
    "trace_of",
    "within_trace",
]

SpanKind = Literal["internal", "server", "client"]
Attribute = str | int | float | bool

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_LONGEST_STATE = 512
"""Characters of `tracestate` that are passed on; the standard asks for at least as many."""
_LONGEST_VALUE = 200
"""Characters of a text in an attribute, which may come from a client or a server."""


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The trace and the span that a request belongs to."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    is_sampled: bool = True
    state: str | None = None
    """`tracestate`, unchanged."""

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.is_sampled else '00'}"


def trace_of(fields: Mapping[str, object]) -> TraceContext | None:
    """Return the trace context in a request's `_meta` or headers; None if there is none or it is invalid."""
    parent = fields.get("traceparent")
    found = _TRACEPARENT.fullmatch(parent) if isinstance(parent, str) else None
    if found is None:
        return None
    version, trace, span, flags, rest = found.groups()
    if version == "ff" or (version == "00" and rest) or not trace.strip("0") or not span.strip("0"):
        return None
    state = fields.get("tracestate")
    is_usable = isinstance(state, str) and 0 < len(state) <= _LONGEST_STATE and state.isascii() and state.isprintable()
    return TraceContext(trace, span, bool(int(flags, 16) & 1), str(state) if is_usable else None)


@dataclass(slots=True, kw_only=True, eq=False)
class Span:
    """One operation with its duration. `end` is 0 while it runs."""

    name: str
    kind: SpanKind
    context: TraceContext
    parent_id: str | None = None
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    error: str | None = None
    """`error.type`: a code or a class of error, never a message."""
    start: int = 0
    """Nanoseconds since the epoch."""
    end: int = 0
    recorder: "Tracer"

    @property
    def seconds(self) -> float:
        return (self.end - self.start) / 1e9

    def set(self, **attributes: Attribute | None) -> None:
        """Set attributes; a keyword's double underscore stands for a dot, and None leaves the attribute out."""
        for key, value in attributes.items():
            if value is not None:
                self.attributes[key.replace("__", ".")] = value[:_LONGEST_VALUE] if isinstance(value, str) else value


_current: ContextVar[Span | TraceContext | None] = ContextVar("ullage_trace", default=None)


def current_trace() -> TraceContext | None:
    """Return the trace context that a request sent now belongs to."""
    found = _current.get()
    return found.context if isinstance(found, Span) else found


def trace_fields() -> dict[str, str]:
    """Return `traceparent` and `tracestate` for a request sent now: members of `_meta`, or HTTP headers.

    `baggage` is not among them: it may contain data about a user.
    """
    context = current_trace()
    if context is None:
        return {}
    fields = {"traceparent": context.traceparent}
    return fields if context.state is None else {**fields, "tracestate": context.state}


def is_recording() -> bool:
    """Return whether a span is running, so that there is something to add to."""
    return isinstance(_current.get(), Span)


def annotate_span(**attributes: Attribute | None) -> None:
    """Set attributes of the running span; does nothing where none is recorded."""
    span = _current.get()
    if isinstance(span, Span):
        span.set(**attributes)


@contextmanager
def within_trace(context: TraceContext) -> Generator[None]:
    """Pass a client's trace context on without recording a span."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def child_span(name: str, **attributes: Attribute | None) -> Generator[Span | None]:
    """Record a request to a server or provider as a child of the running span; yields None if none is recorded."""
    parent = _current.get()
    if not isinstance(parent, Span):
        yield None
        return
    with parent.recorder.span(name, "client", parent.context, **attributes) as span:
        yield span


@dataclass(frozen=True, slots=True)
class Tracer:
    """Records spans and passes each ended one to its listeners, which must neither wait nor raise."""

    listeners: tuple[Callable[[Span], None], ...]
    clock: Callable[[], int] = time.time_ns

    @contextmanager
    def span(
        self, name: str, kind: SpanKind, parent: TraceContext | None = None, **attributes: Attribute | None
    ) -> Generator[Span]:
        """Record a span and make it the parent of those within.

        An exception that passes sets `error.type`, unless that is set already: the error's `code` if it has one, else
        its class.
        """
        context = TraceContext(
            secrets.token_hex(16) if parent is None else parent.trace_id,
            secrets.token_hex(8),
            parent is None or parent.is_sampled,
            None if parent is None else parent.state,
        )
        parent_id = None if parent is None else parent.span_id
        span = Span(name=name[:_LONGEST_VALUE], kind=kind, context=context, parent_id=parent_id, recorder=self)
        span.set(**attributes)
        span.start = self.clock()
        token = _current.set(span)
        try:
            yield span
        except BaseException as error:
            span.error = span.error or error_type(error)
            raise
        finally:
            _current.reset(token)
            span.end = max(span.start, self.clock())
            for listener in self.listeners:
                listener(span)


def error_type(error: BaseException) -> str:
    """Return the value of `error.type` for an exception: a short name without content."""
    number = getattr(error, "number", None)
    code = getattr(error, "code", None)
    found = number if isinstance(number, int) else code if isinstance(code, str | int) else type(error).__name__
    return str(found)
