"""How is a server spoken to over standard input and output?

Nothing but protocol goes to standard output; whoever wants to say something to a person says it on standard error.
"""

import getpass
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

from ullage.tool import Caller, ToolSource

from .serve import Context, Identity, build_server

__all__ = ["serve_stdio"]

_CHUNK = 65_536


async def serve_stdio(source: ToolSource, identity: Identity, *, client: str | None = None) -> None:
    """Serves until standard input ends or someone interrupts. The process is the session."""
    caller = Caller(principal=getpass.getuser(), session=uuid.uuid4().hex, client=client)

    def who_calls(_: Context) -> Caller:
        return caller

    server = build_server(source, identity, who_calls)
    async with stdio_server(stdin=cast("Any", _lines(_claim_input()))) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


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
    rest = b""
    async with receive:
        async for chunk in receive:
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")


def _pump(descriptor: int, send: MemoryObjectSendStream[bytes], token: EventLoopToken) -> None:
    with suppress(anyio.BrokenResourceError, anyio.RunFinishedError):
        while chunk := os.read(descriptor, _CHUNK):
            from_thread.run(send.send, chunk, token=token)
        from_thread.run(send.aclose, token=token)
