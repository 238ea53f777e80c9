"""A client that speaks bare JSON-RPC: a test sees what is really sent, not what a typed client makes of it.

A test module that imports `transport` runs each of its tests twice: in front of the SDK's server, as HTTP does, and in
front of our own core over pipes, as standard input and output do.
"""

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import pytest
from mcp.server.lowlevel import Server
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from ullage.tool import Caller, ToolSource
from ullage.wire.serve.client_request import Request
from ullage.wire.serve.request_handlers import Identity, Profile
from ullage.wire.serve.sdk_server import build_server
from ullage.wire.serve.stdio import serve_descriptors

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ERAS = (LEGACY, MODERN)
PREFIX = "io.modelcontextprotocol/"
ADA = Caller(principal="ada", session="s")

Message = dict[str, Any]
Answer = Callable[[str, Message], Awaitable[Message]]
WhoCalls = Callable[[Request], Caller]

_transport = ["sdk"]


@pytest.fixture(params=["sdk", "core"], autouse=True)
def transport(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs each test of a module that imports it on both transports."""
    _transport[0] = request.param
    yield request.param
    _transport[0] = "sdk"


@dataclass(frozen=True, kw_only=True)
class Served:
    """A source that is to be served."""

    source: ToolSource
    identity: Identity
    who_calls: WhoCalls = lambda _: ADA

    def sdk(self) -> Server[Any]:
        return build_server(Profile(source=self.source, identity=self.identity), self.who_calls)


class Refused(Exception):
    def __init__(self, error: Message):
        super().__init__(error["message"])
        self.code, self.message = error["code"], error["message"]
        self.data: Any = error.get("data")


async def _nothing(method: str, params: Message) -> Message:
    raise AssertionError(f"nobody expected to be asked {method} {params}")


@dataclass(kw_only=True)
class Talk:
    era: str
    capabilities: Message
    answer: Answer
    send: Callable[[Message], Awaitable[None]]
    heard: list[tuple[str, Message]] = field(default_factory=list)
    hello: Message = field(default_factory=dict)
    number: int = 0
    waiting: dict[int, tuple[anyio.Event, list[Message]]] = field(default_factory=dict)

    async def request(self, method: str, params: Message | None = None, **meta) -> Message:
        number = await self.ask(method, params, **meta)
        event, found = self.waiting[number]
        await event.wait()
        if "error" in found[0]:
            raise Refused(found[0]["error"])
        return found[0]["result"]

    async def ask(self, method: str, params: Message | None = None, **meta) -> int:
        """Sends a request and waits for nothing."""
        self.number += 1
        self.waiting[self.number] = (anyio.Event(), [])
        await self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": self.filled(params, meta)})
        return self.number

    async def call(self, tool: str, arguments: Message | None = None, **more) -> Message:
        return await self.request("tools/call", {"name": tool, "arguments": arguments or {}, **more})

    async def tell(self, method: str, params: Message | None = None) -> None:
        await self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def filled(self, params: Message | None, meta: Message) -> Message:
        if self.era == MODERN:
            meta |= {f"{PREFIX}protocolVersion": MODERN, f"{PREFIX}clientCapabilities": self.capabilities}
        return {**(params or {}), "_meta": meta}

    async def read(self, messages: AsyncIterator[Message], tasks) -> None:
        async for message in messages:
            if "method" not in message:
                event, found = self.waiting[message["id"]]
                found.append(message)
                event.set()
            elif "id" in message:
                tasks.start_soon(self._answer, message)
            else:
                self.heard.append((message["method"], message.get("params") or {}))

    async def _answer(self, asked: Message) -> None:
        result = await self.answer(asked["method"], asked.get("params") or {})
        await self.send({"jsonrpc": "2.0", "id": asked["id"], "result": result})

    async def until(self, method: str, times: int = 1) -> Message:
        """The params of the last of so many notifications."""
        with anyio.fail_after(20):
            while sum(one == method for one, _ in self.heard) < times:
                await anyio.sleep(0.01)
        return [params for one, params in self.heard if one == method][-1]


@asynccontextmanager
async def talking(
    served: Served, era: str, *, capabilities: Message | None = None, answer: Answer = _nothing
) -> AsyncGenerator[Talk]:
    link = linked_sdk if _transport[0] == "sdk" else linked_core
    async with link(served) as (send, messages), anyio.create_task_group() as tasks:
        talk = Talk(era=era, capabilities=capabilities or {}, answer=answer, send=send)
        tasks.start_soon(talk.read, messages, tasks)
        if era == MODERN:
            talk.hello = await talk.request("server/discover")
        else:
            info = {"name": "talk", "version": "1"}
            talk.hello = await talk.request(
                "initialize", {"protocolVersion": era, "capabilities": talk.capabilities, "clientInfo": info}
            )
            await talk.tell("notifications/initialized")
        yield talk
        tasks.cancel_scope.cancel()


Link = tuple[Callable[[Message], Awaitable[None]], AsyncIterator[Message]]


@asynccontextmanager
async def linked_sdk(served: Served) -> AsyncGenerator[Link]:
    """A connection to the SDK's server in memory."""
    server = served.sdk()
    async with create_client_server_memory_streams() as ((receive, send), (incoming, outgoing)):

        async def put(message: Message) -> None:
            await send.send(SessionMessage(jsonrpc_message_adapter.validate_python(message)))

        async def messages() -> AsyncIterator[Message]:
            async for item in receive:
                assert isinstance(item, SessionMessage)
                yield item.message.model_dump(by_alias=True, exclude_unset=True)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.run, incoming, outgoing, server.create_initialization_options())
            yield put, messages()
            await send.aclose()
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def linked_core(served: Served, **more) -> AsyncGenerator[Link]:
    """A connection to our own core over pipes."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()

    async def put(message: Message) -> None:
        line = json.dumps(message).encode() + b"\n"
        while line:
            await anyio.wait_writable(ours_out)
            line = line[os.write(ours_out, line[:4096]) :]

    profile = Profile(source=served.source, identity=served.identity)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(serve_descriptors, profile, served.who_calls, theirs_in, theirs_out, **more))
            yield put, read_messages(ours_in)
            tasks.cancel_scope.cancel()
    finally:
        for descriptor in (theirs_in, ours_out, ours_in, theirs_out):
            os.close(descriptor)


async def read_messages(descriptor: int) -> AsyncIterator[Message]:
    rest = b""
    while True:
        await anyio.wait_readable(descriptor)
        chunk = os.read(descriptor, 65_536)
        if not chunk:
            return
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield json.loads(line)
