"""Health, metrics and the access log of a gateway.

`Metrics` and `AccessLog` wrap the ledger's recorder and use what it records of a call; `Metrics` also listens to ended
spans. So no figure is computed twice, and no content of a call is available here. Metrics have the names and buckets of
OpenTelemetry's conventions and are written in Prometheus's text format here, as OTLP in `otlp_export`.

`/health` needs no token and returns only a status; `/metrics` needs a token where tokens are configured.
"""

import json
import logging
import threading
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from ullage.ledger import AuditEvent, Entry, Recorder, Unrecorded
from ullage.tracing import Span
from ullage.wire import Page

__all__ = ["AccessLog", "Histogram", "Instrument", "Labels", "Metrics", "operations_pages"]

_log = logging.getLogger("ullage.access")

_CALLS = ("search", "result", "page")
_SERIES = 2_000
"""Maximum label sets of one metric; further ones are counted as tool `other`."""
Labels = tuple[tuple[str, str], ...]
"""Attributes and their values; the names have dots."""

_MCP_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_MODEL_SECONDS = tuple(0.01 * 2**power for power in range(14))
_TOKENS = tuple(float(4**power) for power in range(14))


@dataclass(frozen=True, slots=True)
class Instrument:
    """One metric."""

    kind: Literal["histogram", "counter", "gauge"]
    unit: str
    means: str
    limits: tuple[float, ...] = ()
    """Upper limits of a histogram's buckets."""


INSTRUMENTS: Mapping[str, Instrument] = {
    "mcp.server.operation.duration": Instrument("histogram", "s", "Time that clients' requests took.", _MCP_SECONDS),
    "mcp.client.operation.duration": Instrument("histogram", "s", "Time that requests to servers took.", _MCP_SECONDS),
    "gen_ai.client.operation.duration": Instrument("histogram", "s", "Time that model calls took.", _MODEL_SECONDS),
    "gen_ai.client.token.usage": Instrument("histogram", "{token}", "Tokens of a model call.", _TOKENS),
    "gen_ai.client.inference.usage.input_tokens": Instrument("counter", "{token}", "Input tokens, cached ones too."),
    "gen_ai.client.inference.usage.output_tokens": Instrument("counter", "{token}", "Output tokens with reasoning."),
    "gen_ai.client.inference.usage.cache_read.input_tokens": Instrument("counter", "{token}", "Read from a cache."),
    "gen_ai.client.inference.usage.cache_write.input_tokens": Instrument("counter", "{token}", "Written to a cache."),
    "gen_ai.client.inference.usage.reasoning.output_tokens": Instrument("counter", "{token}", "Reasoning tokens."),
    "ullage.cost": Instrument("counter", "USD", "Dollars that model calls cost."),
    "ullage.tokens.saved.net": Instrument(
        "gauge", "{token}", "Tokens that requests did not carry, less what Ullage added; may fall."
    ),
    "ullage.tool.definition.tokens": Instrument(
        "counter", "{token}", "Tokens of definitions, instructions and replies that requests carried."
    ),
    "ullage.tool.result.tokens": Instrument("counter", "{token}", "Tokens of tool results as they were passed on."),
    "ullage.audit.events": Instrument("counter", "{event}", "Refusals, withheld definitions, approvals, fallbacks."),
    "ullage.ledger.lost": Instrument("counter", "{entry}", "Entries that the ledger lost."),
}
_USAGE = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read.input_tokens": "cache_read",
    "cache_write.input_tokens": "cache_write",
    "reasoning.output_tokens": "reasoning",
}
"""Counters of tokens, each with its field of `Usage`."""
_REQUEST_LABELS = ("mcp.method.name", "gen_ai.prompt.name", "network.transport", "mcp.protocol.version")


@dataclass(slots=True)
class Histogram:
    limits: tuple[float, ...]
    buckets: list[int] = field(init=False)
    """Counts by bucket; the last one has no upper limit."""
    total: float = 0.0
    count: int = 0

    def __post_init__(self) -> None:
        self.buckets = [0] * (len(self.limits) + 1)

    def observe(self, value: float) -> None:
        self.buckets[bisect_left(self.limits, value)] += 1
        self.total += value
        self.count += 1


