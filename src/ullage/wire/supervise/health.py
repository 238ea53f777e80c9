"""Health of a server: its state, failures and backoff.

`Health` is what is known of a server at one moment, for `ullage doctor` and the status pages. It is made without
contacting the server, and contains neither its environment nor its headers.

`Record` keeps the failures, starts, last output and notes of one server, and decides whether it may be tried
now. It opens nothing and waits for nothing; the clock and the source of randomness are passed in.

`Patience` and `Bounds` are limits that a server's settings do not contain.

The backoff functions only decide, on a clock that is passed in: how long to wait after a number of consecutive
failures, when to stop trying a server for a while, and when to reset the count. A failure is a start that failed or a
connection that died; a tool's own error, a protocol error and a slow answer are none.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ullage.errors import SignInNeeded, SourceFailed, UllageError
from ullage.tool import Introduction

__all__ = [
    "Admission",
    "Bounds",
    "Health",
    "Incident",
    "Patience",
    "Record",
    "Standing",
    "State",
    "admission",
    "after_failure",
    "forgiven",
    "state_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Limits of the backoff; times in seconds."""

    first_delay: float = 0.2
    factor: float = 3.0
    failures_allowed: int = 5
    """Consecutive failures after which the server is not tried during the cool-down; then one attempt is allowed."""
    cool_down: float = 30.0
    longest_wait: float = 2.0
    """Maximum wait of a call for the next attempt; a call that would wait longer fails at once."""
    healthy_after: float = 30.0
    """Lifetime of a connection after which earlier failures no longer count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Backoff state of a server."""

    failures: int = 0
    """Consecutive failures."""
    failed_at: float | None = None
    retry_at: float = 0.0
    is_broken: bool = False
    """The circuit breaker is open: no attempt until `retry_at`, then one attempt at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A start that failed, or a connection that died."""

    began: float
    """When the opening of the connection began."""
    lived: float = 0.0
    """How long it was open; 0 if never."""
    at: float


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a connection may be opened now, after a wait, or not soon enough to wait for."""

    wait: float
    refused: bool = False


def after_failure(standing: Standing, incident: Incident, patience: Patience, *, chance: float) -> Standing:
    """Return the backoff state after an incident.

    Connections that were opened before the last failure failed with it: they are the same incident, not further ones.

    Args:
        standing: The state before.
        incident: The failure.
        patience: The limits.
        chance: From 0 up to 1; spreads the retries of many processes.
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
    """Return a reset state if a connection opened since the last failure has lived long enough."""
    if standing.failed_at is None:
        return standing
    since = [ready_at for ready_at in ready_times if ready_at >= standing.failed_at]
    return Standing() if since and now - min(since) >= patience.healthy_after else standing


