"""Was this not made just now?

Keeps the last thing made, with what it was made of. Told apart by identity, which costs nothing and errs only towards
making it again.
"""

import operator
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Latest"]

Made = TypeVar("Made")


class Latest(Generic[Made]):
    def __init__(self) -> None:
        self._kept: tuple[tuple[object, ...], Made] | None = None

    def of(self, parts: tuple[object, ...], make: Callable[[], Made]) -> Made:
        """What was last made, if of these very parts, else what is made now."""
        if self._kept is None or not all(map(operator.is_, self._kept[0], parts)):
            self._kept = parts, make()
        return self._kept[1]
