"""How is a server spoken to over standard input and output?

Nothing but protocol goes to standard output; whoever wants to say something to a person says it on standard error.
"""

import json
import os
import threading
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, cast

import anyio
from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server

from ullage.tool import Caller

from .profile import Profile
from .serve import Activity, Context, build_server, user_name

__all__ = ["serve_stdio"]

_CHUNK = 65_536
_PAUSE = 0.05
"""Seconds in which a request that was read is begun, or an answer that was made is written."""
_LONGEST_END = 60.0
"""Seconds for which what was asked is still answered when the input has ended: whoever asked may be gone for good."""


async def serve_stdio(profile: Profile, *, client: str | None = None) -> None:
    """Serves until standard input ends and what was asked is answered, or someone interrupts.

    The process is the session.
    """
    caller = Caller(principal=user_name(), session=uuid.uuid4().hex, client=client, model=profile.model)
    activity = Activity()

    def who_calls(_: Context) -> Caller:
        return caller

    server = build_server(profile.source, profile.identity, who_calls, activity)
    lines = _answered(_lines(_claim_input()), activity)
    async with stdio_server(stdin=cast("Any", lines)) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


async def _answered(lines: AsyncIterator[str], activity: Activity) -> AsyncIterator[str]:
    """The lines; their end comes only when what they asked has been answered, because the SDK then drops the rest."""
    async for line in lines:
        yield _joined(line)
    await anyio.sleep(_PAUSE)
    with anyio.move_on_after(_LONGEST_END):
        while activity.open:
            await anyio.sleep(_PAUSE)


def _joined(line: str) -> str:
    r"""The line without lone surrogates (`\ud800`), which are JSON but which the SDK drops a request for."""
    if "\\ud" not in line.lower():
        return line
    try:
        value = json.loads(line)
    except ValueError:
        return line
    written = json.dumps(value, ensure_ascii=False)
    return written.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _claim_input() -> int:
    """Standard input under a number of its own; what child processes find in its place is empty."""
    private = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return private


async def _lines(descriptor: int) -> AsyncIterator[str]:
    """The lines of a descriptor.

    A thread that nobody waits for reads them: with the SDK's own reader, Ctrl-C waits for one more line.
    """
    send, receive = anyio.create_memory_object_stream[bytes](0)
    threading.Thread(target=_pump, args=(descriptor, send, current_token()), daemon=True).start()
    parts: list[bytes] = []
    async with receive:
        async for chunk in receive:
            first, *more = chunk.split(b"\n")
            parts.append(first)
            for part in more:
                yield b"".join(parts).decode("utf-8", "replace")
                parts = [part]
    if any(parts):
        yield b"".join(parts).decode("utf-8", "replace")


def _pump(descriptor: int, send: MemoryObjectSendStream[bytes], token: EventLoopToken) -> None:
    with suppress(anyio.BrokenResourceError, anyio.RunFinishedError):
        while chunk := os.read(descriptor, _CHUNK):
            from_thread.run(send.send, chunk, token=token)
        from_thread.run(send.aclose, token=token)