class Metrics:
    """Counts what is recorded from the start of the process. Safe from any thread."""

    def __init__(self, inner: Recorder | None = None) -> None:
        self._inner: Recorder = inner or Unrecorded()
        self._lock = threading.Lock()
        self._histograms: dict[str, dict[Labels, Histogram]] = {
            name: {} for name, one in INSTRUMENTS.items() if one.kind == "histogram"
        }
        self._sums: dict[str, dict[Labels, Decimal | int]] = {
            name: {} for name, one in INSTRUMENTS.items() if one.kind != "histogram"
        }

    def wrap(self, recorder: Recorder) -> "Metrics":
        """Pass everything that is recorded on to this recorder."""
        self._inner = recorder
        return self

    def record(self, entry: Entry) -> None:
        self._inner.record(entry)
        with self._lock:
            if entry.saved_tokens is not None:
                self._add("ullage.tokens.saved.net", (("kind", entry.kind),), entry.saved_tokens)
            if entry.kind == "definitions":
                self._add("ullage.tool.definition.tokens", (("client", entry.client or ""),), entry.tokens)
            if entry.kind in _CALLS:
                labels = (("gen_ai.tool.name", entry.tool or ""), ("ullage.server.name", entry.server or ""))
                self._add("ullage.tool.result.tokens", labels, entry.tokens)
            if entry.use is not None:
                provider = "gcp.gemini" if entry.server == "google" else entry.server or ""
                operation = "generate_content" if entry.server == "google" else "chat"
                about = (
                    ("gen_ai.operation.name", operation),
                    ("gen_ai.provider.name", provider),
                    ("gen_ai.request.model", entry.model or ""),
                )
                failed = (("error.type", str(entry.detail.get("kind") or "_OTHER")),) if entry.is_error else ()
                self._observe("gen_ai.client.operation.duration", (*failed, *about), (entry.milliseconds or 0.0) / 1000)
                for name, kind in _USAGE.items():
                    tokens: int | None = getattr(entry.use.usage, kind)
                    if tokens is None:
                        continue
                    self._add(f"gen_ai.client.inference.usage.{name}", about, tokens)
                    if kind in ("input", "output"):
                        self._observe("gen_ai.client.token.usage", (*about, ("gen_ai.token.type", kind)), tokens)
                if entry.use.dollars is not None:
                    self._add("ullage.cost", (("model", entry.model or ""),), entry.use.dollars)

    def audit(self, event: AuditEvent) -> None:
        self._inner.audit(event)
        with self._lock:
            self._add("ullage.audit.events", (("kind", event.kind),), 1)

    def flush(self, timeout: float = 5.0) -> bool:
        return self._inner.flush(timeout)

    def ended(self, span: Span) -> None:
        """Observe the duration of a request. Results of the tool that was called by `call_tool` count as its own."""
        method = span.attributes.get("mcp.method.name")
        if method is None:
            return
        labels = {name: str(span.attributes[name]) for name in _REQUEST_LABELS if name in span.attributes}
        tool = span.attributes.get("ullage.tool.name") or span.attributes.get("gen_ai.tool.name")
        server = span.attributes.get("ullage.server.name")
        labels |= {} if tool is None else {"gen_ai.tool.name": str(tool)}
        labels |= {} if server is None else {"ullage.server.name": str(server)}
        labels |= {} if span.error is None else {"error.type": span.error}
        name = "mcp.client.operation.duration" if span.kind == "client" else "mcp.server.operation.duration"
        with self._lock:
            self._observe(name, tuple(sorted(labels.items())), span.seconds)

    def _observe(self, name: str, labels: Labels, value: float) -> None:
        series = self._histograms[name]
        found = series.get(labels)
        if found is None:
            found = series.setdefault(_limit_labels(labels, series), Histogram(INSTRUMENTS[name].limits))
        found.observe(value)

    def _add(self, name: str, labels: Labels, value: Decimal | int) -> None:
        series = self._sums[name]
        labels = labels if labels in series else _limit_labels(labels, series)
        series[labels] = series.get(labels, 0) + value

    def histograms(self) -> dict[str, dict[Labels, Histogram]]:
        """Return a copy of all histograms by name."""
        with self._lock:
            found = {name: dict(series) for name, series in self._histograms.items()}
            for series in found.values():
                for labels, one in series.items():
                    copied = series[labels] = Histogram(one.limits)
                    copied.buckets, copied.total, copied.count = list(one.buckets), one.total, one.count
            return found

    def sums(self) -> dict[str, dict[Labels, Decimal | int]]:
        """Return a copy of all counters and gauges by name."""
        lost = getattr(self._inner, "lost", None)
        with self._lock:
            found = {name: dict(series) for name, series in self._sums.items()}
        return found if lost is None else {**found, "ullage.ledger.lost": {(): lost}}

    def text(self) -> str:
        """Return all metrics in Prometheus's text format."""
        lines: list[str] = []
        for dotted, series in self.histograms().items():
            name = _prometheus_name(dotted)
            lines.append(f"# HELP {name} {INSTRUMENTS[dotted].means}")
            lines.append(f"# TYPE {name} histogram")
            for labels, one in sorted(series.items()):
                below = 0
                for limit, count in zip((*one.limits, None), one.buckets, strict=True):
                    below += count
                    bucket = (*labels, ("le", "+Inf" if limit is None else f"{limit:g}"))
                    lines.append(f"{name}_bucket{_format_labels(bucket)} {below}")
                lines.append(f"{name}_sum{_format_labels(labels)} {one.total:.6f}")
                lines.append(f"{name}_count{_format_labels(labels)} {one.count}")
        for dotted, series in self.sums().items():
            name = _prometheus_name(dotted)
            lines.append(f"# HELP {name} {INSTRUMENTS[dotted].means}")
            lines.append(f"# TYPE {name} {INSTRUMENTS[dotted].kind}")
            for labels, value in sorted(series.items()):
                lines.append(
                    f"{name}{_format_labels(labels)} {value if isinstance(value, int) else format(value, 'f')}"
                )
        return "\n".join(lines) + "\n"


