"""Graceful shutdown of a server: open requests finish within the grace, the rest are answered with an error."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from ullage.gateway import OpenCalls

__all__ = ["Activity", "Shutdown", "finish_requests"]

_ANSWER_SECONDS = 1.0
"""Time for the errors of requests that were ended to be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shutdown:
    """How and when a server is told to end."""

    told: anyio.Event = field(default_factory=anyio.Event)
    """Set by whoever wants the server to end."""
    grace: Callable[[], float] = lambda: 5.0
    """Seconds that open requests may still take, asked for when the server is told to end."""
    end_calls: Callable[[], None] = lambda: None
    """Ends the calls in the source with an error, which then bears the same figures as any other reply."""


@dataclass(slots=True)
class Activity:
    """The requests that a server is answering."""

    requests: OpenCalls = field(default_factory=OpenCalls)
    streams: int = 0
    """Open `subscriptions/listen` requests, which have no answer to wait for."""


async def finish_requests(wait_idle: Callable[[], Awaitable[None]], activity: Activity, shutdown: Shutdown) -> None:
    """Wait until all requests are answered; after the grace, have the rest answered with an error.

    Args:
        wait_idle: Returns when every request has been answered.
    """
    with anyio.move_on_after(shutdown.grace()):
        return await wait_idle()
    shutdown.end_calls()
    with anyio.move_on_after(_ANSWER_SECONDS):
        return await wait_idle()
    activity.requests.end()
    with anyio.move_on_after(_ANSWER_SECONDS):
        await wait_idle()
    return None
