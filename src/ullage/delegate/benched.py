"""Which models are not to be asked just now?

A model that failed sits out for a while; then one call may try it, and while that call runs the others still pass it
by. Kept in memory: what failed in another process is not known here.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Benched"]


@dataclass(slots=True)
class _Seat:
    until: float
    tried_since: float | None = None
    """When a call was let through to see whether it is well again."""


@dataclass(slots=True)
class Benched:
    clock: Callable[[], float]
    trial: float = 60.0
    """Seconds after which a trial that never ended counts as none."""
    _seats: dict[str, _Seat] = field(default_factory=dict[str, _Seat])

    def sit(self, model: str, seconds: float) -> None:
        """Not asked for so long; a longer wait that already holds is kept."""
        until = self.clock() + seconds
        known = self._seats.get(model)
        self._seats[model] = _Seat(max(until, 0.0 if known is None else known.until))

    def rise(self, model: str) -> None:
        """It answered."""
        self._seats.pop(model, None)

    def now(self) -> frozenset[str]:
        """Those to be passed by."""
        return frozenset(model for model, seat in self._seats.items() if not self._may_try(seat))

    def trying(self, model: str) -> None:
        """A call is about to ask it: until that has ended, it is the only one."""
        seat = self._seats.get(model)
        if seat is not None:
            seat.tried_since = self.clock()

    def _may_try(self, seat: _Seat) -> bool:
        now = self.clock()
        if now < seat.until:
            return False
        return seat.tried_since is None or now - seat.tried_since > self.trial
