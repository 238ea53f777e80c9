"""What do these folders say about it?

`FolderRetriever` searches files where they lie: no service, no network. The folders are looked at when they are
searched, in a worker thread; what takes longer than a caller would wait is left for the next search, and said. What is
known of them, `collection` holds.
"""

import time
from collections.abc import Callable

import anyio
import anyio.from_thread
import anyio.to_thread

from ullage.errors import InvalidArguments
from ullage.search import Index

from .collection import Collection
from .postings import PassageIndex
from .retriever import Found, Passage, Place, Query
from .settings import RetrieveSettings

__all__ = ["FolderRetriever"]

_PACE = 2.0
"""Seconds in which a look at the folders is still good."""
_TIMES = 5.0
"""Or so many times as long as it took, where that is more, so that large folders are not looked at all the time."""
_LONGEST_PACE = 10.0
_PATIENCE = 20.0
"""Seconds that one search may go on reading."""
_SHARE = 0.5
"""Of the time that is left before a deadline, for reading."""
_SHOWN = 20
"""Names in an error."""


class FolderRetriever:
    """Some folders and files as a store of texts. A `Retriever`."""

    def __init__(
        self,
        settings: RetrieveSettings,
        *,
        index: Callable[[], Index] = PassageIndex,
        pace: float = _PACE,
        patience: float = _PATIENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._collection = Collection(settings, index())
        self._pace = pace
        self._patience = patience
        self._clock = clock
        self._steps = self._collection.refresh()
        self._is_done = False
        """Whether the last look went through everything."""
        self._good_until = 0.0
        self._lock: anyio.Lock | None = None

    async def search(self, query: Query) -> Found:
        path = None if query.path is None else _within(query.path)
        async with self._one_at_a_time():
            patience = self._patience
            if query.deadline is not None:
                patience = min(patience, _SHARE * (query.deadline - anyio.current_time()))
            return await anyio.to_thread.run_sync(self._search, query, path, patience)

    async def read(self, places: tuple[Place, ...]) -> tuple[Passage, ...]:
        async with self._one_at_a_time():
            return await anyio.to_thread.run_sync(self._collection.read, places)

    def _search(self, query: Query, path: str | None, patience: float) -> Found:
        self._look(self._clock() + patience)
        places = self._collection.ranked(query.text, path, query.limit)
        if path is not None and self._is_done and not places and not self._collection.holds(path):
            raise InvalidArguments(
                f"no text that is searched lies in `{path}`",
                suggestion="leave `path` out, or name a file, a folder or a pattern such as `*.md`",
                options=self._collection.tops()[:_SHOWN],
            )
        return Found(places, (*self._unfinished(), *self._collection.notes()))

    def _unfinished(self) -> tuple[str, ...]:
        read = self._collection.files
        return () if self._is_done else (f"the folders are still being read, {read} files so far: ask again for more",)

    def _look(self, until: float) -> None:
        """Goes on with the look that was left off, or begins a new one where the last is old."""
        began = self._clock()
        if self._is_done:
            if began < self._good_until:
                return
            self._steps, self._is_done = self._collection.refresh(), False
        for _ in self._steps:
            anyio.from_thread.check_cancelled()
            if self._clock() >= until:
                return
        now = self._clock()
        self._is_done = True
        self._good_until = now + max(self._pace, min(_LONGEST_PACE, _TIMES * (now - began)))

    def _one_at_a_time(self) -> anyio.Lock:
        """Made late: a lock belongs to the event loop that is running."""
        if self._lock is None:
            self._lock = anyio.Lock()
        return self._lock


def _within(path: str) -> str:
    """A pattern of paths as they are cited; raises `InvalidArguments` for what leads out of the folders."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts or not parts or path.startswith(("/", "~", "!", "#")):
        raise InvalidArguments(
            f"`{path}` is no path in the folders that are searched",
            suggestion="give it as citations write it, such as `docs/guide.md`, without `..` and a leading `/`",
        )
    return "/".join(parts)
