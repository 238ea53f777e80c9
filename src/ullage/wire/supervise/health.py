"""How is a server?

What its supervision knows of it at one moment, for `ullage doctor` and the status pages. It asks the server nothing,
and holds neither its environment nor its headers.
"""

from dataclasses import dataclass
from typing import Literal

from ullage.gateway import Introduction

from .backoff import Standing

__all__ = ["Health", "State", "state_of"]

State = Literal["idle", "starting", "ready", "backing off", "broken"]
"""Idle: nothing runs and nothing is wrong. Backing off: it failed and may be tried again soon. Broken: it failed so
often that it is left alone for a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    server: str
    state: State
    connections: int = 0
    process_ids: tuple[int, ...] = ()
    introduction: Introduction | None = None
    protocol: str | None = None
    """The revision spoken on the newest connection; None before the first."""
    start_seconds: float | None = None
    """How long the last start took; None before the first."""
    calls: int = 0
    open_calls: int = 0
    failures: int = 0
    """Failed starts and deaths in all."""
    failures_in_a_row: int = 0
    retry_in: float | None = None
    """Seconds until it may be tried again; None where it may be now."""
    last_error: str | None = None
    suggestion: str | None = None
    """What to do about the last error."""
    stderr_tail: str = ""
    """The last it wrote to standard error, bounded."""
    notes: tuple[str, ...] = ()
    """What was odd but harmed nobody, newest last, bounded."""


def state_of(standing: Standing, *, ready: bool, starting: bool) -> State:
    if ready:
        return "ready"
    if starting:
        return "starting"
    if standing.is_broken:
        return "broken"
    return "backing off" if standing.failures else "idle"
