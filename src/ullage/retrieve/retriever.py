"""What must a store of texts offer to be searched?

The seam for another store: it finds places that are near a query, and reads what stands there now. How much of it is
shown, and to whom, is the source's affair; how nearness is found, the store's. A shipped one is `FolderRetriever`.
"""

from dataclasses import dataclass
from typing import Protocol

__all__ = ["Found", "Passage", "Place", "Query", "Retriever"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Some lines of a text that stand together."""

    path: str
    """Of the text, as the store names it; with `/` between its parts."""
    first: int
    """Lines are counted from 1."""
    last: int

    @property
    def citation(self) -> str:
        return f"{self.path}:{self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class Passage:
    """A place and what stands there."""

    place: Place
    lines: tuple[str, ...]
    """As many as the place has, without line breaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    text: str
    path: str | None = None
    """A file, a folder or a pattern such as `*.md` to look in; None for everywhere."""
    limit: int = 50
    deadline: float | None = None
    """On the event loop's clock (`anyio.current_time`); None for no limit."""


@dataclass(frozen=True, slots=True)
class Found:
    places: tuple[Place, ...] = ()
    """Best first."""
    notes: tuple[str, ...] = ()
    """What the caller should know of the search: what was not looked through, and why."""


class Retriever(Protocol):
    async def search(self, query: Query) -> Found:
        """The places nearest to the query; the same texts and query give the same places."""
        ...

    async def read(self, places: tuple[Place, ...]) -> tuple[Passage, ...]:
        """What stands there now, in the same order. A place that is no more is left out, one that grew short is cut."""
        ...
