"""Export of spans and metrics by OTLP over HTTP, as JSON.

`targets_of` reads where to, from the user's settings and OpenTelemetry's own variables. The `Exporter` of
`open_telemetry` sends what has ended in batches, from a thread of its own. Nothing waits for it: spans that come faster
than they can be sent are dropped and counted, and a collector that does not answer is a warning in the log. Arguments,
results, prompts and answers are no part of spans and metrics, so they are never sent.
"""

import json
import logging
import os
import platform
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import anyio
import anyio.to_thread

from ullage.config import Telemetry
from ullage.tracing import Span, Tracer

from .operations import INSTRUMENTS, Metrics

if TYPE_CHECKING:
    import httpx2

__all__ = ["Exporter", "Target", "open_telemetry", "targets_of"]

_log = logging.getLogger(__name__)

Json = dict[str, Any]

_QUEUE, _BATCH = 4_096, 512
"""Spans that wait at most, and spans of one request."""
_RETRIED = frozenset({429, 502, 503, 504})
_LONGEST_PAUSE = 60.0
_PREFIX = "OTEL_EXPORTER_OTLP_"
_SPAN_KINDS = {"internal": 1, "server": 2, "client": 3}
_CUMULATIVE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where one signal is sent."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    timeout: float = 10.0
    """Seconds for one request."""


def targets_of(settings: Telemetry, environment: Mapping[str, str]) -> dict[str, Target]:
    """Return the targets of `traces` and `metrics`; empty where nothing is exported.

    The settings say whether, and where to; without an address there, OpenTelemetry's variables say it.
    """
    if not settings.is_on or environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return {}
    found = dict[str, Target]()
    for signal in ("traces", "metrics"):
        if environment.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp").strip() == "none":
            continue
        own = f"{_PREFIX}{signal.upper()}_"

        def said(name: str, own: str = own) -> str:
            return environment.get(own + name) or environment.get(_PREFIX + name) or ""

        base = settings.endpoint or environment.get(f"{_PREFIX}ENDPOINT") or "http://localhost:4318"
        url = f"{base.rstrip('/')}/v1/{signal}"
        headers: dict[str, str] = {}
        if settings.endpoint is None:
            # Headers of the variables may contain a key for the address of the variables, so they go nowhere else.
            url = environment.get(f"{own}ENDPOINT") or url
            pairs = (pair.partition("=") for pair in said("HEADERS").split(","))
            headers = {name.strip(): unquote(value.strip()) for name, _, value in pairs if name.strip()}
        try:
            timeout = float(said("TIMEOUT")) / 1000
        except ValueError:
            timeout = 10.0
        if url.startswith(("http://", "https://")):
            found[signal] = Target(url=url, headers={**headers, **settings.headers}, timeout=max(0.1, timeout))
    return found


def _resource(environment: Mapping[str, str], version: str) -> Json:
    pairs = (pair.partition("=") for pair in environment.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","))
    said = {name.strip(): unquote(value.strip()) for name, _, value in pairs if name.strip()}
    name = environment.get("OTEL_SERVICE_NAME") or said.get("service.name") or "ullage"
    own = {"service.name": name, "service.version": version, "process.pid": os.getpid()}
    runtime = {"process.runtime.name": "cpython", "process.runtime.version": platform.python_version()}
    return {"attributes": _attributes({**said, **own, **runtime})}


def _attributes(values: Mapping[str, object]) -> list[Json]:
    written: list[Json] = []
    for key, value in values.items():
        if isinstance(value, bool):
            found: Json = {"boolValue": value}
        elif isinstance(value, int):
            found = {"intValue": str(value)}
        else:
            found = {"doubleValue": value} if isinstance(value, float) else {"stringValue": str(value)}
        written.append({"key": key, "value": found})
    return written


def _span(span: Span) -> Json:
    context = span.context
    error = {"error.type": span.error} if span.error is not None else {}
    written: Json = {
        "traceId": context.trace_id,
        "spanId": context.span_id,
        "name": span.name,
        "kind": _SPAN_KINDS[span.kind],
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": _attributes({**span.attributes, **error}),
        "status": {} if span.error is None else {"code": 2},
        "flags": 1,
    }
    if span.parent_id is not None:
        written["parentSpanId"] = span.parent_id
    if context.state is not None:
        written["traceState"] = context.state
    return written


