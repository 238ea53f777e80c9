"""May a summariser be asked again, that failed before?

After three failed calls in a row it rests for a while; then one call may show whether it is well again. Pure: the clock
is passed in.
"""

from collections.abc import Callable

__all__ = ["Breaker"]


class Breaker:
    def __init__(self, clock: Callable[[], float], failures: int = 3, cooldown: float = 300.0) -> None:
        """The clock and the cooldown are in seconds."""
        self._clock, self._most, self._cooldown = clock, failures, cooldown
        self._failed = 0
        self._rests_until = 0.0

    @property
    def left(self) -> int:
        """Calls that may fail before it rests: none while it does, and one when it has."""
        if self._failed < self._most:
            return self._most - self._failed
        return 1 if self._clock() >= self._rests_until else 0

    def allows(self) -> bool:
        return self.left > 0

    def failed(self, times: int = 1) -> None:
        """So many calls came to nothing, with no success between them."""
        if times > 0:
            self._failed += times
            self._rests_until = self._clock() + self._cooldown

    def succeeded(self) -> None:
        self._failed = 0
