"""What does an operator see of each run?

One line of JSON on standard error where there was a fallback, an error or a warning, one for each run at `info`, and
one for each attempt at `debug`; a warning as soon as one call, of however many runs, has cost more than it should.
Prompts, answers and keys are not known here.
"""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from ullage.tool import Json

from .happening import Happening
from .outcome import Attempt
from .tally import least

__all__ = ["LEVELS", "Level", "Telemetry", "lines"]

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
    level: Level = "info"
    cost_alert: Decimal | None = None
    """Dollars of one call above which a warning is given, once."""

    def happened(self, happening: Happening) -> None:
        for level, line in lines(happening, self.cost_alert):
            if LEVELS[level] >= LEVELS[self.level]:
                _log.log(LEVELS[level], "%s", json.dumps(line, ensure_ascii=False))


def lines(happening: Happening, cost_alert: Decimal | None) -> Iterator[tuple[Level, dict[str, Json]]]:
    """What there is to say, each with how much it matters."""
    for number, attempt in enumerate(happening.attempts, 1):
        yield "debug", {"event": "attempt", "number": number, **_of(attempt)}
    for attempt in happening.attempts:
        if not attempt.success:
            yield "warn", {"event": "fallback" if happening.outcome else "failure", **_of(attempt)}
    for warning in happening.outcome.warnings if happening.outcome else ():
        yield "warn", {"event": "warning", "message": warning}
    yield ("info", _routed(happening)) if happening.outcome else ("error", _failed(happening))
    before, now = least(one.cost for one in happening.earlier), least(one.cost for one in happening.attempts)
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


def _routed(happening: Happening) -> dict[str, Json]:
    chosen = happening.attempts[-1]
    total = None if happening.cost is None else happening.cost.total
    return {
        "event": "route",
        "task": happening.task,
        "provider": chosen.provider,
        "model": chosen.model,
        "alias": chosen.alias,
        "rationale": list(happening.route.rationale),
        "attempts": len(happening.attempts),
        "input_tokens": chosen.usage.input,
        "output_tokens": chosen.usage.output,
        "cost_usd": None if total is None else float(total),
        "latency_ms": sum(one.milliseconds + one.waited for one in happening.attempts),
    }


def _failed(happening: Happening) -> dict[str, Json]:
    return {
        "event": "error",
        "task": happening.task,
        "error": happening.error,
        "attempts": len(happening.attempts),
        "rationale": list(happening.route.rationale),
    }
