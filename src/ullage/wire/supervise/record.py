"""What has become of a server so far?

Failures, starts, last words and notes of one server, and whether it may be tried now. It opens nothing and waits for
nothing; the clock and chance are passed in.
"""

from collections import deque
from collections.abc import Callable, Sequence

from ullage.errors import SignInNeeded, SourceFailed, UllageError
from ullage.gateway import Introduction

from .backoff import Incident, Patience, Standing, admission, after_failure, forgiven
from .health import Health, state_of

__all__ = ["Record"]

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
            raise self._left_alone(allowed.wait)
        return allowed.wait

    def _left_alone(self, seconds: float) -> SourceFailed:
        failures = self._standing.failures
        times = "" if failures == 1 else f" {failures} times in a row"
        reason, hint = ("", "") if self._last is None else (self._last.message, self._last.suggestion)
        kind = SignInNeeded if isinstance(self._last, SignInNeeded) else SourceFailed
        return kind(
            f"server `{self._server}` failed{times} and is left alone for {seconds:.0f} s more; last: {reason}",
            suggestion=f"try again in {seconds:.0f} s; {hint}".rstrip("; "),
        )

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