def _limit_labels(labels: Labels, series: Mapping[Labels, object]) -> Labels:
    """Return the labels as text that can be encoded, without names of tools and prompts if there are too many label
    sets already."""
    labels = tuple((name, value.encode("utf-8", "replace").decode("utf-8")) for name, value in labels)
    if len(series) < _SERIES or labels in series:
        return labels
    named = ("gen_ai.tool.name", "gen_ai.prompt.name", "ullage.server.name", "gen_ai.request.model", "model")
    return tuple((name, "other" if name in named else value) for name, value in labels)


def _prometheus_name(name: str) -> str:
    """Return a metric's name in Prometheus's spelling, with its unit."""
    one = INSTRUMENTS[name]
    unit = {"s": "_seconds", "USD": "_usd"}.get(one.unit, "")
    return f"{name.replace('.', '_')}{unit}{'_total' if one.kind == 'counter' else ''}"


def _format_labels(labels: Labels) -> str:
    if not labels:
        return ""
    escapes = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})
    return "{" + ",".join(f'{name.replace(".", "_")}="{value.translate(escapes)}"' for name, value in labels) + "}"


@dataclass(frozen=True, slots=True)
class AccessLog:
    """Logs one JSON line for each search, call and model call: principal, tool, time, tokens, outcome; never
    content."""

    inner: Recorder
    write: Callable[[str], object] = _log.info

    def record(self, entry: Entry) -> None:
        self.inner.record(entry)
        if entry.kind in (*_CALLS, "model"):
            line = {
                "event": "access",
                "time": entry.time.isoformat(timespec="milliseconds"),
                "principal": entry.principal,
                "session": entry.session,
                "client": entry.client,
                "kind": entry.kind,
                "server": entry.server,
                "tool": entry.tool,
                "model": entry.model,
                "milliseconds": entry.milliseconds,
                "tokens": entry.tokens,
                "outcome": "error" if entry.is_error else "cached" if entry.cached else "ok",
            }
            self.write(json.dumps(line))

    def audit(self, event: AuditEvent) -> None:
        self.inner.audit(event)

    def flush(self, timeout: float = 5.0) -> bool:
        return self.inner.flush(timeout)


def operations_pages(metrics: Metrics, is_ready: Callable[[], bool]) -> dict[str, Page]:
    """Return the pages by path.

    Args:
        metrics: The content of `/metrics`.
        is_ready: Whether calls can be accepted and recorded.
    """

    def ready() -> tuple[int, str]:
        return (200, '{"status": "ok"}') if is_ready() else (503, '{"status": "unavailable"}')

    return {
        "/health": Page(answer=ready, media_type="application/json", is_open=True),
        "/health/ready": Page(answer=ready, media_type="application/json", is_open=True),
        "/health/live": Page(answer=lambda: (200, '{"status": "ok"}'), media_type="application/json", is_open=True),
        "/metrics": Page(
            answer=lambda: (200, metrics.text()), media_type="text/plain; version=0.0.4; charset=utf-8", is_open=False
        ),
    }
