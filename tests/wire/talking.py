"""A client that speaks bare JSON-RPC: a test sees what is really sent, not what a typed client makes of it."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ERAS = (LEGACY, MODERN)
PREFIX = "io.modelcontextprotocol/"

Answer = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]


class Refused(Exception):
    def __init__(self, error):
        super().__init__(error.message)
        self.code, self.message, self.data = error.code, error.message, error.data


async def _nothing(method: str, params: dict[str, Any]) -> dict[str, Any]:
    raise AssertionError(f"nobody expected to be asked {method} {params}")


@dataclass(kw_only=True)
class Talk:
    era: str
    capabilities: dict[str, Any]
    answer: Answer
    send: Any
    heard: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    hello: dict[str, Any] = field(default_factory=dict)
    number: int = 0
    waiting: dict[int, tuple[anyio.Event, list[Any]]] = field(default_factory=dict)

    async def request(self, method: str, params: dict[str, Any] | None = None, **meta) -> dict[str, Any]:
        number = await self.ask(method, params, **meta)
        event, found = self.waiting[number]
        await event.wait()
        if isinstance(found[0], JSONRPCError):
            raise Refused(found[0].error)
        return found[0].result

    async def ask(self, method: str, params: dict[str, Any] | None = None, **meta) -> int:
        """Sends a request and waits for nothing."""
        self.number += 1
        self.waiting[self.number] = (anyio.Event(), [])
        await self._send(JSONRPCRequest(jsonrpc="2.0", id=self.number, method=method, params=self.filled(params, meta)))
        return self.number

    async def call(self, tool: str, arguments: dict[str, Any] | None = None, **more) -> dict[str, Any]:
        return await self.request("tools/call", {"name": tool, "arguments": arguments or {}, **more})

    async def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        await self._send(JSONRPCNotification(jsonrpc="2.0", method=method, params=params or {}))

    def filled(self, params: dict[str, Any] | None, meta: dict[str, Any]) -> dict[str, Any]:
        if self.era == MODERN:
            meta |= {f"{PREFIX}protocolVersion": MODERN, f"{PREFIX}clientCapabilities": self.capabilities}
        return {**(params or {}), "_meta": meta}

    async def _send(self, message) -> None:
        await self.send.send(SessionMessage(message))

    async def read(self, receive, tasks) -> None:
        async for item in receive:
            match item.message:
                case JSONRPCRequest() as asked:
                    tasks.start_soon(self._answer, asked)
                case JSONRPCNotification() as told:
                    self.heard.append((told.method, told.params or {}))
                case outcome:
                    event, found = self.waiting[outcome.id]
                    found.append(outcome)
                    event.set()

    async def _answer(self, asked: JSONRPCRequest) -> None:
        result = await self.answer(asked.method, asked.params or {})
        await self._send(JSONRPCResponse(jsonrpc="2.0", id=asked.id, result=result))

    async def until(self, method: str, times: int = 1) -> dict[str, Any]:
        """The params of the last of so many notifications."""
        with anyio.fail_after(20):
            while sum(one == method for one, _ in self.heard) < times:
                await anyio.sleep(0.01)
        return [params for one, params in self.heard if one == method][-1]


@asynccontextmanager
async def talking(
    server: Server[Any], era: str, *, capabilities: dict[str, Any] | None = None, answer: Answer = _nothing
) -> AsyncGenerator[Talk]:
    async with create_client_server_memory_streams() as ((receive, send), (incoming, outgoing)):
        talk = Talk(era=era, capabilities=capabilities or {}, answer=answer, send=send)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.run, incoming, outgoing, server.create_initialization_options())
            tasks.start_soon(talk.read, receive, tasks)
            if era == MODERN:
                talk.hello = await talk.request("server/discover")
            else:
                info = {"name": "talk", "version": "1"}
                talk.hello = await talk.request(
                    "initialize", {"protocolVersion": era, "capabilities": talk.capabilities, "clientInfo": info}
                )
                await talk.tell("notifications/initialized")
            yield talk
            await send.aclose()
            tasks.cancel_scope.cancel()
