"""Health, Prometheus metrics and the access log of a gateway.

`Metrics` and `AccessLog` wrap the ledger's recorder and use what it records of a call, so no figure is computed twice
and no content of a call is available here. `/health` needs no token and returns only a status; `/metrics` needs a token
where tokens are configured.
"""

import json
import logging
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from ullage.ledger import Entry, Recorder
from ullage.wire import Page

__all__ = ["AccessLog", "Metrics", "operations_pages"]

_log = logging.getLogger("ullage.access")

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_SERIES = 2_000
"""Maximum label sets of one metric; further ones are counted as tool `other`."""
_CALLS = ("search", "result", "page")
Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Histogram:
    buckets: list[int] = field(default_factory=lambda: [0] * (len(_SECONDS) + 1))
    total: float = 0.0
    count: int = 0

    def observe(self, seconds: float) -> None:
        self.buckets[bisect_left(_SECONDS, seconds)] += 1
        self.total += seconds
        self.count += 1


class Metrics:
    """Counts what is recorded from the start of the process, in Prometheus's text format."""

    def __init__(self, inner: Recorder) -> None:
        self._inner = inner
        self._lock = threading.Lock()
        self._durations: dict[Labels, _Histogram] = {}
        self._counters: dict[str, dict[Labels, Decimal | int]] = {name: {} for name in _HELP}

    def record(self, entry: Entry) -> None:
        self._inner.record(entry)
        with self._lock:
            self._count(entry)

    def flush(self, timeout: float = 5.0) -> bool:
        return self._inner.flush(timeout)

    def _count(self, entry: Entry) -> None:
        if entry.kind in _CALLS:
            self._observe(entry)
        if entry.saved_tokens is not None:
            self._add("ullage_tokens_saved_net", (("kind", entry.kind),), entry.saved_tokens)
        if entry.kind == "definitions":
            self._add("ullage_tool_definition_tokens_total", (("client", entry.client or ""),), entry.tokens)
        if entry.use is not None:
            model, usage = ("gen_ai_response_model", entry.model or ""), entry.use.usage
            for kind, tokens in (("input", usage.input), ("output", usage.output), ("cache_read", usage.cache_read)):
                if tokens:
                    self._add("gen_ai_client_token_usage_total", (model, ("gen_ai_token_type", kind)), tokens)
            if entry.use.dollars is not None:
                self._add("ullage_cost_usd_total", (("model", entry.model or ""),), entry.use.dollars)

    def _observe(self, entry: Entry) -> None:
        labels: Labels = (
            ("mcp_method_name", "tools/call"),
            ("gen_ai_tool_name", entry.tool or ""),
            ("server", entry.server or ""),
            ("error_type", "tool_error" if entry.is_error else ""),
        )
        found = self._durations.get(labels)
        if found is None:
            if len(self._durations) >= _SERIES:
                labels = (labels[0], ("gen_ai_tool_name", "other"), ("server", ""), labels[3])
            found = self._durations.setdefault(labels, _Histogram())
        found.observe((entry.milliseconds or 0.0) / 1000)

    def _add(self, name: str, labels: Labels, value: Decimal | int) -> None:
        series = self._counters[name]
        if labels in series or len(series) < _SERIES:
            series[labels] = series.get(labels, 0) + value

    def text(self) -> str:
        """Return all metrics in Prometheus's text format."""
        with self._lock:
            return "\n".join([*self._duration_lines(), *self._counter_lines()]) + "\n"

    def _duration_lines(self) -> Iterator[str]:
        name = "mcp_server_operation_duration_seconds"
        yield f"# HELP {name} Time that calls took."
        yield f"# TYPE {name} histogram"
        for labels, found in sorted(self._durations.items()):
            below = 0
            for limit, count in zip((*map(str, _SECONDS), "+Inf"), found.buckets, strict=True):
                below += count
                yield f"{name}_bucket{_braced((*labels, ('le', limit)))} {below}"
            yield f"{name}_sum{_braced(labels)} {found.total:.6f}"
            yield f"{name}_count{_braced(labels)} {found.count}"

    def _counter_lines(self) -> Iterator[str]:
        for name, series in self._counters.items():
            yield f"# HELP {name} {_HELP[name]}"
            yield f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}"
            for labels, value in sorted(series.items()):
                yield f"{name}{_braced(labels)} {value}"


_HELP: Mapping[str, str] = {
    "gen_ai_client_token_usage_total": "Tokens of model calls.",
    "ullage_cost_usd_total": "Dollars that model calls cost.",
    "ullage_tokens_saved_net": "Tokens that requests did not carry, less what Ullage added; may fall.",
    "ullage_tool_definition_tokens_total": "Tokens of definitions, instructions and replies that requests carried.",
}


def _braced(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


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
