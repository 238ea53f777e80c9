"""Where does the choice between direct and search wait for the next start?

With the forms of definitions, from which it follows as they do: a choice that is lost is made again.
"""

from collections.abc import Awaitable, Callable, Iterable

import anyio.to_thread

from ullage.gateway import Decision, StoredForms
from ullage.tool import JsonObject

__all__ = ["StoredSurfaces"]


class StoredSurfaces:
    """Decisions in memory, read once and written behind."""

    def __init__(self, kept: StoredForms, spawn: Callable[[Callable[[], Awaitable[None]]], None]) -> None:
        self._kept = kept
        self._spawn = spawn
        self._decisions: dict[str, Decision] = {}
        self._unsaved: dict[str, JsonObject] = {}

    async def load(self, keys: Iterable[str]) -> None:
        found = await anyio.to_thread.run_sync(self._kept.load, list(keys))
        read = ((key, _read(said)) for key, said in found.items())
        self._decisions |= {key: decision for key, decision in read if decision is not None}

    def recall(self, key: str) -> Decision | None:
        return self._decisions.get(key)

    def remember(self, key: str, decision: Decision) -> None:
        if self._decisions.get(key) == decision:
            return
        self._decisions[key] = decision
        self._unsaved[key] = {
            "surface": decision.surface,
            "reason": decision.reason,
            "configuration": decision.configuration,
        }
        self._spawn(self.save)

    async def save(self) -> None:
        """Writes what is not yet written; also to be called at the end, which may come before the background does."""
        unsaved = dict(self._unsaved)
        if unsaved:
            await anyio.to_thread.run_sync(self._kept.save, unsaved)
        self._unsaved = {key: said for key, said in self._unsaved.items() if unsaved.get(key) is not said}


def _read(said: JsonObject) -> Decision | None:
    surface, reason, configuration = (said.get(key) for key in ("surface", "reason", "configuration"))
    if surface not in ("direct", "search") or not isinstance(reason, str) or not isinstance(configuration, str):
        return None
    return Decision(surface="direct" if surface == "direct" else "search", reason=reason, configuration=configuration)
