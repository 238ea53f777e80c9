"""HTTP connections: uvicorn, with time limits that it lacks.

A connection whose request headers do not come, or whose request body trickles, is closed. The server ends when it is
told to, not by signals of its own.
"""

import asyncio
import math
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import anyio
import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from .front import Front
from .shutdown import Shutdown

__all__ = ["Listening"]

_CUT_OFF = 5
"""Seconds after the grace in which uvicorn ends what even being cut off did not."""
_REQUEST_WITHIN = 10.0
"""Seconds in which a request's headers must have come, and once more for its body."""
_BODY_RATE = 16_384
"""Bytes of a body that give it one more second: a large one may take as long as it keeps flowing."""
_TIMED_OUT = b"the request body did not arrive in time"


class _TimedProtocol(H11Protocol):
    """A connection that is closed when a request does not arrive in time: slow clients cannot keep others out."""

    request_within = _REQUEST_WITHIN
    body_rate = _BODY_RATE
    _timer: asyncio.TimerHandle | None = None
    _body_deadline: float | None = None
    """When the body that is arriving must be complete; None where none is."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._timer = self.loop.call_later(self.request_within, self.transport.close)

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        if self._timer is None and (before is None or before.response_complete):  # pyright: ignore[reportUnnecessaryComparison]
            self._timer = self.loop.call_later(self.request_within, self.transport.close)
        super().data_received(data)
        if self.conn.their_state is h11.SEND_BODY:
            if self._body_deadline is None or self.cycle is not before:
                self._stop_timer()
                self._body_deadline = self.loop.time() + self.request_within
                self._timer = self.loop.call_at(self._body_deadline, self._check_body)
            self._body_deadline += len(data) / self.body_rate
        elif self._body_deadline is not None or self.cycle is not before:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _stop_timer(self) -> None:
        self._body_deadline = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_body(self) -> None:
        """Close the connection when its body is overdue. Time in which we do not read it does not count."""
        assert self._body_deadline is not None
        if self.flow.read_paused:
            self._body_deadline = self.loop.time() + self.request_within
        if self.loop.time() < self._body_deadline:
            self._timer = self.loop.call_at(self._body_deadline, self._check_body)
            return
        if self.conn.our_state is h11.SEND_RESPONSE:
            headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close")]
            events = (
                h11.Response(status_code=408, headers=headers, reason="Request Timeout"),
                h11.Data(data=_TIMED_OUT),
                h11.EndOfMessage(),
            )
            for event in events:
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs the process."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class Listening:
    """Takes connections for the application until it is told to end."""

    def __init__(self, front: Front, *, most_connections: int) -> None:
        settings: dict[str, Any] = {
            "lifespan": "on",
            "ws": "none",
            "http": _TimedProtocol,
            "log_level": "warning",
            "log_config": None,
        }
        self._front = front
        self._config = uvicorn.Config(front.application(), limit_concurrency=most_connections, **settings)
        self._server = _Server(self._config)

    async def serve(self, bound: socket.socket, shutdown: Shutdown) -> None:
        """Serve until told to end, when open requests are given their grace, or cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._end_when_told, shutdown)
            # Left to uvicorn, what is cut off says so with a traceback.
            with anyio.CancelScope(shield=True):
                await self._server.serve(sockets=[bound])
            tasks.cancel_scope.cancel()

    async def _end_when_told(self, shutdown: Shutdown) -> None:
        try:
            await shutdown.told.wait()
            self._config.timeout_graceful_shutdown = math.ceil(shutdown.grace()) + _CUT_OFF
            self._server.should_exit = True
            await self._front.finish(shutdown)
        finally:
            self._config.timeout_graceful_shutdown = self._config.timeout_graceful_shutdown or _CUT_OFF
            self._server.should_exit = True
            self._front.cut_off()
