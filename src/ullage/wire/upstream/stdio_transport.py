"""Stdio transport to an MCP server that runs as a child process.

The server is one process group and exchanges messages of one line each. Anything else on its output is skipped and
counted. Its standard error is read all the time, and the end of it is kept for the user: bounded whatever the amount,
and with secrets removed where it is shown. The event loop's own pipes are used without streams or tasks in between,
since every call passes through here. This module neither interprets messages nor decides on restarts.

Launchers such as `npx` and `uvx` start the real server as a child, so a server is started in a group of its own and the
group is signalled, never the leader alone. This is the only file with platform-specific code. Its Windows part is
written from the documentation and untested.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread

from ullage.errors import SourceFailed
from ullage.gateway import Server
from ullage.processes import (
    Process,
    Registration,
    find_executable,
    find_processes,
    is_running,
    process_watcher,
    read_processes,
    signal_processes,
)

from ..jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Line,
    LineReader,
    Message,
    ReadLine,
    TooDeep,
    TooLong,
    encode_ascii,
    encode_pieces,
    error_response,
    is_large,
)
from .child_env import DEEPEST, depth, redacted, secrets_of
from .rpc_peer import UNREACHABLE, Receiver

__all__ = ["Pipe", "Tail", "ask_to_end", "is_alive", "kill", "open_pipe", "own_group"]


_TASKKILL = os.path.join(os.environ.get("SYSTEMROOT", "C:\\Windows"), "System32", "taskkill.exe")  # noqa: PTH118
"""By its path: Windows would look for a program of that name in the working folder first."""


def own_group() -> dict[str, Any]:
    """Return the options that start a process as the leader of its own group."""
    if sys.platform == "win32":  # pragma: no cover
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def ask_to_end(leader: int) -> None:
    if sys.platform == "win32":  # pragma: no cover
        with suppress(OSError):
            os.kill(leader, signal.CTRL_BREAK_EVENT)
    else:
        _signal(leader, signal.SIGTERM)


def kill(leader: int) -> None:
    if sys.platform == "win32":  # pragma: no cover
        with suppress(OSError):
            subprocess.Popen([_TASKKILL, "/T", "/F", "/PID", str(leader)])
    else:
        _signal(leader, signal.SIGKILL)


def is_alive(leader: int) -> bool:
    """Return whether any process of the group is left; on Windows, where this cannot be known, False."""
    if sys.platform == "win32":  # pragma: no cover
        return False
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # A process of the group exists that has changed to another user.
        return True
    return True


if sys.platform != "win32":

    def _signal(leader: int, number: signal.Signals) -> None:
        # The group may be gone, which is the purpose; one that belongs to another user by now cannot be signalled.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, number)


_KEPT = 64 * 1024
_LAST_LINE = 4096


@dataclass(slots=True)
class Tail:
    """The end of a stream of bytes."""

    _bytes: bytearray = field(default_factory=bytearray)

    def add(self, chunk: bytes) -> None:
        self._bytes += chunk[-_KEPT:]
        if len(self._bytes) > 2 * _KEPT:
            del self._bytes[:-_KEPT]

    def text(self) -> str:
        return bytes(self._bytes[-_KEPT:]).decode("utf-8", "replace")

    def last_line(self) -> str:
        """Return the last line that is not blank, or the end of it."""
        lines = bytes(self._bytes[-_LAST_LINE:]).decode("utf-8", "replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return said[-1] if said else ""


_UNREAD = 8 * 1024 * 1024
"""Unread bytes beyond which nothing more is written to a server that does not read its input."""
_LINE = 64 * 1024 * 1024
_QUEUED = 256
"""Maximum messages queued after a large one."""
_PATIENCE = 1.0
"""Seconds for a server to exit after its input was closed, and again after SIGTERM."""
_HASTE = 0.5
"""The same limit when all of Ullage is exiting."""
_SHOWN = 300
"""Maximum characters of one line, for the user."""
_LINGERING = 0.5
"""Seconds between a server's exit and the end of its output, in either order, that are not reported."""
_STEP = 0.02


