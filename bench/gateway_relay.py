"""A minimal relay: what a hop between a client and one server costs when nothing is done there.

`gateway_relay.py COMMAND …` starts the server and passes messages on in both directions, each parsed and written again,
with ids of its own. It has one event loop, as whatever stands in front of several servers needs. `THREADS=yes` relays
with a thread for each direction instead, which is cheaper and serves one server only.
"""

import asyncio
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

LONGEST = 64 * 1024 * 1024
numbers, waiting = itertools.count(), dict[int, Any]()


def asked(line: bytes) -> bytes:
    message = json.loads(line)
    if "id" in message:
        number = next(numbers)
        waiting[number], message["id"] = message["id"], number
    return json.dumps(message).encode() + b"\n"


def answered(line: bytes) -> bytes:
    message = json.loads(line)
    if "method" not in message:
        message["id"] = waiting.pop(message["id"])
    return json.dumps(message).encode() + b"\n"


async def pump(source: asyncio.StreamReader, change: Callable[[bytes], bytes], sink: asyncio.StreamWriter) -> None:
    while line := await source.readline():
        sink.write(change(line))
        await sink.drain()
    sink.close()


async def relay(command: list[str]) -> None:
    loop, pipe = asyncio.get_running_loop(), asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=LONGEST)
    assert server.stdin is not None
    assert server.stdout is not None
    source = asyncio.StreamReader(limit=LONGEST)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(source), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    sink = asyncio.StreamWriter(transport, protocol, None, loop)
    await asyncio.gather(pump(source, asked, server.stdin), pump(server.stdout, answered, sink))


def pump_in_thread(source: IO[bytes], change: Callable[[bytes], bytes], sink: IO[bytes]) -> None:
    for line in source:
        sink.write(change(line))
        sink.flush()


def relay_in_threads(command: list[str]) -> None:
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    threading.Thread(target=pump_in_thread, args=[server.stdout, answered, sys.stdout.buffer], daemon=True).start()
    pump_in_thread(sys.stdin.buffer, asked, server.stdin)
    server.stdin.close()


if __name__ == "__main__":
    if os.environ.get("THREADS") == "yes":
        relay_in_threads(sys.argv[1:])
    else:
        asyncio.run(relay(sys.argv[1:]))
