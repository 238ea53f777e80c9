"""A pytest plugin that puts Ullage between client and server in the SDK's interaction suite.

The suite is in the SDK's source distribution (`tests/interaction`). Its `connect` factory for servers in memory is
replaced by one that reaches the server by our own upstream peer and serves it by our own core over pipes, so that each
test speaks through both ends of the gateway. Run by `test_interaction.py` in the unpacked distribution.
"""

import asyncio
import json
import math
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.server.mcpserver import MCPServer
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from mcp_types.version import LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS

from ullage.gateway import Server
from ullage.tool import Caller
from ullage.wire import Identity, Profile
from ullage.wire.serve.sdk import build_server
from ullage.wire.serve.stdio import serve_descriptors
from ullage.wire.upstream.upstream import _opened

FRONT = "ULLAGE_TESTS_FRONT"
"""Names the environment variable that says what serves the client: `core` on pipes, or the SDK's server (`sdk`)."""
CALLER = Caller(principal="tests", session="s")


class InMemory:
    """A connection to one of the SDK's servers in this process, as a pipe would be."""

    process_id = None

    def __init__(self, send: Any) -> None:  # noqa: ANN401 - the SDK keeps the stream's type to itself
        self._send = send

    def post(self, message: dict[str, Any], headers: Mapping[str, str] | None = None) -> bool:
        del headers
        plain = json.loads(json.dumps(message, allow_nan=False))
        try:
            self._send.send_nowait(SessionMessage(jsonrpc_message_adapter.validate_python(plain)))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        return True

    def stderr_tail(self) -> str:
        return ""

    def last_words(self) -> str:
        return ""

    def printed(self) -> str:
        return ""

    def notes(self) -> tuple[str, ...]:
        return ()

    def refused(self) -> str | None:
        return None


@asynccontextmanager
async def reached(server: Any, receiver: Any) -> AsyncGenerator[InMemory]:  # noqa: ANN401
    to_server, incoming = anyio.create_memory_object_stream[Any](math.inf)
    outgoing, from_server = anyio.create_memory_object_stream[Any](math.inf)

    async def read() -> None:
        async for item in from_server:
            receiver.received(item.message.model_dump(by_alias=True, exclude_unset=True))

    async def run() -> None:
        await server.run(incoming, outgoing, server.create_initialization_options())

    serving, reading = asyncio.ensure_future(run()), asyncio.ensure_future(read())
    try:
        yield InMemory(to_server)
    finally:
        to_server.close()
        await asyncio.wait({serving}, timeout=2)
        for task in (serving, reading):
            task.cancel()


@asynccontextmanager
async def piped(reading: int, writing: int) -> AsyncGenerator[tuple[Any, Any]]:
    """The SDK's two streams of a client over two descriptors."""
    put, received = anyio.create_memory_object_stream[Any](0)
    sent, sending = anyio.create_memory_object_stream[Any](0)

    async def read() -> None:
        rest = b""
        async with put:
            while True:
                await anyio.wait_readable(reading)
                chunk = os.read(reading, 65_536)
                if not chunk:
                    return
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    await put.send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))

    async def write() -> None:
        async for item in sending:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            while line:
                await anyio.wait_writable(writing)
                line = line[os.write(writing, line[:4096]) :]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        yield received, sent
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def connect_through_ullage(
    server: Any,  # noqa: ANN401 - either kind of the SDK's servers
    *,
    spec_version: str = LATEST_HANDSHAKE_VERSION,
    **client: Any,  # noqa: ANN401 - as `Client` takes it
) -> AsyncIterator[Client]:
    lowlevel = server._lowlevel_server if isinstance(server, MCPServer) else server
    is_modern = spec_version in MODERN_PROTOCOL_VERSIONS
    mode = spec_version if is_modern else "legacy"
    entry = Server(name="behind", transport="stdio", command="in memory")
    async with _opened(entry, {}, partial(reached, lowlevel), hesitation=3.0 if is_modern else None) as upstream:
        said = upstream.introduction
        identity = Identity(name=said.name, version=said.version or "", instructions=said.instructions)
        if os.environ[FRONT] == "sdk":
            front: Any = build_server(Profile(source=upstream, identity=identity), lambda _: CALLER)
            async with Client(front, mode=mode, **client) as connected:
                yield connected
            return
        async with (
            served(Profile(source=upstream, identity=identity)) as transport,
            Client(transport, mode=mode, **client) as connected,
        ):
            yield connected


@asynccontextmanager
async def served(profile: Profile) -> AsyncGenerator[Any]:
    """A client's transport to our own core."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(serve_descriptors, profile, lambda _: CALLER, theirs_in, theirs_out))
            yield piped(ours_in, ours_out)
            tasks.cancel_scope.cancel()
    finally:
        for descriptor in (theirs_in, ours_out, ours_in, theirs_out):
            os.close(descriptor)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requirement(id): of the suite's own list")


def pytest_collection_modifyitems() -> None:
    if os.environ.get(FRONT):
        sys.modules["tests.interaction.conftest"]._FACTORIES["in-memory"] = connect_through_ullage