def _metrics(metrics: Metrics, began: int, now: int) -> Iterator[Json]:
    """Yield all metrics with cumulative values since `began`."""
    times: Json = {"startTimeUnixNano": str(began), "timeUnixNano": str(now)}
    for name, series in metrics.histograms().items():
        if series:
            points = [
                {
                    "attributes": _attributes(dict(labels)),
                    "count": str(one.count),
                    "sum": float(one.total),
                    "bucketCounts": [str(count) for count in one.buckets],
                    "explicitBounds": list(one.limits),
                    **times,
                }
                for labels, one in series.items()
            ]
            yield _metric(name, {"histogram": {"aggregationTemporality": _CUMULATIVE, "dataPoints": points}})
    for name, sums in metrics.sums().items():
        if sums:
            numbers = [
                {
                    "attributes": _attributes(dict(labels)),
                    **({"asDouble": float(one)} if isinstance(one, Decimal) else {"asInt": str(one)}),
                    **times,
                }
                for labels, one in sums.items()
            ]
            is_monotonic = INSTRUMENTS[name].kind == "counter"
            about: Json = {"aggregationTemporality": _CUMULATIVE, "isMonotonic": is_monotonic, "dataPoints": numbers}
            yield _metric(name, {"sum": about})


def _metric(name: str, data: Json) -> Json:
    return {"name": name, "description": INSTRUMENTS[name].means, "unit": INSTRUMENTS[name].unit, **data}


