"""Work in the background that belongs to one server or client and must not end that of the others."""

import logging
from collections.abc import Awaitable, Callable

__all__ = ["QUIET", "Work", "guarded"]

_log = logging.getLogger(__name__)

QUIET = 0.5
"""Seconds after which something is loaded that nobody has asked for yet."""

Work = Callable[[], Awaitable[None]]


async def guarded(work: Work) -> None:
    try:
        await work()
    except Exception:  # noqa: BLE001 - it belongs to one server or client, and must not end the work of the others
        _log.exception("something went wrong in the background")
