"""Checks of a call's arguments that do not hold up other calls.

Most take a few hundred steps and are done at once. Where arguments or schema need more, the check begins anew in a
worker thread with a larger budget, one call after another. Where even that is spent, the arguments pass unvalidated.
"""

import anyio
import anyio.to_thread

from ..merge.view import Entry
from ..slim.subschemas import is_small
from ..step_budget import OutOfSteps, StepBudget
from .envelope import Spoken
from .fitting import Fitting, fitting, unvalidated
from .validate import Checker

__all__ = ["AT_ONCE", "Aside"]

AT_ONCE = 1_000
"""Steps taken in the event loop: some 15 ms."""

_VALUES = 2_000
_LETTERS = 200_000
_SLOW = 1_000
"""Definitions remembered for taking long."""


class Aside:
    """A worker thread's checker, and the way to it."""

    def __init__(self) -> None:
        self._checker = Checker()
        """For that thread alone."""
        self._slow: set[str] = set()
        self._lock: anyio.Lock | None = None

    async def fitting(self, spoken: Spoken, entry: Entry, checker: Checker, key: str) -> Fitting:
        """What `fitting` says, by this checker where that takes few steps."""
        if key not in self._slow and is_small(dict(spoken.said), values=_VALUES, letters=_LETTERS):
            try:
                return fitting(spoken, entry, checker, key, StepBudget(AT_ONCE), must_heal=True)
            except OutOfSteps:
                self._remember(key)
        async with self._one_at_a_time():
            try:
                return await anyio.to_thread.run_sync(fitting, spoken, entry, self._checker, key)
            except OutOfSteps:
                return await anyio.to_thread.run_sync(unvalidated, spoken, entry)

    def _remember(self, key: str) -> None:
        """A definition that took too many steps once is checked in the worker thread from then on."""
        if len(self._slow) >= _SLOW:
            self._slow.clear()
        self._slow.add(key)

    def _one_at_a_time(self) -> anyio.Lock:
        """Made late: a lock belongs to the event loop that is running."""
        if self._lock is None:
            self._lock = anyio.Lock()
        return self._lock