class Exporter:
    """Sends ended spans and the metrics in the background."""

    def __init__(
        self,
        targets: Mapping[str, Target],
        metrics: Metrics | None,
        environment: Mapping[str, str],
        *,
        version: str,
        make_client: "Callable[[], httpx2.Client] | None" = None,
    ) -> None:
        """Create the exporter; nothing is sent, and no thread started, before the first span or metric.

        Args:
            targets: Where to, by signal.
            metrics: What is sent as metrics; None for no metrics.
            environment: The variables with the resource's attributes and the intervals.
            version: Version of this program.
            make_client: Creates the HTTP client.
        """
        self._targets = targets
        self._metrics = metrics if "metrics" in targets else None
        self._resource = _resource(environment, version)
        self._scope = {"name": "ullage", "version": version}
        self._span_pause = _milliseconds(environment, "OTEL_BSP_SCHEDULE_DELAY", 5.0)
        self._metric_pause = _milliseconds(environment, "OTEL_METRIC_EXPORT_INTERVAL", 60.0)
        self._make_client = make_client
        self._began = time.time_ns()
        self._queue: deque[Span] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._failing: dict[str, float] = {}
        """By signal that could not be sent: the pause after it."""
        self._sending = 0
        """Spans of the request that is open."""
        self.dropped = 0
        """Spans that were never sent."""

    def ended(self, span: Span) -> None:
        """Take an ended span. Never waits."""
        if not span.context.is_sampled:
            return
        with self._changed:
            if "traces" in self._targets:
                self._queue.append(span)
                if len(self._queue) > _QUEUE:
                    self._queue.popleft()
                    self.dropped += 1
                elif len(self._queue) == _BATCH:
                    self._changed.notify_all()
            if self._thread is None and not self._is_closing:
                # A daemon thread: a process that is ending does not wait for a collector.
                self._thread = threading.Thread(target=self._run, name="ullage-otlp", daemon=True)
                self._thread.start()

    def stop(self, timeout: float = 2.0) -> None:
        """Send what is left for at most `timeout` seconds, then stop."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)
        lost = self.dropped + len(self._queue) + self._sending
        if lost:
            _log.warning("%d spans were not exported", lost)

    def _run(self) -> None:
        try:
            # Loaded in the thread: the HTTP client takes longer to load than most sessions take to answer first.
            import httpx2

            with (self._make_client or httpx2.Client)() as client:
                self._send_until_closed(client)
        except Exception:  # noqa: BLE001 - telemetry ends; the gateway goes on
            _log.warning("telemetry ended by an unexpected error", exc_info=True)

    def _send_until_closed(self, client: "httpx2.Client") -> None:
        now = time.monotonic()
        due = {"traces": now + self._span_pause, "metrics": now + self._metric_pause}
        while True:
            with self._changed:
                wait = max(0.0, min(due.values()) - time.monotonic())
                self._changed.wait_for(lambda: self._is_closing or self._has_batch(), wait)
                is_closing = self._is_closing
            now = time.monotonic()
            if is_closing or now >= due["traces"] or self._has_batch():
                self._send_spans(client, everything=is_closing)
                due["traces"] = time.monotonic() + self._failing.get("traces", self._span_pause)
            if is_closing or now >= due["metrics"]:
                if self._metrics is not None:
                    found = list(_metrics(self._metrics, self._began, time.time_ns()))
                    if found:
                        scoped: Json = {"scope": self._scope, "metrics": found}
                        resource = {"resource": self._resource, "scopeMetrics": [scoped]}
                        self._post(client, "metrics", {"resourceMetrics": [resource]})
                due["metrics"] = time.monotonic() + self._failing.get("metrics", self._metric_pause)
            if is_closing:
                return

    def _has_batch(self) -> bool:
        return "traces" not in self._failing and len(self._queue) >= _BATCH

    def _send_spans(self, client: "httpx2.Client", *, everything: bool) -> None:
        while True:
            with self._changed:
                batch = [self._queue.popleft() for _ in range(min(_BATCH, len(self._queue)))]
                self._sending = len(batch)
            if not batch:
                return
            spans: Json = {"scope": self._scope, "spans": [_span(one) for one in batch]}
            resource: Json = {"resource": self._resource, "scopeSpans": [spans]}
            outcome = self._post(client, "traces", {"resourceSpans": [resource]})
            self._sending = 0
            if outcome == "retry":
                with self._changed:
                    self._queue.extendleft(reversed(batch))
                    while len(self._queue) > _QUEUE:
                        self._queue.popleft()
                        self.dropped += 1
            elif outcome == "refused":
                self.dropped += len(batch)
            if outcome != "sent" or not (everything or len(self._queue) >= _BATCH):
                return

    def _post(self, client: "httpx2.Client", signal: str, body: Json) -> str:
        """Return `sent`, `retry` or `refused`."""
        import httpx2

        target = self._targets[signal]
        headers = {**target.headers, "content-type": "application/json"}
        timeout = min(target.timeout, 1.0) if self._is_closing else target.timeout
        status: int | None = None
        try:
            answer = client.post(target.url, content=json.dumps(body).encode(), headers=headers, timeout=timeout)
            status, why = answer.status_code, f"HTTP {answer.status_code}"
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            why = type(error).__name__
        if status is not None and 200 <= status < 300:
            self._failing.pop(signal, None)
            return "sent"
        if signal not in self._failing:
            # The address is left out: it may contain a key.
            _log.warning("%s cannot be exported (%s); calls go on, and this is not repeated", signal, why)
        self._failing[signal] = min(_LONGEST_PAUSE, 2 * self._failing.get(signal, self._span_pause))
        return "retry" if status is None or status in _RETRIED else "refused"


def _milliseconds(environment: Mapping[str, str], name: str, otherwise: float) -> float:
    """Return an interval in seconds from a variable in milliseconds."""
    try:
        return max(0.05, float(environment[name]) / 1000)
    except (KeyError, ValueError):
        return otherwise


@asynccontextmanager
async def open_telemetry(
    settings: Telemetry, environment: Mapping[str, str], *, version: str, metrics: Metrics
) -> AsyncGenerator[Tracer]:
    """Open a tracer that feeds the metrics and, where the settings say so, exports spans and metrics."""
    targets = targets_of(settings, environment)
    exporter = Exporter(targets, metrics, environment, version=version) if targets else None
    try:
        yield Tracer((metrics.ended,) if exporter is None else (metrics.ended, exporter.ended))
    finally:
        if exporter is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(exporter.stop)
