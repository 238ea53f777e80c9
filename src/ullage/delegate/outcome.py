"""What came of delegating, and by which attempts?"""

from dataclasses import dataclass

from ullage.models import Cost, Usage

from .exchange import Completion
from .failure import FailureKind
from .route import Candidate, Route

__all__ = ["Attempt", "Outcome"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One model asked once."""

    alias: str | None
    provider: str
    model: str
    success: bool
    milliseconds: float
    waited: float = 0.0
    """Milliseconds before it, on account of the one before."""
    kind: FailureKind | None = None
    error: str | None = None
    status: int | None = None
    usage: Usage
    """What it took, estimated where the provider reported nothing and something had been sent."""
    usage_reported: bool
    cost: Cost | None = None
    """None where nobody knows the price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    completion: Completion
    candidate: Candidate
    """Who answered."""
    route: Route
    estimated_input: int
    usage: Usage
    """Of the attempt that answered."""
    usage_reported: bool
    cost: Cost | None
    """Of every attempt together; None where one of them has no price."""
    attempts: tuple[Attempt, ...]
    warnings: tuple[str, ...] = ()
    """What no waiting mends, what was cut, and what could not be written down."""

    @property
    def fallback_used(self) -> bool:
        """Whether another model answered than the one that the policy chose."""
        first = self.route.candidates[0].entry.id
        return self.candidate.entry.id != (self.route.preferred or first)