class Pipe(asyncio.SubprocessProtocol):
    """A running server process."""

    def __init__(
        self,
        receiver: Receiver,
        secrets: tuple[str, ...],
        patience: Callable[[], float],
        registered: Registration,
    ) -> None:
        self.process_id = 0
        self._registered = registered
        self._patience = patience
        self._receiver = receiver
        self._transport: asyncio.SubprocessTransport | None = None
        self._input: asyncio.WriteTransport | None = None
        self._output: asyncio.ReadTransport | None = None
        self._lines = LineReader(_read, self._take, longest=_LINE)
        self._queue: deque[Message] = deque()
        """Messages queued after a large one that is being encoded."""
        self._writing: asyncio.Task[None] | None = None
        self._tail = Tail()
        self._secrets = secrets
        self._is_understood = False
        self._strays = 0
        self._first_stray = ""
        self._output_ended = False
        self._exited = asyncio.Event()
        self._closed = asyncio.Event()

    def post(self, message: Message, headers: Mapping[str, str] | None = None) -> bool:
        """Write a message; return False where the server no longer reads."""
        del headers
        if self._input is None or not self._takes_more():
            return False
        if self._writing is None and not is_large(message):
            # In ASCII, since not every server reads its input as UTF-8.
            self._input.write(encode_ascii(message).encode("ascii") + b"\n")
            return True
        if len(self._queue) >= _QUEUED:
            return False
        self._queue.append(message)
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write_queued())
        return True

    def _takes_more(self) -> bool:
        is_open = self._input is not None and not self._input.is_closing()
        return is_open and cast("asyncio.WriteTransport", self._input).get_write_buffer_size() <= _UNREAD

    async def _write_queued(self) -> None:
        """Write queued messages in order; they are encoded in a worker thread, since a large one takes long."""
        try:
            while self._queue:
                message = self._queue.popleft()
                if not self._takes_more():
                    self._receiver.unsent(message.get("id"), "takes no more messages")
                    continue
                try:
                    pieces = await anyio.to_thread.run_sync(partial(encode_pieces, message, is_ascii=True))
                except (ValueError, TypeError) as error:
                    reason = f"`{message.get('method')}` cannot be written as JSON: {error}"
                    self._receiver.received(error_response(message.get("id", 0), INVALID_PARAMS, reason))
                    continue
                for piece in (*pieces, b"\n"):
                    if self._input is None or self._input.is_closing():
                        return
                    self._input.write(piece)
        finally:
            self._writing = None

    def stderr_tail(self) -> str:
        return redacted(self._tail.text(), self._secrets)

    def last_words(self) -> str:
        return self._shown(self._tail.last_line())

    def printed(self) -> str:
        """Return the first line that was not a message, for a server that has sent no message."""
        return "" if self._is_understood else self._shown(self._first_stray)

    def _shown(self, line: str) -> str:
        # Cut after masking, because half a secret would not be recognised as one.
        return redacted(line, self._secrets)[:_SHOWN]

    def notes(self) -> tuple[str, ...]:
        if not self._strays:
            return ()
        first = self._shown(self._first_stray)
        return (f"printed {self._strays} lines on standard output that are no messages; the first: {first}",)

    def refused(self) -> str | None:
        return None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._input = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))
        if sys.platform == "win32":  # pragma: no cover
            self.output_opened(cast("asyncio.ReadTransport", self._transport.get_pipe_transport(1)))
        self.process_id = self._transport.get_pid()

    def output_opened(self, output: asyncio.ReadTransport) -> None:
        self._output = output
        self._lines.pause, self._lines.resume = output.pause_reading, output.resume_reading

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._tail.add(data)
        else:
            self.output_received(data)

    def output_received(self, data: bytes) -> None:
        try:
            self._lines.feed(data)
        except TooLong:
            self._receiver.lost(f"sent a line longer than {_LINE >> 20} MiB")
            kill(self.process_id)

    def _take(self, line: Line, message: object) -> None:
        if message is not None and self._receiver.received(message):
            self._is_understood = True
        elif line and not (line[:4096].isspace() and line.isspace()):
            self._strays += 1
            self._first_stray = self._first_stray or line[:4096].decode("utf-8", "replace").strip()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        del exc
        if fd == 0:
            self._later("closed its input")
        elif fd == 1:
            self.output_closed()

    def output_closed(self) -> None:
        self._output_ended = True
        if self._exited.is_set():
            self._lose(self._end())
        else:
            self._later("closed its output")

    def process_exited(self) -> None:
        self._exited.set()
        if self._output_ended:
            self._lose(self._end())
        else:
            # Output before its exit is still to be read; a child that keeps the pipe open is not waited for.
            self._later(self._end())

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._closed.set()

    def _later(self, reason: str) -> None:
        asyncio.get_running_loop().call_later(_LINGERING, self._lose, reason)

    def _lose(self, reason: str) -> None:
        """Mark the connection as lost, once the lines received so far are delivered."""
        self._lines.finish(lambda: self._receiver.lost(reason))

    def _end(self) -> str:
        code = None if self._transport is None else self._transport.get_returncode()
        if code is not None and code < 0:
            return f"was killed by signal {-code}"
        return f"ended with exit status {code}"

    async def stop(self) -> None:
        """End the server's process group and all other processes it started: close its input, then SIGTERM, then
        SIGKILL."""
        outside: list[Process] = []
        try:
            with anyio.CancelScope(shield=True):
                outside = await self._find_outside_group()
                await self._end_gently(outside)
                # Again, for processes started meanwhile or left without a parent.
                outside += await self._find_outside_group()
        finally:
            # Also if the event loop itself is being torn down and waiting is no longer possible.
            kill(self.process_id)
            if outside:
                signal_processes(outside, signal.SIGKILL)
            self._lines.stop()
            if self._writing is not None:
                self._writing.cancel()
            if self._transport is not None:
                self._transport.close()
            if self._output is not None:
                self._output.close()
        with anyio.CancelScope(shield=True), anyio.move_on_after(_PATIENCE):
            await self._exited.wait()
            await self._closed.wait()

    async def _find_outside_group(self) -> list[Process]:
        """Return the server's processes that signals to its group do not reach; none without `/proc`."""
        registered = {self.process_id: self._registered.start_time}

        def find() -> list[Process]:
            found = find_processes(read_processes(), registered, self._registered.mark)
            return [process for process in found.values() if process.group != self.process_id]

        return await anyio.to_thread.run_sync(find)

    async def _end_gently(self, outside: list[Process]) -> None:
        if self._input is not None:
            self._input.close()
        with anyio.move_on_after(self._patience()):
            await self._exited.wait()
        if not is_alive(self.process_id) and not outside:
            return
        ask_to_end(self.process_id)
        signal_processes(outside, signal.SIGTERM)
        with anyio.move_on_after(self._patience()):
            while is_alive(self.process_id) or any(map(is_running, outside)):
                await anyio.sleep(_STEP)


