"""Health of a server: its state, failures and backoff.

What its supervision knows of it at one moment, for `ullage doctor` and the status pages. It asks the server
nothing, and holds neither its environment nor its headers.

Failures, starts, last words and notes of one server, and whether it may be tried now. It opens nothing and waits for
nothing; the clock and chance are passed in.

What the settings of a server do not say; values only.

Decisions only, on a clock that is passed in: how long to wait after so many failures in a row, when to leave a server
alone altogether, and when to forget. A failure is a start that failed or a connection that died; a tool's own error, a
refusal of the protocol and a slow answer are none. Nothing here waits or starts anything.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ullage.errors import SignInNeeded, SourceFailed, UllageError
from ullage.gateway import Introduction

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Times in seconds."""

    connections: int = 128
    """Of one server, over all sessions."""
    least_share: int = 4
    """Of these, which one principal may have in any case; beyond it, half of them."""
    room_wait: float = 30.0
    """In which a call waits for a connection where there are as many as may be."""
    yields_after: float = 20.0
    """After which an idle session's connection is ended for a call that waits for room; the longest idle one first."""
    idle_stateless: float = 45.0
    """The same for a server that keeps nothing between requests: what a client that is gone has left ends soon."""
    idle: float = 900.0
    """After which a session's connection beside others is let go, where the settings name no time."""
    shortest_idle: float = 0.1
    """A shorter time in the settings is taken as this one, so that nothing spins."""
    start_slack: float = 2.0
    """On top of a server's time to start: the opener watches the clock too and knows better what went wrong."""
    stopping: float = 8.0
    """In which an open connection must have let go of its process before it is cut off."""
    retiring: float = 30.0
    """In which the open calls of a removed server may finish."""
    leaving: float = 10.0
    """In which everything must have ended when the host does."""
    patience: Patience = field(default_factory=Patience)

    @property
    def share(self) -> int:
        """The connections to one server that one principal may have."""
        return min(self.connections, max(self.least_share, self.connections // 2))


_NOTES_KEPT = 16
_NOTE_CHARACTERS = 300


class Record:
    def __init__(
        self, server: str, patience: Patience, clock: Callable[[], float], random: Callable[[], float]
    ) -> None:
        self.calls = 0
        self.introduction: Introduction | None = None
        self.protocol: str | None = None
        self.start_seconds: float | None = None
        self.last_words = ""
        """What the last connection that ended had on standard error."""
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
        """Whether its last failure is not forgotten yet."""
        return self._standing.failures > 0

    def seconds_to_wait(self) -> float:
        """Until it may be tried; raises where that is longer than a call should wait."""
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
        """Forgets failures where one of the connections now open has lived long enough since."""
        self._standing = forgiven(self._standing, ready_times, self._clock(), self._patience)

    def note(self, text: str) -> None:
        short = text[:_NOTE_CHARACTERS]
        if short not in self._notes:
            self._notes.append(short)

    def health(self, *, ready: bool, starting: bool) -> Health:
        """As far as it is known here; what the open connections say is added by whoever holds them."""
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
