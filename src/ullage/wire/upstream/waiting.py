"""What is known of a request while its answer is awaited?

How long the server has been silent, when the caller's patience ends, and what is to be told to the caller before the
answer is. It neither sends nor reads messages.
"""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ullage.tool import Asked, Progress

__all__ = ["Answer", "Waiting"]

Answer = dict[str, Any]

_UNTOLD = 256
"""How many notifications are kept for a caller who is slower than the server; older ones are let go."""
_LAST_WORDS = 1.0
"""Seconds in which what came before the answer is still told before it."""


@dataclass(slots=True, eq=False, kw_only=True)
class Waiting:
    """A request and its answer to come."""

    number: int | str
    method: str
    asked: Asked | None
    """On whose behalf; None for what we want to know ourselves."""
    answer: asyncio.Future[Answer]
    silence: float
    """Seconds without a sign of life after which it is given up; infinite for never."""
    heard: float
    """When the server last gave a sign of life."""
    progress: Progress | None = None
    cancellable: bool = True
    questions: int = 0
    """How many things the server has asked in the middle of it; while it waits for them it is not silent."""
    _untold: deque[Callable[[], Awaitable[None]]] = field(default_factory=lambda: deque(maxlen=_UNTOLD))
    _telling: asyncio.Task[None] | None = None

    @property
    def due(self) -> float:
        """When it is given up, on the event loop's clock, unless the server gives a sign of life before."""
        return min(self.heard + self.silence, self._deadline())

    def find_overdue(self, now: float) -> str | None:
        """Why it is to be given up by now; None where it is not."""
        if self.questions:
            self.heard = now
        if now >= self._deadline():
            return "its deadline passed"
        if now >= self.heard + self.silence:
            return f"the server gave no sign of life for {self.silence:g} s"
        return None

    def _deadline(self) -> float:
        return math.inf if self.asked is None or self.asked.deadline is None else self.asked.deadline

    def progressed(self, params: dict[str, Any]) -> None:
        """Tells the caller how far it is, where the caller wants to know and the server says it in numbers."""
        progress, done, total, word = self.progress, params.get("progress"), params.get("total"), params.get("message")
        if progress is not None and isinstance(done, int | float):
            of = total if isinstance(total, int | float) else None
            self.tell(lambda: progress(done, of, word if isinstance(word, str) else None))

    def tell(self, one: Callable[[], Awaitable[None]]) -> None:
        """Tells the caller something, in order, without holding up whoever reads the server's messages."""
        self._untold.append(one)
        if self._telling is None:
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def _tell(self) -> None:
        while self._untold:
            # A caller who is gone, or who fails at hearing, must not cost the server's other callers anything.
            with suppress(Exception):
                await self._untold.popleft()()
        self._telling = None

    async def told(self) -> None:
        """Waits, bounded, until what came before the answer has been told."""
        telling = self._telling
        if telling is not None:
            await asyncio.wait({telling}, timeout=_LAST_WORDS)

    def end(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
        if self.answer.done() and not self.answer.cancelled():
            # Looked at, so that the event loop does not report a failure that came as the caller was leaving.
            self.answer.exception()
