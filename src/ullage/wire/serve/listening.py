"""How are HTTP connections taken, and ended?

By uvicorn, with bounds that it lacks: a connection whose request does not come is closed, and it ends when it is told
to, not by a signal of its own. What is answered is not known here.
"""

import asyncio
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import anyio
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Listening"]

_FAREWELL = 1.0
"""Seconds in which open requests may end when the server does."""
_CUT_OFF = 5
"""Seconds after which uvicorn ends what even being cut off did not."""
_HEADERS_WITHIN = 10.0
"""Seconds in which a request's headers must have come since its first byte, or since the connection was made."""


class _Prompt(H11Protocol):
    """A connection that is closed where nobody says what he wants: otherwise whoever opens many and says little keeps
    everybody else out."""

    headers_within = _HEADERS_WITHIN
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        if self._waiting is None and (before is None or before.response_complete):  # pyright: ignore[reportUnnecessaryComparison]
            self._wait()
        super().data_received(data)
        if self.cycle is not before:
            self._wait_no_longer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_longer()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.headers_within, self.transport.close)

    def _wait_no_longer(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs the process."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class Listening:
    """Takes connections for an application whose open requests `cut_off` ends."""

    def __init__(self, application: ASGIApp, cut_off: Callable[[], None], *, most_connections: int) -> None:
        settings: dict[str, Any] = {
            "lifespan": "on",
            "ws": "none",
            "http": _Prompt,
            "log_level": "warning",
            "log_config": None,
        }
        self._server = _Server(
            uvicorn.Config(
                application, limit_concurrency=most_connections, timeout_graceful_shutdown=_CUT_OFF, **settings
            )
        )
        self._cut_off = cut_off

    async def serve(self, bound: socket.socket, told_to_end: anyio.Event) -> None:
        """Until told to end, when open requests are given a moment, or cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._end_when_told, told_to_end)
            # Left to uvicorn, what is cut off says so with a traceback.
            with anyio.CancelScope(shield=True):
                await self._server.serve(sockets=[bound])
            tasks.cancel_scope.cancel()

    async def _end_when_told(self, told_to_end: anyio.Event) -> None:
        try:
            await told_to_end.wait()
            self._server.should_exit = True
            await anyio.sleep(_FAREWELL)
        finally:
            self._server.should_exit = True
            self._cut_off()
