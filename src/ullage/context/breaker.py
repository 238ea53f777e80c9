"""May a summariser be asked again, that failed before?

Three failures in a row and it rests; then one try decides. Pure: the clock is passed in.
"""

from collections.abc import Callable

__all__ = ["Breaker"]


class Breaker:
    def __init__(self, clock: Callable[[], float], failures: int = 3, cooldown: float = 300.0) -> None:
        self._clock, self._most, self._cooldown = clock, failures, cooldown
        self._failed = 0
        self._until = 0.0

    def allows(self) -> bool:
        return self._failed < self._most or self._clock() >= self._until

    def failed(self) -> None:
        self._failed += 1
        self._until = self._clock() + self._cooldown

    def succeeded(self) -> None:
        self._failed = 0
