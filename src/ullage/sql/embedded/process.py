"""How is a worker process started, spoken to and ended?

One question at a time: frames in, frames out. It is ended by force whenever it is not known to be at rest, because
nothing else ends a call that an engine cannot interrupt. Untested on Windows, where ending by force is what ending is.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread
from anyio.streams.buffered import BufferedByteReceiveStream

from ullage.processes import process_watcher
from ullage.tool import Json

from .received import Nonsense, Received

__all__ = ["Gone", "Worker", "framed"]

_PROGRAM = Path(__file__).parent / "worker" / "__main__.py"
_PASSED_ON = ("TZ", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Of the environment: the time zone, and what an interpreter may need to start at all. The rest may hold secrets."""

_MOST = 64 << 20
"""Bytes of one frame."""
_AT_ONCE = 1 << 20
"""Bytes of a frame that is decoded without leaving the event loop."""
_REAPED = 1.0
"""Seconds that are waited for a killed process to be gone."""
_LEAVING = 1.0
"""The same for one that ends by itself, before it is killed."""


class Gone(Exception):
    """The process ended, or made no sense, in the middle of a question."""


def framed(message: Mapping[str, object]) -> bytes:
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return len(body).to_bytes(4, "big") + body


class Worker:
    def __init__(self, process: anyio.abc.Process, registration: contextlib.ExitStack) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._registration = registration
        """Has the process ended where Ullage is killed: one that is busy with a long query does not notice."""
        self._input = process.stdin
        self._output = BufferedByteReceiveStream(process.stdout)
        self._is_leaving = False
        """Whether it has stopped to speak, and is ending or has ended."""

    @classmethod
    async def start(cls) -> "Worker":
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        command = [sys.executable, "-I", str(_PROGRAM)]
        # Given up in the middle of its start, a process would belong to nobody.
        process = None
        with contextlib.ExitStack() as registration:
            registered = registration.enter_context(process_watcher().registration())
            environment |= registered.environment
            with anyio.CancelScope(shield=True):
                process = await anyio.open_process(command, env=environment, stderr=subprocess.DEVNULL)
            assert process is not None
            registered.started(process.pid)
            return cls(process, registration.pop_all())

    @property
    def process_id(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Below zero where a signal ended it; None while it runs."""
        return self._process.returncode

    async def exchange(self, frames: Iterable[bytes], *, most: int) -> Received:
        """Asks, and reads the answer up to `most` bytes."""
        # A worker that failed before it was asked has said why; that can still be read.
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            for frame in frames:
                await anyio.lowlevel.checkpoint()
                await self._input.send(frame)
        received, size = Received(), 0
        while not received.is_whole:
            body = await self._frame()
            size += len(body)
            if size > most:
                raise Gone("more than was asked for")
            await _take(received, body)
        return received

    async def _frame(self) -> bytes:
        try:
            length = int.from_bytes(await self._output.receive_exactly(4), "big")
            if length > _MOST:
                raise Gone("a frame without end")
            return await self._output.receive_exactly(length)
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            self._is_leaving = True
            raise Gone("no more frames") from error

    async def end(self) -> None:
        """By force, and at once; what is left of it is waited for, whoever gives up meanwhile."""
        with self._registration:
            if self._is_leaving:
                # How it ended is told to whoever waits for it; to kill it first would take that from them.
                with anyio.move_on_after(_LEAVING, shield=True):
                    await self._process.wait()
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            with anyio.move_on_after(_REAPED, shield=True):
                await self._process.aclose()


async def _take(received: Received, body: bytes) -> None:
    try:
        frame: Json = json.loads(body) if len(body) < _AT_ONCE else await anyio.to_thread.run_sync(json.loads, body)
        received.take(frame)
    except (ValueError, Nonsense) as error:
        raise Gone("nonsense") from error
