"""Starts worker processes and sends them requests.

A `Worker` handles one request at a time: frames in, frames out. It is killed whenever it may still be busy, because
nothing else ends a call that an engine cannot interrupt. Untested on Windows, where killing is the normal way to end a
process.

`Workers` is a pool of processes that read the same file, started when needed and kept warm; each ends by itself after
some time without a request. A request that is late, cancelled or crashed ends its process, and the next request gets
another.

`Received` assembles the frames of an answer. A worker reads untrusted files, so its output is validated like any other
input: a frame that does not fit raises `Nonsense`.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import cast

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread
from anyio.streams.buffered import BufferedByteReceiveStream

from ullage.errors import DeadlinePassed, QueryFailed, SourceFailed, UllageError
from ullage.processes import process_watcher
from ullage.table import Cell, Row, decode_pieces, read_pieces
from ullage.tool import Json

from ..database import Answer, Limits

__all__ = [
    "MEMORY",
    "Failed",
    "Frames",
    "Gone",
    "Nonsense",
    "Received",
    "Worker",
    "Workers",
    "closed_error",
    "crash_error",
    "failure",
    "frame_message",
    "late",
]


class Nonsense(Exception):
    """Raised for a frame that no worker of Ullage sends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The error that a worker sent."""

    kind: str
    code: str | None
    text: str


@dataclass(slots=True, kw_only=True)
class Received:
    """The answer of a worker, assembled from its frames."""

    columns: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list[Row])
    more: bool = False
    cut_cells: int = 0
    value: Json = None
    failed: Failed | None = None
    is_farewell: bool = False
    """Whether the worker had ended for lack of requests, without reading this one."""
    is_whole: bool = False

    @property
    def ends_worker(self) -> bool:
        return self.is_farewell or (self.failed is not None and self.failed.kind == "memory")

    def take(self, frame: Json) -> None:
        """Add a frame; raise `Nonsense` if it does not fit."""
        if not isinstance(frame, dict):
            raise Nonsense("a frame that is no object")
        try:
            self._take(frame)
        except (KeyError, TypeError, ValueError, InvalidOperation) as error:
            raise Nonsense(f"a frame that does not fit: {type(error).__name__}") from error

    def _take(self, frame: Mapping[str, Json]) -> None:
        if "rows" in frame:
            self.rows.extend(tuple(_cell(cell) for cell in row) for row in _lists(frame["rows"]))
            return
        if "columns" in frame:
            self.columns = tuple(str(name) for name in _list(frame["columns"]))
            return
        self.is_whole = True
        if "failed" in frame:
            code = frame["code"]
            self.failed = Failed(
                kind=str(frame["failed"]), code=None if code is None else str(code), text=str(frame["text"])
            )
        elif "value" in frame:
            self.value = frame["value"]
        elif "bye" in frame:
            self.is_farewell = True
        else:
            self.more, self.cut_cells = bool(frame["more"]), int(cast("int", frame["cut_cells"]))

    def answer(self) -> Answer:
        return Answer(columns=self.columns, rows=tuple(self.rows), more=self.more, cut_cells=self.cut_cells)


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _lists(value: Json) -> list[list[Json]]:
    return [_list(inner) for inner in _list(value)]


def _cell(value: Json) -> Cell:
    """Return a cell; an object is always a mark, of a decimal or of an object before transfer."""
    if not isinstance(value, dict):
        return value
    return Decimal(str(value["decimal"])) if "decimal" in value else value["json"]


_PROGRAM = Path(__file__).parent / "worker" / "__main__.py"
_PASSED_ON = ("TZ", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Environment variables passed on: the time zone, and what an interpreter may need to start. Others may be secrets."""

_MOST = 64 << 20
"""Maximum bytes of one frame."""
_AT_ONCE = 1 << 20
"""Maximum bytes of a frame that is decoded in the event loop."""
_DEEPEST = 500
"""Maximum nesting of a frame."""
_REAPED = 1.0
"""Seconds to wait for a killed process to end."""
_LEAVING = 1.0
"""Seconds to wait for a process that ends by itself, before it is killed."""


class Gone(Exception):
    """Raised if the process ended, or sent an invalid frame, during a request."""


def frame_message(message: Mapping[str, object]) -> bytes:
    """Return a message as a frame."""
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return len(body).to_bytes(4, "big") + body


class Worker:
    """A worker process."""

    def __init__(self, process: anyio.abc.Process, registration: contextlib.ExitStack) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._registration = registration
        """Ends the process if Ullage is killed, which a process busy with a long query does not notice."""
        self._input = process.stdin
        self._output = BufferedByteReceiveStream(process.stdout)
        self._is_leaving = False
        """Whether its output has ended, so that it is ending or has ended."""

    @classmethod
    async def start(cls) -> "Worker":
        """Start a process."""
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        command = [sys.executable, "-I", str(_PROGRAM)]
        # A process cancelled while it starts would otherwise have no owner to end it.
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
        """Exit status, negative if a signal ended the process; None while it runs."""
        return self._process.returncode

    async def exchange(self, frames: Iterable[bytes], *, most: int) -> Received:
        """Send a request, and read the answer up to `most` bytes."""
        # A worker that failed before the request has sent the reason, which can still be read.
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
        """Kill the process at once, and wait for it to end even if the caller is cancelled."""
        with self._registration:
            if self._is_leaving:
                # Wait first, because killing the process would replace the exit status that explains how it ended.
                with anyio.move_on_after(_LEAVING, shield=True):
                    await self._process.wait()
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            with anyio.move_on_after(_REAPED, shield=True):
                await self._process.aclose()


