"""How does a client hear that a model is still writing?

Every half second at most, and only where something came: how many characters there are so far. Never the text itself,
which may yet be thrown away.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from ullage.tool import Progress

from .attempt import Hear
from .exchange import Event

__all__ = ["telling"]

_PAUSE = 0.5


@dataclass(slots=True)
class _Heard:
    characters: int = 0

    def hear(self, event: Event) -> None:
        self.characters += len(event.text)


@asynccontextmanager
async def telling(progress: Progress | None) -> AsyncGenerator[Hear]:
    heard = _Heard()
    if progress is None:
        yield heard.hear
        return
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_tell, heard, progress)
        try:
            yield heard.hear
        except Exception as error:  # noqa: BLE001 - raised again below: a task group would wrap it
            failure = error
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _tell(heard: _Heard, progress: Progress) -> None:
    told = 0
    while True:
        await anyio.sleep(_PAUSE)
        if heard.characters > told:
            told = heard.characters
            await progress(float(told), None, f"{told:,} characters")
