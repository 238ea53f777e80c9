"""When may a server that failed be tried again?

Decisions only, on a clock that is passed in: how long to wait after so many failures in a row, when to leave a server
alone altogether, and when to forget. A failure is a start that failed or a connection that died; a tool's own error, a
refusal of the protocol and a slow answer are none. Nothing here waits or starts anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Admission", "Incident", "Patience", "Standing", "admission", "after_failure", "forgiven"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How failures are met; times in seconds."""

    first_delay: float = 0.2
    factor: float = 3.0
    failures_allowed: int = 5
    """So many in a row, and the server is left alone for the cool-down; then one attempt is let through."""
    cool_down: float = 30.0
    longest_wait: float = 2.0
    """A call waits this long for the next attempt; where it would be longer, it fails at once."""
    healthy_after: float = 30.0
    """A connection that lived so long makes earlier failures forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a server's failures so far amount to."""

    failures: int = 0
    """In a row."""
    failed_at: float | None = None
    retry_at: float = 0.0
    is_broken: bool = False
    """The breaker is open: until `retry_at` nothing is tried, then one attempt at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A start that failed, or a connection that died."""

    began: float
    """When the connection began to be opened."""
    lived: float = 0.0
    """For how long it was open; 0 where it never was."""
    at: float


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a connection may be opened now, after a wait, or not soon enough to wait for."""

    wait: float
    refused: bool = False


def after_failure(standing: Standing, incident: Incident, patience: Patience, *, chance: float) -> Standing:
    """The standing after an incident; `chance` is from 0 up to 1 and spreads the retries of many processes.

    Connections that were opened before the last failure fell with it: they are the same incident, not further ones.
    """
    if standing.failed_at is not None and incident.began < standing.failed_at:
        return standing
    failures = 1 if incident.lived >= patience.healthy_after else standing.failures + 1
    is_broken = failures >= patience.failures_allowed
    delay = patience.cool_down if is_broken else patience.first_delay * patience.factor ** (failures - 1)
    return Standing(
        failures=failures,
        failed_at=incident.at,
        retry_at=incident.at + delay * (1 + chance) / 2,
        is_broken=is_broken,
    )


def admission(standing: Standing, now: float, patience: Patience) -> Admission:
    remaining = max(standing.retry_at - now, 0.0)
    return Admission(remaining, refused=remaining > patience.longest_wait)


def forgiven(standing: Standing, ready_times: Sequence[float], now: float, patience: Patience) -> Standing:
    """A clean slate where a connection that was opened since the last failure has lived long enough."""
    if standing.failed_at is None:
        return standing
    since = [ready_at for ready_at in ready_times if ready_at >= standing.failed_at]
    return Standing() if since and now - min(since) >= patience.healthy_after else standing