async def _take(received: Received, body: bytes) -> None:
    try:
        frame: Json = json.loads(body) if len(body) < _AT_ONCE else await anyio.to_thread.run_sync(_read_frame, body)
        received.take(frame)
    except (ValueError, RecursionError, Nonsense) as error:
        raise Gone("nonsense") from error


def _read_frame(body: bytes) -> Json:
    """Parse a long frame in pieces: one call of the parser would block every thread."""
    return read_pieces(decode_pieces(body), _DEEPEST)


_ASK_LESS = "ask for less: narrow the WHERE, aggregate, or join on fewer rows"
_INSTALL = ": pip install "
"""Separates what is missing from what to install in a worker's message."""
_NOT_THERE = "there is no such file"
"""A worker's message for a missing file."""


def failure(failed: Failed, *, name: str, seconds: float) -> UllageError:
    """Return the error to raise for a worker's failure."""
    text = failed.text if failed.code is None else f"{failed.code}: {failed.text}"
    match failed.kind:
        case "deadline":
            return late(seconds)
        case "source":
            return _unreadable(name, text)
        case "memory":
            return QueryFailed(text, suggestion=_ASK_LESS)
        case _:
            return QueryFailed(text, suggestion="mend the statement and ask again")


def _unreadable(name: str, text: str) -> SourceFailed:
    why, install, package = text.partition(_INSTALL)
    suggestion = f"{_INSTALL}{package}".removeprefix(": ") if install else "look at the file, then ask again"
    if text == _NOT_THERE:
        suggestion = "check the path; it is taken from the folder of ullage.toml"
    return SourceFailed(f"`{name}` cannot be read: {why}", suggestion=suggestion)


def late(seconds: float) -> DeadlinePassed:
    return DeadlinePassed(
        f"the question was not answered within {round(seconds, 1) or seconds:g} s", suggestion=_ASK_LESS
    )


def crash_error(name: str, status: int | None) -> SourceFailed:
    return SourceFailed(
        f"the process that reads `{name}` ended in the middle of the question{_how(status)}",
        suggestion=f"the next question gets a new one; {_ASK_LESS}",
    )


def closed_error(name: str) -> SourceFailed:
    return SourceFailed(f"`{name}` is closed", suggestion="Ullage is ending, or the database left the configuration")


def _how(status: int | None) -> str:
    if status is None or status == 0:
        return ""
    if status > 0:
        return f" with status {status}"
    known = {number.value: number.name for number in signal.Signals}
    return f" by {known.get(-status, f'signal {-status}')}"


MEMORY = 1 << 30
"""Memory limit of one worker, in bytes."""

_GRACE = 0.2
"""Seconds after the deadline in which a worker may end a request by itself before it is killed."""
_SLACK = 64 << 20
"""Bytes of an answer besides rows; a description of ten thousand tables needs as many."""

Frames = Callable[[float], Iterable[bytes]]
"""Returns the frames of a request, given the seconds left; they are generated while they are sent."""


class Workers:
    """A pool of worker processes that read the same file."""

    def __init__(
        self, hello: Mapping[str, object], *, name: str, limits: Limits, memory: int = MEMORY, idle: float = 60.0
    ) -> None:
        """Configure the pool.

        Args:
            hello: the first message to each worker, which names what it reads.
            name: the database's name in messages.
            limits: limits of answers.
            memory: memory limit of one worker, in bytes.
            idle: seconds without a request after which a worker ends.
        """
        self._hello = frame_message({**hello, "memory": memory, "idle": idle})
        self._name = name
        self._bytes = limits.bytes
        self._turns = anyio.Semaphore(limits.concurrency)
        self._warm: list[Worker] = []
        self._is_closed = False

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Process ids of the idle workers."""
        return tuple(worker.process_id for worker in self._warm)

    async def ask(self, frames: Frames, seconds: float) -> Received:
        """Send a request and return the answer.

        Raises:
            QueryFailed: the statement failed.
            DeadlinePassed: no answer arrived in time.
            SourceFailed: the file cannot be read, or the worker crashed.
        """
        received = await self._receive_within(frames, seconds)
        if received.failed is not None:
            raise failure(received.failed, name=self._name, seconds=seconds)
        return received

    async def close(self) -> None:
        """End the idle workers; one that is busy ends after its answer."""
        self._is_closed = True
        while self._warm:
            await self._warm.pop().end()

    async def _receive_within(self, frames: Frames, seconds: float) -> Received:
        deadline = anyio.current_time() + seconds
        with anyio.CancelScope(deadline=deadline + _GRACE):
            async with self._turns:
                received = await self._exchange(frames, deadline)
                while received.is_farewell:
                    received = await self._exchange(frames, deadline)
                return received
        raise late(seconds)

    async def _exchange(self, frames: Frames, deadline: float) -> Received:
        if self._is_closed:
            raise closed_error(self._name)
        warm = await self._take_warm()
        worker = warm or await Worker.start()
        said = self._prepend_hello(frames, deadline, is_new=warm is None)
        try:
            received = await worker.exchange(said, most=self._bytes + _SLACK)
        except Gone as error:
            await worker.end()
            raise crash_error(self._name, worker.status) from error
        except BaseException:
            await worker.end()
            raise
        await self._keep(worker, received)
        return received

    async def _take_warm(self) -> Worker | None:
        """Return an idle worker that still runs; others may have been killed from outside."""
        while self._warm:
            worker = self._warm.pop()
            if worker.status is None:
                return worker
            await worker.end()
        return None

    async def _keep(self, worker: Worker, received: Received) -> None:
        if received.ends_worker or self._is_closed:
            await worker.end()
        else:
            self._warm.append(worker)

    def _prepend_hello(self, frames: Frames, deadline: float, *, is_new: bool) -> Iterable[bytes]:
        if is_new:
            yield self._hello
        yield from frames(max(0.0, deadline - anyio.current_time()))