State = Literal["idle", "starting", "ready", "backing off", "broken"]
"""Idle: nothing runs and nothing is wrong. Backing off: it failed and may be tried again soon. Broken: it failed so
often that it is not tried for a while.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    server: str
    state: State
    connections: int = 0
    process_ids: tuple[int, ...] = ()
    introduction: Introduction | None = None
    protocol: str | None = None
    """The protocol revision of the newest connection; None before the first."""
    start_seconds: float | None = None
    """Duration of the last start; None before the first."""
    calls: int = 0
    open_calls: int = 0
    failures: int = 0
    """Total of failed starts and connections that died."""
    failures_in_a_row: int = 0
    retry_in: float | None = None
    """Seconds until it may be tried again; None if it may be tried now."""
    last_error: str | None = None
    suggestion: str | None = None
    """How to fix the last error."""
    stderr_tail: str = ""
    """The end of its standard error, up to a limit."""
    notes: tuple[str, ...] = ()
    """Harmless peculiarities of the server, newest last, up to a limit."""


def state_of(standing: Standing, *, ready: bool, starting: bool) -> State:
    if ready:
        return "ready"
    if starting:
        return "starting"
    if standing.is_broken:
        return "broken"
    return "backing off" if standing.failures else "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits on connections; times in seconds."""

    connections: int = 128
    """Maximum connections of one server, over all sessions."""
    least_share: int = 4
    """Connections that one principal may always have; beyond these, up to half of all."""
    room_wait: float = 30.0
    """Maximum wait of a call for a connection while the maximum is open."""
    yields_after: float = 20.0
    """Idle time after which a session's connection may be closed for a call that waits; the longest idle one first."""
    idle_stateless: float = 45.0
    """Like `idle`, for a server that keeps nothing between requests, so that connections of a gone client end soon."""
    idle: float = 900.0
    """Idle time after which a session's connection is closed, where others exist and the settings set no time."""
    shortest_idle: float = 0.1
    """Minimum idle time; a shorter one in the settings is raised to this, so that nothing spins."""
    start_slack: float = 2.0
    """Added to a server's start timeout: the opener has the same timeout, and its error is more precise."""
    stopping: float = 8.0
    """Time for an open connection to end its process before it is cut off."""
    retiring: float = 30.0
    """Time for the open calls of a removed server to finish."""
    leaving: float = 10.0
    """Time within which everything must have ended when the host closes."""
    patience: Patience = field(default_factory=Patience)

    @property
    def share(self) -> int:
        """Maximum connections to one server for one principal."""
        return min(self.connections, max(self.least_share, self.connections // 2))


_NOTES_KEPT = 16
_NOTE_CHARACTERS = 300


class Record:
    """Counts and state of one server, from which its health and backoff are derived."""

    def __init__(
        self, server: str, patience: Patience, clock: Callable[[], float], random: Callable[[], float]
    ) -> None:
        self.calls = 0
        self.introduction: Introduction | None = None
        self.protocol: str | None = None
        self.start_seconds: float | None = None
        self.last_words = ""
        """Standard error of the last connection that ended."""
        self._server = server
        self._patience = patience
        self._clock = clock
        self._random = random
        self._standing = Standing()
        self._failures = 0
        self._last: UllageError | None = None
        self._notes: deque[str] = deque(maxlen=_NOTES_KEPT)

    @property
    def has_failed(self) -> bool:
        """Whether the last failure still counts."""
        return self._standing.failures > 0

    def seconds_to_wait(self) -> float:
        """Return the seconds until it may be tried; raises where that is longer than a call should wait."""
        allowed = admission(self._standing, self._clock(), self._patience)
        if allowed.refused:
            seconds = allowed.wait
            failures = self._standing.failures
            times = "" if failures == 1 else f" {failures} times in a row"
            reason, hint = ("", "") if self._last is None else (self._last.message, self._last.suggestion)
            kind = SignInNeeded if isinstance(self._last, SignInNeeded) else SourceFailed
            left_alone = kind(
                f"server `{self._server}` failed{times} and is left alone for {seconds:.0f} s more; last: {reason}",
                suggestion=f"try again in {seconds:.0f} s; {hint}".rstrip("; "),
            )
            raise left_alone
        return allowed.wait

    def failed(self, error: UllageError, *, began: float, ready_at: float | None) -> None:
        now = self._clock()
        incident = Incident(began=began, lived=0.0 if ready_at is None else now - ready_at, at=now)
        self._failures += 1
        self._last = error.with_traceback(None)
        self._standing = after_failure(self._standing, incident, self._patience, chance=self._random())

    def forgive(self, ready_times: Sequence[float]) -> None:
        """Reset failures if one of the open connections has lived long enough since."""
        self._standing = forgiven(self._standing, ready_times, self._clock(), self._patience)

    def note(self, text: str) -> None:
        short = text[:_NOTE_CHARACTERS]
        if short not in self._notes:
            self._notes.append(short)

    def health(self, *, ready: bool, starting: bool) -> Health:
        """Return the health as far as it is recorded here; the pool adds what the open connections know."""
        wait = self._standing.retry_at - self._clock()
        return Health(
            server=self._server,
            state=state_of(self._standing, ready=ready, starting=starting),
            introduction=self.introduction,
            protocol=self.protocol,
            start_seconds=self.start_seconds,
            calls=self.calls,
            failures=self._failures,
            failures_in_a_row=self._standing.failures,
            retry_in=wait if self.has_failed and wait > 0 else None,
            last_error=None if self._last is None else self._last.message,
            suggestion=None if self._last is None else self._last.suggestion or None,
            stderr_tail=self.last_words,
            notes=tuple(self._notes),
        )
