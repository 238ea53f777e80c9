"""What is in the database, as far as it was read?

A database's structure, read when it is first wanted and again when it is old. Whoever asks meanwhile waits for the one
reading.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from .engine import Engine
from .structure import Structure

__all__ = ["Known"]


@dataclass(slots=True, kw_only=True)
class Known:
    engine: Engine
    seconds: float
    """For which what was read is taken for true."""
    clock: Callable[[], float]
    _read: tuple[float, Structure] | None = None
    _reading: anyio.Lock = field(default_factory=anyio.Lock)

    async def structure(self, but: Structure | None = None) -> tuple[Structure, bool]:
        """The structure, and whether it came from memory; from there not `but`, in which something was not found."""
        async with self._reading:
            if self._read is not None and self.clock() < self._read[0] and self._read[1] is not but:
                return self._read[1], True
            structure = await self.engine.structure()
            self._read = self.clock() + self.seconds, structure
            return structure, False
