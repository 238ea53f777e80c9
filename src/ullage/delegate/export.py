"""How does the use of models get into a spreadsheet?

One line of CSV an attempt, appended in one write under a lock, so that several processes may share the file; its
heading is written by whoever finds it empty. What cannot be written is logged and never the reason for a call to fail.
"""

import contextlib
import csv
import io
import logging
import os
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from .happening import Happening
from .outcome import Attempt

__all__ = ["COLUMNS", "UsageExport"]

_log = logging.getLogger(__name__)

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
    path: Path
    _failed: bool = False

    def happened(self, happening: Happening) -> None:
        try:
            _append(self.path, [_row(happening, attempt) for attempt in happening.attempts])
        except OSError as error:
            if not self._failed:
                _log.warning("the use of models cannot be written to `%s`: %s", self.path, error.strerror)
            self._failed = True


def _row(happening: Happening, attempt: Attempt) -> list[object]:
    usage, cost = attempt.usage, attempt.cost
    return [
        happening.time.isoformat(),
        happening.task,
        happening.caller.client,
        happening.caller.session,
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


def _append(path: Path, rows: list[list[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        with _locked(descriptor):
            heading = [list[object](COLUMNS)] if os.fstat(descriptor).st_size == 0 else []
            os.write(descriptor, _written([*heading, *rows]))
    finally:
        os.close(descriptor)


def _written(rows: list[list[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_harmless(value) for value in row] for row in rows)
    return text.getvalue().encode("utf-8", "replace")


def _harmless(value: object) -> object:
    """A text that a spreadsheet would take for a formula is shown as text."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


@contextlib.contextmanager
def _locked(descriptor: int) -> Generator[None]:
    """Where locks exist; elsewhere an append of one write must do."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
