"""What is done while nobody waits for it?

Work that belongs to one server or client and must not end that of the others, and what is better loaded before it is
asked for.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable

import anyio
import anyio.to_thread

from ullage.gateway import ASSUMED
from ullage.models import DEFAULT_MODEL

from .counting import meter

__all__ = ["QUIET", "Work", "guarded", "load_vocabularies"]

_log = logging.getLogger(__name__)

QUIET = 0.5
"""Seconds after which something is loaded that nobody has asked for yet."""

Work = Callable[[], Awaitable[None]]


async def load_vocabularies(models: Iterable[str | None]) -> None:
    """Of these models, of those that are counted by where none is named, and of that which `count-tokens` takes."""
    for model in dict.fromkeys((*filter(None, models), ASSUMED.counted_as, DEFAULT_MODEL)):
        # A client that starts us waits for its first answers; loading would take the interpreter from them.
        await anyio.sleep(QUIET)
        await anyio.to_thread.run_sync(meter().count, "ready", model)


async def guarded(work: Work) -> None:
    try:
        await work()
    except Exception:  # noqa: BLE001 - it belongs to one server or client, and must not end the work of the others
        _log.exception("something went wrong in the background")
