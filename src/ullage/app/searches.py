"""What do the searches of all clients share?

What is made of definitions and kept between starts, whoever knows their meanings, and what was learnt from use. Where
there is no database, nothing of it outlives the process and nothing is learnt.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from ullage.gateway import EDITION, Embedders, Learning, StoredForms, StoredUses, StoredVectors
from ullage.store import Database

from .background import Work

__all__ = ["Searches"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Searches:
    forms: StoredForms
    vectors: StoredVectors
    learning: Learning | None
    embedders: Embedders = field(default_factory=Embedders)

    @classmethod
    def of(cls, database: Database | None, spawn: Callable[[Work], None]) -> "Searches":
        return cls(
            forms=StoredForms(database, edition=EDITION),
            vectors=StoredVectors(database),
            learning=None if database is None else Learning(StoredUses(database), spawn),
        )

    async def save(self) -> None:
        """What is not written down yet."""
        if self.learning is not None:
            await self.learning.save()
