"""How long is one who says again and again that something changed left in peace before he is asked?

Longer each time, and not at all where he has been calm: some servers say so whenever they are asked, some for each of
many tools. Pauses are reckoned here; whoever waits, waits elsewhere.
"""

import math
from dataclasses import dataclass

__all__ = ["Pacing"]

_SHORTEST, _LONGEST = 0.05, 60.0
_QUIET = 1.0
"""Seconds without a question after which one is taken for calm again."""


@dataclass(slots=True, kw_only=True)
class Pacing:
    first: float = _SHORTEST
    """Seconds before the first question after a calm."""
    _pause: float = 0.0
    _finished: float = -math.inf

    def pause(self, now: float) -> float:
        """Seconds to wait before the next question."""
        calm = now - self._finished > max(_QUIET, 4 * self._pause)
        self._pause = self.first if calm else min(max(2 * self._pause, _SHORTEST), _LONGEST)
        return self._pause

    def finished(self, now: float) -> None:
        """A question was answered, or failed."""
        self._finished = now
