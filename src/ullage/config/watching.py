"""When has a file changed, and what do the settings become then?

Looks at the files' stamps every so often; no dependency, and it works on every file system. A burst of changes, as
editors make when they save by renaming, is one change: it is told when the files have been still for a moment. A bad
edit keeps the settings as they were.
"""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from .issue import Issue
from .loading import Loaded
from .stamp import Stamps, changed, stamps_of

__all__ = ["Reload", "Reloading", "watch"]

_LONGEST_BURST = 20
"""So many moments a file may go on changing before it is told anyhow."""


async def watch(seen: Stamps, *, interval: float = 1.0, settle: float = 0.2) -> AsyncGenerator[frozenset[Path], None]:
    """The files that changed since they were `seen`, each time some have: edited, replaced, created or deleted."""
    while True:
        found, seen = await _next(seen, interval, settle)
        yield found


async def _next(seen: Stamps, interval: float, settle: float) -> tuple[frozenset[Path], Stamps]:
    """What changes next, and the stamps after it."""
    while True:
        await anyio.sleep(interval)
        now = await _still(seen, settle)
        found = changed(seen, now)
        if found:
            return found, now
        seen = now


async def _still(seen: Stamps, settle: float) -> Stamps:
    """The stamps once they stop changing."""
    now = await _look(seen)
    for _ in range(_LONGEST_BURST if changed(seen, now) else 0):
        await anyio.sleep(settle)
        later = await _look(seen)
        if not changed(now, later):
            break
        now = later
    return now


async def _look(files: Stamps) -> Stamps:
    return await anyio.to_thread.run_sync(partial(stamps_of, tuple(files)), abandon_on_cancel=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload:
    """What came of a change that matters."""

    loaded: Loaded
    """The settings in force from now on: the new ones, or the old where `refused`."""
    refused: tuple[Issue, ...] = ()
    """Why the change was not taken over; empty where it was."""


@dataclass(slots=True, kw_only=True)
class Reloading:
    """Keeps settings up to date. Iterate `changes()` once, and read `loaded` at any time."""

    loaded: Loaded
    again: Callable[[Loaded], Loaded]
    """Reads everything anew without raising, given what is in use now; runs in a thread."""
    interval: float = 1.0
    settle: float = 0.2
    _refused: tuple[Issue, ...] = field(default=(), init=False)

    async def changes(self) -> AsyncGenerator[Reload, None]:
        """Each change that matters. A refusal is told once, however often the file is saved with the same fault."""
        seen = self.loaded.stamps
        while True:
            await _next(seen, self.interval, self.settle)
            try:
                fresh = await anyio.to_thread.run_sync(self.again, self.loaded, abandon_on_cancel=True)
            except Exception as error:  # noqa: BLE001 - a file that breaks a reader must not end the watching
                seen = await _look(seen)
                told = self._failed(error)
            else:
                seen = fresh.stamps
                told = self._taken(fresh)
            if told is not None:
                yield told

    def _failed(self, error: Exception) -> Reload | None:
        refused = (Issue(severity="error", message=f"the settings cannot be read: {type(error).__name__}"),)
        before, self._refused = self._refused, refused
        return None if refused == before else Reload(loaded=self.loaded, refused=refused)

    def _taken(self, fresh: Loaded) -> Reload | None:
        refused = _refusals(fresh)
        before, self._refused = self._refused, refused
        if refused:
            return None if refused == before else Reload(loaded=self.loaded, refused=refused)
        is_new = fresh.settings != self.loaded.settings
        self.loaded = fresh
        return Reload(loaded=fresh) if is_new else None


def _refusals(fresh: Loaded) -> tuple[Issue, ...]:
    """Errors, and files of other programs that nobody could read just now: their servers must not vanish for a typo."""
    unread = (issue for issue in fresh.issues if issue.severity == "problem" and issue.file in fresh.unread)
    return (*fresh.errors, *unread)
