"""What has happened in one run so far?

Kept while it goes on; `outcome` holds what is left of it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ullage.models import Cost, Usage

from .attempt import Hear
from .exchange import Completion, Event
from .failure import ProviderFailed
from .outcome import Attempt, Outcome
from .route import Candidate, Route
from .tally import together

__all__ = ["Course", "Trial"]


@dataclass(slots=True, kw_only=True)
class Course:
    route: Route
    estimated: int
    """Tokens of the prompt."""
    deadline: float
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    warnings: list[str] = field(default_factory=list[str])
    wait: float = 0.0
    """Seconds waited since the last attempt."""
    at_least: int = 0
    """Tokens of window that the next candidate must have more than."""
    is_over: bool = False
    """Whether nobody else is to be asked."""

    @property
    def cost(self) -> Cost | None:
        return together([one.cost for one in self.attempts])

    def take_wait(self) -> float:
        waited, self.wait = self.wait, 0.0
        return waited

    def outcome(self, candidate: Candidate, completion: Completion) -> Outcome:
        """Where the last attempt answered."""
        last = self.attempts[-1]
        return Outcome(
            completion=completion,
            candidate=candidate,
            route=self.route,
            estimated_input=self.estimated,
            usage=last.usage,
            usage_reported=last.usage_reported,
            cost=self.cost,
            attempts=tuple(self.attempts),
            warnings=tuple(self.warnings),
        )


@dataclass(slots=True, kw_only=True)
class Trial:
    """One attempt while it runs."""

    candidate: Candidate
    hear: Hear
    waited: float
    so_far: Callable[[], Usage] = Usage
    """What the provider has reported by now."""
    started: float = field(default_factory=time.perf_counter)
    _pieces: list[str] = field(default_factory=list[str])

    def heard(self, event: Event) -> None:
        self._pieces.append(event.text)
        self.hear(event)

    @property
    def text(self) -> str:
        """All that came, thinking too."""
        return "".join(self._pieces)

    def ended(
        self, *, usage: Usage, reported: bool, cost: Cost | None, failed: ProviderFailed | None = None
    ) -> Attempt:
        entry = self.candidate.entry
        return Attempt(
            alias=self.candidate.alias,
            provider=entry.provider,
            model=entry.model,
            success=failed is None,
            milliseconds=round((time.perf_counter() - self.started) * 1000, 1),
            waited=round(self.waited * 1000, 1),
            kind=None if failed is None else failed.kind,
            error=None if failed is None else failed.message,
            status=None if failed is None else failed.status,
            usage=usage,
            usage_reported=reported,
            cost=cost,
        )