class _Output(asyncio.Protocol):
    """A server's standard output."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._pipe.output_opened(cast("asyncio.ReadTransport", transport))

    def data_received(self, data: bytes) -> None:
        self._pipe.output_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._pipe.output_closed()


async def _start(pipe: Pipe, command: str, *arguments: str, **options: Any) -> None:  # noqa: ANN401 - of `Popen`
    """Start a server with its standard output on a pipe opened here.

    The event loop's own pipe delivers what it reads one turn later, which would slow down every call. On Windows such a
    pipe cannot be waited for.
    """
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":  # pragma: no cover
        await loop.subprocess_exec(lambda: pipe, command, *arguments, **options)
        return
    reading, writing = os.pipe()
    try:
        await loop.subprocess_exec(lambda: pipe, command, *arguments, stdout=writing, **options)
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    await loop.connect_read_pipe(lambda: _Output(pipe), os.fdopen(reading, "rb", 0))


@asynccontextmanager
async def open_pipe(
    server: Server,
    environment: Mapping[str, str],
    receiver: Receiver,
    *,
    patience: float = _PATIENCE,
    in_haste: Callable[[], bool] = lambda: False,
) -> AsyncGenerator[Pipe]:
    """Start the server; on exit from the context none of its processes is left."""
    # The server's environment, with a depth one greater than this process's.
    if depth(environment) - 1 > DEEPEST:
        raise SourceFailed(
            f"server `{server.name}` is not started: this Ullage was started by another, more than {DEEPEST} deep, as "
            "where a gateway is among its own servers",
            suggestion="take the gateway out of the servers that it reads from other programs' settings",
        )
    whole = {**environment, **server.environment}
    secrets = secrets_of(server, environment)
    command = _command(server, whole, secrets)
    cut_off = False

    def allowed() -> float:
        return min(patience, _HASTE) if cut_off or in_haste() else patience

    with process_watcher().registration() as registered:
        pipe = Pipe(receiver, secrets, allowed, registered)
        marked = {**whole, **registered.environment}
        try:
            # Not cancelled, and soon done: cancellation between start and `stop` would leave the server running.
            with anyio.CancelScope(shield=True):
                await _start(pipe, command, *server.arguments, env=marked, cwd=server.directory, **own_group())
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            raise SourceFailed(
                f"server `{server.name}` cannot be started: `{redacted(server.command or '', secrets)}`: {reason}"
            ) from error
        registered.started(pipe.process_id)
        try:
            yield pipe
        except asyncio.CancelledError:
            cut_off = True
            raise
        finally:
            await pipe.stop()


def _command(server: Server, environment: Mapping[str, str], secrets: tuple[str, ...]) -> str:
    """Return the program's path, by the search path that the server will have, which may differ from this process's."""
    if server.directory is not None and not Path(server.directory).is_dir():
        raise SourceFailed(
            f"server `{server.name}` cannot be started: there is no folder `{server.directory}`",
            suggestion="correct its `cwd` in the settings",
        )
    command = server.command or ""
    path = environment.get("PATH", os.defpath)
    is_place = Path(command).name != command
    if is_place:
        # A relative path, resolved against the folder that the server will run in.
        command = str((Path(server.directory or ".") / command).absolute())
    found = find_executable(command, path)
    if found is not None:
        return found
    if is_place:
        why = "is no program that may be run" if Path(command).exists() else "does not exist"
        hint = "mend its `command` in the settings, or make the file executable"
    else:
        why = f"was not found in the {len([one for one in path.split(os.pathsep) if one])} folders of its PATH"
        hint = "install it, or write its absolute path: a program with windows often has a shorter PATH"
    if " " in (server.command or "").strip():
        hint = "put arguments into `args`: `command` is the program alone"
    shown = redacted(server.command or "", secrets)
    raise SourceFailed(f"server `{server.name}` cannot be started: `{shown}` {why}", suggestion=hint)


def _read(line: Line, read: ReadLine) -> object:
    """Parse the message on a line; None where it is none."""
    if line[:1] not in (b"{", b"[") and line[:4096].lstrip(b"\xef\xbb\xbf \t\r")[:1] not in (b"{", b"["):
        return None
    try:
        return read(line)
    except TooDeep as error:
        if error.number is None:
            return None
        reason = "answered with something nested too deeply to be handed on"
        return error_response(cast("int | str", error.number), INTERNAL_ERROR, reason, {UNREACHABLE: reason})
    except ValueError:
        return None
