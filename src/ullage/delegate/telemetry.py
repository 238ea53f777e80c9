"""Telemetry of delegated runs for the user's own log and exporters.

`Telemetry` writes one line of JSON to standard error for each fallback, error or warning, one for each run at level
`info`, and one for each attempt at `debug`; and a warning when one call, with all its runs, costs more than the limit.
It has no access to prompts, answers and keys.

`UsageExport` appends one line of CSV per attempt in a single write under a lock, so that several processes may share
the file; the header is written if the file is empty. A failed write is logged and never fails the call.
"""

import contextlib
import csv
import io
import json
import logging
import os
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Literal

from ullage.tool import Json

from .model_call import Attempt, RunRecord
from .spend_limits import least

__all__ = ["COLUMNS", "LEVELS", "Level", "Telemetry", "UsageExport", "lines"]

Level = Literal["debug", "info", "warn", "error"]
LEVELS: dict[Level, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}
_log = logging.getLogger("ullage.delegate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """Writes runs as lines of JSON to standard error."""

    level: Level = "info"
    cost_alert: Decimal | None = None
    """Cost in dollars above which a call causes a warning, once."""

    def record_run(self, run_record: RunRecord) -> None:
        """Write the log lines of a run."""
        for level, line in lines(run_record, self.cost_alert):
            if LEVELS[level] >= LEVELS[self.level]:
                _log.log(LEVELS[level], "%s", json.dumps(line, ensure_ascii=False))


def lines(run_record: RunRecord, cost_alert: Decimal | None) -> Iterator[tuple[Level, dict[str, Json]]]:
    """Yield the log lines of a run, each with its level."""
    for number, attempt in enumerate(run_record.attempts, 1):
        yield "debug", {"event": "attempt", "number": number, **_of(attempt)}
    for attempt in run_record.attempts:
        if not attempt.success:
            yield "warn", {"event": "fallback" if run_record.outcome else "failure", **_of(attempt)}
    for warning in run_record.outcome.warnings if run_record.outcome else ():
        yield "warn", {"event": "warning", "message": warning}
    if run_record.outcome:
        chosen = run_record.attempts[-1]
        total = None if run_record.cost is None else run_record.cost.total
        yield (
            "info",
            {
                "event": "route",
                "task": run_record.task,
                "provider": chosen.provider,
                "model": chosen.model,
                "alias": chosen.alias,
                "rationale": list(run_record.route.rationale),
                "attempts": len(run_record.attempts),
                "input_tokens": chosen.usage.input,
                "output_tokens": chosen.usage.output,
                "cost_usd": None if total is None else float(total),
                "latency_ms": sum(one.milliseconds + one.waited for one in run_record.attempts),
            },
        )
    else:
        yield (
            "error",
            {
                "event": "error",
                "task": run_record.task,
                "error": run_record.error,
                "attempts": len(run_record.attempts),
                "rationale": list(run_record.route.rationale),
            },
        )
    before, now = least(one.cost for one in run_record.earlier), least(one.cost for one in run_record.attempts)
    if cost_alert is not None and before <= cost_alert < before + now:
        yield "warn", {"event": "cost_alert", "cost_usd": float(before + now), "threshold_usd": float(cost_alert)}


def _of(attempt: Attempt) -> dict[str, Json]:
    said: dict[str, Json] = {
        "provider": attempt.provider,
        "model": attempt.model,
        "alias": attempt.alias,
        "latency_ms": attempt.milliseconds,
    }
    return said if attempt.success else {**said, "kind": attempt.kind, "status": attempt.status, "error": attempt.error}


_export_log = logging.getLogger(__name__)

COLUMNS = (
    "time",
    "task",
    "client",
    "session",
    "provider",
    "model",
    "alias",
    "success",
    "error",
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "reported",
    "currency",
    "cost",
    "latency_ms",
)


@dataclass(slots=True)
class UsageExport:
    """Appends attempts to a CSV file."""

    path: Path
    _failed: bool = False

    def record_run(self, run_record: RunRecord) -> None:
        """Append the attempts of a run to the file."""
        try:
            rows: list[list[object]] = []
            for attempt in run_record.attempts:
                usage, cost = attempt.usage, attempt.cost
                rows.append(
                    [
                        run_record.time.isoformat(),
                        run_record.task,
                        run_record.caller.client,
                        run_record.caller.session,
                        attempt.provider,
                        attempt.model,
                        attempt.alias,
                        attempt.success,
                        attempt.kind,
                        usage.input,
                        usage.output,
                        usage.cache_read,
                        usage.cache_write,
                        usage.reasoning,
                        attempt.usage_reported,
                        None if cost is None else cost.currency,
                        None if cost is None or cost.total is None else f"{cost.total:f}",
                        attempt.milliseconds,
                    ]
                )
            _append(self.path, rows)
        except OSError as error:
            if not self._failed:
                _export_log.warning("the use of models cannot be written to `%s`: %s", self.path, error.strerror)
            self._failed = True


def _append(path: Path, rows: list[list[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        with _lock_file(descriptor):
            heading = [list[object](COLUMNS)] if os.fstat(descriptor).st_size == 0 else []
            text = io.StringIO()
            # A spreadsheet takes a text that begins with one of these characters for a formula.
            csv.writer(text, lineterminator="\n").writerows(
                [f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@") else cell for cell in row]
                for row in (*heading, *rows)
            )
            os.write(descriptor, text.getvalue().encode("utf-8", "replace"))
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _lock_file(descriptor: int) -> Generator[None]:
    """Lock a file, where the system has locks; elsewhere a single write must suffice."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
