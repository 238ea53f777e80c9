"""A pytest plugin that puts Ullage between client and server in the SDK's interaction suite.

The suite is in the SDK's source distribution (`tests/interaction`). Its `connect` factories are replaced: the one for
servers in memory reaches the server by our own upstream peer and serves it by our own core over pipes; the one for
streamable HTTP serves the SDK's server on a socket, puts a whole gateway in direct mode before it, and connects the
client to that over HTTP. Run by `test_interaction.py` in the unpacked distribution.
"""

import asyncio
import json
import math
import os
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from mcp.client.client import Client
from mcp.server.mcpserver import MCPServer
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from mcp_types.version import LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS

from ullage.app.build_gateway import open_gateway
from ullage.config import Flags, Places, load
from ullage.gateway import META, Server
from ullage.tool import Caller
from ullage.wire import Identity, Profile, http_app
from ullage.wire.serve.sdk_server import build_server
from ullage.wire.serve.stdio import serve_descriptors
from ullage.wire.upstream import _open_peer

FRONT = "ULLAGE_TESTS_FRONT"
"""Names the environment variable that says what serves the client: `core` on pipes, the SDK's server (`sdk`), or a
whole gateway over HTTP (`gateway`)."""
CALLER = Caller(principal="tests", session="s")
DIRECT = """
[gateway]
mode = "direct"

[results]
budget = 0
encode = false

[own]
hidden = ["*"]

[servers.behind]
url = "{url}"
prefix = ""
"""


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
    async with _open_peer(entry, {}, partial(reached, lowlevel), hesitation=3.0 if is_modern else None) as upstream:
        said = upstream.introduction()
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


class UnmeteredClient(Client):
    """A client that does not see the figures that S0:meta adds to each result."""

    async def call_tool(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as `Client` has them
        result = await super().call_tool(*args, **kwargs)
        kept = {key: value for key, value in (result.meta or {}).items() if key != META}
        result.meta = kept or None
        return result


@asynccontextmanager
async def connect_over_gateway(
    server: Any,  # noqa: ANN401 - either kind of the SDK's servers
    *,
    spec_version: str = LATEST_HANDSHAKE_VERSION,
    **client: Any,  # noqa: ANN401 - as `Client` takes it
) -> AsyncIterator[Client]:
    """A client of a gateway in direct mode, with the server behind it; HTTP on both sides."""
    mode = spec_version if spec_version in MODERN_PROTOCOL_VERSIONS else "legacy"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with listening(server.streamable_http_app()) as behind, AsyncExitStack() as stack:
            settings = folder / "ullage.toml"
            settings.write_text(DIRECT.format(url=behind), encoding="utf-8")
            flags = Flags(config=settings, store=f"sqlite:///{folder}/store.db")
            environment = {"HOME": name}
            loaded = load(flags, environment, folder, places=Places(home=folder, config=folder, data=folder))
            gateway = await stack.enter_async_context(open_gateway(loaded, environment=environment))
            app = http_app(gateway.flagged, on_session_end=gateway.host.release)
            front = await stack.enter_async_context(listening(app))
            yield await stack.enter_async_context(UnmeteredClient(front, mode=mode, **client))


@asynccontextmanager
async def listening(app: Any) -> AsyncGenerator[str]:  # noqa: ANN401 - an ASGI application
    """Its address while it is served."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        config = uvicorn.Config(app, lifespan="on", log_level="critical", timeout_graceful_shutdown=1)
        running = uvicorn.Server(config)
        serving = asyncio.ensure_future(running.serve(sockets=[bound]))
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"
        finally:
            running.should_exit = True
            await serving


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requirement(id): of the suite's own list")


def pytest_collection_modifyitems() -> None:
    factories = sys.modules["tests.interaction.conftest"]._FACTORIES
    if os.environ.get(FRONT) == "gateway":
        factories["streamable-http"] = connect_over_gateway
    elif os.environ.get(FRONT):
        factories["in-memory"] = connect_through_ullage
