"""Which of the two surfaces do clients get, and for how long does that stand?

A decision is made when a list is first asked for, and stands while the configuration does, also over starts. Only a
catalogue that is shown directly is looked at again when it changes, and not even that once a client was told that it
is: what a client reads about the tools and what it is then listed must say the same. How the choice is made, `surface`
knows.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from ..merge.view import View
from .settings import FindSettings
from .surface import Decision, Surface, SurfaceMemory, decide

__all__ = ["Standing"]


@dataclass(slots=True, kw_only=True)
class Standing:
    memory: SurfaceMemory
    weigh: Callable[[View], Awaitable[int]]
    """What all definitions of a view weigh."""
    window: Callable[[], int]
    decided: Decision | None = None
    _seen: str = ""
    """The revision of the view that it was last held against."""
    _promised: str | None = None
    """The configuration under which a client was told which it is."""

    def surface(self, settings: FindSettings) -> Surface:
        """As decided; before that, as the settings or memory have it."""
        if settings.mode != "auto":
            return settings.mode
        kept = self._kept(settings)
        return kept.surface if kept else "search"

    def promise(self, settings: FindSettings) -> None:
        """A client is told which it is: from now on it stands until the configuration changes."""
        if self.decided is None:
            said = Decision(surface=self.surface(settings), reason="a client was told so", certain=False)
            self.decided = replace(said, configuration=settings.configuration)
        self._promised = settings.configuration

    async def decide(self, view: View, settings: FindSettings) -> Surface:
        kept = self._kept(settings)
        if kept is None or not self._stands(kept, view, settings):
            kept = await self._anew(view, settings, kept)
        self.decided, self._seen = kept, view.revision
        return kept.surface

    def _kept(self, settings: FindSettings) -> Decision | None:
        return self.decided or self.memory.recall(settings.key)

    def _stands(self, kept: Decision, view: View, settings: FindSettings) -> bool:
        if settings.mode != "auto":
            return kept.surface == settings.mode
        if kept.configuration != settings.configuration:
            return False
        settled = self._seen == view.revision or self._promised == settings.configuration
        return settled or kept.surface == "search" or bool(view.missing)

    async def _anew(self, view: View, settings: FindSettings, kept: Decision | None) -> Decision:
        decision = decide(
            settings.mode,
            catalogue=None if view.missing else await self.weigh(view),
            window=self.window(),
            share=settings.direct_below,
            previous=kept.surface if kept else None,
        )
        decision = replace(decision, configuration=settings.configuration)
        if decision.certain and settings.mode == "auto":
            self.memory.remember(settings.key, decision)
        return decision
