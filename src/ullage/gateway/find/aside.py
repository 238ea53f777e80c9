"""Where are a call's arguments looked through, so that other calls go on meanwhile?

Most are small and done with at once. Large ones, a table of thousands of rows, say, are looked through in a worker
thread, one call after another. What fits, `fitting` knows.
"""

import anyio
import anyio.to_thread

from ..merge.view import Entry
from ..slim.subschemas import is_small
from .envelope import Spoken
from .fitting import Fitting, fitting
from .validate import Checker

__all__ = ["Aside"]

_VALUES = 2_000
_LETTERS = 200_000


class Aside:
    """A worker thread's checker, and the way to it."""

    def __init__(self) -> None:
        self._checker = Checker()
        """For that thread alone."""
        self._lock: anyio.Lock | None = None

    async def fitting(self, spoken: Spoken, entry: Entry, checker: Checker, key: str) -> Fitting:
        """What `fitting` says; by this checker where the arguments are small."""
        if is_small(dict(spoken.said), values=_VALUES, letters=_LETTERS):
            return fitting(spoken, entry, checker, key)
        async with self._one_at_a_time():
            return await anyio.to_thread.run_sync(fitting, spoken, entry, self._checker, key)

    def _one_at_a_time(self) -> anyio.Lock:
        """Made late: a lock belongs to the event loop that is running."""
        if self._lock is None:
            self._lock = anyio.Lock()
        return self._lock
